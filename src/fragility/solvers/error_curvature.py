"""Mean length of errors of several columns, which is smooth where no error is zero.

Its quadratic models find what whole cone programs find, at a cost that hardly grows with the
samples. Nothing is taken on trust: a result comes with a proof, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._typing import Floats, Mask

if TYPE_CHECKING:
    from .regression import LinearErrors

#: An error shorter than this share of y is a corner.
_CORNER = 1e-7
_STEPS = 50
#: Accuracy of the lowest loss and of the least slope, relative.
_LOWEST, _LEAST = 1e-12, 1e-6


class Smooth(NamedTuple):
    """A model as one vector, its loss in units of y, and derivatives."""

    parameters: Floats
    value: float
    gradient: Floats
    hessian: Floats


def derivatives(errors: LinearErrors, parameters: Floats) -> Smooth | None:
    """Of a model: coefficients and intercept of each column, one after the other."""
    X, m = _with_ones(errors), errors.y.shape[1]
    table = parameters.reshape(m, -1)
    left = X @ table.T - errors.y
    lengths = np.linalg.norm(left, axis=1)
    if lengths.min() < _CORNER:
        return None
    towards, pull = left / lengths[:, np.newaxis], errors.weights / lengths
    ridge = np.zeros(table.shape)
    ridge[:, : errors.X.shape[1]] = errors.ridge * errors.unit / errors.scale**2
    value = float(errors.weights @ lengths) + float((ridge * table**2).sum())
    gradient = (errors.weights[:, np.newaxis] * towards).T @ X + 2.0 * ridge * table
    size = X.shape[1]
    hessian = np.diag(2.0 * ridge.ravel())
    for i in range(m):
        for j in range(m):
            weights = pull * (float(i == j) - towards[:, i] * towards[:, j])
            part = slice(i * size, (i + 1) * size), slice(j * size, (j + 1) * size)
            hessian[part] += X.T @ (weights[:, np.newaxis] * X)
    return Smooth(parameters, value, gradient.ravel(), hessian)


def lowest(errors: LinearErrors, allowed: Mask) -> Floats | None:
    """The model of the lowest loss by Newton's method; None where there is a corner."""
    X, m = _with_ones(errors), errors.y.shape[1]
    free = np.ones(X.shape[1], dtype=bool)
    free[: allowed.size] = allowed
    table = np.zeros((m, free.size))
    if not free.any():
        return None
    root = np.sqrt(errors.weights)[:, np.newaxis]
    table[:, free] = np.linalg.lstsq(root * X[:, free], root * errors.y, rcond=None)[0].T
    point, every = derivatives(errors, table.ravel()), np.tile(free, m)
    for _ in range(_STEPS):
        if point is None:
            return None
        try:
            way = np.linalg.solve(point.hessian[np.ix_(every, every)], -point.gradient[every])
        except np.linalg.LinAlgError:
            return None
        fall = -float(point.gradient[every] @ way)
        if fall <= _LOWEST * point.value:
            return point.parameters
        step, there = 1.0, None
        while step > 1e-3:
            moved = point.parameters.copy()
            moved[every] += step * way
            there = derivatives(errors, moved)
            if there is not None and there.value <= point.value - 0.1 * step * fall:
                break
            there, step = None, step / 2.0
        point = there
    return None


def least_slope(
    errors: LinearErrors,
    start: Floats,
    target: float,
    minimised: Callable[[list[Any]], tuple[Floats, float]],
    met: Callable[[Floats], tuple[Floats, float]],
    model: Any,
    known: list[Any],
    cp: Any,
) -> Floats | None:
    """The model of the least slope by quadratic models of the loss, or None without a proof.

    `minimised` finds the least slope under bounds of `model`, the vector as a variable, and its
    value; `met` moves a model until it meets the target, and says its slope. `known` are bounds
    that hold for every model that does.
    """
    best, least, bounds, settled = start, np.inf, list(known), 0
    for _ in range(_STEPS):
        point = derivatives(errors, best)
        if point is None:
            return None
        way = model - best
        line = point.value + point.gradient @ way
        bounds.append(line <= target)
        if settled == 2:
            break
        values, vectors = np.linalg.eigh(point.hessian)
        root = vectors * np.sqrt(np.maximum(values, 0.0) / 2.0)
        found, slope = met(minimised([line + cp.sum_squares(root.T @ way) <= target])[0])
        settled += not slope < least * (1.0 - 1e-9)
        best, least = found, slope
    # Tangents lie below the loss: what they allow is a lower bound.
    lower = minimised(bounds)[1]
    return best if least - lower <= _LEAST * least else None


def _with_ones(errors: LinearErrors) -> Floats:
    if not errors.fit_intercept:
        return errors.X
    return np.column_stack([errors.X, np.ones(len(errors.X))])
