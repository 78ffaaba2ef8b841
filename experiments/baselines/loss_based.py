"""Baselines that change the loss, so that wrong labels pull less."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.baselines.linear import AdamClassifier
from experiments.baselines.losses import (
    LOG_ZERO,
    Floats,
    Loss,
    generalised_cross_entropy,
    printed_symmetric_cross_entropy,
    symmetric_cross_entropy,
)

__all__ = ["GCEClassifier", "PrintedSCEClassifier", "SCEClassifier", "TrimmedClassifier"]


@dataclass(eq=False, repr=False)
class TrimmedClassifier(AdamClassifier):
    """Cross-entropy of the samples of the smallest losses in each batch (Shen and Sanghavi, 2019).

    Parameters
    ----------
    keep : float, default=0.9
        Share of each batch that counts: rounded, at least one sample.
    epochs, learning_rate, weight_decay, batch_size, random_state
        As in `AdamClassifier`.
    """

    keep: float = 0.9

    def _gradient(self, X: Floats, losses: Floats, slopes: Floats) -> Floats:
        kept = max(1, round(self.keep * len(X)))
        if kept >= len(X):
            return super()._gradient(X, losses, slopes)
        rows = np.argpartition(losses, kept - 1)[:kept]
        return super()._gradient(X[rows], losses[rows], slopes[rows])


@dataclass(eq=False, repr=False)
class GCEClassifier(AdamClassifier):
    """Generalised cross-entropy (Zhang and Sabuncu, 2018).

    Parameters
    ----------
    q : float, default=0.7
    epochs, learning_rate, weight_decay, batch_size, random_state
        As in `AdamClassifier`.
    """

    q: float = 0.7

    def _loss(self) -> Loss:
        return generalised_cross_entropy(self.q)


@dataclass(eq=False, repr=False)
class PrintedSCEClassifier(AdamClassifier):
    """Symmetric cross-entropy as the paper prints it: its second term does not see the label.

    Parameters
    ----------
    alpha, beta : float, default=0.1 and 1.0
        Weights of the two terms.
    epochs, learning_rate, weight_decay, batch_size, random_state
        As in `AdamClassifier`.
    """

    alpha: float = 0.1
    beta: float = 1.0

    def _loss(self) -> Loss:
        return printed_symmetric_cross_entropy(self.alpha, self.beta)


@dataclass(eq=False, repr=False)
class SCEClassifier(PrintedSCEClassifier):
    """Symmetric cross-entropy as its authors published it (Wang et al., 2019).

    Parameters
    ----------
    alpha, beta : float, default=0.1 and 1.0
        Weights of cross-entropy and reverse cross-entropy.
    log_zero : float, default=ln 1e-4
        Taken for the logarithm of a label's zero, as in the authors' code.
    epochs, learning_rate, weight_decay, batch_size, random_state
        As in `AdamClassifier`.
    """

    log_zero: float = LOG_ZERO

    def _loss(self) -> Loss:
        return symmetric_cross_entropy(self.alpha, self.beta, self.log_zero)
