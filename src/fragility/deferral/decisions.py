"""Decisions of a policy: automated or left to a human review, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._optional import data_frame
from .._summary import Summary, SummaryRow, percent
from .._typing import Floats, Indices, Mask

#: Digits that are tried until a number and its threshold look different.
_DIGITS = (3, 5, 9, 17)


@dataclass(frozen=True, eq=False, repr=False)
class Decisions(Summary):
    """One decision for each case, from `Policy.decide` or `DeferralClassifier.decide`.

    Attributes
    ----------
    label : ndarray of shape (n_samples,)
        The class that is decided where `automate` is true; elsewhere a suggestion, what would be
        decided without reviews.
    automate : ndarray of bool of shape (n_samples,)
        Whether the model decides alone; if not, a human should review the case.
    score : ndarray of shape (n_samples,)
        What the policy looks at: the score of the positive class, or of several classes the
        expected loss of deciding alone.
    saving : ndarray of shape (n_samples,)
        How much a review is expected to save, by the calibrated probabilities; negative where it
        costs more than it saves.
    lower, upper : float
        Thresholds of the score; of several classes the loss is compared with `lower`.
    what : str
        What `score` is, in words.
    reason : ndarray of str of shape (n_samples,)
        Why, in a short sentence for each case.
    """

    label: NDArray[Any]
    automate: Mask
    score: Floats
    saving: Floats
    lower: float
    upper: float
    what: str = "score"

    @cached_property
    def reason(self) -> NDArray[np.object_]:
        """Why each case was decided alone or not."""
        reasons = np.empty(self.score.size, dtype=object)
        sentence = self._of_two if self.what == "score" else self._of_several
        reasons[:] = [sentence(score) for score in self.score.tolist()]
        return reasons

    def _of_two(self, score: float) -> str:
        if np.isnan(score):
            return "no answer: passed on"
        if self.lower == self.upper and self.lower in (0.0, np.inf):
            return "every case is decided so"
        if score < self.lower:
            return f"score {_compared(score, self.lower, 'is below')}"
        if score >= self.upper:
            return f"score {_compared(score, self.upper, 'is not below')}"
        if self.lower == 0.0 and self.upper == np.inf:
            return "every case is reviewed"
        if self.upper == np.inf:
            return f"score {_compared(score, self.lower, 'is not below')}: review"
        if self.lower == 0.0:
            return f"score {_compared(score, self.upper, 'is below')}: review"
        ours, low, high = _told_apart(score, self.lower, self.upper)
        return f"score {ours} is between {low} and {high}: review"

    def _of_several(self, loss: float) -> str:
        if np.isinf(self.lower):
            return f"every case is {'decided alone' if self.lower > 0.0 else 'reviewed'}"
        if loss <= self.lower:
            return f"{self.what} {_compared(loss, self.lower, 'is not above')}"
        return f"{self.what} {_compared(loss, self.lower, 'is above')}: review"

    def __len__(self) -> int:
        return self.score.size

    def review_queue(self, n: int | None = None) -> Indices:
        """Rows for review, the largest expected saving first; at most `n` of them.

        Cases without an answer come before all others: nobody else has decided them.
        """
        rows = np.flatnonzero(~self.automate)
        saving = np.where(np.isnan(self.score[rows]), np.inf, self.saving[rows])
        return rows[np.argsort(-saving, kind="stable")][:n]

    def to_frame(self) -> Any:
        """The decisions as a pandas DataFrame, a row for each case.

        Returns
        -------
        pandas.DataFrame
            With columns label, automate, score, saving and reason.
        """
        columns = ("label", "automate", "score", "saving", "reason")
        return data_frame({name: getattr(self, name) for name in columns})

    def _rows(self) -> Iterator[SummaryRow]:
        alone = int(np.count_nonzero(self.automate))
        share = f"{percent(alone / len(self))} of all" if len(self) else ""
        yield "decided alone", str(alone), share
        yield "for review", str(len(self) - alone), ""


def _compared(score: float, threshold: float, words: str) -> str:
    ours, limit = _told_apart(score, threshold)
    return f"{ours} {words} {limit}"


def _told_apart(*numbers: float) -> list[str]:
    """Numbers with as few digits as show which is larger."""
    for digits in _DIGITS:
        shown = [f"{number:.{digits}g}" for number in numbers]
        if len(set(shown)) == len(set(numbers)):
            return shown
    return [f"{number:g}" for number in numbers]
