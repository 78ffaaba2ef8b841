"""The lazy door to pyarrow."""

from __future__ import annotations

from typing import Any

from .._optional import needed_for


def pyarrow() -> Any:
    """Pyarrow with what files need of it, imported when a file is opened and not before."""
    with needed_for("Tables are read with pyarrow", "cli"):
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.ipc
        import pyarrow.parquet
    return pyarrow
