"""What a certificate needs of a loss of which only a bound of the slope is known."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from .._typing import Floats
from ..ambiguity import Ambiguity, Wasserstein
from ..losses import LipschitzLoss


def check_bound(
    loss: LipschitzLoss, ambiguity: Ambiguity, scores: Floats, codes: NDArray[Any]
) -> None:
    """Refuse a bound that these samples, or random scores, exceed."""
    norm = _norm(ambiguity)
    loss.check(2 if scores.ndim == 1 else scores.shape[1], norm)
    loss.check_slopes(scores, codes, norm)


def bounded_slope(loss: LipschitzLoss, ambiguity: Ambiguity, coef: Floats) -> float:
    """What a loss gains at most per unit of distance."""
    assert isinstance(ambiguity, Wasserstein)
    return loss.reach(coef, ambiguity.norm, ambiguity.mobility(coef.shape[1]))


def bounded_spread(
    loss: LipschitzLoss, ambiguity: Ambiguity, scores: Floats
) -> tuple[Floats, float]:
    """The size of each row of scores, and what another label adds per unit of it at most."""
    known = loss.known
    if known is not None:
        return loss.sizes(scores, 2), known.relabelling * known.steepness
    norm = _norm(ambiguity)
    n_classes = 2 if scores.ndim == 1 else scores.shape[1]
    return loss.sizes(scores, norm), loss.relabelling * loss.lipschitz_in(norm, n_classes)


def _norm(ambiguity: Ambiguity) -> float:
    if not isinstance(ambiguity, Wasserstein):
        raise NotImplementedError(
            f"LipschitzLoss is a bound for Wasserstein(); under {ambiguity!r} give the loss itself."
        )
    return ambiguity.norm
