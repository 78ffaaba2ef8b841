r"""Which calibration map: the simplest that is not clearly worse than the best.

A candidate stays if :math:`L_c - L_d \le \operatorname{se}(L_c - L_d)` for the best one and for the
standard one, which is Platt's map (several classes: one temperature). L is the mean log-loss on
cases that the maps were not fitted to, and the standard error that of the paired difference. Of
those that stay the simplest is taken; the best always stays.

Models that are compared get maps of one kind, if one will do. Otherwise a model that is another one
with smaller scores would differ from it after calibration: by how well each kind happens to fit,
which a paired test of the two takes for a difference of the models. So the simplest kind is taken
that stays for all of them; if there is none, the one that is the fewest standard errors above the
best for any of them; if these are more than three, each model has its own. None is ever more than
one standard error above the standard one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, sqrt
from sys import float_info
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats

#: What a caller says to have the map chosen.
AUTO = "auto"
#: A smaller share of a log-loss is a rounding error.
_ROUNDING = 1e-12
#: Standard errors by which a kind that models share may be above the best.
_FAR = 3.0
#: The kinds that the chosen one is never clearly worse than, of two classes and of several.
_STANDARD = ("platt", "temperature")

#: How reports call the maps.
TITLES = {
    "identity": "none",
    "temperature": "temperature",
    "platt": "Platt",
    "isotonic": "isotonic",
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


@dataclass(frozen=True, eq=False)
class Candidates:
    """How maps of each kind did on cases that they were not fitted to.

    Attributes
    ----------
    names : tuple of str
        The simplest first.
    losses : ndarray of shape (n_kinds,)
        Mean log-loss of each.
    errors : ndarray of shape (n_kinds, n_kinds)
        Standard error of the difference of each two.
    """

    names: tuple[str, ...]
    losses: Floats
    errors: Floats

    @classmethod
    def of(cls, losses: Mapping[str, Floats], weights: Floats, squares: Floats) -> Candidates:
        """From log-losses where cases are alike.

        Parameters
        ----------
        losses : mapping of str to ndarray of shape (n,)
            Log-loss by a map of each kind.
        weights, squares : ndarray of shape (n,)
            Sum of the weights of the cases that are alike, and of their squares.

        Examples
        --------
        >>> import numpy as np
        >>> from fragility.calibration.choice import Candidates
        >>> losses = {"identity": np.array([2.0, 2, 2, 3]), "platt": np.array([1.0, 1, 1, 0.5])}
        >>> found = Candidates.of(losses, np.ones(4), np.ones(4))
        >>> found.losses, found.errors[0, 1], found.chosen().method
        (array([2.25 , 0.875]), np.float64(0.375), 'platt')
        """
        total = float(weights.sum())
        number = total * total / float(squares.sum())
        # Deviations from a mean that was fitted to so many cases; one case has none.
        correction = number / (number - 1.0) if number > 1.0 + 1e-9 else 1.0
        names, parts = tuple(losses), list(losses.values())
        errors = np.zeros((len(names), len(names)))
        for one in range(len(names)):
            for other in range(one):
                gap = parts[one] - parts[other]
                gap -= float(weights @ gap) / total
                error = sqrt(correction * float(squares @ (gap * gap))) / total
                errors[one, other] = errors[other, one] = error
        return cls(names, np.array([float(weights @ part) / total for part in parts]), errors)

    def excess(self, name: str) -> float:
        """How many standard errors a kind is above the best, or above the standard one if more."""
        best = self.names[int(np.argmin(self.losses))]
        return max(self._excess(name, best), self._excess(name, self._standard))

    @property
    def _standard(self) -> str:
        return next((part for part in _STANDARD if part in self.names), self.names[0])

    def _excess(self, name: str, than: str) -> float:
        one, other = self.names.index(name), self.names.index(than)
        gap = float(self.losses[one] - self.losses[other])
        if gap <= _ROUNDING * float(np.abs(self.losses).max()):
            return 0.0
        error = float(self.errors[one, other])
        return gap / error if error > 0.0 else inf

    def holds_standard(self, name: str) -> bool:
        """Whether a kind is at most one standard error above the standard one."""
        return self._excess(name, self._standard) <= 1.0

    def chosen(self, name: str | None = None) -> CalibrationChoice:
        """The choice of a kind by name, or of the simplest that is within one standard error."""
        method = name or next(part for part in self.names if self.excess(part) <= 1.0)
        errors = self.errors[self.names.index(method)]
        return CalibrationChoice(
            method,
            dict(zip(self.names, self.losses.tolist(), strict=True)),
            dict(zip(self.names, errors.tolist(), strict=True)),
        )


def chosen_together(models: Sequence[Candidates]) -> list[CalibrationChoice]:
    """The choice for each of some models that are compared, of one kind if one will do."""
    excess = {
        name: max(model.excess(name) for model in models)
        for name in models[0].names
        if all(model.holds_standard(name) for model in models)
    }
    least = min(excess.values())
    name = next((part for part, far in excess.items() if far <= max(1.0, least)), None)
    return [model.chosen(name if least <= _FAR else None) for model in models]


def log_loss(p: NDArray[Any]) -> Floats:
    """Log-loss where what happened had these probabilities; finite at 0, as in reports."""
    found: Floats = -np.log(np.clip(p, float_info.epsilon, 1.0))
    return found
