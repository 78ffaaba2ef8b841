"""Where a linear model's training puts weight: the tenth of the samples with the highest losses."""

from __future__ import annotations

import numpy as np

from experiments.experiment import Row
from experiments.protocol import LinearModel, Split
from fragility import KL

__all__ = ["worst_tenth"]

_SHARE = 0.1


def worst_tenth(split: Split, model: LinearModel, method: str) -> Row:
    """Weight and mean hinge loss of the tenth of the training samples with the highest losses.

    ERM and Wasserstein weigh all samples alike. Under KL the weights are those of the worst case:
    proportional to exp(loss / k). Ties do not matter: samples of equal loss have equal weight.

    Returns
    -------
    dict
        ``worst_tenth_weight`` and ``worst_tenth_loss``.
    """
    losses = np.maximum(0.0, 1.0 + (1 - 2 * split.y_train) * model.scores(split.X_train))
    even = np.full(losses.size, 1.0 / losses.size)
    weights = KL().tilt(losses, even, model.fragility) if method == "KL" else even
    order = np.argsort(-losses, kind="stable")
    left = _SHARE - (np.cumsum(even[order]) - even[order])
    part = np.clip(left / even[order], 0.0, 1.0)  # the last sample may be in it by a part only
    return {
        "worst_tenth_weight": float(part @ weights[order]),
        "worst_tenth_loss": float(part @ losses[order]) / (_SHARE * losses.size),
    }
