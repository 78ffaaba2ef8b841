"""What any policy does with the cases of a report, by cells of the score: what a page counts with.

Cells lie on the path along which policies cut (`fragility.deferral.choosing`). Two classes: the
score, cut at edges of wide bins and at the thresholds of the report's policy, so that every count
is exact on every path. Several classes: the expected loss; without costs, the confidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from .._typing import Floats, Indices
from ..calibration.table import ScoreTable
from ..scores.answer_state import AnswerState
from ..scores.cases import REVIEW_SUMS
from ..scores.layout import Tails
from ..scores.state import ScoreState
from ..scores.sums import Sums
from ..scores.tally import DecisionCounts

if TYPE_CHECKING:  # without costs there are no policies
    from ..deferral.costs import Costs
    from ..deferral.policy import Policy
    from ..deferral.policy_search import AnyProblem
    from ..deferral.several_classes import DecidedRows
    from ..deferral.two_classes import TwoClasses
    from .cost_reading import Decided

#: Thresholds that every page offers: wide bins, narrower towards 0 and 1. The first bins hold
#: nothing but 0 and scores below 2⁻⁴⁹, which the next one may hold, too.
GRID: Floats = np.delete(Tails(8).edges, [1])
#: Cells of the loss of several classes.
_LOSS_CELLS = 240


@dataclass(frozen=True, eq=False)
class PolicyCells:
    """Cases of one model by cells of the path that policies cut, in ascending order.

    At the cuts (i, j) cells before i are decided one way (two classes: negative), cells from j on
    the other way (positive), and those between are reviewed.

    Attributes
    ----------
    cuts : ndarray of shape (n + 1,)
        Threshold at each cut.
    weight : ndarray of shape (n,)
        Of all cases.
    wrong : ndarray of shape (2, n)
        Weight of those that are wrong if they are decided before the lower cut, and from the upper
        cut on. Several classes are decided before the lower cut only: the second row is zero there.
    lost : ndarray of shape (2, n)
        What these cost beyond a right decision, in units of one error (costs by case, and
        matrices of several classes: in money).
    expected : ndarray of shape (2, n)
        The same as calibrated probabilities have it.
    slips, expected_slips : ndarray of shape (2, n), optional
        What errors of reviewers cost in the same units, and as calibrated probabilities have it,
        where they do not err at one rate.
    declined : float
        Weight of cases without a score, which are always reviewed.
    declined_slips : float
        What errors of reviewers cost on these.
    base : float
        What right decisions of all cases cost.
    blend : float
        Share of `expected` in the costs that choose, see `fragility.deferral.choosing`.
    n_cases : float
        Number of cases, fewer where some outweigh the others.
    falling : bool
        Whether the score says nothing: then all cases are decided alike, or reviewed.
    start : (int, int), optional
        Cuts of the policy of the report.
    """

    cuts: Floats
    weight: Floats
    wrong: Floats
    lost: Floats
    expected: Floats
    slips: Floats | None = None
    expected_slips: Floats | None = None
    declined: float = 0.0
    declined_slips: float = 0.0
    base: float = 0.0
    blend: float = 0.0
    n_cases: float = 0.0
    falling: bool = False
    start: tuple[int, int] | None = None


def cells_of_problem(problem: AnyProblem, policy: Policy) -> PolicyCells:
    """Cells of the cases that chose a policy."""
    from ..deferral.two_classes import TwoClasses

    if isinstance(problem, TwoClasses):
        return _cells_of_two(problem, policy)
    whole = problem.whole
    return _cells_of_several(whole.rows, whole.n_cases, policy)


def _thresholds(policy: Policy) -> Floats:
    """Those of a policy, and the ends of those of equal cost."""
    own = [policy.lower, policy.upper, *policy.lower_interval, *policy.upper_interval]
    known = np.array(own)
    return np.unique(known[(known > 0.0) & (known <= 1.0)])


def _grid(low: Floats, high: Floats, own: Floats) -> Floats:
    """Thresholds on offer: one between every two bins of `GRID` that hold scores, and own ones.

    As in `TwoClassPart.threshold` it is the edge nearest to the middle between the scores. No two
    of them do the same with these cases, unless they are own ones.
    """
    places = np.searchsorted(GRID, low, side="right") - 1
    held, first = np.unique(places, return_index=True)
    below, above = high[first[1:] - 1], low[first[1:]]  # scores ascend
    middle = below + (above - below) / 2.0
    after = np.searchsorted(GRID, middle).clip(held[:-1] + 1, held[1:])
    before = (after - 1).clip(held[:-1] + 1, held[1:])
    nearest = np.where(middle - GRID[before] <= GRID[after] - middle, before, after)
    taken = np.searchsorted(own, below, side="right") < np.searchsorted(own, above, side="right")
    return np.unique(np.concatenate([[0.0], GRID[nearest[~taken]], own]))


def _cells_of_two(problem: TwoClasses, policy: Policy) -> PolicyCells:
    from ..deferral.choosing import blend_of

    part, own = problem.whole, _thresholds(policy)
    found = cells_of_table(problem.table, problem.positive, own, problem.costs, part.p)
    cuts = found.cuts
    start = int(np.searchsorted(cuts, policy.lower)), int(np.searchsorted(cuts, policy.upper))
    blend = blend_of(policy.rule, part.n_cases)  # type: ignore[arg-type]
    return replace(found, blend=blend, n_cases=part.n_cases, falling=part.falling, start=start)


def cells_of_table(
    table: ScoreTable,
    positive: int,
    own: Floats | None = None,
    costs: Costs | None = None,
    p: Floats | None = None,
) -> PolicyCells:
    """Cells of two classes; `p` are calibrated probabilities at the places of the table.

    Scores of a place are on one side of every threshold, also of the `own` ones of a policy.
    """
    scored = slice(table.n_unscored, None)
    grid = _grid(table.low[scored], table.high[scored], np.zeros(0) if own is None else own)
    places = np.searchsorted(grid, table.low[scored], side="right") - 1
    order = [positive, 1 - positive]  # what is wrong below, and above

    def by_cell(amounts: Floats) -> Floats:
        rows = np.atleast_2d(amounts)[:, scored]
        return np.stack([np.bincount(places, row, grid.size) for row in rows])

    weight = table.amounts["weight"]
    by_class = weight[order]
    lost = table.amounts.get("costs", weight)[order]
    sure = table.scores if p is None else p
    both = np.stack([sure, 1.0 - sure])
    mean = np.divide(
        lost.sum(axis=0), weight.sum(axis=0), out=np.zeros(sure.size), where=weight.any(axis=0)
    )
    slips = _slips_of_two(table, lost, order, costs)
    wrong, expected = by_cell(by_class), by_cell(both * weight.sum(axis=0) * mean)
    base = 0.0 if costs is None else float((weight.sum(axis=1) * costs.matrix(2).diagonal()).sum())
    unscored = slice(0, table.n_unscored)
    return PolicyCells(
        np.append(grid, inf),
        wrong.sum(axis=0),
        wrong,
        by_cell(lost),
        expected,
        None if slips is None else by_cell(slips),
        None if slips is None or costs is None else expected * costs.rates(2)[order][:, np.newaxis],
        float(weight[:, unscored].sum()),
        float((lost if slips is None else slips)[:, unscored].sum()),
        base,
        n_cases=float(table.units.sum()),
    )


def _slips_of_two(
    table: ScoreTable, lost: Floats, order: list[int], costs: Costs | None
) -> Floats | None:
    """What errors of reviewers cost, in units of an error; None if they err at one rate."""
    if REVIEW_SUMS[0] in table.amounts:
        return table.amounts[REVIEW_SUMS[0]][order]
    if costs is None or np.ndim(costs.reviewer_error) == 0:
        return None
    return lost * costs.rates(2)[order][:, np.newaxis]


def _cells_of_several(rows: DecidedRows, n_cases: float, policy: Policy) -> PolicyCells:
    """Cells of the expected loss of several classes; rows are in its order."""
    from ..deferral.choosing import blend_of
    from ..deferral.decision_rules import LossLimit

    assert isinstance(policy.decision, LossLimit)
    costs, by_class = policy.costs, rows.weight
    weight, n_classes = by_class.sum(axis=0), len(rows.weight)
    own = np.array([policy.decision.limit, *policy.lower_interval])
    limits = np.union1d(_spread(rows.loss, weight), own[np.isfinite(own)])
    places = np.searchsorted(limits, rows.loss)
    right = costs.matrix(n_classes).diagonal()[:, np.newaxis]
    wrong = np.arange(n_classes)[:, np.newaxis] != rows.decided

    def by_cell(amounts: Floats) -> Floats:
        found = np.bincount(places, amounts.sum(axis=0), limits.size + 1)
        return np.stack([found, np.zeros(found.size)])

    alone, reviewed = rows.prices(costs)
    priced, expected_reviews = rows.prices(costs, expected=True)
    errors = by_cell(np.where(wrong, by_class, 0.0))
    # Errors that cost one amount are counted in units of it.
    alike = rows.costs is None and np.ndim(costs.error_cost) == 0
    lost, expected = by_class * (alone - right), rows.expected * (priced - right)
    if alike:
        lost, expected = (np.where(wrong, part, 0.0) for part in (by_class, rows.expected))
    slips = by_class * (reviewed - costs.review_cost - right)
    if rows.reviews is not None:
        slips = rows.reviews[0]
    one_rate = alike and rows.reviews is None and np.ndim(costs.reviewer_error) == 0
    cuts = np.concatenate([[-inf], limits, [inf]])
    limit = -inf if policy.automation_rate == 0.0 else policy.decision.limit
    by_place: Floats = np.bincount(places, weight, limits.size + 1).astype(np.float64)
    return PolicyCells(
        cuts,
        by_place,
        errors,
        by_cell(lost),
        by_cell(expected),
        None if one_rate else by_cell(slips) / _unit(costs, alike=alike),
        None
        if one_rate
        else by_cell(rows.expected * (expected_reviews - costs.review_cost - right))
        / _unit(costs, alike=alike),
        base=float((by_class * right).sum()),
        blend=blend_of(policy.rule, n_cases),  # type: ignore[arg-type]
        n_cases=n_cases,
        start=(int(np.searchsorted(cuts, limit)), cuts.size - 1),
    )


def _unit(costs: Costs, *, alike: bool) -> float:
    """What one error costs, or one unit of money."""
    return (float(costs.error_cost) or 1.0) if alike else 1.0


def _spread(loss: Floats, weight: Floats) -> Floats:
    """Some of the losses, with about the same weight between them; all if they are few."""
    values, first = np.unique(loss, return_index=True)
    if values.size <= _LOSS_CELLS:
        return values[:-1]
    shares = np.cumsum(np.add.reduceat(weight, first)) / weight.sum()
    wanted = np.arange(1, _LOSS_CELLS) / _LOSS_CELLS
    places: Indices = np.unique(np.searchsorted(shares, wanted))
    return values[places[places < values.size - 1]]


def cells_of_confidence(decisions: DecisionCounts) -> PolicyCells:
    """Cells of several classes without costs: decided alone above a threshold of the confidence."""
    reviewed, errors = (
        np.asarray(part, dtype=np.float64)[::-1] for part in (decisions.reviewed, decisions.errors)
    )
    wrong = np.stack([np.diff(errors), np.zeros(errors.size - 1)])
    weight = -np.diff(reviewed)
    cuts, none = decisions.thresholds[::-1], np.zeros(wrong.shape)
    return PolicyCells(cuts, weight, wrong, wrong, none, n_cases=float(weight.sum()))


def cells_of_model(
    state: ScoreState,
    name: str,
    decided: Decided | None,
    counts: DecisionCounts,
    sums: Callable[[], Sums],
) -> PolicyCells:
    """Cells of one model; without a policy those of its scores, or of its confidence."""
    if decided is not None:
        return decided.cells
    if not state.is_binary:
        return cells_of_confidence(counts)
    table = ScoreTable.of_bins(sums().models[name].bins)
    if isinstance(state, AnswerState) and state.declined["number"]:
        table = table.with_unscored(state.declined, state.positive)
    return cells_of_table(table, state.positive)
