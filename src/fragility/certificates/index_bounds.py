r"""What the fragility of a trained model says about its Fragility Index.

Two classes, :math:`p = \sigma(u)`, room :math:`t = \tau - R`. Write :math:`v` for the score on the
wrong side, u of a negative and -u of a positive, so that a ranking error is
:math:`\varepsilon = \sigma(v) + \sigma(v') - 1` for a negative v and a positive v'.

Of several classes a pair i|j is bounded like two classes, i the positive one. Under KL its score is
:math:`p_i` of the softmax, so that u is the log-odds of :math:`p_i`; under Wasserstein it is that
of the two classes alone, :math:`\sigma(u_i - u_j)`, whose index is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from math import inf, isfinite, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from .._typing import Floats, Mask
from ..ambiguity import KL, Wasserstein
from ..index.root import solve
from ..index.wasserstein import smallest_multiplier
from ..moments import Sample


@dataclass(frozen=True)
class IndexBound:
    """Bound of a model's Fragility Index by the fragility of its training.

    Attributes
    ----------
    kind : {"wasserstein", "kl", ""}
        Which index: `fragility.wasserstein_fragility_index` or `fragility.fragility_index`.
    target : float
        The target of the index at which the bound holds.
    bound : float
        Infinite where there is none.
    measured : float
        The index of the model at that target, on the same samples.
    vacuous : bool
        Whether the bound says nothing that is not known anyway.
    reason : str
        Why it is vacuous; empty if it is not.
    """

    kind: str
    target: float
    bound: float
    measured: float
    vacuous: bool
    reason: str


class BinaryModel(NamedTuple):
    """A model of two classes on their samples; those in `positive` are of the second class.

    `fragility` is the fragility without a ball, `norm` the dual norm of the coefficients,
    `elsewhere` the smallest loss of samples of other classes.
    """

    scores: Floats
    positive: Mask
    weights: Floats
    losses: Floats
    room: float
    fragility: float
    norm: float
    elsewhere: float = 0.0

    @property
    def least_share(self) -> float:
        """Weight of the smaller class."""
        return float(min(self.weights[self.positive].sum(), self.weights[~self.positive].sum()))

    def groups(self, values: Floats) -> list[Sample]:
        """Values of the negatives, and minus the values of the positives."""
        carrying = self.weights > 0.0
        return [
            Sample(values, selection=carrying & ~self.positive, weights=self.weights),
            Sample(values, factor=-1.0, selection=carrying & self.positive, weights=self.weights),
        ]


class ScoredSamples(NamedTuple):
    """A linear model of any number of classes on its samples, with coefficients (C, d) or (1, d).

    `scores` has a column for each class, or is that of the second of two.
    """

    scores: Floats
    codes: NDArray[Any]
    weights: Floats
    losses: Floats
    coef: Floats

    def pair(self, ambiguity: Any, i: int, j: int, room: float, fragility: float) -> BinaryModel:
        """Two of the classes; i is the positive one."""
        if self.scores.ndim == 1:
            positive, norm = self.codes == 1, ambiguity.steepest(self.coef)
            samples = self.scores, positive, self.weights, self.losses
            return BinaryModel(*samples, room, fragility, norm)
        rows = (self.codes == i) | (self.codes == j)
        others = self.losses[~rows & (self.weights > 0.0)]
        return BinaryModel(
            _pair_scores(ambiguity, self.scores[rows], i, j),
            self.codes[rows] == i,
            self.weights[rows],
            self.losses[rows],
            room,
            fragility,
            ambiguity.steepest(self.coef[[i]] - self.coef[[j]]),
            float(others.min(initial=0.0)),
        )


@singledispatch
def _pair_scores(ambiguity: Any, scores: Floats, i: int, j: int) -> Floats:
    return scores[:, i] - scores[:, j]


@_pair_scores.register(KL)
def _log_odds(ambiguity: KL, scores: Floats, i: int, j: int) -> Floats:
    odds: Floats = scores[:, i] - logsumexp(np.delete(scores, i, axis=1), axis=1)
    return odds


def no_bound(reason: str, kind: str = "", target: float = nan, measured: float = nan) -> IndexBound:
    """An infinite bound, with the reason why no finite one is known."""
    return IndexBound(kind, target, inf, measured, True, reason)


@np.errstate(over="ignore", under="ignore")
def bound_index(ambiguity: Any, model: BinaryModel) -> IndexBound:
    """Bound of the index that belongs to an ambiguity."""
    if model.least_share == 0.0:
        return no_bound("only one class has samples, and the index compares two")
    return _bound(ambiguity, model)


@singledispatch
def _bound(ambiguity: Any, model: BinaryModel) -> IndexBound:
    return no_bound(f"none is known under {ambiguity!r}")


@_bound.register(Wasserstein)
def _wasserstein(ambiguity: Wasserstein, model: BinaryModel) -> IndexBound:
    # No multiplier above a quarter, the steepest slope of σ, makes a move pay: the index is at most
    # half the dual norm once the mean ranking error meets the target. (The norm is k / θ, or less
    # where labels move; inside a ball it may be more.) With cross-entropy the mean error does,
    # whatever the shares π of the classes: with a, b the mean of 1 - σ(v) in each class,
    #   t >= mean loss >= -π₀ ln a - π₁ ln b >= π₀ (1 - a) + π₁ (1 - b) >= 1 - a - b = mean error,
    # by Jensen and -ln a >= 1 - a. Other losses give a small class too little weight for that, and
    # whether it holds is asked of the samples.
    if not isfinite(model.fragility):
        return _missed("wasserstein", model.room, nan)
    multiplier = smallest_multiplier(model.groups(model.scores), model.room)
    if not isfinite(multiplier):
        reason = (
            f"the mean ranking error exceeds {model.room:.4g}: with a smaller class of weight "
            f"{model.least_share:.4g} this loss does not exclude it"
        )
        return no_bound(reason, "wasserstein", model.room, inf)
    reason = _no_error_beyond(model.room)
    measured = 2.0 * model.norm * multiplier
    return IndexBound("wasserstein", model.room, model.norm / 2.0, measured, bool(reason), reason)


@_bound.register(KL)
def _kl(ambiguity: KL, model: BinaryModel) -> IndexBound:
    # Let A, B be the means of exp(loss / k) in the two classes. As ln is concave,
    #   π₀ ln A + π₁ ln B <= ln(π₀ A + π₁ B) <= t / k,
    # and for losses of zero or more ln A + ln B <= t / (k min π), also if they are two of several
    # classes, whose terms are zero or more. If besides no loss is below 2σ(v) - 1 then 2ε is at
    # most the sum of the two losses, so E exp(2ε / k) <= A B: the index is at most k / 2 at the
    # target t / (2 min π).
    target = model.room / (2.0 * model.least_share)
    s = solve(model.groups(expit(model.scores)), target)
    measured = inf if s == 0.0 else 1.0 / s
    if not isfinite(model.fragility):
        return _missed("kl", target, measured)
    wrong = np.where(model.positive, -model.scores, model.scores)
    enough = model.losses >= np.maximum(np.tanh(wrong / 2.0), 0.0)
    if model.elsewhere < 0.0 or not enough[model.weights > 0.0].all():
        reason = "some sample has a loss below 0 or 2p - 1, p the probability of a wrong class"
        return no_bound(reason, "kl", target, measured)
    reason = _no_error_beyond(target)
    if not reason and measured == 0.0:
        reason = f"no ranking error exceeds {target:.4g}, so the index there is 0 anyway"
    return IndexBound("kl", target, model.fragility / 2.0, measured, bool(reason), reason)


def _missed(kind: str, target: float, measured: float) -> IndexBound:
    return no_bound("the model has no finite fragility at its target", kind, target, measured)


def _no_error_beyond(target: float) -> str:
    if target < 1.0:
        return ""
    return f"no ranking error exceeds 1, so the index at {target:.4g} is 0 for every model"
