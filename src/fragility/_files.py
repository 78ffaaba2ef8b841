"""Atomic file writes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex


def write_whole(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write a file that is there in full or not at all; text as UTF-8, its line ends as given."""
    data = content.encode() if isinstance(content, str) else content
    with replacing(path) as temporary:
        temporary.write_bytes(data)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file beside `path`, which takes its place if the block ends without an error.

    A link stays a link: the file that it points to is replaced. The new file keeps the permissions
    of the old one, or has the usual ones. A device or a pipe is not replaced but written to.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file() and not target.is_dir():
        yield target
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"{path}: there is no folder {str(target.parent)!r}; make it first, or name another."
        )
    name = target.with_name(f".{target.name[:40]}.{token_hex(4)}.tmp")
    # Unlike a file of tempfile, this one gets the permissions that the user's umask leaves.
    os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield name
        if target.is_file():
            os.chmod(name, stat.S_IMODE(target.stat().st_mode))
        os.replace(name, target)
    except BaseException:
        name.unlink(missing_ok=True)
        raise
