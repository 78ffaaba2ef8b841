"""Rows in a DataFrame of Spark: a state for each partition, by `mapInArrow`, merged in a tree.

The workers need this library for that. What is wrong with a partition comes back as a row, not as
an exception: it is not tried again, and keeps its words.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from .._optional import needed_for
from ..exceptions import PartitionError
from ..tables.arrow import pyarrow
from .source import MOST_ROWS, Add, Merge, Part, Source, State, folded, merged

#: States that a task merges; as many or fewer go to the driver at once.
_WIDTH = 32
_SCHEMA = "part long, wrong string, state binary"
#: Most bytes of a batch of Arrow. Spark sums up what a batch takes after each row, which is twice
#: the work of all else, unless this is the largest number there is. Batches end by their number of
#: rows as well.
_BYTES_OF_A_BATCH, _UNLIMITED = "spark.sql.execution.arrow.maxBytesPerBatch", str(2**31 - 1)
_ROWS_OF_A_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
#: A module that workers do not have.
_LACKING = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
#: What Java puts before the words of an error.
_JAVA = re.compile(r"^(Caused by: |: )?([a-z0-9]+\.)+\w+: ")
_FILE = re.compile(r"file:[^\s,'\"]+|s3a?:[^\s,'\"]+|hdfs:[^\s,'\"]+")


class SparkSource(Source):
    """A `pyspark.sql.DataFrame`, classic or Connect."""

    name = "the DataFrame"

    def __init__(self, frame: Any) -> None:
        if not hasattr(frame, "mapInArrow"):
            raise ValueError(f"Of Spark give a DataFrame; got {type(frame).__name__}.")
        pa = pyarrow()
        self.frame = frame
        self.schema = pa.schema([(name, pa.null()) for name in frame.columns])

    def _reduce(self, add: Add[State], merge: Merge[State], columns: list[str]) -> State | None:
        with needed_for("DataFrames of Spark are computed by pyspark", "spark"):
            from pyspark.sql import functions

        with _batches_by_rows(self.frame.sparkSession), _explanations():
            # By number: Spark itself asks for columns by their bare names, in which a dot or a
            # backtick means something else.
            numbered = (self.column(name).alias(str(k)) for k, name in enumerate(columns))
            chosen = self.frame.select(*numbered)
            states = chosen.mapInArrow(_folding(add, columns), _SCHEMA)
            grouped = states.groupBy((functions.col("part") / _WIDTH).cast("long"))
            rows = grouped.applyInArrow(_merging(merge), _SCHEMA).collect()
        wrong = sorted((row.part, row.wrong) for row in rows if row.wrong is not None)
        if wrong:
            number, reason = wrong[0]
            raise PartitionError(f"partition {number}", self._files(number), reason)
        ordered = sorted(rows, key=lambda row: row.part)
        return merged((pickle.loads(row.state) for row in ordered), merge)

    def first_parts(self, name: str) -> dict[Any, Part]:
        """The first partition that has each value of a column, with a file of it."""
        from pyspark.sql import functions

        part, file = functions.spark_partition_id(), functions.input_file_name()
        rows = self.frame.select(self.column(name).alias("value"), part.alias("part"), file)
        least = functions.min(functions.struct(*rows.columns[1:])).alias("least")
        found = rows.groupBy("value").agg(least).collect()
        return {
            value: Part(number, f"partition {number}", path or None)
            for value, (number, path) in map(tuple, found)
        }

    def column(self, name: str) -> Any:
        """A column in expressions of Spark."""
        from pyspark.sql import functions

        return functions.col(_quoted(name))

    def _files(self, number: int) -> str | None:
        """Files of a partition; a query that is made only if something is wrong there."""
        from pyspark.sql import functions

        numbered = self.frame.select(
            functions.spark_partition_id().alias("part"),
            functions.input_file_name().alias("file"),
        )
        try:
            rows = numbered.where(functions.col("part") == number).distinct().collect()
        except Exception:  # the first error is the one to tell
            return None
        return ", ".join(sorted(row.file for row in rows if row.file)) or None


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


@contextmanager
def _batches_by_rows(session: Any) -> Iterator[None]:
    """Batches of Arrow end by their number of rows alone, where they do so at all."""
    try:
        size, rows = map(session.conf.get, (_BYTES_OF_A_BATCH, _ROWS_OF_A_BATCH))
        settled = size == _UNLIMITED or not 0 < int(rows) <= MOST_ROWS
    except Exception:  # another version, which has no such setting
        settled = True
    if settled:
        yield
        return
    session.conf.set(_BYTES_OF_A_BATCH, _UNLIMITED)
    try:
        yield
    finally:
        session.conf.set(_BYTES_OF_A_BATCH, size)


@contextmanager
def _explanations() -> Iterator[None]:
    """Errors of Spark with the file that they name."""
    try:
        yield
    except Exception as error:  # some of Spark, some of the bridge to Java
        raise _explained(error) from error


def _folding(add: Add[Any], columns: list[str]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def fold(batches: Iterable[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        pa, context = pyarrow(), TaskContext.get()
        number = 0 if context is None else context.partitionId()
        part = Part(number, f"partition {number}")
        try:
            named = (pa.RecordBatch.from_arrays(batch.columns, columns) for batch in batches)
            state = folded(named, part, add)
        except PartitionError as error:
            yield _row(number, error.reason, None)
            return
        if state is not None:
            yield _row(number, None, state)

    return fold


def _merging(merge: Merge[Any]) -> Callable[[Any], Any]:
    def join(table: Any) -> Any:
        pa = pyarrow()
        rows = sorted(table.to_pylist(), key=lambda row: row["part"])
        wrong = [row for row in rows if row["wrong"] is not None]
        if wrong:
            return pa.Table.from_pylist(wrong[:1], schema=table.schema)
        state = merged((pickle.loads(row["state"]) for row in rows), merge)
        return pa.Table.from_batches([_row(rows[0]["part"], None, state)])

    return join


def _row(number: int, wrong: str | None, state: Any) -> Any:
    """A row of `_SCHEMA`."""
    from pyspark import cloudpickle

    pa = pyarrow()
    schema = pa.schema([("part", pa.int64()), ("wrong", pa.string()), ("state", pa.binary())])
    data = None if state is None else cloudpickle.dumps(state)  # type: ignore[no-untyped-call]
    row = {"part": number, "wrong": wrong, "state": data}
    return pa.RecordBatch.from_pylist([row], schema=schema)


def _explained(error: Any) -> Exception:
    """What Spark says of data that it could not read, with the file that it names."""
    text = str(error)
    found = _FILE.search(text)
    lacking = _LACKING.search(text)
    if lacking is not None:
        return ImportError(
            f"Python workers of Spark have no module {lacking.group(1)!r}: install fragility and "
            "pyarrow where they run, or name a Python that has them before the session begins "
            "(PYSPARK_PYTHON)."
        )
    if found is None:
        return error  # type: ignore[no-any-return]
    # The bridge to Java says first that a call failed; why is in the line of the file, and last.
    lines = text.splitlines()
    told = [line for line in lines if _FILE.search(line)][:1]
    told += [line for line in lines if line.startswith("Caused by: ")][-1:]
    reason = ": ".join(dict.fromkeys(_JAVA.sub("", " ".join(line.split())) for line in told))
    return PartitionError("a partition of Spark", found.group().rstrip("."), reason)
