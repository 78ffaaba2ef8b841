"""What an ambiguity is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import inf
from typing import Any, ClassVar, Self

import numpy as np

from .._typing import Floats, Mask
from ..losses import Loss
from .profile import LossProfile, WorstLoss


class Ambiguity(ABC):
    r"""A distance of distributions :math:`D(P, \hat P)` from the data.

    Attributes
    ----------
    unlearned : float
        Fragility of a model where nothing can be learned.
    reweights : bool
        Whether the weights of the samples change, and the samples themselves stay.
    label_cost : float
        Cost of another label for a sample; infinite if labels do not move.
    """

    unlearned: ClassVar[float] = 0.0
    reweights: ClassVar[bool] = False
    label_cost: float = inf

    @property
    def is_euclidean(self) -> bool:
        """Whether it depends on the coefficients only by scores and Euclidean lengths."""
        return False

    @property
    def moves_labels(self) -> bool:
        """Whether a sample may get another label: then a `LossProfile` needs `relabelled`."""
        return self.label_cost < inf

    @property
    def unit(self) -> str:
        """What a distance of one is, in words; empty where the name of the distance says it."""
        return ""

    def measures_as(self, other: Ambiguity) -> bool:
        """Whether a distance in one is the same number in the other."""
        return self == other

    def fitted_to(
        self, X: Any, weights: Floats | None = None, names: Sequence[str] | None = None
    ) -> Self:
        """The distance for samples like these, where it depends on them; else itself.

        X is validated, dense or CSR; `names` are those of its columns, if it has any.
        """
        return self

    @abstractmethod
    def fragility(self, profile: LossProfile, room: float) -> float:
        r"""Smallest k with :math:`E_P \ell \le room + k D(P, \hat P)` for every P.

        Infinite if the data themselves exceed the room, which is the target less the penalty.
        """

    @abstractmethod
    def worst_loss(self, profile: LossProfile, radius: float) -> WorstLoss:
        r"""Largest :math:`E_P \ell` over :math:`D(P, \hat P) \le radius`, finite and zero or more.

        Of several multipliers the smallest.
        """

    def fragility_within(self, profile: LossProfile, room: float, radius: float) -> float:
        r"""Smallest k with :math:`E_P \ell \le room + k D(P, \hat P)` for every P in a ball.

        The ball is :math:`D(P, \hat P) \le radius`. The radius is positive; if it is infinite, the
        ball is the whole space.
        """
        everywhere = self.fragility(profile, room)
        if radius == inf or everywhere in (0.0, inf):
            return everywhere
        # W(d), the worst loss at distance d, is concave, and k is the largest (W(d) - room) / d up
        # to the radius. It rises as long as the tangent of W starts below the room, and is the
        # fragility without a ball where it no longer does.
        worst = self.worst_loss(profile, radius)
        if worst.level > room:
            return everywhere
        return min(everywhere, max(worst.multiplier - (room - worst.level) / radius, 0.0))

    def solved_as(self, loss: Loss) -> Ambiguity:
        """An ambiguity that is the same for this loss, in the form that solvers know."""
        return self

    def steepest(self, differences: Floats) -> float:
        """Largest slope of the linear functions (rows) along moves of cost one."""
        return 0.0

    def check(self, X: Any) -> None:
        """Refuse samples, dense or CSR, that it does not fit."""
        self.fixed(X.shape[1])

    def fixed(self, n_features: int) -> Mask:
        """Features that cannot shift while others do: a model that uses only these is trivial."""
        return np.zeros(n_features, dtype=bool)

    def with_constant(self) -> Ambiguity:
        """The same for samples with a constant feature after the others, at the price of one."""
        return self

    def tilt(self, losses: Floats, weights: Floats, fragility: float) -> Floats:
        """Weights of the samples in the worst case at a fragility; all `weights` positive."""
        raise ValueError(
            f"Under {self!r} the worst case moves the samples and leaves their weights as they "
            "are; worst-case weights are a matter of KL()."
        )
