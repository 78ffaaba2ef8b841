"""The rows of the support matrix that cvxpy solves: each cell against its literal program."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf, sqrt

import numpy as np

from fragility import SatisficingClassifier, SatisficingRegressor, Wasserstein
from fragility.losses import LipschitzLoss

from .reference import lipschitz as reference

NORMS = {"norm 1": 1, "norm 2": 2, "norm inf": inf}
OMEGA = {1: 1.0, 2: sqrt(2), inf: 2.0}
LENGTH = {1: 1.0, 2: 1.0, inf: sqrt(3)}
TEXT = """## Bounds of the slope, regression, and the paper's label term

Solved by cvxpy (extra `conic`), except for the label term. Each cell is compared with a literal
cone program, to 1e-5; "exact" and "upper bound" is what the certificate says of its k, and what is
refused is refused with a sentence.
"""


def drawn(n_classes):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 3)) * [1.0, 3.0, 0.5]
    return X, (X[:, : max(2, n_classes)] + rng.gumbel(size=(40, n_classes))).argmax(axis=1)


def away(scores, y):
    return scores - np.eye(scores.shape[1])[y]


def distance(scores, y):
    return np.linalg.norm(away(scores, y), axis=1)


def direction(scores, y):
    return away(scores, y) / np.maximum(distance(scores, y), 1e-300)[:, np.newaxis]


def agrees(model, expected):
    assert abs(model.fragility_ / expected - 1.0) <= 1e-5, model


def bound(norm, n_classes, kind="induced", own=False, label_cost=inf):
    """What a certificate says of the k of a bound, after comparison."""
    X, y = drawn(n_classes)
    if own:
        loss, omega = LipschitzLoss(distance, LENGTH[norm], direction), LENGTH[norm]
        literal = reference.distance_to_one_hot
    else:
        loss = LipschitzLoss("cross_entropy", operator_norm=kind)
        omega = 1.0 if n_classes == 2 else OMEGA[norm]
        literal = reference.of_gaps("cross_entropy")
    model = SatisficingClassifier(loss, Wasserstein(norm, label_cost), slack=0.3)
    try:
        model.fit(X, y)
    except NotImplementedError:
        return "refused"
    given = {"norm": norm, "lipschitz": omega, "label_cost": label_cost}
    frobenius = kind == "frobenius"
    found = reference.bounded(X, y, n_classes, literal, model.target_, frobenius=frobenius, **given)
    agrees(model, found.k)
    return "upper bound" if model.certificate_.is_upper_bound else "exact"


def regression(norm, n_columns):
    """The same of a regression, which is exact or refused."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 3))
    Y = X @ rng.normal(size=(3, n_columns)) + rng.normal(size=(40, n_columns))
    model = SatisficingRegressor(Wasserstein(norm), slack=0.3)
    try:
        model.fit(X, Y)
    except NotImplementedError:
        return "refused"
    agrees(model, reference.regression(X, Y, model.target_, norm=norm).k)
    return "exact"


def paper(norm, n_classes):
    """The paper's label term, whose certificate is the exact one."""
    X, y = drawn(n_classes)
    cost = 0.9 * np.linalg.norm(X, ord=norm, axis=1).max()
    ambiguity = Wasserstein(norm, cost, label_term="paper")
    model = SatisficingClassifier(ambiguity=ambiguity, fit_intercept=False, slack=0.5).fit(X, y)
    given = {"label_cost": cost, "factor": 1.0, "norm": norm}
    found = reference.paper_labels(X, y, n_classes, "cross_entropy", model.target_, **given)
    agrees(model, found.k)
    return "exact"


def line(name, cell):
    """The line of one kind of problem, once its cells are solved."""
    return f"| {name} | " + " | ".join(map(cell, NORMS.values())) + " |"


def section() -> list[str | Callable[[], str]]:
    """What is solved by rows, norms of the transport by columns: text, or functions that solve."""
    rows = {
        "`LipschitzLoss`, cross_entropy, 2 classes": lambda norm: bound(norm, 2),
        "`LipschitzLoss`, cross_entropy, 3 classes": lambda norm: bound(norm, 3),
        "the same, finite label cost": lambda norm: bound(norm, 3, label_cost=1.0),
        "the same, Frobenius norm": lambda norm: bound(norm, 3, "frobenius"),
        "`LipschitzLoss` of a function, 3 classes": lambda norm: bound(norm, 3, own=True),
        "`SatisficingRegressor`, one column": lambda norm: regression(norm, 1),
        "`SatisficingRegressor`, three columns": lambda norm: regression(norm, 3),
        '`label_term="paper"`, cross_entropy, 2 classes': lambda norm: paper(norm, 2),
        '`label_term="paper"`, cross_entropy, 3 classes': lambda norm: paper(norm, 3),
    }
    return [
        *TEXT.splitlines(),
        "",
        f"| | {' | '.join(NORMS)} |",
        "|" + " --- |" * (1 + len(NORMS)),
        *(partial(line, name, cell) for name, cell in rows.items()),
        "",
    ]
