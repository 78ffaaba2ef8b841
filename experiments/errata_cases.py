"""The cases behind the errata, computed."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from sklearn.metrics import log_loss

from experiments.label_cost import CLUSTERS, Approximation, exact, sample
from fragility import (
    SatisficingClassifier,
    fragility_index,
    wasserstein_fragility_index,
)

Scores = Sequence[float]

#: Negatives and positives of the models of example 1.
EXAMPLE = {"A": ((0.2, 0.7), (0.6, 0.9)), "B": ((0.1, 0.8), (0.6, 0.9))}
#: Equal error rate, equally sure when right ({.6, .8}); A is surer of its one mistake.
ALIGNMENT = {"A": ((0.4, 0.9), (0.8,)), "B": ((0.2, 0.8), (0.6,))}
#: Negatives, positives, target.
WITHOUT_ROOT = {
    "an ordinary case": ((0.2, 0.7), (0.6, 0.9), 0.0),
    "largest error below the target": ((0.2,), (0.6, 0.9), 0.1),
    "mean error at the target": ((0.2, 0.6), (0.3, 0.5), 0.0),
    "constant errors": ((0.3, 0.3), (0.3,), 0.0),
}
#: Negatives, positives, target, start.
BISECTED = {
    "start below the index": ((0.2, 0.7), (0.6, 0.9), 0.0, 1e-3),
    "start above the index": ((0.2, 0.7), (0.6, 0.9), 0.0, 1.0),
    "index 0": ((0.2,), (0.6, 0.9), 0.1, 1e-3),
    "index ∞": ((0.2, 0.7), (0.3, 0.5), 0.0, 1e-3),
}


def index(negatives: Scores, positives: Scores, target: float = 0.0) -> float:
    """The index of the library."""
    y = np.repeat([0, 1], [len(negatives), len(positives)])
    return float(fragility_index(y, np.r_[negatives, positives], target=target))


def joint_kl_index(negatives: Scores, positives: Scores) -> float:
    """The index with KL on (x, y) jointly, so that the class shares may shift, too.

    For class shares (q, 1 − q) the supremum over the two class distributions is a pair of
    log-moments, each tempered by its share; what is left is a maximum over q.
    """
    low, high = np.asarray(negatives), np.asarray(positives)
    usual = len(low) / (len(low) + len(high))

    def log_moment(values: NDArray[np.float64]) -> float:
        top = float(values.max())
        return top + math.log(np.mean(np.exp(values - top)))

    def less(q: float, k: float) -> float:
        value = k * q * log_moment(low / (k * q))
        value += k * (1 - q) * log_moment(-high / (k * (1 - q)))
        kl = q * math.log(q / usual) + (1 - q) * math.log((1 - q) / (1 - usual))
        return k * kl - value

    def supremum(k: float) -> float:
        best = minimize_scalar(
            less, args=(k,), bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-12}
        )
        return -float(best.fun)

    return float(brentq(supremum, 1e-3, 10.0, xtol=1e-12))


def excess(negatives: Scores, positives: Scores, target: float, k: float) -> float:
    """The paper's G(k) = k ln E exp(ε/k) − τ."""
    errors = np.subtract.outer(negatives, positives)
    top = float(errors.max())
    return k * math.log(np.mean(np.exp((errors - top) / k))) + top - target


def roots(negatives: Scores, positives: Scores, target: float) -> int:
    """How often G touches or crosses zero on a grid of k from 1e-3 to 1e3."""
    values = np.array(
        [excess(negatives, positives, target, k) for k in np.geomspace(1e-3, 1e3, 60)]
    )
    # Where the mean error is the target G falls to zero and never reaches it, but for roundings.
    values[np.abs(values) < 1e-12] = 0.0
    if not values.any():
        return len(values)
    return int(((values[:-1] > 0) & (values[1:] < 0)).sum())


def brackets(
    negatives: Scores, positives: Scores, target: float, start: float, *, doublings: int
) -> int:
    """Whether the first step of the paper's bisection ends."""
    k = start
    for _ in range(doublings):
        if (
            excess(negatives, positives, target, k) > 0
            and excess(negatives, positives, target, 2 * k) < 0
        ):
            return 1
        k *= 2
        if not math.isfinite(2 * k):
            break
    return 0


def wasserstein_bound(seed: int) -> dict[str, tuple[float, float]]:
    """The paper's bound at label cost 1 and the exact index, with labels right and swapped."""
    rng = np.random.default_rng(seed)
    logits = np.r_[rng.normal(-1, 1, 200), rng.normal(1, 1, 200)]
    y = np.repeat([0, 1], 200)
    bound = max(2.0, 2.0 * float(np.mean(np.logaddexp(0, logits) + np.logaddexp(0, -logits))))
    return {
        name: (bound, float(wasserstein_fragility_index(truth, logits, weight_norm=1.0)))
        for name, truth in (("right labels", y), ("swapped labels", 1 - y))
    }


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


def guarantee_constants(counts: NDArray[np.int64], k: float, least: float) -> tuple[float, float]:
    """The paper's b and a (α₂ for two classes)."""
    n, classes = int(counts.sum()), len(counts)
    b = math.log(n) / (float(np.log(counts).sum()) + classes * math.log(classes))
    a = b + b * k * math.log(n) * (1 - 1 / (b * classes)) / ((classes - 1) * least)
    return b, a


def _drawn(seed: int, share: float, n: int = 400) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Two overlapping Gaussian classes, the second with this share."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) < share * n).astype(int)
    return rng.normal(size=(n, 3)) + 0.7 * y[:, np.newaxis], y


def kl_targets(seed: int) -> dict[str, float]:
    """The target α₁ τ at which the KL guarantee speaks, for balanced and unbalanced classes."""
    found = {}
    for name, share in (("balanced", 0.5), ("1 in 20 positive", 0.05)):
        X, y = _drawn(seed, share)
        model = SatisficingClassifier("cross_entropy", "kl").fit(X, y)
        counts = np.bincount(y)
        b, a = guarantee_constants(counts, float(model.fragility_), float(model.erm_loss_))
        found[name] = a / b * float(model.target_)
    return found


def wasserstein_over_k(seed: int) -> float:
    """The exact Wasserstein index of a trained model at its target, over its k."""
    X, y = _drawn(seed, 0.5)
    model = SatisficingClassifier("cross_entropy", "wasserstein").fit(X, y)
    norm = float(np.linalg.norm(model.coef_))
    value = wasserstein_fragility_index(
        y, model.decision_function(X), weight_norm=norm, target=float(model.target_)
    )
    return float(value) / float(model.fragility_)


def label_flips(seed: int) -> dict[str, tuple[float, float]]:
    """The corollary's bound and what happens, without and with an intercept."""
    X, y = _drawn(seed, 0.05)
    found = {}
    for name, intercept in (("no intercept", False), ("free intercept", True)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a trivial target is the point without an intercept
            model = SatisficingClassifier(fit_intercept=intercept).fit(X, y)
        p = model.predict_proba(X)
        # The labels that the model fits least when flipped: a twentieth of all.
        growth_of_each = np.log(p[np.arange(len(y)), y] / p[np.arange(len(y)), 1 - y])
        flipped = np.argsort(-growth_of_each, kind="stable")[: len(y) // 20]
        true = y.copy()
        true[flipped] = 1 - y[flipped]
        growth = log_loss(true, p) - log_loss(y, p)
        phi = float(np.linalg.norm(X, axis=1).max())
        found[name] = (phi * float(model.fragility_) * len(flipped) / len(y), float(growth))
    return found


def slack_of_the_lemma(seed: int) -> float:
    """How far the generalisation bound stays above its own worst case, over the target.

    The worst case of KL attains E ℓ + R = τ + k D; the lemma leaves out R.
    """
    X, y = _drawn(seed, 0.5)
    model = SatisficingClassifier("cross_entropy", "kl", penalty="l2", alpha=0.01).fit(X, y)
    p = model.predict_proba(X)
    losses = -np.log(p[np.arange(len(y)), y])
    k = float(model.fragility_)
    weights = np.exp((losses - losses.max()) / k)
    weights /= weights.sum()
    divergence = float(weights @ np.log(weights * len(y)))
    bound = float(model.target_) + k * divergence
    return (bound - float(weights @ losses)) / float(model.target_)


def half_label_cost(seed: int) -> tuple[float, float]:
    """The exact k and the approximation's where a label costs half of the longest sample."""
    X, y = sample(CLUSTERS, seed)
    paper = Approximation(X, y, "cross_entropy")
    cost = 0.5 * float(paper.lengths.max())
    return exact(X, y, "cross_entropy", cost), paper.fragility(cost)


def slope_and_nuclear_norm(seed: int) -> tuple[float, float]:
    """Largest slope of the cross-entropy in x for one B, and the nuclear norm of B.

    Gradients in x are B (p − e_y), so that the supremum over all scores is the largest ‖β_i − β_j‖.
    For three orthonormal columns that is √2 times the spectral norm; √2 is the Lipschitz constant
    of the loss, which the paper leaves open.
    """
    B, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(5, 3)))
    slope = max(float(np.linalg.norm(B[:, i] - B[:, j])) for i in range(3) for j in range(i))
    return slope, float(np.linalg.norm(B, "nuc"))


def reverse_cross_entropy(p: float) -> tuple[float, float]:
    """The printed second term of SCE and the published one (ln 0 as −4), two classes."""
    shares = np.array([p, 1 - p])
    return float(-np.mean(np.log(shares))), 4.0 * (1.0 - p)


def share_not_positive() -> float:
    """P(ε ≤ 0) of a model that gives everyone the same score."""
    errors = np.subtract.outer(np.full(5, 0.3), np.full(4, 0.3))
    return float((errors <= 0).mean())
