"""Models that meet a shift: their probabilities at the source, out of fold, and after it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.baselines import lightgbm
from experiments.baselines.losses import Floats
from experiments.platt import platt_map
from fragility import SatisficingClassifier

__all__ = ["MODELS", "Predictions", "predictions"]

#: In the order of the tables.
MODELS = ("satisficing", "satisficing KL", "tuned L2", "boosting", "forest")
_FOLDS = 5
_STRENGTHS = np.logspace(-4, 2, 9)
_TREES = 100
#: Where all trees of a forest agree, half a tree disagrees for Platt's map: the log-odds of
#: certainty would decide the line of all others.
_HALF_A_TREE = 0.5 / _TREES


class Predictions(NamedTuple):
    """Probabilities of class 1: of the source out of fold, and of cases after the shift."""

    calibrated: bool
    out_of_fold: Floats
    after: Floats


def predictions(
    name: str, X: Floats, y: Floats, X_after: Floats, seed: int
) -> Iterator[Predictions]:
    """What a model says as it is, and after Platt scaling at the source."""
    own = np.empty(y.size)
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    for train, test in folds.split(X, y):
        own[test] = _fitted(name, X[train], y[train], seed).predict_proba(X[test])[:, 1]
    after = _fitted(name, X, y, seed).predict_proba(X_after)[:, 1]
    yield Predictions(False, own, after)
    if name == "forest":
        own, after = (np.clip(p, _HALF_A_TREE, 1.0 - _HALF_A_TREE) for p in (own, after))
    calibrated = platt_map(y, own)
    yield Predictions(True, calibrated(own), calibrated(after))


def _fitted(name: str, X: Floats, y: Floats, seed: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _model(name, seed).fit(X, y)


def _model(name: str, seed: int) -> Any:
    if name == "boosting":  # it knows what to do with missing values
        return lightgbm(seed)
    filled = SimpleImputer(strategy="median", keep_empty_features=True)
    if name == "forest":
        return make_pipeline(
            filled, RandomForestClassifier(_TREES, min_samples_leaf=3, random_state=seed)
        )
    if name == "tuned L2":
        folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
        last: Any = LogisticRegressionCV(
            Cs=_STRENGTHS, cv=folds, scoring="neg_log_loss", solver="newton-cholesky"
        )
    else:
        last = SatisficingClassifier(ambiguity="kl" if name.endswith("KL") else "wasserstein")
    return make_pipeline(filled, StandardScaler(), last)
