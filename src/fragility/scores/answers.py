"""Answers without classes: right or wrong, each with a confidence, or declined.

A state of answers has the classes "wrong" and "right". Its score is the confidence: the probability
that the answer is right. Cases that a model declined to answer are neither; they are counted apart.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._labels import in_rows, is_missing, plain_array
from .._typing import Floats, Mask
from .._validation import PROBABILITY_ROUNDING, check_values

#: The classes of answers, of which the last one is what a model always claims.
ANSWERS = ("wrong", "right")


class Answers(NamedTuple):
    """Checked answers of one model.

    Attributes
    ----------
    correct : ndarray of bool of shape (n,)
    confidence : ndarray of shape (n,)
        Probability that the answer is right, from 0 to 1.
    declined : ndarray of bool of shape (n,), optional
        Cases without an answer: whatever `correct` and `confidence` hold there means nothing.
    """

    correct: Mask
    confidence: Floats
    declined: Mask | None = None

    @property
    def answered(self) -> Mask:
        """Cases that have an answer."""
        if self.declined is None:
            return np.ones(self.correct.size, dtype=np.bool_)
        return ~self.declined

    def take(self, rows: NDArray[Any] | slice) -> Answers:
        """Some of them."""
        return Answers(*(None if part is None else part[rows] for part in self))  # type: ignore[arg-type]


def check_answers(
    correct: ArrayLike, confidence: ArrayLike, declined: ArrayLike | None = None, model: str = ""
) -> Answers:
    """Answers as checked arrays; errors name the model, if it has a name."""

    def named(name: str) -> str:
        return f"{name}[{model!r}]" if model else name

    left_out = None if declined is None else _check_booleans(declined, named("declined"))
    # Missing values become NaN, which only cases without an answer may have.
    right = _numbers(correct, named("correct"))
    sure = _numbers(confidence, named("confidence"))
    for name, part in (("confidence", sure), ("declined", left_out)):
        if part is not None and part.size != right.size:
            raise ValueError(
                f"{named('correct')} has {right.size} entries but {named(name)} has {part.size}; "
                "give one for each case."
            )
    needed = np.ones(right.size, dtype=np.bool_) if left_out is None else ~left_out
    for name, part in (("correct", right), ("confidence", sure)):
        missing = np.isnan(part) & needed
        if missing.any():
            raise ValueError(
                f"{named(name)} has missing values in {in_rows(missing)}: leave these cases out, "
                "or say in declined that the model did not answer them."
            )
    odd = needed & (right != 0.0) & (right != 1.0)
    if odd.any():
        raise ValueError(
            f"{named('correct')} must be true or false, 1 or 0, for each answer; it is "
            f"{float(right[odd][0]):g} in {in_rows(odd)}. Partial credit must be rounded first: "
            "say from which credit on an answer counts as right."
        )
    beyond = needed & ~((sure >= -PROBABILITY_ROUNDING) & (sure <= 1.0 + PROBABILITY_ROUNDING))
    if beyond.any():
        raise ValueError(
            f"{named('confidence')} must be the probability that the answer is right, from 0 to 1; "
            f"it is {float(sure[beyond][0]):g} in {in_rows(beyond)}. Divide per cent by 100; turn "
            "log-probabilities into probabilities first."
        )
    blank = np.where(needed, sure, 0.0)
    return Answers(right == 1.0, np.clip(blank, 0.0, 1.0), left_out)


def _numbers(values: ArrayLike, name: str) -> Floats:
    """A column of numbers, NaN where they are missing."""
    array = plain_array(values, name)
    if array.dtype.kind == "O":
        gaps = [is_missing(value) for value in array.flat]
        array = np.where(np.array(gaps, dtype=np.bool_).reshape(array.shape), np.nan, array)
    found = check_values(array, name).astype(np.float64)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1:
        raise ValueError(f"{name} has shape {found.shape}; give one entry for each case.")
    return found


def _check_booleans(values: ArrayLike, name: str) -> Mask:
    """A column of true and false, none missing."""
    found = _numbers(values, name)
    odd = (found != 0.0) & (found != 1.0)
    if odd.any():
        raise ValueError(
            f"{name} must be true or false, 1 or 0, for each case; it is {found[odd][0]:g} in "
            f"{in_rows(odd)}."
        )
    is_true: Mask = found == 1.0
    return is_true
