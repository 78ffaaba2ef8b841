"""Theorem 1 and the bounds of the index, on drawn models, from the definition alone.

Every function here draws models and counts those that break a statement. The index is a parameter:
one that is wrong must be found out. Of parts (c) and (d) it is the worst case whose least price the
index is: the functions that compute an index have these parts built in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.errata_cases import excess, least_price, pair_index

Floats = NDArray[np.float64]
CASES = 200
#: What bisection and roundings leave of two equal numbers.
_SAME = 1e-7


class Data(NamedTuple):
    """Points on a line, and which of them are negatives and positives (some repeatedly)."""

    points: Floats
    negatives: NDArray[np.int64]
    positives: NDArray[np.int64]


def _mean_error(data: Data, scores: Floats) -> float:
    return float(scores[data.negatives].mean() - scores[data.positives].mean())


#: Index of a model (its score of every point) on some data, at a target.
Index = Callable[[Data, Floats, float], float]
#: The largest mean error less k times the distance: the index is the least k at which it meets the
#: target.
Worst = Callable[[Data, Floats, float], float]


def kl_worst(data: Data, scores: Floats, k: float) -> float:
    """With the divergence of the law of pairs, as in the lemma."""
    return excess(scores[data.negatives], scores[data.positives], 0.0, k)


def transport_worst(data: Data, scores: Floats, k: float) -> float:
    """With ½(W₁ of the negatives + W₁ of the positives), mass moving from point to point."""
    distance = np.abs(np.subtract.outer(data.points, data.points))
    up = (scores - 0.5 * k * distance[data.negatives]).max(axis=1).mean()
    down = (-scores - 0.5 * k * distance[data.positives]).max(axis=1).mean()
    return float(up + down)


def kl_index(data: Data, scores: Floats, target: float) -> float:
    """The index of `kl_worst`."""
    return pair_index(scores[data.negatives], scores[data.positives], target)


def transport_index(data: Data, scores: Floats, target: float) -> float:
    """The index of `transport_worst`."""
    if _mean_error(data, scores) > target:
        return math.inf
    return least_price(lambda k: transport_worst(data, scores, k), target)


#: By either distance: parts (a) to (e) of the theorem are about any.
INDICES: dict[str, Index] = {"KL": kl_index, "transport": transport_index}
WORST: dict[str, Worst] = {"KL": kl_worst, "transport": transport_worst}
#: Prices so small, and so large, that no other could tell more than roundings.
_CHEAP, _DEAR = (1e-2, 1e-4, 1e-6), (1e2, 1e4, 1e6)


def _data(rng: np.random.Generator) -> Data:
    n = 8
    sizes = rng.integers(2, 7, size=2)
    return Data(
        np.sort(rng.uniform(size=n)), rng.integers(n, size=sizes[0]), rng.integers(n, size=sizes[1])
    )


def _scores(rng: np.random.Generator) -> Floats:
    return np.asarray(rng.uniform(size=8))


def _above(larger: float, smaller: float) -> bool:
    """Whether one number exceeds another, but for roundings; infinite ones are equal."""
    return larger > smaller * (1.0 + _SAME) + 1e-9


def homogeneity(index: Index, seed: int) -> int:
    """(a) FI(αp; ατ) = α FI(p; τ)."""
    rng, broken = np.random.default_rng(seed), 0
    for _ in range(CASES):
        data, scores, target = _data(rng), _scores(rng), rng.uniform(-0.3, 0.5)
        factor = math.exp(rng.uniform(-3.0, 3.0))
        scaled = index(data, factor * scores, factor * target)
        expected = factor * index(data, scores, target)
        broken += _above(scaled, expected) or _above(expected, scaled)
    return broken


def subadditivity(index: Index, seed: int) -> int:
    """(b) FI(p + p'; τ + τ') ≤ FI(p; τ) + FI(p'; τ')."""
    rng, broken = np.random.default_rng(seed), 0
    for _ in range(CASES):
        data, first, second = _data(rng), _scores(rng), _scores(rng)
        targets = [_mean_error(data, scores) + rng.uniform(0.0, 0.5) for scores in (first, second)]
        together = index(data, first + second, sum(targets))
        parts = index(data, first, targets[0]) + index(data, second, targets[1])
        broken += _above(together, parts)
    return broken


def prorobustness(worst: Worst, seed: int) -> int:
    """(c) FI = 0 where the target is no less than any error that can occur: any price will do."""
    rng, broken = np.random.default_rng(seed), 0
    for number in range(CASES):
        data, scores = _data(rng), _scores(rng)
        more = 0.0 if number % 2 else rng.uniform(0.0, 0.2)
        target = float(scores.max() - scores.min()) + more
        broken += any(_above(worst(data, scores, k), target) for k in _CHEAP)
    return broken


def antifragility(worst: Worst, seed: int) -> int:
    """(d) FI = ∞ where the mean error exceeds the target: no price will do."""
    rng, broken = np.random.default_rng(seed), 0
    for _ in range(CASES):
        data, scores = _data(rng), _scores(rng)
        target = _mean_error(data, scores) - rng.uniform(1e-6, 0.3)
        broken += any(worst(data, scores, k) <= target for k in _DEAR)
    return broken


def tradeoff(index: Index, seed: int) -> int:
    """(e) FI does not grow with the target."""
    rng, broken = np.random.default_rng(seed), 0
    for _ in range(CASES):
        data, scores = _data(rng), _scores(rng)
        low, high = _mean_error(data, scores) + np.sort(rng.uniform(0.0, 0.6, size=2))
        broken += _above(index(data, scores, high), index(data, scores, low))
    return broken


Scorer = Callable[[Floats, Floats, float], float]


def monotonicity(index: Scorer, seed: int) -> int:
    """(f) FI of a model whose errors dominate those of another, each with class sizes of its own.

    The second model is shifted until the quantiles of its errors are below those of the first.
    """
    rng, broken = np.random.default_rng(seed), 0
    for _ in range(CASES):
        sizes = rng.integers(2, 7, size=4)
        first, second = (
            [rng.uniform(0.35, 0.65, size=size) for size in pair] for pair in (sizes[:2], sizes[2:])
        )
        errors = [np.sort(np.subtract.outer(*model).ravel()) for model in (first, second)]
        # Both laws as equally many equally likely values.
        larger = np.repeat(errors[0], errors[1].size)
        smaller = np.repeat(errors[1], errors[0].size)
        shift = max(float((smaller - larger).max()), 0.0) / 2.0
        second = [second[0] - shift, second[1] + shift]
        broken += _above(index(*second, 0.0), index(*first, 0.0))
    return broken


def tail_bound(index: Scorer, seed: int) -> int:
    """P̂(ε ≥ θ) ≤ exp(−(θ − τ)/FI), at every θ above the target that occurs, and between."""
    rng, broken = np.random.default_rng(seed), 0
    for _ in range(CASES):
        negatives, positives = rng.uniform(size=rng.integers(2, 9)), rng.uniform(size=4)
        errors = np.subtract.outer(negatives, positives).ravel()
        target = float(errors.mean()) + rng.uniform(0.0, 0.3)
        value = index(negatives, positives, target)
        for theta in (*errors, *rng.uniform(-1.0, 1.0, size=5)):
            if theta <= target:  # the bound is one or more, or 0/0 where the index is 0
                continue
            bound = math.exp(-(theta - target) / value) if value else 0.0
            broken += float((errors >= theta).mean()) > bound + 1e-9
    return broken


def value_at_risk_bound(index: Scorer, seed: int) -> int:
    """VaR of the errors at level 1 − α is at most τ − FI ln α."""
    rng, broken = np.random.default_rng(seed), 0
    for _ in range(CASES):
        negatives, positives = rng.uniform(size=rng.integers(2, 9)), rng.uniform(size=4)
        errors = np.sort(np.subtract.outer(negatives, positives).ravel())
        target = float(errors.mean()) + rng.uniform(0.0, 0.3)
        value = index(negatives, positives, target)
        for alpha in rng.uniform(0.001, 0.999, size=5):
            # The least value that a share 1 − α of the errors does not exceed.
            at_most = np.arange(1, errors.size + 1) / errors.size
            quantile = float(errors[np.argmax(at_most >= 1.0 - alpha)])
            broken += quantile > target - value * math.log(alpha) + 1e-9
    return broken


class Pair(NamedTuple):
    """Labels and scores of two models that err equally often; A is the surer of its errors."""

    labels: NDArray[np.int64]
    surer: Floats
    other: Floats


def drawn_pair(rng: np.random.Generator, *, in_each_class: bool) -> Pair:
    """Two models as the cost proposition has them.

    Equally many errors, the same confidences when right, and larger ones when wrong; over all
    cases, or in each class.
    """
    labels = np.repeat([0, 1], rng.integers(3, 7, size=2))
    size, mistakes = labels.size, 2
    models = []
    # In parts of 1,024, so that q and 1 − (1 − q) are the same number.
    right, low = rng.integers(513, 1024, size=(2, size))
    high = rng.integers(low, 1024)
    for confidence in (high, low):
        wrong = np.zeros(size, dtype=bool)
        if in_each_class:
            wrong[[0, -1]] = True
            sure = np.where(wrong, confidence, right)
        else:
            wrong[rng.choice(size, mistakes, replace=False)] = True
            sure = np.empty(size, dtype=int)
            sure[wrong] = confidence[:mistakes]
            sure[~wrong] = rng.permutation(right[: size - mistakes])
        predicted = np.where(wrong, 1 - labels, labels)
        models.append(np.where(predicted == 1, sure, 1024 - sure) / 1024)
    return Pair(labels, *models)


def cost(labels: NDArray[np.int64], scores: Floats, threshold: float, error_cost: float) -> float:
    """The paper's total cost, case by case; a review costs 1."""
    total = 0.0
    for label, score in zip(labels, scores, strict=True):
        if max(score, 1.0 - score) <= threshold:
            total += 1.0
        elif (score >= 0.5) != label:
            total += error_cost
    return total


def cost_monotonicity(seed: int, *, error_costs: tuple[float, float] = (1.0, 20.0)) -> int:
    """Pairs in which the model that is surer of its errors is cheaper at some threshold."""
    rng, broken = np.random.default_rng(seed), 0
    for number in range(CASES):
        pair = drawn_pair(rng, in_each_class=bool(number % 2))
        error_cost = rng.uniform(*error_costs)
        confidences = [np.maximum(p, 1.0 - p) for p in (pair.surer, pair.other)]
        thresholds = np.r_[0.5, np.concatenate(confidences)]
        broken += any(
            cost(pair.labels, pair.surer, threshold, error_cost)
            < cost(pair.labels, pair.other, threshold, error_cost) - 1e-9
            for threshold in thresholds
        )
    return broken


def index_alignment(index: Scorer, seed: int, *, in_each_class: bool) -> int:
    """Pairs in which the model that is surer of its errors has the smaller index."""
    rng, broken = np.random.default_rng(seed), 0
    for _ in range(CASES):
        labels, *models = drawn_pair(rng, in_each_class=in_each_class)
        surer, other = (index(p[labels == 0], p[labels == 1], 0.0) for p in models)
        broken += _above(other, surer)
    return broken
