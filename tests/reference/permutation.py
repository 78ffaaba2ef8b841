"""Whether two samples have the same index, by exchanging their cases: all exchanges, or drawn ones.

A sample is a pair (negatives, positives). Nothing is binned, and cases are exchanged in loops.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from scipy.stats import norm

from .inference import index_of


def equation(s, sample):
    """h(s) of a sample."""
    p, q = sample
    return math.log(np.mean(np.exp(s * (p - p.max())))) + math.log(
        np.mean(np.exp(-s * (q - q.min())))
    ) + s * (p.max() - q.min())  # fmt: skip


def common_root(first, second):
    """Bisection between the roots of both, for the mean by 1 / (1 / n₀ + 1 / n₁)."""
    sizes = [1 / (1 / len(p) + 1 / len(q)) for p, q in (first, second)]
    low, high = sorted(1 / index_of(*sample) for sample in (first, second))
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:  # no float lies between
            break
        value = sizes[0] * equation(middle, first) + sizes[1] * equation(middle, second)
        low, high = (middle, high) if value < 0 else (low, middle)
    return (low + high) / 2


def tilted_classes(first, second):
    """By class: tilted scores of both over their common mean, and how many are the first's."""
    s = common_root(first, second)
    found = []
    for sign, a, b in zip((1, -1), first, second, strict=True):
        values = sign * np.concatenate([a, b])
        x = np.exp(s * (values - values.max()))
        found.append((x / x.mean(), len(a)))
    return found


def statistic(parts):
    """Of classes, each a pair of arrays: the difference of log-means, and its squared error."""
    change = square = 0.0
    for a, b in parts:
        change += math.log(a.mean()) - math.log(b.mean())
        square += sum(np.var(x, ddof=1) / len(x) / x.mean() ** 2 for x in (a, b))
    return change, square


def by_all_exchanges(first, second):
    """The exact p-value: the share of exchanges whose statistic is at least as far from 0."""
    arrangements = []
    for x, n in tilted_classes(first, second):
        own = []
        for chosen in combinations(range(len(x)), n):
            inside = np.isin(np.arange(len(x)), chosen)
            own.append(statistic([(x[inside], x[~inside])]))
        arrangements.append(np.array(own))
    (change_0, square_0), (change_1, square_1) = (part.T for part in arrangements)
    t = np.add.outer(change_0, change_1) / np.sqrt(np.add.outer(square_0, square_1))
    # What was seen is the first combination of each class.
    return np.mean(np.abs(t) >= abs(t[0, 0]) * (1 - 1e-12))


def by_drawn_exchanges(first, second, n_pairs, n_cases=64):
    """Bounds of the p-value as the library has them: the largest are drawn, the rest is normal."""
    classes = tilted_classes(first, second)
    change, square = statistic([(x[:n], x[n:]) for x, n in classes])
    t = abs(change) / math.sqrt(square)
    found = [_class_arrangements(x, n, c, n_cases, n_pairs) for c, (x, n) in enumerate(classes)]
    tails = []
    for parts in zip(*found, strict=True):
        change, square, scatter, shear = np.sum(parts, axis=0)
        tail, error = 0.0, math.sqrt(square)
        slope = shear / scatter / (2 * error) if scatter > 0 else 0.0
        for sign in (1, -1):
            spread = math.sqrt(scatter) * abs(sign - t * slope)
            missing = t * error - sign * change
            if abs(missing) <= 1e-8 * t * error:  # a tie
                missing = 0.0
            if spread > 0:
                tail += norm.sf(missing / spread)
            else:
                tail += missing <= 0
        tails.append(min(tail, 1.0))
    return min(np.mean(tails[1:]), np.mean(tails)), np.mean(tails)


def _class_arrangements(x, n_first, number, n_cases, n_pairs):
    order = np.argsort(-x, kind="stable")
    largest, rest = x[order[:n_cases]], x[order[n_cases:]]
    m, n, size = len(largest), n_first, len(x)
    uniforms = np.random.default_rng(number).random((n_cases, n_pairs))
    arrangements = [order[:m] < n_first]
    for draws in [*uniforms.T, *(1 - uniforms).T]:
        inside, missing = [], n
        for k in range(m):
            inside.append(draws[k] * (size - k) < missing)
            missing -= inside[-1]
        arrangements.append(np.array(inside))

    def parts(total, squares, other_total, other_squares):
        """Change and squared error, by sums of x and of x² over each sample."""
        change = square = 0.0
        for sign, count, s, q in (
            (1, n, total, squares),
            (-1, size - n, other_total, other_squares),
        ):
            mean = s / count
            change += sign * math.log(mean)
            square += (q / count - mean**2) / (count - 1) / mean**2
        return change, square

    spread = np.cov(rest, rest**2) if len(rest) > 1 and np.ptp(rest) > 0 else None
    means = rest.mean() if len(rest) else 0.0, (rest**2).mean() if len(rest) else 0.0
    found = []
    for inside in arrangements:
        left = n - inside.sum()
        sums = []
        scatter = shear = 0.0
        for chosen, others in ((inside, left), (~inside, len(rest) - left)):
            sums.append(largest[chosen].sum() + others * means[0])
            sums.append((largest[chosen] ** 2).sum() + others * means[1])
        change, square = parts(*sums)
        if spread is not None and 0 < left < len(rest):
            table = spread * left * (len(rest) - left) / len(rest)
            step = 1e-5 * min(sums[0], sums[2])
            by = np.array([1, table[0, 1] / table[0, 0]])
            by = np.concatenate([by, -by])
            beside = [parts(*(sums + e * by)) for e in (-step, step)]
            slopes = (np.array(beside[1]) - beside[0]) / (2 * step)
            scatter, shear = slopes[0] ** 2 * table[0, 0], slopes[0] * slopes[1] * table[0, 0]
        found.append((change, square, scatter, shear))
    return found
