"""What an adversary does at a general cost of transport, or inside a support."""

from __future__ import annotations

import numpy as np

from .._typing import Floats
from ..ambiguity import Transport
from ..programs.adversaries import ExactProfile, LinearSamples
from ..solvers.transport_profile import ConicProfile
from .atoms import Atoms, Attack, joined, least_lacking, unmoved, without

#: How far a sample is moved to see what its loss lacks of the steepest line there, in loss.
_FAR = 1e4
#: Shortfalls that are rounding.
_NOTHING = 1e-9
#: Shares of a sample below this are what a conic solver leaves of zero.
_SLIGHT = 1e-8
#: How often a share is halved, or a distance mended, at most.
_SMALLER = 50


def to_worst_places(ambiguity: Transport, profile: ExactProfile, attack: Attack) -> Atoms:
    """Every sample at its worst place for one price; where two are equally bad, a share at each."""
    k = profile.worst(attack.radius).multiplier
    least = profile.adversary.least
    # The distance falls as the price rises, perhaps by jumps: one price on each side of it.
    dear = _at_price(ambiguity, profile, k * (1.0 + 1e-9))
    lower = k * (1.0 - 1e-9)
    short = float(dear.mass @ dear.distance)
    if lower < least:  # below, moves would go on for ever; at it, they may go any distance
        return _moved_on(ambiguity, profile, attack, dear, attack.radius - short)
    cheap = _at_price(ambiguity, profile, lower)
    long = float(cheap.mass @ cheap.distance)
    if long <= attack.radius or long <= short:
        return cheap if long <= attack.radius else dear
    share = min(max((attack.radius - short) / (long - short), 0.0), 1.0)
    return joined(
        dear._replace(mass=dear.mass * (1.0 - share)), cheap._replace(mass=cheap.mass * share)
    )


def _moved_on(
    ambiguity: Transport, profile: ExactProfile, attack: Attack, atoms: Atoms, left: float
) -> Atoms:
    """Moves that go on along ways of the least price, as short as the tolerance allows."""
    adversary = profile.adversary
    k, linear = adversary.least, adversary.samples
    if left <= 1e-12 * attack.radius or k == 0.0:
        return atoms
    # What a share lacks of the least price where it has gone far, and the way on which it is least.
    lack, chosen = np.full(atoms.source.size, np.inf), np.zeros_like(atoms.moves)
    here = _net(ambiguity, attack, linear, atoms, atoms.moves, k)
    for label in range(linear.n_classes):
        own = (atoms.codes == label)[:, np.newaxis]
        for way in adversary.endless(label):
            way = way / _price_of(ambiguity, way)
            gone = atoms.moves + _FAR / k * way * own
            short = here - _net(ambiguity, attack, linear, atoms, gone, k)
            better = own[:, 0] & (short < lack)
            lack[better], chosen[better] = short[better], way
    if not np.isfinite(lack).any():  # a cost of one's own does not say which way
        return atoms
    losses = np.abs(here) + 1.0
    lack = np.where(lack <= _NOTHING * losses, 0.0, lack)
    order, taken = least_lacking(lack, atoms.mass, attack.tol * k * left)
    some = Atoms(
        atoms.source[order],
        taken,
        atoms.codes[order],
        atoms.distance[order],
        order,
        atoms.moves[order],
    )
    for _ in range(_SMALLER):
        # On the way to a place that lacks nothing there may be worse ones: then fewer go further.
        moves = some.moves + _length_of(ambiguity, some, taken, chosen[order], left) * chosen[order]
        lost = taken @ (here[order] - _net(ambiguity, attack, linear, some, moves, k))
        if lost <= max(attack.tol, _NOTHING) * k * left:
            break
        taken = taken / 2.0
    distance = ambiguity.move_costs(moves)
    flips = atoms.codes[order] != attack.codes[atoms.source[order]]
    distance[flips] += ambiguity.label_cost
    extra = Atoms(
        atoms.source[order], taken, atoms.codes[order], distance, np.arange(order.size), moves
    )
    return joined(without(atoms, order, taken), extra)


def _length_of(
    ambiguity: Transport, atoms: Atoms, mass: Floats, ways: Floats, left: float
) -> float:
    """How far shares go along ways of cost one to spend a distance; less where that is rounding."""
    before, far, total = ambiguity.move_costs(atoms.moves), left / float(mass.sum()), mass.sum()
    for _ in range(_SMALLER):
        spent = float(mass @ (ambiguity.move_costs(atoms.moves + far * ways) - before))
        if left - spent <= _NOTHING * left:
            break
        far += (left - spent) / total  # no unit of a way costs more than one
    return far


def _price_of(ambiguity: Transport, way: Floats) -> float:
    """What a unit of a way costs in the long run."""
    return float(ambiguity.move_costs(_FAR**2 * way[np.newaxis])[0]) / _FAR**2


def _net(
    ambiguity: Transport,
    attack: Attack,
    linear: LinearSamples,
    atoms: Atoms,
    moves: Floats,
    k: float,
) -> Floats:
    """Loss less cost of moves of features at a price."""
    scores = linear.scores[atoms.source] + moves @ linear.coef.T
    losses = attack.loss.value(scores[:, 0] if linear.n_classes == 2 else scores, atoms.codes)
    return losses - k * ambiguity.move_costs(moves)


def by_multipliers(ambiguity: Transport, profile: ConicProfile, attack: Attack) -> Atoms:
    """Shares and moves as the multipliers of the bound have them, brought inside the support."""
    assert profile.samples is not None
    assert ambiguity.support is not None
    parts = [*profile.worst_shares(attack.radius)]
    source = np.concatenate([part.rows for part in parts])
    mass = np.concatenate([part.masses for part in parts])
    codes = np.concatenate([np.full(part.rows.size, part.label) for part in parts])
    moves = np.concatenate([part.moves for part in parts])
    mass = np.where(mass > _SLIGHT * profile.weights[source], mass, 0.0)
    mass *= (profile.weights / np.bincount(source, mass))[source]
    moved = np.flatnonzero(moves.any(axis=1))
    room = ambiguity.support.travel(profile.samples.places[source[moved]], moves[moved])
    moves[moved] *= np.minimum(room, 1.0)[:, np.newaxis]
    costs = ambiguity.move_costs(moves)
    costs[codes != attack.codes[source]] += ambiguity.label_cost
    atoms = Atoms(source, mass, codes, costs, np.arange(source.size), moves)
    return joined(atoms, unmoved(attack, source[:0], mass[:0], codes[:0]))


def _at_price(ambiguity: Transport, profile: ExactProfile, k: float) -> Atoms:
    """The worst case at a price of transport."""
    adversary, y = profile.adversary, profile.y
    _, labels = profile.worst_labels(k)
    moves = adversary.moves(k, labels)
    costs = ambiguity.move_costs(moves)
    costs[labels != y] += ambiguity.label_cost
    every = np.arange(y.size)
    return Atoms(every, profile.weights, labels, costs, every, moves)
