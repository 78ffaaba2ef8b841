"""Range check for settings that are used in single precision."""

from __future__ import annotations

from .._parameters import check_not_negative

_LEAST, _LARGEST = 1e-30, 1e30


def check_single(value: float, name: str) -> float:
    """Check a setting: zero, or within the range where products stay finite and positive."""
    number = check_not_negative(value, name)
    if number != 0.0 and not _LEAST <= number <= _LARGEST:
        raise ValueError(
            f"{name} must be from {_LEAST:g} to {_LARGEST:g}, as it is used in single precision; "
            f"got {number:g}."
        )
    return number
