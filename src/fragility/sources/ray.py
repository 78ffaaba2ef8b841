"""Rows in a Dataset of Ray: a state for each block, merged in a tree by tasks."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from .._optional import needed_for
from ..exceptions import PartitionError
from ..tables.arrow import pyarrow
from .source import MOST_ROWS, Add, Merge, Part, Source, State, folded, merged

#: States that a task merges.
_WIDTH = 8


class RaySource(Source):
    """A `ray.data.Dataset`."""

    name = "the Dataset"

    def __init__(self, dataset: Any) -> None:
        if not hasattr(dataset, "select_columns"):
            raise ValueError(f"Of Ray give a Dataset; got {type(dataset).__name__}.")
        pa, schema = pyarrow(), dataset.schema()
        if schema is None:  # Ray knows the columns of rows alone
            raise ValueError(f"There are no rows in {self.name}.")
        self._dataset = dataset
        self.schema = pa.schema([(name, pa.null()) for name in schema.names])

    def _reduce(self, add: Add[State], merge: Merge[State], columns: list[str]) -> State | None:
        with needed_for("Datasets of Ray are computed by ray", "ray"):
            import ray

        def fold(table: Any, number: int) -> State | None:
            part = Part(number, f"block {number}")
            return folded(table.select(columns).to_batches(MOST_ROWS), part, add)

        def join(*states: State | None) -> State | None:
            # What comes from the store must not be changed.
            return merged(map(deepcopy, states), merge)

        fold_block, join_states = ray.remote(fold), ray.remote(join)
        blocks = self._dataset.select_columns(columns).to_arrow_refs()
        states = [fold_block.remote(block, number) for number, block in enumerate(blocks)]
        while len(states) > 1:
            groups = [states[k : k + _WIDTH] for k in range(0, len(states), _WIDTH)]
            states = [join_states.remote(*group) for group in groups]
        try:
            return deepcopy(ray.get(states[0])) if states else None
        except ray.exceptions.RayTaskError as error:
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, PartitionError):
                cause = getattr(cause, "cause", None) or cause.__cause__
            raise cause or error from None
