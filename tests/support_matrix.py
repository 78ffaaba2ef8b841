"""The support matrix: each cell is solved and checked before it is written.

``python -m tests.support_matrix`` (`make support`) writes docs/support.md; test_support.py makes
the same lines, each in a test of its own, and compares.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from fragility import KL, DROClassifier, SatisficingClassifier, Wasserstein, prove
from fragility.losses import as_loss

from . import support_bounds, support_transport
from .reference import linear

PAGE = Path(__file__).parents[1] / "docs" / "support.md"
LOSSES = ("cross_entropy", "smoothed_hinge", "hinge", "max_logistic")
WEIGHTS = (1, 2, inf, 0.5)
AMBIGUITIES = {
    "KL": KL(),
    "Wasserstein, norm 1": Wasserstein(norm=1),
    "Wasserstein, norm 2": Wasserstein(norm=2),
    "Wasserstein, norm inf": Wasserstein(norm=inf),
    "Wasserstein, fixed and weighted features": Wasserstein(2, feature_weight=WEIGHTS),
    "Wasserstein, finite label cost": Wasserstein(label_cost=0.5),
}
PENALTIES = (None, "l2", "l1")
COLUMNS = tuple(itertools.product((2, 3), PENALTIES))
PAIR_COSTS = {2: ((0, 1), (3, 0)), 3: ((0, 1, 2), (3, 0, 0.5), (1, 5, 0))}
ALPHA, RADIUS = 1e-2, {"KL": 0.02, "Wasserstein, finite label cost": 0.02}
ROOT = """# What is solved

Every cell below is fitted when the tests run, from dense and from CSR arrays. Loss, penalty and
fragility (or worst-case loss) of the model are then recomputed in plain NumPy; dense and CSR must
agree to 1e-6, and so must `solver="interior_point"` where the cell says newton. In cells with a
star `solver="conic"` must agree, too, to 1e-5. Every third cell is fitted with
`fit_intercept="priced"`, too, and judged with a column of ones. Of every model in the first table
`prove` must show that no linear model is less fragile by a share of 1e-6. Write this page again
with `make support`.

Columns: number of classes and penalty. A cell names the solver that `solver="auto"` takes. A loss
of your own (a subclass of `fragility.losses.Loss`) is solved as cross_entropy is, except by
"conic".
"""
PAIRS = """## Costs of pairs of classes: `pair_cost`

The same with a cost for each class taken for each other one, such as
`Hinge(pair_cost=[[0, 1], [3, 0]])`. All that is above is solved with costs, too; these cells are
tested.
"""


@dataclass(frozen=True)
class Cell:
    """A loss, what may shift, a number of classes and a penalty."""

    loss: str
    name: str
    n_classes: int
    penalty: str | None
    pair_cost: bool = False

    @property
    def ambiguity(self):
        return AMBIGUITIES[self.name]

    @property
    def data(self):
        rng = np.random.default_rng(7)
        X = rng.normal(size=(60, 4)) * [1.0, 3.0, 0.5, 1.0]
        X = np.where(rng.random(X.shape) < 0.2, 0.0, X)
        noise = 0.8 * rng.gumbel(size=(60, self.n_classes))
        return X, (X[:, : self.n_classes] + noise).argmax(axis=1)

    def fitted(self, classifier, as_given=np.asarray, **parameters):
        X, y = self.data
        loss = as_loss(self.loss)
        if self.pair_cost:
            loss = replace(loss, pair_cost=PAIR_COSTS[self.n_classes])
        model = classifier(loss, self.ambiguity, penalty=self.penalty, alpha=ALPHA, **parameters)
        with warnings.catch_warnings():
            if parameters.get("solver") == "conic":  # Clarabel stalls on some cones, and says so
                warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(as_given(X), y)

    def judged(self, model):
        """The model as its definition sees it; a priced intercept belongs to a column of ones."""
        X, y = self.data
        prices = np.asarray(getattr(self.ambiguity, "feature_weight", None) or np.ones(4))
        coef, intercept = model.coef_, model.intercept_
        if model.fit_intercept == "priced":
            X, prices = np.c_[X, np.ones(len(X))], np.append(prices, 1.0)
            coef, intercept = np.c_[coef, intercept], np.zeros(len(coef))
        own = _Priced(
            coef,
            intercept,
            X,
            y,
            self.loss,
            norm=getattr(self.ambiguity, "norm", None),
            label_cost=getattr(self.ambiguity, "label_cost", inf),
            alpha=ALPHA if self.penalty else 0.0,
            penalty_kind=self.penalty or "l2",
            pair_cost=PAIR_COSTS[self.n_classes] if self.pair_cost else None,
        )
        object.__setattr__(own, "prices", prices)
        return own

    @property
    def place(self):
        return (
            LOSSES.index(self.loss)
            + list(AMBIGUITIES).index(self.name)
            + PENALTIES.index(self.penalty)
            + self.n_classes
        )

    @property
    def starred(self):
        """Whether cvxpy is affordable: in half a minute, some cells of each row and column."""
        return self.place % 6 == 0

    @property
    def intercepts(self):
        """Kinds that are tried: a priced one with one penalty of each three."""
        return (True, "priced") if self.place % 3 == 0 else (True,)


class _Priced(linear.Judged):
    """A model under prices of features."""

    @property
    def slopes(self):
        return linear.dual_norms(self.coef, self.norm, self.prices)


def satisficing(cell):
    """Which solver finds the least fragility, after all is compared."""
    for intercept in reversed(cell.intercepts):
        model = cell.fitted(SatisficingClassifier, slack=0.3, fit_intercept=intercept)
        own = cell.judged(model)
        room = 1e-8 * max(1.0, model.target_)
        assert 0.0 < model.fragility_ < inf, cell
        assert own.supremum(model.fragility_) <= model.target_ + room, cell
        assert abs(model.fragility_ / own.plain_fragility(model.target_) - 1.0) <= 1e-6, cell
        assert abs(prove(model, *cell.data).gap) <= 1e-6, cell
    others = [({"as_given": sparse.csr_array}, 1e-6)]
    if model.solver_ == "newton":
        others.append(({"solver": "interior_point"}, 1e-6))
    if cell.starred:
        others.append(({"solver": "conic"}, 1e-5))
    for parameters, share in others:
        other = cell.fitted(SatisficingClassifier, slack=0.3, **parameters)
        assert abs(other.fragility_ / model.fragility_ - 1.0) <= share, (cell, parameters)
    return model.solver_


def robust(cell):
    """The same of the least worst-case loss."""
    radius = RADIUS.get(cell.name, 0.05)
    for intercept in reversed(cell.intercepts):
        model = cell.fitted(DROClassifier, radius=radius, fit_intercept=intercept)
        assert model.coef_.any(), cell
        assert abs(model.worst_loss_ / cell.judged(model).worst(radius) - 1.0) <= 1e-8, cell
    others = [({"as_given": sparse.csr_array}, 1e-7)]
    if cell.starred:
        others.append(({"solver": "conic"}, 1e-5))
    for parameters, share in others:
        other = cell.fitted(DROClassifier, radius=radius, **parameters)
        assert abs(other.worst_loss_ / model.worst_loss_ - 1.0) <= share, (cell, parameters)
    return model.solver_


def row(solve, loss, name, columns, pair_cost):
    """The line of a loss and an ambiguity, once its cells are solved."""
    cells = [Cell(loss, name, *column, pair_cost) for column in columns]
    words = [solve(cell).replace("_", " ") + " *" * cell.starred for cell in cells]
    return f"| {loss} | {name} | " + " | ".join(words) + " |"


def table(solve, columns=COLUMNS, pair_cost=False):
    """Rows of losses and ambiguities, columns of classes and penalties."""
    head = [f"{count} classes, {penalty or 'no penalty'}" for count, penalty in columns]
    return [
        "| loss | ambiguity | " + " | ".join(head) + " |",
        "|" + " --- |" * (2 + len(head)),
        *(
            partial(row, solve, loss, name, columns, pair_cost)
            for loss, name in itertools.product(LOSSES, AMBIGUITIES)
        ),
        "",
    ]


def text(words):
    """Lines of a text, with an empty one at the end."""
    return [*words.splitlines(), ""]


def lines() -> list[str | Callable[[], str]]:
    """The page by lines. Those that must be solved are functions."""
    return [
        *text(ROOT),
        *text("## Least fragility: SatisficingClassifier"),
        *table(satisficing),
        *text("## Least worst-case loss: DROClassifier"),
        *text("With `radius=` a SatisficingClassifier is one of the two tables, as its ball is."),
        *table(robust),
        *support_transport.section(),
        *support_bounds.section(),
        *text(PAIRS),
        *text("### Least fragility"),
        *table(satisficing, ((2, "l1"), (3, None)), pair_cost=True),
        *text("### Least worst-case loss"),
        *table(robust, ((3, "l2"),), pair_cost=True),
    ]


def matrix() -> str:
    """The page."""
    return "\n".join(line if isinstance(line, str) else line() for line in lines())


if __name__ == "__main__":
    warnings.simplefilter("error")
    PAGE.write_text(matrix(), encoding="utf-8")
    print(f"wrote {PAGE}")
