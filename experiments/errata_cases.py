"""The cases behind the statements about the index, computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar

from fragility import fragility_index, wasserstein_fragility_index

Scores = Sequence[float] | NDArray[np.float64]

#: Negatives and positives of the models of example 1.
EXAMPLE = {"A": ((0.2, 0.7), (0.6, 0.9)), "B": ((0.1, 0.8), (0.6, 0.9))}
#: Equal error rate, equally sure when right ({.6, .8}); A is surer of its one mistake.
ALIGNMENT = {"A": ((0.4, 0.9), (0.8,)), "B": ((0.2, 0.8), (0.6,))}
#: The same ranking errors, −.4 and .1, half of each: by unequal negatives, or positives.
SAME_ERRORS = (((0.2, 0.7), (0.6,) * 4), ((0.6, 0.6), (1.0, 1.0, 0.5, 0.5)))
#: Negatives, positives, target.
ROOTS = {
    "an ordinary case": ((0.2, 0.7), (0.6, 0.9), 0.0),
    "mean error at the target": ((0.2, 0.6), (0.3, 0.5), 0.0),
    "every error at the target": ((0.3, 0.3), (0.3,), 0.0),
    "largest error below the target (the KL lemma excludes it, this one does not)": (
        (0.2,),
        (0.6, 0.9),
        0.1,
    ),
}
#: Negatives, positives, target, start.
BISECTED = {
    "start below the index": ((0.2, 0.7), (0.6, 0.9), 0.0, 1e-3),
    "start above the index": ((0.2, 0.7), (0.6, 0.9), 0.0, 1.0),
    "index 0": ((0.2,), (0.6, 0.9), 0.1, 1e-3),
    "index ∞": ((0.2, 0.7), (0.3, 0.5), 0.0, 1e-3),
}
PERSON, ANIMAL, NOTHING = range(3)
#: Two cases of each class with their probabilities. One case of nothing is taken for the class
#: that is left open here, and for the other one in the other model.
_SEEN = {
    PERSON: [(0.8, 0.1, 0.1), (0.7, 0.2, 0.1)],
    ANIMAL: [(0.1, 0.8, 0.1), (0.2, 0.7, 0.1)],
    NOTHING: [(0.1, 0.1, 0.8)],
}
TAKEN_FOR = {PERSON: (0.86, 0.06, 0.08), ANIMAL: (0.06, 0.86, 0.08)}


def pair_index(negatives: Scores, positives: Scores, target: float = 0.0) -> float:
    """Least k with k ln E exp(ε/k) ≤ τ over all pairs; 0 and ∞ where G has no root."""
    errors = np.subtract.outer(np.asarray(negatives), np.asarray(positives)).ravel()
    top = float(errors.max())
    if top <= target:
        return 0.0
    if errors.mean() >= target:
        return math.inf
    low = high = 1.0
    while excess(negatives, positives, target, low) <= 0:
        low /= 2
    while excess(negatives, positives, target, high) > 0:
        high *= 2
    return float(
        brentq(lambda k: excess(negatives, positives, target, k), low, high, xtol=1e-15, rtol=1e-13)
    )


def least_price(worst: Callable[[float], float], target: float) -> float:
    """Least k at which a worst case that falls with k, and reaches the target, meets it."""
    if worst(0.0) <= target + 1e-12:  # means of equal numbers are not always that number
        return 0.0
    high = 1.0
    while worst(high) > target:
        high *= 2.0
    return float(brentq(lambda k: worst(k) - target, 0.0, high, xtol=1e-14, rtol=1e-12))


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


def tied_and_not() -> dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Labels and scores of a model whose scores all differ, and of one with the same for all."""
    y = np.repeat([0, 1], [5, 4])
    scores = np.array([0.1, 0.2, 0.35, 0.6, 0.75, 0.3, 0.7, 0.8, 0.9])
    return {"no two scores equal": (y, scores), "a constant model": (y, np.full(9, 0.3))}


def share_not_positive(y: NDArray[np.int64], scores: NDArray[np.float64]) -> float:
    """P(ε ≤ 0) over all pairs."""
    return float((np.subtract.outer(scores[y == 0], scores[y == 1]) <= 0).mean())


def half_for_ties(y: NDArray[np.int64], scores: NDArray[np.float64]) -> float:
    """The usual AUC, pair by pair: a tie counts one half."""
    errors = np.subtract.outer(scores[y == 0], scores[y == 1])
    return float(np.mean((errors < 0) + 0.5 * (errors == 0)))


def weighted_index(taken_for: int, weights: Mapping[tuple[int, int], float]) -> float:
    """Mean of w_{i|j} FI_{i|j} of the model that takes a case of nothing for this class.

    ε_{i|j} = p_i(x^j) − p_i(x^i); weights that are not given are 1.
    """
    seen = _SEEN | {NOTHING: [*_SEEN[NOTHING], TAKEN_FOR[taken_for]]}
    values = []
    for i, j in permutations(seen, 2):
        index = pair_index([p[i] for p in seen[j]], [p[i] for p in seen[i]])
        values.append(weights.get((i, j), 1.0) * index)
    return float(np.mean(values))


def exponentials(n: int, seed: int) -> int:
    """Exponentials that the exact index of n scores takes without any pair.

    E exp(ε/k) over all pairs is the mean over negatives times the mean over positives. A secant
    and bisection search counts what it evaluates; its root must be the library's index.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    scores = rng.beta(2 + 2 * y, 4 - 2 * y)
    low, high = scores[y == 0], scores[y == 1]
    count = 0

    def log_moment(s: float) -> float:
        nonlocal count
        count += n
        return math.log(np.exp(s * low).mean()) + math.log(np.exp(-s * high).mean())

    # Convex, 0 at 0 and negative after it: the upper bound of the bracket has the other sign.
    end = math.log(len(low) * len(high)) / float(low.max() - high.min())
    index = 1.0 / brentq(log_moment, 1e-3, end * (1 + 1e-9), xtol=1e-12, rtol=1e-14)
    expected = fragility_index(y, scores)
    if abs(index / expected - 1.0) > 1e-9:
        raise ArithmeticError(f"{index!r} is not the index, which is {expected!r}.")
    return count


def midpoint_excess(seed: int) -> float:
    """Largest amount by which a ranking error exceeds, midway, the mean of two sets of weights.

    Convex errors never do.
    """
    rng = np.random.default_rng(seed)
    negative, positive = rng.normal(size=(2, 3))

    def error(w: NDArray[np.float64]) -> float:
        return float(1 / (1 + np.exp(-w @ negative)) - 1 / (1 + np.exp(-w @ positive)))

    ends = rng.normal(scale=3.0, size=(100, 2, 3))
    return max(error((a + b) / 2) - (error(a) + error(b)) / 2 for a, b in ends)


def wasserstein_bound(seed: int) -> dict[str, tuple[float, float]]:
    """The paper's bound at label cost 1 and the exact index, with labels right and swapped."""
    rng = np.random.default_rng(seed)
    logits = np.r_[rng.normal(-1, 1, 200), rng.normal(1, 1, 200)]
    y = np.repeat([0, 1], 200)
    bound = max(2.0, 2.0 * float(np.mean(np.logaddexp(0, logits) + np.logaddexp(0, -logits))))
    return {
        name: (bound, wasserstein_fragility_index(truth, logits, weight_norm=1.0, label_cost=1.0))
        for name, truth in (("right labels", y), ("swapped labels", 1 - y))
    }


def reverse_cross_entropy(p: float) -> tuple[float, float]:
    """The printed second term of SCE and the published one (ln 0 as −4), two classes."""
    shares = np.array([p, 1 - p])
    return float(-np.mean(np.log(shares))), 4.0 * (1.0 - p)
