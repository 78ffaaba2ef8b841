"""The banks of recorded answers: short enough for a repository, and read by their names."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from .compare import plain, read_bank, write_bank

FOLDER = Path(__file__).parent
#: Longer lists are recorded by their length, a few of their entries and, of numbers, their sum.
LONGEST = 24


def recordable(value: Any) -> Any:
    """Return a value as plain JSON with 12 digits, more than any comparison asks for."""
    return _with_digits(plain(value))


def _with_digits(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_digits(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_with_digits(entry) for entry in value]
    if isinstance(value, float):
        return float(f"{value:.12g}")
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def shortened(value: Any) -> Any:
    """Return plain values with long lists as length, sum and every so many-th entry."""
    if isinstance(value, dict):
        return {name: shortened(entry) for name, entry in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) <= LONGEST:
        return [shortened(entry) for entry in value]
    step = len(value) // 8
    summary = {"length": len(value), f"every {step}": [shortened(entry) for entry in value[::step]]}
    if all(isinstance(entry, int | float) for entry in value):
        summary["sum"] = math.fsum(value)
    return summary


def path_of(name: str) -> Path:
    """Return the file of a bank."""
    return FOLDER / f"{name}.json.gz"


def write(name: str, content: Any) -> Path:
    """Write a bank of reports, files or functions."""
    write_bank(path_of(name), shortened(recordable(content)))
    return path_of(name)


def read(name: str) -> Any:
    """Return the content of a bank."""
    return read_bank(path_of(name))
