r"""How an adversary who may shift the data by some distance shifts them: atoms of a distribution.

An atom is a share of a sample that stays, moves, or gets another label. What an ambiguity can do to
samples is a function of it, registered with `shifted`.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from .._typing import Floats, Indices
from ..ambiguity import KL, Ambiguity, Transport, Wasserstein
from ..ambiguity.norm_moves import NormMoves
from ..losses.base import Codes
from ..programs.adversaries import ExactProfile
from ..solvers.transport_profile import ConicProfile
from .atoms import Atoms, Attack, joined, least_lacking, unmoved, without
from .transported import by_multipliers, to_worst_places

#: How far a sample is moved to see what its loss lacks of the steepest line there, in loss.
_FAR = 1e4
#: Ways whose slope is the steepest one but for rounding, and shortfalls that are rounding.
_SAME, _NOTHING = 1e-6, 1e-9


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
    return unmoved(attack, some, mass[some], attack.codes[some])


@shifted.register(Wasserstein)
def _moved(ambiguity: Wasserstein | Transport, attack: Attack) -> Atoms:
    # Another label pays by its gain per label cost, a move of the features by the slope: the best
    # first, as in a knapsack whose last piece may be cut. Moves are left for what remains.
    moves = ambiguity.with_constant() if attack.linear.priced else ambiguity
    relabelled, left = _relabelled(ambiguity, attack)
    return _moved_far(moves, attack, relabelled, left)


def _relabelled(ambiguity: NormMoves, attack: Attack) -> tuple[Atoms, float]:
    """Labels that pay more than moves do, and the distance that is left."""
    profile, radius, cost = attack.profile, attack.radius, ambiguity.label_cost
    own = unmoved(attack, np.arange(profile.losses.size), profile.weights, attack.codes)
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
    flipped = unmoved(attack, order, taken, _worst_labels(attack, order), cost)
    kept = own.mass.copy()
    kept[order] -= taken
    return joined(own._replace(mass=kept), flipped), max(radius - cost * float(taken.sum()), 0.0)


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


def _moved_far(ambiguity: NormMoves, attack: Attack, atoms: Atoms, left: float) -> Atoms:
    """Moves along the steepest ways, as short as the tolerance allows."""
    slope = attack.profile.slope
    if left <= 1e-12 * attack.radius or slope == 0.0:
        return atoms
    same = min(_SAME, 0.01 * attack.tol)
    ways, way, lack = _steepest_ways(ambiguity, attack, atoms, same)
    order, taken = least_lacking(lack, atoms.mass, (attack.tol - same) * slope * left)
    far = left / float(taken.sum())
    extra = Atoms(
        atoms.source[order],
        taken,
        atoms.codes[order],
        atoms.distance[order] + far,
        way[order],
        far * ways,
    )
    return joined(without(atoms, order, taken), extra)


def _steepest_ways(
    ambiguity: NormMoves, attack: Attack, atoms: Atoms, same: float
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
    profile = attack.profile
    if isinstance(profile, ExactProfile):
        return to_worst_places(ambiguity, profile, attack)
    if isinstance(profile, ConicProfile):
        return by_multipliers(ambiguity, profile, attack)
    return _moved(ambiguity, attack)
