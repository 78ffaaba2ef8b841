"""Models whose scores choose policies, costs, and what a policy costs on given cases."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.baselines.losses import Floats
from fragility import Policy

__all__ = ["MODELS", "TRIPLES", "Triple", "best_pair_cost", "costs_at", "fitted", "out_of_fold"]

_FOLDS = 5
#: In the order of the tables.
MODELS = ("logistic", "boosting", "forest")


class Triple(NamedTuple):
    """Costs of a false alarm, of a miss, and of a review."""

    alarm: float
    miss: float
    review: float

    @property
    def name(self) -> str:
        """As in the tables."""
        return " : ".join(f"{cost:g}" for cost in self)

    @property
    def unequal(self) -> bool:
        """Whether the two errors differ in cost."""
        return self.alarm != self.miss

    @property
    def matrix(self) -> list[list[float]]:
        """Costs of errors, true × decided class."""
        return [[0.0, self.alarm], [self.miss, 0.0]]

    def paid(self, y: Floats, negative: Any, positive: Any) -> Floats:
        """Cost of each case that is decided negative or positive, else reviewed."""
        found: Floats = np.full(y.size, self.review)
        found[negative] = self.miss * (y[negative] == 1)
        found[positive] = self.alarm * (y[positive] == 0)
        return found


TRIPLES = (
    Triple(1.0, 1.0, 0.2),
    Triple(1.0, 5.0, 0.5),
    Triple(1.0, 20.0, 1.0),
    Triple(5.0, 1.0, 0.5),
)


def _model(name: str, seed: int) -> Any:
    if name == "logistic":
        return make_pipeline(
            SimpleImputer(strategy="median", keep_empty_features=True),
            StandardScaler(),
            LogisticRegression(max_iter=1000),
        )
    if name == "boosting":
        return HistGradientBoostingClassifier(random_state=seed, early_stopping=False)
    return make_pipeline(
        SimpleImputer(strategy="median", keep_empty_features=True),
        RandomForestClassifier(100, min_samples_leaf=3, random_state=seed),
    )


def fitted(name: str, X: Floats, y: Floats, seed: int) -> Any:
    """A model, fitted."""
    if name == "boosting":  # it does not take a column without any value: a constant is never used
        X = np.where(np.isnan(X).all(axis=0), 0.0, X)
    return _model(name, seed).fit(X, y)


def out_of_fold(name: str, X: Floats, y: Floats, seed: int) -> Floats:
    """Probability of class 1 of every case, by models that were fitted to other cases."""
    p = np.empty(y.size)
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    for train, test in folds.split(X, y):
        p[test] = fitted(name, X[train], y[train], seed).predict_proba(X[test])[:, 1]
    return p


def costs_at(policy: Policy, triple: Triple, y: Floats, p: Floats) -> Floats:
    """Cost of each case at a policy."""
    return triple.paid(y, p < policy.lower, p >= policy.upper)


def best_pair_cost(triple: Triple, y: Floats, p: Floats) -> float:
    """Mean cost of the cheapest two thresholds for these cases, in hindsight.

    Examples
    --------
    >>> y, p = np.array([0, 1, 0, 1]), np.array([0.1, 0.4, 0.6, 0.9])
    >>> round(best_pair_cost(Triple(1.0, 1.0, 0.2), y, p), 12)
    0.1
    """
    scores, place = np.unique(p, return_inverse=True)
    count = np.bincount(place, minlength=scores.size)
    ones = np.bincount(place, y == 1, minlength=scores.size)
    negative, reviewed, positive = (
        np.concatenate([[0.0], np.cumsum(part)])
        for part in (triple.miss * ones, triple.review * count, triple.alarm * (count - ones))
    )
    below = np.minimum.accumulate(negative - reviewed)
    return float((below + reviewed + positive[-1] - positive).min()) / y.size
