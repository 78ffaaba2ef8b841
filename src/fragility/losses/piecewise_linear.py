r"""Losses that are the maximum of linear functions of the scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._typing import Floats
from .._validation import check_values
from .base import Codes, Loss

#: Width of the corners of the smooth loss that a search starts with, in units of the loss.
_SOFT = 0.3


class Pieces(NamedTuple):
    r"""A loss as :math:`\max_i a_{yi} \cdot u + b_{yi}`.

    Attributes
    ----------
    slopes : ndarray of shape (classes, pieces, outputs)
    offsets : ndarray of shape (classes, pieces)
    """

    slopes: Floats
    offsets: Floats


@dataclass(frozen=True)
class PiecewiseLinear(Loss):
    r"""The maximum of linear functions of the scores, one set of them for each true class.

    .. math:: \ell(u, y) = \max_i \, a_{yi} \cdot u + b_{yi}

    Parameters
    ----------
    a : array-like of shape (2, pieces) or (classes, pieces, classes)
        With two classes u is one number, the score of the second. With more, the slopes of a piece
        sum to zero: scores count by their differences only.
    b : array-like of shape (2, pieces) or (classes, pieces)

    Notes
    -----
    The loss must never be negative, whatever the scores; one that falls for ever has no minimum.

    Examples
    --------
    The hinge whose false alarms cost twice as much as its misses:

    >>> from fragility.losses import PiecewiseLinear
    >>> PiecewiseLinear(a=[[0, 2], [0, -1]], b=[[0, 2], [0, 1]]).value([-0.5, 0.5], [0, 1])
    array([1. , 0.5])
    """

    a: Any
    b: Any

    bends: ClassVar[bool] = False
    slopes_by_pair: ClassVar[bool] = False

    def __post_init__(self) -> None:
        slopes = check_values(self.a, "a").astype(np.float64)
        offsets = check_values(self.b, "b").astype(np.float64)
        fits = slopes.ndim in (2, 3) and slopes.shape[:2] == offsets.shape and offsets.size
        if not fits or (slopes.ndim == 2 and len(slopes) != 2):
            raise ValueError(
                "a must have the shape (2, pieces), or (classes, pieces, classes) for three and "
                "more classes, and b the same without the last axis of classes; got "
                f"{slopes.shape} and {offsets.shape}."
            )
        if slopes.ndim == 3 and (slopes.shape[2] != len(slopes) or len(slopes) < 3):
            raise ValueError(
                "a must have as many slopes in each piece as there are classes, three or more; got "
                f"the shape {slopes.shape}."
            )
        if not (np.isfinite(slopes).all() and np.isfinite(offsets).all()):
            raise ValueError("a and b must be finite.")
        if slopes.ndim == 3 and (np.abs(slopes.sum(axis=2)) > 1e-12 * np.abs(slopes).max()).any():
            raise ValueError(
                "The slopes of each piece must sum to zero over the classes: only differences of "
                "scores count. Subtract their mean from them."
            )
        object.__setattr__(self, "a", _nested(slopes))
        object.__setattr__(self, "b", _nested(offsets))
        for label, least in enumerate(self._least_values()):
            if least < -1e-9 * max(1.0, np.abs(offsets).max()):
                how = "for ever" if least == -np.inf else f"to {least:.6g}"
                raise ValueError(
                    f"The loss of class {label} falls {how} as scores change; it must not be "
                    "negative. Add a constant to b, or a piece that is zero."
                )

    def _least_values(self) -> list[float]:
        """Smallest loss of each class over all scores."""
        from scipy.optimize import linprog  # slow to import

        pieces = self.pieces(self.n_classes)
        least = []
        for slopes, offsets in zip(pieces.slopes, pieces.offsets, strict=True):
            # min t over a_i · u + b_i <= t.
            cost = np.append(np.zeros(slopes.shape[1]), 1.0)
            table = np.column_stack([slopes, -np.ones(len(slopes))])
            found = linprog(cost, table, -offsets, bounds=(None, None))
            least.append(-np.inf if found.status == 3 else float(found.fun))
        return least

    @property
    def n_classes(self) -> int:
        """Number of classes that it is for."""
        return len(self.a)

    @cached_property
    def _arrays(self) -> tuple[Floats, Floats]:
        return np.array(self.a), np.array(self.b)

    @cached_property
    def steepness(self) -> float:  # type: ignore[override]
        slopes = np.abs(self._arrays[0])
        return float(slopes.max() if slopes.ndim == 2 else slopes.sum(axis=2).max() / 2.0)

    def pieces(self, n_classes: int) -> Pieces:
        self.check_classes(n_classes)
        slopes, offsets = self._arrays
        return Pieces(slopes if slopes.ndim == 3 else slopes[:, :, np.newaxis], offsets)

    def check_classes(self, n_classes: int) -> None:
        if n_classes != self.n_classes:
            raise ValueError(f"{self!r} is for {self.n_classes} classes; y has {n_classes}.")

    def is_smooth(self, n_classes: int) -> bool:
        return False

    def softened(self) -> Loss:
        return _SoftMaximum(self, _SOFT * max(1.0, float(np.ptp(self._arrays[1]))))

    def by_piece(self, scores: Floats, y: Codes) -> Floats:
        """Value of each piece, (n, pieces)."""
        slopes, offsets = self._arrays
        scores, y = np.asarray(scores), np.asarray(y)
        if slopes.ndim == 2:
            values: Floats = slopes[y] * scores[:, np.newaxis] + offsets[y]
            return values
        several: Floats = np.einsum("nio,no->ni", slopes[y], scores) + offsets[y]
        return several

    def value(self, scores: Floats, y: Codes) -> Floats:
        values: Floats = self.by_piece(scores, y).max(axis=1)
        return values

    def gradient(self, scores: Floats, y: Codes) -> Floats:
        active = self.by_piece(scores, y).argmax(axis=1)
        gradient: Floats = self._arrays[0][y, active]
        return gradient

    def curvature(self, scores: Floats, y: Codes) -> Floats:
        return np.zeros(scores.shape if scores.ndim == 1 else (*scores.shape, scores.shape[1]))


@dataclass(frozen=True)
class _SoftMaximum(Loss):
    r"""A piecewise linear loss with rounded corners, :math:`t \ln \sum_i e^{f_i / t}`."""

    sharp: PiecewiseLinear
    width: float

    @property
    def steepness(self) -> float:  # type: ignore[override]
        return self.sharp.steepness

    def _shares(self, scores: Floats, y: Codes) -> tuple[Floats, Floats]:
        values = self.sharp.by_piece(scores, y) / self.width
        top = values.max(axis=1)
        shares = np.exp(values - top[:, np.newaxis])
        total = shares.sum(axis=1)
        return self.width * (top + np.log(total)), shares / total[:, np.newaxis]

    def value(self, scores: Floats, y: Codes) -> Floats:
        return self._shares(scores, y)[0]

    def gradient(self, scores: Floats, y: Codes) -> Floats:
        shares, slopes = self._shares(scores, y)[1], self.sharp._arrays[0][y]
        if scores.ndim == 1:
            slope: Floats = (shares * slopes).sum(axis=1)
            return slope
        gradient: Floats = np.einsum("ni,nio->no", shares, slopes)
        return gradient

    def curvature(self, scores: Floats, y: Codes) -> Floats:
        shares, slopes = self._shares(scores, y)[1], self.sharp._arrays[0][y]
        if scores.ndim == 1:
            mean = (shares * slopes).sum(axis=1)
            bend: Floats = ((shares * slopes**2).sum(axis=1) - mean**2) / self.width
            return bend
        mean = np.einsum("ni,nio->no", shares, slopes)
        squares = np.einsum("ni,nio,nip->nop", shares, slopes, slopes)
        curvature: Floats = (squares - np.einsum("no,np->nop", mean, mean)) / self.width
        return curvature


def _nested(table: Floats) -> Any:
    """An array as tuples of tuples: losses are compared and hashed."""
    return tuple(map(_nested, table)) if table.ndim > 1 else tuple(table.tolist())
