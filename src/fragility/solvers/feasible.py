"""A model that misses its target by little is moved until it meets it."""

from __future__ import annotations

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
    low, high = 0.0, 1.0
    while high - low > accuracy * high:
        middle = (low + high) / 2.0
        met = objective.at(start.parameters + middle * way).value <= level
        low, high = (low, middle) if met else (middle, high)
    return objective.at(start.parameters + high * way)
