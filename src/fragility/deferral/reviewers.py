"""Reviewers: humans alone, the model alone and the policy, on the same cases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan, nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._summary import Summary, SummaryRow, percent
from .._typing import Floats, Integers
from ..figures.intervals import share_interval
from ..measured import Measured
from ..scores.reviews import ReviewSums
from .paired_costs import PairedCosts
from .reviews import CaseReviews

if TYPE_CHECKING:
    from .solving import Solved


@dataclass(frozen=True, eq=False, repr=False)
class Reviewers(Summary):
    """What humans alone, the model alone and the policy cost, and how often the humans err.

    Made by `fragility.best_policy` and reports that are given decisions of humans.

    Attributes
    ----------
    human, model, policy : Measured
        Mean cost of a case: if humans decide all of them, if the model decides all of them at its
        best, and at the policy. The latter two on cases that did not choose.
    error_rate : Measured
        Share of all cases that the humans get wrong.
    error_rates : tuple of Measured
        The same by class, in the order of the labels; NaN for a class without cases.
    labels : tuple
        The classes.
    against_human, against_model : PairedCosts, optional
        What the policy costs more than humans alone, and than the model alone, case by case.
    confidence : float
        Of the intervals.

    Examples
    --------
    >>> from fragility import best_policy
    >>> sick = [1, 1, 0, 0, 1, 0, 0, 1]
    >>> doctor = [1, 1, 0, 1, 1, 0, 0, 1]
    >>> p = [0.9, 0.8, 0.1, 0.2, 0.4, 0.6, 0.1, 0.9]
    >>> found = best_policy(sick, p, error_cost=10, human=doctor).reviewers
    >>> found.human.value, found.error_rate.value, found.error_rates[0].value
    (2.25, 0.125, 0.25)
    """

    human: Measured
    model: Measured
    policy: Measured
    error_rate: Measured
    error_rates: tuple[Measured, ...]
    labels: tuple[Any, ...]
    confidence: float
    against_human: PairedCosts | None = None
    against_model: PairedCosts | None = None

    @classmethod
    def of(
        cls,
        solved: Solved,
        rates: tuple[Measured, tuple[Measured, ...]],
        labels: NDArray[Any],
        confidence: float,
    ) -> Reviewers:
        """Of a solved problem and how often humans err, on all cases and by class."""
        human, model, policy = (
            Measured(
                part.cost,
                part.interval(confidence, solved.n_independent),
                standard_error=part.standard_error,
            )
            for part in (solved.full_review, solved.without_review, solved.held_out)
        )
        tests = (
            sums.compared(policy.value, other.value, confidence)
            for sums, other in (
                (solved.against_full_review, human),
                (solved.against_no_review, model),
            )
        )
        return cls(human, model, policy, *rates, tuple(labels.tolist()), confidence, *tests)

    def sentences(self) -> Iterator[str]:
        """Who is cheaper, and by how much."""
        yield (
            f"Humans alone: {self.human.value:.4g} per case (wrong in "
            f"{percent(self.error_rate.value)}), the model alone: {self.model.value:.4g}, the "
            f"policy: {self.policy.value:.4g}."
        )
        told = [
            words
            for words in (
                self._difference("humans alone", self.against_human),
                self._difference("the model alone", self.against_model),
            )
            if words
        ]
        if told:
            yield f"The policy costs {' and '.join(told)}."

    def _difference(self, other: str, test: PairedCosts | None) -> str:
        if test is None:
            return ""
        if test.difference == 0.0:
            return f"as much as {other}"
        more = "more" if test.difference > 0.0 else "less"
        if isnan(test.p_value):
            return f"{abs(test.difference):.4g} {more} than {other} (no test: {test.why_no_test})"
        sign = 1.0 if test.difference > 0.0 else -1.0
        low, high = sorted(sign * end for end in test.interval)
        chance = ", which could be chance" if low < 0.0 < high else ""
        level = f"{low:.3g} to {high:.3g}{chance}".replace("-", "−")
        return (
            f"{abs(test.difference):.4g} {more} than {other} ({100 * self.confidence:g} % interval "
            f"{level})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values; floats may be NaN."""
        measured = {
            name: _plain(getattr(self, name)) for name in ("human", "model", "policy", "error_rate")
        }
        tests = {
            name: None if test is None else test.to_dict()
            for name, test in (
                ("against_human", self.against_human),
                ("against_model", self.against_model),
            )
        }
        return {
            **measured,
            "error_rates": [_plain(rate) for rate in self.error_rates],
            "confidence": self.confidence,
            **tests,
        }

    def figures(self) -> Iterator[tuple[str, str, Measured]]:
        """Figures by name, whose they are, and their values; differences among them."""
        yield "cost", "human", self.human
        yield "cost", "model", self.model
        yield "cost", "policy", self.policy
        tests = ("human", self.against_human), ("model", self.against_model)
        for who, test in tests:
            if test is not None:
                ends = None if isnan(test.p_value) else test.interval
                yield "cost difference", f"policy - {who}", Measured(test.difference, ends)
        yield "error rate", "human", self.error_rate
        for label, rate in zip(self.labels, self.error_rates, strict=True):
            yield "error rate", f"human, {label}", rate

    def _rows(self) -> Iterator[SummaryRow]:
        level = f"{100 * self.confidence:g}% interval"
        for figure, who, found in self.figures():
            between = ""
            if found.interval is not None:
                between = f", {level} {found.interval.low:.3g} to {found.interval.high:.3g}"
            yield figure, f"{found.value:.4g}", f"{who}{between}"


def _plain(found: Measured) -> dict[str, Any]:
    interval = None if found.interval is None else list(found.interval)
    return {
        "value": found.value,
        "interval": interval,
        "standard_error": found.standard_error,
    }


def error_rates(sums: ReviewSums, confidence: float) -> tuple[Measured, tuple[Measured, ...]]:
    """How often humans err, on all cases and by class, if cases are independent."""
    errors, weight, squares = (
        sums.table(name).sum(axis=1) for name in ("errors", "weight", "squares")
    )

    def measured(wrong: float, total: float, total_squares: float) -> Measured:
        if total <= 0.0:
            return Measured(nan)
        rate, n = wrong / total, total**2 / total_squares
        error = sqrt(max(rate * (1.0 - rate), 0.0) / n)
        return Measured(rate, share_interval(rate, n, confidence), standard_error=error)

    of_all = measured(*(float(part.sum()) for part in (errors, weight, squares)))
    by_class = zip(errors.tolist(), weight.tolist(), squares.tolist(), strict=True)
    return of_all, tuple(measured(*part) for part in by_class)


def clustered_rates(
    reviews: CaseReviews, n_classes: int, weights: Floats, clusters: Integers, confidence: float
) -> tuple[Measured, tuple[Measured, ...]]:
    """The same, if cases of a cluster are drawn together.

    The limits are those of as many independent cases as have the standard error of the clusters.
    """
    slips = reviews.slips

    def measured(mask: Any) -> Measured:
        if not mask.any():
            return Measured(nan)
        own, wrong = weights[mask], slips[mask]
        clustered = np.unique(clusters[mask], return_inverse=True)[1]
        total = float(own.sum())
        rate, cases = float(own @ wrong) / total, total**2 / float(own @ own)
        apart = np.bincount(clustered, own * (wrong - rate))
        n = apart.size
        error = sqrt(float(apart @ apart) * n / max(n - 1, 1)) / total
        effective = min(rate * (1.0 - rate) / error**2, cases) if error > 0.0 else min(n, cases)
        return Measured(rate, share_interval(rate, effective, confidence), standard_error=error)

    every = np.ones(slips.size, dtype=np.bool_)
    return measured(every), tuple(measured(reviews.true == code) for code in range(n_classes))
