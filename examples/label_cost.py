"""What a price on labels does to the fragility: exactly, and by the paper's approximation.

Run with ``python examples/label_cost.py``; needs ``fragility[conic]``. `pictures.py` draws it.
Under a finite label cost γ the samples of a model may change their labels, too. Training solves
that program exactly. The paper replaces what another label adds by k (m ‖x‖ − γ)₊, with m = 1 for
cross-entropy and 2 for the hinge. That grows with k, so that below some γ no k at all meets the
target, although the exact program always has a solution.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import inf

import cvxpy as cp
import numpy as np
from scipy.optimize import brentq
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from fragility import SatisficingClassifier, Wasserstein

__all__ = ["Approximation", "LabelCosts", "label_costs"]

#: Multiple of ‖x‖ that the approximation takes for what another label adds per unit of k.
REACH = {"cross_entropy": 1.0, "hinge": 2.0}
#: Share of the way to the boundary that Clarabel steps: shorter ones where exponential cones stall.
STEPS = (0.99, 0.9, 0.8)
COSTS = np.geomspace(0.03, 5.0, 41)


@dataclass(frozen=True)
class LabelCosts:
    """Fragilities at some label costs, which are in units of the longest sample.

    `without` is k where labels do not move, `product` that of γ and k where they are cheap. From
    `feasible_from` on the approximation has a solution, from `exact_from` on it is proved exact.
    """

    loss: str
    costs: np.ndarray
    exact: np.ndarray
    approximate: np.ndarray
    without: float
    product: float
    feasible_from: float
    exact_from: float


def data() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def fitted(X, y, loss: str, cost: float) -> SatisficingClassifier:
    # No intercept: with one, the approximation does not hold at all.
    ambiguity = Wasserstein(label_cost=cost)
    return SatisficingClassifier(loss, ambiguity, fit_intercept=False, slack=0.1).fit(X, y)


class Approximation:
    """The paper's program, in its words."""

    def __init__(self, X, y, loss: str) -> None:
        self.lengths = REACH[loss] * np.linalg.norm(X, axis=1)
        self.w, self.k = cp.Variable(X.shape[1]), cp.Variable(nonneg=True)
        self.added = cp.Parameter(nonneg=True)
        margins = cp.multiply(np.where(y == 1, 1.0, -1.0), X @ self.w)
        losses = cp.logistic(-margins) if loss == "cross_entropy" else cp.pos(1.0 - margins)
        self.level = cp.sum(losses) / len(y) + self.k * self.added
        self.reach = [cp.norm(self.w) <= self.k]

    def lowest_level(self, cost: float) -> float:
        """Lowest loss, labels included, that any model and k reach: above the target, none do."""
        return self._minimum(self.level, self.reach, cost)

    def fragility(self, cost: float, target: float) -> float:
        """Least k that meets a target that can be met."""
        return self._minimum(self.k, [*self.reach, self.level <= target], cost)

    def _minimum(self, objective, constraints, cost: float) -> float:
        self.added.value = np.maximum(self.lengths - cost, 0.0).mean()
        problem = cp.Problem(cp.Minimize(objective), constraints)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of inaccuracy: the status says it, too
            for step in STEPS:
                problem.solve(solver=cp.CLARABEL, max_step_fraction=step)
                if problem.status == cp.OPTIMAL:
                    return float(problem.value)
        raise RuntimeError(f"Clarabel ended with status {problem.status!r}.")


def label_costs(X, y, loss: str, costs=COSTS) -> LabelCosts:
    longest = float(np.linalg.norm(X, axis=1).max())
    plain, paper = fitted(X, y, loss, inf), Approximation(X, y, loss)
    feasible_from = brentq(
        lambda cost: paper.lowest_level(cost * longest) - plain.target_,
        0.0,
        REACH[loss],
        xtol=1e-4,
    )
    # And some from just inside of where the approximation begins to where it is exact.
    costs = np.union1d(costs, np.geomspace(1.0005 * feasible_from, REACH[loss], 9))
    approximate = np.full(costs.size, inf)
    for i in np.flatnonzero(costs > feasible_from):
        approximate[i] = paper.fragility(costs[i] * longest, plain.target_)
    smallest = 1e-3 * longest
    return LabelCosts(
        loss,
        costs,
        np.array([fitted(X, y, loss, cost * longest).fragility_ for cost in costs]),
        approximate,
        plain.fragility_,
        smallest * fitted(X, y, loss, smallest).fragility_ / longest,
        feasible_from,
        REACH[loss],
    )


def main() -> None:
    X, y = data()
    for loss in REACH:
        found = label_costs(X, y, loss, COSTS[::5])
        name = loss.replace("_", "-")
        print(f"{name}, no intercept; label cost γ in units of the longest sample")
        print(f"{'γ':>8} {'exact k':>10} {'approximation':>14}")
        for cost, k, other in zip(found.costs, found.exact, found.approximate, strict=True):
            shown = "infeasible" if other == inf else f"{other:.4f}"
            print(f"{cost:8.3f} {k:10.4f} {shown:>14}")
        print(f"labels that do not move: {found.without:.4f}")
        print(f"infeasible below γ = {found.feasible_from:.3f}\n")


if __name__ == "__main__":
    main()
