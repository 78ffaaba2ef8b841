"""A linear softmax model, trained with Adam: what all neural baselines share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from experiments.baselines.losses import Floats, Loss, cross_entropy
from fragility._random import random_generator
from fragility.linear_model.base import LinearPredictor

__all__ = ["AdamClassifier"]


class Adam:
    """Adam with PyTorch's defaults: the weight decay is added to the gradient."""

    def __init__(self, parameters: Floats, learning_rate: float, weight_decay: float) -> None:
        self.parameters = parameters
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
        self.mean, self.square = np.zeros_like(parameters), np.zeros_like(parameters)
        self.mean_left = self.square_left = 1.0

    def step(self, gradient: Floats, beta: float = 0.9, beta2: float = 0.999) -> None:
        """Move the parameters, in place."""
        gradient = gradient + self.weight_decay * self.parameters
        self.mean += (1.0 - beta) * (gradient - self.mean)
        self.square += (1.0 - beta2) * (gradient * gradient - self.square)
        self.mean_left *= beta
        self.square_left *= beta2
        size = np.sqrt(self.square / (1.0 - self.square_left))
        size += 1e-8
        self.parameters -= (self.learning_rate / (1.0 - self.mean_left)) * (self.mean / size)


@dataclass(eq=False, repr=False, kw_only=True)
class AdamClassifier(LinearPredictor):
    """Linear softmax model of least cross-entropy, by Adam on batches.

    One row of coefficients for each class is trained from zero (two classes, too: the model keeps
    their difference), with an intercept; the weight decay is on all of them, as PyTorch has it.

    Parameters
    ----------
    epochs : int, default=100
    learning_rate : float, default=0.01
    weight_decay : float, default=1e-4
    batch_size : int, default=128
        The paper names a batch size for its deep networks only: this one.
    random_state : int, Generator, RandomState or None, default=None
        For the order of the samples, and for whatever a baseline draws.

    Attributes
    ----------
    coef_, intercept_, classes_, n_features_in_, n_iter_
        As in scikit-learn; `n_iter_` is the number of epochs.
    """

    epochs: int = 100
    learning_rate: float = 0.01
    weight_decay: float = 1e-4
    batch_size: int = 128
    random_state: Any = None

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        AdamClassifier
            Itself.
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least 2 classes; the data contain only one class: "
                f"{self.classes_.tolist()[0]!r}."
            )
        targets = np.eye(self.classes_.size)[codes]
        with_ones = np.column_stack([X, np.ones(len(X))])
        weights = self._trained(with_ones, targets, random_generator(self.random_state))
        if self.classes_.size == 2:
            weights = weights[:, 1:] - weights[:, :1]
        self.coef_, self.intercept_ = weights[:-1].T.copy(), weights[-1].copy()
        self.n_iter_ = self.epochs
        return self

    def _trained(self, X: Floats, targets: Floats, rng: np.random.Generator) -> Floats:
        """Weights of shape (n_features + 1, n_classes); the last column of X is ones."""
        loss, targets = self._loss(), self._targets(targets)
        adam = Adam(np.zeros((X.shape[1], targets.shape[1])), self.learning_rate, self.weight_decay)
        for _ in range(self.epochs):
            order = rng.permutation(len(X))
            samples, wanted = X[order], targets[order]
            for start in range(0, len(X), self.batch_size):
                rows = slice(start, start + self.batch_size)
                batch, goal = self._batch(samples[rows], wanted[rows], adam.parameters, rng)
                values, slopes = loss(batch @ adam.parameters, goal)
                adam.step(self._gradient(batch, values, slopes))
        return adam.parameters

    def _loss(self) -> Loss:
        return cross_entropy

    def _targets(self, targets: Floats) -> Floats:
        """Targets to train on."""
        return targets

    def _batch(
        self, X: Floats, targets: Floats, weights: Floats, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Batch to train on."""
        return X, targets

    def _gradient(self, X: Floats, losses: Floats, slopes: Floats) -> Floats:
        """Gradient of the mean loss of a batch in the weights."""
        return X.T @ slopes / len(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.non_deterministic = False
        return tags
