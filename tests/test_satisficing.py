"""Robust satisficing against the literal programs: least k, feasible, optimal in NumPy's eyes."""

import math
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import ClassVar

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import nnls
from scipy.special import expit, logsumexp, softmax

from fragility import KL, ERMClassifier, SatisficingClassifier, Wasserstein
from fragility.losses import CrossEntropy, Loss, SmoothedHinge

from .reference import linear, losses, programs
from .reference.pairs import bisected_index
from .reference.programs import cp

LOSSES = ["cross_entropy", "smoothed_hinge"]
NORMS = {"w1": 1, "w2": 2, "winf": math.inf}
AMBIGUITIES = {"kl": KL(), **{name: Wasserstein(norm=norm) for name, norm in NORMS.items()}}
PENALTIES = {"no penalty": 0.0, "l2": 1e-2}

each_loss = pytest.mark.parametrize("loss", LOSSES)
each_ambiguity = pytest.mark.parametrize("ambiguity", AMBIGUITIES)
each_norm = pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS.keys())
each_number_of_classes = pytest.mark.parametrize("n_classes", [2, 3])
each_penalty = pytest.mark.parametrize("alpha", PENALTIES.values(), ids=PENALTIES.keys())


def problem(n_classes, n=60):
    """Overlapping classes; columns of different spread, none centred."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) * [1.0, 3.0, 0.5] + [0.5, -1.0, 2.0]
    logits = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(size=(3, n_classes))
    y = (logits + 1.2 * rng.gumbel(size=(n, n_classes))).argmax(axis=1)
    return X, y, rng.integers(1, 4, n).astype(float)


@cache
def losses_at_both_ends(loss, n_classes, alpha, fit_intercept=True, weighted=False):
    """Least loss, and the least loss without features."""
    X, y, weights = problem(n_classes)
    options = {"fit_intercept": fit_intercept, "weights": weights if weighted else None}
    best = programs.erm(X, y, n_classes, loss, alpha=alpha, **options)
    trivial = programs.erm(np.zeros((y.size, 1)), y, n_classes, loss, **options)
    return best.value, trivial.value


def target_between(loss, n_classes, alpha, fit_intercept=True, weighted=False, slack=0.2):
    best, trivial = losses_at_both_ends(loss, n_classes, alpha, fit_intercept, weighted)
    return best + slack * (trivial - best)


def model_for(loss, ambiguity, alpha, **parameters):
    penalty = {"penalty": "l2", "alpha": alpha} if alpha else {"penalty": None}
    return SatisficingClassifier(
        loss, AMBIGUITIES.get(ambiguity, ambiguity), **penalty, **parameters
    )


def attained(model, X, y, loss, alpha, weights=None):
    """Mean loss plus R, from the coefficients."""
    values = linear.losses(model.coef_, model.intercept_, X, y, loss)
    return np.average(values, weights=weights) + alpha * (model.coef_**2).sum()


def fragility_of(model, ambiguity, X, y, loss, alpha, target, weights=None):
    """k from the coefficients: a dual norm, or the root of the log-moment by bisection."""
    if ambiguity != "kl":
        return linear.dual_norms(model.coef_, NORMS[ambiguity]).max()
    values = linear.losses(model.coef_, model.intercept_, X, y, loss)
    return bisected_index(values, target - alpha * (model.coef_**2).sum(), weights)


def least_k(ambiguity, X, y, n_classes, loss, target, *, steepness=1.0, **options):
    if ambiguity == "kl":
        return programs.kl(X, y, n_classes, loss, target, **options).k
    options |= {"norm": NORMS[ambiguity], "steepness": steepness}
    return programs.wasserstein(X, y, n_classes, loss, target, **options).k


@pytest.mark.outside
@pytest.mark.parametrize("n_wrong", [1, 2, 4])
@pytest.mark.parametrize("smoothing", [0.3, 1.0, 3.0])
def test_the_smoothed_hinge_of_the_programs(n_wrong, smoothing):
    """Its epigraph is the maximum over shares of the definition."""
    gaps = np.random.default_rng(n_wrong).normal(size=(20, n_wrong))
    expression = programs.smoothed_hinge(cp.Constant(gaps), smoothing)
    cp.Problem(cp.Minimize(cp.sum(expression))).solve(solver=cp.CLARABEL)
    literal = [losses.smoothed_hinge([0.0, *row], 0, smoothing) for row in gaps]
    assert expression.value == pytest.approx(literal, abs=1e-6)
    plain, _ = linear.value_and_shares("smoothed_hinge", gaps, smoothing)
    assert plain == pytest.approx(literal, abs=1e-9)


@pytest.mark.outside
@each_loss
@each_ambiguity
@each_penalty
@each_number_of_classes
# With an intercept and equal weights: test_program_table.py.
@pytest.mark.parametrize(
    ("fit_intercept", "weighted"),
    [(True, True), (False, False)],
    ids=["intercept, weighted", "no intercept"],
)
def test_least_fragility(loss, ambiguity, alpha, n_classes, fit_intercept, weighted):
    X, y, weights = problem(n_classes)
    weights = weights if weighted else None
    case = (loss, n_classes, alpha, fit_intercept, weighted)
    target = target_between(*case)
    model = model_for(loss, ambiguity, alpha, target=target, fit_intercept=fit_intercept)
    model.fit(X, y, sample_weight=weights)

    options = {"alpha": alpha, "fit_intercept": fit_intercept, "weights": weights}
    k = least_k(ambiguity, X, y, n_classes, loss, target, **options)
    assert model.fragility_ == pytest.approx(k, rel=1e-5)
    assert attained(model, X, y, loss, alpha, weights) <= target + 1e-8
    own = fragility_of(model, ambiguity, X, y, loss, alpha, target, weights)
    assert model.fragility_ == pytest.approx(own, rel=1e-9)

    best, trivial = losses_at_both_ends(*case)
    assert model.target_ == pytest.approx(target, rel=1e-14)
    assert model.erm_loss_ == pytest.approx(best, rel=1e-7)
    assert model.trivial_loss_ == pytest.approx(trivial, rel=1e-7)
    n_rows = 1 if n_classes == 2 else n_classes
    assert model.coef_.shape == (n_rows, X.shape[1])
    assert model.intercept_.shape == (n_rows,)
    if not fit_intercept:
        assert not model.intercept_.any()
    if n_rows > 1:
        assert model.coef_.sum(axis=0) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.outside
@each_loss
@each_penalty
@each_number_of_classes
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_least_loss(loss, alpha, n_classes, fit_intercept):
    X, y, weights = problem(n_classes)
    penalty = {"penalty": "l2", "alpha": alpha} if alpha else {"penalty": None}
    model = ERMClassifier(loss, fit_intercept=fit_intercept, **penalty)
    model.fit(X, y, sample_weight=weights)
    best, _ = losses_at_both_ends(loss, n_classes, alpha, fit_intercept, weighted=True)
    assert attained(model, X, y, loss, alpha, weights) == pytest.approx(best, rel=1e-8)


@each_loss
@each_number_of_classes
class TestWaysToSetTheTarget:
    @pytest.mark.outside
    def test_slack(self, loss, n_classes):
        X, y, _ = problem(n_classes)
        best, trivial = losses_at_both_ends(loss, n_classes, 1e-2)
        for slack in (0.05, 0.5):
            model = model_for(loss, "w2", 1e-2, slack=slack).fit(X, y)
            assert model.target_ == pytest.approx(best + slack * (trivial - best), rel=1e-7)

    @pytest.mark.outside
    def test_ratio_is_of_the_loss_with_its_penalty(self, loss, n_classes):
        X, y, _ = problem(n_classes)
        best, _ = losses_at_both_ends(loss, n_classes, 1e-2)
        model = model_for(loss, "kl", 1e-2, target_ratio=1.1).fit(X, y)
        assert model.target_ == pytest.approx(1.1 * best, rel=1e-7)


FEATURE_WEIGHTS = {"finite": (2.0, 0.5, 1.0), "one fixed": (1.0, math.inf, 3.0)}


@pytest.mark.outside
@each_loss
@each_norm
@each_number_of_classes
@pytest.mark.parametrize(
    "feature_weight", FEATURE_WEIGHTS.values(), ids=list(FEATURE_WEIGHTS.keys())
)
def test_feature_weights(loss, norm, n_classes, feature_weight):
    X, y, _ = problem(n_classes)
    fixed = np.isinf(feature_weight)
    best, _ = losses_at_both_ends(loss, n_classes, 0.0)
    # Without features that can shift: those that cannot are all that is left.
    kept = X[:, fixed] if fixed.any() else np.zeros((y.size, 1))
    trivial = programs.erm(kept, y, n_classes, loss).value
    target = best + 0.2 * (trivial - best)
    ambiguity = Wasserstein(norm=norm, feature_weight=feature_weight)
    model = model_for(loss, ambiguity, 0.0, target=target).fit(X, y)
    reference = programs.wasserstein(
        X, y, n_classes, loss, target, norm=norm, feature_weight=feature_weight
    )
    assert model.fragility_ == pytest.approx(reference.k, rel=1e-5)
    assert model.trivial_loss_ == pytest.approx(trivial, rel=1e-7)
    assert attained(model, X, y, loss, 0.0) <= target + 1e-8
    own = linear.dual_norms(model.coef_, norm, feature_weight).max()
    assert model.fragility_ == pytest.approx(own, rel=1e-9)


@each_loss
@each_penalty
class TestStationary:
    """First-order conditions, with slopes that share nothing with the library."""

    def fitted(self, loss, ambiguity, alpha, n_classes):
        X, y, _ = problem(n_classes)
        target = target_between(loss, n_classes, alpha)
        model = model_for(loss, ambiguity, alpha, target=target, tol=1e-10).fit(X, y)
        return X, y, target, model

    @pytest.mark.outside
    @each_norm
    def test_two_classes(self, loss, alpha, norm):
        # -slope = λ s with λ > 0 and s a subgradient of the dual norm at w: then, and only then,
        # -slope·w = ‖slope‖ ‖w‖_*. First order in errors of w, where k is of second.
        weight = np.array([1.0, 2.0, 0.5])
        ambiguity = Wasserstein(norm=norm, feature_weight=weight)
        X, y, _, model = self.fitted(loss, ambiguity, alpha, 2)
        equal = np.full(y.size, 1 / y.size)
        slope, by_intercept = linear.slopes(model.coef_, model.intercept_, X, y, loss, equal, alpha)
        size = np.linalg.norm(weight * slope[0], ord=norm)
        assert size > 1e-3
        assert -slope[0] @ model.coef_[0] == pytest.approx(size * model.fragility_, rel=1e-5)
        assert by_intercept == pytest.approx(0.0, abs=1e-5 * size)
        if norm == 2:
            along = -model.coef_[0] / weight / model.fragility_
            assert weight * slope[0] / size == pytest.approx(along, abs=1e-4)

    @pytest.mark.outside
    def test_several_classes(self, loss, alpha):
        # -slope = Σ λ_ij (e_i - e_j)(β_i - β_j)ᵀ / k with λ >= 0 on pairs as far apart as k.
        X, y, _, model = self.fitted(loss, "w2", alpha, 3)
        equal = np.full(y.size, 1 / y.size)
        slope, by_intercept = linear.slopes(model.coef_, model.intercept_, X, y, loss, equal, alpha)
        unit = np.eye(3)
        active = [
            np.outer(unit[i] - unit[j], model.coef_[i] - model.coef_[j]).ravel()
            for i, j in ((0, 1), (0, 2), (1, 2))
            if np.linalg.norm(model.coef_[i] - model.coef_[j]) > model.fragility_ * (1 - 1e-5)
        ]
        _, residual = nnls(np.array(active).T, -slope.ravel())
        size = np.linalg.norm(slope)
        assert size > 1e-3
        assert residual <= 1e-4 * size
        assert by_intercept == pytest.approx(0.0, abs=1e-4 * size)

    @pytest.mark.outside
    @each_number_of_classes
    def test_kl(self, loss, alpha, n_classes):
        X, y, target, model = self.fitted(loss, "kl", alpha, n_classes)
        values, k = linear.losses(model.coef_, model.intercept_, X, y, loss), model.fragility_
        tilted = np.exp((values - values.max()) / k)
        tilted /= tilted.sum()
        slope, by_intercept = linear.slopes(
            model.coef_, model.intercept_, X, y, loss, tilted, alpha
        )
        assert slope == pytest.approx(0.0, abs=1e-5)
        assert by_intercept == pytest.approx(0.0, abs=1e-5)
        # E_q ℓ - k KL(q) + R = τ: the worst case uses up the target.
        worst = tilted @ values - k * tilted @ np.log(tilted * y.size)
        assert worst + alpha * (model.coef_**2).sum() == pytest.approx(target, rel=1e-9)


@dataclass(frozen=True)
class Softplus(Loss):
    """A user's loss: s T ln(1 + Σ_c exp(g_c / T)), whose slopes sum to at most s."""

    temperature: float = 0.5
    steepness: ClassVar[float] = 0.8

    def value(self, scores, y):
        t = self.temperature
        if scores.ndim == 1:
            return self.steepness * t * np.logaddexp(0.0, np.where(y == 1, -scores, scores) / t)
        rest = logsumexp(scores / t, axis=1) - scores[np.arange(y.size), y] / t
        return self.steepness * t * rest

    def gradient(self, scores, y):
        if scores.ndim == 1:
            return self.steepness * (expit(scores / self.temperature) - (y == 1))
        slope = softmax(scores / self.temperature, axis=1)
        slope[np.arange(y.size), y] -= 1.0
        return self.steepness * slope

    def curvature(self, scores, y):
        factor = self.steepness / self.temperature
        if scores.ndim == 1:
            p = expit(scores / self.temperature)
            return factor * p * (1 - p)
        p = softmax(scores / self.temperature, axis=1)
        return factor * (p[:, :, None] * np.eye(p.shape[1]) - p[:, :, None] * p[:, None, :])

    @staticmethod
    def transcribed(gaps):
        return 0.8 * 0.5 * programs.cross_entropy(gaps / 0.5)


@pytest.mark.outside
@each_ambiguity
@each_number_of_classes
def test_a_loss_of_the_user(ambiguity, n_classes):
    X, y, _ = problem(n_classes)
    best, trivial = losses_at_both_ends(Softplus.transcribed, n_classes, 0.0)
    target = best + 0.2 * (trivial - best)
    model = model_for(Softplus(), ambiguity, 0.0, target=target).fit(X, y)
    k = least_k(
        ambiguity, X, y, n_classes, Softplus.transcribed, target, steepness=Softplus.steepness
    )
    assert model.fragility_ == pytest.approx(k, rel=1e-5)
    assert model.erm_loss_ == pytest.approx(best, rel=1e-7)
    scores = (X @ model.coef_.T + model.intercept_).squeeze()
    assert Softplus().value(scores, y).mean() <= target + 1e-8


@pytest.mark.outside
@pytest.mark.parametrize("smoothing", [0.2, 2.0])
@pytest.mark.parametrize("ambiguity", ["kl", "w2"])
@each_number_of_classes
def test_other_widths_of_the_smoothed_hinge(smoothing, ambiguity, n_classes):
    X, y, _ = problem(n_classes)

    def transcribed(gaps):
        return programs.smoothed_hinge(gaps, smoothing)

    best = programs.erm(X, y, n_classes, transcribed).value
    model = model_for(SmoothedHinge(smoothing), ambiguity, 0.0, target=1.1 * best).fit(X, y)
    k = least_k(ambiguity, X, y, n_classes, transcribed, 1.1 * best)
    assert model.fragility_ == pytest.approx(k, rel=1e-5)


def test_names_and_objects_are_the_same():
    X, y, _ = problem(2)
    for name, ambiguity in (("kl", KL()), ("wasserstein", Wasserstein())):
        for loss, same in (
            ("cross_entropy", CrossEntropy()),
            ("smoothed_hinge", SmoothedHinge()),
        ):
            named = SatisficingClassifier(loss, name, slack=0.1).fit(X, y)
            given = SatisficingClassifier(same, ambiguity, slack=0.1).fit(X, y)
            assert named.coef_.tolist() == given.coef_.tolist()
            assert named.fragility_ == given.fragility_


SUPPORT = list(product(LOSSES, AMBIGUITIES, PENALTIES.values(), [2, 3, 4], [False, True]))


@pytest.mark.parametrize(("loss", "ambiguity", "alpha", "n_classes", "is_sparse"), SUPPORT)
def test_every_cell_is_solved(loss, ambiguity, alpha, n_classes, is_sparse):
    X, y, _ = problem(n_classes)
    model = model_for(loss, ambiguity, alpha, slack=0.3)
    model.fit(sparse.csr_array(X) if is_sparse else X, y)
    assert attained(model, X, y, loss, alpha) <= model.target_ + 1e-8
    own = fragility_of(model, ambiguity, X, y, loss, alpha, model.target_)
    assert model.fragility_ == pytest.approx(own, rel=1e-9)
    assert 0.0 < model.fragility_ < math.inf
    assert model.solver_
    assert np.max(model.n_iter_) >= 1
