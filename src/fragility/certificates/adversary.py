r"""How an adversary who may shift the data by some distance shifts them: atoms of a distribution.

An atom is a share of a sample that stays, moves, or gets another label. What an ambiguity can do to
samples is a function of it, registered with `shifted`.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from .._models import LinearModel
from .._typing import Floats, Indices
from ..ambiguity import KL, Ambiguity, LossProfile, Transport, Wasserstein
from ..losses import Loss
from ..losses.base import Codes
from ..programs.adversaries import ExactProfile

#: How far a sample is moved to see what its loss lacks of the steepest line there, in loss.
_FAR = 1e4
#: Ways whose slope is the steepest one but for rounding, and shortfalls that are rounding.
_SAME, _NOTHING = 1e-6, 1e-9


class Atoms(NamedTuple):
    """Shares of samples and what becomes of them.

    Attributes
    ----------
    source : ndarray of shape (m,)
        The sample that an atom comes from.
    mass : ndarray of shape (m,)
        They sum to one.
    codes : ndarray of shape (m,)
        Its label.
    distance : ndarray of shape (m,)
        What becomes of it costs this, another label included.
    move : ndarray of shape (m,)
        Row of `moves`, or -1 where features stay.
    moves : ndarray of shape (some, d)
        Moves of features; of a priced intercept the constant is the last.
    """

    source: Indices
    mass: Floats
    codes: Codes
    distance: Floats
    move: Indices
    moves: Floats


class Attack(NamedTuple):
    """What there is to attack: a model, its samples of some weight, and how far they may shift.

    `profile` has the losses and weights of the samples; the most that is lost for the sake of
    shorter moves is the share `tol` of what they add.
    """

    linear: LinearModel
    loss: Loss
    scores: Floats
    codes: Codes
    profile: LossProfile
    radius: float
    tol: float


@singledispatch
def shifted(ambiguity: Any, attack: Attack) -> Atoms:
    """The worst shift of samples within a distance, or one that is nearly as bad."""
    raise NotImplementedError(f"No worst case is known under {ambiguity!r}.")


@shifted.register(KL)
def _reweighted(ambiguity: KL, attack: Attack) -> Atoms:
    profile = attack.profile
    k = ambiguity.worst_loss(profile, attack.radius).multiplier
    return reweighted(ambiguity, attack, k)


def reweighted(ambiguity: Ambiguity, attack: Attack, k: float) -> Atoms:
    """The worst weights at a fragility."""
    mass = ambiguity.tilt(attack.profile.losses, attack.profile.weights, k)
    some = np.flatnonzero(mass > 0.0)
    return _unmoved(attack, some, mass[some], attack.codes[some])


def _unmoved(
    attack: Attack, source: Indices, mass: Floats, codes: Codes, distance: float = 0.0
) -> Atoms:
    """Atoms whose features stay."""
    still, nowhere = np.full(source.size, -1), np.zeros((0, attack.linear.inside.shape[1]))
    return Atoms(source, mass, codes, np.full(source.size, distance), still, nowhere)


@shifted.register(Wasserstein)
def _moved(ambiguity: Wasserstein, attack: Attack) -> Atoms:
    # Another label pays by its gain per label cost, a move of the features by the slope: the best
    # first, as in a knapsack whose last piece may be cut. Moves are left for what remains.
    moves = ambiguity.with_constant() if attack.linear.priced else ambiguity
    relabelled, left = _relabelled(ambiguity, attack)
    return _moved_far(moves, attack, relabelled, left)


def _relabelled(ambiguity: Wasserstein, attack: Attack) -> tuple[Atoms, float]:
    """Labels that pay more than moves do, and the distance that is left."""
    profile, radius, cost = attack.profile, attack.radius, ambiguity.label_cost
    own = _unmoved(attack, np.arange(profile.losses.size), profile.weights, attack.codes)
    if not ambiguity.moves_labels:
        return own, radius
    assert profile.relabelled is not None
    gains = profile.relabelled - profile.losses
    order = np.argsort(-gains, kind="stable")
    order = order[gains[order] > profile.slope * cost]
    before = np.cumsum(profile.weights[order]) - profile.weights[order]
    taken = np.clip(radius / cost - before, 0.0, profile.weights[order])
    some = taken > 0.0
    order, taken = order[some], taken[some]
    flipped = _unmoved(attack, order, taken, _worst_labels(attack, order), cost)
    kept = own.mass.copy()
    kept[order] -= taken
    return _joined(own._replace(mass=kept), flipped), max(radius - cost * float(taken.sum()), 0.0)


def _worst_labels(attack: Attack, samples: Indices) -> Codes:
    """The other label of the largest loss."""
    n_classes = attack.linear.classes.size
    scores, own = attack.scores[samples], attack.codes[samples]
    losses = np.empty((n_classes, samples.size))
    for label in range(n_classes):
        losses[label] = attack.loss.value(scores, np.full(samples.size, label))
    losses[own, np.arange(samples.size)] = -np.inf
    labels: Codes = losses.argmax(axis=0)
    return labels


def _moved_far(ambiguity: Wasserstein, attack: Attack, atoms: Atoms, left: float) -> Atoms:
    """Moves along the steepest ways, as short as the tolerance allows."""
    slope = attack.profile.slope
    if left <= 1e-12 * attack.radius or slope == 0.0:
        return atoms
    same = min(_SAME, 0.01 * attack.tol)
    ways, way, lack = _steepest_ways(ambiguity, attack, atoms, same)
    order = np.argsort(lack, kind="stable")
    order = order[np.isfinite(lack[order]) & (atoms.mass[order] > 0.0)]
    if lack[order[0]] == 0.0:  # then nothing need be lost
        order = order[lack[order] == 0.0]
    lost = np.cumsum(atoms.mass[order] * lack[order])
    allowed = (attack.tol - same) * slope * left
    count = max(int(np.searchsorted(lost, allowed, side="right")), 1)
    order = order[:count]
    taken = atoms.mass[order].copy()
    if lost[0] > allowed:  # a share of the first, which goes further
        taken *= allowed / lost[0]
    far = left / float(taken.sum())
    extra = Atoms(
        atoms.source[order],
        taken,
        atoms.codes[order],
        atoms.distance[order] + far,
        way[order],
        far * ways,
    )
    kept = atoms.mass.copy()
    kept[order] -= taken
    return _joined(atoms._replace(mass=kept), extra)


def _steepest_ways(
    ambiguity: Wasserstein, attack: Attack, atoms: Atoms, same: float
) -> tuple[Floats, Indices, Floats]:
    """Steepest ways, which each atom takes, and what its loss lacks of the line of that slope.

    Ways that are the steepest one to a share of `same` count as it.
    """
    coef, slope, loss = attack.linear.inside, attack.profile.slope, attack.loss
    n_classes, m = attack.linear.classes.size, atoms.source.size
    scores, losses = (
        attack.scores[atoms.source],
        loss.value(attack.scores[atoms.source], atoms.codes),
    )
    best, chosen = np.full(m, np.inf), np.full(m, -1)
    steepness = loss.pair_steepness(n_classes)
    ways: list[Floats] = []
    for label in range(n_classes):
        own = np.flatnonzero(atoms.codes == label)
        for rival in range(n_classes):
            if rival == label or not own.size:
                continue
            towards = coef[rival] - coef[label] if n_classes > 2 else coef[0] * (rival - label)
            rate = steepness[label, rival] * float(ambiguity.dual_norms(towards[np.newaxis])[0])
            if rate < slope * (1.0 - same):
                continue
            way = ambiguity.steepest_moves(towards[np.newaxis])[0]
            gained = coef @ way if n_classes > 2 else coef[0] @ way
            far = loss.value(scores[own] + _FAR / rate * gained, atoms.codes[own])
            lack = _FAR + losses[own] - far
            lack = np.where(lack <= _NOTHING * (1.0 + losses[own]), 0.0, lack)
            better = lack < best[own]
            best[own[better]], chosen[own[better]] = lack[better], len(ways)
            ways.append(way)
    return np.array(ways).reshape(-1, coef.shape[1]), chosen, best


@shifted.register(Transport)
def _transported(ambiguity: Transport, attack: Attack) -> Atoms:
    """Every sample at its worst place for one price; where two are equally bad, a share at each."""
    profile = attack.profile
    if not isinstance(profile, ExactProfile):
        raise NotImplementedError(
            f"No worst case is drawn under {ambiguity!r}; its bound is `certificate.worst_loss`. "
            "One is for costs other than norms without a support, and for costs by ℓ1, ℓ2 or ℓ∞ "
            "in a Box."
        )
    k = profile.worst(attack.radius).multiplier
    least = profile.adversary.least if profile.adversary is not None else 0.0
    # The distance falls as the price rises, perhaps by jumps: one price on each side of it.
    dear = _at_price(ambiguity, profile, k * (1.0 + 1e-9))
    lower = k * (1.0 - 1e-9)
    cheap = dear if lower < least else _at_price(ambiguity, profile, lower)
    short, long = (float(one.mass @ one.distance) for one in (dear, cheap))
    if long <= attack.radius or long <= short:
        return cheap if long <= attack.radius else dear
    share = min(max((attack.radius - short) / (long - short), 0.0), 1.0)
    return _joined(
        dear._replace(mass=dear.mass * (1.0 - share)), cheap._replace(mass=cheap.mass * share)
    )


def _at_price(ambiguity: Transport, profile: ExactProfile, k: float) -> Atoms:
    """The worst case at a price of transport."""
    adversary, y = profile.adversary, profile.y
    assert adversary is not None
    assert y is not None
    _, labels = profile.worst_labels(k)
    places, here = adversary.places(k, labels), adversary.samples.X
    moves = places - here
    costs = ambiguity.move_costs(moves)
    costs[labels != y] += ambiguity.label_cost
    every = np.arange(y.size)
    return Atoms(every, profile.weights, labels, costs, every, moves)


def _joined(first: Atoms, second: Atoms) -> Atoms:
    """Both, without atoms of no mass."""
    later = np.where(second.move < 0, -1, second.move + len(first.moves))
    second = second._replace(move=later)
    both = Atoms(*(np.concatenate(parts) for parts in zip(first, second, strict=True)))
    some = both.mass > 1e-15 * both.mass.max()
    return Atoms(
        both.source[some],
        both.mass[some],
        both.codes[some],
        both.distance[some],
        both.move[some],
        both.moves,
    )
