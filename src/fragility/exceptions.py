"""Warnings and errors of the library, so that callers can catch each by name."""

from __future__ import annotations

__all__ = [
    "AbsentClassWarning",
    "InfeasibleTargetError",
    "ModelFileError",
    "ModelVersionWarning",
    "NothingLearnedWarning",
    "SeparableDataWarning",
    "TableError",
    "TargetError",
    "TightTargetWarning",
    "TrivialRadiusWarning",
    "TrivialTargetWarning",
    "UndefinedTargetError",
    "UnseenValuesWarning",
    "ZeroFragilityWarning",
]


class AbsentClassWarning(UserWarning):
    """A class has no sample: of those named in ``labels``, or in the training part of a fold."""


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


class TrivialRadiusWarning(UserWarning):
    """Within so large a radius no feature that may shift is worth using."""


class NothingLearnedWarning(UserWarning):
    """No model is better than one that uses no feature."""


class SeparableDataWarning(UserWarning):
    """The classes can be told apart without a mistake: the loss has no minimum, only an infimum."""


class ZeroFragilityWarning(UserWarning):
    """Every sample, or every shift in the ball, meets the target: many models are not fragile."""


class TableError(ValueError):
    """A table that cannot be read, written or used; the message is a single line."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class UnseenValuesWarning(UserWarning):
    """A column holds values that were not there in training."""


class ModelFileError(ValueError):
    """A file that holds no model which is safe to use, or a model that no file can hold."""


class ModelVersionWarning(UserWarning):
    """A model was written by other versions of the libraries than those that read it."""
