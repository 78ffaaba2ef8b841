"""Kullback–Leibler divergence: the samples stay what they are, their weights change."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar

import numpy as np

from ..index.root import solve
from ..moments import Floats, Sample
from .base import Ambiguity

__all__ = ["KL"]


@dataclass(frozen=True)
class KL(Ambiguity):
    r"""Shifts of the samples' weights, at the price of their relative entropy.

    The fragility of a model is the Fragility Index of its losses, the root of
    :math:`k \ln \sum_n a_n e^{\ell_n / k} = \tau - R`.

    Examples
    --------
    >>> import numpy as np
    >>> from fragility.ambiguity import KL
    >>> losses, weights = np.array([0.1, 0.2, 1.5]), np.full(3, 1 / 3)
    >>> round(KL().fragility(losses, weights, 0.8, np.empty((0, 1)), 1.0), 6)
    1.096794
    """

    #: The lowest loss is just met, and almost every shift of the weights exceeds it.
    unlearned: ClassVar[float] = inf

    @property
    def is_euclidean(self) -> bool:
        return True

    def fragility(
        self, losses: Floats, weights: Floats, room: float, differences: Floats, steepness: float
    ) -> float:
        with np.errstate(over="ignore", under="ignore"):
            s = solve([Sample(losses, weights=weights)], room)
        return inf if s == 0.0 else 1.0 / s

    def tilt(self, losses: Floats, weights: Floats, fragility: float) -> Floats:
        r"""Weights :math:`\propto a_n e^{\ell_n / k}`; at k = 0 shared by the largest losses."""
        with np.errstate(over="ignore", under="ignore"):
            s = inf if fragility == 0.0 else 1.0 / fragility
            return Sample(losses, weights=weights).tilted_weights(s)
