"""Shares of samples and what becomes of them: atoms of a distribution near the data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._models import LinearModel
from .._typing import Floats, Indices
from ..ambiguity import LossProfile
from ..losses import Loss
from ..losses.base import Codes


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


def unmoved(
    attack: Attack, source: Indices, mass: Floats, codes: Codes, distance: float = 0.0
) -> Atoms:
    """Atoms whose features stay."""
    still, nowhere = np.full(source.size, -1), np.zeros((0, attack.linear.inside.shape[1]))
    return Atoms(source, mass, codes, np.full(source.size, distance), still, nowhere)


def least_lacking(lack: Floats, mass: Floats, allowed: float) -> tuple[Indices, Floats]:
    """Atoms of which least is lost by far moves, as many as are allowed, and how much of each."""
    order = np.argsort(lack, kind="stable")
    order = order[np.isfinite(lack[order]) & (mass[order] > 0.0)]
    if lack[order[0]] == 0.0:  # then nothing need be lost
        order = order[lack[order] == 0.0]
    lost = np.cumsum(mass[order] * lack[order])
    count = max(int(np.searchsorted(lost, allowed, side="right")), 1)
    order = order[:count]
    taken = mass[order].copy()
    if lost[0] > allowed:  # a share of the first, which goes further
        taken *= allowed / lost[0]
    return order, taken


def without(atoms: Atoms, order: Indices, taken: Floats) -> Atoms:
    """What is left of atoms of which something is taken."""
    kept = atoms.mass.copy()
    kept[order] -= taken
    return atoms._replace(mass=kept)


def joined(first: Atoms, second: Atoms) -> Atoms:
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
