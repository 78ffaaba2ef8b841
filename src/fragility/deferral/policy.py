"""Policy: what the model decides alone and what a human reviews, in a form that can be deployed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isinf, isnan, nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._labels import listed
from .._names import shown
from .._parameters import require
from .._summary import Summary, SummaryRow
from .._typing import Floats, Interval
from .._validation import check_labelled_probabilities, check_values
from ..scores.answers import check_answers
from . import policy_text
from .costs import Costs
from .decision_rules import LossLimit, TwoThresholds
from .decisions import Decisions
from .guarantees import Guarantee
from .paired_costs import PairedCosts
from .reviewers import Reviewers
from .several_classes import ExpectedLoss
from .two_classes import Stakes

#: What the file of a policy is, and its version.
KIND, VERSION = "fragility policy", 1
#: Attributes of a policy that are single numbers.
NUMBERS = (
    *("cost", "automation_rate", "error_rate", "error_share", "misses", "false_alarms"),
    *("cost_without_review", "cost_review_all", "fragility", "fragility_bound"),
)
#: Attributes that are tests against other ways to decide.
AGAINST = ("against_no_review", "against_full_review")


@dataclass(frozen=True, eq=False, repr=False)
class Policy(Summary):
    """Who decides: the model or a human, by thresholds of the score; and what that does.

    Made by `fragility.best_policy`. Cost and errors are those of cases that did not choose the
    policy; `automation_rate`, which needs no labels, is that of the printed thresholds.

    Attributes
    ----------
    decision : TwoThresholds or LossLimit
        Two classes: two thresholds of the score as the model gives it. Several: the largest
        expected loss that is decided alone.
    labels : tuple
        The classes, in the order of the columns of probabilities.
    positive : int
        Place of the positive class of two.
    costs : Costs
        Costs by case are represented by their mean, errors of reviewers by case by the means of the
        classes.
    cost : float
        Mean cost of a case.
    cost_interval : Interval
    automation_rate : float
        Share of the cases that the model decides alone.
    error_rate, error_share : float
        Its errors as a share of those cases, and of all.
    misses, false_alarms : float
        Positives decided negative, as a share of the positives; negatives decided positive, as a
        share of the negatives. NaN for several classes.
    lower_interval, upper_interval : Interval
        Thresholds that these cases do not show to be dearer, each moved alone. Several classes have
        `lower_interval` only, of the limit of the loss.
    cost_without_review : float
        Mean cost of the best policy without reviews, also measured on other cases.
    cost_review_all : float
        Mean cost if humans decide every case.
    fragility : float
        Smallest k with E_P[cost] ≤ bound + k KL(P, P̂), for any mix P of the cases: how fast a
        shift can raise the cost above `fragility_bound`.
    fragility_interval : Interval
    fragility_bound : float
        The cost of the cheapest policy plus a share `slack` of what full review costs more.
    guarantees : tuple of Guarantee
        Limits of errors, and whether they are kept.
    rule, criterion : str
    n_samples : int
    confidence : float
        Of the intervals.
    within_capacity : bool
        Whether there are no more reviews than the capacity allows.
    notes : tuple of str
        What else there is to know.
    columns : tuple of str
        Names of the columns of the scores, where the policy was made from a file. Of answers that
        of the confidence, then that of declined cases, if there is one.
    answers : bool
        Whether cases are answers that are right or wrong: the model answers alone from a confidence
        on, and passes all else on. It is never decided that an answer is wrong. Declined cases are
        passed on, too, and count in all shares and costs.
    reviewers : Reviewers, optional
        Humans alone, the model alone and the policy, if decisions of humans were given.
    against_no_review, against_full_review : PairedCosts, optional
        What the policy costs more than the best one without reviews, and than humans who decide
        every case: paired tests on the same cases.
    """

    decision: TwoThresholds | LossLimit
    labels: tuple[Any, ...]
    positive: int
    costs: Costs
    cost: float
    cost_interval: Interval
    automation_rate: float
    error_rate: float
    error_share: float
    misses: float
    false_alarms: float
    lower_interval: Interval
    upper_interval: Interval
    cost_without_review: float
    cost_review_all: float
    fragility: float
    fragility_interval: Interval
    fragility_bound: float
    guarantees: tuple[Guarantee, ...]
    rule: str
    criterion: str
    n_samples: int
    confidence: float
    within_capacity: bool = True
    notes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    answers: bool = False
    reviewers: Reviewers | None = None
    against_no_review: PairedCosts | None = None
    against_full_review: PairedCosts | None = None

    @property
    def lower(self) -> float:
        """Below it the model decides negative; NaN for several classes."""
        return self.decision.lower if isinstance(self.decision, TwoThresholds) else nan

    @property
    def upper(self) -> float:
        """From it on the model decides positive; NaN for several classes."""
        return self.decision.upper if isinstance(self.decision, TwoThresholds) else nan

    @property
    def guaranteed(self) -> bool:
        """Whether limits of errors were given, and all of them are kept."""
        return bool(self.guarantees) and all(part.kept for part in self.guarantees)

    def decide(self, proba: ArrayLike) -> Decisions:
        """What the model decides alone, and what a human should review.

        Parameters
        ----------
        proba : array-like of shape (n_samples,) or (n_samples, n_classes)
            Probabilities as the model gives them: of the positive class, or of every class. Of
            answers the confidence, NaN where the model declined: such a case is passed on.

        Returns
        -------
        Decisions
            With arrays `label`, `automate`, `score`, `saving` and `reason`.
        """
        labels = np.asarray(self.labels)
        n = len(check_values(proba, "proba"))
        if n == 0:
            return self.decide_scores(np.zeros((0, labels.size) if labels.size > 2 else 0))
        if self.answers:
            declined = None if np.ndim(proba) != 1 else np.isnan(np.asarray(proba, dtype=float))
            sure = check_answers(np.ones(n), proba, declined)
            return self.decide_scores(np.where(sure.answered, sure.confidence, np.nan))
        data = check_labelled_probabilities(
            np.repeat(labels[:1], n),
            proba,
            labels,
            labels.tolist()[self.positive] if labels.size == 2 else None,
            name="proba",
        )
        return self.decide_scores(np.clip(data.scores.astype(np.float64), 0.0, 1.0))

    def decide_scores(self, scores: Floats) -> Decisions:
        """Decisions on checked scores: of the positive class, or of every class of several."""
        labels = np.asarray(self.labels)
        found = self.decision
        if isinstance(found, LossLimit):
            loss = found.loss(self.costs, labels.size)
            decided, losses = loss.decide(loss.probabilities(scores))
            # What a review saves does not depend on the rule that sends cases there.
            priced = ExpectedLoss.of(self.costs, labels.size, found.temperature, "auto")
            saving = priced.decide(priced.probabilities(scores))[1] - self.costs.review_cost
            limit = -inf if self.automation_rate == 0.0 else found.limit
            what = "one minus the confidence" if found.by_confidence else "expected loss"
            return Decisions(
                labels[decided], losses <= found.limit, losses, saving, limit, inf, what
            )
        stakes, p = Stakes.of(self.costs, self.positive), found.calibrated(scores)
        losses = stakes.loss_of_positive(p)
        if not self.answers:
            losses = np.minimum(stakes.loss_of_negative(p), losses)
        negative, positive = scores < found.lower, scores >= found.upper
        alone = negative | positive
        chosen = np.where(alone, positive, scores >= found.suggestion)
        label = labels[np.where(chosen, self.positive, 1 - self.positive)]
        saving = losses - self.costs.review_cost
        return Decisions(label, alone, scores, saving, found.lower, found.upper)

    def to_dict(self) -> dict[str, Any]:
        """The policy in plain values that strict JSON can hold; `from_dict` reads them.

        An infinite threshold and an undefined number are null.
        """
        found = self.decision
        names = {
            TwoThresholds: ("lower", "upper", "suggestion", "slope", "intercept"),
            LossLimit: ("limit", "temperature", "by_confidence"),
        }[type(found)]
        intervals = ("cost_interval", "lower_interval", "upper_interval", "fragility_interval")
        return {
            "format": KIND,
            "version": VERSION,
            "classes": [_plain(label) for label in self.labels],
            "positive": _plain(self.labels[self.positive]) if len(self.labels) == 2 else None,
            "columns": list(self.columns),
            "decision": {name: _finite(getattr(found, name)) for name in names},
            "costs": {**self.costs.to_dict(), "error_cost": _cost_values(self.costs)},
            **{name: _finite(getattr(self, name)) for name in NUMBERS},
            **{name: [_finite(end) for end in getattr(self, name)] for name in intervals},
            "guarantees": [vars(part) for part in self.guarantees],
            "rule": self.rule,
            "criterion": self.criterion,
            "n_samples": self.n_samples,
            "confidence": self.confidence,
            "within_capacity": self.within_capacity,
            "notes": list(self.notes),
            **({"answers": True} if self.answers else {}),
            **{
                name: None if test is None else _strict(test.to_dict())
                for name, test in ((name, getattr(self, name)) for name in AGAINST)
            },
            **({} if self.reviewers is None else {"reviewers": _strict(self.reviewers.to_dict())}),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Policy:
        """The policy that `to_dict` wrote.

        Raises
        ------
        ValueError
            If it is not a policy, is damaged, or comes from another version.
        """
        from .policy_files import read_policy  # which needs this module

        return read_policy(content)

    def to_json(self) -> str:
        """Strict JSON of `to_dict`."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False, ensure_ascii=False)

    def sentences(self) -> list[str]:
        """What to do, what it costs, and what is promised, in about three lines."""
        return policy_text.sentences(self)

    def instruction(self) -> str:
        """What to do with a case, in a clause; thresholds are in per cent."""
        return policy_text.instruction(self)

    def _rows(self) -> Iterator[SummaryRow]:
        return policy_text.rows(self)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _finite(value: Any) -> Any:
    """None for what is infinite or undefined."""
    if isinstance(value, float) and (isinf(value) or isnan(value)):
        return None
    return _plain(value)


def _strict(value: Any) -> Any:
    """The same with None for what is infinite or undefined."""
    if isinstance(value, dict):
        return {name: _strict(part) for name, part in value.items()}
    return [_strict(part) for part in value] if isinstance(value, list) else _finite(value)


def _cost_values(costs: Costs) -> Any:
    cost = np.asarray(costs.error_cost, dtype=np.float64)
    return float(cost.mean()) if cost.ndim == 1 else cost.tolist()


def check_policies(
    policies: Any, labels: NDArray[Any], positive: int, names: Sequence[str]
) -> tuple[Policy, Policy]:
    """Two policies for these classes, of which the same one is positive."""
    pair = tuple(policies) if isinstance(policies, (tuple, list)) else ()
    require(
        len(pair) == len(names) and all(isinstance(part, Policy) for part in pair),
        f"policies must be a Policy for each of {' and '.join(names)}; got {shown(policies)}.",
    )
    for policy in pair:
        same = [_plain(a) for a in policy.labels] == labels.tolist()
        require(
            same,
            f"The policy is for the classes {listed(policy.labels)}; these are {listed(labels)}.",
        )
        require(
            labels.size > 2 or policy.positive == positive,
            f"The policy is for scores of the class {policy.labels[policy.positive]!r}, these are "
            f"of {labels.tolist()[positive]!r}: give pos_label.",
        )
    return pair[0], pair[1]
