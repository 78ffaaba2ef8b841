"""The rows of the table of general transport: a cost, a support, a label cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from fragility.ambiguity import (
    Box,
    Ellipsoid,
    Huber,
    Mahalanobis,
    Norm,
    Polytope,
    Power,
    Product,
    SquaredNorm,
    Transport,
)
from fragility.losses import PiecewiseLinear

from .reference import moves

MATRIX = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 1.5]])
LOW, HIGH = np.array([-2.4, -2.0, -2.2]), np.array([2.0, 2.4, 1.9])
OPEN = np.array([2.0, inf, 1.9])
CORNERS = np.vstack([np.eye(3), -np.eye(3), [[1.0, 1.0, 1.0]]])
ROUND = np.diag([0.12, 0.1, 0.14])

#: Asymmetric pieces: two slopes, a false alarm dearer than a miss; three classes with a dear pair.
TWO = ([[0, 1, 2], [0, -0.5, -1]], [[0, 0.5, 0], [0, 0.5, 1]])
THREE_SLOPES = [
    [[0, 0, 0], [-1, 1, 0], [-2, 0, 2]],
    [[0, 0, 0], [1, -1, 0], [0, -1, 1]],
    [[0, 0, 0], [0.5, 0.5, -1], [1, 0, -1]],
]
THREE = (THREE_SLOPES, [[0, 1, 2], [0, 1, 1], [0, 0.5, 1]])


def literal(a, b):
    """A table of pieces as the reference has it."""
    return {y: list(zip(a[y], b[y], strict=True)) for y in range(len(a))}


LOSSES: dict[str, tuple[Any, int, Any]] = {
    "hinge": ("hinge", 2, moves.HINGE),
    "hinge of three classes": ("hinge", 3, moves.crammer_singer(3)),
    "pieces": (PiecewiseLinear(*TWO), 2, literal(*TWO)),
    "pieces of three classes": (PiecewiseLinear(*THREE), 3, literal(*THREE)),
}


@dataclass(frozen=True)
class Row:
    """A cost, a support and a label cost, for the library and for the reference."""

    name: str
    cost: Any
    norm: Any
    kind: Any
    support: Any = None
    region: Any = None
    label_cost: float = inf
    feature_weight: Any = None
    losses: tuple[str, ...] = field(default=tuple(LOSSES))

    @property
    def ambiguity(self):
        return Transport(self.cost, self.support, self.label_cost, self.feature_weight)


BOX = ("box", LOW, HIGH)
ROWS = [
    Row("norm 1", Norm(1), 1, "norm"),
    Row("norm 2", Norm(2), 2, "norm"),
    Row("norm inf", Norm(inf), inf, "norm"),
    Row("Mahalanobis", Mahalanobis(MATRIX), MATRIX, "norm"),
    Row("squared norm 2", SquaredNorm(), 2, "square"),
    Row("squared norm 1", SquaredNorm(1), 1, "square"),
    Row("squared norm inf, weights", SquaredNorm(inf), inf, "square", feature_weight=(1, 3, inf)),
    Row("squared Mahalanobis", SquaredNorm(Mahalanobis(MATRIX)), MATRIX, "square"),
    Row("power 1.5", Power(1.5), 2, ("power", 1.5)),
    Row("power 3 in norm 1", Power(3, 1), 1, ("power", 3)),
    Row("Huber", Huber(0.3), 2, ("huber", 0.3)),
    Row("squared norm, labels move", SquaredNorm(), 2, "square", label_cost=0.7),
    Row("norm 1 in a box", Norm(1), 1, "norm", Box(LOW, HIGH), BOX),
    Row("norm 1, open box", Norm(1), 1, "norm", Box(LOW, OPEN), ("box", LOW, OPEN)),
    Row("norm 2, open box", Norm(2), 2, "norm", Box(LOW, OPEN), ("box", LOW, OPEN)),
    Row("norm inf, open box", Norm(inf), inf, "norm", Box(LOW, OPEN), ("box", LOW, OPEN)),
    Row("Huber, open box", Huber(0.3), 2, ("huber", 0.3), Box(LOW, OPEN), ("box", LOW, OPEN)),
    Row("norm 2 in a box", Norm(2), 2, "norm", Box(LOW, HIGH), BOX),
    Row("norm inf in a box", Norm(inf), inf, "norm", Box(LOW, HIGH), BOX),
    Row("squared norm in a box", SquaredNorm(), 2, "square", Box(LOW, HIGH), BOX),
    Row("squared norm 1 in a box", SquaredNorm(1), 1, "square", Box(LOW, HIGH), BOX),
    Row("squared norm inf in a box", SquaredNorm(inf), inf, "square", Box(LOW, HIGH), BOX),
    Row("power in a box", Power(1.5), 2, ("power", 1.5), Box(LOW, HIGH), BOX),
    Row("Huber in a box", Huber(0.3), 2, ("huber", 0.3), Box(LOW, HIGH), BOX),
    Row("norm 1 in a box, labels move", Norm(1), 1, "norm", Box(LOW, HIGH), BOX, 0.6),
    Row(
        "norm 2 in a box, weights",
        Norm(2),
        2,
        "norm",
        Box(LOW, HIGH),
        BOX,
        feature_weight=(0.5, inf, 2),
    ),
    Row(
        "norm 2 in a polytope",
        Norm(2),
        2,
        "norm",
        Polytope(CORNERS, [2.2] * 6 + [4.6]),
        ("polytope", CORNERS, np.array([2.2] * 6 + [4.6])),
    ),
    Row(
        "squared norm in an ellipsoid",
        SquaredNorm(),
        2,
        "square",
        Ellipsoid(np.zeros(3), ROUND),
        ("ellipsoid", np.zeros(3), ROUND),
    ),
    Row(
        "norm 1 in an ellipsoid, labels move",
        Norm(1),
        1,
        "norm",
        Ellipsoid(np.zeros(3), ROUND),
        ("ellipsoid", np.zeros(3), ROUND),
        0.6,
    ),
    Row(
        "Mahalanobis in a product",
        Mahalanobis(MATRIX),
        MATRIX,
        "norm",
        Product([([0, 1], Box(LOW[:2], HIGH[:2])), ([2], Box(-2.2, 1.9))]),
        BOX,
    ),
]


def data(row, n_classes, seed, n=14):
    """Samples that overlap, inside the support."""
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(size=(n, 3)), -1.5, 1.5)
    y = (X[:, :n_classes] + 0.7 * rng.gumbel(size=(n, n_classes))).argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    return X, y


class Anyone:
    """A linear model that nobody trained."""

    def __init__(self, coef, intercept):
        self.coef_, self.intercept_ = coef, intercept
        self.classes_ = np.arange(2 if len(coef) == 1 else len(coef))


def drawn(n_classes, rng):
    outputs = 1 if n_classes == 2 else n_classes
    return Anyone(rng.normal(size=(outputs, 3)), rng.normal(size=outputs))
