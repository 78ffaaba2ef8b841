"""Bounds of k* and of the index, and robust programs, for statements about training."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from functools import cache
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.linear_model import LogisticRegression

from experiments.errata_cases import pair_index
from fragility import KL, DROClassifier, SatisficingClassifier, Wasserstein
from fragility.certificates import certify

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
#: Settings of the models whose k* is compared with robust losses.
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "KL, cross-entropy": {"ambiguity": KL(), "loss": "cross_entropy"},
    "Wasserstein, cross-entropy": {"ambiguity": Wasserstein(), "loss": "cross_entropy"},
    "Wasserstein in ℓ1, hinge": {"ambiguity": Wasserstein(norm=1), "loss": "hinge"},
    "labels cost 2, l2 penalty": {
        "ambiguity": Wasserstein(label_cost=2.0),
        "loss": "cross_entropy",
        "penalty": "l2",
        "alpha": 0.01,
    },
}


RADII = np.geomspace(1e-3, 3.0, 7)


def drawn(seed: int, n: int = 60) -> tuple[Floats, Integers]:
    """Two overlapping classes in three features."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 3)) + 0.6 * y[:, np.newaxis], y


def _fitted(model: Any, X: Floats, y: Integers) -> Any:
    """The model; a radius that leaves nothing to learn is no surprise here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def worst_loss(X: Floats, y: Integers, radius: float, **settings: Any) -> float:
    """The least worst-case loss within a radius, with the penalty."""
    return float(_fitted(DROClassifier(**settings, radius=radius), X, y).worst_loss_)


class LowerBounds(NamedTuple):
    """Bounds δ₁/δ₂ of k*, over k*: the largest of a row of radii, and the best radius's.

    `in_ball` is the k of the model trained inside a ball of 0.9 times that radius, over the bound
    there.
    """

    of_row: float
    best: float
    in_ball: float


@cache
def lower_bounds(seed: int, name: str) -> LowerBounds:
    """(DRO(r) − τ)/r over k*: at the radii above, and at the best r.

    DRO(r) is concave, so that the ratio rises to its largest value and falls from there.
    """
    X, y = drawn(seed)
    settings = SETTINGS[name]
    model = _fitted(SatisficingClassifier(**settings, slack=0.3), X, y)
    k, target = float(model.fragility_), float(model.target_)

    def bound(log_radius: float) -> float:
        radius = math.exp(log_radius)
        return (worst_loss(X, y, radius, **settings) - target) / radius / k

    places = np.log(RADII)
    row = [bound(at) for at in places]
    top = int(np.argmax(row))
    found = minimize_scalar(
        lambda at: -bound(at),
        bounds=(places[max(top - 1, 0)], places[min(top + 1, len(row) - 1)]),
        method="bounded",
        options={"xatol": 1e-4},
    )
    radius = 0.9 * math.exp(found.x)
    ball = SatisficingClassifier(**settings, target=target, radius=radius)
    in_ball = float(_fitted(ball, X, y).fragility_) / k / bound(math.log(radius))
    return LowerBounds(max(row), -float(found.fun), in_ball)


def label_term_robust(seed: int, share: float) -> float:
    """Robust loss with the paper's label term over the exact one; no intercept.

    A label costs this share of the longest sample. λ r + λ mean(‖x‖ − γ)₊ is the price of a larger
    radius, r + mean(‖x‖ − γ)₊, where labels stay.
    """
    X, y = drawn(seed)
    lengths, radius = np.linalg.norm(X, axis=1), 0.1
    cost = share * float(lengths.max())
    common: dict[str, Any] = {"loss": "cross_entropy", "fit_intercept": False}
    exact = worst_loss(X, y, radius, ambiguity=Wasserstein(label_cost=cost), **common)
    more = float(np.maximum(lengths - cost, 0.0).mean())
    return worst_loss(X, y, radius + more, ambiguity=Wasserstein(), **common) / exact


class PairsBroken(NamedTuple):
    """Pairs of classes whose index exceeds the bound, of how many."""

    kl: int
    transport: int
    pairs: int


def pairs_broken(seed: int, models: int = 20) -> PairsBroken:
    """Pairs that break what does hold for several classes, on models of three to five.

    KL: FI of i|j at (τ − R)/(2 min(π_i, π_j)) is at most k/2, from the definition over all pairs.
    Transport: at K/2, K the largest ‖β_i − β_l‖, no move pays, so that the worst case is the mean
    error itself.
    """
    rng = np.random.default_rng(seed)
    kl = transport = pairs = 0
    for number in range(models):
        classes = 3 + number % 3
        y = rng.integers(classes, size=60)
        y[: 2 * classes] = np.tile(np.arange(classes), 2)
        centres = rng.normal(scale=rng.uniform(0.5, 2.5), size=(classes, 3))
        X = centres[y] + rng.normal(size=(60, 3))
        # Where it stops does not matter: any model will do.
        model = _fitted(LogisticRegression(C=10.0 ** rng.uniform(-2, 1), max_iter=200), X, y)
        u = model.decision_function(X)
        p = np.exp(u - np.logaddexp.reduce(u, axis=1)[:, np.newaxis])
        loss = float(-np.log(p[np.arange(60), y]).mean())
        target = loss * rng.uniform(1.01, 1.5)
        k = float(certify(model, X, y, target=target, ambiguity=KL()).fragility)
        shares = np.bincount(y) / 60
        for i, j in permutations(range(classes), 2):
            pairs += 1
            at = target / (2.0 * min(shares[i], shares[j]))
            kl += pair_index(p[y == j, i], p[y == i, i], at) > k / 2.0 * (1.0 + 1e-9)
            transport += most_gained(X, y, model, (i, j), 0.5) > 1e-12
    return PairsBroken(kl, transport, pairs)


def most_gained(
    X: Floats, y: Integers, model: LogisticRegression, pair: tuple[int, int], share: float
) -> float:
    """What moves add to the mean error p_i(xʲ) − p_i(xⁱ), less their price, at k = share · K.

    Each sample goes any way along any difference of the coefficients of i, or stays.
    """
    i, j = pair
    differences = np.delete(model.coef_[i] - model.coef_, i, axis=0)
    lengths = np.linalg.norm(differences, axis=1)
    steps = np.linspace(0.0, 12.0, 121) / lengths.max()
    price = share * float(lengths.max()) / 2.0 * steps
    gained = 0.0
    for code, sign in ((j, 1.0), (i, -1.0)):
        ways = sign * (differences / lengths[:, np.newaxis])[:, np.newaxis] * steps[:, np.newaxis]
        u = model.decision_function((X[y == code][:, np.newaxis, np.newaxis] + ways).reshape(-1, 3))
        p = np.exp(u[:, i] - np.logaddexp.reduce(u, axis=1)).reshape(-1, len(ways), steps.size)
        harm = sign * p - price
        gained += float((harm.max(axis=(1, 2)) - harm[:, 0, 0]).mean())
    return gained


def steepest_of_regression(seed: int) -> float:
    """Rise of ‖Bᵀx − y‖₂ per unit of way, at its steepest, over the spectral norm of B."""
    rng = np.random.default_rng(seed)
    B, x, y = rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=3)
    left, singular, _ = np.linalg.svd(B)
    way = 1e9 * left[:, 0]  # far out along the first direction the label does not matter
    rise = np.linalg.norm(B.T @ (x + way) - y) - np.linalg.norm(B.T @ x - y)
    return float(rise) / float(np.linalg.norm(way)) / float(singular[0])


#: Transport norm, its dual, and the Lipschitz constant of the cross-entropy in it.
NORMS = {1: (math.inf, 1.0), 2: (2, math.sqrt(2.0)), math.inf: (1, 2.0)}


def understated(seed: int, norm: float, cases: int = 200) -> int:
    """Matrices for which ω₁‖B‖ is below the slope that the cross-entropy can have, max ‖β_i − β_j‖.

    ‖B‖ is induced by the dual norm.
    """
    rng, broken = np.random.default_rng(seed), 0
    dual, omega = NORMS[norm]
    for _ in range(cases):
        B = rng.normal(size=(int(rng.integers(1, 6)), int(rng.integers(2, 6))))
        pairs = permutations(range(B.shape[1]), 2)
        slope = max(float(np.linalg.norm(B[:, i] - B[:, j], ord=dual)) for i, j in pairs)
        broken += omega * float(np.linalg.norm(B, ord=dual)) < slope * (1.0 - 1e-12)
    return broken


def label_rise(lengths: tuple[float, float]) -> float:
    """|ℓ(0, y) − ℓ(0, y')| of ‖u − y‖₂ for labels of two lengths; ω₂‖u‖ is nothing there."""
    first, second = (np.array([length, 0.0]) for length in lengths)
    u = np.zeros(2)
    return abs(float(np.linalg.norm(u - first) - np.linalg.norm(u - second)))


def label_slope(seed: int, cases: int = 2000) -> float:
    """Largest |ℓ(u, y) − ℓ(u, y')| / ‖u‖ of ‖u − y‖₂, one-hot labels, over √2."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(cases, 3)) * np.geomspace(1e-6, 10.0, cases)[:, np.newaxis]
    apart = np.linalg.norm(u - np.eye(3)[0], axis=1) - np.linalg.norm(u - np.eye(3)[1], axis=1)
    return float((np.abs(apart) / np.linalg.norm(u, axis=1)).max()) / math.sqrt(2.0)


def spectral_midpoint_excess(seed: int, cases: int = 200) -> float:
    """Largest ‖(A + B)/2‖ over (‖A‖ + ‖B‖)/2, spectral norms: above 1 for a non-convex function."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(cases):
        A, B = rng.normal(size=(2, 4, 3))
        ends = np.linalg.norm(A, ord=2) + np.linalg.norm(B, ord=2)
        found.append(float(np.linalg.norm(A + B, ord=2) / ends))
    return max(found)
