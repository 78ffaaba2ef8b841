"""A model that misses its target by little is moved until it meets it."""

from __future__ import annotations

from ..programs.objective import Evaluation

#: Rounding that is no miss, relatively.
_EXACT = 1e-12


def meeting(point: Evaluation, inside: Evaluation, target: float) -> Evaluation:
    """The model, or the next one on the way to one that meets the target."""
    if point.value <= target * (1.0 + _EXACT) or inside.value > target:
        return point
    low, high = 0.0, 1.0
    while high - low > 1e-9 * high:
        middle = (low + high) / 2.0
        mixed = point.parameters + middle * (inside.parameters - point.parameters)
        met = point.objective.at(mixed).value <= target
        low, high = (low, middle) if met else (middle, high)
    return point.objective.at(point.parameters + high * (inside.parameters - point.parameters))
