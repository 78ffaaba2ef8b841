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
    stragglers : float
        And a step may be too long for this share of the constraints.
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
    together : int
        Numbers in an array of the programs that are solved together, at most.
    """

    nearly: float = 0.99
    surprise: float = 0.5
    lift: float = 1.0
    first_margin: float = 0.1
    higher: float = 3.0
    least_lift: float = 1e-2
    correctors: int = 1
    further: float = 0.3
    target_lift: float = 0.1
    rooms: float = 10.0
    dear: float = 2e7
    single_gap: float = 1e-3
    stragglers: float = 1e-4
    uneven: float = 10.0
    behind: float = 3.0
    patience: int = 60
    near_patience: int = 20
    tiny: float = 1e-10
    good: float = 0.3
    nothing: float = 1e-3
    ball_rounding: float = 1e-14
    flat: float = 1e-5
    near: float = 1e-2
    enough: float = 1e3
    stand_in: float = 1e-13
    together: int = 2**18


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


class Entropic(NamedTuple):
    """Constants of an entropic risk.

    Attributes
    ----------
    left : float
        How near k may come to zero in one step, for its curvature grows as k falls.
    no_k : float
        A k below this share of the first one is zero, and only the largest loss counts.
    """

    left: float = 0.4
    no_k: float = 1e-9


class Ellipsoids(NamedTuple):
    """Constants of least norms in ellipsoids.

    Attributes
    ----------
    max_steps : int
        Most steps.
    """

    max_steps: int = 60


class LowestLoss(NamedTuple):
    """Constants of searches for the lowest loss.

    Attributes
    ----------
    least_sample : int
        Rows of a sample that gives a start, at least.
    rows_per_parameter : int
        The same for each parameter.
    worth_it : int
        It is worth its time on data of this multiple of the sample.
    worth_it_if_rough : int
        The same where Hessians are rough.
    far : float
        A margin at which every loss that tends to zero has underflowed.
    near : float
        A margin at which only a loss is zero that is exactly zero from some margin on.
    rough : float
        Accuracy of a start.
    zero : float
        Share of the loss of the zero model that is zero but for rounding.
    """

    least_sample: int = 1_000
    rows_per_parameter: int = 12
    worth_it: int = 4
    worth_it_if_rough: int = 16
    far: float = 1_000.0
    near: float = 50.0
    rough: float = 1e-2
    zero: float = 1e-9


class Barriers(NamedTuple):
    """Constants of the log-barrier method.

    Attributes
    ----------
    faster : float
        Factor between the strengths of barriers.
    accuracy : float
        Share of the squared length at which to stop.
    """

    faster: float = 20.0
    accuracy: float = 1e-9


class LeastFragility(NamedTuple):
    """Constants of searches for the least fragility under KL.

    Attributes
    ----------
    settled : float
        The fragility is settled when its error is this share of the tolerance. Errors of
        coefficients are as its root, and have digits, too, as one more step is taken.
    rounding : float
        Never finer than this.
    delicate : float
        Excess of the largest loss over the target, in units of the room below the target, up to
        which sums about the largest loss are exact to 13 digits.
    few_steps : int
        Steps to a root that is near, and to a start.
    shrinkage : float
        First shrinkage of a start.
    at_once : float
        How much of it is left after one more at least.
    rough : float
        How near a start is brought to the least fragility, relatively.
    """

    settled: float = 1e-2
    rounding: float = 1e-13
    delicate: float = 1e3
    few_steps: int = 8
    shrinkage: float = 0.1
    at_once: float = 0.6
    rough: float = 5e-3


class Newton(NamedTuple):
    """Constants of Newton's method.

    Attributes
    ----------
    no_curvature : float
        Curvatures below this share of the largest are zero but for rounding.
    stand_in : float
        Curvature that replaces them at first where the slope is not zero, as before the corner of
        a hinge.
    factor : float
        The factor by which it falls while steps are good.
    floor : float
        Its floor.
    good_enough : float
        A Hessian serves again while it makes the gap fall at least this much.
    parameters_per_step, samples_per_step : int
        It costs as much as one step per this many parameters, or samples if it is of low rank: no
        more steps are made to be without one.
    rough : int
        So many rough Hessians, then exact ones.
    doubts : int
        How often a minimum is checked again with a new curvature.
    """

    no_curvature: float = 1e-13
    stand_in: float = 1e-6
    factor: float = 30.0
    floor: float = 1e-18
    good_enough: float = 0.1
    parameters_per_step: int = 10
    samples_per_step: int = 200
    rough: int = 5
    doubts: int = 3


class LeastNorms(NamedTuple):
    """Constants of searches for the least norm under Wasserstein.

    Attributes
    ----------
    good_enough : float
        A Hessian serves again while it makes the error fall at least this much.
    cheap : float
        Multiplications in a Hessian that cost no more than a search in an ellipsoid.
    settled : float
        The norm is settled when its error is this share of the tolerance. Errors of coefficients
        are as its root, so they have digits, too.
    rounding : float
        Never finer than this.
    digits : float
        No more is asked of a norm; of one that is nearly zero, relative to the norm of the start.
    patience : int
        Steps without progress after which the search gives up.
    damped : float
        Damping to begin with where it is needed.
    factor : float
        The factor by which it changes.
    """

    good_enough: float = 0.01
    cheap: float = 1e8
    settled: float = 1e-3
    rounding: float = 1e-12
    digits: float = 1e-8
    patience: int = 4
    damped: float = 1e-4
    factor: float = 30.0


class Faces(NamedTuple):
    """Constants of searches for the face of a ball.

    Attributes
    ----------
    long : float
        Entries of at least this share of the largest are held there at first. To hold too many
        costs a try, too few may lead nowhere.
    short : float
        Entries below this share of the largest are held at zero at first.
    parts : tuple[int, ...]
        If so many free entries lead nowhere: parts of them.
    least_share : float
        Share of the entries on the wrong side that change it at least.
    exact : float
        Rounding that does not break a condition.
    """

    long: float = 0.5
    short: float = 0.01
    parts: tuple[int, ...] = (1, 4, 16)
    least_share: float = 0.125
    exact: float = 1e-10


class QuadraticModels(NamedTuple):
    """Constants of quadratic models of the loss.

    Attributes
    ----------
    exact : float
        How exactly the target is met in the end, relatively.
    stand_in : float
        Curvature, as a share of the mean one, that stands in where there is none.
    """

    exact: float = 1e-12
    stand_in: float = 1e-9


INTERIOR = Interior()
LABELS = Labels()
CORNERS = Corners()
ENTROPIC = Entropic()
ELLIPSOIDS = Ellipsoids()
LOWEST_LOSS = LowestLoss()
BARRIERS = Barriers()
LEAST_FRAGILITY = LeastFragility()
NEWTON = Newton()
LEAST_NORMS = LeastNorms()
FACES = Faces()
QUADRATIC_MODELS = QuadraticModels()
