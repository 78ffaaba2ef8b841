"""General transport from its definition: programs with every sample, piece and label in them.

A loss is given by its pieces: for the true class y the largest of a·u + b over (a, b) in
pieces[y]; with two classes u is one number. A cost is a norm (1, 2, inf or a matrix M for
√(eᵀMe)) and what is done with the length: "norm", "square", ("power", p), ("huber", δ). A support
is None, ("box", l, u), ("polytope", C, d) or ("ellipsoid", c, M). Features have prices g.
"""

from __future__ import annotations

import itertools
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


def dual_norms(rows, norm):
    """Of each row."""
    if isinstance(norm, np.ndarray):
        return cp.norm(rows @ np.linalg.inv(np.linalg.cholesky(norm)).T, 2, axis=1)
    return cp.norm(rows, {1: "inf", 2: 2, np.inf: 1}[norm], axis=1)


def paid_gains(slopes, k, norm, kind):
    """k h*(slope / k) of each row, and what it demands."""
    size, m = dual_norms(slopes, norm), slopes.shape[0]
    if kind == "norm":
        return np.zeros(m), [size <= k]
    t, s, price = cp.Variable(m), cp.Variable(m), k * np.ones(m)
    if kind == "square":  # s² <= 4 k t
        return t, [size <= s, cp.SOC(price + t, cp.vstack([s, price - t]), axis=0)]
    name, number = kind
    if name == "huber":  # s² <= 2 k t
        cone = cp.SOC(price + t, cp.vstack([np.sqrt(2) * s, price - t]), axis=0)
        return t, [size <= s, cone, size <= number * k]
    q = number / (number - 1)  # t >= s^q k^(1-q) / q
    return t, [size <= s, cp.PowCone3D(q * t, price, s, np.full(m, 1 / q))]


def reach(slopes, support):
    """Largest slope·x over the support for each row, and what it demands."""
    name, *numbers = support
    if name == "box":
        low, high = numbers
        up, down = (cp.Variable(slopes.shape) for _ in range(2))
        demands, total = [slopes == up - down, up >= 0, down >= 0], 0.0
        for part, end in ((up, high), (down, -low)):
            for j in range(len(end)):
                if np.isinf(end[j]):
                    demands.append(part[:, j] == 0)
                else:
                    total = total + end[j] * part[:, j]
        return total, demands
    if name == "polytope":
        multipliers = cp.Variable((slopes.shape[0], len(numbers[1])))
        return multipliers @ numbers[1], [multipliers @ numbers[0] == slopes, multipliers >= 0]
    root = np.linalg.inv(np.linalg.cholesky(numbers[1]))
    return slopes @ numbers[0] + cp.norm(slopes @ root.T, 2, axis=1), []


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
    k, worst = cp.Variable(), cp.Variable(n)
    demands = [k >= 0]  # not a property of the variable, for which cvxpy writes the program anew
    if coef is None and outputs > 1:
        demands += [cp.sum(b) == 0, cp.sum(B, axis=0) == 0]
    for label, own in itertools.product(range(len(pieces)), range(len(pieces))):
        rows = np.flatnonzero(y == own)
        if not rows.size or (label != own and np.isinf(label_cost)):
            continue
        paid = label_cost * k if label != own else 0.0
        for a, offset in pieces[label]:
            a = np.atleast_1d(np.asarray(a, float))
            slope = a @ B
            value = X[rows] @ slope + a @ b + offset
            if np.any(a):
                rest = np.ones((rows.size, 1)) @ cp.reshape(slope, (1, d), order="C")
                if support is not None:
                    v = cp.Variable((rows.size, d))
                    far, more = reach(v, support)
                    value = value + far - cp.sum(cp.multiply(v, X[rows]), axis=1)
                    rest, demands = rest - v, demands + more
                free = rest[:, np.flatnonzero(moving)] @ np.diag(1 / prices[moving])
                gain, more = paid_gains(free, k, norm, kind)
                value, demands = value + gain, demands + more
            demands.append(value - paid <= worst[rows])
    total = shares @ worst + alpha * cp.sum_squares(B)
    if ball is not None:
        back = cp.Variable()
        inside_it = [back >= 0, back <= k, total + back * ball <= target]
        return solved_problem(k - back, demands + inside_it)
    if target is not None:
        return solved_problem(k, [*demands, total <= target])
    return solved_problem(k * radius + total, demands)
