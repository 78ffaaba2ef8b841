"""Which calibration map: the simplest that is not clearly worse than any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from sys import float_info
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats

#: What a caller says to have the map chosen.
AUTO = "auto"
#: A smaller share of a log-loss is a rounding error.
_ROUNDING = 1e-12

#: How reports call the maps.
TITLES = {
    "identity": "none needed",
    "temperature": "temperature",
    "platt": "Platt",
    "beta": "beta",
    "isotonic": "isotonic",
    "vector": "vector scaling",
    "dirichlet": "Dirichlet",
}


@dataclass(frozen=True)
class CalibrationChoice:
    """The map that was chosen, and what others would have done.

    Attributes
    ----------
    method : str
        Name of the map.
    losses : mapping of str to float
        Mean log-loss of each candidate on cases that its map was not fitted to, in the order of
        their freedom; empty if nothing was compared.
    errors : mapping of str to float
        Standard error of the difference between each candidate's loss and that of the chosen one,
        over the same cases.
    """

    method: str
    losses: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The name in words."""
        return TITLES[self.method]


def chosen(
    names: Sequence[str], losses: Sequence[Floats], weights: Floats, squares: Floats
) -> CalibrationChoice:
    r"""The simplest map whose log-loss is within one standard error of every other.

    A candidate stays if :math:`L_c - L_d \le \operatorname{se}(L_c - L_d)` for every other one: the
    best always does. Of those that stay the first is taken.

    Parameters
    ----------
    names : sequence of str
        The simplest first.
    losses : sequence of ndarray of shape (n,)
        Log-loss of each candidate where cases are alike.
    weights, squares : ndarray of shape (n,)
        Sum of the weights of these cases, and of their squares.

    Examples
    --------
    >>> import numpy as np
    >>> from fragility.calibration.choice import chosen
    >>> ones, losses = np.ones(4), [np.array([2.0, 2, 2, 3]), np.array([1.0, 1, 1, 0.5])]
    >>> found = chosen(["simple", "free"], losses, ones, ones)
    >>> found.method, found.losses["simple"] - found.losses["free"], found.errors["simple"]
    ('free', 1.375, 0.375)
    """
    total, squared = float(weights.sum()), float(squares.sum())
    means = [float(weights @ loss) / total for loss in losses]
    number = total * total / squared
    # Deviations from a mean that was fitted to so many cases; one case has none.
    correction = number / (number - 1.0) if number > 1.0 + 1e-9 else 1.0

    def error(one: int, other: int) -> float:
        deviation = losses[one] - losses[other] - (means[one] - means[other])
        return sqrt(correction * float(squares @ (deviation * deviation))) / total

    count = range(len(names))
    errors = np.zeros((len(names), len(names)))
    for one in count:
        for other in range(one):
            errors[one, other] = errors[other, one] = error(one, other)
    rounding = _ROUNDING * max(map(abs, means))
    stays = [all(means[c] - means[d] <= errors[c, d] + rounding for d in count) for c in count]
    best = stays.index(True)
    return CalibrationChoice(
        names[best],
        dict(zip(names, means, strict=True)),
        dict(zip(names, errors[best].tolist(), strict=True)),
    )


def log_loss(p: NDArray[Any]) -> Floats:
    """Log-loss where what happened had these probabilities; finite at 0, as in reports."""
    found: Floats = -np.log(np.clip(p, float_info.epsilon, 1.0))
    return found
