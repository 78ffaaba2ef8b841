"""What a linear model guarantees on data out of memory: a certificate from sums over their rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._models import LinearModel
from .._summary import SummaryRow
from .._typing import Floats
from ..ambiguity import Ambiguity, LossProfile
from ..losses import CrossEntropy, Loss
from ..programs.adversaries import steepest_slopes
from ..transport import ShiftDistance
from .certificate import Certificate
from .index_bounds import IndexBound, no_bound
from .promise import Promise

_IN_MEMORY = (
    "this certificate was made from sums over data out of memory. For samples that fit into it, "
    "ask certify(model, X, y)."
)


class LossSums(NamedTuple):
    """What one reading tells of a model: number of rows, mean and largest loss, spread of scores.

    `loss` has no penalty in it, and may be a number just above the mean.
    """

    n_samples: int
    loss: float
    largest: float
    spread: float


@dataclass(frozen=True, eq=False, repr=False)
class SummedCertificate(Certificate):
    """A certificate without the losses of single samples: `losses` and `weights` are empty.

    What needs them is an error, or says that nothing is known.
    """

    _sums: LossSums = field(default=LossSums(0, 0.0, 0.0, 0.0), repr=False)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self._sums.n_samples

    @overload
    def worst_loss(self, radius: float) -> float: ...
    @overload
    def worst_loss(self, radius: NDArray[Any]) -> Floats: ...
    def worst_loss(self, radius: ArrayLike) -> float | Floats:
        """Largest penalised expected loss within a distance from the data.

        Under KL an upper bound: `violation_bound`, or the largest loss of any row.
        """
        if not self.ambiguity.reweights:
            return super().worst_loss(radius)  # type: ignore[call-overload, no-any-return]
        most = self._sums.largest + self.penalty
        bound = np.minimum(self.violation_bound(np.asarray(radius, dtype=np.float64)), most)
        return bound if bound.ndim else float(bound)

    def at(self, distance: float | ShiftDistance, came: float | None = None) -> Promise:
        """As in `Certificate`, for a distance that is a number."""
        if isinstance(distance, ShiftDistance):
            raise ValueError(
                "A measured distance is compared with the weights of the samples, and "
                f"{_IN_MEMORY} Or give its upper bound as a number: at(distance.upper)."
            )
        return super().at(distance, came)

    def index_bound(self) -> IndexBound:
        """Under Wasserstein ambiguity with cross-entropy half the dual norm, which needs no rows.

        Other bounds are asked of the samples: nothing is known.
        """
        if self.classes.size > 2 or self.ambiguity.reweights:
            return no_bound(f"it is asked of single samples, and {_IN_MEMORY}")
        room = self.target - self.penalty
        if not isinstance(self.loss, CrossEntropy) or not self.fragility < inf:
            return no_bound(f"it is asked of single samples, and {_IN_MEMORY}")
        norm = self.ambiguity.steepest(self._coef)
        reason = "no ranking error exceeds 1" if room >= 1.0 else ""
        return IndexBound("wasserstein", room, norm / 2.0, float("nan"), bool(reason), reason)

    def index_bounds(self) -> dict[tuple[Any, Any], IndexBound]:
        """As `index_bound`, of every ordered pair of classes."""
        names = self.classes.tolist()
        one = self.index_bound()
        return {(i, j): one for i in names for j in names if i != j}

    def priced_at(self, radius: float) -> Certificate:
        """Not known from sums."""
        raise ValueError(f"The worst loss in a ball is asked of single samples, and {_IN_MEMORY}")

    def worst_case_weights(self) -> Floats:
        """Not known from sums."""
        raise ValueError(f"Worst-case weights are weights of single samples, and {_IN_MEMORY}")

    def _rows(self) -> Iterator[SummaryRow]:
        for name, value, note in super()._rows():
            if name == "index bound" and value != "inf":
                note = note.partition(":")[0]  # the index itself was not measured
            yield name, value, note


def certificate_of_sums(
    linear: LinearModel,
    sums: LossSums,
    *,
    loss: Loss,
    ambiguity: Ambiguity,
    target: float,
    penalty: float,
    fragility: float | None,
    critical_distance: float,
) -> SummedCertificate:
    """The certificate of a model from sums over its rows, which all classes have.

    `fragility` is that of KL, a root of sums; under Wasserstein ambiguity it is the norm of the
    coefficients, computed here.
    """
    codes = np.arange(linear.classes.size)
    moves = (ambiguity.with_constant() if linear.priced else ambiguity).solved_as(loss)
    slope = moves.steepest(steepest_slopes(linear.inside, loss, codes, every=False))
    profile = LossProfile(np.array([sums.loss]), np.ones(1), slope)
    if fragility is None:
        room = target - penalty
        if room < sums.loss <= room + 1e-12 * abs(target):
            room = sums.loss
        fragility = ambiguity.fragility(profile, room)
    nothing = np.zeros(0)
    return SummedCertificate(
        target=target,
        attained_loss=sums.loss + penalty,
        penalty=penalty,
        fragility=fragility,
        radius=inf,
        loss=loss,
        ambiguity=ambiguity,
        classes=linear.classes,
        losses=nothing,
        weights=nothing,
        _profile=profile,
        _relabelling=loss.relabelling_bound(linear.classes.size, sums.spread),
        _scores=nothing,
        _codes=nothing,
        _coef=linear.coef.copy(),
        critical_distance=critical_distance,
        _sums=sums,
    )
