"""Log-loss and Brier score: proper scores of the probability that each case gave to its class."""

from __future__ import annotations

import numpy as np

from .._typing import Floats
from ..measured import LEAST_PROBABILITY


def log_losses(p_true: Floats) -> Floats:
    """Log-loss of each case (finite at 0) by the probability that it gave to its class."""
    found: Floats = -np.log(np.clip(p_true, LEAST_PROBABILITY, 1.0))
    return found


def proper_scores(p_true: Floats, squares: Floats, weights: Floats) -> tuple[float, float]:
    """Log-loss and Brier score of weighted cases.

    Parameters
    ----------
    p_true, squares, weights : ndarray of shape (n,)
        Probability of the true class, squared error of the probabilities, and weight of each case.
    """
    parts = log_losses(p_true), squares
    log_loss, brier = (np.average(part, weights=weights) for part in parts)
    return float(log_loss), float(brier)
