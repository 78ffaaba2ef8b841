"""best_policy: who should decide, the model or a human, at which thresholds, at what cost."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._labels import check_clusters
from .._parameters import check_confidence, check_count
from .._random import random_generator
from .._typing import Floats, Indices, Integers
from .._validation import LabelledScores, check_labelled_probabilities
from ..calibration.table import ScoreTable, folds_by_place
from ..measured import Measured
from ..moments import order_one_factor
from ..scores import HOLD
from ..scores.cases import Cases
from ..scores.state import ScoreState, clipped
from ..scores.sums import binned_scores
from .costs import Costs
from .guarantees import WeightedCases, certify_weighted
from .held_out import ClusterCosts, paid_by_case
from .loss_bins import BinnedClasses
from .policy import Policy
from .problems import (
    FALLING,
    binned_classes,
    can_calibrate,
    case_folds,
    case_kinds,
    cluster_order,
    dominant_case,
    policy_of_several,
    policy_of_two,
    sample_temperature,
    several_classes,
    two_classes,
)
from .reviewers import Reviewers, clustered_rates, error_rates
from .reviews import CaseReviews, given_reviews, measured_rates
from .settings import PolicySettings
from .several_classes import ExpectedLoss, SeveralClasses
from .solving import Solved, choose, held_out_mix, solve
from .two_classes import TwoClasses

#: The least fragile policy of more cases has thresholds at the edges of bins: it is found by many
#: searches.
_MANY_CASES = 100_000

AnyProblem = TwoClasses | SeveralClasses | BinnedClasses


def best_policy(
    y_true: ArrayLike,
    proba: ArrayLike,
    *,
    error_cost: ArrayLike,
    review_cost: float = 1.0,
    capacity: float | None = None,
    reviewer_error: Any = 0.0,
    human: ArrayLike | None = None,
    max_error_share: float | None = None,
    max_error_rate: float | None = None,
    max_misses: float | None = None,
    max_false_alarms: float | None = None,
    guarantee: float | None = None,
    rule: str = "auto",
    criterion: str = "cost",
    slack: float = 0.1,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    labels: Sequence[Any] | NDArray[Any] | None = None,
    pos_label: Any = None,
    confidence: float = 0.95,
    random_state: int = 0,
) -> Policy:
    r"""Policy to deploy: what the model decides alone, and what a human should review.

    Two classes have two thresholds: negative below the lower one, positive from the upper one on,
    a review between. Several classes are decided alone where the expected loss is small enough. The
    cheapest policy is found exactly. What it will cost is measured on cases that did not choose it,
    by cross-fitting.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The true classes.
    proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of cases that the model was not fitted to: of the positive class, or of every
        class.
    error_cost : float, (n_classes, n_classes) or (n_samples,) array-like
        Cost of a wrong decision that nobody looked at: one number, a matrix (true × decided class,
        in the order of the labels; the diagonal is what right decisions cost), a DataFrame with
        the classes as index (true) and columns (decided) in any order, or one number for each case.
    review_cost : float, default=1.0
        Cost of having a human look at a case, beside what the decision then costs.
    capacity : float, optional
        Largest share of the cases (by weight) that humans can review.
    reviewer_error : float, mapping or array-like, default=0.0
        Share of the reviewed cases that the human gets wrong: one number; one for each class, in
        the order of the labels, as ``{label: share}`` or as a Series with the classes as index; or
        one for each case. Such an error costs the mean over the wrong classes.
    human : array-like of shape (n_samples,), optional
        The class that a human decided on each case, in the place of `reviewer_error`: a reviewed
        case costs what its own human decision costs, and `Policy.reviewers` compares humans alone,
        the model alone and the policy.
    max_error_share, max_error_rate : float, optional
        Limits of the errors of the model: as a share of all cases, and of those that it decides
        alone. They hold in the population that the cases are from, with probability `guarantee`.
    max_misses, max_false_alarms : float, optional
        The same for positives decided negative, as a share of the positives, and for negatives
        decided positive, as a share of the negatives.
    guarantee : float, optional
        Probability with which all limits hold together, by default 0.95.
    rule : {"auto", "tuned", "expected_cost", "confidence"}, default="auto"
        Costs to choose by. "tuned": those of the cases. "expected_cost": those that calibrated
        probabilities expect (Chow's rule). "auto": both, the latter with a weight of
        1000 / (1000 + n). "confidence": those of the cases, but with one threshold of the
        confidence, and the most probable class above it; for comparison.
    criterion : {"cost", "fragility"}, default="cost"
        "fragility": of all policies whose cost is at most best + slack · (full review − best), the
        one whose cost is least fragile when the mix of cases shifts.
    slack : float, default=0.1
    cluster : array-like of shape (n_samples,), optional
        Cases that belong together, such as those of one patient: folds keep them together, and
        intervals and guarantees count clusters, not cases.
    sample_weight : array-like of shape (n_samples,), optional
    labels : sequence, optional
        All classes, in the order of the columns; by default the sorted classes of `y_true`.
    pos_label : label, optional
        The class that a single column is about; by default the second of two.
    confidence : float, default=0.95
        Of the intervals.
    random_state : int, default=0
        Seed of the folds. The order of the cases does not matter.

    Returns
    -------
    Policy

    Notes
    -----
    The guarantees of misses and false alarms are theorems, for independent cases without weights;
    so is that of the error share for a path of policies that saw none of these labels. The path
    used here is that of the lowest cost by calibrated probabilities, each by a map of the other
    folds: that limits hold then, too, rests on simulation, as for the error rate, which is tested
    along one fixed sequence. With weights or clusters, bets on one cluster after the other are used
    instead, valid for any bounded clusters; the largest cluster is taken for the bound. There the
    limits were proved on all cases, also for the cost and errors that are printed.

    `capacity` is kept on the cases that choose, on others up to chance. With costs by case the
    policy looks at the scores alone, as if every case had the mean cost. Likewise, where reviewers
    err by case, expected costs of reviews are those of the mean errors of each class.

    Examples
    --------
    >>> import numpy as np
    >>> from fragility import best_policy
    >>> logit = np.random.default_rng(0).normal(-1, 2, size=5000)
    >>> sick = np.random.default_rng(1).random(5000) < 1 / (1 + np.exp(-logit))
    >>> p = 1 / (1 + np.exp(-logit))
    >>> policy = best_policy(sick, p, error_cost=[[0, 1], [10, 0]], review_cost=0.5)
    >>> print(policy.sentences()[0])  # doctest: +ELLIPSIS
    Decide False below ... %, True from ... % on, a human reviews the rest. Decided alone: ...
    >>> policy.decide([0.01, 0.3, 0.9]).label.tolist()
    [False, True, True]
    """
    settings = PolicySettings.of(
        rule=rule,
        criterion=criterion,
        slack=slack,
        guarantee=guarantee,
        max_error_share=max_error_share,
        max_error_rate=max_error_rate,
        max_misses=max_misses,
        max_false_alarms=max_false_alarms,
    )
    confidence = check_confidence(confidence)
    seed = check_count(random_state, "random_state", 0)
    data = check_labelled_probabilities(
        y_true, proba, labels, pos_label, sample_weight, name="proba"
    )
    settings = settings.checked(data.labels.size)
    costs = Costs(error_cost, review_cost, capacity, reviewer_error)
    cases = PolicyCases.of(data, costs, cluster, human)
    return cases.policy(settings, confidence, seed)


@dataclass(frozen=True, eq=False)
class PolicyCases:
    """Cases of positive weight, with what belongs to them.

    Attributes
    ----------
    data : LabelledScores
    costs : Costs
        Costs by case at their mean, errors of reviewers by case at the means of the classes.
    case_costs : ndarray, optional
    reviews : CaseReviews, optional
    clusters : ndarray of int, optional
    rows : ndarray of int
        Row of each case in the data of the user.
    declined : mapping of str to float, optional
        Amounts of the cases without an answer, see `TwoClasses`.
    declined_clusters : (ndarray, ndarray), optional
        Weight and cluster of each of these.
    """

    data: LabelledScores
    costs: Costs
    case_costs: Floats | None
    reviews: CaseReviews | None
    clusters: Integers | None
    rows: NDArray[Any]
    declined: Mapping[str, float] | None = None
    declined_clusters: tuple[Floats, Integers] | None = None

    @classmethod
    def of(
        cls,
        data: LabelledScores,
        costs: Costs,
        cluster: ArrayLike | None = None,
        human: ArrayLike | None = None,
    ) -> PolicyCases:
        """Of checked predictions; all else is checked here."""
        n, n_classes = data.codes.size, data.labels.size
        costs = costs.checked(n_classes, n, data.labels.tolist())
        reviews = given_reviews(data, costs, human)
        by_case = np.asarray(costs.error_cost) if np.ndim(costs.error_cost) == 1 else None
        rows, scores, weights = np.arange(n), clipped(data), data.weights
        clusters = check_clusters(cluster, n)
        if weights is not None:
            rows = np.flatnonzero(weights)
            weights = weights[rows] * order_one_factor(float(weights.max()))
            if weights.min() == weights.max():  # as good as none
                weights = None
            scores = scores[rows]
            by_case = None if by_case is None else by_case[rows]
        if clusters is not None:
            clusters = np.unique(clusters[rows], return_inverse=True)[1]
        data = replace(data, scores=scores, codes=data.codes[rows], weights=weights)
        if reviews is not None:
            reviews = reviews.take(rows)
            rates = measured_rates(reviews.sums(n_classes, weights), reviews.kind)
            costs = replace(costs, reviewer_error=rates)
        if by_case is not None:
            costs = replace(costs, error_cost=np.array([np.average(by_case, weights=weights)]))
        return cls(data, costs, by_case, reviews, clusters, rows)

    @property
    def beside(self) -> NDArray[Any] | None:
        """What tells cases apart that are alike in all else."""
        return self.case_costs if self.reviews is None else self.reviews.column

    @cached_property
    def reviewed(self) -> Floats | None:
        """What each case costs if it is reviewed, where that differs by case."""
        if self.reviews is None:
            return None
        return self.reviews.costs(self.costs, self.data.labels.size)

    @property
    def capacity(self) -> float:
        return 1.0 if self.costs.capacity is None else self.costs.capacity

    @cached_property
    def weights(self) -> Floats:
        """Weights, one each if none were given."""
        return np.ones(self.data.codes.size) if self.data.weights is None else self.data.weights

    @cached_property
    def table(self) -> ScoreTable:
        """Scores of two classes in the bins of a report."""
        counted = self.case_costs is None and self.reviews is None
        weights = self.data.weights if counted else self.weights
        more = self.case_costs, self._slips
        found = binned_scores(self.data.scores, self.data.codes, weights, *more)
        return ScoreTable.of_bins(found)

    @property
    def _slips(self) -> Floats | None:
        return None if self.reviews is None else self.reviews.slips

    def _places(self, problem: TwoClasses) -> Indices:
        """Place of each case in the table of its problem."""
        return problem.table.places(self.data.scores.astype(np.float64))

    def kinds(self, problem: AnyProblem) -> Integers:
        """Kind of each case among the outcomes of its problem."""
        n = self.data.codes.size
        own, n_rows = np.arange(n), n
        if isinstance(problem, BinnedClasses):
            return problem.bins.kinds(self.data.scores, self.data.codes)
        if isinstance(problem, TwoClasses):
            own, n_rows = self._places(problem), problem.table.scores.size
        return self.data.codes.astype(np.int64) * n_rows + own

    def problem(self, rule: str, seed: int, *, by_case: bool) -> AnyProblem:
        """The problem; `by_case`, if single cases are dealt to folds and not those of a bin."""
        data = self.data
        if not data.is_binary and self._many and not by_case:
            return self._binned(rule, seed)
        if not data.is_binary:
            own = self.case_costs, self.reviews, self.costs
            return several_classes(data, *own, rule, seed, self.clusters)
        folds = [self._folds_by_place(seed)] if by_case else None
        return two_classes(
            self.table,
            data.positive,
            data.labels,
            self.costs,
            seed,
            None,
            folds,
            answers=data.answers,
            declined=self.declined,
        )

    @property
    def _many(self) -> bool:
        """Whether there are more scores than a report holds: then losses are in bins."""
        return self.data.scores.size > HOLD

    @cached_property
    def _state(self) -> ScoreState:
        data = self.data
        state = ScoreState(data.labels, ["model"], (), data.weights is not None, np.inf)
        cases = Cases(data.codes, {"model": data.scores}, data.weights, None, self.case_costs)
        if self.reviews is not None:
            found = self.reviews
            cases = cases._replace(human=found.human, reviewer_errors=found.errors)
        return state.add(cases)

    def _binned(self, rule: str, seed: int) -> BinnedClasses:
        temperature = sample_temperature(self._state, "model") if can_calibrate(self.data) else 1.0
        loss = ExpectedLoss.of(self.costs, self.data.labels.size, temperature, rule)
        return binned_classes(self._state.held, "model", loss, self._state, self.costs, seed)

    def _folds_by_place(self, seed: int) -> Floats:
        """Units of each class, fold and place; by weight, where some outweigh the others."""
        return folds_by_place(self.table, self.data, self._drawn_folds(seed))

    def _drawn_folds(self, seed: int) -> Indices:
        return case_folds(self.data, self.beside, seed, self.clusters)

    def policy(self, settings: PolicySettings, confidence: float, seed: int) -> Policy:
        """The best policy."""
        problem, solved = self.solved(settings, confidence, seed)
        made = self._made(problem, solved, settings, confidence)
        if self.reviews is not None and self.reviews.kind == "human":
            rates = self.error_rates(confidence)
            reviewers = Reviewers.of(solved, rates, self.data.labels, confidence)
            made = replace(made, reviewers=reviewers)
        note = self._dominant_case(problem, solved.mix)
        return replace(made, notes=(*made.notes, note)) if note else made

    def solved(
        self, settings: PolicySettings, confidence: float, seed: int
    ) -> tuple[AnyProblem, Solved]:
        """The problem with its solution."""
        grouped = self.clusters is not None
        by_bets = bool(settings.limits.given) and (grouped or self.data.weights is not None)
        problem = self.problem(settings.rule, seed, by_case=by_bets or grouped)
        certified = clusters = None
        if by_bets:
            cases = self._weighted_cases(problem, seed)
            certified = certify_weighted(problem.whole, cases, settings.limits)
        if self.clusters is not None:
            clusters = self._cluster_costs(problem, self.clusters)
        solved = solve(
            problem,
            settings,
            self.capacity,
            confidence=confidence,
            certified=certified,
            clusters=clusters,
        )
        return problem, solved

    def _cluster_costs(self, problem: AnyProblem, clusters: Integers) -> ClusterCosts:
        """Clusters of all cases, those without an answer among them."""
        found = ClusterCosts(self.kinds(problem), self.weights, clusters, self.reviewed)
        if self.declined_clusters is None or not isinstance(problem, TwoClasses):
            return found
        weights, more = self.declined_clusters
        unscored = np.full(more.size, problem.positive * problem.table.scores.size)
        parts = zip(found[:3], (unscored, weights, more), strict=True)
        return ClusterCosts(*(np.concatenate(part) for part in parts))

    def _made(
        self,
        problem: AnyProblem,
        solved: Solved,
        settings: PolicySettings,
        confidence: float,
    ) -> Policy:
        """The solution; of two classes with thresholds between the scores themselves."""
        labels, n = self.data.labels, self.data.codes.size
        if not isinstance(problem, TwoClasses):
            return policy_of_several(problem, solved, labels, settings, confidence, n)
        finer = None
        if settings.criterion == "cost" or n <= _MANY_CASES:
            table = ScoreTable.of_cases(self.data, self.case_costs, self._slips)
            part = problem.refined(table)
            allowed = part.refined(solved.allowed, problem.whole)
            finer = part, choose(part, settings, self.capacity, allowed)
        made = policy_of_two(problem, solved, labels, settings, confidence, n, finer)
        if FALLING in made.notes:
            warnings.warn(FALLING, UserWarning, stacklevel=4)
        return made

    def _weighted_cases(self, problem: AnyProblem, seed: int) -> WeightedCases:
        """Cases along the path of a guarantee."""
        data, order = self.data, self._bet_order(seed)
        positive = data.codes == data.positive
        if not isinstance(problem, TwoClasses):
            assert isinstance(problem, SeveralClasses)  # bins hold no single case
            rows = problem.cross_fitted
            nowhere = np.zeros(data.codes.size, dtype=np.intp)
            wrong = rows.decided != data.codes
            return WeightedCases(nowhere, -rows.loss, wrong, positive, self.weights, order)
        drawn = self._drawn_folds(seed)
        key, negative = np.empty(drawn.size), np.empty(drawn.size, dtype=np.bool_)
        places = self._places(problem)
        for fold in range(int(drawn.max()) + 1):
            own = np.flatnonzero(drawn == fold)
            key[own], negative[own] = problem.whole.key_of(places[own], problem.map_of(fold))
        return WeightedCases(places, key, negative == positive, positive, self.weights, order)

    def _bet_order(self, seed: int) -> Integers:
        data = self.data
        kinds = case_kinds(data, self.beside)
        clusters = np.arange(data.codes.size) if self.clusters is None else self.clusters
        return cluster_order(clusters, kinds, random_generator(seed + 1))

    def held_out_costs(self, settings: PolicySettings, seed: int) -> Floats:
        """Cost of every case at policies that others chose, the mean over the folds of its kind."""
        problem = self.problem(settings.rule, seed, by_case=self.clusters is not None)
        return self._paid(problem, held_out_mix(problem, settings, self.capacity))

    def _paid(self, problem: AnyProblem, mix: Floats) -> Floats:
        """Cost of every case, if the cases of its kind are decided so."""
        codes, own = self.data.codes, (self.case_costs, self.reviewed)
        return paid_by_case(problem.outcomes, mix, self.kinds(problem), codes, self.costs, *own)

    def error_rates(self, confidence: float) -> tuple[Measured, tuple[Measured, ...]]:
        """How often the humans err, on all cases and by class."""
        assert self.reviews is not None
        if self.clusters is not None:
            return clustered_rates(
                self.reviews, self.data.labels.size, self.weights, self.clusters, confidence
            )
        sums = self.reviews.sums(self.data.labels.size, self.data.weights)
        return error_rates(sums, confidence)

    def costs_at(self, policy: Policy) -> Floats:
        """Cost of every case at a policy."""
        made = policy.decide_scores(self.data.scores)
        places = {label: place for place, label in enumerate(self.data.labels.tolist())}
        decided = np.array([places[label] for label in made.label.tolist()])
        costs = self.costs
        if self.case_costs is not None:
            costs = replace(costs, error_cost=self.case_costs)
        alone, reviewed = costs.of_cases(self.data.labels.size, self.data.codes, decided)
        if self.reviewed is not None:
            reviewed = self.reviewed
        return np.where(made.automate, alone, reviewed)

    def _dominant_case(self, problem: AnyProblem, mix: Floats) -> str:
        """Name the case that makes a tenth of the cost or more, if costs differ by case."""
        if self.case_costs is None:
            return ""
        paid = self.weights * self._paid(problem, mix)
        place, total = int(paid.argmax()), float(paid.sum())
        return dominant_case(f"row {self.rows[place]}", float(paid[place]), total)
