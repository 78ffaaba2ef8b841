"""Standard errors, intervals and paired tests of every figure, against literal definitions."""

from __future__ import annotations

import csv
import json
from math import inf, sqrt

import numpy as np
import pytest
from scipy import stats

import fragility as fr
from fragility import Report
from fragility._typing import Interval
from fragility._validation import check_labelled_probabilities
from fragility.figures.case_influence import calibration_influence
from fragility.figures.intervals import _RULES, Circumstances
from fragility.figures.spread import MOVED, Population, Spread
from fragility.report.calibrating import ClusterFolds
from fragility.report.files import report_on_file
from fragility.scores.atoms import Atoms
from fragility.tables import PredictionFile, open_table

from .command import fragility
from .reference import influence as reference

BY_CLASS = ("auc", "buffered_auc", "cvar")


def data(seed: int, n: int = 40):
    """Labels, scores (rounded in every other sample, so that some are tied), and weights."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(size=n)
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * logit))).astype(int)
    y[:4] = 0, 1, 0, 1
    p = 1.0 / (1.0 + np.exp(-2.0 * logit - rng.normal(size=n)))
    p = np.clip(p.round(1 + seed % 2 * 15), 0.01, 0.99)
    return y, p, rng.gamma(2.0, size=n)


def effective(w: np.ndarray) -> float:
    return w.sum() ** 2 / (w @ w)


def literal_error(name: str, y: np.ndarray, moves: np.ndarray, w: np.ndarray) -> float:
    """Squares add up, with n / (n − 1) in each class or over all."""
    parts = [y == 0, y == 1] if name in BY_CLASS else [np.full(y.size, True)]
    total = 0.0
    for part in parts:
        n = effective(w[part])
        total += (moves[part] ** 2).sum() * n / (n - 1.0)
    return sqrt(total)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", reference.FIGURES)
def test_standard_errors_are_those_of_finite_differences(name, seed):
    y, p, w = data(seed)
    figure = reference.FIGURES[name]
    for weights in (None, w):
        known = np.ones(y.size) if weights is None else w
        found = Report.from_predictions(y, p, sample_weight=weights, calibrate=False)
        measured = found.models[0].raw.figures[name]
        assert measured.value == pytest.approx(figure(y, p, known), rel=1e-9)
        moves = reference.moves(figure, y, p, known)
        expected = literal_error(name, y, moves, known)
        assert measured.standard_error == pytest.approx(expected, rel=2e-4, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", reference.FIGURES)
def test_errors_of_differences_are_those_of_finite_differences(name, seed):
    y, p, w = data(seed)
    other = np.clip(p + 0.2 * np.random.default_rng(seed).normal(size=p.size), 0.02, 0.98)
    figure = reference.FIGURES[name]
    found = Report.from_predictions(y, {"a": p, "b": other}, sample_weight=w, calibrate=False)
    test = found.comparisons[0].raw.tests[name]
    assert test.difference == pytest.approx(figure(y, p, w) - figure(y, other, w), rel=1e-6)
    moves = reference.moves(figure, y, p, w) - reference.moves(figure, y, other, w)
    assert test.standard_error == pytest.approx(literal_error(name, y, moves, w), rel=2e-4)


@pytest.mark.parametrize("seed", range(4))
def test_auc_is_delongs(seed):
    y, p, _ = data(seed, 60)
    other = np.clip(p + 0.2 * np.random.default_rng(seed).normal(size=p.size), 0.0, 1.0).round(2)
    areas, covariance = reference.delong(y, p, other)
    found = Report.from_predictions(y, {"a": p, "b": other}, calibrate=False)
    for model, area, variance in zip(found.models, areas, np.diag(covariance), strict=True):
        assert model.raw.figures["auc"].value == pytest.approx(area, rel=1e-12)
        assert model.raw.figures["auc"].standard_error == pytest.approx(sqrt(variance), rel=1e-9)
    test = found.comparisons[0].raw.tests["auc"]
    variance = covariance[0][0] + covariance[1][1] - 2.0 * covariance[0][1]
    assert test.standard_error == pytest.approx(sqrt(variance), rel=1e-9)


def test_index_and_ratio_have_the_errors_of_measure_fragility():
    y, p, w = data(1, 80)
    figures = Report.from_predictions(y, p, sample_weight=w).models[0].raw.figures
    found = fr.measure_fragility(y, p, sample_weight=w)
    assert figures["fragility_index"].standard_error == pytest.approx(
        found.standard_error, rel=1e-9
    )
    assert figures["fragility_index"].interval == pytest.approx(found.interval(), rel=1e-9)
    moves = reference.moves(
        lambda y, p, w: fr.fragility_ratio(y, p, sample_weight=w), y, p, w, step=1e-4
    )
    expected = literal_error("auc", y, moves, w)
    assert figures["ratio"].standard_error == pytest.approx(expected, rel=1e-4)


def test_several_classes():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    z = rng.normal(size=(60, 3)) + 1.5 * np.eye(3)[y]
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    found = Report.from_predictions(y, p, calibrate=False).models[0].raw.figures

    def mean_auc(y, p, w):
        pairs = [(i, j) for i in range(3) for j in range(3) if i != j]
        values = []
        for i, j in pairs:
            own = (y == i) | (y == j)
            values.append(reference.auc((y[own] == i).astype(int), p[own, i], w[own]))
        return np.mean(values)

    def log_loss(y, p, w):
        return np.average(-np.log(p[np.arange(y.size), y]), weights=w)

    def brier(y, p, w):
        return np.average(((p - np.eye(3)[y]) ** 2).sum(axis=1), weights=w)

    def aurc(y, p, w):
        # As if the surest class of each case were that of two which happened or not.
        confidence, right = p.max(axis=1), p.argmax(axis=1) == y
        return reference.aurc(right.astype(int), 0.5 + 0.5 * confidence, w)

    for name, figure in (
        ("auc", mean_auc),
        ("log_loss", log_loss),
        ("brier", brier),
        ("aurc", aurc),
    ):
        moves = reference.moves(figure, y, p, np.ones(60))
        squares = sum(
            (moves[part] ** 2).sum() * part.sum() / (part.sum() - 1.0)
            for part in ([y == c for c in range(3)] if name == "auc" else [y >= 0])
        )
        assert found[name].value == pytest.approx(figure(y, p, np.ones(60)), rel=1e-9)
        assert found[name].standard_error == pytest.approx(sqrt(squares), rel=1e-4), name


def test_calibration_influence_by_hand():
    """Two bins: cases of .2, of which half happened; cases of .6 and .8, of which one happened."""
    happened = Atoms.of(np.array([0.2, 0.2, 0.8]))
    others = Atoms.of(np.array([0.2, 0.2, 0.6, 0.6, 0.6]))
    found = calibration_influence(happened, others, 2)
    # Frequencies .5 against .2, and .25 against .65.
    assert found.happened.tolist() == pytest.approx([1.0, -1.0])  # at .2 and .8
    assert found.others.tolist() == pytest.approx([1.0, -1.0])  # at .2 and .6
    first = (2 * 0.8**2 + 2 * 0.2**2) / 64
    second = max(0.2**2 + 3 * 0.6**2, 0.8 * 0.2 + 3 * 0.6 * 0.4) / 64
    assert found.variances == pytest.approx([first, second])


def circumstances(n: float = 100.0, calibration: tuple[float, ...] = (0.0,)) -> Circumstances:
    half = np.array([n / 2, n / 2])
    population = Population(half.astype(int), half, half)
    worst = np.array([[-0.9, -0.9, 0.5], [-0.8, -0.8, 0.4]])
    return Circumstances(population, worst, np.array(calibration), 3.0, 0.95, n)


def test_limits_by_hand():
    t = stats.t.ppf(0.975, 20.0)
    low, high = _RULES["auc"](0.8, Spread(0.04, 20.0), circumstances())
    half = t * 0.04 / (0.8 * 0.2)
    assert (low, high) == pytest.approx(
        [1 / (1 + np.exp(-(np.log(4.0) + side * half))) for side in (-1, 1)]
    )
    low, high = _RULES["log_loss"](0.5, Spread(0.1, 20.0), circumstances())
    assert low == pytest.approx(0.5 * np.exp(-t * 0.2))
    # One more case of a loss of 4.5.
    mean, error = (100 * 0.5 + 4.5) / 101, np.hypot(0.1 * 100 / 101, 4.0 / 101)
    assert high == pytest.approx(mean * np.exp(t * error / mean))
    low, high = _RULES["brier"](0.5, Spread(0.1, 20.0), circumstances())
    assert (low, high) == pytest.approx((0.5 * np.exp(-t * 0.2), 0.5 * np.exp(t * 0.2)))
    # Clopper and Pearson: 5 of 100.
    exact = stats.binomtest(5, 100).proportion_ci(0.95, "exact")
    share = _RULES["confident_error_rate"](
        0.05, Spread(sqrt(0.05 * 0.95 / 100), inf), circumstances()
    )
    assert share == pytest.approx((exact.low, exact.high), rel=1e-6)
    # None of 100.
    exact = stats.binomtest(0, 100).proportion_ci(0.95, "exact")
    assert _RULES["confident_error_rate"](0.0, Spread(0.0, inf), circumstances()) == pytest.approx(
        (0.0, exact.high), rel=1e-6
    )
    assert _RULES["brier"](0.0, Spread(0.0, inf), circumstances()).high == pytest.approx(
        2.0 * exact.high
    )


def test_limits_of_the_calibration_error_hold_for_any_signs():
    """Of normal differences with known variances: the limits hold as often as they should."""
    rng = np.random.default_rng(0)
    for truth in (np.zeros(15), np.full(15, 0.002), rng.normal(0.0, 0.01, 15)):
        deviations = np.full(15, 0.004)
        missed = 0
        for _ in range(2000):
            found = float(np.abs(truth + deviations * rng.normal(size=15)).sum())
            spread = Spread(float(np.linalg.norm(deviations)), inf)
            low, high = _RULES["calibration_error"](
                found, spread, circumstances(calibration=tuple(deviations**2))
            )
            missed += not low <= np.abs(truth).sum() <= high
        assert missed <= 0.06 * 2000


def test_no_mistakes_at_all():
    y, p = np.repeat([0, 1], 50), np.r_[0.05:0.4:50j, 0.6:0.95:50j]
    figures = Report.from_predictions(y, p, calibrate=False).models[0].raw.figures
    low, high = figures["auc"].interval
    assert 0.85 < low < 0.99
    assert high == 1.0
    assert figures["aurc"].interval.low == 0.0
    assert 0.05 < figures["aurc"].interval.high < 0.25
    assert figures["confident_error_rate"].interval.high == pytest.approx(
        1 - 0.025 ** (1 / 100), rel=1e-6
    )


def test_a_mean_of_the_worst_pairs_of_nearly_one_has_no_limits():
    """All the worst pairs are certain mistakes, but their mean comes out as the float below 1."""
    y = [1, 0, 1, 0, 0, 1, 1, 0, 1]
    p = [0.0, 1.0, 0.494, 0.756, 0.561, 0.398, 0.791, 0.154, 0.403]
    figure = Report.from_predictions(y, p, calibrate=False).models[0].raw.figures["cvar"]
    assert figure.value == pytest.approx(1.0, abs=1e-15)
    assert figure.interval is None


# Clusters.


def clustered_data(seed: int = 0, n: int = 200, size: int = 4):
    rng = np.random.default_rng(seed)
    cluster = rng.permutation(np.arange(n) // size)
    shared = rng.normal(size=n // size)[cluster]
    z = shared + rng.normal(size=n)
    luck = rng.normal(size=n // size)[cluster]  # which the model does not see
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-1.5 * z - 2.0 * luck))).astype(int)
    p = 1.0 / (1.0 + np.exp(-1.5 * z - 0.5 * rng.normal(size=n)))
    return y, p, np.array([f"patient {c}" for c in cluster]), cluster


@pytest.mark.parametrize("name", reference.FIGURES)
def test_clusters_count_as_one(name):
    y, p, names, cluster = clustered_data(n=60)
    found = Report.from_predictions(y, p, cluster=names, calibrate=False).models[0].raw
    moves = reference.moves(reference.FIGURES[name], y, p, np.ones(y.size))
    totals = [moves[cluster == c].sum() for c in np.unique(cluster)]
    n = len(totals)
    expected = sqrt(sum(total**2 for total in totals) * n / (n - 1))
    assert found.figures[name].standard_error == pytest.approx(expected, rel=2e-4)


def test_a_case_repeated_as_a_cluster_tells_no_more():
    """Copies in one cluster: the same errors as once, but for n / (n − 1); without, far smaller."""
    y, p, _ = data(1, 60)
    once = Report.from_predictions(y, p, calibrate=False).models[0].raw.figures
    copies = Report.from_predictions(
        np.tile(y, 4), np.tile(p, 4), cluster=np.tile(np.arange(60), 4), calibrate=False
    )
    alone = Report.from_predictions(np.tile(y, 4), np.tile(p, 4), calibrate=False)
    for name in MOVED:
        one, found = once[name], copies.models[0].raw.figures[name]
        assert found.standard_error == pytest.approx(one.standard_error, rel=0.02), name
        assert alone.models[0].raw.figures[name].standard_error < 0.52 * one.standard_error
        room = 0.5 * one.standard_error
        assert found.interval.low == pytest.approx(one.interval.low, abs=room), name
        # The allowance for a mistake that was not seen is that of one case, not of a cluster.
        if name not in ("fragility_index", "ratio", "log_loss"):
            assert found.interval.high == pytest.approx(one.interval.high, abs=room), name


def test_clusters_of_the_index_are_those_of_the_report():
    y, p, names, cluster = clustered_data()
    other = np.clip(p + 0.1 * np.random.default_rng(1).normal(size=p.size), 0.01, 0.99)
    made = Report.from_predictions(y, {"a": p, "b": other}, cluster=names, calibrate=False)
    found = fr.measure_fragility(y, p, cluster=cluster)
    index = made.models[0].raw.figures["fragility_index"]
    assert index.standard_error == pytest.approx(found.standard_error, rel=1e-9)
    assert index.interval == pytest.approx(found.interval(), rel=1e-6)
    alone = fr.measure_fragility(y, p)
    assert found.standard_error > alone.standard_error
    assert found.interval().high > alone.interval().high
    compared = fr.compare_fragility(y, p, other, cluster=names)
    test = made.comparisons[0].raw
    assert test.index.p_value == pytest.approx(compared.p_value, rel=1e-9)
    assert test.ratio.standard_error == pytest.approx(compared.ratio.standard_error, rel=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_clusters_are_the_same_in_memory_and_streamed(classes, tmp_path):
    rng = np.random.default_rng(0)
    n = 240
    y, cluster = rng.integers(0, classes, n), rng.integers(0, 30, n)
    z = rng.normal(size=(n, classes)) + np.eye(classes)[y] + rng.normal(size=(30, classes))[cluster]
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    weights = rng.integers(0, 3, n).astype(float)
    path = tmp_path / "clusters.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["y", "w", "patient", *(f"p{k}" for k in range(classes))])
        writer.writerows(zip(y, weights, [f"no. {c}" for c in cluster], *p.T, strict=True))
    file = PredictionFile(
        open_table(path),
        label="y",
        models={"m": [f"p{k}" for k in range(classes)]},
        classes=[str(k) for k in range(classes)],
        weight="w",
        cluster="patient",
    )
    held = Report.from_predictions(y, {"m": p}, sample_weight=weights, cluster=cluster)
    for hold in (2**20, 100):
        read = report_on_file(file, hold=hold)
        assert read.streamed == (hold == 100)
        assert read.clustered
        for name, figure in held.models[0].raw.figures.items():
            other = read.models[0].raw.figures[name]
            assert other.standard_error == pytest.approx(figure.standard_error, rel=0.02), name
            room = 0.1 * figure.standard_error
            if other.bounds is not None:
                room += 2.0 * (other.bounds.high - other.bounds.low)
            assert other.interval == pytest.approx(figure.interval, abs=room), name


@pytest.mark.outside
def test_the_command_takes_clusters_and_shows_every_difference(tmp_path):
    y, p, names, _ = clustered_data()
    other = np.clip(p + 0.2 * np.random.default_rng(1).normal(size=p.size), 0.01, 0.99)
    path = tmp_path / "messy.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([" sick ", "p old", "q", "patient"])
        writer.writerows(zip(np.where(y == 1, "yes", "no"), p, other, names, strict=True))
    options = ("--label", "sick", "--score", "p old", "--score", "q", "--cluster", "patient")
    made = fragility("evaluate", str(path), *options, "--json")
    assert made.code == 0, made.err
    found = json.loads(made.out)
    assert found["clustered"]
    report = Report.from_predictions(y, {"p old": p, "q": other}, cluster=names)
    for figure, measured in report.models[0].raw.figures.items():
        given = found["models"][0]["raw"]["figures"][figure]
        assert given["standard_error"] == pytest.approx(measured.standard_error, rel=1e-6)
        assert given["interval"] == pytest.approx(measured.interval, rel=1e-6)
    test = found["comparisons"][0]["raw"]["auc"]
    assert test["p_value"] == pytest.approx(report.comparisons[0].raw.tests["auc"].p_value)
    assert test["n_tests"] == 18
    full = fragility("compare", str(path), *options, "--full")
    assert full.code == 0, full.err
    lines = [line for line in full.out.splitlines() if "AURC, calibrated" in line]
    assert len(lines) == 1
    assert "corrected for the 2 tests of the Fragility Index, and for the 18" in full.out
    wrong = fragility("evaluate", str(path), *options[:-1], "patients")
    assert wrong.code == 2
    assert "Did you mean 'patient'" in wrong.err
    both = fragility("evaluate", str(path), *options[:-1], "q")
    assert both.code == 2
    assert "'q' is named as label, group or cluster and for numbers" in both.err


def test_clusters_of_costs():
    y, p, names, _ = clustered_data(n=2000)
    other = np.clip(p + 0.4 * np.random.default_rng(1).normal(size=p.size), 0.01, 0.99)
    costs = {"error_cost": [[0.0, 1.0], [5.0, 0.0]], "review_cost": 0.5}
    made = Report.from_predictions(y, {"a": p, "b": other}, costs=costs, cluster=names)
    expected = fr.compare_costs(y, p, other, **costs, cluster=names)
    test = made.comparisons[0].cost.test
    assert test.difference == pytest.approx(expected.difference, rel=1e-9)
    assert test.p_value == pytest.approx(expected.p_value, rel=1e-9)
    policy = fr.best_policy(y, p, **costs, cluster=names)
    assert made.models[0].policy.cost_interval == pytest.approx(policy.cost_interval, rel=1e-9)


@pytest.mark.parametrize(
    ("cluster", "words"),
    [([1, 2, 3], "cluster has 3 entries for 40"), (["x"] * 40, "at least 2 clusters")],
)
def test_bad_clusters_are_refused(cluster, words):
    y, p, _ = data(0)
    for call in (
        lambda: Report.from_predictions(y, p, cluster=cluster),
        lambda: fr.measure_fragility(y, p, cluster=cluster),
        lambda: fr.compare_fragility(y, p, p, cluster=cluster),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_an_interval_in_clusters_is_unknown_where_the_index_is_zero():
    y, p = np.repeat([0, 1], 10), np.r_[0.05:0.4:10j, 0.6:0.95:10j]
    found = fr.measure_fragility(y, p, cluster=np.arange(20) // 2)
    assert found.interval() == Interval(0.0, inf)


# What few clusters, and certain scores, do not tell.

PERFECT = np.repeat([0, 1], 50), np.r_[0.01:0.4:50j, 0.6:0.99:50j]


def test_two_clusters_tell_next_to_nothing():
    y, p = PERFECT
    made = Report.from_predictions(
        y, {"a": p, "b": p**1.1}, cluster=np.arange(100) % 2, calibrate=False
    )
    for name in ("buffered_auc", "log_loss", "brier"):
        assert made.models[0].raw.figures[name].interval is None
        p_value = made.comparisons[0].raw.tests[name].p_value
        assert np.isnan(p_value) or p_value > 1e-3  # one degree of freedom
    low, high = made.models[0].raw.figures["auc"].interval
    assert 0.0 <= low < 0.5
    assert high == 1.0
    assert made.models[0].raw.figures["fragility_index"].interval == Interval(0.0, inf)
    assert not any("larger hold" in note for note in made.notes)


@pytest.mark.parametrize("n_clusters", [4, 8])
def test_intervals_of_few_clusters_cover(n_clusters):
    """Clusters of their own difficulty, and few of them."""
    rng = np.random.default_rng(n_clusters)
    covered, total = 0, 0
    truth = 0.4**2 + 0.1**2  # of a Brier score: the probability of the truth is .6 ± .1
    for _ in range(300):
        y = rng.integers(0, 2, 20 * n_clusters)
        p_true = 0.6 + np.repeat(rng.normal(0.0, 0.1, n_clusters), 20)
        p = np.clip(np.where(y == 1, p_true, 1.0 - p_true), 0.0, 1.0)
        made = Report.from_predictions(y, p, cluster=np.arange(y.size) // 20, calibrate=False)
        interval = made.models[0].raw.figures["brier"].interval
        if interval is not None:
            total += 1
            covered += interval.low <= truth <= interval.high
    assert total > 200
    assert covered / total > 0.9


def test_clusters_that_are_the_labels_make_nothing_certain():
    rng = np.random.default_rng(0)
    y = (rng.random(300) < 0.4).astype(int)
    z = 2.0 * y - 1.0 + 1.5 * rng.normal(size=300)
    p, q = (1.0 / (1.0 + np.exp(-(z + noise))) for noise in (0.0, 0.5 * rng.normal(size=300)))
    made = Report.from_predictions(y, {"p": p, "q": q}, cluster=y)
    assert not any(finding.rule == "lighter_tail" for finding in made.findings)
    for name in ("auc", "buffered_auc"):
        assert np.isnan(made.comparisons[0].raw.tests[name].p_value)
        assert made.models[0].raw.figures[name].interval is None
    assert made.models[0].calibrated is None
    assert "clusters" in made.models[0].why_not_calibrated


def test_clusters_without_weight_do_not_count():
    y, p, _ = data(1, 60)
    weights = np.r_[np.ones(40), np.zeros(20)]
    found = Report.from_predictions(
        y, p, sample_weight=weights, cluster=np.arange(60), calibrate=False
    )
    expected = Report.from_predictions(y[:40], p[:40], cluster=np.arange(40), calibrate=False)
    for name in MOVED:
        one, two = (part.models[0].raw.figures[name] for part in (found, expected))
        assert one.standard_error == pytest.approx(two.standard_error, rel=1e-9), name


def test_certain_scores_are_not_certain_to_be_calibrated():
    y = np.repeat([0, 1], 50)
    figures = Report.from_predictions(y, y.astype(float), calibrate=False).models[0].raw.figures
    assert figures["calibration_error"].interval.high == pytest.approx(1 - 0.025 ** (1 / 100))


def test_calibration_keeps_clusters_whole():
    """Copies of a calibrated patient must not teach a map what the patient's own copies say."""
    rng = np.random.default_rng(0)
    once, copied = [], []
    for _ in range(12):
        z = 2.0 * rng.normal(size=40)
        y = (rng.random(40) < 1.0 / (1.0 + np.exp(-z))).astype(int)
        y[:2] = 0, 1
        p, patient = 1.0 / (1.0 + np.exp(-z)), np.arange(40)
        once.append(Report.from_predictions(y, p).models[0].calibration.method)
        rows = np.repeat(patient, 25)
        made = Report.from_predictions(y[rows], p[rows], cluster=patient[rows]).models[0]
        copied.append(made.calibration.method)
        assert made.calibration.method != "isotonic"
    assert once.count("identity") >= 9
    assert copied.count("identity") >= 9


@pytest.mark.parametrize("classes", [2, 3])
def test_folds_of_calibration_keep_clusters_whole(classes):
    rng = np.random.default_rng(0)
    y, cluster = rng.integers(0, classes, 200), rng.integers(0, 40, 200)
    z = rng.normal(size=(200, classes)) + np.eye(classes)[y]
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    data = check_labelled_probabilities(y, p, None, None, None)
    drawn, alike = ClusterFolds.of(data, None, 0, cluster)
    assert all(np.unique(drawn[cluster == c]).size == 1 for c in range(40))
    sizes = np.bincount(cluster)
    assert alike == pytest.approx((sizes @ sizes) / 200)


def test_groups_count_clusters():
    y, p, names, cluster = clustered_data(n=400)
    group = np.where(cluster % 2 == 0, "north", "south")
    made = Report.from_predictions(y, p, groups=group, cluster=names, calibrate=False)
    for part in made.groups:
        own = group == part.group
        expected = fr.measure_fragility(y[own], p[own], cluster=cluster[own])
        limits = expected.interval(1.0 - 0.05 / 2)  # both groups together
        assert part.index.interval == pytest.approx(limits, rel=1e-9)


def test_where_no_map_is_needed_no_test_is_counted_twice():
    rng = np.random.default_rng(3)
    z = 2.0 * rng.normal(size=2000)
    y = rng.random(2000) < 1.0 / (1.0 + np.exp(-z))
    models = {
        "a": 1.0 / (1.0 + np.exp(-z)),
        "b": 1.0 / (1.0 + np.exp(-z - 0.05 * rng.normal(size=2000))),
    }
    made = Report.from_predictions(y, models)
    assert [model.calibration.method for model in made.models] == ["identity"] * 2
    (pair,) = made.comparisons
    assert pair.raw.n_tests["fragility_index"] == 1
    assert pair.raw.p_value == pair.raw.index.p_value
    assert pair.calibrated == pair.raw


def test_frames_have_errors_and_comparisons():
    y, p, _ = data(1, 80)
    other = np.clip(p + 0.1, 0.0, 1.0)
    made = Report.from_predictions(y, {"a": p, "b": other})
    figures = made.to_frame()
    row = figures[(figures.model == "a") & (figures.figure == "auc") & ~figures.calibrated].iloc[0]
    assert row.standard_error == made.models[0].raw.figures["auc"].standard_error
    tests = made.to_frame("comparisons")
    assert set(tests.figure) == set(MOVED)
    row = tests[(tests.figure == "brier") & ~tests.calibrated].iloc[0]
    expected = made.comparisons[0].raw
    assert row.p_value == expected.tests["brier"].p_value
    assert row.adjusted_p_value == expected.adjusted["brier"]


def test_the_band_of_a_report_counts_clusters():
    y, p, names, _ = clustered_data(n=400)
    for prevalence in (None, 0.1):
        made = Report.from_predictions(y, p, cluster=names, calibrate=False, prevalence=prevalence)
        found = made.models[0].raw.evidence.reliability
        expected = fr.reliability_curve(y, p, cluster=names, prevalence=prevalence)
        plain = fr.reliability_curve(y, p, prevalence=prevalence)
        assert found.upper == pytest.approx(expected.upper, abs=1e-3)
        assert found.lower == pytest.approx(expected.lower, abs=1e-3)
        assert (expected.upper - expected.lower).sum() > 1.02 * (plain.upper - plain.lower).sum()
