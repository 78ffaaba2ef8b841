"""Baselines that change the data: which samples, which labels, or where the samples lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.baselines.linear import AdamClassifier
from experiments.baselines.losses import Floats, cross_entropy

__all__ = [
    "GaussianNoiseClassifier",
    "LabelSmoothingClassifier",
    "MixupClassifier",
    "PGDClassifier",
    "PurifyClassifier",
    "adversarial",
]


@dataclass(eq=False, repr=False)
class PurifyClassifier(AdamClassifier):
    """Train, remove the samples of the largest losses, train again from zero (Huang et al., 2019).

    Parameters
    ----------
    removed : float, default=0.1
        Share of the samples, rounded. The last sample of a class is never removed.
    epochs, learning_rate, weight_decay, batch_size, random_state
        As in `AdamClassifier`.
    """

    removed: float = 0.1

    def _trained(self, X: Floats, targets: Floats, rng: np.random.Generator) -> Floats:
        first = super()._trained(X, targets, rng)
        losses, _ = cross_entropy(X @ first, targets)
        order = np.argsort(losses, kind="stable")
        # The easiest sample of each class comes first, so that none of them is left without.
        labels = targets[order].argmax(axis=1)
        _, easiest = np.unique(labels, return_index=True)
        order = np.concatenate([order[easiest], np.delete(order, easiest)])
        kept = max(easiest.size, len(X) - round(self.removed * len(X)))
        rows = np.sort(order[:kept])
        return super()._trained(X[rows], targets[rows], rng)


@dataclass(eq=False, repr=False)
class MixupClassifier(AdamClassifier):
    """Train on mixtures of two samples and their labels (Zhang et al., 2017).

    Parameters
    ----------
    concentration : float, default=1.0
        The share of the first sample is drawn from Beta(concentration, concentration), once for
        each batch as in the authors' code.
    epochs, learning_rate, weight_decay, batch_size, random_state
        As in `AdamClassifier`.
    """

    concentration: float = 1.0

    def _batch(
        self, X: Floats, targets: Floats, weights: Floats, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        share = rng.beta(self.concentration, self.concentration)
        partner = rng.permutation(len(X))
        return (
            share * X + (1.0 - share) * X[partner],
            share * targets + (1.0 - share) * targets[partner],
        )


@dataclass(eq=False, repr=False)
class LabelSmoothingClassifier(AdamClassifier):
    """Train on labels that are mixed with the uniform distribution (Szegedy et al., 2016).

    Parameters
    ----------
    smoothing : float, default=0.1
        Share of the uniform distribution.
    epochs, learning_rate, weight_decay, batch_size, random_state
        As in `AdamClassifier`.
    """

    smoothing: float = 0.1

    def _targets(self, targets: Floats) -> Floats:
        return (1.0 - self.smoothing) * targets + self.smoothing / targets.shape[1]


@dataclass(eq=False, repr=False)
class GaussianNoiseClassifier(AdamClassifier):
    """Train with noise on the features, drawn anew in each epoch.

    Parameters
    ----------
    scale : float, default=0.1
        Standard deviation, in the units of the features. The paper gives none.
    epochs, learning_rate, weight_decay, batch_size, random_state
        As in `AdamClassifier`.
    """

    scale: float = 0.1

    def _batch(
        self, X: Floats, targets: Floats, weights: Floats, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        noisy = X.copy()
        noisy[:, :-1] += self.scale * rng.standard_normal((len(X), X.shape[1] - 1))
        return noisy, targets


@dataclass(eq=False, repr=False)
class PGDClassifier(AdamClassifier):
    """Train on each batch and on its worst neighbours, found by projected gradient ascent.

    Parameters
    ----------
    radius : float, default=0.1
        How far each feature may move, in its own units. The paper gives none.
    steps : int, default=5
        Each as long as a half of the radius, by the sign of the gradient (Madry et al., 2018).
    epochs, learning_rate, weight_decay, batch_size, random_state
        As in `AdamClassifier`.
    """

    radius: float = 0.1
    steps: int = 5

    def _batch(
        self, X: Floats, targets: Floats, weights: Floats, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        moved = adversarial(X, targets, weights, self.radius, self.steps)
        return np.concatenate([X, moved]), np.concatenate([targets, targets])


def adversarial(X: Floats, targets: Floats, weights: Floats, radius: float, steps: int) -> Floats:
    """Samples of a larger cross-entropy within the radius of each feature; the ones stay."""
    shift = np.zeros((len(X), X.shape[1] - 1))
    scores, slopes_of_features = X @ weights, weights[:-1].T
    for _ in range(steps):
        _, slopes = cross_entropy(scores + shift @ weights[:-1], targets)
        shift += (radius / 2.0) * np.sign(slopes @ slopes_of_features)
        np.clip(shift, -radius, radius, out=shift)
    moved = X.copy()
    moved[:, :-1] += shift
    return moved
