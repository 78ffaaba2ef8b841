"""Libraries that only some functions need: imported when they are used, and named if absent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def needed_for(use: str, extra: str) -> Iterator[None]:
    """Import a library in this block; if it is not installed, the error names the extra to install.

    Parameters
    ----------
    use : str
        What the library is needed for, and its name at the end.
    extra : str
        The extra of this package that installs it.
    """
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f'{use}, which is not installed: pip install "fragility[{extra}]"'
        ) from error


def data_frame(columns: Mapping[str, Any]) -> Any:
    """Return a pandas DataFrame of these columns, by name."""
    with needed_for("to_frame needs pandas", "cli"):
        import pandas as pd
    return pd.DataFrame(columns)
