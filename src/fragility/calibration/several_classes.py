r"""Calibration maps of several classes: from probabilities to probabilities.

With :math:`\ell = \ln p`, in the order of their freedom:

=============  ============================================================================
identity       :math:`p`
temperature    :math:`\operatorname{softmax}(\ell / T)`
=============  ============================================================================

"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats, Integers
from .temperature import best_temperature, tempered


@dataclass(frozen=True, eq=False)
class FitRows:
    """What a map of several classes is fitted to.

    Attributes
    ----------
    logs : ndarray of shape (n, C)
        Logarithms of the probabilities.
    codes : ndarray of shape (n,)
        True classes.
    weights : ndarray of shape (n,)
        The largest is one.
    """

    logs: Floats
    codes: Integers
    weights: Floats

    @cached_property
    def temperature(self) -> float:
        """Temperature of maximum likelihood."""
        return best_temperature(self.logs, self.codes, self.weights, np)


class ClassMap(Protocol):
    """From probabilities of each class to calibrated ones."""

    def __call__(self, p: NDArray[Any], /) -> Floats: ...


@dataclass(frozen=True)
class Identity:
    """Probabilities as they are, but for those below what any map takes them for."""

    @classmethod
    def fitted(cls, given: FitRows) -> Identity:
        """There is nothing to fit."""
        return cls()

    def __call__(self, p: NDArray[Any], /) -> Floats:
        return tempered(p, 1.0)


@dataclass(frozen=True)
class Temperature:
    """One temperature of maximum likelihood."""

    temperature: float

    @classmethod
    def fitted(cls, given: FitRows) -> Temperature:
        """Within the bounds of `fragility.torch.fit_temperature`."""
        return cls(given.temperature)

    def __call__(self, p: NDArray[Any], /) -> Floats:
        return tempered(p, self.temperature)


#: How each map is fitted, in the order of their freedom.
METHODS: Mapping[str, Callable[[FitRows], ClassMap]] = {
    "identity": Identity.fitted,
    "temperature": Temperature.fitted,
}
