"""Libraries that only some functions need: imported when they are used, and named if absent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


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
