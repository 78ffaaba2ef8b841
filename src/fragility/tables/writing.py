"""Results to files, whole or not at all, and a check beforehand that this will work."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from .. import _files
from .._labels import listed
from ..exceptions import TableError
from .arrow import parquet, pyarrow


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a path that cannot be written to, before the long work for it begins.

    Examples
    --------
    >>> check_writable(getfixture("tmp_path") / "report.html")
    """
    file = Path(path)
    folder = file.parent
    if not file.name:
        raise TableError(f"{str(path)!r} is not the name of a file; give one, as in results.csv.")
    try:
        is_folder, is_there, is_in_folder = file.is_dir(), folder.exists(), folder.is_dir()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise TableError(f"{str(path)!r}: no file can be written there ({why}).") from error
    if is_folder:
        raise TableError(
            f"{file}: this is a folder; name a file in it, as in {str(file / 'results.csv')!r}."
        )
    if not is_there:
        raise TableError(
            f"{file}: there is no folder {str(folder)!r}; make it first (mkdir -p "
            f"{str(folder)!r}) or name another one."
        )
    if not is_in_folder:
        raise TableError(f"{file}: {str(folder)!r} is a file, not a folder; name another one.")
    if not os.access(folder.resolve(), os.W_OK | os.X_OK):
        raise TableError(
            f"{file}: you are not permitted to write to the folder {str(folder)!r}; name another "
            "one."
        )


def write_file(path: str | os.PathLike[str], content: bytes | str) -> None:
    r"""Write a file that is there in full or not at all; text as UTF-8, its line ends as given.

    Examples
    --------
    >>> folder = getfixture("tmp_path")
    >>> write_file(folder / "page.html", "<p>0.5</p>\n")
    >>> [file.name for file in folder.iterdir()]
    ['page.html']
    """
    with _explained(Path(path)):
        _files.write_whole(path, content)


def with_columns(table: Any, columns: Mapping[str, Any]) -> Any:
    """A `pyarrow.Table` with more columns; a column that it has is never overwritten.

    Examples
    --------
    >>> import pyarrow
    >>> with_columns(pyarrow.table({"age": [31, 45]}), {"risk": [0.1, 0.7]}).column_names
    ['age', 'risk']
    """
    taken = [name for name in columns if name in table.column_names]
    if taken:
        raise TableError(
            f"The table has columns of these names already: {listed(taken)}. Rename or remove them."
        )
    for name, values in columns.items():
        table = table.append_column(name, pyarrow().array(values))
    return table


def write_table(table: Any, path: str | os.PathLike[str]) -> None:
    """Write a `pyarrow.Table` as CSV, gzipped CSV, Parquet or Arrow, as the name ends.

    Examples
    --------
    >>> import pyarrow
    >>> path = getfixture("tmp_path") / "costs.csv"
    >>> write_table(pyarrow.table({"threshold": [0.5, 0.9], "cost": [12, 7]}), path)
    >>> print(path.read_text().splitlines()[1])
    0.5,12
    """
    file = Path(path)
    name = file.name.lower()
    writer = next((write for ending, write in _WRITERS.items() if name.endswith(ending)), None)
    if writer is None:
        raise TableError(
            f"{file}: the name must end in one of {', '.join(_WRITERS)}, which says how to write "
            "the table."
        )
    with (
        _explained(file, pyarrow().ArrowException),
        _files.replacing(file) as temporary,
        open(temporary, "wb") as stream,  # pyarrow would not take every name
    ):
        writer(table, stream)


@contextmanager
def _explained(file: Path, *more: type[Exception]) -> Iterator[None]:
    check_writable(file)
    errors: tuple[type[Exception], ...] = (OSError, *more)
    try:
        yield
    except errors as error:
        raise TableError(
            f"{file}: the file could not be written ({error}); nothing was changed."
        ) from error


def _write_csv(table: Any, stream: Any, delimiter: str = ",") -> None:
    form = pyarrow().csv
    form.write_csv(table, stream, form.WriteOptions(delimiter=delimiter))


def _write_gzipped(table: Any, stream: Any) -> None:
    # Without a time stamp, equal tables make equal files.
    with gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed:
        _write_csv(table, packed)


def _write_parquet(table: Any, stream: Any) -> None:
    parquet().write_table(table, stream)


def _write_arrow(table: Any, stream: Any) -> None:
    with pyarrow().ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)


_WRITERS: dict[str, Callable[[Any, Any], None]] = {
    ".csv": _write_csv,
    ".csv.gz": _write_gzipped,
    ".tsv": partial(_write_csv, delimiter="\t"),
    ".parquet": _write_parquet,
    ".arrow": _write_arrow,
    ".feather": _write_arrow,
}
