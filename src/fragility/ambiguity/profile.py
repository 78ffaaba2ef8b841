"""What an ambiguity needs to know about a model, and the worst case that it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from .._typing import Floats


@dataclass(frozen=True, eq=False)
class LossProfile:
    """The losses of a model on its samples, and one slope for all of its coefficients.

    Attributes
    ----------
    losses, weights : ndarray of shape (n,)
        Losses of the samples; their weights are positive and sum to one.
    slope : float
        What any loss gains at most per unit of distance as the features move; 0 if they do not.
    relabelled : ndarray of shape (n,), optional
        The largest loss of each sample with another label; None if labels do not move.

    Examples
    --------
    >>> import numpy as np
    >>> from fragility.ambiguity import LossProfile, Wasserstein
    >>> losses, weights = np.array([0.0, 0.0]), np.array([0.5, 0.5])
    >>> profile = LossProfile(losses, weights, slope=0.2, relabelled=np.array([1.0, 3.0]))
    >>> Wasserstein(label_cost=2.0).fragility(profile, room=0.5)
    1.0
    >>> Wasserstein(label_cost=2.0).worst_loss(profile, radius=0.5)
    WorstLoss(value=0.75, multiplier=1.5, level=0.0)
    """

    losses: Floats
    weights: Floats
    slope: float = 0.0
    relabelled: Floats | None = None

    @cached_property
    def mean(self) -> float:
        """Mean loss of the data as they are."""
        return float(self.weights @ self.losses)


class WorstLoss(NamedTuple):
    r"""Largest expected loss in a ball around the data.

    The worst case in a ball is ``value = level + multiplier * radius``, and no expected loss
    anywhere exceeds ``level + multiplier * distance``: the model with the target `level` has the
    fragility `multiplier`.
    """

    value: float
    multiplier: float
    level: float


class TransportProfile(LossProfile, ABC):
    """The worst case of one model, where more than losses and a slope must be known of it."""

    @abstractmethod
    def fragility(self, room: float) -> float:
        """As `Ambiguity.fragility`."""

    @abstractmethod
    def worst(self, radius: float) -> WorstLoss:
        """As `Ambiguity.worst_loss`."""
