"""Figures of states against slow references: calibration, bins, folds, paired tests."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fragility import Costs, Report, ScoreState
from fragility.calibration.table import ScoreTable, calibrated_table
from fragility.measured import CALIBRATION_BINS, CVAR_LEVEL
from fragility.report.model_figures import Settings, model_figures
from fragility.report.rereading import CaseRows
from fragility.report.sum_views import CalibratedView
from fragility.scores.folds import dealt
from fragility.scores.tally import threshold_grid, units_of

from .reference import calibration, calibration_maps
from .reference import states as reference

GRID = threshold_grid(2)
REL = 1e-6


def two_classes(seed: int, kind: str, n: int = 70):
    """Codes, scores and weights (or None); some scores are shared."""
    rng = np.random.default_rng([seed, len(kind)])
    codes = np.r_[0, 1, 0, 1, rng.integers(0, 2, n - 4)]
    p = 1.0 / (1.0 + np.exp(-1.3 * (codes - 0.5) - rng.normal(size=n)))
    if kind == "tied":
        p = p.round(1)
    elif kind == "crowded":  # several different scores in each bin
        p = np.clip(p.round(1), 0.1, 0.9) + rng.integers(0, 6, n) * 3e-6
    elif kind == "half":
        near = [np.nextafter(0.5, end) for end in (0.0, 1.0)]
        p = rng.choice([0.5, *near, 0.5 + 2e-5, 0.5 - 2e-5, 0.3, 0.8], n)
    elif kind == "odd":  # one half, the ends, and next to thresholds from both sides
        at = rng.choice(np.r_[0.0, 0.5, 1.0, rng.choice(GRID[1:], 20)], n)
        at = np.where(rng.random(n) < 0.5, at, 1.0 - at)
        side = rng.integers(-1, 2, n)
        p = np.where(side == 0, at, np.nextafter(at, np.where(side > 0, 2.0, -1.0)))
        p = np.clip(p, 0.0, 1.0)
    weights = rng.gamma(0.8, size=n) + 0.01 if seed % 2 else None
    return codes, p, weights


def several_classes(seed: int, kind: str, n: int = 50):
    rng = np.random.default_rng([seed, len(kind), 3])
    c = 3 + seed % 2
    codes = np.r_[np.arange(c), np.arange(c), rng.integers(0, c, n - 2 * c)]
    p = rng.dirichlet(np.full(c, 0.7), n) + 0.5 * np.eye(c)[codes]
    p /= p.sum(axis=1, keepdims=True)
    if kind == "tied":
        rest = np.floor(p[:, 1:] * 8) / 8
        p = np.column_stack([1.0 - rest.sum(axis=1), rest])
    elif kind == "crowded":
        rest = np.floor(p[:, 1:] * 6) / 8 + rng.integers(0, 4, (n, c - 1)) * 1e-7
        p = np.column_stack([1.0 - rest.sum(axis=1), rest])
    weights = rng.gamma(0.8, size=n) + 0.01 if seed % 2 else None
    return codes, p, weights


def state_of(codes, scores, weights, positive=1, hold=0.0, models=None, n_classes=None):
    scores = scores if isinstance(scores, dict) else {"a": scores}
    n_classes = n_classes or (2 if next(iter(scores.values())).ndim == 1 else scores["a"].shape[1])
    labels = [f"class {c}" for c in range(n_classes)]
    state = ScoreState(
        labels,
        list(scores),
        weighted=weights is not None,
        hold=hold,
        pos_label=labels[positive] if n_classes == 2 else None,
    )
    return state.update(np.array(labels)[codes], scores, weights)


def close(found: float, expected: float, rel: float = 1e-9) -> bool:
    if math.isinf(expected) or math.isnan(expected):
        return str(found) == str(expected)
    return abs(found - expected) <= rel * abs(expected) + 1e-11


# a. Calibrated figures.


def literal_calibration(state: ScoreState, codes, scores, weights, positive, method=None):
    """Units under their maps, from the folds that were dealt; by default the map is chosen."""
    layout = state.sums().shape.layout
    places = layout.places(np.asarray(scores, dtype=np.float64))
    held = np.unique(places)
    w = np.ones(codes.size) if weights is None else weights
    amounts, squares = np.zeros((2, held.size)), np.zeros((2, held.size))
    units = np.zeros((2, held.size), dtype=np.int64)
    for code in range(2):
        for b, place in enumerate(held):
            own = w[(codes == code) & (places == place)]
            amounts[code, b], squares[code, b] = own.sum(), (own**2).sum()
            units[code, b] = reference.units_of(own.tolist())
    means = [float(calibration.mean(scores[places == place], w[places == place])) for place in held]
    splits = [
        np.stack([dealt(units[code], 5, [int(code == positive), split, 0]) for code in range(2)])
        for split in range(4)
    ]
    if method is None:
        p = np.clip(means, 1e-12, 1 - 1e-12)
        order = [1 - positive, positive]
        parts = (part[order] for part in (amounts, squares, units, splits[0]))
        method = calibration.chosen_of_bins(np.log(p / (1 - p)), *parts)
    found = reference.calibrated_units(means, amounts, splits, positive, method)
    return held, places, found


@pytest.mark.parametrize("method", [None, *calibration_maps.OF_TWO])
@pytest.mark.parametrize("positive", [1, 0])
@pytest.mark.parametrize(("seed", "kind"), [(0, "crowded"), (1, "tied"), (3, "crowded")])
def test_calibrated_figures(seed, kind, positive, method):
    codes, scores, weights = two_classes(seed, kind, 60)
    codes = codes if positive else 1 - codes
    state = state_of(codes, scores, weights, positive)
    sums = state.sums()
    bins = sums.models["a"].bins
    table = ScoreTable.of_bins(bins)
    found = calibrated_table(table, positive, state.labels, method=method or "auto")
    view = CalibratedView(table, positive, state.support, found)
    figures = model_figures(view, Settings(), {}).figures
    held, _, units = literal_calibration(state, codes, scores, weights, positive, method)
    assert held.tolist() == np.flatnonzero(bins.table("weight").any(axis=0)).tolist()
    own, at, w = (np.array([unit[place] for unit in units]) for place in (0, 2, 3))
    # Maps of the same bin that differ by rounding alone would be ties of one and not of the other.
    at = _snapped(at)
    errors, shares = reference.errors_of_pairs(
        at[own != positive], at[own == positive], w[own != positive], w[own == positive]
    )
    predicted, confidence = reference.predictions(at, positive)
    expected = {
        "fragility_index": reference.index(errors, shares),
        "ratio": reference.index(errors, shares) / reference.separation(errors, shares),
        "auc": reference.auc(errors, shares),
        "log_loss": reference.log_loss(own, at, w, positive),
        "brier": reference.brier(own, at, w, positive),
        "aurc": reference.risk_coverage(_snapped(np.array(confidence)), predicted != own, w),
        "buffered_auc": reference.buffered_auc(errors, shares),
        "cvar": reference.cvar(errors, shares, CVAR_LEVEL),
        "calibration_error": reference.equal_mass_calibration_error(
            at, own == positive, w, CALIBRATION_BINS
        ),
        "confident_error_rate": reference.confident_error_rate(own, at, w, positive, 0.9),
    }
    for name, value in expected.items():
        assert figures[name].exact, name
        assert close(figures[name].value, value, REL), (name, figures[name], value)


def _snapped(values: np.ndarray) -> np.ndarray:
    """Values that differ by less than 1e-10 are one."""
    order = np.argsort(values)
    steps = np.diff(values[order], prepend=-9.0) > 1e-10
    found = np.empty_like(values)
    found[order] = values[order][steps][np.cumsum(steps) - 1]
    return found


# b. The law of the folds.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("units", "n_folds"), [([7, 0, 4, 11, 1], 5), ([3, 9, 1], 2), ([1, 1, 1, 1, 1, 1, 2], 3)]
)
def test_folds_have_the_law_of_random_ones(units, n_folds):
    n_seeds, units = 800, np.array(units)
    drawn = np.array([dealt(units, n_folds, [seed, 5]) for seed in range(n_seeds)])
    total = int(units.sum())
    sizes = [total // n_folds + (fold < total % n_folds) for fold in range(n_folds)]
    assert (drawn.sum(axis=2) == sizes).all()
    assert (drawn.sum(axis=1) == units).all()
    for fold, size in enumerate(sizes):
        for b, n in enumerate(units.tolist()):
            counts = drawn[:, fold, b]
            mean, variance, fourth = reference.hypergeometric_moments(total, n, size)
            assert abs(counts.mean() - mean) <= 4.5 * math.sqrt(variance / n_seeds) + 1e-12
            of_squares = math.sqrt(max(fourth - variance**2, 0.0) / n_seeds)
            assert abs(((counts - mean) ** 2).mean() - variance) <= 4.5 * of_squares + 1e-12
        # Two bins of the same fold, which share its room.
        a, b = (int(place) for place in np.flatnonzero(units)[:2])
        product = (drawn[:, fold, a] - units[a] * size / total) * (
            drawn[:, fold, b] - units[b] * size / total
        )
        covariance = -units[a] * units[b] * size * (total - size) / (total**2 * (total - 1.0))
        assert abs(product.mean() - covariance) < 4.5 * product.std() / math.sqrt(n_seeds)


def test_folds_of_two_models_or_classes_are_not_the_same():
    units = np.full(40, 3)
    assert (dealt(units, 5, [0, 1]) != dealt(units, 5, [1, 1])).any()
    assert (dealt(units, 5, [0, 1]) == dealt(units, 5, [0, 1])).all()


# c. Figures of bins.


def check_bins(codes, scores, weights, positive, n_classes):
    state = state_of(codes, scores, weights, positive)
    assert not state.complete
    model = Report.from_state(state, calibrate=False).models[0].raw
    w = np.ones(codes.size) if weights is None else weights
    given = codes, scores, w.tolist(), positive

    def pairwise(figure):
        return reference.mean_over_pairs(figure, *given, n_classes)

    predicted, confidence = reference.predictions(scores, positive)
    wrong = np.array(predicted) != codes
    expected = {
        "fragility_index": pairwise(reference.index),
        "ratio": pairwise(lambda e, s: reference.index(e, s) / reference.separation(e, s)),
        "auc": pairwise(reference.auc),
        "buffered_auc": pairwise(reference.buffered_auc),
        "cvar": pairwise(lambda e, s: reference.cvar(e, s, CVAR_LEVEL)),
        "log_loss": reference.log_loss(*given),
        "brier": reference.brier(*given),
        "aurc": reference.risk_coverage(confidence, wrong, w),
        "calibration_error": reference.equal_mass_calibration_error(
            scores if n_classes == 2 else confidence,
            codes == positive if n_classes == 2 else ~wrong,
            w,
            min(CALIBRATION_BINS, codes.size),
        ),
        "confident_error_rate": reference.confident_error_rate(*given, 0.9),
    }
    if expected["fragility_index"] == math.inf:  # whose ratio need not be defined
        del expected["ratio"]
    for name, value in expected.items():
        figure = model.figures[name]
        if figure.exact:
            assert close(figure.value, value), (name, figure, value)
        else:
            low, high = figure.bounds
            # The means of bins are rounded, which a figure that is free of units feels.
            room = 1e-12 * max(1.0, abs(value)) * (100.0 if name == "buffered_auc" else 1.0)
            assert low - room <= value <= high + room, (name, figure, value)
            assert low - room <= figure.value <= high + room, (name, figure)
    check_decisions(model, given, n_classes, weights is None)
    return model


def check_decisions(model, given, n_classes, whole):
    counts = model.decisions
    found = reference.decisions(*given, counts.thresholds.tolist())
    names = ("reviewed", "errors", "false_negatives", "false_positives", "reviewed_positives")
    for name, amounts in zip(names, found, strict=True):
        own = getattr(counts, name)
        if own is None:
            assert n_classes > 2
        elif whole:
            assert own.tolist() == amounts.tolist(), name
        else:
            np.testing.assert_allclose(own, amounts, rtol=1e-9, atol=1e-9)
    histogram = reference.confidence_histogram(*given, model.histogram.edges.tolist())
    for own, shares in zip((model.histogram.wrong, model.histogram.right), histogram, strict=True):
        np.testing.assert_allclose(own, shares, rtol=1e-9, atol=1e-12)
    predicted, confidence = reference.predictions(given[1], given[3])
    sure = [k for k, c in enumerate(confidence) if c > 0.9]
    weight = sum(given[2][k] for k in sure)
    assert model.confident.n == len(sure)
    if sure:
        mean = sum(given[2][k] * confidence[k] for k in sure) / weight
        right = sum(given[2][k] for k in sure if predicted[k] == given[0][k]) / weight
        assert close(model.confident.confidence, mean, 1e-8)
        assert close(model.confident.right, right)


@pytest.mark.parametrize("positive", [1, 0])
@pytest.mark.parametrize("kind", ["smooth", "tied", "crowded", "half", "odd"])
@pytest.mark.parametrize("seed", range(4))
def test_bins_of_two_classes(seed, kind, positive):
    codes, scores, weights = two_classes(seed, kind)
    model = check_bins(codes, scores, weights, positive, 2)
    if kind == "crowded":
        assert not model.figures["auc"].exact
    elif kind == "tied":
        assert model.figures["auc"].exact
        assert model.figures["aurc"].exact


@pytest.mark.parametrize("positive", [1, 0])
@pytest.mark.parametrize("seed", range(12))
def test_bins_of_few_cases_around_one_half(seed, positive):
    codes, scores, _ = two_classes(2 * seed, "half", 8)
    check_bins(codes, scores, None, positive, 2)


@pytest.mark.parametrize("kind", ["smooth", "tied", "crowded"])
@pytest.mark.parametrize("seed", range(4))
def test_bins_of_several_classes(seed, kind):
    codes, scores, weights = several_classes(seed, kind)
    check_bins(codes, scores, weights, 0, scores.shape[1])


# d. Paired tests of cases that are not held.


def paired_report(codes, scores, weights, positive=1):
    """Report on a state in bins, with the cases once more."""
    state = state_of(codes, scores, weights, positive)
    held = state_of(codes, scores, weights, positive, hold=math.inf)
    (cases,) = held.held
    rows = np.arange(codes.size)
    return state, Report.from_cases(state, Settings(), reread=lambda: [CaseRows(cases, rows)])


def moments_of(column):
    """Of scores that are known."""

    def moments(s, sign):
        values = sign * np.asarray(column)
        exps = np.exp(s * values)
        return exps, values * exps, values

    return moments


def check_paired(found, codes, weights, by_model, pairs, rel):
    """`by_model`: of both models, for each pair its moments and its index."""
    w = np.ones(codes.size) if weights is None else weights
    moves = [reference.movements(codes, columns, w, pairs) for columns in by_model]
    for place, test in enumerate((found.index, found.ratio)):
        change = moves[0][place] - moves[1][place]
        error, freedom = reference.error_of_difference(codes.tolist(), change, w)
        assert close(test.standard_error, error, rel), (test, error)
        assert close(test.p_value, reference.p_value(test.difference, error, freedom), 10 * rel)
    indices = [np.mean([fragility for _, fragility in columns]) for columns in by_model]
    assert close(found.index.difference, indices[0] - indices[1], 1e-6)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["smooth", "crowded"])
def test_paired_tests_of_two_classes(seed, kind):
    codes, first, weights = two_classes(seed, kind)
    _, second, _ = two_classes(seed + 10, kind)
    second = np.where(np.arange(codes.size) % 3 > 0, first, second)
    positive = seed // 2
    codes = codes if positive else 1 - codes
    state, report = paired_report(codes, {"a": first, "b": second}, weights, positive)
    (found,) = report.comparisons
    w = np.ones(codes.size) if weights is None else weights
    pairs = [(positive, 1 - positive)]
    by_model = []
    for column in (first, second):
        ((errors, shares),) = reference.ordered_pairs(codes, column, w, positive, 2)
        by_model.append([(moments_of(column), reference.index(errors, shares))])
    check_paired(found.raw, codes, weights, by_model, pairs, 1e-5)
    if kind == "crowded":  # in few bins: nothing is said after calibration
        assert found.calibrated is None
        assert "too close together" in report.models[0].why_not_calibrated
        return
    for place, p in enumerate((first, second)):
        method = report.models[place].calibration.method
        if method != "identity":
            by_model[place] = [calibrated_moments(state, codes, p, weights, positive, method)]
    check_paired(found.calibrated, codes, weights, by_model, pairs, 1e-5)


def calibrated_moments(state, codes, scores, weights, positive, method):
    """Of a case in a bin: means over the maps that units of its class and bin are under."""
    held, places, units = literal_calibration(state, codes, scores, weights, positive, method)
    own, at, w = (np.array([unit[k] for unit in units]) for k in (0, 2, 3))
    negative = own != positive
    fragility = reference.index(
        *reference.errors_of_pairs(at[negative], at[~negative], w[negative], w[~negative])
    )
    under: dict[tuple[int, int], list[float]] = {}
    for code, b, score, _ in units:
        under.setdefault((code, int(held[b])), []).append(score)
    drawn = [np.array(under[int(c), int(p)]) for c, p in zip(codes, places, strict=True)]

    def moments(s, sign):
        parts = [
            (np.exp(s * v).mean(), (v * np.exp(s * v)).mean(), v.mean())
            for v in (sign * part for part in drawn)
        ]
        return np.array(parts).T

    return moments, fragility


def two_models(seed):
    codes, first, weights = several_classes(seed, "smooth")
    _, second, _ = several_classes(seed + 10, "smooth")
    return codes, {"a": first, "b": 0.8 * first + 0.2 * second}, weights


@pytest.mark.parametrize("seed", [0, 2, 5])
def test_paired_tests_of_several_classes(seed):
    codes, scores, weights = two_models(seed)
    first, second = scores.values()
    n_classes = first.shape[1]
    state, report = paired_report(codes, scores, weights)
    assert not state.complete
    (found,) = report.comparisons
    w = np.ones(codes.size) if weights is None else weights
    pairs = [(i, j) for i in range(n_classes) for j in range(n_classes) if i != j]
    by_model = []
    for scores in (first, second):
        problems = list(reference.ordered_pairs(codes, scores, w, 0, n_classes))
        by_model.append(
            [
                (moments_of(scores[:, i]), reference.index(*problem))
                for (i, _), problem in zip(pairs, problems, strict=True)
            ]
        )
    check_paired(found.raw, codes, weights, by_model, pairs, 1e-5)


def test_paired_tests_where_one_case_carries_the_worst_case():
    codes, scores, weights = two_models(1)
    _, streamed = paired_report(codes, scores, weights)
    held = Report.from_predictions(codes, scores, sample_weight=weights)
    tests = [report.comparisons[0].raw.index.standard_error for report in (streamed, held)]
    assert close(*tests, 1e-5), tests


# Decisions with weights and costs by case, and what bins cannot tell.


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_cells_of_cases_with_costs(n_classes, weighted):
    rng = np.random.default_rng(n_classes)
    made = two_classes(0, "odd") if n_classes == 2 else several_classes(0, "tied")
    codes, scores, _ = made
    costs = rng.gamma(1.0, 5.0, codes.size).round(2) * (rng.random(codes.size) < 0.8)
    weights = rng.gamma(0.7, size=codes.size) if weighted else None
    state = ScoreState(range(n_classes), ["a"], weighted=weighted, hold=0.0)
    state.update(codes, scores, weights, case_costs=costs)
    cells = state.sums().models["a"].tally.cells()
    w = np.ones(codes.size) if weights is None else weights
    predicted, confidence = reference.predictions(scores, 1)
    grid = threshold_grid(n_classes).tolist()
    expected: dict[tuple[int, int, int], np.ndarray] = {}
    for k, code in enumerate(codes.tolist()):
        place = next(place for place, t in enumerate(grid) if confidence[k] <= t)
        amounts = [1.0, w[k], w[k] ** 2, w[k] * costs[k], (w[k] * costs[k]) ** 2]
        key = code, predicted[k], place
        expected[key] = expected.get(key, np.zeros(5)) + amounts
    keys = list(zip(*(part.tolist() for part in cells[:3]), strict=True))
    assert keys == sorted(expected)
    found = np.array([cells.number, cells.weight, cells.squares, cells.costs, cells.cost_squares])
    np.testing.assert_allclose(found.T, [expected[key] for key in keys], rtol=1e-12, atol=1e-15)


def test_bins_that_leave_the_index_in_doubt_tell_no_interval():
    codes = np.arange(60) % 2
    near = 0.5 + 1e-5 * np.random.default_rng(0).random(60)  # all in one bin
    near[codes == 1] += 2e-6
    for scores, told in ((near, False), (two_classes(0, "smooth", 60)[1], True)):
        state = state_of(two_classes(0, "smooth", 60)[0] if told else codes, scores, None)
        index = Report.from_state(state, calibrate=False).models[0].raw.figures["fragility_index"]
        assert (index.interval is not None) == told
        if not told:
            assert index.bounds.high - index.bounds.low > 1e-5 * index.value


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_points_have_the_moments_of_the_cases_in_a_bin(sign):
    rng = np.random.default_rng(4)
    scores = 0.3 + 2e-5 * rng.random(30) ** 3  # far from the centre of their bin
    weights = rng.gamma(1.0, size=30)
    codes = np.arange(30) % 2
    state = state_of(codes, scores, weights)
    bins = state.sums().models["a"].bins
    assert np.unique(bins.layout.places(scores)).size == 1
    for code in range(2):
        ((values, shares),) = bins.points(0, code, sign).blocks()
        own, w = sign * scores[codes == code], weights[codes == code]
        found, expected = np.average(values, weights=shares), np.average(own, weights=w)
        assert abs(found - expected) < 1e-14
        spread = np.average((own - expected) ** 2, weights=w)
        assert close(np.average((values - found) ** 2, weights=shares) / spread, 1.0, 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("by_case", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_cost_of_thresholds_that_the_other_folds_choose(by_case, weighted):
    """Units are dealt by class; the others choose two cuts among all, their own units pay."""
    rng = np.random.default_rng(8)
    codes, scores, _ = two_classes(2, "smooth", 60)
    weights = rng.gamma(2.0, size=60) if weighted else None
    costs = rng.gamma(1.0, 6.0, 60) + 0.1 if by_case else None
    state = ScoreState([0, 1], ["a"], weighted=weighted, hold=0.0)
    state.update(codes, scores, weights, case_costs=costs)
    capacity, reviewer_error = 0.7, 0.1
    settings = Costs(None if by_case else 6.0, 1.0, capacity, reviewer_error)
    found = Report.from_state(state, settings, policy={"rule": "tuned"}, calibrate=False)
    bins = state.sums().models["a"].bins
    held = np.flatnonzero(bins.table("weight").any(axis=0)).tolist()
    weight, squares = (bins.table(name)[:, held] for name in ("weight", "squares"))
    units = units_of(weight, squares)
    errors = bins.table("costs")[:, held] if by_case else 6.0 * weight
    paid = []
    for split in range(4):
        folds = np.stack([dealt(units[code], 5, [code, split, 0]) for code in range(2)])
        shares = folds / np.maximum(units, 1)[:, np.newaxis]
        paid.append(0.0)
        for fold in range(5):
            kinds = []  # by place: weight, cost as negative, reviewed, as positive; others and own
            for part in (1.0 - shares[:, fold], shares[:, fold]):
                w, e = weight * part, errors * part
                reviewed = w.sum(axis=0) + reviewer_error * e.sum(axis=0)
                kinds.append((w.sum(axis=0), e[1], reviewed, e[0]))
            cuts = best_cuts(*(row.tolist() for row in kinds[0]), capacity)
            i, j = (settled(cut, kinds[0][0], bins, held) for cut in cuts)
            _, negative, reviewed, positive = kinds[1]
            paid[-1] += negative[:i].sum() + reviewed[i:j].sum() + positive[j:].sum()
    value = found.models[0].raw.figures["cost"].value
    assert close(value, float(np.mean(paid)) / float(weight.sum()), 1e-9)


def settled(cut, weight, bins, held):
    """Bins below the edge nearest to the middle between the scores on both sides of a cut."""
    below = [k for k in range(cut) if weight[k] > 0]
    above = [k for k in range(cut, len(held)) if weight[k] > 0]
    if not below or not above:
        return len(held) if below else 0
    low, high = bins.ranges[0, 0, held], bins.ranges[1, 0, held]
    ends = high[below[-1]], low[above[0]]
    edges = [edge for edge in bins.layout.edges if ends[0] < edge <= ends[1]]
    edge = min(edges, key=lambda edge: abs(edge - sum(ends) / 2))
    return sum(1 for value in low if value < edge)


def best_cuts(weight, negative, reviewed, positive, capacity):
    """The cheapest of all pairs of cuts; of equal ones the fewest reviews, the lowest first."""
    n, found = len(weight), []
    for i in range(n + 1):
        for j in range(i, n + 1):
            if sum(weight[i:j]) <= capacity * sum(weight) + 1e-9:
                cost = sum(negative[:i]) + sum(reviewed[i:j]) + sum(positive[j:])
                found.append((cost, sum(weight[i:j]), i, j))
    least = min(found)[0]
    tied = [part for part in found if part[0] <= least + 1e-9]
    return min(tied, key=lambda part: (round(part[1], 9), part[2], part[3]))[2:]
