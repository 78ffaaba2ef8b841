"""What an ambiguity is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..moments import Floats

__all__ = ["Ambiguity"]


class Ambiguity(ABC):
    r"""A distance of distributions :math:`D(P, \hat P)` from the data.

    Attributes
    ----------
    unlearned : float
        Fragility of a model where nothing can be learned.
    """

    unlearned: ClassVar[float] = 0.0

    @property
    def is_euclidean(self) -> bool:
        """Whether it sees nothing of the coefficients but scores and Euclidean lengths."""
        return False

    @abstractmethod
    def fragility(
        self, losses: Floats, weights: Floats, room: float, differences: Floats, steepness: float
    ) -> float:
        r"""Smallest k with :math:`E_P \ell \le room + k D(P, \hat P)` for every P.

        Parameters
        ----------
        losses, weights : ndarray of shape (n,)
            Losses of the model and weights of the samples; all weights positive.
        room : float
            The target less the penalty of the model.
        differences : ndarray of shape (pairs, d)
            Differences of the classes' coefficients, one row for each pair of classes.
        steepness : float
            Largest slope of the loss in a difference of two scores.
        """

    def fixed(self, n_features: int) -> NDArray[np.bool_]:
        """Features that cannot shift while others do: a model that uses only these is trivial."""
        return np.zeros(n_features, dtype=bool)

    def tilt(self, losses: Floats, weights: Floats, fragility: float) -> Floats:
        """Weights of the samples in the worst case at a fragility; all `weights` positive."""
        raise ValueError(
            f"Under {self!r} the worst case moves the samples and leaves their weights as they "
            "are; worst-case weights are a matter of KL()."
        )
