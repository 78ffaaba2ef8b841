"""Optimal transport at any convex cost, inside a support if there is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._parameters import check_positive_or_inf
from .._typing import Floats, Mask
from ..losses import Loss
from .base import Ambiguity
from .cost_checks import check_cost
from .costs import Norm, NormCost, TransportCost, as_norm
from .norm_moves import NormMoves
from .supports import Support
from .wasserstein import Wasserstein


@dataclass(frozen=True, repr=False)
class Transport(NormMoves):
    r"""Shifts of features and labels, at any convex cost of transport, inside a support.

    Moving a sample from :math:`(x, y)` to :math:`(x', y')` costs
    :math:`h(g \cdot (x' - x)) + \gamma 1(y \ne y')`, and x' lies in the support. `Wasserstein` is
    the case of a norm on the whole space. The fragility is loss per unit of h: with `SquaredNorm`
    per squared unit of distance.

    Parameters
    ----------
    cost : {1, 2, inf}, Norm, SquaredNorm, Power, Huber, Mahalanobis or TransportCost
        The cost h. A number is the order of a norm.
    support : Box, Polytope, Ellipsoid, Product or None, default=None
        Where samples may go; None: anywhere. Every training sample must lie inside.
    label_cost : float, default=inf
        Cost :math:`\gamma` of another label; infinite: labels do not move.
    feature_weight : sequence of d positive numbers, optional
        The factors g. Infinite: the feature cannot shift, and its coefficient is free.

    Notes
    -----
    Exact programs: hinge, `PiecewiseLinear` and losses of your own that have `pieces`, for every
    cost and support; cross-entropy of two classes at a squared cost, or at `Norm(1)` inside a
    `Box`; every loss at a norm without a support. All else is refused, never approximated.

    A support matters less than one might think: if the worst case at the target moves the data by
    less than they have room for, the model is that without a support, and found as fast.

    Examples
    --------
    >>> from fragility.ambiguity import Box, SquaredNorm, Transport
    >>> Transport(SquaredNorm(), support=Box(0, 1))
    Transport(SquaredNorm(norm=2), support=Box(0, 1))
    """

    cost: Any = 2
    support: Support | None = None
    label_cost: float = inf
    feature_weight: Sequence[float] | None = None

    def __post_init__(self) -> None:
        cost = self.cost
        if isinstance(cost, (int, float)):
            cost = as_norm(cost)
            object.__setattr__(self, "cost", cost)
        if not isinstance(cost, TransportCost):
            check_cost(cost, 1)
        if self.support is not None and not isinstance(self.support, Support):
            raise ValueError(
                "support must be Box, Polytope, Ellipsoid or Product, all of them convex; got "
                f"{self.support!r}."
            )
        check_positive_or_inf(self.label_cost, "label_cost")
        # The same weights as those of a norm, checked there.
        weight = Wasserstein(feature_weight=self.feature_weight).feature_weight
        object.__setattr__(self, "feature_weight", weight)

    def __repr__(self) -> str:
        parts = [repr(self.cost)]
        if self.support is not None:
            parts.append(f"support={self.support!r}")
        if self.label_cost < inf:
            parts.append(f"label_cost={self.label_cost}")
        if self.feature_weight is not None:
            shown = ", ".join(f"{weight:g}" for weight in self.feature_weight[:6])
            more = ", ..." if len(self.feature_weight) > 6 else ""
            parts.append(f"feature_weight=({shown}{more})")
        return f"Transport({', '.join(parts)})"

    @property
    def unit(self) -> str:
        return "" if isinstance(self.cost, NormCost) else f"a cost of one by {self.cost!r}"

    @property
    def is_norm(self) -> bool:
        """Whether it is a norm on the whole space."""
        return self.support is None and isinstance(self.cost, NormCost)

    def free(self) -> Transport:
        """The same without a support."""
        return replace(self, support=None)

    def solved_as(self, loss: Loss) -> Ambiguity:
        if self.support is None and isinstance(self.cost, Norm) and loss.slopes_by_pair:
            return Wasserstein(self.cost.order, self.label_cost, self.feature_weight)
        return self

    def mobility(self, n_features: int) -> Floats:
        """One over the weight of each feature; 0 for a feature that cannot shift."""
        return Wasserstein(feature_weight=self.feature_weight).mobility(n_features)

    def fixed(self, n_features: int) -> Mask:
        fixed: Mask = self.mobility(n_features) == 0.0
        if fixed.all():
            raise ValueError("feature_weight is infinite for every feature: nothing can shift.")
        check_cost(self.cost, n_features)
        return fixed

    def check(self, X: Any) -> None:
        super().check(X)
        if self.support is not None:
            self.support.check(X.toarray() if issparse(X) else np.asarray(X))

    def dual_norms(self, vectors: Floats) -> Floats:
        rows = np.asarray(vectors, dtype=np.float64)
        assert isinstance(self.cost, NormCost)
        return self.cost.dual(rows * self.mobility(rows.shape[1]))

    def move_costs(self, moves: Floats) -> Floats:
        """Cost of moves of the features (rows); infinite where one moves that cannot."""
        mobility = self.mobility(moves.shape[1])
        still = mobility == 0.0
        costs: Floats = self.cost.value(
            np.where(still, 0.0, moves / np.where(still, 1.0, mobility))
        )
        return np.where(moves[:, still].any(axis=1), inf, costs)

    def steepest_moves(self, vectors: Floats) -> Floats:
        rows = np.asarray(vectors, dtype=np.float64)
        assert isinstance(self.cost, NormCost)
        mobility = self.mobility(rows.shape[1])
        return self.cost.direction(rows * mobility) * mobility

    def steepest(self, differences: Floats) -> float:
        return super().steepest(differences) if self.is_norm else 0.0

    def with_constant(self) -> Transport:
        if self.support is not None or not _takes_any_size(self.cost):
            raise NotImplementedError(
                'fit_intercept="priced" adds a constant feature, of which neither a support nor a '
                "matrix of Mahalanobis knows. Give fit_intercept=True."
            )
        if self.feature_weight is None:
            return self
        return replace(self, feature_weight=(*self.feature_weight, 1.0))


def _takes_any_size(cost: Any) -> bool:
    """Whether a cost is for any number of features."""
    return isinstance(getattr(cost, "length", cost), Norm)
