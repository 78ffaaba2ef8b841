r"""Calibration maps of several classes: from probabilities to probabilities.

With :math:`\ell = \ln p`, in the order of their freedom:

=============  ============================================================================
identity       :math:`p`
temperature    :math:`\operatorname{softmax}(\ell / T)`
vector         :math:`\operatorname{softmax}(a_c \ell_c + b_c)`
Dirichlet      :math:`\operatorname{softmax}(A \ell + b)` (Kull et al., 2019)
=============  ============================================================================

Vector and Dirichlet scaling have a parameter or more for each class, which few cases do not tell.
They are applied after the temperature, and are the most probable ones if each parameter is drawn
around that of no change with a standard deviation of one: many cases say what they say, none leave
the temperature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from sys import float_info
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from .._typing import Floats, Integers
from .fitting import least, logs
from .temperature import best_temperature, tempered

#: More classes have only a temperature: a step of the search for vector scaling takes time and
#: memory in the square of their number.
_MOST_OF_VECTOR = 50
#: More classes have no Dirichlet map: it has parameters in the square of their number, a step of
#: its search takes the fourth power, and folds of a few hundred cases do not tell so many.
_MOST_OF_DIRICHLET = 10
#: Cases for each parameter that the curvature is taken from; the slope is that of all.
_CASES_OF_CURVATURE = 100
#: The search ends where a step gains less than this share of the loss.
_ACCURACY = 1e-18


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
    number : float
        How many cases of equal weight they count for.
    """

    logs: Floats
    codes: Integers
    weights: Floats
    number: float

    @cached_property
    def temperature(self) -> float:
        """Temperature of maximum likelihood."""
        return best_temperature(self.logs, self.codes, self.weights, np)

    @cached_property
    def by_class(self) -> Floats:
        """Logarithms at the temperature, a row for each class: sums over classes are fast there."""
        return np.ascontiguousarray(self.logs.T) / self.temperature

    @cached_property
    def scaled_weights(self) -> Floats:
        """Weights that sum to the number of cases."""
        return self.weights * (self.number / float(self.weights.sum()))


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


@dataclass(frozen=True, eq=False)
class Vector:
    """A scale and a shift for each class."""

    scales: Floats
    shifts: Floats

    @classmethod
    def fitted(cls, given: FitRows) -> Vector:
        """The most probable scales and shifts."""
        columns, weights = given.by_class, given.scaled_weights
        n_classes = len(columns)
        origin = np.repeat([1.0, 0.0], n_classes)
        truth = given.codes, np.arange(given.codes.size)
        sums = weights * columns[truth], weights
        happened = np.concatenate([np.bincount(given.codes, part, n_classes) for part in sums])
        place = np.arange(n_classes)

        def derivatives(parameters: Floats) -> tuple[float, Floats, Floats]:
            scales, shifts = parameters.reshape(2, n_classes, 1)
            loss, p = _loss(scales * columns + shifts, truth, weights)
            offset = parameters - origin
            both = np.concatenate([p * columns, p])
            heavy = both * weights
            sums = heavy.sum(axis=1)
            curvature = np.eye(origin.size) - heavy @ both.T
            blocks = curvature.reshape(2, n_classes, 2, n_classes)
            blocks[0, place, 0, place] += np.einsum("cn,cn->c", heavy[:n_classes], columns)
            blocks[0, place, 1, place] += sums[:n_classes]
            blocks[1, place, 0, place] += sums[:n_classes]
            blocks[1, place, 1, place] += sums[n_classes:]
            return loss + 0.5 * float(offset @ offset), sums - happened + offset, curvature

        scales, shifts = least(derivatives, origin, _ACCURACY).reshape(2, n_classes)
        return cls(scales / given.temperature, shifts)

    def __call__(self, p: NDArray[Any], /) -> Floats:
        return _probabilities(self.scales * logs(p) + self.shifts)


@dataclass(frozen=True, eq=False)
class Dirichlet:
    """Every class takes from the logarithms of all."""

    matrix: Floats
    shifts: Floats

    @classmethod
    def fitted(cls, given: FitRows) -> Dirichlet:
        """The most probable matrix and shifts."""
        columns, weights = given.by_class, given.scaled_weights
        n_classes, n = columns.shape
        design = np.concatenate([columns, np.ones((1, n))])
        origin = np.eye(n_classes, n_classes + 1)
        truth = given.codes, np.arange(n)
        happened = np.stack([np.bincount(given.codes, weights * x, n_classes) for x in design], 1)
        # A part of the cases tells the curvature well enough to search by it.
        thin = slice(None, None, max(1, n // (_CASES_OF_CURVATURE * origin.size)))
        few = design[:, thin]
        heavy = few * (weights[thin] * float(weights.sum() / weights[thin].sum()))

        def derivatives(parameters: Floats) -> tuple[float, Floats, Floats]:
            loss, p = _loss(parameters.reshape(origin.shape) @ design, truth, weights)
            offset = parameters - origin.ravel()
            gradient = ((p * weights) @ design.T - happened).ravel() + offset
            own = p[:, np.newaxis, thin]
            products, heavier = ((own * part).reshape(origin.size, -1) for part in (few, heavy))
            curvature = np.eye(origin.size) - heavier @ products.T
            blocks = curvature.reshape(origin.shape * 2)
            for code in range(n_classes):
                blocks[code, :, code] += (own[code] * heavy) @ few.T
            return loss + 0.5 * float(offset @ offset), gradient, curvature

        found = least(derivatives, origin.ravel(), _ACCURACY).reshape(origin.shape)
        return cls(found[:, :-1] / given.temperature, found[:, -1])

    def __call__(self, p: NDArray[Any], /) -> Floats:
        return _probabilities(logs(p) @ self.matrix.T + self.shifts)


class ClassMethod(NamedTuple):
    """A kind of map, how it is fitted, and for how many classes it is one of the candidates."""

    name: str
    fitted: Callable[[FitRows], ClassMap]
    most_classes: float


#: In the order of their freedom.
METHODS: Sequence[ClassMethod] = (
    ClassMethod("identity", Identity.fitted, np.inf),
    ClassMethod("temperature", Temperature.fitted, np.inf),
    ClassMethod("vector", Vector.fitted, _MOST_OF_VECTOR),
    ClassMethod("dirichlet", Dirichlet.fitted, _MOST_OF_DIRICHLET),
)


def _loss(
    logits: Floats, truth: tuple[Integers, Integers], weights: Floats
) -> tuple[float, Floats]:
    """Sum of the log-loss, and the probabilities; a row for each class."""
    logits -= logits.max(axis=0)
    own = logits[truth]
    parts = np.exp(logits, out=logits)
    total = parts.sum(axis=0)
    loss = float(weights @ (np.log(total) - own))
    parts /= total
    return loss, parts


def _probabilities(logits: Floats) -> Floats:
    found: Floats = np.maximum(softmax(logits, axis=1), float_info.min)
    return found
