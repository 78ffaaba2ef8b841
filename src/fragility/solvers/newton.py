"""Newton's method for a smooth convex objective of few parameters."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property
from math import log
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from scipy.linalg import LinAlgError, eigh

from .._typing import Floats
from ..programs.low_rank import LowRank, ridged
from .factor import Cholesky
from .quadratic import low_rank_steps
from .tuning import Newton as Tuning


class Point(Protocol):
    """A function at one point; its attributes are computed when they are asked for."""

    @property
    def parameters(self) -> Floats: ...
    @property
    def value(self) -> float: ...
    @property
    def gradient(self) -> Floats: ...

    @property
    def model_hessian(self) -> Floats | LowRank:
        """Curvature of a model whose minimum is a good step."""

    @property
    def rough_hessian(self) -> Floats | None:
        """An estimate of it that costs much less, if there is one."""

    @property
    def curvature_jumps(self) -> bool:
        """Whether a curvature that was right a step ago may be wrong now."""


P = TypeVar("P", bound=Point)


class Minimum(NamedTuple, Generic[P]):
    """Where a search ended.

    `gap` estimates how far the value is above the minimum.
    """

    point: P
    curvature: Curvature | None
    gap: float
    iterations: int
    converged: bool


class Curvature:
    """A factorised Hessian, whose steps have no part in directions that change nothing.

    Of many minimisers the one of least norm is found, if the search starts at zero.
    """

    def __init__(self, hessian: Floats | LowRank, stand_in: float = Tuning.stand_in) -> None:
        self.hessian = hessian
        self._stand_in = stand_in
        self._seen: list[tuple[Floats, Floats, float]] = []
        if isinstance(hessian, LowRank):
            self.singular = not hessian.diagonal[: hessian.rows.X.shape[1]].all()
            return
        scale = np.sqrt(np.maximum(np.diag(hessian), 1e-300))
        self._scale = np.where(scale > 1e-12 * scale.max(initial=0.0), scale, 1.0)
        balanced = hessian / np.multiply.outer(self._scale, self._scale)
        self._factor: Cholesky | None
        try:
            factor = Cholesky(balanced)
        except LinAlgError:
            self._factor = None
        else:
            clear = factor.factor.diagonal().min() ** 2 > Tuning.no_curvature
            self._factor = factor if clear else None
        #: Whether some directions have no curvature.
        self.singular = self._factor is None
        if self.singular:
            self._eigen = eigh(hessian, check_finite=False)

    @property
    def dear(self) -> float:
        """How many steps another one costs."""
        if isinstance(self.hessian, LowRank):
            return self.hessian.weights.size / Tuning.samples_per_step
        return len(self.hessian) / Tuning.parameters_per_step

    def copied(self) -> Curvature:
        """A copy that learns independently."""
        twin = copy(self)
        twin._seen = list(self._seen)
        return twin

    def ridged(self, change: Floats) -> Curvature:
        """The curvature of the same function after a change of its ridge, per parameter."""
        return Curvature(ridged(self.hessian, change), self._stand_in)

    def learn(self, move: Floats, change: Floats) -> None:
        """Correct the curvature by a move and the change of the gradient along it (BFGS)."""
        along = float(move @ change)
        if along > 0.0 and not self.singular:
            self._seen.append((move, change, along))

    def step(self, gradient: Floats) -> Floats:
        """Newton's step."""
        rest, shares = gradient, []
        for move, change, along in reversed(self._seen):
            shares.append(float(move @ rest) / along)
            rest = rest - shares[-1] * change
        step = self._own_step(rest)
        for (move, change, along), share in zip(self._seen, reversed(shares), strict=True):
            step = step - (share + float(change @ step) / along) * move
        return step

    @cached_property
    def _low_rank_step(self) -> Callable[[Floats], Floats]:
        assert isinstance(self.hessian, LowRank)
        known = low_rank_steps(self.hessian)
        return known or Curvature(self.hessian.dense(), self._stand_in)._own_step

    def _own_step(self, gradient: Floats) -> Floats:
        if isinstance(self.hessian, LowRank):
            return self._low_rank_step(gradient)
        if self._factor is not None:
            return -self._factor.solve(gradient / self._scale) / self._scale
        curvatures, directions = self._eigen
        slopes = directions.T @ gradient
        flat = curvatures <= Tuning.no_curvature * max(float(curvatures[-1]), 1e-300)
        idle = flat & (np.abs(slopes) <= 1e-9 * np.abs(slopes).max(initial=0.0))
        lengths = np.where(idle, 0.0, slopes / np.where(flat, self._stand_in, curvatures))
        found: Floats = -directions @ lengths
        return found


def minimise(
    at: Callable[[Floats], P],
    start: P | Floats,
    *,
    tol: float,
    max_iter: int,
    stop: Callable[[P], bool] | None = None,
    curvature: Curvature | None = None,
    rough: bool = False,
) -> Minimum[P]:
    """Damped Newton steps until the value is within `tol` (relative) of the minimum.

    `at` is the function, `start` a point of it or its parameters; `stop` may end the search at a
    point. A Hessian is kept as long as it serves, and corrected by what the steps show; `curvature`
    is one to begin with. `rough` says that estimates will do, also as the curvature returned.
    """
    point = at(start) if isinstance(start, np.ndarray) else start
    del start  # a point may hold as much as some columns of the data
    estimates = Tuning.rough if rough and not point.curvature_jumps else 0
    if curvature is not None:
        curvature = curvature.copied()  # what it learns here stays here
    gap, fresh, stand_in, damping = np.inf, False, Tuning.stand_in, 0.0
    doubts = 0
    unit = 1.0  # of curvature, which weights of classes make small
    for iteration in range(1, max_iter + 1):
        if stop is not None and stop(point):
            return Minimum(point, curvature, gap, iteration, False)
        last = gap
        if curvature is not None:
            step = curvature.step(point.gradient)
            gap = -0.5 * float(point.gradient @ step)
            fresh = False
            patience = 0.0 if point.curvature_jumps else curvature.dear
        if curvature is None or not _serves(gap, last, tol * abs(point.value), patience):
            estimate = point.rough_hessian if estimates > 0 and damping == 0.0 else None
            estimates = 0 if estimate is None else estimates - 1
            hessian = point.model_hessian if estimate is None else estimate
            unit = float(hessian.trace()) / len(hessian) or unit
            if damping > 0.0:
                hessian = ridged(hessian, np.full(len(hessian), damping * unit))
            curvature = Curvature(hessian, stand_in * unit)
            if estimate is not None and curvature.singular:
                curvature = Curvature(point.model_hessian, stand_in * unit)
            step = curvature.step(point.gradient)
            gap = -0.5 * float(point.gradient @ step)
            fresh = True
        if gap <= tol * abs(point.value):
            if not point.curvature_jumps or (fresh and damping == 0.0) or doubts == Tuning.doubts:
                return Minimum(point, curvature, gap, iteration, True)
            # Where curvatures jump, an old or a damped one proves nothing.
            curvature, damping, doubts = None, 0.0, doubts + 1
            continue
        length, trial = _shortened(at, point, step, gap)
        if trial is not None:
            better = 1.0 / Tuning.factor if length == 1.0 else Tuning.factor
            stand_in = min(max(Tuning.floor, stand_in * better), 1.0)
            damping = damping * better if damping * better > Tuning.floor else 0.0
            last_point, point = point, trial
            if stop is None or not stop(point):
                change = point.gradient - last_point.gradient
                curvature.learn(point.parameters - last_point.parameters, change)
        elif not fresh or estimate is not None:
            curvature, estimates = None, 0
        elif damping < 1.0:  # a hinge may bend where its Hessian is flat: damp more
            damping, stand_in, curvature = (
                max(Tuning.stand_in, Tuning.factor * damping),
                Tuning.stand_in,
                None,
            )
        else:  # no descent within rounding
            return Minimum(point, curvature, gap, iteration, gap <= 1e3 * tol * abs(point.value))
    return Minimum(point, curvature, gap, max_iter, False)


def _serves(gap: float, last: float, goal: float, patience: float) -> bool:
    """Whether a curvature is good enough to go on with, rather than to compute a new one."""
    if not gap >= 0.0:
        return False
    if gap <= max(Tuning.good_enough * last, goal):
        return True
    # How many more steps at this pace?
    return 0.0 < goal < gap < last and log(goal / gap) >= log(gap / last) * patience


def _shortened(
    at: Callable[[Floats], P], point: P, step: Floats, gap: float
) -> tuple[float, P | None]:
    """The share of a step that is taken, and where it ends; None if no share of it leads down."""
    length = 1.0
    while length >= 1e-10:
        trial = at(point.parameters + length * step)
        if trial.value <= point.value - 1e-4 * length * 2.0 * gap:
            return length, trial
        length /= 2.0
    return length, None
