"""Cross-fitted calibration against a general optimiser, and what it must and must not change."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from fragility import fragility_index
from fragility._random import content_order, spread_over_folds
from fragility._validation import check_labelled_probabilities
from fragility.calibration import cross_fitted_calibration
from tests.confident_models import classes_drawn
from tests.reference import calibration as reference
from tests.reference import calibration_maps


def binary(n, seed, scale=3.0):
    rng = np.random.default_rng(seed)
    logit = 1.5 * rng.normal(size=n)
    y = rng.random(n) < 1 / (1 + np.exp(-logit))
    return y, 1 / (1 + np.exp(-scale * logit - 0.4)), rng.integers(1, 4, n).astype(float)


def several(n, seed, power=3.0):
    rng = np.random.default_rng(seed)
    codes, p = classes_drawn(rng, n, 4)
    bold = p**power
    return codes, bold / bold.sum(axis=1, keepdims=True), rng.integers(1, 4, n).astype(float), p


#: Number of classes and name of each map.
EVERY_METHOD = [
    *((2, method) for method in calibration_maps.OF_TWO),
    *((4, method) for method in ("identity", "temperature")),
]


def folds_of(y, p, weights=None, n_splits=5, seed=0):
    data = check_labelled_probabilities(y, p, sample_weight=weights)
    counted = None if weights is None else data.weights > 0.0
    order = content_order(data.codes, data.scores, data.weights)
    if counted is not None:
        counted = counted[order]
    folds = np.empty(data.codes.size, dtype=int)
    folds[order] = spread_over_folds(
        data.codes[order], n_splits, np.random.default_rng(seed), counted
    )
    return folds


@pytest.mark.parametrize("weighted", [False, True])
def test_platt_of_each_fold_is_fitted_to_the_others(weighted):
    y, p, weights = binary(400, 0)
    given = weights if weighted else None
    found = cross_fitted_calibration(y, p, sample_weight=given, method="platt")
    used = weights if weighted else np.ones(y.size)
    folds = folds_of(y, p, given)
    for fold in range(5):
        others = folds != fold
        expected = reference.platt(p[others], y[others], used[others])(p[~others])
        np.testing.assert_allclose(found[~others], expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_temperature_of_each_fold_is_fitted_to_the_others(weighted):
    codes, p, weights, _ = several(400, 1)
    given = weights if weighted else None
    found = cross_fitted_calibration(codes, p, sample_weight=given, method="temperature")
    used = weights if weighted else np.ones(codes.size)
    folds = folds_of(codes, p, given)
    for fold in range(5):
        others = folds != fold
        expected = reference.temperature(p[others], codes[others], used[others])(p[~others])
        np.testing.assert_allclose(found[~others], expected, rtol=0, atol=2e-6)


def test_bold_models_come_back_to_the_true_probabilities():
    rng = np.random.default_rng(2)
    logit = 2 * rng.normal(size=100_000)
    true = 1 / (1 + np.exp(-logit))
    y = rng.random(logit.size) < true
    found = cross_fitted_calibration(y, 1 / (1 + np.exp(-3 * logit - 1)))
    assert np.abs(found - true).max() < 0.01
    codes, p, _, true = several(100_000, 3)
    assert np.abs(cross_fitted_calibration(codes, p) - true).max() < 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_classes", "n", "worse"), [(2, 500, 0.01), (10, 500, 0.005), (1_000, 2_000, 0.005)]
)
def test_calibrated_models_stay_as_they_are(n_classes, n, worse):
    """Whatever is fitted, the true map changes nothing: the loss can hardly become less."""
    rng = np.random.default_rng(n_classes)
    losses = []
    for _ in range(3):
        logits = 6.0 * rng.normal(size=(n, n_classes))
        codes = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
        support = np.bincount(codes, minlength=n_classes)
        kept = support[codes] > 1  # the others cannot be cross-fitted
        p, codes = softmax(logits[kept], axis=1), codes[kept]
        found = cross_fitted_calibration(codes, p, labels=range(n_classes))
        found = np.stack([1 - found, found], axis=1) if found.ndim == 1 else found
        rows = np.arange(codes.size)
        losses.append([-np.log(q[rows, codes]).mean() for q in (p, found)])
    before, after = np.mean(losses, axis=0)
    assert after < before + worse


def test_a_model_without_a_mistake_keeps_a_doubt():
    """The likelihood has no maximum: the map is bounded, and one mistake is no catastrophe."""
    codes = np.arange(60) % 3
    sure = np.eye(3)[codes]
    found = cross_fitted_calibration(codes, sure, method="temperature")
    doubt = 1.0 - np.exp(-1 / 49)  # 48 cases are in the other folds
    np.testing.assert_allclose(found[np.arange(60), codes], 1.0 - doubt, rtol=1e-12)
    wrong = sure.copy()
    wrong[7] = np.eye(3)[0]  # a mistake that the map of its fold has not seen
    found = cross_fitted_calibration(codes, wrong, method="temperature")
    assert -np.log(found[7, codes[7]]) == pytest.approx(np.log(2 / doubt), rel=1e-9)


def test_maps_of_narrow_scores_leave_nothing_impossible():
    """Scores of one case that are far beyond those that its map was fitted to."""
    y = np.arange(60) % 2 == 1
    p = np.where(y, 0.501, 0.499)
    p[[0, 1]] = [1.0, 0.0]
    found = cross_fitted_calibration(y, p)
    assert found.min() > 0.0
    assert found.max() < 1.0
    codes = np.arange(60) % 3
    shares = np.full((60, 3), 0.333)
    shares[np.arange(60), codes] = 0.334
    shares[0] = [0.0, 0.0, 1.0]
    found = cross_fitted_calibration(codes, shares)
    assert found.min() > 0.0
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)


def test_a_true_class_of_probability_zero_is_a_finite_mistake():
    codes, p, _, _ = several(200, 7, power=1.0)
    p[0] = 0.0
    p[0, (codes[0] + 1) % 4] = 1.0
    nearly = np.clip(p, 1e-12, None)
    np.testing.assert_allclose(
        cross_fitted_calibration(codes, p),
        cross_fitted_calibration(codes, nearly / nearly.sum(axis=1, keepdims=True)),
        rtol=1e-9,
    )


def test_probabilities_worse_than_none_keep_their_order():
    """A temperature never turns the classes round: it leaves no confidence, and says the same."""
    p = several(400, 8)[3]
    found = cross_fitted_calibration(p.argmin(axis=1), p, method="temperature")
    assert np.abs(4 * found - 1).max() < 2e-3
    assert (np.argsort(found, axis=1) == np.argsort(p, axis=1)).all()


def test_a_shrunk_model_and_the_model_have_one_index_after_calibration():
    y, p, _ = binary(3_000, 4, scale=1.0)
    shrunk = 1 / (1 + np.exp(-0.2 * np.log(p / (1 - p))))
    assert fragility_index(y, shrunk) < 0.5 * fragility_index(y, p)
    both = [fragility_index(y, cross_fitted_calibration(y, scores)) for scores in (p, shrunk)]
    assert both[0] == pytest.approx(both[1], rel=1e-6)


def test_folds_have_the_same_mix_and_depend_on_the_seed_only():
    y, p, _ = binary(1_003, 5)
    folds = folds_of(y, p)
    for label in (False, True):
        counts = np.bincount(folds[y == label], minlength=5)
        assert counts.max() - counts.min() <= 1
    np.testing.assert_array_equal(folds, folds_of(y, p))
    assert (folds != folds_of(y, p, seed=1)).any()
    np.testing.assert_array_equal(
        cross_fitted_calibration(y, p), cross_fitted_calibration(y, p * 1.0, random_state=0)
    )


def test_scale_of_the_weights_and_weightless_cases_do_not_matter():
    y, p, weights = binary(300, 6)
    found = cross_fitted_calibration(y, p, sample_weight=weights)
    np.testing.assert_allclose(
        found, cross_fitted_calibration(y, p, sample_weight=1e-9 * weights), rtol=1e-9
    )
    weights[::3] = 0.0
    found = cross_fitted_calibration(y, p, sample_weight=weights)
    p[::3] = 0.5  # what weightless cases say must not move the others
    other = cross_fitted_calibration(y, p, sample_weight=weights)
    kept = weights > 0
    np.testing.assert_allclose(found[kept], other[kept], rtol=1e-9)


@pytest.mark.parametrize(("n_classes", "method"), EVERY_METHOD)
def test_a_case_of_all_the_weight_takes_no_weight_from_folds_without_it(n_classes, method):
    y, p = binary(100, 9)[:2] if n_classes == 2 else several(100, 9)[:2]
    weights = np.full(100, 1e-200)
    weights[3] = 1e200
    assert np.isfinite(cross_fitted_calibration(y, p, sample_weight=weights)).all()
    found = cross_fitted_calibration(y, p, sample_weight=weights, method=method)
    expected = cross_fitted_calibration(y, p, method=method)
    np.testing.assert_allclose(found[3], expected[3], rtol=1e-9)


@pytest.mark.parametrize(
    ("y", "p"),
    [
        ([0, 0, 0, 1, 1, 1], [0.0, 0.0, 0.1, 0.9, 1.0, 1.0]),  # no overlap
        ([0, 0, 0, 1, 1, 1], [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]),  # saturated mistakes
        ([0, 0, 0, 1, 1, 1], [0.5] * 6),
        ([0, 0, 1, 1, 2, 2], np.eye(3)[[0, 0, 1, 1, 2, 2]]),
        ([0, 0, 1, 1, 2, 2], np.eye(3)[[1, 0, 2, 1, 0, 2]]),
    ],
)
def test_odd_scores_give_probabilities(y, p):
    found = cross_fitted_calibration(y, p)
    assert np.isfinite(found).all()
    assert found.min() > 0.0
    assert found.max() < 1.0
    if found.ndim == 2:
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("n", [101, 1_003])
def test_scores_that_are_all_the_same_teach_no_map(n):
    y = np.arange(n) % 3 == 0
    same = np.full(n, 0.3)
    same[7] = 0.31  # its fold has a map that the others, all alike, were fitted to
    found = cross_fitted_calibration(y, same, method="platt")
    assert abs(found[7] - 1 / 3) < 0.02
    # The same of several classes, but for rounding.
    noise = 1 + 1e-16 * np.random.default_rng(0).normal(size=(n, 5))
    found = cross_fitted_calibration(np.arange(n) % 5, 0.2 * noise)
    np.testing.assert_allclose(found, 0.2, rtol=1e-12)


def test_bad_input():
    with pytest.raises(ValueError, match="class 1 has a single sample"):
        cross_fitted_calibration([0, 0, 1], [0.1, 0.2, 0.9])
    with pytest.raises(ValueError, match="only one class has samples"):
        cross_fitted_calibration([0, 0], [0.1, 0.2], labels=[0, 1])
    with pytest.raises(ValueError, match="n_splits must be a whole number of 2 or more"):
        cross_fitted_calibration([0, 0, 1, 1], [0.1, 0.2, 0.9, 0.8], n_splits=1)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_calibration_does_not_depend_on_the_order_of_the_cases(n_classes, weighted):
    rng = np.random.default_rng(4)
    n = 200
    y = rng.integers(0, n_classes, n)
    p = rng.dirichlet(np.ones(n_classes), n).round(1)  # many ties
    p[:, -1] = 1.0 - p[:, :-1].sum(axis=1)
    p = p[:, 1] if n_classes == 2 else p.clip(0.0)
    w = rng.integers(0, 3, n).astype(float) if weighted else None
    order = rng.permutation(n)
    there = cross_fitted_calibration(y, p, sample_weight=w)
    shuffled = cross_fitted_calibration(
        y[order], p[order], sample_weight=None if w is None else w[order]
    )

    def cases(labels, scores, weights):
        columns = [labels, *np.atleast_2d(scores.T), *([] if weights is None else [weights])]
        return np.array(sorted(map(tuple, np.column_stack(columns))))

    own = cases(y, there, w)
    other = cases(y[order], shuffled, None if w is None else w[order])
    np.testing.assert_allclose(own, other, rtol=1e-12)


@pytest.mark.slow
def test_a_report_does_not_depend_on_the_order_of_the_cases():
    from fragility import Report

    rng = np.random.default_rng(5)
    y = rng.random(300) < 0.4
    p = (rng.random(300) * 0.5 + 0.4 * y).round(1)
    q = (0.5 * p + 0.5 * rng.random(300)).round(2)
    order = rng.permutation(300)
    options = {"costs": {"error_cost": 5.0}, "n_worst": 0}
    one = Report.from_predictions(y, {"p": p, "q": q}, **options).to_metrics()
    other = Report.from_predictions(y[order], {"p": p[order], "q": q[order]}, **options)
    assert one == pytest.approx(other.to_metrics(), rel=1e-9)
    (own,) = Report.from_predictions(y, {"p": p, "q": q}, **options).comparisons
    (pair,) = other.comparisons
    assert own.calibrated.index.p_value == pytest.approx(pair.calibrated.index.p_value, rel=1e-6)


def test_other_models_do_not_move_the_calibration_of_one():
    """As long as it keeps its kind of map."""
    from fragility import Report

    rng = np.random.default_rng(6)
    y = rng.random(200) < 0.4
    p = (rng.random(200) * 0.5 + 0.4 * y).round(1)
    models = {"p": p, "q": (0.5 * p + 0.5 * rng.random(200)).round(2), "r": p**2}
    single = Report.from_predictions(y, {"p": p}, n_worst=0)
    alone, kind = single.to_metrics(), single.models[0].calibration.method
    for names in (["p", "q"], ["q", "p"], ["r", "q", "p"]):
        chosen = {name: models[name] for name in names}
        report = Report.from_predictions(y, chosen, n_worst=0)
        assert report.models[names.index("p")].calibration.method == kind
        beside = report.to_metrics()
        assert {name: beside[name] for name in alone} == pytest.approx(alone, rel=1e-9)
