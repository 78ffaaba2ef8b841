r"""A plane that never lies above the loss, from shares of the functions that make it up.

The robust loss of a model is :math:`F(\theta, k) = \sum_n a_n \max_p (f_{np} - k \gamma_{np}) + R`,
and no maximum is below a mean. So for any shares of the functions, at any scores u and with
:math:`s_{np}` the slopes there,

.. math:: F(\theta', k') \ge c + \langle M, \theta' \rangle - k' \gamma \varphi , \qquad
          c = \sum_{np} a_n \alpha_{np} (f_{np} - s_{np} \cdot u_n) - \tfrac12 \sum_j r_j \theta_j^2

for every model: nothing has to be solved well, or at all, for that to hold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._typing import Floats, Indices
from ..programs.objective import Objective
from ..programs.piecewise import Hold, Piecewise, as_samples, as_scores, curvature_of, piecewise_of

#: Samples whose functions may tie, at most: this many for each parameter; and numbers in a table
#: of their slopes by parameters.
_TIES, _TABLE = 4, 4e7
#: Functions this far below the largest, as a share of the loss of scores of zero, are not at a tie.
_APART = 1e-2


@dataclass(frozen=True, eq=False)
class Tangent:
    """Functions of the samples at the scores of a model, and how they share each sample.

    Attributes
    ----------
    objective : Objective
    parameters : ndarray
        The model that the functions are tangent at.
    pieces : Piecewise
        The functions there.
    shares : ndarray of shape (P, n)
        Of the functions of each sample, summing to one.
    masses : ndarray of shape (n,)
        Weights of the samples: those of the data, or others.
    subgradient : ndarray
        Of the absolute parameters in the penalty.
    """

    objective: Objective
    parameters: Floats
    pieces: Piecewise
    shares: Floats
    masses: Floats
    subgradient: Floats

    @classmethod
    def at(cls, objective: Objective, parameters: Floats, k: float, label_cost: float) -> Tangent:
        """With the largest function of each sample alone; a lasso of the signs alone."""
        rows, moving = objective.rows, label_cost < np.inf
        plain = piecewise_of(objective.loss, rows.y[np.newaxis], rows.n_classes, moving)
        pieces = plain.at(_scores(objective, parameters))
        priced = pieces.values[0] - (k * label_cost * pieces.flips[0] if moving else 0.0)
        shares = np.zeros(priced.shape)
        shares[priced.argmax(axis=0), np.arange(shares.shape[1])] = 1.0
        signs = objective.lasso_weights * np.sign(parameters)
        return cls(objective, parameters, pieces, shares, rows.weights, signs)

    def moved_to(self, parameters: Floats) -> Tangent:
        """The same shares at another model."""
        pieces = self.pieces.at(_scores(self.objective, parameters))
        return replace(self, parameters=parameters, pieces=pieces)

    @cached_property
    def scale(self) -> float:
        """Mean loss of scores of zero: what a large loss is."""
        return self.objective.at(np.zeros(self.objective.size)).value

    @cached_property
    def scores(self) -> Floats:
        """Scores (outputs, n)."""
        scores: Floats = _scores(self.objective, self.parameters)[0]
        return scores

    @cached_property
    def _shared(self) -> tuple[Floats, Floats] | None:
        """Value and slopes (outputs, n) of the loss that all functions of a sample share."""
        loss, y = self.pieces.shared, self.objective.rows.y
        if loss is None:
            return None
        point = loss.at(as_samples(self.scores[np.newaxis]), y)
        return point.value, as_scores(point.gradient, (1, *self.scores.shape))[0]

    @property
    def slopes(self) -> Floats:
        """Mean slope (outputs, n) of the functions of each sample."""
        slopes: Floats = self.pieces.adjoint(self.shares[np.newaxis])[0]
        return slopes if self._shared is None else slopes + self._shared[1]

    def slopes_of(self, p: int) -> Floats:
        """Slope (outputs, n) of one function at each sample, without what all of them share."""
        alone = np.zeros((1, *self.shares.shape))
        alone[0, p] = 1.0
        slopes: Floats = self.pieces.adjoint(alone)[0]
        return slopes

    @property
    def steepness(self) -> float:
        """Mean size of the slopes, which may cancel."""
        sizes = [
            share * np.abs(self.slopes_of(p)).sum(axis=0) for p, share in enumerate(self.shares)
        ]
        shared = 0.0 if self._shared is None else np.abs(self._shared[1]).sum(axis=0)
        return float(self.masses @ (np.sum(sizes, axis=0) + shared))

    @property
    def heights(self) -> Floats:
        """Where the plane of each sample meets scores of zero."""
        heights: Floats = (self.shares * self.pieces.values[0]).sum(axis=0)
        heights = heights - (self.slopes * self.scores).sum(axis=0)
        return heights if self._shared is None else heights + self._shared[0]

    @property
    def constant(self) -> float:
        r"""The :math:`c` of the plane."""
        ridge = self.objective.ridge_value(self.parameters)
        return float(self.masses @ self.heights) - ridge

    @property
    def gradient(self) -> Floats:
        r"""The :math:`M` of the plane, by parameters."""
        collected = self.objective.collected(_by_scores(self.slopes * self.masses))
        return collected + self.objective.ridge * self.parameters + self.subgradient

    @property
    def flipped(self) -> float:
        r"""Weight :math:`\varphi` of the samples that have another label."""
        return float(self.masses @ (self.shares * self.pieces.flips[0]).sum(axis=0))

    def relabelled(self) -> Floats:
        """Share (n, C) of each label in each sample."""
        shares = np.zeros((self.masses.size, self.objective.rows.n_classes))
        for p, share in enumerate(self.shares):
            shares[np.arange(self.masses.size), self.pieces.label(p)[0]] += share
        return shares

    def curvature(self, columns: Indices) -> Floats:
        """Second derivative by the parameters of some columns (the intercept is the last)."""
        objective, rows = self.objective, self.objective.rows
        features = columns[columns < rows.X.shape[1]]
        with_one = bool(features.size < columns.size)
        some = replace(rows, X=rows.X[:, features], fit_intercept=with_one)
        none = np.zeros_like(self.pieces.values)
        hold = Hold(none[:, 0], none[:, 0])
        multipliers = (self.shares * self.masses)[np.newaxis]

        def form(part: slice) -> Floats:
            bent = self.pieces.form(none, multipliers, hold, part)
            if self.pieces.shared is not None:
                y, scores = rows.y[np.newaxis, part], self.scores[np.newaxis, :, part]
                masses = self.masses[np.newaxis, part]
                bent = bent + curvature_of(self.pieces.shared, scores, y, masses)
            triangles: Floats = bent[0].T
            return triangles

        return replace(objective, rows=some).collected_squares(form)

    def ties(self, k: float, label_cost: float) -> tuple[Indices, Indices, Floats]:
        """Functions that may be largest at samples where several may be: p, n, how far below."""
        values = self.pieces.values[0]
        if label_cost < np.inf:
            values = values - k * label_cost * self.pieces.flips[0]
        below = values.max(axis=0) - values
        if len(below) == 1:
            return (np.zeros(0, dtype=np.intp),) * 2 + (np.zeros(0),)
        apart = _APART * self.scale
        second = np.partition(below, 1, axis=0)[1]
        near = np.flatnonzero(second <= apart)
        size = self.objective.size
        most = min(_TIES * size + 50, int(_TABLE / (size * len(below))))
        if near.size > most:
            near = near[np.argpartition(second[near], most)[:most]]
        p, place = np.nonzero(below[:, near] <= apart)
        return p, near[place], below[p, near[place]]


def _scores(objective: Objective, parameters: Floats) -> Floats:
    """Scores (1, outputs, n)."""
    scores = objective.at(parameters).scores
    table: Floats = np.atleast_2d(scores.T)
    return table[np.newaxis]


def _by_scores(table: Floats) -> Any:
    """Slopes (outputs, n) as an objective collects them."""
    return table[0] if len(table) == 1 else table
