"""Convex losses of linear scores: value, gradient and curvature, one file per loss."""

from __future__ import annotations

from typing import Any

from .._labels import listed
from .base import Loss
from .cross_entropy import CrossEntropy
from .gaps import GapLoss
from .hinge import Hinge
from .max_logistic import MaxLogistic
from .smoothed_hinge import SmoothedHinge

__all__ = [
    "CrossEntropy",
    "GapLoss",
    "Hinge",
    "Loss",
    "MaxLogistic",
    "SmoothedHinge",
    "as_loss",
]

_NAMED: dict[str, type[Loss]] = {
    "cross_entropy": CrossEntropy,
    "hinge": Hinge,
    "max_logistic": MaxLogistic,
    "smoothed_hinge": SmoothedHinge,
}


def as_loss(given: str | Loss | Any) -> Loss:
    """A loss from its name, or the object itself.

    Examples
    --------
    >>> from fragility.losses import as_loss
    >>> as_loss("smoothed_hinge")
    SmoothedHinge(smoothing=1.0)
    """
    if isinstance(given, Loss):
        return given
    if isinstance(given, str) and given in _NAMED:
        return _NAMED[given]()
    raise ValueError(
        f"loss must be one of {listed(_NAMED)}, or an object such as SmoothedHinge(0.5); got "
        f"{given!r}."
    )
