"""Optimal transport of order one: samples move, at the cost of the distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._parameters import check_choice, check_positive_or_inf
from .._typing import Floats, Mask
from .._validation import check_values
from ..losses import Loss
from .base import Ambiguity
from .costs import Norm
from .noise import NOISE_FLOOR, FeatureNoise
from .norm_moves import NormMoves

_DUAL = {1: inf, 2: 2, inf: 1}


@dataclass(frozen=True, repr=False)
class Wasserstein(NormMoves):
    r"""Shifts of the features and labels, at the cost of 1-Wasserstein transport.

    Moving a sample from :math:`(x, y)` to :math:`(x', y')` costs
    :math:`\lVert g \cdot (x' - x) \rVert + \gamma 1(y \ne y')`. The intercept is not a feature,
    unless a classifier has ``fit_intercept="priced"``.

    With K the slope of the losses as features move, :math:`o_n` the loss of a sample and
    :math:`f_n` its largest with another label, the fragility of a model is the smallest
    :math:`k \ge K` with :math:`\sum_n a_n \max(o_n, f_n - k \gamma) \le \tau - R`.

    Parameters
    ----------
    norm : {1, 2, inf}, default=2
        The norm of a move. A shift of one feature by one unit costs one in each of them; in ℓ1 a
        move costs the sum over its features, in ℓ∞ only the largest.
    label_cost : float, default=inf
        Cost :math:`\gamma` of another label; infinite: labels do not move.
    feature_weight : sequence of d positive numbers, optional
        Cost :math:`g_j` of a unit of each feature. Infinite: the feature cannot shift, such as an
        age on a passport, and its coefficient is free. Where measurement errors are known, they
        follow from these: `from_noise`.
    noise : FeatureNoise, optional
        What `from_noise` makes; `feature_weight` follows from it.
    label_term : {"exact", "paper"}, default="exact"
        How training accounts for labels that move at a finite `label_cost`. "paper" replaces what
        another label adds by its bound :math:`k (c \lVert x \rVert - \gamma)_+`, c = 1 for
        cross-entropy and 2 for hinges, as the paper does: k is larger, and below some label cost
        there is no solution. It needs ``fit_intercept="priced"`` or False. Distances and
        certificates are the same.

    Examples
    --------
    >>> from fragility.ambiguity import Wasserstein
    >>> Wasserstein(norm=1).dual_norms([[3.0, -4.0], [1.0, 1.0]])
    array([4., 1.])
    """

    norm: float = 2
    label_cost: float = inf
    feature_weight: Sequence[float] | None = None
    noise: FeatureNoise | None = None
    label_term: str = "exact"

    def __post_init__(self) -> None:
        if isinstance(self.norm, bool):
            raise ValueError(f"norm must be one of 1, 2, inf; got {self.norm!r}.")
        check_choice(self.norm, (1, 2, inf), "norm")
        check_positive_or_inf(self.label_cost, "label_cost")
        check_choice(self.label_term, ("exact", "paper"), "label_term")
        if self.feature_weight is not None:
            given = check_values(self.feature_weight, "feature_weight").astype(np.float64)
            if given.ndim != 1 or not np.all(given > 0.0):
                raise ValueError(
                    "feature_weight must be one positive number for each feature (inf for one "
                    f"that cannot shift); got {self.feature_weight!r}."
                )
            # A tuple, so that two of the same are equal and hash alike.
            object.__setattr__(self, "feature_weight", tuple(given.tolist()))
        if self.noise is not None:
            self._adopt_noise(self.noise)

    def _adopt_noise(self, noise: FeatureNoise) -> None:
        """Set the weights that follow from measurement errors, as soon as they are known."""
        if not isinstance(noise, FeatureNoise):
            raise ValueError(f"noise is made by Wasserstein.from_noise; got {noise!r}.")
        noise = replace(noise)  # which checks it, wherever it comes from
        weight = tuple(noise.weight().tolist()) if noise.is_known else None
        if self.feature_weight not in (None, weight):
            raise ValueError(
                "The weights of the features follow from their measurement errors; give "
                "feature_weight, or use Wasserstein.from_noise, not both."
            )
        object.__setattr__(self, "feature_weight", weight)

    @classmethod
    def from_noise(
        cls,
        sigma: ArrayLike | Mapping[str, float],
        floor: float = NOISE_FLOOR,
        scale: ArrayLike | Mapping[str, float] | None = None,
        *,
        norm: float = 2,
        label_cost: float = inf,
    ) -> Wasserstein:
        r"""Shifts of features whose measurement errors are known.

        The weight of a feature is one over its combined deviation
        :math:`s_j = \sqrt{(floor \cdot sd_j)^2 + \sigma_j^2}`. So a unit of distance is one feature
        moved by its own :math:`s_j` (in ℓ2: d features, each by its own, are √d units), and k is
        loss per such unit. Features are not scaled first: the weights see to it, and `sigma` stays
        in the units of the data.

        Parameters
        ----------
        sigma : array-like of shape (n_features,), or mapping of names to numbers
            A pandas Series whose labels are names, such as ``frame.std()``, is a mapping.
            Standard deviation of the measurement error of each feature that new data have and
            training data have not, in the units of the feature. 0: measured exactly, as are
            features of a data frame that the mapping does not name: ``{}`` is all of them.
        floor : float, default=0.3
            Share of its standard deviation that every feature may drift by, however well it is
            measured. 0: a feature that is measured exactly cannot shift, and its coefficient is
            free.
        scale : array-like of shape (n_features,), or mapping of names to numbers, optional
            Standard deviation :math:`sd_j` of each feature. By default that of the training data,
            with their weights, when a model is fitted; cross-validation takes it once, of all
            training data. A feature of deviation 0, a constant, measured exactly, gets the weight
            1.
        norm, label_cost
            As in `Wasserstein`.

        Returns
        -------
        Wasserstein
            The weights are in `ambiguity_` of the fitted model.

        Examples
        --------
        >>> from fragility.ambiguity import Wasserstein
        >>> Wasserstein.from_noise([4.0, 0.0], scale=[10.0, 10.0])
        Wasserstein(norm=2, feature_weight=(0.2, 0.333333))

        By name, for a data frame; what the others are is known when a model is fitted:

        >>> Wasserstein.from_noise({"blood_pressure": 5.0})
        Wasserstein.from_noise({'blood_pressure': 5}, floor=0.3)
        """
        return cls(norm, label_cost, noise=FeatureNoise(sigma, floor, scale))

    def __repr__(self) -> str:
        parts = [f"norm={self.norm}"]
        if self.label_cost < inf:
            parts.append(f"label_cost={self.label_cost}")
        if self.by_paper:
            parts.append(f"label_term={self.label_term!r}")
        if self.noise is not None and self.feature_weight is None:
            others = parts if self.norm != 2 else parts[1:]
            return f"Wasserstein.from_noise({', '.join([self.noise.arguments, *others])})"
        if self.feature_weight is not None:
            shown = ", ".join(f"{weight:g}" for weight in self.feature_weight[:6])
            more = ", ..." if len(self.feature_weight) > 6 else ""
            parts.append(f"feature_weight=({shown}{more})")
        return f"Wasserstein({', '.join(parts)})"

    @property
    def is_euclidean(self) -> bool:
        plain = self.feature_weight is None and self.noise is None
        return self.norm == 2 and plain and not self.by_paper  # which needs the samples themselves

    @property
    def by_paper(self) -> bool:
        """Whether training takes the paper's bound for labels that move."""
        return self.moves_labels and self.label_term == "paper"

    @property
    def unit(self) -> str:
        if self.noise is None:
            return ""
        drift = f"√(({self.noise.floor:g} sd)² + σ²)" if self.noise.floor else "σ"
        return f"one feature moved by its own {drift}, σ its measurement error"

    @property
    def noise_distance(self) -> float:
        r"""How far the measurement errors of `from_noise` alone move the data, at most.

        :math:`\sqrt{\sum_j g_j^2 \sigma_j^2}`, in ℓ1 :math:`\sum_j g_j \sigma_j`, whatever the
        errors are distributed like. Zero without known errors.
        """
        if self.noise is None:
            return 0.0
        mobility = self.mobility(len(self.noise.sigma))  # an error while it is not known
        sigma = np.asarray(self.noise.sigma)
        moved = sigma > 0.0
        sizes = sigma[moved] * (1.0 / mobility[moved])
        return float(sizes.sum() if self.norm == 1 else np.linalg.norm(sizes))

    def measures_as(self, other: Ambiguity) -> bool:
        if not isinstance(other, Wasserstein):
            return False
        # How a model was trained does not matter.
        mine, theirs = replace(self, label_term="exact"), replace(other, label_term="exact")
        if None in (self.feature_weight, other.feature_weight):
            return mine == theirs
        # Where weights come from does not matter once they are known.
        return replace(mine, noise=None) == replace(theirs, noise=None)

    def fitted_to(
        self, X: Any, weights: Floats | None = None, names: Sequence[str] | None = None
    ) -> Self:
        if self.noise is None or self.feature_weight is not None:
            return self
        return replace(self, noise=self.noise.seen_in(X, weights, names))

    def mobility(self, n_features: int) -> Floats:
        """Distance that each feature moves at a cost of one; 0 for a feature that cannot shift."""
        if self.noise is not None and self.feature_weight is None:
            raise ValueError(
                f"The weights of {self!r} follow from the data that a model is fitted to, and are "
                "not known yet. Take the ambiguity_ of a fitted model, or give sigma and scale as "
                "lists of one number for each feature."
            )
        if self.feature_weight is None:
            return np.ones(n_features)
        if len(self.feature_weight) != n_features:
            raise ValueError(
                f"feature_weight has {len(self.feature_weight)} entries; X has {n_features} "
                "features. Give one for each."
            )
        return 1.0 / np.asarray(self.feature_weight)

    def fixed(self, n_features: int) -> Mask:
        fixed: Mask = self.mobility(n_features) == 0.0
        return fixed

    def dual_norms(self, vectors: Floats) -> Floats:
        """Steepest slope of each linear function (rows) along moves of cost one."""
        rows = np.asarray(vectors, dtype=np.float64)
        rows = rows * self.mobility(rows.shape[1])
        # In units of their largest entry, by a power of two: squares stay in range.
        unit = np.exp2(np.frexp(np.abs(rows).max(initial=0.0))[1] - 1.0)
        norms: Floats = unit * np.linalg.norm(rows / unit, ord=_DUAL[self.norm], axis=1)
        return norms

    def steepest_moves(self, vectors: Floats) -> Floats:
        rows = np.asarray(vectors, dtype=np.float64)
        mobility = self.mobility(rows.shape[1])
        return Norm(self.norm).direction(rows * mobility) * mobility

    def move_costs(self, moves: Floats) -> Floats:
        """Cost of moves of the features (rows); infinite where one moves that cannot."""
        mobility = self.mobility(moves.shape[1])
        with np.errstate(divide="ignore"):
            plain = moves * np.where(moves == 0.0, 0.0, 1.0 / mobility)
        costs: Floats = np.linalg.norm(plain, ord=self.norm, axis=1)
        return costs

    def with_constant(self) -> Wasserstein:
        if self.feature_weight is None:
            return self
        return replace(self, feature_weight=(*self.feature_weight, 1.0), noise=None)

    def solved_as(self, loss: Loss) -> Ambiguity:
        if loss.slopes_by_pair:
            return self
        from .transport import Transport  # which knows this one

        return Transport(Norm(self.norm), None, self.label_cost, self.feature_weight)
