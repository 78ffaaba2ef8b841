"""The cases behind the statements about training, computed."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.metrics import log_loss

from experiments.errata_cases import least_price
from experiments.label_cost import CLUSTERS, SLACK, Approximation, exact, sample
from fragility import SatisficingClassifier, Wasserstein, wasserstein_fragility_index

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def _drawn(seed: int, share: float, n: int = 400) -> tuple[Floats, Integers]:
    """Two overlapping Gaussian classes, the second with this share."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) < share * n).astype(int)
    return rng.normal(size=(n, 3)) + 0.7 * y[:, np.newaxis], y


def _fitted(X: Floats, y: Integers, **options: object) -> SatisficingClassifier:
    """A model with cross-entropy and the slack of this module; a trivial target is no surprise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SatisficingClassifier("cross_entropy", slack=SLACK, **options).fit(X, y)


def _losses(model: SatisficingClassifier, X: Floats, y: Integers) -> Floats:
    p = model.predict_proba(X)
    return -np.log(p[np.arange(len(y)), y])


def key_inequality() -> tuple[float, float]:
    """Both sides of the inequality that the KL guarantee rests on, as its proof uses it."""
    counts, losses = np.array([1097, 1097, 1]), np.array([2.242, 2.242, 21.804])
    n, classes = int(counts.sum()), len(counts)
    mean = float(counts @ losses / n)
    k = 1.58 * mean
    b, a = guarantee_constants(counts, k, mean)
    right = math.log(counts @ np.exp(losses / k) / n) / b
    left = float((losses / (a * classes * k)).sum())
    return left, right


def guarantee_constants(counts: Integers, k: float, least: float) -> tuple[float, float]:
    """The paper's b and a (α₂ for two classes)."""
    n, classes = int(counts.sum()), len(counts)
    b = math.log(n) / (float(np.log(counts).sum()) + classes * math.log(classes))
    a = b + b * k * math.log(n) * (1 - 1 / (b * classes)) / ((classes - 1) * least)
    return b, a


def kl_targets(seed: int) -> dict[str, float]:
    """The target α₁ τ at which the KL guarantee speaks, for balanced and unbalanced classes."""
    found = {}
    for name, share in (("balanced", 0.5), ("1 in 20 positive", 0.05)):
        X, y = _drawn(seed, share)
        model = _fitted(X, y, ambiguity="kl", fit_intercept=True)
        counts = np.bincount(y)
        b, a = guarantee_constants(counts, float(model.fragility_), float(model.erm_loss_))
        found[name] = a / b * float(model.target_)
    return found


def wasserstein_over_k(seed: int) -> float:
    """The exact Wasserstein index of a trained model at its target, over its k."""
    X, y = _drawn(seed, 0.5)
    model = _fitted(X, y, ambiguity="wasserstein", fit_intercept=True)
    norm = float(np.linalg.norm(model.coef_))
    value = wasserstein_fragility_index(
        y, model.decision_function(X), weight_norm=norm, target=float(model.target_)
    )
    return float(value) / float(model.fragility_)


def label_flips(seed: int, intercept: str) -> tuple[float, float]:
    """The corollary's bound and what happens.

    `intercept` is "no intercept" or "a constant feature", as in the paper's own model, or "a free
    intercept".
    """
    X, y = _drawn(seed, 0.05)
    features = np.c_[np.ones(len(y)), X] if intercept == "a constant feature" else X
    model = _fitted(features, y, fit_intercept=intercept == "a free intercept")
    p = model.predict_proba(features)
    # The labels that the model fits least when flipped: a twentieth of all.
    growth_of_each = np.log(p[np.arange(len(y)), y] / p[np.arange(len(y)), 1 - y])
    flipped = np.argsort(-growth_of_each, kind="stable")[: len(y) // 20]
    true = y.copy()
    true[flipped] = 1 - y[flipped]
    growth = log_loss(true, p) - log_loss(y, p)
    phi = float(np.linalg.norm(features, axis=1).max())
    return phi * float(model.fragility_) * len(flipped) / len(y), float(growth)


def tight_flip(seed: int) -> tuple[float, float]:
    """Bound and growth of the loss where one label is flipped, that of the longest sample.

    One feature and no intercept: every sample lies along the weights.
    """
    X, y = _drawn(seed, 0.5)
    X = X[:, :1] - 0.35
    longest = int(np.argmax(np.abs(X[:, 0])))
    y[longest] = int(X[longest, 0] > 0)
    model = _fitted(X, y, fit_intercept=False)
    true = y.copy()
    true[longest] = 1 - y[longest]
    p = model.predict_proba(X)
    bound = abs(float(X[longest, 0])) * float(model.fragility_) / len(y)
    return bound, float(log_loss(true, p) - log_loss(y, p))


def lemma_slack(seed: int, alpha: float) -> tuple[float, int]:
    """How far the generalisation bound stays above its own worst case, over the target.

    The worst case of KL attains E ℓ + R = τ + k D; the lemma leaves out R (α times the squared
    norm). Also how many of 200 other distributions exceed the bound.
    """
    X, y = _drawn(seed, 0.5)
    penalty = {"penalty": "l2", "alpha": alpha} if alpha else {}
    model = _fitted(X, y, ambiguity="kl", fit_intercept=True, **penalty)
    losses, k, target = _losses(model, X, y), float(model.fragility_), float(model.target_)

    def slack(weights: Floats) -> float:
        kept = weights > 0
        divergence = float(weights[kept] @ np.log(weights[kept] * len(y)))
        return target + k * divergence - float(weights @ losses)

    worst = np.exp((losses - losses.max()) / k)
    rng = np.random.default_rng(seed)
    others = [rng.dirichlet(np.full(len(y), size)) for size in np.geomspace(0.05, 50.0, 200)]
    exceeded = sum(slack(weights) < -1e-9 for weights in others)
    return slack(worst / worst.sum()) / target, exceeded


def label_term(seed: int, share: float) -> tuple[float, float]:
    """The exact k and the approximation's where a label costs this share of the longest sample."""
    X, y = sample(CLUSTERS, seed)
    paper = Approximation(X, y, "cross_entropy")
    cost = share * float(paper.lengths.max())
    return exact(X, y, "cross_entropy", cost), paper.fragility(cost)


def k_in_ball(start: float, target: float, level: Callable[[float], float], radius: float) -> float:
    """Least k of a fixed model when distributions stay in a ball.

    λ r + level(k + λ) ≤ τ and ‖w‖ ≤ k + λ: for a sum K = k + λ the largest λ is best. Both hold at
    `start`, the least K for λ = 0; k + λ cannot be less, since the level falls with it.
    """

    def least(total: float) -> float:
        return max(total - (target - level(total)) / radius, 0.0)

    found = minimize_scalar(least, bounds=(start, 50.0 * start), method="bounded")
    return min(least(start), float(found.fun))


def k_dagger(seed: int, radius: float, *, labels_move: bool) -> float:
    """Least k of the trained model inside a ball, over that without one; no intercept."""
    X, y = _drawn(seed, 0.5)
    cost = 0.2 * float(np.linalg.norm(X, axis=1).max()) if labels_move else math.inf
    model = _fitted(X, y, ambiguity=Wasserstein(label_cost=cost), fit_intercept=False)
    u = X @ model.coef_[0]
    own, other = np.logaddexp(0, np.where(y == 1, -u, u)), np.logaddexp(0, np.where(y == 1, u, -u))

    def level(k: float) -> float:
        return float(np.mean(np.maximum(own, other - k * cost) if labels_move else own))

    k = float(model.fragility_)
    # The level that the model attains, so that what the solver left of the target buys nothing.
    return k_in_ball(k, level(k), level, radius) / k


Margin = Callable[[Floats], Floats]
#: What the paper calls hinge-type, as functions of the margin. The last is convex, has slopes from
#: −½ to 0 and is never below (1 − eᵘ)/(1 + eᵘ), as the lemma asks; but it falls below zero.
HINGE_TYPE: dict[str, Margin] = {
    "hinge": lambda u: np.maximum(0.0, 1.0 - u),
    "logistic": lambda u: np.logaddexp(0.0, -u),
    "a loss down to −1": lambda u: np.where(u < 0, -u / 2, -np.tanh(u / 2)),
}


def dominance_broken(loss: str, classes: int, seed: int) -> int:
    """Samples of 3,000 whose loss is below their share of the sum of ranking errors.

    The sum over classes splits into samples: Σ_{i≠j} (p_i(xʲ) − p_i(xⁱ)) is the sum over i of
    Σ_{j≠i} (p_j(xⁱ) − p_i(xⁱ)).
    """
    rng, broken = np.random.default_rng(seed), 0
    for scale in (0.1, 1.0, 10.0):
        for u in rng.normal(scale=scale, size=(1000, classes)):
            p = np.exp(u - u.max())
            p /= p.sum()
            margins = u[0] - u[1:]  # the true class is the first one
            if loss == "cross-entropy":
                value = -math.log(p[0])
            else:
                value = float(HINGE_TYPE[loss](margins).max())
            broken += value < float(np.mean(p[1:] - p[0])) - 1e-12
    return broken


def kl_slope_growth() -> float:
    """|E ε − Ê ε| over the KL divergence, at a tilt of .001 over that at .1."""
    scores = np.array([0.2, 0.7])

    def slope(tilt: float) -> float:
        weights = np.exp(tilt * scores)
        weights /= weights.sum()
        return float(weights @ scores - scores.mean()) / float(weights @ np.log(2 * weights))

    return slope(1e-3) / slope(1e-1)


def _three_classes(seed: int) -> tuple[Floats, Integers, Floats, Floats, float, float]:
    """Data in the plane, a trained model's weights and intercepts, k and target."""
    rng = np.random.default_rng(seed)
    y = np.arange(90) % 3
    centres = np.array([[1.5, 0.0], [-0.75, 1.3], [-0.75, -1.3]])
    X = np.clip(centres[y] + rng.normal(size=(90, 2)), -4.0, 4.0)
    model = _fitted(X, y, fit_intercept=False)
    return X, y, model.coef_, model.intercept_, float(model.fragility_), float(model.target_)


def worst_distance(seed: int, side: float) -> float:
    """Distance of the data to the distribution of largest summed error in a square.

    The sum is Σ_i (1 − C p_i(xⁱ)): every sample goes where its own class is least likely. There
    the log-odds against it, which are convex, are largest: at a corner.
    """
    X, y, coef, intercept, _, _ = _three_classes(seed)
    corners = np.array([[a, b] for a in (-side, side) for b in (-side, side)])
    u = corners @ coef.T + intercept
    means = []
    for i in range(3):
        odds = np.logaddexp.reduce(np.delete(u, i, axis=1), axis=1) - u[:, i]
        means.append(np.linalg.norm(X[y == i] - corners[np.argmax(odds)], axis=1).mean())
    return float(np.mean(means))


def square_bound(seed: int, side: float = 4.0) -> tuple[float, float]:
    """Mean transport index of the pairs at the target, and δ k*, with features in a square.

    Mass moves between the points of a grid; the slope of each p_i is the steepest of the grid.
    """
    X, y, coef, intercept, k, target = _three_classes(seed)
    axis = np.linspace(-side, side, 41)
    grid = np.array([[a, b] for a in axis for b in axis])

    def proba(points: Floats) -> Floats:
        u = points @ coef.T + intercept
        p = np.exp(u - u.max(axis=1, keepdims=True))
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    p = proba(grid)
    slope = max(
        float(np.linalg.norm(p[:, [i]] * (coef[i] - p @ coef), axis=1).max()) for i in range(3)
    )
    own = proba(X)
    pairs = [(i, j) for i in range(3) for j in range(3) if i != j]
    largest = max(float(own[y == j, i].mean() - own[y == i, i].mean()) for i, j in pairs)
    # The distance is a third of the three classes' own: moving one of them is three times as cheap.
    needed = (target - largest) / (3.0 * slope)
    distance = np.linalg.norm(X[:, np.newaxis] - grid, axis=2)
    values = []
    for i, j in pairs:

        def worst(price: float, i: int = i, j: int = j) -> float:
            up = (p[:, i] - price / 3.0 * distance[y == j]).max(axis=1)
            down = (-p[:, i] - price / 3.0 * distance[y == i]).max(axis=1)
            # Or a sample stays where it is.
            up, down = np.maximum(up, own[y == j, i]), np.maximum(down, -own[y == i, i])
            return float(up.mean() + down.mean())

        values.append(least_price(worst, target))
    return float(np.mean(values)), worst_distance(seed, side) / needed * k


def log_chance_over_epsilon(log_epsilon: float, *, exponent: float, features: int) -> float:
    """Log of the chance that the lemma allows beyond the proposition's radius, less that of ε.

    With c₁ = c₂ = 1 and N = 100. The lemma: exp(−N θ^max(m, 2)) for θ ≤ 1, exp(−N θ^a) beyond,
    m = M + 1; the proposition takes the first at every θ.
    """
    n = 100
    radius = (-log_epsilon / n) ** (1.0 / (features + 1))
    power = max(features + 1, 2) if radius <= 1.0 else exponent
    return -n * radius**power - log_epsilon


def mixture_gap(seed: int) -> dict[str, float]:
    """A constraint at the even mixture of two samples, less the mean of it at each.

    An expectation is linear in the distribution: no gap.
    """
    losses = np.random.default_rng(seed).exponential(size=(2, 50))
    losses[1] += 1.0

    def log_moment(values: Floats) -> float:
        return 2.0 * math.log(np.mean(np.exp(values / 2.0)))

    return {
        name: constraint(losses.ravel()) - (constraint(losses[0]) + constraint(losses[1])) / 2
        for name, constraint in (
            ("Wasserstein", lambda values: float(np.mean(values))),
            ("KL", log_moment),
        )
    }


def common_shift_curvature(seed: int, alpha: float) -> float:
    """Second difference of the mean cross-entropy plus α‖B‖² along a shift common to all columns.

    Strong second-order sufficiency asks for a positive one.
    """
    rng = np.random.default_rng(seed)
    X, y, B, shift = (
        rng.normal(size=(60, 2)),
        np.arange(60) % 3,
        rng.normal(size=(2, 3)),
        rng.normal(size=(2, 1)),
    )

    def value(step: float) -> float:
        moved = B + step * shift
        u = X @ moved
        losses = np.logaddexp.reduce(u, axis=1) - u[np.arange(60), y]
        return float(losses.mean()) + alpha * float((moved**2).sum())

    return value(1.0) - 2.0 * value(0.0) + value(-1.0)
