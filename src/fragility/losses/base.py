r"""What a loss is.

Shapes, stated once. With two classes the scores are one column :math:`u` of shape (n,), for the
second class; with more they are :math:`U` of shape (n, C). `y` holds the class of each sample as
0, 1, ... A loss is computed row by row, knows no weights and no model, and returns

=============  ============  ===============
               two classes   several classes
=============  ============  ===============
value          (n,)          (n,)
gradient       (n,)          (n, C)
curvature      (n,)          (n, C, C)
=============  ============  ===============

`Loss.at` gives all three of one point, each computed when it is asked for and not before: what they
share, such as exponentials, is computed once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats

Codes = NDArray[Any]
#: Cost of each true class (rows) taken for each other one.
PairCost = tuple[tuple[float, ...], ...]

_ALL = slice(None)
_SIGNS = np.array([-1.0, 1.0])


class Loss(ABC):
    """A convex loss that depends on differences of scores only.

    Subclass it for a smooth loss of your own, as a frozen dataclass if it has parameters.

    Attributes
    ----------
    steepness : float
        Least upper bound of the slope in a difference of two scores: the gradient is a mixture of
        differences of unit vectors, ``e_c - e_y``, whose shares sum to at most this.
    relabelling : float
        What another label adds to the loss at most, per unit of the largest difference of two
        scores and of `steepness`, beyond what it adds where all scores are zero. From there each
        label's loss moves by `steepness` at most, up or down: two holds for every loss.
    pair_cost : tuple of tuples of float, or None
        What it costs to take a class (row) for another, where the loss has such costs.
    """

    steepness: ClassVar[float] = 1.0
    #: Whether the curvature may jump, as where a hinge has been rounded: then one that was right a
    #: step ago may be wrong now.
    curvature_jumps: ClassVar[bool] = False
    relabelling: ClassVar[float] = 2.0
    pair_cost: PairCost | None = None

    #: Whether it, or its pieces, are not linear.
    bends: ClassVar[bool] = True
    #: Whether another label adds exactly the score of the own label less the score of the other.
    relabelled_by_gap: ClassVar[bool] = False
    #: Whether it is zero from some margin on, so that separable data attain a loss of zero.
    zero_from_some_margin: ClassVar[bool] = False

    #: Whether each slope is a multiple of a difference e_c - e_y, or a mixture of such: then the
    #: norms of differences of two classes' coefficients are all that moves of features depend on.
    slopes_by_pair: ClassVar[bool] = True

    def pieces(self, n_classes: int) -> Any:
        """The linear functions that it is the maximum of, as `Pieces`; None if it is no such."""
        return None

    def is_smooth(self, n_classes: int) -> bool:
        """Whether it has a derivative everywhere."""
        return True

    #: Whether the same vector taken from the coefficients of all classes changes nothing that
    #: counts: no loss, and no norm.
    may_be_centred: ClassVar[bool] = True

    def is_exact(self, n_classes: int) -> bool:
        """Whether what a loss gains at most as features move is known, and not only bounded."""
        return True

    def softened(self) -> Loss | None:
        """A loss like it with less abrupt curvature, to find a start with; None if not needed."""
        return None

    def best_constant(self, shares: Floats) -> Floats | None:
        """Scores (C,) that are best for classes of these shares without any feature, if known."""
        return None

    def relabelled(self, scores: Floats, y: Codes) -> Floats:
        """The largest loss of each sample with another label than it has."""
        n_classes = 2 if scores.ndim == 1 else scores.shape[1]
        worst = np.full(y.size, -np.inf)
        for shift in range(1, n_classes):
            np.maximum(worst, self.value(scores, (y + shift) % n_classes), out=worst)
        return worst

    def relabelling_bound(self, n_classes: int, spread: float) -> float:
        """What another label adds at most, where no two scores differ by more than `spread`."""
        # From zero scores, where labels may differ already, each loss moves by steepness at most.
        apart = float(np.ptp(self.of_zero_scores(n_classes)))
        return apart + self.relabelling * self.steepness * spread

    def of_zero_scores(self, n_classes: int) -> Floats:
        """Loss of each class where no score tells classes apart."""
        zeros = np.zeros(2) if n_classes == 2 else np.zeros((n_classes, n_classes))
        return self.value(zeros, np.arange(n_classes))

    def pair_steepness(self, n_classes: int) -> Floats:
        """Steepness in the gap of each class to the true one (rows), by pairs of classes."""
        return np.full((n_classes, n_classes), self.steepness)

    def for_classes(self, classes: NDArray[Any]) -> Loss:
        """Return the loss for some classes, in their order; refuse classes that it is not for."""
        self.check_classes(len(classes))
        return self

    def check_classes(self, n_classes: int) -> None:
        """Refuse a number of classes that the loss is not for."""
        if self.pair_cost is not None and len(self.pair_cost) != n_classes:
            raise ValueError(
                f"pair_cost is a table of {len(self.pair_cost)} classes, but there are "
                f"{n_classes}; give one row and one column for each, in their sorted order."
            )

    @abstractmethod
    def value(self, scores: Floats, y: Codes) -> Floats:
        """Loss of each sample."""

    @abstractmethod
    def gradient(self, scores: Floats, y: Codes) -> Floats:
        """Its derivative by the scores."""

    @abstractmethod
    def curvature(self, scores: Floats, y: Codes) -> Floats:
        """Its second derivative by the scores."""

    def at(self, scores: Floats, y: Codes) -> LossPoint:
        """The loss and its derivatives at one point; override it where they share work."""
        return LossPoint(self, scores, y)


class LossPoint:
    """A loss and its derivatives at one point, each computed once, when it is asked for.

    This one asks the loss for each by itself. A loss whose derivatives share work has a subclass.

    Attributes
    ----------
    loss : Loss
    scores, y : ndarray
    """

    def __init__(self, loss: Loss, scores: Floats, y: Codes) -> None:
        self.loss, self.scores, self.y = loss, scores, y

    @cached_property
    def value(self) -> Floats:
        """Loss of each sample."""
        return self.loss.value(self.scores, self.y)

    @cached_property
    def gradient(self) -> Floats:
        """Its derivative by the scores."""
        return self.loss.gradient(self.scores, self.y)

    def curvature(self, part: slice = _ALL) -> Floats:
        """Its second derivative by the scores, of a part of the samples: of all it may be large."""
        return self.loss.curvature(self.scores[part], self.y[part])

    def lower_curvature(self, part: slice = _ALL) -> Floats:
        """Lower triangles of the second derivatives, (rows, pairs of outputs)."""
        if self.scores.ndim == 1:
            return self.curvature(part)[:, np.newaxis]
        return self.curvature(part)[:, *np.tril_indices(self.scores.shape[1])]


def lower_curvature(loss: Loss, scores: Floats, y: Codes) -> Floats:
    """Lower triangles of the second derivatives, (n, pairs of outputs)."""
    return loss.at(scores, y).lower_curvature()


def signs(y: Codes) -> Floats:
    """+1 for samples of the second class, -1 for samples of the first."""
    return _SIGNS.take(y)


def margins(scores: Floats, y: Codes) -> Floats:
    """How far each sample is on its own side (two classes)."""
    return signs(y) * scores
