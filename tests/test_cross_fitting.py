"""Held-out costs against folds of single cases, dealt literally and at random many times."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragility.deferral.costs import Costs
from fragility.deferral.cross_fitting import dealt_cells, judge
from fragility.scores.cases import case_amounts
from fragility.scores.tally import cells_of_cases, threshold_grid

from .reference import deferral as reference

#: Deals on either side of a comparison, and how many standard errors their means may be apart.
DEALS, FAR = 1000, 4.5


class Problem:
    """Cases with few distinct confidences, so that cells hold several, and whole costs."""

    def __init__(self, seed, n=45, n_classes=2, kind="number", capacity=None, reviewer_error=0.0):
        rng = np.random.default_rng(seed)
        self.n_classes, self.capacity = n_classes, capacity
        self.true = rng.integers(0, n_classes, n)
        self.confidence = rng.choice([0.61, 0.72, 0.8, 0.87, 0.9, 0.934, 0.96, 0.9931, 0.99991], n)
        wrong = rng.random(n) > self.confidence - 0.25
        others = (self.true + rng.integers(1, n_classes, n)) % n_classes
        self.predicted = np.where(wrong, others, self.true)
        self.by_case = None
        error_cost = 3.0
        blunder = np.full(n, error_cost)
        self.alone = np.where(wrong, error_cost, 0.0)
        if kind == "matrix":
            error_cost = rng.integers(1, 9, (n_classes, n_classes)).astype(float)
            np.fill_diagonal(error_cost, rng.integers(0, 2, n_classes))
            self.alone = error_cost[self.true, self.predicted]
            outside = error_cost.sum(axis=1) - error_cost.diagonal()
            blunder = outside[self.true] / (n_classes - 1)
        elif kind == "cases":
            # The same within a cell: there a case is a unit, as it is without costs.
            table = rng.integers(1, 9, (n_classes, n_classes, 10_001)).astype(float)
            ticks = np.rint(10_000 * self.confidence).astype(int)
            self.by_case = blunder = table[self.true, self.predicted, ticks]
            self.alone = np.where(wrong, blunder, 0.0)
            error_cost = blunder
        self.wrong = wrong
        self.reviewed = 1.0 + reviewer_error * blunder
        self.costs = Costs(error_cost, 1.0, capacity, reviewer_error).checked(n_classes, n)

    def cells(self, weights=None):
        amounts = case_amounts(self.true.size, weights, self.by_case)
        parts = self.true, self.predicted, self.confidence
        return cells_of_cases(self.n_classes, *parts, amounts)

    def judged(self, seeds, cells, n_folds=5):
        grid = threshold_grid(self.n_classes)
        splits = [dealt_cells(cells, self.costs, n_folds, seed) for seed in seeds]
        return judge(splits, grid, self.costs, n_draws=0)

    def literally_dealt(self, rng, n_folds=5):
        """Cost, share alone and share wrong of one deal of single cases; and the thresholds."""
        folds = np.empty(self.true.size, dtype=int)
        for code in range(self.n_classes):
            rows = rng.permutation(np.flatnonzero(self.true == code))
            for fold, part in enumerate(np.array_split(rows, n_folds)):
                folds[part] = fold
        thresholds = np.array(reference.offered(self.n_classes), dtype=float)
        alone_at = self.confidence[:, np.newaxis] > thresholds
        paid_at = np.where(alone_at, self.alone[:, np.newaxis], self.reviewed[:, np.newaxis])
        cost = alone = wrong = 0.0
        chosen = []
        for fold in range(n_folds):
            own, rest = folds == fold, folds != fold
            spent = paid_at[rest].sum(axis=0)
            if self.capacity is not None:
                reviews = (~alone_at[rest]).mean(axis=0)
                spent = np.where(reviews <= self.capacity + 1e-12, spent, np.inf)
            place = int(np.flatnonzero(spent <= spent.min() + 1e-9)[0])
            chosen.append(thresholds[place])
            cost += paid_at[own, place].sum()
            alone += alone_at[own, place].sum()
            wrong += (alone_at[own, place] & self.wrong[own]).sum()
        return np.array([cost, alone, wrong]) / self.true.size, chosen


PROBLEMS = {
    "two classes": {"seed": 1},
    "capacity": {"seed": 2, "capacity": 0.5},
    "matrix": {"seed": 3, "kind": "matrix", "reviewer_error": 0.125},
    "matrix, capacity": {"seed": 4, "kind": "matrix", "n_classes": 3, "capacity": 0.6},
    "costs by case": {"seed": 5, "kind": "cases"},
    "costs by case, capacity": {"seed": 6, "kind": "cases", "capacity": 0.4, "n_classes": 3},
    "reviewers err": {"seed": 7, "n_classes": 3, "reviewer_error": 0.25},
    "fewer cases than folds in a class": {"seed": 8, "n": 14, "n_classes": 4},
}


# Those with a capacity have the costs of those without, too.
@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in PROBLEMS if f"{n}, capacity" not in PROBLEMS])
def test_costs_are_those_of_single_cases_dealt_at_random(name):
    """Means over deals agree up to chance, which the spread of the literal deals tells."""
    problem = Problem(**PROBLEMS[name])
    rng = np.random.default_rng(0)
    literal, literally_chosen = (
        np.array(part)
        for part in zip(*(problem.literally_dealt(rng) for _ in range(DEALS)), strict=True)
    )
    verdict = problem.judged([[deal, 0] for deal in range(DEALS)], problem.cells())
    wrong = 0.0 if verdict.automation_rate == 0.0 else verdict.error_rate * verdict.automation_rate
    found = verdict.cost, verdict.automation_rate, wrong
    assert literal[:, 0].std() > 0.005  # there is something to tell apart
    near(literal, found)
    # How many folds of a deal choose each threshold.
    assert verdict.fold_thresholds.shape == literally_chosen.shape == (DEALS, 5)
    thresholds = np.union1d(verdict.fold_thresholds, literally_chosen)
    assert thresholds.size > 1
    counts, others = (
        (part[..., np.newaxis] == thresholds).sum(axis=1).astype(float)
        for part in (literally_chosen, verdict.fold_thresholds)
    )
    near(counts, others.mean(axis=0), others.var(axis=0))


def near(literal, means, variances=0.0):
    """Means over deals as far apart as chance allows: two samples of as many deals."""
    error = np.sqrt(2.0 * np.maximum(literal.var(axis=0), variances) / DEALS)
    apart = np.abs(literal.mean(axis=0) - means)
    assert (apart <= FAR * error + 1e-12).all(), (apart / np.maximum(error, 1e-300)).round(2)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_verdict_on_several_deals_is_their_mean(name):
    problem = Problem(**PROBLEMS[name])
    cells = problem.cells()
    seeds = [[split, 3] for split in range(20)]
    whole = problem.judged(seeds, cells)
    parts = [problem.judged([seed], cells) for seed in seeds]
    assert whole.cost == pytest.approx(np.mean([part.cost for part in parts]), rel=1e-13)
    assert whole.automation_rate == pytest.approx(np.mean([part.automation_rate for part in parts]))
    assert whole.fold_thresholds.shape == (20, 5)
    for row, part in zip(whole.fold_thresholds, parts, strict=True):
        np.testing.assert_array_equal(row, part.fold_thresholds[0])
    assert len({part.cost for part in parts}) > 1


@pytest.mark.parametrize("name", PROBLEMS)
def test_weights_of_one_are_no_weights(name):
    problem = Problem(**PROBLEMS[name])
    seeds = [[split, 0] for split in range(5)]
    plain = problem.judged(seeds, problem.cells())
    for weight in (1.0, 0.25, 3.0):  # only their ratios matter
        weighted = problem.judged(seeds, problem.cells(np.full(problem.true.size, weight)))
        for one, other in zip(vars(plain).values(), vars(weighted).values(), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13)


@pytest.mark.parametrize("name", PROBLEMS)
def test_folds_of_a_deal_hold_whole_cases_and_every_class_evenly(name):
    problem = Problem(**PROBLEMS[name])
    cells = problem.cells()
    split = dealt_cells(cells, problem.costs, 5, [1, 2])
    assert (split.units >= 0).all()
    assert split.units.sum() == problem.true.size
    np.testing.assert_allclose(split.sums[0], split.units, rtol=1e-13)  # a case weighs one
    sizes = np.bincount(problem.true, minlength=problem.n_classes)
    expected = [sum(size // 5 + (fold < size % 5) for size in sizes) for fold in range(5)]
    assert split.units.sum(axis=1).tolist() == expected
    for code in range(problem.n_classes):
        own = cells.true == code
        part = type(cells)(*(None if amount is None else amount[own] for amount in cells))
        units = dealt_cells(part, problem.costs, 5, [1, 2]).units.sum(axis=1)
        assert units.tolist() == [sizes[code] // 5 + (fold < sizes[code] % 5) for fold in range(5)]


def test_a_weight_is_shared_out_with_the_units_of_its_cell():
    """One heavy case among light ones counts for one unit or little more, and stays whole."""
    problem = Problem(1, n=40)
    weights = np.ones(40)
    weights[7] = 1000.0
    cells = problem.cells(weights)
    split = dealt_cells(cells, problem.costs, 5, [0, 0])
    assert split.sums[0].sum() == pytest.approx(weights.sum(), rel=1e-13)
    heavy = int(split.sums[0].sum(axis=0).argmax())
    assert split.sums[0][:, heavy].sum() >= 1000.0
    assert split.units[:, heavy].sum() == 1
    assert np.count_nonzero(split.sums[0][:, heavy]) == 1


def test_a_heavy_case_stays_whole_beside_light_ones_of_another_prediction():
    """Wrong in another way at the same price: yet it is one unit, and no part of the others."""
    problem = Problem(1, n=40, n_classes=3)
    problem.true[:11], problem.predicted[:11], problem.confidence[:11] = 0, 1, 0.9
    problem.predicted[0] = 2
    weights = np.ones(40)
    weights[0] = 1000.0
    split = dealt_cells(problem.cells(weights), problem.costs, 5, [0, 0])
    assert split.sums[0].sum() == pytest.approx(weights.sum(), rel=1e-13)
    assert split.sums[0].max() >= 1000.0


@pytest.mark.parametrize("factor", [2.0**-40, 2.0**40])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_currency_changes_no_deal(name, factor):
    problem = Problem(**PROBLEMS[name])
    seeds = [[split, 0] for split in range(5)]
    one = problem.judged(seeds, problem.cells())
    if problem.by_case is not None:
        problem.by_case = factor * problem.by_case
    costs = problem.costs
    problem.costs = Costs(
        factor * np.asarray(costs.error_cost),
        factor * costs.review_cost,
        costs.capacity,
        costs.reviewer_error,
    ).checked(problem.n_classes, problem.true.size)
    other = problem.judged(seeds, problem.cells())
    np.testing.assert_array_equal(one.fold_thresholds, other.fold_thresholds)
    assert other.cost == pytest.approx(factor * one.cost, rel=1e-12)
    assert other.automation_rate == pytest.approx(one.automation_rate, rel=1e-12)


# The threshold that is printed: chosen on all cases.


@st.composite
def cases(draw):
    n_classes = draw(st.sampled_from([2, 3, 25]))
    n = draw(st.integers(1, 12))
    part = st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n)
    true, predicted = draw(part), draw(part)
    # At thresholds, next to them, and between.
    near = st.sampled_from([0.5, 0.505, 0.7, 0.9, 0.95, 0.951, 0.99, 0.9995, 0.9999, 1.0])
    shifts = st.sampled_from([-1e-16, 0.0, 1e-16, 0.0003])
    confidence = [min(draw(near) + draw(shifts), 1.0) for _ in range(n)]
    kind = draw(st.sampled_from(["number", "matrix", "cases"]))
    size = {"number": 1, "matrix": n_classes**2, "cases": n}[kind]
    if kind == "matrix" and n_classes == 25:
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        cost = (rng.integers(0, 8, size) * 24.0).tolist()  # their mean over 24 others is exact
    else:
        cost = draw(st.lists(st.integers(0, 8).map(float), min_size=size, max_size=size))
    cost = cost[0] if kind == "number" else cost
    if kind == "matrix":
        cost = np.reshape(cost, (n_classes, n_classes)).tolist()
    weights = draw(st.none() | st.lists(st.sampled_from([0.25, 1, 3]), min_size=n, max_size=n))
    options = {
        "review_cost": draw(st.sampled_from([0.0, 0.5, 1.0, 3.0])),
        "reviewer_error": draw(st.sampled_from([0.0, 0.5])),
    }
    capacity = draw(st.none() | st.integers(0, 8).map(lambda k: k / 8))
    return n_classes, true, predicted, confidence, cost, weights, options, capacity


@pytest.mark.slow
@settings(max_examples=150)
@given(cases())
def test_the_printed_threshold_is_that_of_brute_force(case):
    n_classes, true, predicted, confidence, cost, weights, options, capacity = case
    costs = Costs(cost, capacity=capacity, **options).checked(n_classes, len(true))
    grid = threshold_grid(n_classes)
    amounts = case_amounts(
        len(true),
        None if weights is None else np.array(weights, float),
        np.array(cost) if np.ndim(cost) == 1 else None,
    )
    cells = cells_of_cases(
        n_classes, np.array(true), np.array(predicted), np.array(confidence), amounts
    )
    verdict = judge([dealt_cells(cells, costs, 2, [0, 0])], grid, costs, n_draws=0)
    exact = reference.of_predictions(true, predicted, confidence, cost, weights=weights, **options)
    thresholds = reference.offered(n_classes)
    assert verdict.threshold == reference.best(exact, capacity, thresholds)
    assert verdict.cost_automate_all == pytest.approx(float(reference.at(exact, 0)[0]), rel=1e-12)
    assert verdict.cost_review_all == pytest.approx(float(reference.at(exact, 1)[0]), rel=1e-12)
    chow, chow_cost = nan, nan
    if np.ndim(cost) == 0:
        rule = cost, options["review_cost"], options["reviewer_error"]
        chow = reference.nearest_chow(exact, *rule, thresholds, capacity)
        chow_cost = float(reference.at(exact, chow)[0])
    assert verdict.chow_threshold == pytest.approx(float(chow), rel=0, abs=0, nan_ok=True)
    assert verdict.chow_cost == pytest.approx(chow_cost, rel=1e-12, abs=1e-15, nan_ok=True)


@pytest.mark.slow
def test_folds_choose_by_brute_force_on_the_others():
    """Cells of a case each: the folds of the deal can be read off, and judged one by one."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n, capacity = 14, [None, 0.5][seed % 2]
        true = rng.integers(0, 2, n)
        confidence = rng.choice(threshold_grid(2)[2:], n, replace=False)
        predicted = np.where(rng.random(n) < 0.7, true, 1 - true)
        costs = Costs(4.0, 1.0, capacity, 0.25).checked(2, n)
        grid = threshold_grid(2)
        cells = cells_of_cases(2, true, predicted, confidence, case_amounts(n, None, None))
        split = dealt_cells(cells, costs, 3, [seed, 0])
        assert (split.units.sum(axis=0) == 1).all()
        verdict = judge([split], grid, costs, n_draws=0)
        order = np.argsort(confidence)
        exact = reference.of_predictions(
            true[order].tolist(),
            predicted[order].tolist(),
            confidence[order].tolist(),
            4.0,
            reviewer_error=0.25,
        )
        folds = split.units.argmax(axis=0).tolist()
        cost, alone, wrong, chosen = reference.dealt(
            exact, folds, [1] * n, reference.offered(2), capacity
        )
        assert verdict.fold_thresholds.tolist() == [[float(t) for t in chosen]]
        assert verdict.cost == pytest.approx(float(cost) / n, rel=1e-13)
        assert verdict.automation_rate == pytest.approx(float(alone) / n, rel=1e-13)
        if alone:
            assert verdict.error_rate == pytest.approx(float(wrong / alone), rel=1e-13)
