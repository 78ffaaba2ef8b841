"""Warnings and errors of the library, so that callers can catch each by name."""

from __future__ import annotations

__all__ = [
    "AbsentClassWarning",
    "InfeasibleTargetError",
    "NothingLearnedWarning",
    "SeparableDataWarning",
    "TargetError",
    "TightTargetWarning",
    "TrivialTargetWarning",
    "UndefinedTargetError",
    "ZeroFragilityWarning",
]


class AbsentClassWarning(UserWarning):
    """A class named in ``labels`` has no sample: every pair with it is left out."""


class TargetError(ValueError):
    """A training target that cannot be used."""


class InfeasibleTargetError(TargetError):
    """The target is below the lowest loss that any model reaches."""


class UndefinedTargetError(TargetError):
    """The target is a multiple of a loss that is zero: no target at all."""


class TightTargetWarning(UserWarning):
    """The target leaves almost nothing to give up for robustness."""


class TrivialTargetWarning(UserWarning):
    """The target is met by a model that uses no feature that may shift."""


class NothingLearnedWarning(UserWarning):
    """No model is better than one that uses no feature."""


class SeparableDataWarning(UserWarning):
    """The classes can be told apart without a mistake: the loss has no minimum, only an infimum."""


class ZeroFragilityWarning(UserWarning):
    """Every sample meets the target by itself: many models have no fragility at all."""
