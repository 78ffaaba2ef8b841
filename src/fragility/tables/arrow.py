"""The lazy door to pyarrow."""

from __future__ import annotations

from typing import Any


def pyarrow() -> Any:
    """Pyarrow with what files need of it, imported when a file is opened and not before."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            'Tables are read with pyarrow, which is not installed: pip install "fragility[cli]"'
        ) from error
    return pyarrow
