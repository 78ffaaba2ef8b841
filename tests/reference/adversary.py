"""A distribution near data, judged row by row: its loss, its cost, and how far it is at least."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linprog

from . import linear


def expected_loss(coef, intercept, X, y, weights, loss, constant=None):
    """Weighted mean loss, one row at a time; an intercept may belong to a feature of its own."""
    total = 0.0
    for i in range(len(y)):
        own = np.asarray(intercept) * (1.0 if constant is None else constant[i])
        total += weights[i] * linear.losses(coef, own, X[i : i + 1], y[i : i + 1], loss)[0]
    return total


def move_cost(start, end, norm, prices):
    """What it costs to move one sample, feature by feature; infinite prices only for no move."""
    sizes = []
    for a, b, price in zip(start, end, prices, strict=True):
        sizes.append(0.0 if a == b else abs(a - b) * price)
    if norm == 1:
        return sum(sizes)
    return max(sizes) if math.isinf(norm) else math.sqrt(sum(size**2 for size in sizes))


def coupling_cost(X, y, Z, labels, weights, source, norm, label_cost, prices):
    """Mean cost of a plan that says which sample each row comes from."""
    total = 0.0
    for i, n in enumerate(source):
        cost = move_cost(X[n], Z[i], norm, prices)
        total += weights[i] * (cost + (label_cost if labels[i] != y[n] else 0.0))
    return total


def transport_distance(X, y, shares, Z, labels, weights, norm, label_cost, prices):
    """Least mean cost over all plans from one sample to the other: a linear program."""
    costs = np.empty((len(y), len(labels)))
    for n in range(len(y)):
        for i in range(len(labels)):
            costs[n, i] = move_cost(X[n], Z[i], norm, prices)
            costs[n, i] += label_cost if labels[i] != y[n] else 0.0
    costs = np.minimum(costs, 1e6)
    leave = np.kron(np.eye(len(y)), np.ones(len(labels)))
    arrive = np.kron(np.ones(len(y)), np.eye(len(labels)))
    found = linprog(costs.ravel(), A_eq=np.vstack([leave, arrive]),
                    b_eq=np.concatenate([shares, weights]))  # fmt: skip
    return found.fun


def kullback_leibler(q, a):
    return sum(x * math.log(x / b) for x, b in zip(q, a, strict=True) if x > 0)
