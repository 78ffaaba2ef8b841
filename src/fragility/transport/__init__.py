"""How far one sample is from another: the distance that certificates speak of, measured."""

from .distance import ShiftDistance, shift_distance

__all__ = ["ShiftDistance", "shift_distance"]
