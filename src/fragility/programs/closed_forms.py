"""Which losses, costs and supports have best moves that are known exactly."""

from __future__ import annotations

from typing import Any

from ..ambiguity import Box, Norm, Transport
from .adversaries import Adversary, LinearSamples
from .logistic_moves import BoxLogistic, SquaredLogistic
from .piece_moves import BoxPieces, FreePieces


def adversary_of(loss: Any, ambiguity: Transport, samples: LinearSamples) -> Adversary | None:
    """An adversary whose moves are known exactly; None if there is none for such a support."""
    if not has_closed_form(ambiguity):
        return None
    pieces = loss.pieces(samples.n_classes)
    if pieces is None:
        kind = SquaredLogistic if ambiguity.support is None else BoxLogistic
        return kind(samples, ambiguity)
    return (FreePieces if ambiguity.support is None else BoxPieces)(samples, ambiguity, pieces)


def has_closed_form(ambiguity: Transport) -> bool:
    """Whether best moves of linear pieces are known: without a support, or in boxes."""
    length = getattr(ambiguity.cost, "length", ambiguity.cost)
    box = isinstance(ambiguity.support, Box) and isinstance(length, Norm)
    return ambiguity.support is None or box
