"""Rows on this machine: arrays, tables, files, datasets, and queries of polars and DuckDB.

Their batches are streamed into a state of NumPy, which takes about half the time of the engine's
own expressions. A row of files has a thread of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any

from ..tables.arrow import pyarrow
from ..tables.column_files import check_rows, holds_order, opened_parquet, parquet_batches
from .source import Add, Merge, Part, Source, State, batch_rows, folded, merged

#: Bytes of a column of a Parquet file that are read at a time, where there are more than a few.
_BUFFER, _FEW_COLUMNS = 1 << 17, 8
#: How the lines of the plan of polars begin where a query only reads Parquet files; and so many
#: batches are read at a time then, in so many slices at most.
_ROWS = "ESTIMATED ROWS:"
_PLAIN_SCAN = ("Parquet SCAN", "PROJECT", _ROWS)
_BATCHES, _MOST_SLICES = 8, 256
#: Gives batches with some columns, in their order, whenever it is called.
Opened = Callable[[list[str]], Iterable[Any]]


@dataclass(frozen=True)
class LocalPart:
    """A part that can be opened again and again, its size in any unit, metadata of its Parquet."""

    name: str
    opened: Opened
    file: str | None = None
    size: int = 1
    about: Callable[[], Iterable[Any]] = tuple


class LocalSource(Source):
    """Parts that this process reads.

    Parameters
    ----------
    schema : pyarrow.Schema
    parts : sequence of LocalPart
    name : str, default="the data"
    """

    def __init__(self, schema: Any, parts: Sequence[LocalPart], name: str = "the data") -> None:
        self.schema, self.name = schema, name
        self._parts = list(parts)

    def keeps_order(self, column: str) -> bool:
        """Whether all files of Parquet say it."""
        return all(holds_order(about, column) for own in self._parts for about in own.about())

    def _hint(self, missing: str) -> str:
        folders = (folder for own in self._parts for folder in (own.file or "").split(os.sep)[:-1])
        if not any(folder.startswith(f"{missing}=") for folder in folders):
            return ""
        return (
            f" The values of {missing!r} are in the names of folders: give an Arrow dataset, "
            'pyarrow.dataset.dataset(folder, partitioning="hive").'
        )

    def _reduce(self, add: Add[State], merge: Merge[State], columns: list[str]) -> State | None:
        numbered = [(Part(k, own.name, own.file), own) for k, own in enumerate(self._parts)]
        runs = _runs(numbered, os.cpu_count() or 1)
        failed = Event()

        def state_of(run: list[tuple[Part, LocalPart]]) -> State | None:
            state: State | None = None
            try:
                for part, own in run:
                    state = folded(_until(failed, _read(own, columns)), part, add, state)
            except BaseException:
                failed.set()
                raise
            return state

        if len(runs) == 1:
            return state_of(runs[0])
        with ThreadPoolExecutor(len(runs)) as pool:
            tasks = [pool.submit(state_of, run) for run in runs]
            states = []
            for task in tasks:
                try:
                    states.append(task.result())
                except _StoppedError:  # another one failed, and says why
                    continue
                except BaseException:  # from the keyboard, say: nobody waits for the others
                    failed.set()
                    raise
            return merged(states, merge)


class _StoppedError(BaseException):
    """Reading went no further, because another part failed: no fault of this one."""


def _until(failed: Event, batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        if failed.is_set():
            raise _StoppedError
        yield batch


def _read(part: LocalPart, columns: list[str]) -> Iterator[Any]:
    for batch in part.opened(columns):
        batch.validate(full=True)
        yield batch


def _runs(
    parts: list[tuple[Part, LocalPart]], n_threads: int
) -> list[list[tuple[Part, LocalPart]]]:
    """Parts that follow each other, in rows of about equal size: one for each thread."""
    n_runs = max(min(n_threads, len(parts)), 1)
    total = sum(own.size for _, own in parts) or 1
    runs: list[list[tuple[Part, LocalPart]]] = [[] for _ in range(n_runs)]
    before = 0
    for part, own in parts:
        middle = before + own.size / 2
        runs[min(int(middle * n_runs / total), n_runs - 1)].append((part, own))
        before += own.size
    return [run for run in runs if run] or [[]]


def of_table(table: Any, name: str = "the data") -> LocalSource:
    """A `pyarrow.Table`."""

    def opened(columns: list[str]) -> Iterable[Any]:
        return table.select(columns).to_batches(batch_rows(len(columns)))  # type: ignore[no-any-return]

    return LocalSource(table.schema, [LocalPart(name, opened)], name)


def of_arrays(arrays: Mapping[str, Any]) -> LocalSource:
    """Arrays by the names of columns; what Arrow cannot hold is refused with its column."""
    pa, columns = pyarrow(), {}
    for name, values in arrays.items():
        try:
            columns[str(name)] = pa.array(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"column {name!r} is not an array of one type ({error}).") from error
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name!r} {n}" for name, n in lengths.items())
        raise ValueError(f"The arrays have different lengths: {told}.")
    return of_table(pa.table(columns))


def of_stream(data: Any) -> LocalSource:
    """Anything with `__arrow_c_stream__` that may be asked for it again: a frame, a table."""
    pa = pyarrow()
    frame = hasattr(data, "iloc")  # of pandas: columns that nobody asks for may hold anything
    names = [str(name) for name in data.columns] if frame else []  # of which some may be numbers

    def stream(columns: list[str]) -> Any:
        chosen = data.iloc[:, [names.index(name) for name in columns]] if frame else data
        if hasattr(chosen, "select") and not frame:
            chosen = chosen.select(columns)
        return pa.RecordBatchReader.from_stream(chosen)

    if frame:  # an empty column has no values to tell its type by, and text has none of its own
        kinds = [(name, pa.null()) for name in names]
        return LocalSource(pa.schema(kinds), [LocalPart("the data", stream)])
    schema = pa.RecordBatchReader.from_stream(data).schema

    def opened(columns: list[str]) -> Iterable[Any]:
        return (batch.select(columns) for batch in stream(columns))

    return LocalSource(schema, [LocalPart("the data", opened)])


class OneReading(Source):
    """A stream that can be read once."""

    def __init__(self, reader: Any) -> None:
        self._reader, self._is_read = reader, False
        self.schema = reader.schema

    def _reduce(self, add: Add[State], merge: Merge[State], columns: list[str]) -> State | None:
        if self._is_read:
            raise ValueError(
                "A RecordBatchReader can be read once, and this takes more readings: give a table, "
                "files or a query; or, for a sketch, name the classes with labels=."
            )
        self._is_read = True
        batches = (batch.select(columns) for batch in self._reader)
        return folded(batches, Part(0, self.name), add)


def of_parquet(paths: Sequence[str]) -> LocalSource:
    """Parquet files, each of which is a part; some may be empty."""
    try:
        with opened_parquet(paths[0]) as first:
            schema = first.schema_arrow
    except Exception as error:  # of damaged data, readers raise anything
        raise Part(0, paths[0], paths[0]).error(error) from error
    parts = [
        LocalPart(path, _parquet_batches(path), path, os.path.getsize(path), partial(_about, path))
        for path in paths
    ]
    return LocalSource(schema, parts, paths[0] if len(paths) == 1 else "the files")


def _about(path: str) -> Iterator[Any]:
    with opened_parquet(path) as file:
        yield file.metadata


def _parquet_batches(path: str) -> Opened:
    def opened(columns: list[str]) -> Iterator[Any]:
        # Of a column no more than a buffer at a time, so that memory stays bounded however large
        # groups of rows are.
        options = {"buffer_size": _BUFFER} if len(columns) > _FEW_COLUMNS else {}
        yield from parquet_batches(path, columns, batch_rows(len(columns)), **options)

    return opened


def of_dataset(dataset: Any) -> LocalSource:
    """A `pyarrow.dataset.Dataset`, whose fragments are the parts; a filtered one is one part."""
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # only the whole knows its filter
        about = partial(_about_files, dataset)
        parts = [LocalPart("the dataset", partial(_scanned, dataset), about=about)]
    else:
        parts = [_fragment(number, own, dataset.schema) for number, own in enumerate(fragments)]
    return LocalSource(dataset.schema, parts, "the dataset")


def _about_files(dataset: Any) -> Iterator[Any]:
    """Metadata of all Parquet files of a filtered dataset, which does not hand out fragments."""
    for own in getattr(dataset, "children", ()):
        yield from _about_files(own)
    for path in getattr(dataset, "files", ()):
        fragment = dataset.format.make_fragment(path, dataset.filesystem)
        if _is_parquet(fragment):
            yield fragment.metadata


def _is_parquet(fragment: Any) -> bool:
    """Whether a fragment is of a Parquet file; of other kinds nobody knows more than rows."""
    return isinstance(fragment, pyarrow().dataset.ParquetFileFragment)


def _fragment(number: int, fragment: Any, schema: Any) -> LocalPart:
    path, is_parquet = getattr(fragment, "path", None), _is_parquet(fragment)

    def opened(columns: list[str]) -> Iterator[Any]:
        done = 0
        for batch in _scanned(fragment, columns, schema=schema):
            done += batch.num_rows
            yield batch
        if is_parquet:
            check_rows(_rows_said(fragment), done)

    def about() -> Iterator[Any]:
        if is_parquet:  # whose metadata may be far away
            yield fragment.metadata

    return LocalPart(path or f"fragment {number}", opened, path, about=about)


def _rows_said(fragment: Any) -> int:
    """Rows that a Parquet file says it has, or those of its row groups that were chosen."""
    about, groups = fragment.metadata, fragment.row_groups
    if len(groups) == about.num_row_groups:
        return int(about.num_rows)
    return sum(group.num_rows for group in groups)


def _scanned(rows: Any, columns: list[str], **options: Any) -> Iterable[Any]:
    """Batches of a dataset or fragment; the default reads 16 of 4 files ahead, whatever memory."""
    bounded = {"batch_readahead": 1, "fragment_readahead": 1, "use_threads": False}
    size = batch_rows(len(columns))
    found: Iterable[Any] = rows.scanner(
        columns=columns, batch_size=size, **bounded, **options
    ).to_batches()
    return found


def of_lazy_frame(frame: Any) -> LocalSource:
    """A `polars.LazyFrame`, which is run for each reading."""

    def opened(columns: list[str]) -> Iterator[Any]:
        chosen, n_rows = frame.select(columns), batch_rows(len(columns))
        try:
            for batch in _slices(chosen, _BATCHES * n_rows) or chosen.collect_batches(
                chunk_size=n_rows, maintain_order=True, lazy=True
            ):
                yield from batch.to_arrow().to_batches(max_chunksize=n_rows)
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # of polars, which is no Exception
                raise
            raise RuntimeError(
                "polars broke off; were the files of the query changed after it was made?"
            ) from error

    schema = frame.collect_schema().to_frame(eager=True).to_arrow().schema
    return LocalSource(schema, [LocalPart("the query", opened)], "the query")


def _slices(frame: Any, most: int) -> Iterator[Any] | None:
    """The rows of a query, so many at a time, if it only reads Parquet files on this machine.

    Streamed, polars reads ahead by several groups of rows of a file, which may be large. For every
    slice of another query all of it would be computed again, and the files of very many slices
    would be looked through too often: None.
    """
    plan = frame.explain().splitlines()
    if "://" in plan[0] or not all(line.startswith(_PLAIN_SCAN) for line in plan):
        return None
    n_rows = plan[-1].removeprefix(_ROWS).strip()
    if not n_rows.isdecimal() or int(n_rows) > _MOST_SLICES * most:
        return None
    return _one_by_one(frame, most)


def _one_by_one(frame: Any, most: int) -> Iterator[Any]:
    start, found = 0, most
    while found == most:
        batch = frame.slice(start, most).collect()
        start, found = start + most, batch.height
        yield batch


def of_relation(relation: Any) -> LocalSource:
    """A relation of DuckDB, which is run for each reading."""

    def opened(columns: list[str]) -> Iterable[Any]:
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
        reader: Iterable[Any] = relation.project(quoted).to_arrow_reader(batch_rows(len(columns)))
        return reader

    schema = relation.limit(0).to_arrow_table().schema
    return LocalSource(schema, [LocalPart("the query", opened)], "the query")
