r"""Choose a policy, and decide every case by a policy that was chosen without it.

`PolicySearch` is the whole of it: costs become sums along a key (`cuts.SortedCases`), a rule says
how far they are those that happened and how far those that calibrated probabilities expect, limits
of errors say which cuts are allowed (`guarantee`), and the cheapest or the least fragile of these
cuts is the policy. The same search on four fifths of the cases decides the rest of them: what a
policy costs is measured on cases that did not choose it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import Literal, NamedTuple

import numpy as np

from .._parameters import check_choice, check_confidence, check_share, require
from .._random import random_generator
from .._typing import Floats, Indices, Integers, Mask
from ..calibration.fitting import clipped
from ..calibration.models import fit_data
from ..calibration.several_classes import FitRows
from ..calibration.temperature import tempered
from ..calibration.two_classes import Platt
from ..cases.cases import Cases
from ..cases.folds import fold_assignments
from .costs import Costs, DecisionCosts, decision_costs
from .cuts import AllowedCuts, Cuts, KeyedCases, SortedCases, cheapest_cuts
from .fragile import FragileCost, cost_bound, fragility_of, least_fragile
from .guarantee import Certified, Guarantee, Limits, PathCases, certify

Rule = Literal["auto", "tuned", "expected_cost", "confidence"]
RULES: tuple[Rule, ...] = ("auto", "tuned", "expected_cost", "confidence")
Criterion = Literal["cost", "fragility"]

#: With fewer cases nothing is learned from some about the others.
LEAST_CASES = 4
#: Ways to deal cases to folds, and cases beyond which one way will do.
N_DEALS, MANY_CASES = 4, 50_000
#: Cases at which expected and observed costs have equal say.
PRIOR_CASES = 1000.0
#: Groups of neighbouring keys that folds choose among.
MOST_GROUPS = 1 << 16
#: Expected losses that differ by less, relative to the dearest error, are equal.
_LOSS_ROUNDING = 2.0**-40

UNCALIBRATED = (
    "A class has fewer than two cases: the probabilities are taken as they are, uncalibrated."
)
FALLING = "Higher scores do not mean more positives here. Are they the scores of the other class?"
FALLING_ANSWERS = (
    "A higher confidence does not mean more right answers here. Is it the probability of being "
    "right?"
)
OVER_CAPACITY = (
    "No policy that keeps the limits needs as few reviews as the capacity allows: this one needs "
    "more."
)
ABSTAINED_TOO_OFTEN = (
    "Cases that the model abstained on need more reviews than the capacity allows."
)


@dataclass(frozen=True)
class ProbabilityMap:
    """Calibrated probabilities of each class from the scores of one model.

    Attributes
    ----------
    platt : Platt, optional
        Of two classes; None: the scores are taken as they are.
    temperature : float
        Of several classes.
    positive : int
        Position of the class that a single column of scores is about.
    is_fitted : bool
        False: a class has too few cases, and the probabilities are taken as they are.
    """

    platt: Platt | None = None
    temperature: float = 1.0
    positive: int = 1
    is_fitted: bool = True

    def __call__(self, scores: Floats) -> Floats:
        """Return probabilities of shape (n, n_classes); where the model abstained, any."""
        scores = np.nan_to_num(scores)
        if scores.ndim == 2:
            return tempered(scores, self.temperature)
        p = clipped(scores) if self.platt is None else self.platt(scores)
        return np.column_stack([1.0 - p, p] if self.positive == 1 else [p, 1.0 - p])

    @property
    def falls(self) -> bool:
        """Whether a higher score means a lower probability, so that the scores say nothing."""
        return self.platt is not None and self.platt.slope <= 0.0


def fitted_map(scores: Floats, truth: Integers, mass: Floats, positive: int) -> ProbabilityMap:
    """Fit Platt's map to the scores of two classes, or a temperature to several.

    Where a class has fewer than two cases nothing is fitted, and probabilities stay as they are.
    """
    numbers = np.bincount(truth)
    numbers = numbers[numbers > 0]
    if numbers.size < 2 or numbers.min() < 2:
        return ProbabilityMap(positive=positive, is_fitted=False)
    data = fit_data(scores, truth, mass, positive)
    if isinstance(data, FitRows):
        return ProbabilityMap(temperature=data.temperature)
    return ProbabilityMap(Platt.fitted(data), positive=positive)


class HeldOut(NamedTuple):
    """Decisions on every case by policies that were chosen without it.

    Attributes
    ----------
    decisions : ndarray of int of shape (n_deals, n)
        Class that is decided, or the number of classes for a review, for each way to deal cases to
        folds.
    cost : ndarray of shape (n,)
        Cost of each case, the mean over the deals.
    """

    decisions: Integers
    cost: Floats


@dataclass(frozen=True, eq=False)
class ChosenPolicy:
    """A policy, and what is known of it.

    Attributes
    ----------
    lower, upper : float
        Thresholds of the key: of the score of two classes and of the confidence of answers, or of
        the expected loss of several classes. Below `lower` the model decides negative (of several
        classes the cheapest one), from `upper` on positive; a human decides between.
    suggestion : float
        Of two classes: from this score on a reviewed case is suggested to be positive.
    probability_map : ProbabilityMap
        Fitted to all cases.
    automation_rate : float
        Share of the mass that the model decides alone.
    within_capacity : bool
    guarantees : tuple of Guarantee
    fragility : FragileCost, optional
        How fast a shift raises the mean cost; None if reviews are not on offer.
    notes : tuple of str
    """

    lower: float
    upper: float
    suggestion: float
    probability_map: ProbabilityMap
    automation_rate: float
    within_capacity: bool
    guarantees: tuple[Guarantee, ...]
    fragility: FragileCost | None
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class PolicySearch:
    """Cases of one model that choose what the model decides alone, and how they choose it.

    Parameters
    ----------
    cases : Cases
    model : str
    user_costs : Costs
    limits : Limits, optional
        Limits of errors, and of the share of cases that can be reviewed.
    rule : {"auto", "tuned", "expected_cost", "confidence"}, default="auto"
        Costs to choose by: those that happened ("tuned"), those that calibrated probabilities
        expect ("expected_cost", Chow's rule), or both ("auto"), the latter with a weight of
        1000 / (1000 + n). "confidence": those that happened, but with one threshold of the
        confidence.
    criterion : {"cost", "fragility"}, default="cost"
        "fragility": of all policies that cost at most best + cost_tolerance · (full review − best),
        the one whose cost is least fragile when the mix of cases shifts.
    cost_tolerance : float, default=0.1
    random_state : int, default=0
        Seed of the folds and of the order of bets; a sample has its own numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from fragility.cases.cases import Cases
    >>> from fragility.policies.choose import PolicySearch
    >>> from fragility.policies.costs import Costs
    >>> score = np.linspace(0.001, 0.999, 2000)
    >>> sick = (np.random.default_rng(0).random(2000) < score).astype(int)
    >>> costs = Costs(miss=5, false_alarm=1, review=0.3)
    >>> search = PolicySearch(Cases(sick, {"model": score}), "model", costs)
    >>> policy = search.policy()
    >>> round(policy.lower, 2), round(policy.upper, 2)
    (0.05, 0.71)
    >>> held_out, without_review = search.held_out()
    >>> print(f"{held_out.cost.mean():.2f} {without_review.cost.mean():.2f}")
    0.25 0.44
    """

    cases: Cases
    model: str
    user_costs: Costs
    limits: Limits = field(default_factory=Limits)
    rule: Rule = "auto"
    criterion: Criterion = "cost"
    cost_tolerance: float = 0.1
    random_state: int = 0

    def __post_init__(self) -> None:
        check_choice(self.rule, RULES, "rule")
        check_choice(self.criterion, ("cost", "fragility"), "criterion")
        check_share(self.cost_tolerance, "cost_tolerance")
        limits = self.limits.checked(len(self.cases.labels), answers=self.cases.answers)
        object.__setattr__(self, "limits", limits)
        require(
            self.rule != "confidence" or not (limits.errors or self.criterion == "fragility"),
            'rule="confidence" is the plain threshold of the confidence, for comparison: it takes '
            "neither limits of errors nor the criterion 'fragility'.",
        )
        require(
            self.cases.n >= LEAST_CASES,
            "A policy is chosen on some cases and measured on others, which takes at least "
            f"{LEAST_CASES} cases (of positive weight); got {self.cases.n}.",
        )
        if not self.offers_reviews:
            self._check_without_reviews()

    def _check_without_reviews(self) -> None:
        """Refuse what needs reviews."""
        remedy = "without a cost of reviews they are not on offer: give Costs(review=...)."
        n_abstained = int(np.count_nonzero(self.abstained))
        require(
            not n_abstained,
            f"{self.model} abstained on {n_abstained:,} of {self.cases.n:,} cases, which a human "
            f"must decide; {remedy}",
        )
        require(
            self.criterion == "cost",
            f"criterion='fragility' compares with the cost of full review; {remedy}",
        )
        # One limit of one kind of errors can be kept by one cut, too.
        require(
            not self.limits.errors
            or [*self.limits.errors] in (["miss_rate"], ["false_alarm_rate"]),
            f"Cases that a limit of errors keeps from the model need a review; {remedy}",
        )

    @cached_property
    def scores(self) -> Floats:
        """Scores of the model; NaN where it abstained."""
        return self.cases.scores[self.model].astype(np.float64)

    @cached_property
    def truth(self) -> Integers:
        """Class of each case, of answers whether the model was right."""
        return self.cases.truth(self.model)

    @cached_property
    def abstained(self) -> Mask:
        """Cases without a score, which are always reviewed."""
        return np.isnan(self.scores if self.scores.ndim == 1 else self.scores[:, 0])

    @property
    def review(self) -> int:
        """The decision that is a review: the last column of the costs."""
        return len(self.cases.labels)

    @property
    def offers_reviews(self) -> bool:
        """Whether a human can review cases."""
        return self.user_costs.review is not None

    @cached_property
    def costs(self) -> DecisionCosts:
        """Costs of each decision; reviews that are not on offer are free, and never chosen."""
        costs = self.user_costs if self.offers_reviews else replace(self.user_costs, review=0.0)
        return decision_costs(self.cases, costs, self.model)

    @property
    def capacity(self) -> float:
        """Largest share of the mass that can be reviewed."""
        if not self.offers_reviews:
            return 0.0
        return 1.0 if self.limits.capacity is None else self.limits.capacity

    @cached_property
    def _deals(self) -> list[Integers]:
        return policy_folds(self.cases, self.model, self.random_state)

    @cached_property
    def _maps(self) -> list[ProbabilityMap]:
        """Maps of the first deal, each fitted to the other folds."""
        folds = self._deals[0]
        return [self._map(folds != fold) for fold in range(int(folds.max()) + 1)]

    @cached_property
    def probability_map(self) -> ProbabilityMap:
        """Map fitted to all cases."""
        return self._map(np.ones(self.cases.n, dtype=np.bool_))

    @cached_property
    def _whole(self) -> SortedCases:
        return self._table(self.probability_map, np.arange(self.cases.n))

    @cached_property
    def _certified(self) -> Certified:
        """Cuts of all cases that keep the limits of errors."""
        table = self._whole
        if not self.limits.errors:
            return Certified(table.allowed, ())
        path = self._path_cases(table, self._cross_fitted(), np.arange(self.cases.n))
        return certify(table, path, self.limits)

    def policy(self, confidence_level: float = 0.95) -> ChosenPolicy:
        """Return the policy of all cases.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Of the interval of the fragility.
        """
        check_confidence(confidence_level, "confidence_level")
        table, certified = self._whole, self._certified
        cuts = self._cuts(table, certified.allowed)
        fragility = None
        if self.offers_reviews:
            bound = self._bound(table, certified.allowed)
            fragility = fragility_of(table, cuts, bound, confidence_level)
        lower, upper = self._thresholds(table, cuts, certified)
        without_review = self._cheapest(table, table.allowed, 0.0)
        suggestion = min(max(table.threshold(without_review.lower), lower), upper)
        is_review = table.keyed.decide(lower, upper) == self.review
        reviewed = float(table.mass @ is_review) / float(table.mass.sum())
        within_capacity = reviewed <= self.capacity + 1e-9
        return ChosenPolicy(
            lower,
            upper,
            suggestion,
            self.probability_map,
            1.0 - reviewed,
            within_capacity,
            certified.guarantees,
            fragility,
            tuple(self._notes(within_capacity)),
        )

    def held_out(self) -> tuple[HeldOut, HeldOut]:
        """Return decisions on each case by policies that were chosen without it.

        Returns
        -------
        policy, without_review : HeldOut
            By this search, and by the same rule if nothing can be reviewed.
        """
        decisions = np.empty((2, len(self._deals), self.cases.n), dtype=np.int64)
        for deal, folds in enumerate(self._deals):
            for fold in range(int(folds.max()) + 1):
                others, rows = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
                probability_map = self._maps[fold] if deal == 0 else self._map(folds != fold)
                table = self._table(probability_map, others, MOST_GROUPS)
                certified = self._certified_by(table)
                cuts = self._cuts(table, certified.allowed)
                without_review = self._cheapest(table, table.allowed, 0.0)
                keyed = self._keyed(probability_map).take(rows)
                thresholds = self._thresholds(table, cuts, certified)
                decisions[0, deal, rows] = keyed.decide(*thresholds)
                lower, upper = (table.threshold(cut) for cut in without_review[:2])
                decisions[1, deal, rows] = keyed.decide(lower, upper)
        rows = np.arange(self.cases.n)
        policy, bare = (HeldOut(by, self.costs.paid[rows, by].mean(axis=0)) for by in decisions)
        return policy, bare

    def _notes(self, within_capacity: bool) -> Iterator[str]:
        """Yield what a user should know of the policy."""
        if not self.probability_map.is_fitted and self.rule in ("auto", "expected_cost"):
            yield UNCALIBRATED
        if self.probability_map.falls:
            yield FALLING_ANSWERS if self.cases.answers else FALLING
        if not within_capacity:
            yield OVER_CAPACITY if self.limits.errors else ABSTAINED_TOO_OFTEN

    def _map(self, chosen: Mask) -> ProbabilityMap:
        """Fit a map to some of the cases, but for those without a score."""
        rows = np.flatnonzero(chosen & ~self.abstained)
        columns = self.scores[rows], self.truth[rows], self.cases.mass[rows]
        return fitted_map(*columns, self.cases.positive)

    def _keyed(self, probability_map: ProbabilityMap) -> KeyedCases:
        """Return what a policy sees of each case under a map."""
        p, n = probability_map(self.scores), self.cases.n
        actions = np.full((n, 3), self.review)
        if self.scores.ndim == 2:
            actions[:, 0], key = self._cheapest_class(p)
            price, is_low = -key, np.ones(n, dtype=np.bool_)
        elif self.cases.answers:
            actions[:, 2], key = 1, self.scores
            # Any rising price orders answers alike, and the score has seen no label.
            price, is_low = key, np.zeros(n, dtype=np.bool_)
        else:
            negative, positive = 1 - self.cases.positive, self.cases.positive
            actions[:, 0], actions[:, 2], key = negative, positive, self.scores
            expected = p @ self.costs.matrix
            is_low = expected[:, negative] < expected[:, positive]
            loss = expected.min(axis=1) - p @ self.costs.reviewed
            error = np.where(is_low, p[:, positive], p[:, negative])
            price = (self.costs.price - loss) / error
        actions[self.abstained] = self.review
        key, price = (np.where(self.abstained, -inf, column) for column in (key, price))
        return KeyedCases(key, actions, p, price, is_low)

    def _cheapest_class(self, p: Floats) -> tuple[Integers, Floats]:
        """Return the cheapest of several classes by probabilities, and its expected loss.

        The loss is the expected cost beyond that of what a reviewer decides; by the rule
        "confidence" it is one minus the confidence.
        """
        matrix, reviewed = self.costs.matrix, self.costs.reviewed
        if self.rule == "confidence":
            p = ProbabilityMap()(self.scores)
            matrix, reviewed = 1.0 - np.eye(self.review), np.zeros(self.review)
        expected, unit = p @ matrix, _LOSS_ROUNDING * (float(matrix.max()) or 1.0)
        # Losses that differ by rounding alone are equal, whatever the order of the cases.
        least = expected.min(axis=1)
        decided = (expected <= least[:, np.newaxis] + unit).argmax(axis=1)
        return decided, np.rint((least - p @ reviewed) / unit) * unit

    def _table(
        self, probability_map: ProbabilityMap, rows: Indices, most_groups: int | None = None
    ) -> SortedCases:
        """Return some cases in the order of their key; neighbours may be grouped."""
        keyed = self._keyed(probability_map).take(rows)
        order = np.argsort(keyed.key, kind="stable")
        keyed, rows = keyed.take(order), rows[order]
        starts = np.flatnonzero(np.append(True, keyed.key[1:] != keyed.key[:-1]))
        n_groups = starts.size
        if most_groups is not None and n_groups > most_groups:
            # The first two groups stay apart: the first may be of cases without a score.
            chosen = np.union1d(np.arange(most_groups) * n_groups // most_groups, [1])
            starts = starts[chosen]
        several, n_groups = self.scores.ndim == 2, starts.size
        allowed = AllowedCuts(n_groups, n_groups if several else 0)
        if self.cases.answers:
            allowed = AllowedCuts(0, int(keyed.key[0] == -inf))
        blends = {"auto": PRIOR_CASES / (PRIOR_CASES + rows.size), "expected_cost": 1.0}
        return SortedCases(
            keyed,
            rows,
            starts,
            self.cases.mass[rows],
            self.costs,
            blends.get(self.rule, 0.0),
            allowed,
            -inf if several else 0.0,
            probability_map.falls,
        )

    def _cheapest(self, table: SortedCases, allowed: AllowedCuts, share: float) -> Cuts:
        """Return the cheapest cuts by the rule, if this share of the mass can be reviewed."""
        if allowed.pairs is None and self.rule in ("auto", "expected_cost") and table.falls:
            # The scores say nothing: decide all cases alike, or review them all.
            n, (last, first, _) = table.n_groups, table.allowed
            allowed = allowed._replace(pairs=(np.array([0, last, 0]), np.array([n, n, first])))
        if self.rule == "confidence" and self.scores.ndim == 1 and not self.cases.answers:
            score = table.keyed.key
            confidence = np.maximum(score, 1.0 - score)
            # At one half the first class is predicted, be it the positive one or not.
            is_low = score <= 0.5 if self.cases.positive == 1 else score < 0.5
            levels = np.unique(np.append(confidence, 0.0))
            allowed = allowed._replace(pairs=table.cuts_above(levels, confidence, is_low))
        return cheapest_cuts(table.sums, allowed, table.capacity(share))

    def _cuts(self, table: SortedCases, allowed: AllowedCuts) -> Cuts:
        """Return the cuts that some cases choose."""
        if self.criterion == "cost" or table.falls:
            return self._cheapest(table, allowed, self.capacity)
        capacity = table.capacity(self.capacity)
        return least_fragile(table, self._bound(table, allowed), allowed, capacity)

    def _bound(self, table: SortedCases, allowed: AllowedCuts) -> float:
        """Return the mean cost that shifts should not raise the cost of a policy above."""
        return cost_bound(table, self.cost_tolerance, allowed, table.capacity(self.capacity))

    def _thresholds(
        self, table: SortedCases, cuts: Cuts, certified: Certified
    ) -> tuple[float, float]:
        """Return thresholds at the cuts, which automate no case that a guarantee does not."""
        lower, upper = table.threshold(cuts.lower), table.threshold(cuts.upper)
        if not certified.guarantees:
            return lower, upper
        several, pairs = self.scores.ndim == 2, certified.allowed.pairs
        bounds = cuts[:2] if several or pairs is not None else certified.allowed[:2]
        (highest,), (lowest,) = table.closest_thresholds(*(np.array([cut]) for cut in bounds))
        lower, upper = min(lower, float(highest)), max(upper, float(lowest))
        if not self.offers_reviews:  # no score may lie between the two
            lower = upper = lower if "miss_rate" in self.limits.errors else upper
        return lower, upper

    def _cross_fitted(self) -> KeyedCases:
        """Return what a policy sees of each case under the map of the other folds."""
        cross_fitted = self._keyed(self._maps[0])
        for fold, probability_map in enumerate(self._maps[1:], start=1):
            rows, keyed = np.flatnonzero(self._deals[0] == fold), self._keyed(probability_map)
            for column, values in zip(cross_fitted, keyed, strict=True):
                column[rows] = values[rows]
        return cross_fitted

    @property
    def _is_weighted(self) -> bool:
        """Whether cases differ in weight or come in clusters, so that errors cannot be counted."""
        weight = self.cases.weight
        uneven = weight is not None and bool((weight != weight[0]).any())
        return uneven or self.cases.cluster is not None

    def _path_cases(self, table: SortedCases, keyed: KeyedCases, rows: Indices) -> PathCases:
        """Return the cases that prove the limits: all, or the plain half of a sample."""
        cases = self.cases
        if cases.plain is not None:
            keyed, rows = keyed.take(np.flatnonzero(cases.plain[rows])), rows[cases.plain[rows]]
        decided = keyed.actions[np.arange(rows.size), np.where(keyed.is_low, 0, 2)]
        group = np.searchsorted(table.low, keyed.key, side="right") - 1
        path = PathCases(
            keyed.price,
            decided != self.truth[rows],
            np.where(self.abstained[rows], -1, group),
            self.truth[rows] == cases.positive,
        )
        if not self._is_weighted:
            return path
        cluster = np.arange(cases.n) if cases.cluster is None else cases.cluster
        order = random_generator(self.random_state + 1).permutation(int(cluster.max()) + 1)
        return path._replace(weight=cases.unit[rows], cluster=order[cluster[rows]])

    def _certified_by(self, table: SortedCases) -> Certified:
        """Return the cuts that keep the limits on some of the cases, as if they were as many."""
        certified = self._certified
        if not certified.guarantees:
            return Certified(table.allowed, ())
        if self._is_weighted:  # bets on fewer clusters prove less: limits are those of all cases
            return certified._replace(allowed=table.translated(certified.allowed, self._whole))
        path = self._path_cases(table, table.keyed, table.rows)
        n = self.cases.n if self.cases.plain is None else int(self.cases.plain.sum())
        return certify(table, path, self.limits, n / path.price.size)


def policy_folds(cases: Cases, model: str, random_state: int) -> list[Integers]:
    """Return the folds of cases, for each of several ways to deal cases to folds.

    Raises
    ------
    ValueError
        If there are too few clusters, or clusters separate the classes.
    """
    truth = cases.truth(model)
    if cases.cluster is not None:
        n_clusters = int(cases.cluster.max()) + 1
        require(
            n_clusters >= LEAST_CASES,
            "A policy is chosen on some cases and measured on others, which takes at least "
            f"{LEAST_CASES} clusters of cases; got {n_clusters}.",
        )
    deals = fold_assignments(cases, truth, random_state, N_DEALS if cases.n <= MANY_CASES else 1)
    if cases.cluster is not None:
        for folds in deals:
            _check_classes(truth, folds)
    return deals


def _check_classes(truth: Integers, folds: Integers) -> None:
    """Refuse folds whose other cases are of one class: clusters may be of one class each."""
    for fold in range(int(folds.max()) + 1):
        require(
            np.unique(truth[folds != fold]).size > 1,
            "The clusters separate the classes: without some of them the other cases are of one "
            "class, and nothing can be chosen on those. Are they clusters of cases that belong "
            "together?",
        )
