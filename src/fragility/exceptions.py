"""Warnings and errors of the library, so that callers can catch each by name."""

from __future__ import annotations

import re


class AbsentClassWarning(UserWarning):
    """A class has no sample: of those named in ``labels``, or in the training part of a fold."""


class TargetError(ValueError):
    """A training target that cannot be used."""


class InfeasibleTargetError(TargetError):
    """The target is below the lowest loss that any model reaches."""


class UndefinedTargetError(TargetError):
    """The target is relative to a loss that is zero, or that cannot be measured."""


class TightTargetWarning(UserWarning):
    """The target leaves almost nothing to give up for robustness."""


class TrivialTargetWarning(UserWarning):
    """The target is met by a model that uses no feature that may shift."""


class TrivialRadiusWarning(UserWarning):
    """The radius is so large that no feature that may shift is worth using."""


class NothingLearnedWarning(UserWarning):
    """No model is better than one that uses no feature."""


class UntestedClassWarning(UserWarning):
    """A class has one sample, so that a cross-validation fits to it and never tests on it."""


class SeparableDataWarning(UserWarning):
    """The classes can be told apart without a mistake: the loss has no minimum, only an infimum."""


class ZeroFragilityWarning(UserWarning):
    """Every sample, or every shift in the ball, meets the target: many models are not fragile."""


class TableError(ValueError):
    r"""A table that cannot be read, written or used; the message is a single line.

    Control characters and bytes of file names that are not text are shown as ``\xff``.
    """

    def __init__(self, message: str) -> None:
        line = "".join(map(_printable, " ".join(message.split())))
        super().__init__(re.sub(_QUOTED_BYTE, r"\\x\1", line))


class PartitionError(ValueError):
    """A part of the data that cannot be used: what is wrong with it, and where it is.

    Attributes
    ----------
    partition : str
        Name of the part: its number, or what the engine calls it.
    file : str or None
        File of the part, if it is known.
    reason : str
    """

    def __init__(self, partition: str, file: str | None, reason: str) -> None:
        self.partition, self.file, self.reason = partition, file, reason
        where = partition if file is None or file == partition else f"{partition} ({file})"
        super().__init__(f"{where}: {reason}")

    def __reduce__(self) -> tuple[type[PartitionError], tuple[str, str | None, str]]:
        return type(self), (self.partition, self.file, self.reason)


class AnswersWarning(UserWarning):
    """A table looks like answers with a confidence, which are not predictions of classes."""


class SkippedColumnWarning(UserWarning):
    """A column that a search for slices cannot use is left out."""


#: A byte that is not UTF-8, as Python holds it, in the repr of a name.
_QUOTED_BYTE = r"\\udc([89a-f][0-9a-f])"


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    if "\udc80" <= character <= "\udcff":  # a byte that is not UTF-8, as Python holds it
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()
