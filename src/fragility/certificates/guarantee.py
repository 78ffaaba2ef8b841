"""What certificates of classifiers and of regressions share: a line that no loss is above."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import inf
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._summary import Summary
from .._typing import Floats
from .._validation import check_values


@dataclass(frozen=True, eq=False, repr=False)
class Guarantee(Summary):
    """A target, what a model attains, and how much it loses at most by the distance from the data.

    Attributes
    ----------
    target, attained_loss, penalty, fragility : float
    losses, weights : ndarray of shape (n_samples,)
    """

    target: float
    attained_loss: float
    penalty: float
    fragility: float

    losses: Floats
    weights: Floats

    @property
    def headroom(self) -> float:
        """The target minus the attained loss."""
        return self.target - self.attained_loss

    @property
    def n_samples(self) -> int:
        """Number of samples, including samples without weight."""
        return self.losses.size

    @property
    def _reach(self) -> float:
        """Distance beyond which nothing is promised."""
        return inf

    @abstractmethod
    def _worst(self, radius: float) -> float:
        """Largest penalised expected loss within a distance."""

    @overload
    def violation_bound(self, distance: float) -> float: ...
    @overload
    def violation_bound(self, distance: NDArray[Any]) -> Floats: ...
    def violation_bound(self, distance: ArrayLike) -> float | Floats:
        r"""Upper bound of the penalised expected loss at a distance from the data.

        :math:`\tau + k \cdot distance`; infinite if the fragility is, and beyond the radius of a
        certificate that has one, where nothing is promised (`worst_loss` still says what may happen
        there). The distance is one of `ambiguity`: for KL in nats, for Wasserstein in the units of
        the features.
        """
        far = check_amount(distance, "distance", inf)
        if self.fragility == inf:
            return far + inf if far.ndim else inf
        with np.errstate(over="ignore", under="ignore"):
            # An attained loss may exceed its target by rounding; the bound holds for it, too.
            bound = max(self.target, self.attained_loss) + self.fragility * far
        bound = np.where(far <= self._reach, bound, inf)
        return bound if far.ndim else float(bound)

    @overload
    def worst_loss(self, radius: float) -> float: ...
    @overload
    def worst_loss(self, radius: NDArray[Any]) -> Floats: ...
    def worst_loss(self, radius: ArrayLike) -> float | Floats:
        r"""Largest penalised expected loss within a distance from the data.

        :math:`\sup \{E_P \ell + R : D(P, \hat P) \le radius\}`, exactly, whatever the target and
        the radius of the certificate; an upper bound where the fragility is one. `violation_bound`
        is a line that never lies below it.
        """
        far = check_amount(radius, "radius", inf)
        worst: Floats = np.reshape([self._worst(r) for r in far.ravel().tolist()], far.shape)
        return worst if far.ndim else float(worst)


def check_amount(amount: ArrayLike, name: str, most: float) -> Floats:
    """Numbers from zero to a largest one."""
    values = np.asarray(check_values(amount, name), dtype=np.float64)
    if not (np.isfinite(values).all() and (values >= 0.0).all() and (values <= most).all()):
        allowed = "zero or more" if most == inf else f"from 0 to {most:g}"
        raise ValueError(f"{name} must be finite and {allowed}; got {amount!r}.")
    return values
