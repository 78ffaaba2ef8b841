"""Brent's method for the root of a function of one variable.

The same steps as `scipy.optimize.brentq`, so the same root to the last digit; but importing
`scipy.optimize` takes longer than measuring a model.
"""

from __future__ import annotations

from collections.abc import Callable
from math import copysign, inf, isnan

#: Bisection alone needs at most about a thousand between any two doubles.
_MOST_STEPS = 2_000


def bracketed_root(
    function: Callable[[float], float], low: float, high: float, *, xtol: float, rtol: float
) -> float:
    """Root of a continuous function between two points where its signs differ.

    Parameters
    ----------
    function : callable
    low, high : float
        Ends of the bracket.
    xtol, rtol : float
        The root is within ``xtol + rtol * abs(root)``; `rtol` is at least four rounding errors.

    Raises
    ------
    ValueError
        If the signs at the two ends do not differ, or the function is not a number.

    Examples
    --------
    >>> from fragility._brent import bracketed_root
    >>> round(bracketed_root(lambda x: x * x - 2.0, 0.0, 2.0, xtol=1e-300, rtol=1e-15), 12)
    1.414213562373
    """
    before, here = low, high
    value_before, value = float(function(before)), float(function(here))
    if value_before == 0.0:
        return before
    if value == 0.0:
        return here
    if not value_before * copysign(1.0, value) < 0.0:
        raise ValueError(
            f"No root is bracketed: the function is {value_before} at {low} and {value} at {high}; "
            "give two points where its signs differ."
        )
    # The root is between `here`, the best point, and `other`; `before` is where `here` was last.
    for _ in range(_MOST_STEPS):
        if (value_before < 0.0) != (value < 0.0):
            other, value_other = before, value_before
            step = last_step = here - before
        if abs(value_other) < abs(value):
            before, here, other = here, other, here
            value_before, value, value_other = value, value_other, value
        tolerance = (xtol + rtol * abs(here)) / 2.0
        half = (other - here) / 2.0
        if value == 0.0 or abs(half) < tolerance:
            return here
        tried = inf
        if abs(last_step) > tolerance and abs(value) < abs(value_before):
            tried = _interpolated(before, value_before, here, value, other, value_other)
        if 2.0 * abs(tried) < min(abs(last_step), 3.0 * abs(half) - tolerance):
            last_step, step = step, tried
        else:  # too long a step to be trusted
            last_step = step = half
        before, value_before = here, value
        here += step if abs(step) > tolerance else copysign(tolerance, half)
        value = float(function(here))
        if isnan(value):
            raise ValueError(f"The function is not a number at {here}, where a root is looked for.")
    raise ValueError(f"No root was found between {low} and {high} in {_MOST_STEPS} steps.")


def _interpolated(
    before: float,
    value_before: float,
    here: float,
    value: float,
    other: float,
    value_other: float,
) -> float:
    """Step to the root of the line through two points, or of the parabola (of x) through three."""
    try:
        if before == other:
            return -value * (here - before) / (value - value_before)
        slope = (value_before - value) / (before - here)
        slope_other = (value_other - value) / (other - here)
        return (
            -value
            * (value_other * slope_other - value_before * slope)
            / (slope_other * slope * (value_other - value_before))
        )
    except ZeroDivisionError:  # the points say nothing of a root
        return inf
