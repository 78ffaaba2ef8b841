"""Rows in a DataFrame of Dask: a state for each partition, merged in a tree on the workers."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Generic

from .._optional import needed_for
from ..exceptions import PartitionError
from ..tables.arrow import pyarrow
from .source import MOST_ROWS, Add, Merge, Part, Source, State, folded, merged

#: States that a task merges.
_WIDTH = 8
#: The number of a partition in the key of its task.
_NUMBER = re.compile(r", (\d+)\)$")


@dataclass(frozen=True)
class _Work(Generic[State]):
    """What is done to partitions: sent to the workers once, however many partitions there are."""

    add: Add[State]
    merge: Merge[State]
    columns: list[str]
    parts: list[Part]

    def fold(self, frame: Any, number: int) -> State | None:
        """The state of a partition."""
        pa, part = pyarrow(), self.parts[number]
        try:
            table = pa.Table.from_pandas(frame, preserve_index=False).select(self.columns)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise part.error(f"a column is not of one type ({error})") from error
        return folded(table.to_batches(MOST_ROWS), part, self.add)

    def merged(self, parts: Sequence[State | None]) -> State | None:
        """States as one. They are copied: tasks may run again, and must find their input."""
        return merged(map(deepcopy, parts), self.merge)


class DaskSource(Source):
    """A `dask.dataframe.DataFrame`, computed by the scheduler that is in use."""

    name = "the DataFrame"

    def __init__(self, frame: Any) -> None:
        if not hasattr(frame, "to_delayed") or not hasattr(frame, "columns"):
            raise ValueError(f"Of Dask give a DataFrame; got {type(frame).__name__}.")
        pa = pyarrow()
        self._frame = frame
        self.schema = pa.schema([(str(name), pa.null()) for name in frame.columns])

    def _reduce(self, add: Add[State], merge: Merge[State], columns: list[str]) -> State | None:
        with needed_for("DataFrames of Dask are computed by dask", "dask"):
            import dask as module

            with suppress(ImportError):  # whose settings Dask loses if it imports it when planning
                import distributed  # noqa: F401
        dask: Any = module  # of whose functions not all have types
        names = {str(name): name for name in self._frame.columns}  # which may be numbers
        chosen = self._frame[[names[name] for name in columns]]
        options = {"meta": chosen._meta, "enforce_metadata": False, "clear_divisions": True}
        try:  # Several files may become one partition if something is computed of it.
            parts = _parts(chosen.map_partitions(len, **options))
        except (OSError, pyarrow().ArrowException) as error:  # it looks into some files to plan
            raise PartitionError(
                "a partition of Dask", None, " ".join(str(error).split())
            ) from error
        work = dask.delayed(_Work(add, merge, columns, parts), pure=False, traverse=False)
        join = dask.delayed(_merged, pure=False)
        # In one task with what makes the partition, which then never moves to another worker.
        states = chosen.map_partitions(_fold, work, **options).to_delayed()
        while len(states) > 1:
            groups = [states[k : k + _WIDTH] for k in range(0, len(states), _WIDTH)]
            states = [join(work, group) for group in groups]
        try:
            with warnings.catch_warnings():
                # Readers of a report take some megabytes: once, not for each partition.
                warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
                (found,) = dask.compute(states[0])
        except PartitionError:
            raise
        except Exception as error:
            raise _blamed(dask, chosen, parts, error) from error
        return found  # type: ignore[no-any-return]


def _fold(frame: Any, work: _Work[State], partition_info: Any = None) -> State | None:
    return work.fold(frame, partition_info["number"])


def _merged(work: _Work[State], parts: Sequence[State | None]) -> State | None:
    return work.merged(parts)


def _blamed(dask: Any, frame: Any, parts: Sequence[Part], error: Any) -> Exception:
    """The error of the first partition that cannot be made; the same if that is none of them.

    Where the engine itself failed nothing is computed again: it might wait once more, for each
    partition, for what does not come.
    """
    if type(error).__module__.partition(".")[0] == "distributed":
        number = _NUMBER.search(str(getattr(error, "task", "")))
        if number is None or int(number[1]) >= len(parts):
            return error  # type: ignore[no-any-return]
        return parts[int(number[1])].error(f"workers died while they read it ({error})")
    for partition, part in zip(frame.to_delayed(), _parts(frame), strict=True):
        try:
            dask.compute(dask.delayed(len)(partition))
        except Exception as own:
            return part.error(str(own) or type(own).__name__)
    return error  # type: ignore[no-any-return]


def _parts(frame: Any) -> list[Part]:
    """The partitions of a frame as they will be computed."""
    files = _files(frame.optimize(fuse=False))
    return [Part(k, f"partition {k}", file) for k, file in enumerate(files)]


def _files(frame: Any) -> list[str | None]:
    """Files of each partition of an optimised frame; Dask has no public name for them."""
    nothing: list[str | None] = [None] * frame.npartitions
    try:
        from dask.dataframe.dask_expr._expr import Blockwise

        nodes = list(frame.expr.walk())
        if not all(isinstance(node, Blockwise) for node in nodes):
            return nothing  # rows have moved between partitions
        (node,) = (node for node in nodes if not node.dependencies())
        read = [[k] for k in getattr(node, "_partitions", ())]
        if hasattr(node, "_fusion_buckets"):  # several files are read as one partition
            read, node = node._fusion_buckets, node.operand("_expr")
        if hasattr(node, "fragments"):
            files = [str(fragment.path) for fragment in node.fragments]
        else:
            files = [_piece(part) for part in node._plan["parts"]]
        found = [", ".join(files[k] for k in own) for own in read]
    except Exception:  # no files, or another version: partitions have a number still
        return nothing
    return [*found] if len(found) == len(nothing) else nothing


def _piece(part: Any) -> str:
    pieces = part if isinstance(part, list) else [part]
    return ", ".join(str(piece["piece"][0]) for piece in pieces)
