"""The lazy door to pyarrow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._optional import needed_for


def pyarrow() -> Any:
    """Pyarrow with what files need of it, imported when a file is opened and not before."""
    with needed_for("Tables are read with pyarrow", "cli"):
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.ipc
    return pyarrow


def parquet() -> Any:
    """What pyarrow does with Parquet, which other files need not wait for."""
    from pyarrow import parquet

    return parquet


def as_numpy(column: Any) -> NDArray[Any]:
    """Values of an Arrow array, without a copy where possible.

    Numbers do not go through ``to_numpy``: it imports pandas, a quarter of a second.
    """
    types = pyarrow().types
    if not column.null_count:
        if types.is_boolean(column.type):
            return as_numpy(column.cast("uint8")).view(np.bool_)
        if types.is_integer(column.type) or types.is_floating(column.type):
            return np.from_dlpack(column)
    return np.asarray(column.to_numpy(zero_copy_only=False))
