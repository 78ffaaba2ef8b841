"""Log-loss and Brier score: proper scores of the probability that each case gave to its class."""

from __future__ import annotations

import numpy as np

from .._typing import Floats
from ..measured import LEAST_PROBABILITY


def proper_scores(p_true: Floats, squares: Floats, weights: Floats) -> tuple[float, float]:
    """Log-loss and Brier score of weighted cases.

    Parameters
    ----------
    p_true, squares, weights : ndarray of shape (n,)
        Probability of the true class, squared error of the probabilities, and weight of each case.
    """
    losses = -np.log(np.clip(p_true, LEAST_PROBABILITY, 1.0))
    log_loss, brier = (np.average(part, weights=weights) for part in (losses, squares))
    return float(log_loss), float(brier)
