"""Calibration maps and the choice between them, against literal ones and by what they promise."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from fragility import Report, ScoreState, measure_fragility
from fragility._validation import check_labelled_probabilities
from fragility.calibration import CalibrationChoice, cross_fitted_calibration
from fragility.calibration.cases import fitted_map
from fragility.calibration.choice import Candidates, chosen_together
from fragility.calibration.cross_fitting import CrossFit
from fragility.calibration.sample import sample_folds
from fragility.calibration.table import ScoreTable, calibrated_table
from fragility.scores.folds import dealt
from tests.confident_models import classes_drawn
from tests.reference import calibration as reference
from tests.reference import calibration_maps as literal
from tests.test_calibration import EVERY_METHOD, binary, folds_of, several


def groups_of_cases(p, y, weights):
    """Cases as the groups of the literal maps: log-odds, weights and numbers by class."""
    order = np.argsort(p, kind="stable")
    p, y, weights = p[order], y[order], weights[order]
    return np.log(p / (1 - p)), np.stack([~y * weights, y * weights]), np.stack([~y, y]).astype(int)


@pytest.mark.parametrize("method", literal.OF_TWO)
@pytest.mark.parametrize("weighted", [False, True])
def test_maps_of_two_classes_are_the_literal_ones(method, weighted):
    y, p, weights = binary(300, 0)
    p = np.where(np.arange(300) % 3, p, p.round(1).clip(0.1, 0.9))  # some are tied
    given = weights if weighted else None
    found = cross_fitted_calibration(y, p, sample_weight=given, method=method)
    used = weights if weighted else np.ones(y.size)
    folds = folds_of(y, p, given)
    for fold in range(5):
        others = folds != fold
        fitted = literal.OF_TWO[method](*groups_of_cases(p[others], y[others], used[others]))
        own = p[~others]
        expected = fitted(np.log(own / (1 - own)))
        np.testing.assert_allclose(found[~others], expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_choice_is_the_literal_one(seed, weighted, n_classes):
    """By losses that anybody can compute from the calibrated probabilities of each candidate."""
    rng = np.random.default_rng(seed)
    codes, p = classes_drawn(rng, 400, n_classes)
    p = p ** [0.8, 1.0, 1.6][seed]
    p /= p.sum(axis=1, keepdims=True)
    weights = rng.gamma(1.0, size=400) if weighted else np.ones(400)
    scores = p[:, 1] if n_classes == 2 else p
    data = check_labelled_probabilities(codes, scores, None, None, weights, name="p")
    found = CrossFit(data).choice
    losses = {}
    for name in found.losses:
        q = cross_fitted_calibration(codes, scores, sample_weight=weights, method=name)
        q = np.stack([1 - q, q], axis=1) if q.ndim == 1 else q
        losses[name] = (-np.log(q[np.arange(400), codes])).tolist()
        mean = np.average(losses[name], weights=weights)
        assert found.losses[name] == pytest.approx(mean, rel=1e-9)
    squares = (weights**2).tolist()
    assert found.method == literal.chosen(losses, weights.tolist(), squares)
    np.testing.assert_array_equal(
        cross_fitted_calibration(codes, scores, sample_weight=weights),
        cross_fitted_calibration(codes, scores, sample_weight=weights, method=found.method),
    )


def test_the_chosen_map_is_within_one_standard_error_of_the_best():
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(2, 30))
        weights = rng.gamma(1.0, size=n)
        losses = {name: rng.gamma(1.0, size=n) for name in ("identity", "temperature", "platt")}
        found = Candidates.of(losses, weights, weights**2).chosen()
        for name in (min(found.losses, key=found.losses.get), "platt"):
            gap = found.losses[found.method] - found.losses[name]
            assert gap <= found.errors[name] + 1e-12
        assert found.errors[found.method] == 0.0


@pytest.mark.parametrize("seed", range(20))
def test_models_that_are_compared_share_a_kind_if_one_will_do(seed):
    rng = np.random.default_rng(seed)
    names = ["identity", "temperature", "platt", "isotonic"]
    models = []
    for _ in range(2):
        n = int(rng.integers(5, 40))
        weights, common = rng.gamma(1.0, size=n), rng.gamma(1.0, size=n)
        shift = rng.normal(size=4) * [0.02, 0.1, 0.5, 3.0][seed % 4]
        losses = {k: common + b + rng.normal(size=n) for k, b in zip(names, shift, strict=True)}
        models.append((losses, weights, weights**2))
    found = chosen_together([Candidates.of(*model) for model in models])
    expected = literal.chosen_together(
        [({k: v.tolist() for k, v in a.items()}, b.tolist(), c.tolist()) for a, b, c in models]
    )
    assert [part.method for part in found] == expected
    for part, model in zip(found, models, strict=True):
        gap = part.losses[part.method] - part.losses["platt"]
        assert gap <= part.errors["platt"] + 1e-12
        (alone,) = chosen_together([Candidates.of(*model)])
        assert alone == Candidates.of(*model).chosen()


def test_a_model_and_its_powers_are_calibrated_to_the_same():
    odds = np.linspace(-3, 3, 400)
    y = np.random.default_rng(0).random(400) < 1 / (1 + np.exp(-odds))
    scores = [1 / (1 + np.exp(-k * odds)) for k in (1.0, 3.0)]
    made = [check_labelled_probabilities(y, part, None, None, None, name="p") for part in scores]
    for method in ("temperature", "platt", "isotonic"):
        one, other = (fitted_map(data, method)(data.scores) for data in made)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-7)


def power_map(p, a, b):
    """Return frequencies of log-odds a ln p - b ln(1 - p)."""
    u = a * np.log(p) - b * np.log1p(-p)
    return 1 / (1 + np.exp(-u))


def steep(p, where):
    return 1 / (1 + np.exp(-25 * (p - where)))


@pytest.mark.parametrize(
    ("method", "true"),
    [
        ("identity", lambda p: p),
        ("temperature", lambda p: power_map(p, 0.5, 0.5)),
        ("platt", lambda p: 1 / (1 + np.exp(-0.5 * np.log(p / (1 - p)) - 0.8))),
        ("isotonic", lambda p: 0.03 + 0.45 * (steep(p, 0.25) + steep(p, 0.75))),
    ],
)
def test_each_map_is_chosen_where_it_is_the_truth(method, true):
    rng = np.random.default_rng(1)
    p = rng.uniform(0.01, 0.99, 20_000)
    y = rng.random(p.size) < true(p)
    report = Report.from_predictions(y, {"m": p}, n_worst=0)
    (model,) = report.models
    assert model.calibration.method == method
    found = cross_fitted_calibration(y, p)
    assert np.abs(found - true(p)).mean() < (0.02 if method == "isotonic" else 0.01)
    assert model.calibrated.figures["calibration_error"].value < 0.015


@pytest.mark.parametrize(
    ("method", "map_of"),
    [
        ("identity", lambda z: z),
        ("temperature", lambda z: 2.0 * z),
    ],
)
def test_each_map_of_several_classes_is_chosen_where_it_is_the_truth(method, map_of):
    rng = np.random.default_rng(3)
    true = rng.normal(size=(20_000, 3)) * 1.5
    codes = (true + rng.gumbel(size=true.shape)).argmax(axis=1)
    p = np.exp(map_of(true))
    p /= p.sum(axis=1, keepdims=True)
    data = check_labelled_probabilities(codes, p, None, None, None, name="p")
    made = CrossFit(data)
    assert made.choice.method == method
    truth = np.exp(true) / np.exp(true).sum(axis=1, keepdims=True)
    assert np.abs(made.calibrated(method).scores - truth).mean() < 0.01


def test_a_linear_model_is_not_made_worse():
    """Scores that are calibrated stay as they are: Platt's map would bend them."""
    rng = np.random.default_rng(3)
    p = rng.beta(0.6, 0.6, 1_500)
    y = rng.random(1_500) < p
    (model,) = Report.from_predictions(y, {"m": p}, n_worst=0).models
    assert model.calibration.method == "identity"
    assert model.calibration.title == "none"
    for name, figure in model.raw.figures.items():
        assert model.calibrated.figures[name].value == figure.value


@pytest.mark.parametrize("method", [name for name in literal.OF_TWO if name != "platt"])
@pytest.mark.parametrize("scores", ["smooth", "few", "saturated", "reversed"])
def test_maps_of_two_classes_never_turn_the_order_round(method, scores):
    """Platt's may: where higher scores mean fewer positives it says so."""
    y, p, _ = binary(500, 4)
    p = {"few": p.round(1), "saturated": (2 * p).round() / 2, "reversed": 1 - p}.get(scores, p)
    data = check_labelled_probabilities(y, p, None, None, None, name="p")
    grid = np.unique(np.r_[p, np.linspace(0.001, 0.999, 500)])
    found = fitted_map(data, method)(grid)
    assert (np.diff(found) > 0.0).all()
    assert found.min() > 0.0
    assert found.max() < 1.0


def test_few_cases_of_a_block_say_little():
    """One positive above all others is no certainty."""
    p = np.r_[np.linspace(0.01, 0.5, 99), 0.9]
    y = np.r_[np.zeros(99, bool), True]
    data = check_labelled_probabilities(y, p, None, None, None, name="p")
    found = fitted_map(data, "isotonic")(p)
    assert found[-1] == pytest.approx(0.75, abs=1e-3)
    assert found[0] == pytest.approx(0.5 / 100, abs=1e-4)


@pytest.mark.parametrize(("n_classes", "method"), EVERY_METHOD)
def test_maps_are_values(n_classes, method):
    """They can be stored, and give the same again."""
    y, p = binary(100, 9)[:2] if n_classes == 2 else several(100, 9)[:2]
    data = check_labelled_probabilities(y, p, None, None, None, name="p")
    found = fitted_map(data, method)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found))(p), found(p))


@pytest.mark.parametrize("seed", range(4))
def test_tables_choose_as_literal_bins_do(seed):
    rng = np.random.default_rng(seed)
    n, power = 200, [0.4, 1.0, 2.0, 3.0][seed]
    p = rng.beta(1.0, 1.0, n).round(2).clip(0.01, 0.99)
    y = rng.random(n) < power_map(p, power, 1.0)
    weights = rng.gamma(1.0, size=n)
    state = ScoreState([0, 1], ["m"], weighted=True)
    state.update(y.astype(int), p, weights)
    table = ScoreTable.of_bins(state.sums().models["m"].bins)
    found = calibrated_table(table, 1, state.labels)
    _, expected = reference.binned(
        p, y, weights, lambda units, code, split: dealt(units, 5, [code, split, 0])
    )
    assert found.choice.method == expected
    assert found.scores.shape[0] == (1 if expected == "identity" else 20)
    np.testing.assert_allclose(found.shares.sum(axis=1), table.units > 0, atol=1e-12)


def test_a_case_that_came_often_is_that_many_cases_of_a_sample():
    codes, p, _, _ = several(300, 3)
    counts = np.random.default_rng(0).integers(1, 4, 300)
    data = check_labelled_probabilities(codes, p, None, None, counts * 1.0, name="p")
    method = sample_folds(data, counts).choice.method
    found = fitted_map(data, method)
    rows = np.repeat(np.arange(300), counts)
    alone = check_labelled_probabilities(codes[rows], p[rows], None, None, None, name="p")
    np.testing.assert_allclose(found(p), fitted_map(alone, method)(p), rtol=0, atol=1e-9)


def test_the_report_names_the_map(tmp_path):
    y, p, _ = binary(400, 2)
    report = Report.from_predictions(y, {"bold": p, "fair": 0.5 + 0.2 * (p - 0.5)})
    for model, read in zip(report.models, report.to_dict()["models"], strict=True):
        assert isinstance(model.calibration, CalibrationChoice)
        given = read["calibration"]
        assert given["method"] == model.calibration.method
        assert list(given["log_loss"]) == list(literal.OF_TWO) == list(given["standard_error"])
        assert model.calibration.title in str(report)
    assert "calibration map" in str(report)
    assert "calibration map" in report.to_markdown()
    assert "calibration map" in report.to_html()
    plain = Report.from_predictions(y, p, calibrate=False)
    assert plain.models[0].calibration is None
    assert plain.to_dict()["models"][0]["calibration"] is None
    assert "calibration map" not in str(plain)


def test_methods_by_name():
    y, p, _ = binary(60, 0)
    with pytest.raises(ValueError, match="'isotonic' for two classes; got 'none'"):
        cross_fitted_calibration(y, p, method="none")
    codes, shares, _, _ = several(60, 0)
    with pytest.raises(ValueError, match="method must be one of 'auto', 'identity', 'temperature'"):
        cross_fitted_calibration(codes, shares, method="platt")
    kept = cross_fitted_calibration(y, p, method="identity")
    np.testing.assert_array_equal(kept, p)
    assert measure_fragility(y, kept).value == measure_fragility(y, p).value


def test_a_temperature_leaves_a_score_and_its_opposite_equally_sure():
    y, p, _ = binary(300, 6)
    p = p.round(3).clip(0.001, 0.999)
    data = check_labelled_probabilities(y, p, None, None, None, name="p")
    found = fitted_map(data, "temperature")
    grid = np.arange(1, 500) / 1000
    sure = found(np.array([float(f"{1 - x:.3f}") for x in grid]))
    np.testing.assert_array_equal(sure, np.where(sure < 0.993, 1 - found(grid), sure))
