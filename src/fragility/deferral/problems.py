"""Cases of a model as a problem whose solution is a policy, and the solution as a policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._random import content_order, random_generator, spread_over_folds
from .._typing import Floats, Indices, Integers, Interval
from .._validation import LabelledScores
from ..calibration.cases import fitted_temperature
from ..calibration.cross_fitting import CannotCalibrateError, check_can_calibrate
from ..calibration.table import (
    FOLDS,
    ScoreTable,
    TableCalibration,
    calibrated_table,
    dealt_folds,
)
from ..exact import MOST_TERMS
from ..scores.cases import Cases
from ..scores.state import ScoreState
from .choosing import Allowed, cheapest
from .costs import Costs
from .decision_rules import LossLimit, TwoThresholds
from .loss_bins import BinnedClasses, LossBins
from .policy import Policy
from .reviews import CaseReviews
from .settings import PolicySettings
from .several_classes import (
    ExpectedLoss,
    SeveralClasses,
    SeveralClassPart,
)
from .solving import Solved, equally_cheap
from .two_classes import TwoClasses, TwoClassPart
from .two_thresholds import Box, Cuts

#: With fewer cases nothing is learned from some about the others.
LEAST_CASES = 4
#: A case that makes this share of the cost is named.
_DOMINANT = 0.1

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
DECLINED_TOO_OFTEN = "Cases that the model declined need more reviews than the capacity allows."


def dominant_case(name: str, paid: float, total: float) -> str:
    """Sentence on a case that makes a tenth of the cost or more; empty if it does not."""
    if total <= 0.0 or paid < _DOMINANT * total:
        return ""
    who = f"One case, {name}," if name else "One case"
    return (
        f"{who} makes {100 * paid / total:.0f} % of the cost: without it the policy and its cost "
        "may differ."
    )


def check_enough(n_cases: float, clusters: Integers | None = None) -> None:
    """Refuse to choose on too few cases, or clusters of them."""
    if n_cases < LEAST_CASES:
        what = "cases (of positive weight)" if clusters is None else "clusters of cases"
        raise ValueError(
            f"A policy is chosen on some cases and measured on others, which takes at least "
            f"{LEAST_CASES} {what}; got {n_cases:.0f}."
        )


def check_folds(codes: NDArray[Any], folds: Indices) -> None:
    """Refuse folds whose other cases are of one class: clusters may be of one class each."""
    for fold in range(int(folds.max()) + 1):
        if np.unique(codes[folds != fold]).size < 2:
            raise ValueError(
                "The clusters separate the classes: without some of them the other cases are of "
                "one class, and nothing can be chosen on those. Are they clusters of cases that "
                "belong together?"
            )


def two_classes(
    table: ScoreTable,
    positive: int,
    labels: NDArray[Any],
    costs: Costs,
    seed: int,
    calibration: TableCalibration | None = None,
    case_folds: Sequence[Integers | Floats] | None = None,
    *,
    answers: bool = False,
    declined: Mapping[str, float] | None = None,
) -> TwoClasses:
    """The problem of two classes, or of `answers` and `declined` cases, see `TwoClasses`.

    `calibration` is that of the table by Platt maps, if it is known, whose folds are taken;
    `case_folds` are folds of its cases that were drawn in another way.
    """
    check_enough(float(table.units.sum()))
    few = int(table.units.sum(axis=1).min()) < 2
    folds = case_folds
    if folds is None and calibration is not None:
        folds = calibration.folds
    if folds is None:
        folds = dealt_folds(table, positive, seed, FOLDS if few else None)
    if calibration is None and not few:
        calibration = calibrated_table(table, positive, labels, seed, folds, "platt")
    return TwoClasses(table, positive, costs, calibration, folds, answers, declined)


def several_classes(
    data: LabelledScores,
    case_costs: Floats | None,
    reviews: CaseReviews | None,
    costs: Costs,
    rule: str,
    seed: int,
    clusters: Integers | None = None,
) -> SeveralClasses:
    """The problem of several classes; all cases have weight."""
    check_enough(data.codes.size)
    folds = case_folds(data, case_costs if reviews is None else reviews.column, seed, clusters)
    temperatures, temperature = [1.0] * (int(folds.max()) + 1), 1.0
    if can_calibrate(data):
        temperatures = [fitted_temperature(data, folds != k) for k in range(len(temperatures))]
        temperature = fitted_temperature(data)
    known = can_calibrate(data)
    own = case_costs, reviews, costs, rule
    return SeveralClasses(data, *own, folds, temperatures, temperature, known)


def binned_classes(
    batches: Iterable[Cases],
    model: str,
    loss: ExpectedLoss,
    state: ScoreState,
    costs: Costs,
    seed: int,
) -> BinnedClasses:
    """The problem of several classes, of so many cases that one map is fitted to a sample."""
    bins = loss_bins(loss, costs, state)
    for batch in batches:
        add_to_bins(bins, batch, model)
    return BinnedClasses(bins, costs, loss.temperature, seed)


def loss_bins(loss: ExpectedLoss, costs: Costs, state: ScoreState) -> LossBins:
    """Bins for the losses of the cases of a state."""
    return LossBins(
        loss,
        costs,
        weighted=state.weighted,
        priced=bool(state.priced),
        reviewed=bool(state.reviewed),
    )


def add_to_bins(bins: LossBins, cases: Cases, model: str) -> None:
    """Add cases, as many at a time as sums take."""
    for start in range(0, cases.size, MOST_TERMS):
        part = cases.take(slice(start, start + MOST_TERMS))
        reviews = CaseReviews.of(part)
        if part.costs is not None or reviews is not None:
            part = part.weighted()
        bins.add(part.scores[model], part.codes, part.weights, part.costs, reviews)


def sample_cases(state: ScoreState, model: str) -> tuple[LabelledScores, Integers]:
    """The sample of cases that a state keeps, weighted by how often each came, and how often."""
    sample = state.sample()
    assert sample is not None
    weights = sample.counts.astype(np.float64)
    if sample.cases.weights is not None:
        weights *= sample.cases.weights
    return state.labelled(model, sample.cases._replace(weights=weights)), sample.counts


def sample_temperature(state: ScoreState, model: str) -> float:
    """Temperature of several classes, fitted to the sample of cases that a state keeps."""
    return fitted_temperature(sample_cases(state, model)[0])


def can_calibrate(data: LabelledScores) -> bool:
    """Whether every class that occurs has two cases."""
    try:
        check_can_calibrate(data.labels, data.support)
    except CannotCalibrateError:
        return False
    return True


def case_folds(
    data: LabelledScores,
    beside: NDArray[Any] | None,
    seed: int,
    clusters: Integers | None = None,
) -> Indices:
    """Fold of each case, whatever the order of the cases; clusters are kept whole.

    `beside` tells cases apart that are alike in all else, see `fragility.scores.cases.Cases`.
    """
    rng, n = random_generator(seed), data.codes.size
    if clusters is not None:
        check_enough(int(clusters.max()) + 1, clusters)
        drawn = cluster_order(clusters, case_kinds(data, beside), rng)
        found = drawn % min(FOLDS, int(drawn.max()) + 1)
        check_folds(data.codes, found)
        return found
    more = [] if beside is None else [beside]
    order = content_order(data.codes, data.scores, data.weights, more)
    folds = np.empty(n, dtype=np.intp)
    n_folds = min(FOLDS, n)
    if can_calibrate(data):
        n_folds = min(n_folds, int(data.support[data.support > 0].min()))
    folds[order] = spread_over_folds(data.codes[order], n_folds, rng)
    return folds


def cluster_order(clusters: Integers, kinds: Integers, rng: np.random.Generator) -> Integers:
    """Random number of each case's cluster, from 0, that depends on what the cases are alone.

    `kinds` are those of `case_kinds`.
    """
    n_clusters = int(clusters.max()) + 1
    first = np.full(n_clusters, clusters.size)
    np.minimum.at(first, clusters, kinds)
    # A random number of each kind, summed: clusters of other cases have another sum.
    drawn = random_generator(0).integers(2**63, size=int(kinds.max()) + 1, dtype=np.uint64)
    content = np.zeros(n_clusters, dtype=np.uint64)
    np.add.at(content, clusters, drawn[kinds])
    rank = np.empty(n_clusters, dtype=np.int64)
    rank[np.lexsort((content, first))] = rng.permutation(n_clusters)
    return rank[clusters]


def case_kinds(data: LabelledScores, beside: NDArray[Any] | None) -> Integers:
    """Number of each case, from 0 in the order of what they are; the same for equal cases."""
    more = [] if beside is None else [beside]
    order = content_order(data.codes, data.scores, data.weights, more)
    parts = [data.codes, data.scores, data.weights, beside]
    new = np.zeros(order.size, dtype=np.bool_)
    for part in parts:
        if part is not None:
            rows = part[order].reshape(order.size, -1)
            new[1:] |= (rows[1:] != rows[:-1]).any(axis=1)
    kinds = np.empty(order.size, dtype=np.int64)
    kinds[order] = np.cumsum(new)
    return kinds


def policy_of_two(
    problem: TwoClasses,
    solved: Solved,
    labels: NDArray[Any],
    settings: PolicySettings,
    confidence: float,
    n_samples: int,
    finer: tuple[TwoClassPart, Cuts] | None = None,
) -> Policy:
    """Policy of two classes; `finer` are cuts among finer scores, for the printed thresholds."""
    part, cuts = (problem.whole, solved.cuts) if finer is None else finer
    capacity = problem.costs.capacity
    bare = cheapest(part, settings.rule, 0.0)
    lower, upper = part.thresholds(cuts)
    if solved.guarantees:
        lower, upper = certain_thresholds(problem.whole, solved.allowed, part, cuts)
    suggestion = min(max(part.threshold(bare.lower), lower), upper)
    box = part.widest
    if solved.guarantees:
        allowed = solved.allowed if finer is None else part.refined(solved.allowed, problem.whole)
        box = allowed.box if allowed.points is None else Box(cuts.lower, cuts.upper)
    share = 1.0 if capacity is None else capacity
    lowers, uppers = equally_cheap(part, cuts, confidence, box, share)
    decision = TwoThresholds(lower, upper, suggestion, *TwoThresholds.line(problem.map))
    notes = []
    if problem.calibration is None and settings.rule in ("auto", "expected_cost"):
        notes.append(UNCALIBRATED)
    if problem.whole.falling:
        notes.append(FALLING_ANSWERS if problem.answers else FALLING)
    found = _policy(decision, labels, problem.positive, problem.costs, solved, settings, confidence)
    weight = part.weight
    reviewed = float(weight[cuts.lower : cuts.upper].sum()) / float(weight.sum())
    within = capacity is None or reviewed <= capacity + 1e-9
    above = OVER_CAPACITY if solved.guarantees else DECLINED_TOO_OFTEN
    return replace(
        found,
        automation_rate=1.0 - reviewed if reviewed > 0.0 else 1.0,
        lower_interval=Interval(*(part.threshold(cut) for cut in lowers)),
        upper_interval=Interval(*(part.threshold(cut) for cut in uppers)),
        n_samples=n_samples,
        within_capacity=within,
        notes=(*notes, *([] if within else [above])),
        answers=problem.answers,
        # An answer is never held to be wrong, so none is missed.
        misses=nan if problem.answers else found.misses,
        false_alarms=nan if problem.answers else found.false_alarms,
    )


def certain_thresholds(
    whole: TwoClassPart, allowed: Allowed, part: TwoClassPart, cuts: Cuts
) -> tuple[float, float]:
    """Thresholds at the cuts of a part, no wider than what is allowed of the whole."""
    lower, upper = part.thresholds(cuts)
    inside, chosen = (whole, allowed.box) if allowed.points is None else (part, cuts)
    highest, lowest = inside.ends_of(np.array([chosen[0]]), np.array([chosen[1]]))
    return min(lower, float(highest[0])), max(upper, float(lowest[0]))


def policy_of_several(
    problem: SeveralClasses | BinnedClasses,
    solved: Solved,
    labels: NDArray[Any],
    settings: PolicySettings,
    confidence: float,
    n_samples: int,
) -> Policy:
    """Policy of several classes."""
    part = problem.whole
    decision = LossLimit(
        certain_limit(
            part, solved.cuts, problem.costs.matrix(labels.size), bool(solved.guarantees)
        ),
        problem.temperature,
        settings.rule == "confidence",
    )
    capacity, box = problem.costs.capacity, part.widest
    if solved.guarantees:
        box = Box(solved.cuts.lower, part.n_places)
        if solved.allowed.points is None:
            box = solved.allowed.box
    share = 1.0 if capacity is None else capacity
    (first, last), _ = equally_cheap(part, solved.cuts, confidence, box, share)
    ends = [part.limit(Cuts(cut, part.n_places)) for cut in (first, last)]
    found = _policy(decision, labels, 1, problem.costs, solved, settings, confidence)
    notes = []
    if not problem.calibrated and settings.rule in ("auto", "expected_cost"):
        notes.append(UNCALIBRATED)
    within = capacity is None or 1.0 - solved.automation_rate <= capacity + 1e-9
    return replace(
        found,
        lower_interval=Interval(*ends),
        n_samples=n_samples,
        within_capacity=within,
        notes=(*notes, *([] if within else [OVER_CAPACITY])),
    )


def certain_limit(part: SeveralClassPart, cuts: Cuts, matrix: Floats, limited: bool) -> float:
    """Largest loss that is decided alone; below every loss if none is.

    If errors are `limited`, a loss that was seen: nobody knows what lies between two of them.
    """
    limit = part.limit(cuts)
    if limit == -inf:
        return -1.0 - float(matrix.max())
    return part.largest_loss(cuts) if limited and limit < inf else limit


def _policy(
    decision: TwoThresholds | LossLimit,
    labels: NDArray[Any],
    positive: int,
    costs: Costs,
    solved: Solved,
    settings: PolicySettings,
    confidence: float,
) -> Policy:
    held_out, undefined = solved.held_out, Interval(nan, nan)
    if np.ndim(costs.error_cost) == 1:
        costs = replace(costs, error_cost=float(np.mean(costs.error_cost)))
    return Policy(
        decision,
        tuple(labels.tolist()),
        positive,
        costs,
        held_out.cost,
        held_out.interval(confidence, solved.n_independent),
        solved.automation_rate,
        held_out.error_rate,
        held_out.error_share,
        held_out.misses,
        held_out.false_alarms,
        undefined,
        undefined,
        solved.without_review.cost,
        solved.full_review.cost,
        solved.fragile.fragility,
        solved.fragile.interval,
        solved.fragile.bound,
        solved.guarantees,
        settings.rule,
        settings.criterion,
        0,
        confidence,
        against_no_review=solved.against_no_review.compared(
            held_out.cost, solved.without_review.cost, confidence
        ),
        against_full_review=solved.against_full_review.compared(
            held_out.cost, solved.full_review.cost, confidence
        ),
    )
