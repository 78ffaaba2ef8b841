"""What a linear model guarantees, from data and coefficients alone.

Nothing here is read off a solver, so that a solver that failed cannot vouch for itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import permutations
from math import inf, isfinite, isnan, nan
from numbers import Real
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from .._labels import listed
from .._models import LabelledSamples, LinearModel
from .._names import shown
from .._parameters import check_number, check_radius, require
from .._summary import SummaryRow
from .._typing import Floats, Mask
from ..ambiguity import Ambiguity, LossProfile, Transport
from ..losses import CrossEntropy, Hinge, LipschitzLoss, Loss, MaxLogistic, SmoothedHinge
from ..programs.adversaries import steepest_slopes
from ..solvers.transport_profile import profile_of_model
from ..transport import ShiftDistance
from .guarantee import Guarantee, check_amount
from .index_bounds import IndexBound, ScoredSamples, bound_index, no_bound
from .lipschitz_bounds import bounded_slope, bounded_spread, check_bound
from .promise import Promise


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Guarantee):
    r"""What a linear model guarantees on its samples and on distributions near them.

    Made by `fragility.certificates.certify`.

    Attributes
    ----------
    target : float
        Level :math:`\tau` that the penalised mean loss must meet.
    attained_loss : float
        Weighted mean loss plus penalty.
    penalty : float
        The penalty R alone.
    fragility : float
        Smallest k with :math:`E_P \ell + R \le \tau + k D(P, \hat P)` for every P no further than
        `radius`, or with a `LipschitzLoss` an upper bound of it (`is_upper_bound`). Infinite if the
        model misses its target. With a priced intercept P may move the
        constant, too: for data whose constant stays it is an upper bound.
    radius : float
        Distance D up to which it holds; infinite: however far.
    loss : Loss
    ambiguity : Ambiguity
        The distance D.
    classes : ndarray of shape (C,)
    losses : ndarray of shape (n_samples,)
    weights : ndarray of shape (n_samples,)
        Weights of the samples, summing to one.
    critical_distance : float
        How far from the data the worst case is that keeps the model from being less fragile: one
        over the rate at which the least fragility falls as the target rises. Under KL the
        divergence of `worst_case_weights`, where the line of `violation_bound` touches
        `worst_loss`; under Wasserstein how far samples travel on average, moved labels included. Of
        a model trained in a ball its radius. NaN where the fragility does not depend on the target
        (0, or infinite), and for models that were not trained for a target: ask `certify`, which
        knows the model and not how it was found, and it is NaN, too.
    """

    radius: float
    loss: Loss
    ambiguity: Ambiguity
    classes: NDArray[Any]
    # The samples of some weight; what relabelling one adds at most; scores and classes, and the
    # coefficients (without an intercept, whatever its price: it is of features that an index
    # speaks) are all that index bounds need. X is not kept, a fitted model would drag its data
    # along; but inside a support what a sample may lose is known by where it is.
    _profile: LossProfile = field(repr=False)
    _relabelling: float = field(repr=False)
    _scores: Floats = field(repr=False)
    _codes: NDArray[Any] = field(repr=False)
    _coef: Floats = field(repr=False)
    critical_distance: float = nan

    @property
    def is_upper_bound(self) -> bool:
        """Whether the fragility is only bounded from above, by a `LipschitzLoss`."""
        return not self.loss.is_exact(self.classes.size)

    @property
    def _reach(self) -> float:
        return self.radius

    def _worst(self, radius: float) -> float:
        return self.penalty + self.ambiguity.worst_loss(self._profile, radius).value

    def at(self, distance: float | ShiftDistance, came: float | None = None) -> Promise:
        r"""What is promised for data at a distance, beside the loss that came.

        Parameters
        ----------
        distance : float or ShiftDistance
            A number, or what `fragility.shift_distance` found between the samples of this
            certificate and new data, of which the upper bound counts.
        came : float, optional
            Penalised mean loss of the model on the new data, at the weights that the distance was
            measured with: ``certify(model, X_new, y_new, ...).attained_loss``.

        Returns
        -------
        Promise
            With the promised loss :math:`\tau + k D`, and whether it was held.
        """
        far = self._measured(distance) if isinstance(distance, ShiftDistance) else distance
        is_number = isinstance(far, Real) and not isinstance(far, bool)
        require(
            is_number and far >= 0.0,
            "distance must be a number of zero or more, or what fragility.shift_distance found; "
            f"got {shown(distance)}.",
        )
        zeros = self.loss.of_zero_scores(self.classes.size)
        return Promise(
            distance=float(far),
            loss=inf if far == inf else float(self.violation_bound(far)),
            worst_loss=inf if far == inf else float(self.worst_loss(far)),
            guessing=float(zeros.max()),
            came=None if came is None else check_number(came, "came"),
        )

    def _measured(self, distance: ShiftDistance) -> float:
        """The upper bound of a distance from these samples in this ambiguity, not in others."""
        if not self.ambiguity.measures_as(distance.ambiguity):
            measured, promised = repr(distance.ambiguity), repr(self.ambiguity)
            which = f"one of {measured}, the certificate one of {promised}"
            if measured == promised:  # which shows few weights, and few digits of each
                which = f"one of other weights of the features than the certificate, of {promised}"
            raise ValueError(
                f"The distance is {which}; measure it with ambiguity=certificate.ambiguity."
            )
        if distance.n_ref != self.n_samples:
            raise ValueError(
                f"The distance was measured from {distance.n_ref} samples, the certificate is one "
                f"of {self.n_samples}; measure it from the samples of the certificate."
            )
        if not np.allclose(distance.weights_ref, self.weights, rtol=1e-6, atol=0.0):
            raise ValueError(
                "The distance was measured from samples of other weights than those of the "
                "certificate; measure it with sample_weight_ref=certificate.weights."
            )
        return distance.upper

    @overload
    def label_flip_bound(self, rate: float) -> float: ...
    @overload
    def label_flip_bound(self, rate: NDArray[Any]) -> Floats: ...
    def label_flip_bound(self, rate: ArrayLike) -> float | Floats:
        r"""Upper bound of the penalised mean loss after relabelling a share `rate` of the weight.

        Whichever samples are relabelled, and to whichever class,

        .. math:: \text{attained loss} + c \, \Delta \cdot rate, \qquad
            \Delta = \max_{n, i, j} |u_{ni} - u_{nj}| \le \varphi K + \max_{i, j} |b_i - b_j|,

        with c = 1 for cross-entropy and twice the steepest slope for other losses; costs of pairs
        of classes add what they can at equal scores. The largest
        difference of two scores over the samples, Δ, is never above what is known without the
        scores: from the longest sample φ, the largest dual norm K of a difference of coefficients,
        which training under Wasserstein ambiguity keeps small, and the intercepts b. It holds under
        any ambiguity. A priced intercept is in K, not in b, and the constant in φ.
        """
        share = check_amount(rate, "rate", 1.0)
        with np.errstate(over="ignore", under="ignore"):
            bound = self.attained_loss + self._relabelling * share
        return bound if share.ndim else float(bound)

    def priced_at(self, radius: float) -> Certificate:
        """The same model at the target that its worst loss within a radius is a line from.

        Its fragility is the cost of a unit of distance there, so that `violation_bound` of the
        radius is the worst loss itself, and no expected loss is above that line anywhere.
        """
        worst = self.ambiguity.worst_loss(self._profile, check_radius(radius))
        return replace(
            self, target=worst.level + self.penalty, fragility=worst.multiplier, radius=inf
        )

    def index_bound(self) -> IndexBound:
        r"""Bound of the Fragility Index of the probabilities :math:`\sigma(u)` from training.

        For two classes (several: `index_bounds`). Under Wasserstein ambiguity the index of
        `fragility.wasserstein_fragility_index` at target :math:`\tau - R` is at most half the dual
        norm of the coefficients, which is k over twice the steepest slope of the loss if labels do
        not move and there is no ball (less if the intercept is priced). Under KL the index of
        `fragility.fragility_index` at target :math:`(\tau - R) / (2 \min \pi)` is at most k / 2, π
        the shares of the classes and k the fragility without a ball: often vacuous, and then said
        to be.
        """
        if self.classes.size > 2:
            return no_bound(
                f"it is one of pairs; there are {self.classes.size} classes: see index_bounds()"
            )
        return self._index_bounds([(1, 0)])[0]

    def index_bounds(self) -> dict[tuple[Any, Any], IndexBound]:
        r"""Bounds of the Fragility Index of every ordered pair of classes, from training.

        Of a pair i|j, samples of class j scored as i. Under KL the index of i|j in
        `fragility.fragility_index` of the softmax, at target :math:`(\tau - R) / (2 \min(\pi_i,
        \pi_j))`, is at most k / 2. Under Wasserstein ambiguity that of
        `fragility.wasserstein_pair_index` at target :math:`\tau - R` is at most half the dual norm
        of :math:`\beta_i - \beta_j`, once the mean ranking error of the pair meets the target,
        which is asked of the samples: with several classes the mean loss does not ensure it. Two
        classes have the bound of `index_bound` for both pairs.

        Returns
        -------
        dict
            From (i, j), classes by name, to `IndexBound`.
        """
        pairs = list(permutations(range(self.classes.size), 2))
        names = self.classes.tolist()
        bounds = self._index_bounds(pairs)
        return {(names[i], names[j]): b for (i, j), b in zip(pairs, bounds, strict=True)}

    def _index_bounds(self, pairs: list[tuple[int, int]]) -> list[IndexBound]:
        """Of pairs of codes, the positive class first."""
        room, fragility = self.target - self.penalty, self.fragility
        if self.radius < inf:  # the index knows no ball
            fragility = self.ambiguity.fragility(self._profile, room)
        scored = ScoredSamples(self._scores, self._codes, self.weights, self.losses, self._coef)
        d = self.ambiguity.solved_as(self.loss)
        return [bound_index(d, scored.pair(d, i, j, room, fragility)) for i, j in pairs]

    def worst_case_weights(self) -> Floats:
        r"""Weights of the samples in the worst case under KL ambiguity, summing to one.

        :math:`q_n \propto a_n e^{\ell_n / k}`, for which the guarantee is an equality; at k = 0 the
        weight of the largest losses, at infinite k the weights themselves. Inside a ball (finite
        `radius`) those in it that come closest to breaking the guarantee, or meet it: with a larger
        number for k where the sphere is reached. Under Wasserstein ambiguity samples move and
        weights stay: an error.
        """
        k = self.fragility
        if self.radius < inf:
            k = max(k, self.ambiguity.worst_loss(self._profile, self.radius).multiplier)
        worst = np.zeros(self.n_samples)
        worst[self.weights > 0.0] = self.ambiguity.tilt(
            self._profile.losses, self._profile.weights, k
        )
        return worst

    def _rows(self) -> Iterator[SummaryRow]:
        missed = self.headroom < 0.0 and self.fragility == inf
        yield "target", f"{self.target:.6g}", f"for the mean of {self.loss!r}, plus penalty"
        yield "attained loss", f"{self.attained_loss:.6g}", f"of which penalty {self.penalty:.4g}"
        if abs(self.headroom) <= 1e-9 * abs(self.target):  # rounding, which no two machines share
            yield "headroom", "0", "the target is just met"
        else:
            yield "headroom", f"{self.headroom:.4g}", "the target is missed" if missed else ""
        reach = f", up to {self.radius:.6g} of them" if self.radius < inf else ""
        meaning = f"; a unit is {self.ambiguity.unit}" if self.ambiguity.unit else ""
        note = f"loss above the target per unit of {self.ambiguity!r}, at most{reach}{meaning}"
        note += "; an upper bound" if self.is_upper_bound else ""
        yield "fragility k", f"{self.fragility:.6g}", note
        if not isnan(self.critical_distance):
            note = "how far the worst case is from the data, on average"
            yield "critical at", f"{self.critical_distance:.6g}", note
        flipped = f"{self.label_flip_bound(0.01):.6g}"
        yield "label flips", flipped, "attained loss with 1 % of the labels wrong, at most"
        index = self.index_bound()
        note = f"says nothing: {index.reason}"
        if not index.vacuous:
            note = f"of the {index.kind} index at target {index.target:.4g}: {index.measured:.4g}"
        if self.classes.size > 2:
            yield "index bound", "by pair", "of each two classes: index_bounds()"
        else:
            yield "index bound", f"{index.bound:.4g}", note
        yield "samples", str(self.n_samples), f"of the classes {listed(self.classes)}"


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def certificate_of(
    linear: LinearModel,
    samples: LabelledSamples,
    *,
    loss: Loss,
    ambiguity: Ambiguity,
    target: float,
    penalty: float,
    radius: float = inf,
) -> Certificate:
    """Certificate of validated input; `certify` is the public face.

    One pass over the features, which are neither copied nor kept. The weights of the samples need
    not sum to one (None: all alike). `radius` is positive.
    """
    coef, classes, codes, weights = linear.coef, linear.classes, samples.codes, samples.weights
    weights = np.ones(codes.size) if weights is None else weights / weights.max()
    weights = weights / weights.sum()
    binary = classes.size == 2
    loss.check_classes(classes.size)
    scores = samples.X @ (coef[0] if binary else coef.T)
    scores = scores + (linear.intercept[0] if binary else linear.intercept)
    losses = loss.value(scores, codes)
    mean = float(weights @ losses)
    relabelled = loss.relabelled(scores, codes) if ambiguity.moves_labels else None
    _check_steepness(loss, ambiguity, scores, codes)
    if not isfinite(mean + penalty + (0.0 if relabelled is None else float(relabelled.max()))):
        raise ValueError(
            "The losses of this model overflow on these samples; scale the features and fit again."
        )
    carrying = weights > 0.0
    spread = np.abs(scores) if binary else np.ptp(scores, axis=1)
    slopes = steepest_slopes(linear.inside, loss, codes[carrying], every=ambiguity.moves_labels)
    moves = (ambiguity.with_constant() if linear.priced else ambiguity).solved_as(loss)
    if isinstance(moves, Transport):
        profile = _transport_profile(loss, moves, linear, samples, weights, carrying)
    else:
        profile = LossProfile(
            _selected(losses, carrying),
            _selected(weights, carrying),
            bounded_slope(loss, moves, linear.inside)
            if isinstance(loss, LipschitzLoss)
            else moves.steepest(slopes),
            None if relabelled is None else _selected(relabelled, carrying),
        )
    relabelling = loss.relabelling_bound(classes.size, float(spread[carrying].max()))
    if isinstance(loss, LipschitzLoss):
        spread, steep = bounded_spread(loss, ambiguity, scores)
        relabelling = float(np.ptp(loss.of_zero_scores(classes.size)))
        relabelling += steep * float(spread[carrying].max())
    room = target - penalty
    if room < mean <= room + 1e-12 * abs(target):  # a target that is met but for rounding is met
        room = mean
    return Certificate(
        target=target,
        attained_loss=mean + penalty,
        penalty=penalty,
        fragility=ambiguity.fragility_within(profile, room, radius),
        radius=radius,
        loss=loss,
        ambiguity=ambiguity,
        classes=classes,
        losses=losses,
        weights=weights,
        _profile=profile,
        _relabelling=relabelling,
        _scores=scores,
        _codes=codes,
        _coef=coef.copy(),
    )


def _transport_profile(
    loss: Loss,
    ambiguity: Transport,
    linear: LinearModel,
    samples: LabelledSamples,
    weights: Floats,
    carrying: Mask,
) -> LossProfile:
    """The worst case of a model under general transport."""
    X = samples.X[carrying]
    X = X.toarray() if issparse(X) else X
    intercept = linear.intercept
    if linear.priced:
        X, intercept = np.column_stack([X, np.ones(len(X))]), np.zeros(len(linear.coef))
    return profile_of_model(
        loss,
        ambiguity,
        linear.inside,
        intercept,
        X,
        samples.codes[carrying],
        weights[carrying],
        linear.classes.size,
    )


def _selected(values: Floats, mask: Mask) -> Floats:
    """Values where the mask is true; the array itself, not a copy, if that is everywhere."""
    return values if mask.all() else values[mask]


def _check_steepness(loss: Loss, ambiguity: Ambiguity, scores: Floats, codes: NDArray[Any]) -> None:
    """Refuse a loss whose slope exceeds its `steepness`, which all guarantees depend on."""
    if isinstance(loss, LipschitzLoss):
        check_bound(loss, ambiguity, scores, codes)
    if isinstance(loss, (LipschitzLoss, CrossEntropy, Hinge, MaxLogistic, SmoothedHinge)):
        return
    slopes = np.abs(loss.gradient(scores, codes))
    # Several classes: what the wrong ones gain the true one loses, so each counts twice.
    steepest = float(slopes.max() if slopes.ndim == 1 else slopes.sum(axis=1).max() / 2.0)
    if steepest > loss.steepness * (1.0 + 1e-9):
        raise ValueError(
            f"{loss!r} has steepness {loss.steepness:g}, but a slope of {steepest:g} on these "
            "samples. Set the class attribute `steepness` to the largest slope there can be."
        )
