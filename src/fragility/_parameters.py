"""Checks of single parameters: numbers, counts and choices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, isfinite
from numbers import Integral, Real
from sys import maxsize
from typing import Any, TypeVar

import numpy as np

from ._labels import listed
from ._names import shown
from ._typing import Intercept

T = TypeVar("T")


def require(fits: Any, flaw: str) -> None:
    """Raise ValueError with a sentence about what does not fit."""
    if not fits:
        raise ValueError(flaw)


def check_number(given: float, name: str) -> float:
    """A finite number."""
    try:
        value = float(given)
        if isinstance(given, (str, bytes, bool, np.bool_)):
            raise TypeError
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number; got {shown(given)}.") from None
    except OverflowError:
        raise ValueError(
            f"{name} must be a number that floating point holds, up to 1.8e308; got {shown(given)}."
        ) from None
    if not isfinite(value):
        raise ValueError(f"{name} must be finite; got {shown(given)}.")
    return value


def _limited(
    given: float, name: str, fits: Callable[[float], bool], must: str, advice: str = ""
) -> float:
    number = check_number(given, name)
    require(fits(number), f"{name} must {must}; got {shown(given)}.{advice}")
    return number


def check_positive(value: float, name: str, advice: str = "") -> float:
    """A finite number above zero; `advice` ends the message."""
    return _limited(value, name, lambda number: number > 0.0, "be positive", advice)


def check_not_negative(value: float, name: str) -> float:
    """A finite number, zero or more."""
    return _limited(value, name, lambda number: number >= 0.0, "be zero or more")


def check_positive_or_inf(value: float, name: str, advice: str = "") -> float:
    """A positive number, or infinity; `advice` ends the message."""
    if not isinstance(value, Real) or isinstance(value, bool) or not value > 0.0:
        raise ValueError(f"{name} must be a positive number or inf; got {shown(value)}.{advice}")
    return inf if value == inf else check_number(value, name)


def check_radius(radius: float) -> float:
    """The radius of a ball, positive or infinite."""
    return check_positive_or_inf(radius, "radius", " Leave it out for no ball.")


def check_confidence(confidence: float, name: str = "confidence", such_as: str = "0.95") -> float:
    """A level strictly between 0 and 1."""
    must = f"lie between 0 and 1, such as {such_as}"
    return _limited(confidence, name, lambda level: 0.0 < level < 1.0, must)


def check_threshold(threshold: float, name: str = "threshold") -> float:
    """A number from 0 to 1."""
    must = "lie from 0 to 1, such as 0.9"
    return _limited(threshold, name, lambda level: 0.0 <= level <= 1.0, must)


def check_share(share: float, name: str) -> float:
    """A share of some cases, from 0 to 1."""
    must = "be a share from 0 to 1 (not a number of cases)"
    return _limited(share, name, lambda level: 0.0 <= level <= 1.0, must)


def check_count(value: int, name: str, least: int = 1) -> int:
    """A whole number of `least` or more."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of {least} or more; got {shown(value)}.")
    if value > maxsize:
        raise ValueError(f"{name} must be at most {maxsize}; got {shown(value)}.")
    return int(value)


def check_choice(value: Any, allowed: tuple[Any, ...], name: str) -> None:
    """One of a few values."""
    require(value in allowed, f"{name} must be one of {listed(allowed)}; got {shown(value)}.")


def check_intercept(value: Any) -> Intercept:
    """Whether there is an intercept, and whether it is priced."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    require(
        isinstance(value, str) and value == "priced",
        'fit_intercept must be True (free), "priced" (a constant feature that may shift) or False '
        f"(none); got {shown(value)}.",
    )
    return "priced"


def object_of_name(
    given: Any, kind: Any, named: Mapping[str, type[T]], name: str, example: str
) -> T:
    """The object itself if it is of a kind, or a new object of the class with that name."""
    if isinstance(given, kind):
        found: T = given
        return found
    if isinstance(given, str) and given in named:
        return named[given]()
    raise ValueError(
        f"{name} must be one of {listed(named)}, or an object such as {example}; got {given!r}."
    )
