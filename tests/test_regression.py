"""Linear regression of the least fragility: the program, the promise, and what is refused."""

from math import inf
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from fragility import SatisficingRegressor, Wasserstein
from fragility.certificates import certify_regression
from fragility.exceptions import (
    InfeasibleTargetError,
    NothingLearnedWarning,
    TargetError,
    TightTargetWarning,
    TrivialTargetWarning,
    UndefinedTargetError,
)
from fragility.solvers import error_curvature
from fragility.solvers import regression as solver

from .instances import instances
from .reference import lipschitz as reference
from .reference import shifts as adversary

pytestmark = pytest.mark.outside


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks([SatisficingRegressor()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def drawn(seed, m, n=50, d=4):
    rng = np.random.default_rng(seed)
    X = 3.0 + rng.normal(size=(n, d)) * rng.uniform(0.5, 50.0, size=d)
    Y = (X - 3.0) @ rng.normal(size=(d, m)) + 20.0 * rng.standard_t(3, size=(n, m)) + 100.0
    return X, Y


CASES = [
    (1, 2, {}),
    (1, 1, {"penalty": "l2"}),
    (1, inf, {"weighted": True}),
    (1, 2, {"fit_intercept": False, "feature_weight": (1.0, 0.2, 5.0, 1.0)}),
    (3, 2, {}),
    (3, 2, {"penalty": "l2", "weighted": True}),
    (3, 1, {"feature_weight": (1.0, 0.2, 5.0, 1.0)}),
    (2, 2, {"fit_intercept": False}),
]


@pytest.mark.parametrize(("m", "norm", "options"), CASES, ids=str)
def test_least_fragility_is_that_of_the_literal_program(m, norm, options):
    options = dict(options)
    X, Y = drawn(m, m)
    weights = np.random.default_rng(3).random(len(Y)) if options.pop("weighted", 0) else None
    prices = {"feature_weight": options.pop("feature_weight", None)}
    alpha = 1e-2 if "penalty" in options else 0.0
    # In units of their size, which the reference does not choose for itself.
    size, unit = np.abs(X).max(axis=0), np.abs(Y).max()
    given = {
        "weights": weights,
        "fit_intercept": options.get("fit_intercept", True),
    }
    if alpha == 0.0:
        lowest = unit * reference.regression(X / size, Y / unit, None, **given).value
        trivial = unit * reference.regression(X / size, Y / unit, "trivial", **given).value
    else:
        lowest = reference.regression(X, Y, None, alpha=alpha, **given).value
        trivial = reference.regression(X, Y, "trivial", alpha=alpha, **given).value
    target = lowest + 0.3 * (trivial - lowest)
    model = SatisficingRegressor(Wasserstein(norm, **prices), target=target, alpha=1e-2, **options)
    model.fit(X, Y if m > 1 else Y[:, 0], sample_weight=weights)
    assert model.erm_loss_ == pytest.approx(lowest, rel=1e-6)
    assert model.trivial_loss_ == pytest.approx(trivial, rel=1e-6)
    expected = reference.regression(X, Y, target, norm=norm, alpha=alpha, **prices, **given).k
    assert model.fragility_ == pytest.approx(expected, rel=1e-5)
    assert model.certificate_.attained_loss <= target * (1 + 1e-12)


@pytest.mark.parametrize("norm", [1, 2])
def test_quadratic_models_and_cones_find_the_same(norm, monkeypatch):
    X, Y = drawn(12, 3, n=200)
    asked = []

    def counted(*given):
        found = error_curvature.least_slope(*given)
        asked.append(found is not None)
        return found

    monkeypatch.setattr(solver, "least_slope", counted)
    model = SatisficingRegressor(Wasserstein(norm), slack=0.2).fit(X, Y)
    assert asked == [True]  # with a proof
    for name in ("least_slope", "lowest"):
        monkeypatch.setattr(solver, name, lambda *_: None)
    by_cones = clone(model).fit(X, Y)
    assert by_cones.erm_loss_ == pytest.approx(model.erm_loss_, rel=1e-8)
    assert by_cones.fragility_ == pytest.approx(model.fragility_, rel=1e-6)


def random_promise(seed, m, norm):
    X, Y = drawn(seed, m, n=15, d=3)
    rng = np.random.default_rng(seed)
    ambiguity = Wasserstein(norm, feature_weight=rng.uniform(0.5, 2.0, size=3).tolist())
    if seed % 10 == 0:
        model = SatisficingRegressor(ambiguity, slack=0.4).fit(X, Y)
        return X, Y, model, model.certificate_, rng
    model = SimpleNamespace(coef_=rng.normal(size=(m, 3)), intercept_=rng.normal(size=m))
    level = certify_regression(model, X, Y, target=0.0, ambiguity=ambiguity).attained_loss
    target = level * (1.0 + rng.exponential(0.3) * rng.integers(2))
    return X, Y, model, certify_regression(model, X, Y, target=target, ambiguity=ambiguity), rng


@pytest.mark.slow
@pytest.mark.parametrize(("m", "norm"), [(1, 1), (1, 2), (1, inf), (3, 1), (3, 2)])
def test_no_shift_breaks_the_promise_and_some_come_near(m, norm):
    shares = []
    for seed in range(instances(25)):
        X, Y, model, certificate, rng = random_promise(seed, m, norm)

        def losses(X, rows, Y=Y, model=model):
            return np.linalg.norm(X @ model.coef_.T + model.intercept_ - Y[rows], axis=1)

        found = list(
            adversary.shifts(
                losses,
                X,
                np.arange(len(Y)),
                np.ones(len(Y)),
                norm=norm,
                prices=np.asarray(certificate.ambiguity.feature_weight),
                rng=rng,
                rounds=3,
                climb=30 if norm == 2 and m > 1 else 2,
            )
        )
        for far, loss in found:
            assert loss <= certificate.violation_bound(far) * (1 + 1e-9)
            assert loss <= certificate.worst_loss(far) * (1 + 1e-9)
        steepest = max((loss - certificate.target) / far for far, loss in found if far > 0.0)
        shares.append(steepest / certificate.fragility)
    # Ascent may end beside the steepest direction; where it does not, nothing is left to gain.
    assert max(shares) <= 1.0 + 1e-9
    assert np.median(shares) > 1.0 - 1e-3


class TestTargets:
    def test_ways_to_give_one(self):
        X, Y = drawn(1, 2)
        by_slack = SatisficingRegressor(slack=0.25).fit(X, Y)
        low, high = by_slack.erm_loss_, by_slack.trivial_loss_
        assert by_slack.target_ == pytest.approx(low + 0.25 * (high - low))
        absolute = SatisficingRegressor(target=by_slack.target_).fit(X, Y)
        ratio = SatisficingRegressor(target_ratio=by_slack.target_ / low).fit(X, Y)
        for other in (absolute, ratio):
            assert other.fragility_ == pytest.approx(by_slack.fragility_, rel=1e-6)
        default = SatisficingRegressor().fit(X, Y)
        assert default.target_ == pytest.approx(low + 0.1 * (high - low))

    def test_the_trivial_model_is_the_geometric_median(self):
        X, Y = drawn(2, 2)
        with pytest.warns(TrivialTargetWarning):
            model = SatisficingRegressor(target=1e6).fit(X, Y)
        assert model.fragility_ == 0.0
        assert not model.coef_.any()
        away = model.intercept_ - Y
        pull = (away / np.linalg.norm(away, axis=1, keepdims=True)).mean(axis=0)
        assert np.abs(pull).max() < 1e-5
        with pytest.warns(TrivialTargetWarning):
            single = SatisficingRegressor(target=1e6).fit(X, Y[:, 0])
        assert np.abs(Y[:, 0] - single.intercept_).mean() == pytest.approx(
            np.abs(Y[:, 0] - np.median(Y[:, 0])).mean(), rel=1e-7
        )

    def test_features_that_cannot_shift_are_free(self):
        X, Y = drawn(3, 2)
        fixed = Wasserstein(feature_weight=(inf, 1.0, 1.0, 1.0))
        model = SatisficingRegressor(fixed, slack=0.3).fit(X, Y)
        assert model.fragility_ == pytest.approx(np.linalg.norm(model.coef_[:, 1:], 2), rel=1e-12)
        with pytest.warns(TrivialTargetWarning):
            trivial = SatisficingRegressor(fixed, target=1e6).fit(X, Y)
        assert trivial.coef_[:, 0].any()
        assert not trivial.coef_[:, 1:].any()

    def test_too_low_too_tight_and_undefined(self):
        X, Y = drawn(4, 2)
        lowest = SatisficingRegressor().fit(X, Y).erm_loss_
        with pytest.raises(InfeasibleTargetError, match="cannot be reached: the lowest loss is"):
            SatisficingRegressor(target=0.9 * lowest).fit(X, Y)
        with pytest.warns(TightTargetWarning):
            SatisficingRegressor(target=lowest * (1 + 1e-9)).fit(X, Y)
        with pytest.raises(UndefinedTargetError, match="some model has no error at all"):
            SatisficingRegressor(target_ratio=1.1).fit(X[:3], Y[:3])
        with pytest.raises(TargetError, match="must be a number for a regression"):
            SatisficingRegressor(target="out_of_fold").fit(X, Y)
        with pytest.raises(TargetError, match="Give one of"):
            SatisficingRegressor(target=1.0, slack=0.1).fit(X, Y)

    @pytest.mark.parametrize("value", [7.0, 0.1, 0.0, -1e9 / 3, 1e-300])
    @pytest.mark.parametrize("m", [1, 2])
    def test_nothing_to_learn(self, value, m):
        X, _ = drawn(5, 1)
        weights = np.random.default_rng(0).random(len(X))  # whose sum times a constant is rounded
        for sample_weight in (None, weights):
            with pytest.warns(NothingLearnedWarning):
                model = SatisficingRegressor().fit(X, np.full((len(X), m), value), sample_weight)
            assert model.fragility_ == 0.0
            assert (model.predict(X) == value).all()

    def test_interpolation(self):
        X, Y = drawn(6, 2, n=3)
        model = SatisficingRegressor(slack=0.5).fit(X, Y)
        assert model.erm_loss_ < 1e-6 * model.trivial_loss_
        assert 0.0 < model.fragility_ < inf


class TestInvariances:
    def test_units(self):
        X, Y = drawn(7, 2)
        model = SatisficingRegressor(slack=0.2).fit(X, Y)
        moved = SatisficingRegressor(slack=0.2).fit(X * 1e4 + 1e6, Y * 1e-3 - 5.0)
        assert moved.fragility_ == pytest.approx(model.fragility_ * 1e-7, rel=1e-5)

    def test_repeated_samples_are_weights(self):
        X, Y = drawn(8, 2)
        counts = np.random.default_rng(0).integers(0, 4, size=len(Y))
        weighted = SatisficingRegressor(slack=0.2).fit(X, Y, sample_weight=counts)
        repeated = SatisficingRegressor(slack=0.2).fit(
            np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0)
        )
        assert repeated.coef_ == pytest.approx(weighted.coef_, rel=1e-9)

    def test_one_column_of_y_in_two_shapes(self):
        X, Y = drawn(9, 1)
        flat, column = clone(SatisficingRegressor()), SatisficingRegressor()
        assert column.fit(X, Y).coef_.shape == (1, 4)
        assert flat.fit(X, Y[:, 0]).coef_.shape == (4,)
        assert flat.fragility_ == column.fragility_
        assert flat.predict(X).tolist() == column.predict(X)[:, 0].tolist()


class TestCertificate:
    def test_of_any_regression(self):
        X, Y = drawn(10, 2)
        ordinary = LinearRegression().fit(X, Y)
        own = SatisficingRegressor(slack=0.1).fit(X, Y)
        certificate = certify_regression(ordinary, X, Y, target=own.target_)
        assert certificate.fragility == pytest.approx(np.linalg.norm(ordinary.coef_, 2))
        assert certificate.fragility > own.fragility_
        errors = np.linalg.norm(ordinary.predict(X) - Y, axis=1)
        assert certificate.attained_loss == pytest.approx(errors.mean())
        missed = certify_regression(ordinary, X, Y, target=0.5 * errors.mean())
        assert missed.fragility == missed.violation_bound(0.1) == inf
        assert "missed" in str(missed)

    def test_it_is_recomputed(self):
        X, Y = drawn(11, 2)
        weights = np.random.default_rng(0).random(len(Y))
        model = SatisficingRegressor(slack=0.2, penalty="l2", alpha=1e-2)
        model.fit(X, Y, sample_weight=weights)
        again = certify_regression(model, X, Y, sample_weight=weights)
        assert again.fragility == pytest.approx(model.fragility_, rel=1e-12)
        assert again.attained_loss == pytest.approx(model.certificate_.attained_loss, rel=1e-12)
        assert again.penalty == pytest.approx(1e-2 * (model.coef_**2).sum())
        far = np.array([0.0, 0.5])
        assert again.violation_bound(far) == pytest.approx(model.target_ + far * again.fragility)
        assert again.n_samples == len(Y)
        assert again.headroom == pytest.approx(0.0, abs=1e-6 * model.target_)


class TestRefused:
    @pytest.mark.parametrize(
        ("options", "m", "error", "message"),
        [
            ({"ambiguity": "kl"}, 1, NotImplementedError, "under Wasserstein"),
            (
                {"ambiguity": Wasserstein(label_cost=1.0)},
                1,
                NotImplementedError,
                "does not move",
            ),
            ({"ambiguity": Wasserstein(inf)}, 2, NotImplementedError, "maximum over all signs"),
            (
                {"ambiguity": Wasserstein(feature_weight=(1, 2))},
                1,
                ValueError,
                "Give one for each",
            ),
            ({"penalty": "l1"}, 1, ValueError, "penalty must be one of"),
            ({"fit_intercept": "priced"}, 1, ValueError, "fit_intercept must be one of"),
            ({"alpha": -1.0}, 1, ValueError, "alpha must be zero or more"),
        ],
        ids=str,
    )
    def test_what_has_no_form(self, options, m, error, message):
        X, Y = drawn(0, m)
        with pytest.raises(error, match=message):
            SatisficingRegressor(**options).fit(X, Y)

    def test_samples_and_models_that_do_not_fit(self):
        X, Y = drawn(0, 2)
        with pytest.raises(ValueError, match="zero"):
            SatisficingRegressor().fit(X, Y, sample_weight=np.zeros(len(Y)))
        model = LinearRegression().fit(X, Y)
        with pytest.raises(ValueError, match="give target="):
            certify_regression(model, X, Y)
        with pytest.raises(ValueError, match="coef_ has shape"):
            certify_regression(model, X, Y[:, 0], target=1.0)
        with pytest.raises(ValueError, match="finite and zero or more"):
            certify_regression(model, X, Y, target=1e3).worst_loss(-1.0)
