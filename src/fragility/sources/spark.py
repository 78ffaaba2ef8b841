"""Rows in a DataFrame of Spark: a state for each partition, by `mapInArrow`, merged in a tree.

The workers need this library. What is wrong with a partition comes back as a row, not as an
exception: it is not tried again, and keeps its words.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .._optional import needed_for
from ..exceptions import PartitionError
from ..tables.arrow import pyarrow
from .source import Add, Merge, Part, Source, State, folded, merged

#: States that a task merges; as many or fewer go to the driver at once.
_WIDTH = 32
_SCHEMA = "part long, wrong string, state binary"
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

        quoted = [f"`{name.replace('`', '``')}`" for name in columns]
        states = self.frame.select(*quoted).mapInArrow(_folding(add, columns), _SCHEMA)
        grouped = states.groupBy((functions.col("part") / _WIDTH).cast("long"))
        joined = grouped.applyInArrow(_merging(merge), _SCHEMA)
        try:
            rows = joined.collect()
        except Exception as error:  # some of Spark, some of the bridge to Java
            raise _explained(error) from error
        wrong = sorted((row.part, row.wrong) for row in rows if row.wrong is not None)
        if wrong:
            number, reason = wrong[0]
            raise PartitionError(f"partition {number}", self._files(number), reason)
        ordered = sorted(rows, key=lambda row: row.part)
        return merged((pickle.loads(row.state) for row in ordered), merge)

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


def _folding(add: Add[Any], columns: list[str]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def fold(batches: Iterable[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        part = Part(number, f"partition {number}")
        try:
            state = folded((batch.select(columns) for batch in batches), part, add)
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
    if found is None:
        return error  # type: ignore[no-any-return]
    line = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    return PartitionError("a partition of Spark", found.group().rstrip("."), line)
