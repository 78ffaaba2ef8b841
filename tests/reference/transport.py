"""The class-wise Wasserstein index from its definition, on a grid of the real line."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linprog, minimize_scalar
from scipy.sparse import csr_array


def worst_case_errors_lp(negatives, positives, k, weight_norm, grid):
    """sup over P of E[ε] - k D(P, P̂) as a transport program over target logits `grid`.

    A unit of transport moves a logit by the dual norm of the weights; the distance is half the sum
    of the two class-wise W1 distances.
    """
    total = 0.0
    for logits, sign in ((negatives, 1.0), (positives, -1.0)):
        n = len(logits)
        score = sign / (1 + np.exp(-grid))
        cost = np.abs(np.subtract.outer(np.asarray(logits), grid)) / weight_norm
        gain = score[None, :] - k / 2 * cost
        rows = np.kron(np.eye(n), np.ones(len(grid)))  # each sample sends its mass 1/n
        result = linprog(-gain.ravel(), A_eq=rows, b_eq=np.full(n, 1 / n), bounds=(0, None))
        total -= result.fun
    return total


def price_index(negatives, positives, weight_norm, target=0.0, weights=(None, None)):
    """Bisection in k with every sample's best move found on a dense grid."""
    grid = np.arange(-40.0, 40.0, 0.001)
    sigma = 1 / (1 + np.exp(-grid))

    def worst(k):
        mean = 0.0
        for logits, curve, w in (
            (negatives, sigma, weights[0]),
            (positives, -sigma, weights[1]),
        ):
            price = k / (2 * weight_norm)
            best = [max(curve - price * np.abs(grid - z)) for z in logits]
            stay = [
                c / (1 + math.exp(-z)) for z, c in zip(logits, [1.0] * len(logits), strict=True)
            ]
            stay = np.array(stay) * (1 if curve[-1] > 0 else -1)
            mean += np.average(np.maximum(best, stay), weights=w)
        return mean

    if worst(1e9) > target + 1e-12:
        return math.inf
    low, high = 0.0, weight_norm
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if worst(middle) <= target else (middle, high)
    return (low + high) / 2


def transport_distance(X_ref, y_ref, X_new, y_new, weights, *, norm, label_cost, feature_weight):
    """Optimal transport between two samples: the linear program with every pair of cases.

    Pairs at an infinite cost are left out; infinite if no plan is left.
    """
    total = [np.asarray(w, float) / np.sum(w) for w in weights]
    pairs, costs = [], []
    for i, (x, label) in enumerate(zip(X_ref, y_ref, strict=True)):
        for j, (z, other) in enumerate(zip(X_new, y_new, strict=True)):
            apart = zip(feature_weight, x, z, strict=True)
            moves = [g * abs(b - a) if a != b else 0.0 for g, a, b in apart]
            way = {1: math.fsum(moves), 2: math.hypot(*moves), math.inf: max(moves)}[norm]
            cost = way + (label_cost if label != other else 0.0)
            if cost < math.inf:
                pairs.append((i, j))
                costs.append(cost)
    if not pairs:
        return math.inf
    n, m = len(total[0]), len(total[1])
    sums = np.zeros((n + m, len(pairs)))
    for place, (i, j) in enumerate(pairs):
        sums[i, place] = sums[n + j, place] = 1.0
    found = linprog(costs, A_eq=sums, b_eq=np.concatenate(total), method="highs-ipm")
    return found.fun if found.success else math.inf


def worst_case_relabelled_lp(logits, y, weights, k, weight_norm, label_cost, grid):
    """sup over P of E[ε] - k D(P, P̂) where labels move, too: a transport program for each share.

    Mass goes from each sample to a logit of `grid` with a label. Each class counts by its own mean,
    of errors and of costs; D is half the sum of the two. The share of the positives is scanned,
    then refined where the value is largest.
    """
    mass = np.asarray(weights, float) / np.sum(weights)
    n, m = len(logits), len(grid)
    score = 1 / (1 + np.exp(-np.asarray(grid)))
    way = np.abs(np.subtract.outer(np.asarray(logits), grid)) / weight_norm
    as_negative = score - k / 2 * (way + label_cost * (np.asarray(y) != 0)[:, None])
    as_positive = -score - k / 2 * (way + label_cost * (np.asarray(y) != 1)[:, None])
    # What each sample sends, under either label; and what ends as positives.
    sent = np.kron(np.ones((1, 2)), np.kron(np.eye(n), np.ones(m)))
    rows = csr_array(np.vstack([sent, np.repeat([0.0, 1.0], n * m)]))

    def value(share):
        gain = np.concatenate([as_negative.ravel() / (1 - share), as_positive.ravel() / share])
        found = linprog(-gain, A_eq=rows, b_eq=np.append(mass, share), bounds=(0, None))
        return -found.fun

    # Plans that split no sample are corners of the value as a function of the share.
    whole = [q for q in _whole_shares(mass) if 0.0 < q < 1.0 - 1e-12]
    shares = np.unique([*np.linspace(0.05, 0.95, 7), *whole])
    values = [value(q) for q in shares]
    top = int(np.argmax(values))
    near = (shares[max(top - 1, 0)], shares[min(top + 1, len(shares) - 1)])
    refined = minimize_scalar(
        lambda q: -value(q), bounds=near, method="bounded", options={"xatol": 1e-4, "maxiter": 12}
    )
    return max(*values, -refined.fun)


def _whole_shares(mass):
    sums = {0.0}
    for w in mass:
        sums |= {s + w for s in sums}
    return sorted(sums)


def worst_case_relabelled(logits, y, weights, k, weight_norm, label_cost):
    """The same by trying every set of samples that end as positives, with a part of one more."""
    mass = np.asarray(weights, float) / np.sum(weights)
    price = k / (2 * weight_norm)

    def reached(z):  # max over u of σ(u) - price |u - z|, by search
        grid = np.linspace(z, z + 60.0, 4001)
        values = 1 / (1 + np.exp(-grid)) - price * (grid - z)
        top = int(np.argmax(values))
        found = minimize_scalar(
            lambda u: price * (u - z) - 1 / (1 + math.exp(-u)),
            bounds=(grid[max(top - 1, 0)], grid[min(top + 1, 4000)]),
            method="bounded",
            options={"xatol": 1e-9},
        )
        return max(-found.fun, values[top], 1 / (1 + math.exp(-z)))

    flipped = k / 2 * label_cost
    up = np.array([reached(-z) - 1 - flipped * (c != 1) for z, c in zip(logits, y, strict=True)])
    down = np.array([reached(z) - flipped * (c != 0) for z, c in zip(logits, y, strict=True)])
    n, best = len(logits), -math.inf
    parts = np.linspace(0.0, 1.0, 201)
    for chosen in range(2**n):
        whole = np.array([(chosen >> i) & 1 for i in range(n)], float)
        for split in range(n):
            r = np.repeat((mass * whole)[None], len(parts), axis=0)
            r[:, split] = mass[split] * parts
            inside, outside = r.sum(axis=1), (mass - r).sum(axis=1)
            possible = (inside > 1e-12) & (outside > 1e-12)
            r, inside, outside = r[possible], inside[possible], outside[possible]
            values = r @ up / inside + (mass - r) @ down / outside
            best = max(best, float(values.max()))
    return best


def worst_case_points_lp(proba, X, codes, pair, k, points):
    """sup over P of E[p_i(xʲ) - p_i(xⁱ)] - k D(P, P̂) for one ordered pair (i, j), labels fixed.

    Each class sends its samples to some of `points` (ℓ2 distances); D is half the sum of the two
    classes' costs. `proba` gives p_i of points.
    """
    i, j = pair
    total = 0.0
    for code, sign in ((j, 1.0), (i, -1.0)):
        own = np.asarray(X)[np.asarray(codes) == code]
        n, m = len(own), len(points)
        way = np.linalg.norm(own[:, None] - points[None], axis=2)
        gain = sign * proba(points)[None, :] - k / 2 * way
        rows = csr_array(np.kron(np.eye(n), np.ones(m)))
        found = linprog(-gain.ravel(), A_eq=rows, b_eq=np.full(n, 1 / n), bounds=(0, None))
        total -= found.fun
    return total
