"""Settings that single precision can calculate with."""

from __future__ import annotations

from .._parameters import check_not_negative

_LEAST, _LARGEST = 1e-30, 1e30


def check_single(value: float, name: str) -> float:
    """Zero, or a number neither so small nor so large that a product becomes zero or infinite."""
    number = check_not_negative(value, name)
    if number != 0.0 and not _LEAST <= number <= _LARGEST:
        raise ValueError(
            f"{name} must be from {_LEAST:g} to {_LARGEST:g}, as it is used in single precision; "
            f"got {number:g}."
        )
    return number
