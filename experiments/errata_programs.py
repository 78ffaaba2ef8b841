"""Small programs with a support, solved from the paper's formulas and by trying every corner."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, linprog

Floats = NDArray[np.float64]


class Support(NamedTuple):
    """The points x of the plane with C x ≤ d, a bounded set."""

    normals: Floats
    limits: Floats

    def holds(self, points: Floats) -> NDArray[np.bool_]:
        """Which points belong to it, but for roundings."""
        return np.asarray((points @ self.normals.T <= self.limits + 1e-9).all(axis=1))

    def corners(self, x: Floats) -> Floats:
        """Where a linear function less a multiple of the ℓ1 distance to x can be largest.

        It is linear on each part that the lines through x along the axes cut the set into.
        """
        normals, limits = np.vstack([self.normals, np.eye(2)]), np.append(self.limits, x)
        points = [
            np.linalg.solve(normals[[i, j]], limits[[i, j]])
            for i, j in combinations(range(len(limits)), 2)
            if abs(np.linalg.det(normals[[i, j]])) > 1e-9
        ]
        found = np.array(points)
        return found[self.holds(found)]


#: Sets that most samples are near the harmful side of: where there is more way to go, a support
#: changes nothing for the hinge.
BOX = Support(np.vstack([np.eye(2), -np.eye(2)]), np.array([0.8, 0.3, -0.5, 0.3]))
TRIANGLE = Support(np.array([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]]), np.array([-0.5, 0.3, 0.9]))


class Sample(NamedTuple):
    """Points of a support with labels -1 and 1."""

    X: Floats
    y: Floats


def sample(support: Support, seed: int, n: int = 16) -> Sample:
    """Two overlapping classes inside the support, the second three times as large."""
    rng, points = np.random.default_rng(seed), []
    y = np.where(np.arange(n) % 4, 1.0, -1.0)
    for label in y:
        x = np.full(2, 100.0)
        while not support.holds(x[np.newaxis])[0]:
            x = rng.normal((0.6, 0.1 * label), 0.1)
        points.append(x)
    return Sample(np.array(points), y)


def _labels(own: float, label_cost: float) -> Iterator[tuple[float, float]]:
    """Labels that a sample may get, and what they cost."""
    yield own, 0.0
    if label_cost < np.inf:
        yield -own, label_cost


def _least_k(rows: list[Floats], limits: list[float], n: int, extra: int, target: float) -> float:
    """Least k of variables (w₁, w₂, k, s₁ … s_n, others ≥ 0), whose mean of s meets the target."""
    mean = np.zeros(3 + n + extra)
    mean[3 : 3 + n] = 1.0 / n
    goal = np.zeros(mean.size)
    goal[2] = 1.0
    bounds = [(None, None)] * 2 + [(0.0, None)] * (mean.size - 2)
    found = linprog(goal, np.vstack([mean, *rows]), [target, *limits], bounds=bounds)
    return float(found.fun) if found.success else np.inf


def exact_k(support: Support, data: Sample, label_cost: float, target: float) -> float:
    """Least k of the hinge with ℓ1 transport inside the support: a row for every corner."""
    n, rows, limits = len(data.y), [], []
    for i, (x, own) in enumerate(zip(*data, strict=True)):
        for label, cost in _labels(own, label_cost):
            for point in support.corners(x):
                row = np.zeros(3 + n)
                row[:2], row[2], row[3 + i] = -label * point, -np.abs(point - x).sum() - cost, -1.0
                rows.append(row)
                limits.append(-1.0)
    return _least_k(rows, limits, n, 0, target)


def program_k(
    support: Support, data: Sample, label_cost: float, target: float, *, by_label: bool
) -> float:
    """The same by the paper's program, its multipliers one for each sample and piece.

    `by_label`: one for each label, too. The hinge has the pieces 0 and 1 - y wᵀx; the multiplier of
    the first is best at 0.
    """
    n, (faces, _) = len(data.y), support.normals.shape
    per = 2 if by_label else 1
    size, rows, limits = 3 + n + n * per * faces, [], []
    for i, (x, own) in enumerate(zip(*data, strict=True)):
        for number, (label, cost) in enumerate(_labels(own, label_cost)):
            first = 3 + n + (i * per + (number if by_label else 0)) * faces
            own_part = slice(first, first + faces)
            # 1 + dᵀλ + (Ba - Cᵀλ)ᵀx - k γ ≤ s, where Ba = -y w
            row = np.zeros(size)
            row[:2], row[2], row[3 + i] = -label * x, -cost, -1.0
            row[own_part] = support.limits - support.normals @ x
            rows.append(row)
            limits.append(-1.0)
            for axis, sign in product(range(2), (-1.0, 1.0)):  # ‖Ba - Cᵀλ‖_∞ ≤ k
                row = np.zeros(size)
                row[axis], row[2] = -sign * label, -1.0
                row[own_part] = -sign * support.normals[:, axis]
                rows.append(row)
                limits.append(0.0)
    return _least_k(rows, limits, n, n * per * faces, target)


def dual_support_value(z: Floats, *, inside: bool) -> float:
    """The corollary's inf over λ of (λ f)*(z), f = ‖x‖² - 1 or, without inner points, ‖x‖ - x₁."""
    multipliers = np.geomspace(1e-4, 1e8, 100_001)
    if inside:
        return float((z @ z / (4.0 * multipliers) + multipliers).min())
    # sup of zᵀx - λ(‖x‖ - x₁) is 0 if ‖z + λ e₁‖ ≤ λ, else infinite.
    finite = z @ z + 2.0 * multipliers * z[0] <= 0.0
    return 0.0 if finite.any() else np.inf


class Boxed(NamedTuple):
    """Samples in the box [-1, 1]^M with labels, for the cross-entropy."""

    X: Floats
    y: Floats


def boxed(seed: int, n: int = 20, features: int = 3) -> Boxed:
    """Overlapping classes in a box."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    return Boxed(np.clip(rng.normal(0.3 * y[:, np.newaxis], 0.6, size=(n, features)), -1, 1), y)


def _cross_entropy(points: Floats, x: Floats, label: float, w: Floats, k: float) -> Floats:
    return np.logaddexp(0.0, -label * points @ w) - k * np.abs(points - x).sum(axis=-1)


def few_points(x: Floats, label: float, w: Floats) -> Floats:
    """The M + 1 points: coordinates at the harmful bounds, in the order of their weights."""
    bounds = np.where(label * w > 0, -1.0, 1.0)
    points, moved = [x.copy()], x.copy()
    for j in np.argsort(-np.abs(w), kind="stable"):
        moved = moved.copy()
        moved[j] = bounds[j]
        points.append(moved)
    return np.array(points)


def every_point(x: Floats) -> Floats:
    """All points whose coordinates are at a bound or stay: where a convex loss is largest."""
    return np.array(list(product(*((-1.0, value, 1.0) for value in x))))


def unsolved_by_few_points(seed: int, cases: int = 300) -> int:
    """Drawn inner problems whose maximum over the box is at none of the M + 1 points."""
    rng, unsolved = np.random.default_rng(seed), 0
    for _ in range(cases):
        x, w = rng.uniform(-1, 1, size=4), rng.normal(scale=2.0, size=4)
        k, label = float(rng.uniform(0.0, 2.0)), float(rng.choice([-1.0, 1.0]))
        best = _cross_entropy(every_point(x), x, label, w, k).max()
        unsolved += bool(
            _cross_entropy(few_points(x, label, w), x, label, w, k).max() < best - 1e-9
        )
    return unsolved


def cross_entropy_bounds(data: Boxed, target: float) -> tuple[float, float]:
    """Lower and upper bound of the least k of the cross-entropy with ℓ1 transport in the box.

    The worst loss of a sample is a maximum of functions that are convex in (w, k), so that its
    tangents at the worst points are valid cuts: linear programs bound k from below. From above k is
    what a model needs by trying every corner.
    """
    features = data.X.shape[1]
    cuts, limits, lower, upper = [], [], 0.0, np.inf
    goal = np.append(np.zeros(features), 1.0)
    bounds = [(-30.0, 30.0)] * features + [(0.0, None)]
    ways = np.array([every_point(x) for x in data.X])
    far = np.abs(ways - data.X[:, np.newaxis]).sum(axis=2)

    def worst(w: Floats, k: float) -> tuple[float, Floats]:
        value, slope = 0.0, np.zeros(features + 1)
        for x, label in zip(*data, strict=True):
            points = few_points(x, label, w)
            point = points[np.argmax(_cross_entropy(points, x, label, w, k))]
            distance = float(np.abs(point - x).sum())
            value += float(np.logaddexp(0.0, -label * point @ w)) - k * distance
            falls = -label / (1.0 + np.exp(label * point @ w))
            slope += np.append(falls * point, -distance)
        return value / len(data.y), slope / len(data.y)

    def needed(w: Floats) -> float:
        losses = np.logaddexp(0.0, -data.y[:, np.newaxis] * (ways @ w))

        def missed(k: float) -> float:
            return float((losses - k * far).max(axis=1).mean()) - target

        high = float(np.abs(w).max()) + 1e-9
        if missed(high) > 0.0:
            return np.inf
        return 0.0 if missed(0.0) <= 0.0 else float(brentq(missed, 0.0, high, xtol=1e-12))

    point = np.zeros(features + 1)
    for _ in range(400):
        value, slope = worst(point[:-1], float(point[-1]))
        cuts.append(slope)
        limits.append(target - value + float(slope @ point))
        found = linprog(goal, np.array(cuts), limits, bounds=bounds)
        point, lower = found.x, max(lower, float(found.fun))
        upper = min(upper, needed(point[:-1]))
        if upper < np.inf and upper - lower <= 1e-7 * upper:
            break
    return lower, upper
