"""Losses of a softmax model and their gradients in the scores.

Each takes scores and targets, both of shape (n_samples, n_classes), where a target is a
distribution over the classes (one at the label, unless something has been mixed or smoothed). It
returns the loss of each sample and its gradient in the scores.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Loss = Callable[[Floats, Floats], tuple[Floats, Floats]]

__all__ = [
    "LOG_ZERO",
    "Floats",
    "Loss",
    "cross_entropy",
    "generalised_cross_entropy",
    "printed_symmetric_cross_entropy",
    "symmetric_cross_entropy",
]

#: What the reverse cross-entropy takes for ln 0: the authors' code keeps labels above 1e-4.
LOG_ZERO = log(1e-4)


def log_softmax(scores: Floats) -> Floats:
    """Logarithms of the probabilities; SciPy's is several times slower on batches this small."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return shifted


def cross_entropy(scores: Floats, targets: Floats) -> tuple[Floats, Floats]:
    """-Σ t_c ln p_c."""
    logs = log_softmax(scores)
    return -(targets * logs).sum(axis=1), np.exp(logs) - targets


def generalised_cross_entropy(q: float) -> Loss:
    """(1 - p_y^q) / q: cross-entropy as q → 0, mean absolute error at q = 1."""

    def loss(scores: Floats, targets: Floats) -> tuple[Floats, Floats]:
        logs = log_softmax(scores)
        powers = targets * np.exp(q * logs)
        own = powers.sum(axis=1)
        gradient = np.exp(logs) * own[:, np.newaxis] - powers
        return (targets.sum(axis=1) - own) / q, gradient

    return loss


def symmetric_cross_entropy(alpha: float, beta: float, log_zero: float = LOG_ZERO) -> Loss:
    """α cross-entropy + β reverse cross-entropy, -Σ p_c ln t_c, as its authors published it."""

    def loss(scores: Floats, targets: Floats) -> tuple[Floats, Floats]:
        logs = log_softmax(scores)
        p = np.exp(logs)
        price = -np.log(np.maximum(targets, np.exp(log_zero)))
        reverse = (p * price).sum(axis=1)
        values = beta * reverse - alpha * (targets * logs).sum(axis=1)
        return values, alpha * (p - targets) + beta * p * (price - reverse[:, np.newaxis])

    return loss


def printed_symmetric_cross_entropy(alpha: float, beta: float) -> Loss:
    """α cross-entropy - β mean_c ln p_c, as the paper prints it.

    Its second term does not know the label: up to a factor this is label smoothing of β/(α+β).
    """

    def loss(scores: Floats, targets: Floats) -> tuple[Floats, Floats]:
        logs = log_softmax(scores)
        values = -alpha * (targets * logs).sum(axis=1) - beta * logs.mean(axis=1)
        p = np.exp(logs)
        return values, alpha * (p - targets) + beta * (p - 1.0 / scores.shape[1])

    return loss
