"""AnswerState: what a report needs to know of answers that are right, wrong or declined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._typing import Floats
from .._validation import check_case_costs, check_weights
from ..exact import MOST_TERMS
from . import HOLD
from .answers import ANSWERS, Answers, check_answers
from .cases import Cases, check_scale
from .state import ScoreState
from .tally import AmountSums


class AnswerState(ScoreState):
    """What one model answered: a `ScoreState` of right and wrong answers, and of declined cases.

    Its classes are "wrong" and "right", and its scores are the confidence in each answer: the
    probability that it is right. Several models answer differently and have a state each.

    Parameters
    ----------
    model : str, default="model"
    groups, weighted, hold
        As in `ScoreState`.

    Examples
    --------
    >>> from fragility import AnswerState, Report
    >>> monday, tuesday = AnswerState(), AnswerState()
    >>> _ = monday.update_answers([True, False], [0.6, 0.2])
    >>> _ = tuesday.update_answers([1, 0, 0], [0.9, 0.7, None], declined=[0, 0, 1])
    >>> report = Report.from_state(monday.merge(tuesday))
    >>> round(report.models[0].raw.figures["fragility_index"].value, 6)
    0.073051
    """

    answers = True

    def __init__(
        self,
        model: str = "model",
        groups: Sequence[str] | Mapping[str, Sequence[str]] = (),
        weighted: bool = False,
        hold: float = HOLD,
    ) -> None:
        super().__init__(ANSWERS, [model], groups, weighted, hold)
        self._declined: AmountSums | None = None

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.models[0]

    def update_answers(
        self,
        correct: ArrayLike,
        confidence: ArrayLike,
        declined: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        groups: Mapping[str, ArrayLike] | ArrayLike | None = None,
        case_costs: ArrayLike | None = None,
    ) -> AnswerState:
        """Add answers; returns itself. What is refused changes nothing.

        Parameters
        ----------
        correct : array-like of shape (n_samples,)
            Whether each answer is right: booleans, or 0 and 1.
        confidence : array-like of shape (n_samples,)
            Probability that the answer is right, from 0 to 1.
        declined : array-like of shape (n_samples,), optional
            Cases that the model did not answer. They are counted, and may have missing values in
            `correct` and `confidence`.
        sample_weight : array-like of shape (n_samples,), optional
            If the state is weighted.
        groups, case_costs
            As in `ScoreState.update`.

        Returns
        -------
        AnswerState
        """
        if np.size(correct) == 0:
            return self
        if sample_weight is not None and not self.weighted:
            raise ValueError("sample_weight was given to a state made without weighted=True.")
        found = check_answers(correct, confidence, declined)
        n = found.correct.size
        weights = None if sample_weight is None else check_weights(sample_weight, n, True)
        costs = None if case_costs is None else check_case_costs(case_costs, n, "case_costs")
        return self.add_answers(found, weights, self.group_codes(groups, n), costs)

    def add_answers(
        self,
        found: Answers,
        weights: Floats | None,
        groups: NDArray[Any] | None,
        costs: Floats | None,
    ) -> AnswerState:
        """Add checked answers."""
        check_scale(weights, "sample_weight", "weights", "state")
        check_scale(costs, "case_costs", "costs", "state")
        self.check_priced(costs is not None)
        cases = answered_cases(found, self.model, weights, groups, costs)
        self.add(cases if found.declined is None else cases.take(found.answered))
        if found.declined is not None:
            self._decline(cases.take(found.declined))
        return self

    def _decline(self, cases: Cases) -> None:
        """Count cases without an answer."""
        if cases.weights is not None:
            cases = cases.take(cases.weights > 0.0)
        if not cases.size:
            return
        self.priced = cases.costs is not None
        sums = self.declined_sums
        if len(sums.sums) > 1:
            cases = cases.weighted()
        for start in range(0, cases.size, MOST_TERMS):
            part = cases.take(slice(start, start + MOST_TERMS))
            sums.add(np.zeros(part.size, dtype=np.int64), part.weights, part.costs)
        self._declined = sums

    def check_both(self) -> None:
        """Refuse answers that are all right, or all wrong, or none."""
        wrong, right = self.support.tolist()
        declined = int(self.declined["number"])
        if wrong and right:
            return
        if wrong or right:
            what = "wrong" if wrong else "right"
            which = f"all {wrong + right:,} answers are {what}"
            if wrong + right == 1:
                which = f"its only answer is {what}"
        elif declined:
            which = f"it declined all {declined:,} cases"
        else:
            raise ValueError(
                f"Model {self.model!r} has no case of positive weight: give its answers first."
            )
        raise ValueError(
            f"Model {self.model!r}: {which}. The report measures how confidence tells right from "
            "wrong answers; it takes at least one of each."
        )

    @property
    def declined_sums(self) -> AmountSums:
        """Exact sums over the cases without an answer."""
        if self._declined is not None:
            return self._declined
        return AmountSums(1, self.weighted or bool(self.priced), bool(self.priced))

    @property
    def declined(self) -> dict[str, float]:
        """Number, weight and squared weights of the cases without an answer, and their costs."""
        found = {name: float(part.floats(0)[0]) for name, part in self.declined_sums.sums.items()}
        return {"weight": found["number"], "squares": found["number"], **found}

    def take_declined(self, sums: AmountSums) -> None:
        """Become a state of these sums over declined cases."""
        self._declined = sums if sums.sums["number"].floats(0)[0] > 0.0 else None

    def merge(self, other: ScoreState) -> AnswerState:
        """Add all answers of another state of the same model; see `ScoreState.merge`."""
        super().merge(other)
        assert isinstance(other, AnswerState)
        before = [part for part in (self._declined, other._declined) if part is not None]
        self._declined = None
        merged = self.declined_sums
        for part in before:
            merged.merge(part)
        self._declined = merged if before else None
        return self


def answered_cases(
    found: Answers,
    model: str,
    weights: Floats | None,
    groups: NDArray[Any] | None,
    costs: Floats | None,
) -> Cases:
    """Answers as cases of the classes "wrong" and "right", declined ones among them."""
    return Cases(found.correct.view(np.uint8), {model: found.confidence}, weights, groups, costs)
