"""General transport from its definition: programs with every sample, piece and label written out.

A loss is given by its pieces: for the true class y the largest of a·u + b over (a, b) in
pieces[y]; with two classes u is one number. A cost is a norm (1, 2, inf or a matrix M for
√(eᵀMe)) and what is done with the length: "norm", "square", ("power", p), ("huber", δ). A support
is None, ("box", l, u), ("polytope", C, d) or ("ellipsoid", c, M). Features have prices g.
"""

from __future__ import annotations

import warnings

import numpy as np

from .programs import ATTEMPTS, cp

HINGE = {0: [(0.0, 0.0), (1.0, 1.0)], 1: [(0.0, 0.0), (-1.0, 1.0)]}


def solved_problem(minimised, demands):
    problem = cp.Problem(cp.Minimize(minimised), demands)
    for settings in ATTEMPTS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                problem.solve(solver=cp.CLARABEL, warm_start=False, **settings)
        except cp.SolverError:
            continue
        if problem.status == "optimal":
            return float(problem.value)
    raise RuntimeError(f"the reference was not solved: {problem.status}")


def crammer_singer(n_classes):
    """max(0, max_c 1 + u_c - u_y)."""
    unit = np.eye(n_classes)
    return {
        y: [(np.zeros(n_classes), 0.0)]
        + [(unit[c] - unit[y], 1.0) for c in range(n_classes) if c != y]
        for y in range(n_classes)
    }


def lengths(moves, norm):
    """Of each row."""
    if isinstance(norm, np.ndarray):
        return np.sqrt(np.sum((moves @ norm) * moves, axis=1))
    return np.linalg.norm(moves, norm, axis=1)


def cost(moves, norm, kind):
    """What each move (row) costs."""
    t = lengths(np.asarray(moves, float), norm)
    if kind == "norm":
        return t
    if kind == "square":
        return t**2
    name, number = kind
    if name == "power":
        return t**number / number
    return np.where(t <= number, t**2 / 2, number * t - number**2 / 2)


def inside(points, support):
    """Which rows lie in a support."""
    if support is None:
        return np.ones(len(points), bool)
    name, *numbers = support
    if name == "box":
        return np.all((points >= numbers[0]) & (points <= numbers[1]), axis=1)
    if name == "polytope":
        return np.all(points @ numbers[0].T <= numbers[1], axis=1)
    away = points - numbers[0]
    return np.sum((away @ numbers[1]) * away, axis=1) <= 1.0


def dual_norm(expression, norm):
    if isinstance(norm, np.ndarray):
        return cp.norm(np.linalg.inv(np.linalg.cholesky(norm)) @ expression, 2)
    return cp.norm(expression, {1: "inf", 2: 2, np.inf: 1}[norm])


def paid_gain(slope, k, norm, kind):
    """k h*(slope / k) and what it demands."""
    size = dual_norm(slope, norm)
    if kind == "norm":
        return 0.0, [size <= k]
    if kind == "square":
        return cp.quad_over_lin(cp.pos(size), 4 * k), []
    name, number = kind
    if name == "huber":
        return cp.quad_over_lin(cp.pos(size), 2 * k), [size <= number * k]
    q = number / (number - 1)  # t >= s^q k^(1-q) / q
    t, s = cp.Variable(), cp.Variable()
    return t, [size <= s, cp.PowCone3D(q * t, k, s, 1 / q)]


def reach(slope, support):
    """Largest slope·x over the support, and what it demands."""
    name, *numbers = support
    if name == "box":
        low, high = numbers
        demands, total = [], 0.0
        for j in range(len(low)):
            up, down = cp.Variable(nonneg=True), cp.Variable(nonneg=True)
            demands.append(slope[j] == up - down)
            for part, end in ((up, high[j]), (down, -low[j])):
                if np.isinf(end):
                    demands.append(part == 0)
                else:
                    total = total + end * part
        return total, demands
    if name == "polytope":
        multipliers = cp.Variable(len(numbers[1]), nonneg=True)
        return numbers[1] @ multipliers, [numbers[0].T @ multipliers == slope]
    root = np.linalg.inv(np.linalg.cholesky(numbers[1]))
    return numbers[0] @ slope + cp.norm(root @ slope, 2), []


def program(
    X,
    y,
    pieces,
    norm,
    kind,
    support=None,
    *,
    label_cost=np.inf,
    prices=None,
    weights=None,
    alpha=0.0,
    target=None,
    radius=None,
    ball=None,
    coef=None,
    intercept=None,
):
    """Least k at a target, or least worst loss within a radius; of one model if it is given.

    With a ball k need hold inside it only: a price k + λ is paid, and λ is given back up to it.
    """
    n, d = X.shape
    outputs = 1 if len(pieces) == 2 else len(pieces)
    shares = np.full(n, 1 / n) if weights is None else np.asarray(weights) / np.sum(weights)
    prices = np.ones(d) if prices is None else np.asarray(prices)
    moving = np.isfinite(prices)
    B = cp.Variable((outputs, d)) if coef is None else cp.Constant(coef)
    b = cp.Variable(outputs) if intercept is None else cp.Constant(intercept)
    k, worst = cp.Variable(nonneg=True), cp.Variable(n)
    demands = [] if coef is not None or outputs == 1 else [cp.sum(b) == 0, cp.sum(B, axis=0) == 0]
    for i in range(n):
        for label in range(len(pieces)):
            if label != y[i] and np.isinf(label_cost):
                continue
            paid = label_cost * k if label != y[i] else 0.0
            for a, offset in pieces[label]:
                a = np.atleast_1d(np.asarray(a, float))
                slope = a @ B
                value = slope @ X[i] + a @ b + offset
                rest = slope
                if support is not None and np.any(a):
                    v = cp.Variable(d)
                    far, more = reach(v, support)
                    value, rest = value + far - v @ X[i], slope - v
                    demands += more
                if np.any(a):
                    gain, more = paid_gain(
                        cp.multiply(1 / prices[moving], rest[np.flatnonzero(moving)]), k, norm, kind
                    )
                    value, demands = value + gain, demands + more
                demands.append(value - paid <= worst[i])
    total = shares @ worst + alpha * cp.sum_squares(B)
    if ball is not None:
        back = cp.Variable(nonneg=True)
        return solved_problem(k - back, [*demands, back <= k, total + back * ball <= target])
    if target is not None:
        return solved_problem(k, [*demands, total <= target])
    return solved_problem(k * radius + total, demands)
