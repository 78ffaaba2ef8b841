"""A model that misses its target by little is moved until it meets it."""

from __future__ import annotations

from collections.abc import Callable

from ..programs.objective import Evaluation

#: A miss by this share of the target is rounding.
_EXACT = 1e-12


def meeting(point: Evaluation, inside: Evaluation, target: float) -> Evaluation:
    """The model, or the first one that meets the target on the way to `inside`."""
    if point.value <= target * (1.0 + _EXACT) or inside.value > target:
        return point
    return first_below(point, inside, target, accuracy=1e-9)


def first_below(start: Evaluation, end: Evaluation, level: float, *, accuracy: float) -> Evaluation:
    """The first model on the way from one to another whose loss is at most that level."""
    objective, way = start.objective, end.parameters - start.parameters
    share = first_share(
        lambda share: objective.at(start.parameters + share * way).value <= level, accuracy
    )
    return objective.at(start.parameters + share * way)


def first_share(meets: Callable[[float], bool], accuracy: float = 1e-9) -> float:
    """The least share of a way that meets something, which the whole way does."""
    low, high = 0.0, 1.0
    while high - low > accuracy * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high
