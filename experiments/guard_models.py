"""A guard of several model classes, and what it is held against: tuned boosting, a plain average.

The guard doubts what it has not seen. Its linear member clips every feature to the range of the
training data, and shrinks its log-odds by how little the data say of a case; members that disagree
shrink their average.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, logit
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from experiments.baselines import lightgbm
from experiments.baselines.losses import Floats
from experiments.platt import platt_map

__all__ = ["METHODS", "LogOdds", "calibrated", "disagreement", "posterior", "predictions", "shrunk"]

#: In the order of the tables: the reference, the rival of the guard, the guard.
METHODS = ("boosting", "average", "guard")
_FOLDS = 5
#: Features of the guard's linear member stay between these quantiles of the training data.
CLIPPED = (0.01, 0.99)
STRENGTHS = tuple(np.logspace(-4, 2, 9).tolist())
#: Boosting is tuned over leaves of a tree, cases of a leaf and the number of trees.
LEAVES, LEAF_CASES, TREES = (3, 7, 31), (5, 50), (20, 40, 80, 160, 320)
_RATE = 0.05
_FOREST = 100
#: Where all trees of a forest agree, half a tree disagrees: certainty has no log-odds.
_HALF_A_TREE = 0.5 / _FOREST

Folds = Sequence[tuple[Any, Any]]
#: From rows to one number of each, or to other rows.
OfRows = Callable[[Floats], Floats]


class LogOdds(NamedTuple):
    """Log-odds of class 1: of the source out of fold, and of the cases that judge."""

    out_of_fold: Floats
    after: Floats


def shrunk(log_odds: Floats, variance: Floats) -> Floats:
    """Log-odds whose probability is about the mean over a Gaussian error (MacKay, 1992)."""
    return log_odds / np.sqrt(1.0 + np.pi * variance / 8.0)


def disagreement(members: Sequence[Floats]) -> Floats:
    """The mean of the members' log-odds, shrunk by their variance."""
    return shrunk(np.mean(members, axis=0), np.var(members, axis=0))


def calibrated(y: Any, said: LogOdds) -> LogOdds:
    """The same after Platt's map of what was said of the source, out of fold."""
    line = platt_map(y, expit(said.out_of_fold))
    return LogOdds(*(logit(line(expit(part))) for part in said))


def predictions(X: Floats, y: Any, X_after: Floats, seed: int) -> dict[str, Floats]:
    """Probabilities of class 1 of the cases that judge, by method."""
    folds = list(StratifiedKFold(_FOLDS, shuffle=True, random_state=seed).split(X, y))
    boosting = calibrated(y, _boosting(X, y, X_after, folds, seed))
    forest = calibrated(y, _forest(X, y, X_after, folds, seed))
    plain, careful = (
        calibrated(y, _linear(X, y, X_after, folds, guarded)) for guarded in (False, True)
    )
    average = LogOdds(
        *(np.mean(part, axis=0) for part in zip(boosting, forest, plain, strict=True))
    )
    guard = LogOdds(*(disagreement(part) for part in zip(boosting, forest, careful, strict=True)))
    found = (boosting, calibrated(y, average), calibrated(y, guard))
    return {name: expit(said.after) for name, said in zip(METHODS, found, strict=True)}


def _linear(X: Floats, y: Any, X_after: Floats, folds: Folds, guarded: bool) -> LogOdds:
    """L2 logistic regression of the strength with the least log-loss out of fold."""
    unseen = np.empty((len(STRENGTHS), y.size))
    for train, test in folds:
        for i, scores in enumerate(_linear_path(X[train], y[train], STRENGTHS, guarded)):
            unseen[i, test] = scores(X[test])
    best = _least_log_loss(y, unseen)
    (scores,) = _linear_path(X, y, STRENGTHS[best : best + 1], guarded)
    return LogOdds(unseen[best], scores(X_after))


def _linear_path(X: Floats, y: Any, strengths: Sequence[float], guarded: bool) -> Iterator[OfRows]:
    """Log-odds by the models of a row of strengths; the intercept is free."""
    filled = SimpleImputer(strategy="median", keep_empty_features=True).fit(X)
    known = filled.transform(X)
    low, high = np.quantile(known, CLIPPED, axis=0) if guarded else (-np.inf, np.inf)
    scale = StandardScaler().fit(np.clip(known, low, high))

    def rows_of(X: Floats) -> Floats:
        Z = scale.transform(np.clip(filled.transform(X), low, high))
        return np.column_stack([np.ones(len(Z)), Z])

    rows = rows_of(X)
    model = LogisticRegression(solver="newton-cholesky", warm_start=True, tol=1e-8)
    for strength in strengths:
        model.set_params(C=strength).fit(rows[:, 1:], y)
        coef = np.r_[model.intercept_, model.coef_[0]]
        variance = posterior(rows, expit(rows @ coef), strength) if guarded else None
        yield partial(_said, rows_of, coef, variance)


def _said(rows_of: OfRows, coef: Floats, variance: OfRows | None, X: Floats) -> Floats:
    rows = rows_of(X)
    found: Floats = rows @ coef
    return found if variance is None else shrunk(found, variance(rows))


def posterior(rows: Floats, p: Floats, strength: float) -> OfRows:
    """Variance of the log-odds of new rows, xᵀ(XᵀWX + I/C)⁻¹x (Laplace).

    The first column is that of the intercept, which has no penalty.
    """
    penalty = np.full(rows.shape[1], 1.0 / strength)
    penalty[0] = 0.0
    factor = cho_factor((rows * (p * (1.0 - p))[:, None]).T @ rows + np.diag(penalty))
    return lambda new: np.einsum("ij,ji->i", new, cho_solve(factor, new.T))


def _boosting(X: Floats, y: Any, X_after: Floats, folds: Folds, seed: int) -> LogOdds:
    """LightGBM of the settings with the least log-loss out of fold."""
    settings = [(leaves, cases) for leaves in LEAVES for cases in LEAF_CASES]
    unseen = np.empty((len(settings), len(TREES), y.size))
    for place, setting in enumerate(settings):
        for train, test in folds:
            model = _boosted(X[train], y[train], setting, TREES[-1], seed)
            for number, trees in enumerate(TREES):
                unseen[place, number, test] = _raw(model, X[test], trees)
    place, number = divmod(_least_log_loss(y, unseen.reshape(-1, y.size)), len(TREES))
    model = _boosted(X, y, settings[place], TREES[number], seed)
    return LogOdds(unseen[place, number], _raw(model, X_after, TREES[number]))


def _boosted(X: Floats, y: Any, setting: tuple[int, int], trees: int, seed: int) -> Any:
    leaves, cases = setting
    model = lightgbm(seed).set_params(
        num_leaves=leaves, min_child_samples=cases, n_estimators=trees, learning_rate=_RATE
    )
    return model.fit(X, y)


def _raw(model: Any, X: Floats, trees: int) -> Floats:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LightGBM's, of names of features that nobody gave
        found: Floats = model.predict_proba(X, raw_score=True, num_iteration=trees)
        return found


def _forest(X: Floats, y: Any, X_after: Floats, folds: Folds, seed: int) -> LogOdds:
    """A random forest as the other experiments have it."""

    def scores(train: Any, X_new: Floats) -> Floats:
        filled = SimpleImputer(strategy="median", keep_empty_features=True).fit(X[train])
        model = RandomForestClassifier(_FOREST, min_samples_leaf=3, random_state=seed)
        model.fit(filled.transform(X[train]), y[train])
        p = model.predict_proba(filled.transform(X_new))[:, 1]
        found: Floats = logit(np.clip(p, _HALF_A_TREE, 1.0 - _HALF_A_TREE))
        return found

    unseen = np.empty(y.size)
    for train, test in folds:
        unseen[test] = scores(train, X[test])
    return LogOdds(unseen, scores(slice(None), X_after))


def _least_log_loss(y: Any, rows: Floats) -> int:
    """Which row of log-odds has the least log-loss."""
    return int(np.logaddexp(0.0, (1 - 2 * y) * rows).mean(axis=1).argmin())
