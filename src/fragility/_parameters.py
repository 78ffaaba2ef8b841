"""Checks of single parameters: numbers, counts and choices."""

from __future__ import annotations

from math import inf, isfinite
from numbers import Integral
from sys import maxsize
from typing import Any

from ._labels import listed
from ._names import shown


def check_target(target: float, name: str = "target") -> float:
    """A finite number."""
    try:
        value = float(target)
        if isinstance(target, (str, bytes)):
            raise TypeError
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number; got {shown(target)}.") from None
    except OverflowError:
        raise ValueError(
            f"{name} must be a number that floating point holds, up to 1.8e308; got "
            f"{shown(target)}."
        ) from None
    if not isfinite(value):
        raise ValueError(f"{name} must be finite; got {shown(target)}.")
    return value


def check_positive(value: float, name: str) -> float:
    """A finite number above zero."""
    number = check_target(value, name)
    if not number > 0.0:
        raise ValueError(f"{name} must be positive; got {shown(value)}.")
    return number


def check_not_negative(value: float, name: str) -> float:
    """A finite number, zero or more."""
    number = check_target(value, name)
    if number < 0.0:
        raise ValueError(f"{name} must be zero or more; got {shown(value)}.")
    return number


def check_radius(radius: float) -> float:
    """A positive number, or infinity."""
    if isinstance(radius, bool):
        raise ValueError(f"radius must be a number; got {shown(radius)}.")
    value = inf if isinstance(radius, float) and radius == inf else check_target(radius, "radius")
    if not value > 0.0:
        raise ValueError(f"radius must be positive; got {shown(radius)}. Leave it out for no ball.")
    return value


def check_confidence(confidence: float, name: str = "confidence") -> float:
    """A level strictly between 0 and 1."""
    value = check_target(confidence, name)
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} must lie between 0 and 1, such as 0.95; got {shown(confidence)}.")
    return value


def check_threshold(threshold: float) -> float:
    """A confidence from 0 to 1."""
    value = check_target(threshold, "threshold")
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"threshold must lie from 0 to 1, such as 0.9; got {shown(threshold)}.")
    return value


def check_count(value: int, name: str, least: int = 1) -> int:
    """A whole number, at least so many."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of {least} or more; got {shown(value)}.")
    if value > maxsize:
        raise ValueError(f"{name} must be at most {maxsize}; got {shown(value)}.")
    return int(value)


def check_choice(value: Any, allowed: tuple[Any, ...], name: str) -> None:
    """One of a few values."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {listed(allowed)}; got {shown(value)}.")
