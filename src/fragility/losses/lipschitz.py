r"""Losses of which only a bound of their slope is known.

Let a loss change by at most :math:`\omega_1 \lVert u - v \rVert` between two rows of scores, in the
norm of the transport. A move of the features by :math:`\delta` moves the scores by
:math:`B^T \delta`, so that no loss gains more than :math:`\omega_1 \lVert B \rVert` per unit of
distance, with the operator norm :math:`\lVert B \rVert = \max \lVert B^T \delta \rVert` over
:math:`\lVert \delta \rVert \le 1`. It is sufficient, and exact only where slopes of this length
exist in every direction, as for :math:`\lVert u - y \rVert_2`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._parameters import check_choice, check_positive
from .._typing import Floats
from .base import Codes, Loss

ScoreFunction = Callable[[Floats, Codes], Any]

#: Length of the difference of two unit vectors in the norm that is dual to that of the transport.
_UNIT_DIFFERENCE = {1.0: 1.0, 2.0: sqrt(2.0), inf: 2.0}
_DUAL = {1.0: inf, 2.0: 2.0, inf: 1.0}
#: Sizes of the random scores on which a claim is checked, and how many rows of each.
_SIZES, _ROWS = (0.01, 0.1, 1.0, 10.0, 100.0), 200
#: Step of differences of slopes, relative.
_STEP = 1e-5
#: Rounding of slopes, and of values, relative.
_ROUNDING = 1e-9


@dataclass(frozen=True, repr=False)
class LipschitzLoss(Loss):
    r"""A convex loss by a bound of its slope: of your own, or any other loss for comparison.

    Training under `Wasserstein` then keeps :math:`\omega_1 \lVert B \rVert \le k`, a sufficient
    condition: the fragility of such a model is an upper bound, and its certificate says so. The
    losses of the library have an exact condition of their own, which is never worse: give them
    themselves, unless you want to see what the bound costs. Needs cvxpy (extra ``conic``).

    Parameters
    ----------
    of : Loss, str or callable
        A loss, its name, or a function ``(scores, y)`` that returns one value, zero or more and
        convex in the scores, for each row. With two classes the scores are one column of shape
        (n,), for the second class; with C more they are (n, C). `y` holds classes as 0, 1, ...
    lipschitz : float, optional
        The bound :math:`\omega_1`, in the norm of the transport. Required for a function; of other
        losses it is known. A claim is checked on random scores and on the samples.
    slope : callable, optional
        The derivative of the function by the scores (a subgradient at corners), in their shape.
        Required for a function. That values and slopes belong together is checked on random scores.
    operator_norm : {"induced", "frobenius"}, default="induced"
        "induced" is the norm above: in ℓ2 the spectral norm, in ℓ1 the largest sum of absolute
        coefficients of one feature, in ℓ∞ of one score. "frobenius" is never smaller than the
        spectral norm, and only for ℓ2.

    Examples
    --------
    The distance of the scores from a one for the own class and zeros for the others:

    >>> import numpy as np
    >>> from fragility.losses import LipschitzLoss
    >>> def away(scores, y):
    ...     return scores - np.eye(scores.shape[1])[y]
    >>> def distance(scores, y):
    ...     return np.linalg.norm(away(scores, y), axis=1)
    >>> def direction(scores, y):
    ...     return away(scores, y) / np.maximum(distance(scores, y), 1e-300)[:, np.newaxis]
    >>> loss = LipschitzLoss(distance, lipschitz=1.0, slope=direction)
    >>> loss.lipschitz_in(2, n_classes=3)
    1.0
    >>> round(LipschitzLoss("cross_entropy").lipschitz_in(2, n_classes=3), 6)
    1.414214
    """

    of: Any
    lipschitz: float | None = None
    slope: ScoreFunction | None = None
    operator_norm: str = "induced"
    #: The loss of the library that this is a bound of; None for a function.
    known: Loss | None = field(init=False, repr=False, compare=False, default=None)

    #: Another label may change the loss of a function from zero scores on, both ways.
    relabelling: ClassVar[float] = 2.0
    may_be_centred: ClassVar[bool] = False

    def __post_init__(self) -> None:
        from . import as_loss  # which knows all losses, this one included

        check_choice(self.operator_norm, ("induced", "frobenius"), "operator_norm")
        own = callable(self.of) and not isinstance(self.of, Loss)
        if self.lipschitz is not None:
            object.__setattr__(self, "lipschitz", check_positive(self.lipschitz, "lipschitz"))
        if not own:
            known = as_loss(self.of)
            if isinstance(known, LipschitzLoss) or self.slope is not None:
                raise ValueError(
                    "LipschitzLoss takes a loss of the library, which has a slope of its own, or a "
                    f"function with slope= and lipschitz=; got {self.of!r}."
                )
            object.__setattr__(self, "known", known)
        elif self.lipschitz is None or not callable(self.slope):
            raise ValueError(
                "A loss of your own needs lipschitz=, the bound of its slope, and slope=, a "
                f"function (scores, y); got lipschitz={self.lipschitz!r}, slope={self.slope!r}."
            )

    def __repr__(self) -> str:
        own = getattr(self.of, "__name__", repr(self.of))
        parts = [repr(self.known) if self.known is not None else own]
        parts += [] if self.lipschitz is None else [f"lipschitz={self.lipschitz:g}"]
        parts += (
            [] if self.operator_norm == "induced" else [f"operator_norm={self.operator_norm!r}"]
        )
        return f"LipschitzLoss({', '.join(parts)})"

    def for_classes(self, classes: NDArray[Any]) -> Loss:
        if self.known is None:
            return super().for_classes(classes)
        known = self.known.for_classes(classes)
        return self if known is self.known else replace(self, of=known)

    def is_smooth(self, n_classes: int) -> bool:
        return False

    def is_exact(self, n_classes: int) -> bool:
        return self.known is not None and self.lipschitz is None and n_classes == 2

    def lipschitz_in(self, norm: float, n_classes: int) -> float:
        """The bound of the slope in a norm of the scores (two classes: of one score)."""
        if self.lipschitz is not None or self.known is None:
            assert self.lipschitz is not None
            return float(self.lipschitz)
        return self.known.steepness * (1.0 if n_classes == 2 else _UNIT_DIFFERENCE[float(norm)])

    def reach(self, coef: Floats, norm: float, mobility: Floats) -> float:
        """What a loss gains at most per unit of distance, for coefficients (outputs, d)."""
        n_classes = 2 if len(coef) == 1 else len(coef)
        size = operator_norm(coef * mobility, norm, self.operator_norm)
        return self.lipschitz_in(norm, n_classes) * size

    def value(self, scores: Floats, y: Codes) -> Floats:
        if self.known is not None:
            return self.known.value(scores, y)
        return _checked(self.of(scores, y), y.shape, "of", scores.shape)

    def gradient(self, scores: Floats, y: Codes) -> Floats:
        if self.known is not None:
            return self.known.gradient(scores, y)
        assert self.slope is not None
        return _checked(self.slope(scores, y), scores.shape, "slope", scores.shape)

    def curvature(self, scores: Floats, y: Codes) -> Floats:
        if self.known is not None:
            return self.known.curvature(scores, y)
        # Differences of slopes: good enough to say where to look, and nothing else is done by them.
        table = scores[:, np.newaxis] if scores.ndim == 1 else scores
        columns = []
        for output in range(table.shape[1]):
            step = np.zeros_like(table)
            step[:, output] = _STEP * (1.0 + np.abs(table[:, output]))
            ends = [(table + step).reshape(scores.shape), (table - step).reshape(scores.shape)]
            rise = self.gradient(ends[0], y) - self.gradient(ends[1], y)
            columns.append(rise.reshape(table.shape) / (2.0 * step[:, [output]]))
        if scores.ndim == 1:
            return np.maximum(columns[0][:, 0], 0.0)
        bends = np.stack(columns, axis=2)
        return (bends + bends.transpose(0, 2, 1)) / 2.0

    def sizes(self, scores: Floats, norm: float) -> Floats:
        """What a change of label is measured by: how large scores are, or how far apart."""
        if scores.ndim == 1:
            return np.abs(scores)
        if self.known is not None:
            return np.asarray(np.ptp(scores, axis=1))
        return np.asarray(np.linalg.norm(scores, ord=norm, axis=1))

    def check_slopes(self, scores: Floats, y: Codes, norm: float) -> None:
        """Refuse a bound that some slope exceeds."""
        if self.lipschitz is None:
            return
        slopes = self.gradient(scores, y)
        rows = slopes[:, np.newaxis] if slopes.ndim == 1 else slopes
        steepest = float(np.linalg.norm(rows, ord=_DUAL[float(norm)], axis=1).max(initial=0.0))
        if not steepest <= self.lipschitz * (1.0 + _ROUNDING):
            raise ValueError(
                f"lipschitz={self.lipschitz:g} is not a bound: some scores have a slope of "
                f"{steepest:g} in the norm that belongs to transport in norm={norm}. Give the "
                "largest slope there can be."
            )

    def check(self, n_classes: int, norm: float) -> None:
        """Check what is claimed on random scores of many sizes: no proof, but it finds mistakes."""
        if self.operator_norm == "frobenius" and norm != 2:
            raise NotImplementedError(
                f'operator_norm="frobenius" bounds the spectral norm, of transport in norm=2; got '
                f'norm={norm}. Give "induced".'
            )
        rng = np.random.default_rng(0)
        shape = (_ROWS,) if n_classes == 2 else (_ROWS, n_classes)
        scores = np.concatenate([size * rng.normal(size=shape) for size in _SIZES])
        y = np.arange(len(scores)) % n_classes
        self.check_slopes(scores, y, norm)
        if self.known is not None:
            return
        values, slopes = self.value(scores, y), self.gradient(scores, y)
        if not values.min() >= 0.0:
            raise ValueError(
                f"The losses of a function must be zero or more; got {values.min():g}."
            )
        others = np.concatenate([rng.permutation(scores), scores + rng.normal(size=scores.shape)])
        for there in np.split(others, 2):
            rise = slopes * (there - scores)
            line = values + (rise if rise.ndim == 1 else rise.sum(axis=1))
            below = float((line - self.value(there, y)).max())
            if not below <= 1e-7 * (1.0 + float(np.abs(line).max())):
                raise ValueError(
                    "The function is not convex, or slope= is not its derivative: at some scores "
                    f"it lies {below:g} below a tangent. Give a convex function and its slope."
                )


def operator_norm(coef: Floats, norm: float, kind: str = "induced") -> float:
    r"""Largest :math:`\lVert C \delta \rVert` over moves :math:`\lVert \delta \rVert \le 1`.

    `coef` is C, of shape (outputs, d), and both norms are `norm`: 1, 2 or inf. "frobenius" is never
    smaller in ℓ2.
    """
    if len(coef) == 1:
        return float(np.linalg.norm(coef[0], ord=_DUAL[float(norm)]))
    order: Any = "fro" if kind == "frobenius" else norm
    return float(np.linalg.norm(coef, ord=order))


def steepest_error(coef: Floats, norm: float) -> float:
    r"""Largest :math:`\lVert C \delta \rVert_2` over moves :math:`\lVert \delta \rVert \le 1`.

    In every direction the length of an error grows as fast as that far enough out, so that no
    smaller number would do.
    """
    if len(coef) == 1:
        return float(np.linalg.norm(coef[0], ord=_DUAL[float(norm)]))
    if norm == 1:  # at a corner: one feature moves
        return float(np.linalg.norm(coef, axis=0).max(initial=0.0))
    return float(np.linalg.norm(coef, ord=2))


def _checked(given: Any, shape: tuple[int, ...], name: str, scores: tuple[int, ...]) -> Floats:
    values = np.asarray(given, dtype=np.float64)
    if values.shape != shape:
        raise ValueError(
            f"{name}(scores, y) must have shape {shape} for scores of shape {scores}; got "
            f"{values.shape}."
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{name}(scores, y) must be finite; it is not for scores up to here.")
    return values
