"""Decisions of a model: automated or left to a human review, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._optional import needed_for
from .._summary import Summary, SummaryRow, percent
from .._typing import Floats, Mask

#: Digits that are tried until a confidence and the threshold look different.
_DIGITS = (2, 4, 8, 17)


@dataclass(frozen=True, eq=False, repr=False)
class Decisions(Summary):
    """One decision for each case, from `DeferralClassifier.decide`.

    Attributes
    ----------
    label : ndarray of shape (n_samples,)
        The most probable class: decided where `automate` is true, a suggestion elsewhere.
    automate : ndarray of bool of shape (n_samples,)
        Whether the model decides alone; if not, a human should review the case.
    confidence : ndarray of shape (n_samples,)
        Probability of the most probable class.
    threshold : float
        The model decides alone above it.
    reason : ndarray of str of shape (n_samples,)
        Why, in a short sentence for each case.
    """

    label: NDArray[Any]
    automate: Mask
    confidence: Floats
    threshold: float

    @cached_property
    def reason(self) -> NDArray[np.object_]:
        """Why each case was decided alone or not."""
        reasons = np.empty(self.confidence.size, dtype=object)
        reasons[:] = [
            _sentence(confidence, self.threshold, alone)
            for confidence, alone in zip(
                self.confidence.tolist(), self.automate.tolist(), strict=True
            )
        ]
        return reasons

    def __len__(self) -> int:
        return self.confidence.size

    def to_frame(self) -> Any:
        """The decisions as a pandas DataFrame, a row for each case.

        Returns
        -------
        pandas.DataFrame
            With columns label, automate, confidence and reason.
        """
        with needed_for("to_frame needs pandas", "cli"):
            import pandas as pd
        columns = ("label", "automate", "confidence", "reason")
        return pd.DataFrame({name: getattr(self, name) for name in columns})

    def _rows(self) -> Iterator[SummaryRow]:
        alone = int(np.count_nonzero(self.automate))
        share = f"{percent(alone / len(self))} of all" if len(self) else ""
        yield "decided alone", str(alone), share
        yield "for review", str(len(self) - alone), f"confidence {self.threshold:.4g} or less"


def _sentence(confidence: float, threshold: float, alone: bool) -> str:
    ours, limit = _told_apart(confidence, threshold)
    if alone:
        return f"confidence {ours} is above {limit}"
    return f"confidence {ours} is not above {limit}: review"


def _told_apart(confidence: float, threshold: float) -> tuple[str, str]:
    """Both with as few digits as show which is larger."""
    for digits in _DIGITS:
        ours, limit = f"{confidence:.{digits}f}", f"{threshold:.{digits}f}"
        if ours != limit:
            return ours, limit
    return f"{confidence:g}", f"{threshold:g}"  # they are equal
