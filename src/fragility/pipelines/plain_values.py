"""What the attributes of a model from a file may hold: plain values of the right kinds."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Numbers up to this size, and scales down to its inverse, make no score overflow.
LARGEST = 1e100


def are_categories(levels: Any) -> bool:
    """Different levels in the order that searches in them rely on."""
    if not (isinstance(levels, np.ndarray) and levels.ndim == 1 and levels.size):
        return False
    plain = levels.tolist()
    if levels.dtype.kind == "O":
        known = [level for level in plain if level is not None and level == level]
        return are_levels(known) and len(plain) - len(known) <= 2
    if levels.dtype.kind == "f" and plain[-1] != plain[-1]:
        plain = plain[:-1]  # not a number, which sorts last
    return levels.dtype.kind in "biufU" and are_levels(plain) and plain == sorted(plain)


def are_levels(levels: list[Any]) -> bool:
    """Different levels of a column."""
    return all(map(is_level, levels)) and len(set(levels)) == len(levels)


def are_names(values: list[Any]) -> bool:
    """Different texts."""
    return all(isinstance(value, str) for value in values) and len(set(values)) == len(values)


def is_level(value: Any) -> bool:
    """Text, a truth value or a number."""
    return isinstance(value, (str, bool)) or is_number(value)


def is_number(value: Any) -> bool:
    """A finite number up to the largest size that scores can be computed with."""
    real = isinstance(value, (int, float, np.integer, np.floating))
    return real and bool(abs(value) <= LARGEST)


def is_count(value: Any, least: int = 1) -> bool:
    """A whole number from `least` on."""
    whole = isinstance(value, (int, np.integer)) and type(value) is not bool
    return whole and bool(value >= least)


def are_indices(values: Any, below: int) -> bool:
    """An array of indices below a limit."""
    return (
        isinstance(values, np.ndarray)
        and values.ndim == 1
        and values.dtype.kind in "iu"
        and bool(((values >= 0) & (values < below)).all())
    )
