"""Whether a file may be written: never over an input, and not over something of another kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from ..exceptions import TableError
from .writing import check_writable

#: Bytes at the beginning of a file that tell its kind.
_BEGINNING = 4096


def check_output(
    path: str | os.PathLike[str],
    inputs: Iterable[str | os.PathLike[str]] = (),
    *,
    force: bool = False,
) -> None:
    """Refuse a path whose file must not be replaced, before the long work for it begins.

    No input is replaced, by whatever name or link it is reached. A file that is there already is
    replaced only if it is what its name says and what is to be written: a report by a report, a
    table by a table. `force` allows any kind, but still no input.

    Examples
    --------
    >>> path = getfixture("tmp_path") / "report.md"
    >>> _ = path.write_text("# Fragility report")
    >>> check_output(path)
    >>> _ = path.write_text("# My notes")
    >>> check_output(path)
    Traceback (most recent call last):
    ...
    fragility.exceptions.TableError: ...report.md exists and is not a report in Markdown; ...
    """
    check_writable(path)
    file = Path(path)
    if not file.is_file():  # new, or a device or pipe, which loses nothing
        return
    for given in inputs:
        try:
            same = file.samefile(given)
        except (OSError, ValueError):  # an input that is not there is refused when it is opened
            continue
        if same:
            raise TableError(
                f"{file} is the same file as the input {given}; writing would destroy it. Name "
                "another output."
            )
    kind, is_kind = next(
        (found for ending, found in _KINDS.items() if file.name.lower().endswith(ending)),
        ("a file that this command writes", lambda _: False),
    )
    if not force and file.stat().st_size and not is_kind(file):
        raise TableError(
            f"{file} exists and is not {kind}; nothing was written. Name another file, or replace "
            "it with --force."
        )


def _begins(*signs: bytes) -> Callable[[Path], bool]:
    """Whether a file begins with the first sign and has the others soon after it."""
    first, *others = signs

    def begins(file: Path) -> bool:
        beginning = _beginning(file)
        return beginning.startswith(first) and all(sign in beginning for sign in others)

    return begins


def _is_text(file: Path) -> bool:
    beginning = _beginning(file)
    return b"\0" not in beginning and not beginning.lstrip().startswith((b"<", b"{", b"["))


def _beginning(file: Path) -> bytes:
    with open(file, "rb") as stream:
        return stream.read(_BEGINNING)


_KINDS: dict[str, tuple[str, Callable[[Path], bool]]] = {
    ".html": ("a page of a report", _begins(b"<!DOCTYPE html>", b'"generator" content="fragility')),
    ".md": ("a report in Markdown", _begins(b"# Fragility report")),
    ".json": ("a report in JSON", _begins(b"{", b'"format"', b'"fragility_version"')),
    ".xml": ("test results of a gate", _begins(b"<?xml", b'name="fragility gate"')),
    ".fsk": ("a sketch", _begins(b"fragility-sketch")),
    ".csv": ("a table of text", _is_text),
    ".tsv": ("a table of text", _is_text),
    ".csv.gz": ("a compressed file", _begins(b"\x1f\x8b")),
    ".parquet": ("a Parquet file", _begins(b"PAR1")),
    ".arrow": ("an Arrow file", _begins(b"ARROW1")),
    ".feather": ("an Arrow file", _begins(b"ARROW1")),
}
