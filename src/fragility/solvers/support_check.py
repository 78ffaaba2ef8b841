"""Whether a support changes anything, or the moves of the worst case fit inside it.

At the least fragile model on the whole space the worst case moves samples, between each two
classes, by some average distance along one direction. Which samples does not matter, as long as
they lie on the steepest piece of their loss: the model stays optimal against the moved data. If
such samples have room enough inside the support, these data lie in it, and prove that no model is
less fragile there either.
"""

from __future__ import annotations

import numpy as np

from .._typing import Floats, Indices
from ..ambiguity import Support, Wasserstein
from ..losses import Pieces
from ..programs.objective import Objective
from .multipliers import PairMoves, multipliers_of

#: The model on the whole space must be proved optimal to this share of its fragility.
_PROVED = 1e-7


def fits_inside(
    objective: Objective, free: Wasserstein, support: Support, parameters: Floats, target: float
) -> bool:
    """Whether a model that is least fragile on the whole space is so inside a support."""
    rows, pieces = objective.rows, objective.loss.pieces(objective.rows.n_classes)
    found = multipliers_of(objective, free, parameters, target)
    if pieces is None or not found.lower >= found.fragility * (1.0 - _PROVED):
        return False
    own = found.shares[np.arange(rows.y.size), rows.y] >= 1.0 - 1e-9  # labels that do not move
    scores = objective.at(parameters).scores.reshape(rows.y.size, -1)
    return all(
        _room(moves, pieces, rows.y, scores, rows.weights * own, rows.given, support, free)
        >= moves.distance * (1.0 + 1e-9)
        for moves in found.moves
    )


def _room(
    moves: PairMoves,
    pieces: Pieces,
    y: Indices,
    scores: Floats,
    weights: Floats,
    X: Floats,
    support: Support,
    free: Wasserstein,
) -> float:
    """Average distance that samples between two classes can go the steepest way."""
    values = np.einsum("nio,no->ni", pieces.slopes[y], scores) + pieces.offsets[y]
    total = 0.0
    for label, rival, sign in (
        (moves.second, moves.first, 1.0),
        (moves.first, moves.second, -1.0),
    ):
        piece = _piece(pieces, label, rival)
        others = np.delete(values, piece, axis=1).max(axis=1)
        steep = (y == label) & (values[:, piece] > others + 1e-7)
        rows = np.flatnonzero(steep & (weights > 0.0))
        if rows.size:
            one = sign * moves.direction / free.move_costs(moves.direction[np.newaxis])
            ways = np.broadcast_to(one, (rows.size, X.shape[1]))
            total += float(weights[rows] @ np.minimum(support.travel(X[rows], ways), 1e300))
    return total


def _piece(pieces: Pieces, label: int, rival: int) -> int:
    """The piece of a label that rises with the score of a rival."""
    slopes = pieces.slopes[label]
    if slopes.shape[1] == 1:
        return int(np.abs(slopes[:, 0]).argmax())
    return int(slopes[:, rival].argmax())
