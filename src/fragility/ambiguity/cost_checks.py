"""Whether something is a convex cost of moves, of which all it says is true."""

from __future__ import annotations

from typing import Any

import numpy as np

from .costs import Mahalanobis, Norm, TransportCost
from .radial_costs import Huber, Power, RadialCost, SquaredNorm


def check_cost(cost: Any, n_features: int) -> None:
    """Refuse what is no convex cost, as far as random moves of these features tell.

    A cost of the user is compared with its conjugate and with the move that it calls best.
    """
    if not isinstance(cost, TransportCost):
        raise ValueError(
            "cost must be Norm, SquaredNorm, Power, Huber, Mahalanobis or a TransportCost of your "
            f"own; got {cost!r}."
        )
    length = cost.length if isinstance(cost, RadialCost) else cost
    if isinstance(length, Mahalanobis) and len(length.matrix) != n_features:
        raise ValueError(
            f"The matrix of Mahalanobis is for {len(length.matrix)} features; X has {n_features}."
        )
    if type(cost) in (Norm, Mahalanobis, SquaredNorm, Power, Huber):
        return
    name, rng = type(cost).__name__, np.random.default_rng(0)
    for size in (1e-2, 1.0, 1e2):
        one, two = size * rng.normal(size=(2, 50, n_features))
        here, there, middle = (np.asarray(cost.value(e)) for e in (one, two, (one + two) / 2.0))
        zero = float(cost.value(np.zeros((1, n_features)))[0])
        if here.shape != (50,) or zero != 0.0 or not np.isfinite(here).all() or (here < 0.0).any():
            raise ValueError(
                f"{name}.value must give one finite number of zero or more for each row, and 0 for "
                "no move."
            )
        room = 1e-9 * (here + there)
        if (middle > (here + there) / 2.0 + room).any():
            raise ValueError(
                f"{name} is not convex: a move half way between two costs more than their mean. "
                "No exact program is known for such a cost."
            )
        conjugate = np.asarray(cost.conjugate(two))
        finite = np.isfinite(conjugate)
        best = np.asarray(cost.move(two))
        reached = (two * best).sum(axis=1) - cost.value(best)
        gained = np.maximum((two * one).sum(axis=1) - here, reached)
        if (gained[finite] > conjugate[finite] + 1e-9 * (1.0 + np.abs(gained[finite]))).any():
            raise ValueError(
                f"{name}.conjugate is too small: some move gains more than it says. The conjugate "
                "is the largest slope·move - cost."
            )
        reached = reached[finite]
        if (reached < conjugate[finite] - 1e-6 * (1.0 + np.abs(conjugate[finite]))).any():
            raise ValueError(
                f"{name}.conjugate is too large, or {name}.move is not a best move: slope·move - "
                "cost at that move is below it."
            )
