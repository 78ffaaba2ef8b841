"""Standard errors and intervals from their formulas, by loops and scans."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import t as student

from .pairs import bisected_index, pair_matrix, pair_weights


def index_of(negatives, positives, target=0.0, a=None, b=None):
    w = pair_weights(negatives, positives, a, b)
    return bisected_index(pair_matrix(negatives, positives), target, w)


def influence(negatives, positives, target=0.0):
    """Influence of each negative and of each positive on the index."""
    p, q = np.asarray(negatives, float), np.asarray(positives, float)
    s = 1 / index_of(p, q, target)
    e, f = np.exp(s * p), np.exp(-s * q)
    slope = (e * p).sum() / e.sum() - (f * q).sum() / f.sum() - target
    scale = 1 / (s * s * slope)
    return (e / e.mean() - 1) * scale, (f / f.mean() - 1) * scale


def standard_error(negatives, positives, target=0.0):
    return math.sqrt(
        sum(np.var(part, ddof=1) / len(part) for part in influence(negatives, positives, target))
    )


def z_statistic(s, negatives, positives, target=0.0):
    """h(s) over its standard error."""
    p, q = np.asarray(negatives, float), np.asarray(positives, float)
    e, f = np.exp(s * (p - p.max())), np.exp(-s * (q - q.min()))
    h = math.log(e.mean()) + math.log(f.mean()) + s * (p.max() - q.min() - target)
    variance = np.var(e, ddof=1) / (len(p) * e.mean() ** 2)
    variance += np.var(f, ddof=1) / (len(q) * f.mean() ** 2)
    return h / math.sqrt(variance)


def t_statistic(negatives, positives, target=0.0):
    p, q = np.asarray(negatives, float), np.asarray(positives, float)
    error = math.sqrt(np.var(p, ddof=1) / len(p) + np.var(q, ddof=1) / len(q))
    return (p.mean() - q.mean() - target) / error


def score_interval(negatives, positives, z, target=0.0, score_range=(0.0, 1.0)):
    """The default interval of two classes: a scan for the first crossing, then bisection."""
    p, q = list(map(float, negatives)), list(map(float, positives))
    k = index_of(p, q, target)
    if k == 0:
        low = 0.0
    elif k == math.inf and t_statistic(p, q, target) >= z:
        low = math.inf
    else:
        start = 1e-6 if k == math.inf else 1 / k
        low = 1 / _scan(lambda s: z_statistic(s, p, q, target) - z, start, 1.002)
    p, q = [*p, score_range[1]], [*q, score_range[0]]
    k = index_of(p, q, target)
    if k == math.inf or t_statistic(p, q, target) >= -z:
        return low, math.inf
    return low, 1 / _scan(lambda s: -z - z_statistic(s, p, q, target), 1 / k, 1 / 1.002)


def _scan(excess, start, factor):
    """First s from start on, in steps of a factor, where the excess becomes positive."""
    s = start
    while excess(s) < 0:
        s *= factor
    inside, outside = s / factor, s
    for _ in range(60):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if excess(middle) < 0 else (inside, middle)
    return (inside + outside) / 2


def left_out(negatives, positives):
    """What the index owes to each sample: the equation at the root with the sample removed."""
    p, q = np.asarray(negatives, float), np.asarray(positives, float)
    s = 1 / index_of(p, q)

    def h(p, q):
        return math.log(np.exp(s * p).mean()) + math.log(np.exp(-s * q).mean())

    e, f = np.exp(s * p), np.exp(-s * q)
    slope = (e * p).sum() / e.sum() - (f * q).sum() / f.sum()
    scale = 1 / (s * s * slope)
    first = [-h(np.delete(p, k), q) * scale * (len(p) - 1) / len(p) for k in range(len(p))]
    second = [-h(p, np.delete(q, k)) * scale * (len(q) - 1) / len(q) for k in range(len(q))]
    return np.array(first), np.array(second)


def paired_test(negatives_a, positives_a, negatives_b, positives_b):
    """Standard error of the difference of two indices, and its degrees of freedom."""
    changes = [
        a - b
        for a, b in zip(
            left_out(negatives_a, positives_a), left_out(negatives_b, positives_b), strict=True
        )
    ]
    variance = sum((c**2).sum() * len(c) / (len(c) - 1) for c in changes)
    plain = sum((c**2).sum() for c in changes)
    scatter = sum((c**4).sum() - (c**2).sum() ** 2 / len(c) for c in changes)
    return math.sqrt(variance), 2 * plain**2 / scatter


def multi_class_upper_limit(codes, scores, z):
    """Limits of the ordered pairs with one pseudo-mistake at each end, combined by correlation."""
    codes, scores = np.asarray(codes), np.asarray(scores, float)
    n, n_classes = scores.shape
    pairs = [(i, j) for i in range(n_classes) for j in range(n_classes) if i != j]
    sizes = np.bincount(codes) + 1  # with the pseudo-mistake
    values, excesses, moves = [], [], []
    for i, j in pairs:
        negatives, positives = scores[codes == j, i], scores[codes == i, i]
        p, q = np.append(negatives, 1.0), np.append(positives, 0.0)
        error, k = standard_error(p, q), index_of(p, q)
        values.append(index_of(negatives, positives))
        excesses.append((k * math.exp(z * error / k) - values[-1]) / len(pairs))
        first, second = influence(p, q)
        move = np.zeros(n)
        move[codes == j] = first[:-1] / len(p) / error
        move[codes == i] = second[:-1] / len(q) / error
        moves.append(move)
    correlation = np.eye(len(pairs))
    for a in range(len(pairs)):
        for b in range(len(pairs)):
            if a != b:
                correlation[a, b] = sum(
                    moves[a][codes == c] @ moves[b][codes == c] * sizes[c] / (sizes[c] - 1)
                    for c in range(n_classes)
                )
    return np.mean(values) + math.sqrt(excesses @ correlation @ np.array(excesses))


def independent_test(first, second):
    """Quotient of the indices of two samples, p-value and Fieller's interval at 95 %.

    Samples are pairs (negatives, positives). The inverse indices are compared; squared errors are
    means of those from each sample and of those from both together, scaled to its size.
    """
    pooled = tuple(np.concatenate([a, b]) for a, b in zip(first, second, strict=True))
    value, doubt, index = [], [], []
    for own in (first, second):
        k = index_of(*own)
        parts = []
        for sample in (own, pooled):
            square = scatter = 0.0
            moves = [part / index_of(*sample) for part in left_out(*sample)]
            for change, members in zip(moves, own, strict=True):
                n, fewer = len(change), len(change) / len(members)
                square += (change**2).sum() * n / (n - 1) * fewer
                scatter += ((change**4).sum() - (change**2).sum() ** 2 / n) * fewer**2
            parts.append((square, scatter))
        index.append(k)
        value.append((parts[0][0] + parts[1][0]) / 2)
        doubt.append((parts[0][1] + parts[1][1]) / 4)
    roots = [1 / k for k in index]
    error = math.sqrt(sum(s * s * v for s, v in zip(roots, value, strict=True)))
    freedom = 2 * error**4 / sum(s**4 * d for s, d in zip(roots, doubt, strict=True))
    p_value = 2 * student.sf(abs(roots[0] - roots[1]) / error, freedom)
    t = student.ppf(0.975, freedom)

    def accepted(quotient):
        """Whether s₂ = quotient · s₁ is not rejected."""
        spread = quotient**2 * roots[0] ** 2 * value[0] + roots[1] ** 2 * value[1]
        return abs(roots[1] - quotient * roots[0]) <= t * math.sqrt(spread)

    centre = index[0] / index[1]
    ends = []
    for factor in (1 / 1.001, 1.001):
        end = centre
        while accepted(end) and 1e-6 < end < 1e6:
            end *= factor
        inside, outside = end / factor, end
        for _ in range(60):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if accepted(middle) else (inside, middle)
        ends.append(inside)
    return centre, p_value, tuple(ends)
