"""Opening a file of a user: what kind it is, by content first and name second."""

from __future__ import annotations

import codecs
import glob
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from .._labels import listed
from .._names import nearest
from ..exceptions import TableError
from .standard_input import STANDARD_INPUT, spooled
from .table import Table
from .text_files import CsvTable
from .text_source import TextSource

_GIVE = "Give a CSV or JSON lines (also gzipped), Parquet or Arrow file."
_START = 4096
_STREAM_START = b"\xff\xff\xff\xff"
_GZIP = b"\x1f\x8b"
_COLUMN_ENDINGS = {
    **dict.fromkeys((".parquet", ".pq"), "Parquet"),
    **dict.fromkeys((".arrow", ".arrows", ".feather", ".ipc"), "Arrow"),
}
#: First bytes of what cannot be read, and what it is.
_OTHERS = {
    b"PK\x03\x04": "a ZIP archive or an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"FEA1": "Feather version 1",
    b"BZh": "compressed with bzip2",
    b"\xfd7zXZ": "compressed with xz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"\x89HDF": "HDF5",
    b"SQLite format 3": "an SQLite database",
    b"%PDF": "PDF",
    b"\x93NUMPY": "a NumPy array",
    b"\x80\x04": "a Python pickle",
    b"\x80\x05": "a Python pickle",
    b"<!DOCTYPE": "a web page",
    b"<html": "a web page",
}
_OTHER_ENDINGS = {
    ".zip": "a ZIP archive",
    **dict.fromkeys((".xlsx", ".xls"), "an Excel workbook"),
}
_JSON_ENDINGS = (".json", ".jsonl", ".ndjson")


def open_table(path: str | os.PathLike[str]) -> Table:
    r"""Open a CSV or JSON lines (plain or gzipped), Parquet or Arrow (Feather) file.

    Text must be UTF-8. A CSV file has a header line; commas, semicolons, tabs or bars between the
    values are found out. JSON has one object a line, and columns are paths in it, such as
    ``sample.target``; a small list of objects will do, too. Nothing but the beginning, or what
    describes the table, is read. ``"-"`` is standard input, which is kept in a temporary file for
    as long as the table is used. A folder of Parquet files, or a pattern such as
    ``"scores/*.parquet"``, is one table.

    Raises
    ------
    TableError
        If the file is not there, not of these kinds, damaged or without rows.

    Examples
    --------
    >>> path = getfixture("tmp_path") / "small.csv"
    >>> _ = path.write_text("label;score\n1;0.9\n0;0.2\n")
    >>> table = open_table(path)
    >>> table.kind, table.column_names
    ('CSV', ['label', 'score'])
    >>> table.read().to_pylist()[0]
    {'label': 1, 'score': 0.9}
    """
    if os.fspath(path) != "-":
        several = _several(os.fspath(path))
        if several is not None:
            return several
        file = Path(path)
        return _opened(file, str(file), _first_bytes(os.fspath(path), file))
    with spooled() as (file, keep):
        table = _opened(file, STANDARD_INPUT, _beginning(file))
        keep(table)
    return table


def open_part(path: str) -> Table:
    """The same for a part of the data: Parquet files of which may have no rows."""
    if path != "-":
        several = _several(path, may_be_empty=True)
        if several is not None:
            return several
        file = Path(path)
        if _first_bytes(path, file).startswith(b"PAR1"):
            from .column_files import ParquetTable

            return ParquetTable(file, may_be_empty=True)
    return open_table(path)


def _several(given: str, *, may_be_empty: bool = False) -> Table | None:
    """The table of a folder of Parquet files, or of a pattern; None if it is neither."""
    paths = several_paths(given)
    if paths is None:
        return None
    check_once(paths)  # a link may be to one of them
    from .several_files import ParquetFiles

    return ParquetFiles(given, paths, may_be_empty=may_be_empty)


def several_paths(given: str) -> list[str] | None:
    """Parquet files of a folder or a pattern; None if it is neither."""
    if "://" in given or "\0" in given:
        return None
    is_folder = os.path.isdir(given)
    if not is_folder and (os.path.lexists(given) or not glob.has_magic(given)):
        return None
    from .several_files import parquet_files

    try:
        return parquet_files(given)
    except (TableError, OSError):  # which is told when it is opened, with what is in the folder
        return None


def check_once(paths: Sequence[str]) -> None:
    """Refuse a file that is named twice, also by a pattern or its folder: it would count twice."""
    seen: dict[Any, str] = {}
    for path in (file for given in paths for file in several_paths(given) or [given]):
        try:
            found = os.stat(path)
        except (OSError, ValueError):  # refused when it is opened; - is standard input
            key: Any = path
        else:
            key = found.st_dev, found.st_ino
        if key in seen:
            raise TableError(
                f"{path} is the same file as {seen[key]}; its cases would count twice."
            )
        seen[key] = path


def _opened(file: Path, name: str, start: bytes) -> Table:
    """The table of a file with these first bytes, which messages call `name`."""
    if not start:
        raise TableError(f"{name}: it is empty (0 bytes). {_GIVE}")
    ending = Path(name).suffix.lower()
    _refuse_others(name, ending, start)
    if start.startswith((b"PAR1", b"ARROW1", _STREAM_START)):
        from .column_files import ArrowTable, ParquetTable  # other files need not wait for it

        if start.startswith(b"PAR1"):
            return ParquetTable(file, name)
        return ArrowTable(file, name, is_stream=start.startswith(_STREAM_START))
    stored = _COLUMN_ENDINGS.get(ending)
    if stored is not None:
        raise TableError(
            f"{name}: the name says {stored}, but the content does not begin as such a file does "
            f"({start[:8]!r}). It is damaged, or something else. {_GIVE}"
        )
    is_compressed = start.startswith(_GZIP)
    text = _unpacked(file) if is_compressed else start
    text = text.removeprefix(codecs.BOM_UTF8).lstrip()
    says_json = name.lower().removesuffix(".gz").endswith(_JSON_ENDINGS)
    is_list = text.startswith(b"[") and (says_json or text[1:].lstrip().startswith((b"{", b"[")))
    is_damaged = is_compressed and not text and says_json
    if is_list or is_damaged or text.startswith(b"{"):
        from .json_files import JsonTable

        return JsonTable(file, name, is_compressed=is_compressed, is_list=is_list)
    if says_json:
        raise TableError(
            f"{name}: the name says JSON, but the content does not begin with an object "
            f"({text[:8]!r}). Give one JSON object a line. {_GIVE}"
        )
    return CsvTable(file, name, is_compressed=is_compressed)


def _unpacked(file: Path) -> bytes:
    """First bytes of what is in a gzip; none of a damaged one, which its reader explains."""
    with suppress(OSError, EOFError), TextSource(file, True) as source:
        return source.read(_START)
    return b""


def _first_bytes(given: str, file: Path) -> bytes:
    if "://" in given:
        raise TableError(f"{given}: this is an address, not a file. Download it first.")
    try:
        if file.is_dir():
            raise TableError(f"{file}: this is a folder. {_GIVE} {_files_in(file)}")
        if not file.exists():
            raise TableError(f"{file}: there is no such file. {_nearest(file)}")
        if not file.is_file():
            raise TableError(
                f"{file}: this is a device or a pipe. Save the table as a file, or give - and "
                "send it to standard input."
            )
        return _beginning(file)
    except PermissionError:
        raise TableError(
            f"{file}: you are not permitted to read this file; change its permissions "
            "(chmod u+r) or copy it."
        ) from None
    except (OSError, ValueError) as error:
        if isinstance(error, TableError):
            raise
        why = getattr(error, "strerror", None) or error
        raise TableError(f"{given!r}: this file cannot be opened ({why}).") from error


def _beginning(file: Path) -> bytes:
    with open(file, "rb") as stream:
        return stream.read(_START)


def _refuse_others(name: str, ending: str, start: bytes) -> None:
    what = next((kind for magic, kind in _OTHERS.items() if start.startswith(magic)), None)
    if what is None and not start.startswith((b"PAR1", b"ARROW1")):
        what = _OTHER_ENDINGS.get(ending)
    if what is not None:
        raise TableError(f"{name}: this is {what}. Export the table as CSV or Parquet.")


def _nearest(file: Path) -> str:
    folder = file.parent
    if not folder.is_dir():
        return f"There is no folder {str(folder)!r} either."
    near = nearest(file.name, (entry.name for entry in os.scandir(folder)))
    if near is not None:
        return f"Did you mean {str(folder / near)!r}?"
    return _files_in(folder)


def _files_in(folder: Path) -> str:
    names = sorted(entry.name for entry in os.scandir(folder) if entry.name[0] != ".")
    return f"In {str(folder)!r} there is {listed(names, most=5) or 'nothing'}."
