"""Cells of the table of programs: data, target, the literal optimum, a model as NumPy sees it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np

from fragility import KL, Wasserstein

from .reference import linear, programs

LOSSES = ("cross_entropy", "smoothed_hinge", "hinge", "max_logistic")
NORMS = {"w1": 1, "w2": 2, "winf": math.inf}
#: Share of the label cost from which on no label moves: flips and norm bind, or flips alone.
FLIPS = {"w1 labels": 0.75, "w2 labels": 0.75, "winf labels": 0.5}
AMBIGUITIES = ("kl", *NORMS, *FLIPS)
PENALTIES = (None, "l1", "l2")
ALPHA = 1e-2


@cache
def problem(n_classes, n=60):
    """Overlapping classes; columns of different spread, none centred."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) * [1.0, 3.0, 0.5] + [0.5, -1.0, 2.0]
    logits = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(size=(3, n_classes))
    y = (logits + 1.2 * rng.gumbel(size=(n, n_classes))).argmax(axis=1)
    return X, y, rng.integers(1, 4, n).astype(float)


@dataclass(frozen=True)
class Cell:
    """One program: a loss, what may shift, a penalty, a number of classes."""

    loss: str
    ambiguity: str
    penalty: str | None
    n_classes: int
    fit_intercept: bool = True
    weighted: bool = False

    def __str__(self):
        parts = [self.loss, self.ambiguity, self.penalty or "no penalty", self.n_classes]
        parts += [] if self.fit_intercept else ["no intercept"]
        parts += ["weighted"] if self.weighted else []
        return "-".join(str(part) for part in parts)

    @property
    def data(self):
        """X, y and the weights, or None."""
        X, y, weights = problem(self.n_classes)
        return X, y, weights if self.weighted else None

    @property
    def norm(self):
        return NORMS.get(self.ambiguity.split()[0])

    @property
    def label_cost(self):
        return _binding_label_cost(self) if self.ambiguity in FLIPS else math.inf

    @property
    def without_labels(self):
        """The same where labels do not move."""
        return replace(self, ambiguity=self.ambiguity.split()[0])

    @property
    def accuracy(self):
        """Of k, relative; hinges have corners."""
        return 1e-4 if self.loss == "hinge" else 1e-5

    @property
    def options(self):
        """Of the literal programs, beside the ambiguity."""
        return {
            "alpha": ALPHA if self.penalty else 0.0,
            "penalty_kind": self.penalty or "l2",
            "fit_intercept": self.fit_intercept,
            "weights": self.data[2],
        }

    @property
    def parameters(self):
        """Of a classifier."""
        ambiguity = KL() if self.norm is None else Wasserstein(self.norm, self.label_cost)
        return {
            "loss": self.loss,
            "ambiguity": ambiguity,
            "penalty": self.penalty,
            "alpha": ALPHA,
            "fit_intercept": self.fit_intercept,
        }

    def fitted(self, classifier, **parameters):
        X, y, weights = self.data
        return classifier(**self.parameters, **parameters).fit(X, y, sample_weight=weights)

    def judged(self, coef, intercept):
        X, y, weights = self.data
        options = {**self.options, "weights": weights}
        del options["fit_intercept"]
        return linear.Judged(
            coef,
            intercept,
            X,
            y,
            self.loss,
            norm=self.norm,
            label_cost=self.label_cost,
            **options,
        )


#: Each loss, ambiguity, penalty and number of classes, not each of their combinations.
SOME = [
    Cell(loss, ambiguity, PENALTIES[(i + j) % 3], 2 + (i + j) % 2)
    for (i, loss), (j, ambiguity) in product(enumerate(LOSSES), enumerate(AMBIGUITIES))
]


@cache
def _ends(cell):
    """Least loss of all models, and of those without features."""
    X, y, _ = cell.data
    best = programs.erm(X, y, cell.n_classes, cell.loss, **cell.options)
    nothing = np.zeros((y.size, 1))
    return best.value, programs.erm(nothing, y, cell.n_classes, cell.loss, **cell.options).value


def target_of(cell, slack=0.2):
    """A share of the way from the least loss to that without features."""
    best, trivial = _ends(replace(cell, ambiguity="kl"))
    return best + slack * (trivial - best)


@cache
def satisficing(cell, target=None):
    """The literal program at the target of the cell, or another."""
    X, y, _ = cell.data
    target = target_of(cell) if target is None else target
    given = (X, y, cell.n_classes, cell.loss, target)
    if cell.norm is None:
        return programs.kl(*given, **cell.options)
    return programs.wasserstein(*given, norm=cell.norm, label_cost=cell.label_cost, **cell.options)


@cache
def dro(cell, radius):
    X, y, _ = cell.data
    costs = {"norm": cell.norm, "label_cost": cell.label_cost}
    return programs.dro(X, y, cell.n_classes, cell.loss, radius, **costs, **cell.options)


@cache
def hybrid(cell, target, radius):
    X, y, _ = cell.data
    costs = {"norm": cell.norm, "label_cost": cell.label_cost}
    return programs.hybrid(X, y, cell.n_classes, cell.loss, target, radius, **costs, **cell.options)


@cache
def _binding_label_cost(cell):
    """One at which the best model would be flipped, were labels not to move."""
    still = cell.without_labels
    best = satisficing(still)
    gains = still.judged(best.coef, best.intercept).gains
    return float(FLIPS[cell.ambiguity] * gains.max() / best.k)
