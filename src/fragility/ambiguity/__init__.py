"""Distances of distributions from the data, against which a model is made robust."""

from __future__ import annotations

from typing import Any

from .._parameters import object_of_name
from .base import Ambiguity
from .costs import Mahalanobis, Norm, TransportCost
from .kl import KL
from .profile import LossProfile, TransportProfile, WorstLoss
from .radial_costs import Huber, Power, SquaredNorm
from .supports import Box, Ellipsoid, Polytope, Product, Support
from .transport import Transport
from .wasserstein import Wasserstein

__all__ = [
    "KL",
    "Ambiguity",
    "Box",
    "Ellipsoid",
    "Huber",
    "LossProfile",
    "Mahalanobis",
    "Norm",
    "Polytope",
    "Power",
    "Product",
    "SquaredNorm",
    "Support",
    "Transport",
    "TransportCost",
    "TransportProfile",
    "Wasserstein",
    "WorstLoss",
    "as_ambiguity",
]

_NAMED: dict[str, type[Ambiguity]] = {"kl": KL, "wasserstein": Wasserstein}


def as_ambiguity(given: str | Ambiguity | Any) -> Ambiguity:
    """An ambiguity from its name, or the object itself.

    Examples
    --------
    >>> from fragility.ambiguity import as_ambiguity
    >>> as_ambiguity("kl")
    KL()
    """
    return object_of_name(given, Ambiguity, _NAMED, "ambiguity", "Wasserstein(norm=1)")
