"""Figures of merit of one set of predictions: what every row of results holds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

from experiments.experiment import Row
from fragility import measure_fragility
from fragility.calibration import cross_fitted_calibration

__all__ = ["CAP", "MERITS", "auc", "merits"]

#: In the order of the tables.
MERITS = (
    "accuracy",
    "auc",
    "fragility_index",
    "ratio",
    "calibrated_fragility_index",
    "log_loss",
    "calibrated_log_loss",
    "brier",
)
#: What an infinite pair counts as in the capped index: a guess that fits the printed RetinaMNIST.
CAP = 10.0
#: Probabilities of zero are taken as this, so that one of them does not decide a mean.
_LEAST = 1e-15


def merits(y_true: ArrayLike, proba: ArrayLike, labels: Any = None, seed: int = 0) -> Row:
    """Every figure that the tables show, of predicted probabilities.

    Parameters
    ----------
    y_true : array-like of shape (n,)
    proba : array-like of shape (n,) or (n, n_classes)
        Of the second class, or of each.
    labels : sequence, optional
        All classes in the order of the columns; by default those that occur, sorted.
    seed : int, default=0
        For the folds of the calibration.

    Returns
    -------
    dict
        ``accuracy``, ``auc`` (several classes: mean over pairs), ``fragility_index``, ``ratio``,
        ``log_loss`` (no probability counts as less than 1e-15), ``brier`` (sum over the classes,
        two classes: of the second), ``calibrated_fragility_index`` and ``calibrated_log_loss``
        (Platt for two classes, temperature for several, cross-fitted; the index is NaN for a
        constant model, which has nothing to calibrate), ``infinite_pairs``.

    Examples
    --------
    >>> found = merits([1, 1, 0, 0], [0.6, 0.9, 0.2, 0.7])
    >>> found["accuracy"], found["auc"], round(found["fragility_index"], 6)
    (0.75, 0.75, 0.073051)
    """
    truth, p = np.asarray(y_true), np.asarray(proba, dtype=np.float64)
    classes = np.unique(truth) if labels is None else np.asarray(labels)
    codes = np.searchsorted(classes, truth)
    if p.ndim == 2 and classes.size == 2:
        p = p[:, 1]
    found = measure_fragility(truth, p, labels=classes)
    method = "platt" if classes.size == 2 else "temperature"  # as the paper has it
    calibrated = cross_fitted_calibration(
        truth, p, method=method, labels=classes, random_state=seed
    )
    varied = bool(np.ptp(p, axis=0).max() > 0.0)
    shares = _columns(p)
    squares = (shares - np.eye(classes.size)[codes]) ** 2
    return {
        "accuracy": float(np.mean(_chosen(p) == codes)),
        "auc": auc(codes, p),
        "fragility_index": float(found.value),
        "ratio": float(found.ratio),
        "log_loss": _log_loss(codes, shares),
        "brier": float(np.mean(squares[:, 1] if p.ndim == 1 else squares.sum(axis=1))),
        "calibrated_fragility_index": _index(truth, calibrated, classes) if varied else np.nan,
        "calibrated_log_loss": _log_loss(codes, _columns(calibrated)),
        "infinite_pairs": int(found.n_infinite_pairs),
    }


def _index(truth: Any, p: Any, classes: Any) -> float:
    return float(measure_fragility(truth, p, labels=classes).value)


def _columns(p: Any) -> Any:
    return np.column_stack([1.0 - p, p]) if p.ndim == 1 else p


def _chosen(p: Any) -> Any:
    return (p >= 0.5).astype(int) if p.ndim == 1 else p.argmax(axis=1)


def _log_loss(codes: Any, shares: Any) -> float:
    own = shares[np.arange(codes.size), codes]
    return float(-np.mean(np.log(np.clip(own, _LEAST, 1.0))))


def auc(codes: Any, p: Any) -> float:
    """Area under the ROC curve, ties counting half; several classes (0, 1, ...): mean of pairs."""
    if p.ndim == 2:
        return float(roc_auc_score(codes, p, multi_class="ovo", labels=np.arange(p.shape[1])))
    positives = int(codes.sum())
    above = rankdata(p)[codes == 1].sum() - positives * (positives + 1) / 2.0
    return float(above / (positives * (codes.size - positives)))
