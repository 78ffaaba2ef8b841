"""Tuning constants of the solvers, in one table."""

from __future__ import annotations

from typing import NamedTuple


class Interior(NamedTuple):
    """Constants of the interior-point method.

    Attributes
    ----------
    nearly : float
        How much of the way to the boundary a step goes.
    surprise : float
        What a step may add to the aggregate beyond what it foresaw, as a share of the gap.
    lift, first_margin : float
        Epigraph variables start above the losses by this share of their aggregate; the margin of a
        target starts at that share of this lift.
    higher : float
        The same lift where the functions of a sample leave out the loss itself.
    least_lift : float
        Without a target the lift is at least this share of the largest loss of the zero model.
    rooms, target_lift : float
        With a target the lift is this multiple of the room that the start leaves, but not below
        that share of the lift without.
    correctors, further, dear : int, float, float
        Steps are corrected up to this number of times so that products of margin and multiplier
        stay near each other when a step is longer by this: where a system takes so many
        multiplications that a direction costs little beside it.
    single_gap : float
        There, as long as the gap is above this share of the cost, single precision will do.
    uneven : float
        A slope of the Lagrangian that would gain this multiple of the gap must become less first.
    behind : float
        A target that is missed by what is worth this multiple of the gap must be met better first.
    patience, near_patience : int
        Steps in which the gap must halve; the same where it is small enough as it is.
    tiny, good : float
        A step shorter than this leads nowhere; one that keeps this share of what was allowed is
        good.
    nothing, ball_rounding : float
        A cost below this share of the first one counts as zero: it is not known any better. In an
        ellipsoid it is known to that share.
    flat, near : float
        How flat the Lagrangian must have been once, relatively; the gap below which this is
        checked.
    enough : float
        A search that rounding ended has converged if its gap is at most this multiple of the
        tolerance.
    stand_in : float
        Curvature that stands in where there is none, as a share of a parameter's own.
    """

    nearly: float = 0.99
    surprise: float = 0.5
    lift: float = 1.0
    first_margin: float = 0.1
    higher: float = 3.0
    least_lift: float = 1e-2
    correctors: int = 2
    further: float = 0.3
    target_lift: float = 0.1
    rooms: float = 10.0
    dear: float = 2e7
    single_gap: float = 1e-3
    uneven: float = 10.0
    behind: float = 3.0
    patience: int = 60
    near_patience: int = 5
    tiny: float = 1e-10
    good: float = 0.3
    nothing: float = 1e-3
    ball_rounding: float = 1e-14
    flat: float = 1e-5
    near: float = 1e-2
    enough: float = 1e3
    stand_in: float = 1e-13


class Corners(NamedTuple):
    """Constants of programs that the interior-point method is given.

    Attributes
    ----------
    tie : float
        A tie between models of the same cost is broken by their length, at this share of the cost:
        the length of the solution is not known, and its cost must not matter where it is longer.
    same : float
        A loss this near to the lowest, relatively, is the lowest but for rounding.
    settled, rounding : float
        Accuracy asked, as a share of the tolerance; never finer than this.
    no_k : float
        A k below this share of the cost is zero: only the largest loss counts.
    """

    tie: float = 1e-11
    same: float = 1e-9
    settled: float = 1e-3
    rounding: float = 1e-10
    no_k: float = 1e-7


class Labels(NamedTuple):
    """Constants of programs whose labels move.

    Attributes
    ----------
    few_labels : int
        Up to so many samples all of them are in the program; of more, those that may pay.
    near_share, far_share : float
        How far the start is on the way from the lowest loss to the solution whose labels stay: for
        few samples, and for many.
    may_pay : float
        Samples whose gain is this share of the cost of a label may move later.
    rough, settled, rounding : float
        Accuracy of the first steps, and of the last as a share of the tolerance; never finer than
        this.
    max_steps, max_corrections : int
    ample : float
        A model is lifted by a little more than the loss was above it.
    """

    few_labels: int = 4_000
    near_share: float = 0.8
    far_share: float = 0.5
    may_pay: float = 0.75
    rough: float = 1e-3
    settled: float = 1e-2
    rounding: float = 1e-10
    max_steps: int = 30
    max_corrections: int = 3
    ample: float = 1.02


INTERIOR = Interior()
LABELS = Labels()
CORNERS = Corners()
