"""Tuning constants of the solvers, in one table: a class for each solver."""

from __future__ import annotations


class Interior:
    """Constants of the interior-point method."""

    #: How much of the way to the boundary a step goes.
    nearly = 0.99
    #: What a step may add to the aggregate beyond what it foresaw, as a share of the gap.
    surprise = 0.5
    #: Epigraph variables start above the losses by this share of their aggregate; the margin of
    #: a target starts at that share of this lift.
    lift = 1.0
    first_margin = 0.1
    #: The same lift where the functions of a sample leave out the loss itself.
    higher = 3.0
    #: Without a target the lift is at least this share of the largest loss of the zero model.
    least_lift = 1e-2
    #: With a target the lift is this multiple of the room that the start leaves, but not below
    #: that share of the lift without.
    rooms = 10.0
    target_lift = 0.1
    #: Where a system takes so many multiplications, single precision will do as long as the gap is
    #: above this share of the cost.
    dear = 2e7
    single_gap = 1e-3
    #: And a step may be too long for this share of the constraints; where labels move, always for
    #: that share.
    stragglers = 1e-4
    movers = 1e-3
    #: A slope of the Lagrangian that would gain this multiple of the gap must become less first.
    uneven = 10.0
    #: A target that is missed by what is worth this multiple of the gap must be met better
    #: first.
    behind = 3.0
    #: Steps in which the gap must halve; the same where it is small enough as it is.
    patience = 60
    near_patience = 20
    #: A step shorter than this leads nowhere; one that keeps this share of what was allowed is
    #: good.
    tiny = 1e-10
    good = 0.3
    #: A cost below this share of the first one counts as zero: it is not known any better. In an
    #: ellipsoid it is known to that share.
    nothing = 1e-3
    ball_rounding = 1e-14
    #: How flat the Lagrangian must have been once, relatively; the gap below which this is
    #: checked.
    flat = 1e-5
    near = 1e-2
    #: A search that rounding ended has converged if its gap is at most this multiple of the
    #: tolerance.
    enough = 1e3
    #: Curvature that stands in where there is none, as a share of a parameter's own.
    stand_in = 1e-13
    #: Numbers in an array of the programs that are solved together, at most.
    together = 2**18


class Corners:
    """Constants of programs that the interior-point method is given."""

    #: A tie between models of the same cost is broken by their length, at this share of the
    #: cost: the length of the solution is not known, and its cost must not matter where it is
    #: longer.
    tie = 1e-11
    #: A loss this near to the lowest, relatively, is the lowest but for rounding.
    same = 1e-9
    #: Accuracy asked, as a share of the tolerance; never finer than this.
    settled = 1e-3
    rounding = 1e-10
    #: A k below this share of the cost is zero: only the largest loss counts.
    no_k = 1e-7
    #: A model is far out whose squared length falls below this share; searches for the shortest,
    #: each from the last: where no feature is needed lengths fall for ever.
    far_out = 1e-3
    most_searches = 4


class Labels:
    """Constants of programs whose labels move."""

    #: Up to so many samples all of them are in the program; of more, those that may pay.
    few_labels = 4_000
    #: How far the start is on the way from the lowest loss to the solution whose labels stay.
    near_share = 0.8
    #: Room that the start of a second attempt has, as a share of that of the first.
    shorter = 0.1
    #: Samples whose gain is this share of the cost of a label may move later.
    may_pay = 0.75
    #: Accuracy of the first steps, and of the last as a share of the tolerance; never finer than
    #: this.
    rough = 1e-3
    settled = 1e-2
    rounding = 1e-10
    max_steps = 30
    max_corrections = 3
    #: A model is lifted by a little more than the loss was above it.
    ample = 1.02


class Aggregates:
    """Constants of the losses of the samples in an interior-point program."""

    #: A margin or a multiplier of which a step would leave less than this share, as none does that
    #: ends before the boundary, is left behind, at that share.
    behind = 0.02
    kept = 0.1
    #: How near k may come to zero in one step under an entropic risk, whose curvature grows as k
    #: falls.
    left = 0.4
    #: A k below this share of the first one is zero, and only the largest loss counts.
    no_k = 1e-9


class LowestLoss:
    """Constants of searches for the lowest loss."""

    #: Rows of a sample that gives a start, at least.
    least_sample = 1_000
    #: The same for each parameter.
    rows_per_parameter = 12
    #: It is worth its time on data of this multiple of the sample.
    worth_it = 4
    #: A margin at which every loss that tends to zero has underflowed.
    far = 1_000.0
    #: A margin at which only a loss is zero that is exactly zero from some margin on.
    near = 50.0
    #: Accuracy of a start.
    rough = 1e-2
    #: Share of the loss of the zero model that is zero but for rounding.
    zero = 1e-9


class LeastFragility:
    """Constants of searches for the least fragility under KL."""

    #: The fragility is settled when its error is this share of the tolerance. Errors of
    #: coefficients are as its root, and have digits, too, as one more step is taken.
    settled = 1e-2
    #: Never finer than this.
    rounding = 1e-13
    #: Excess of the largest loss over the target, in units of the room below the target, up to
    #: which sums about the largest loss are exact to 13 digits.
    delicate = 1e3
    #: Steps to a root that is near, and to a start.
    few_steps = 8
    #: First shrinkage of a start.
    shrinkage = 0.1
    #: How much of it is left after one more at least.
    at_once = 0.6
    #: How near a start is brought to the least fragility, relatively.
    rough = 5e-3


class Newton:
    """Constants of Newton's method."""

    #: Curvatures below this share of the largest are zero but for rounding.
    no_curvature = 1e-13
    #: Curvature that replaces them at first where the slope is not zero, as before the corner of
    #: a hinge.
    stand_in = 1e-6
    #: The factor by which it falls while steps are good.
    factor = 30.0
    #: Its floor.
    floor = 1e-18
    #: A Hessian serves again while it makes the gap fall at least this much.
    good_enough = 0.1
    #: It costs as much as one step per this many parameters, or samples if it is of low rank: no
    #: more steps are made to be without one.
    parameters_per_step = 10
    samples_per_step = 200
    #: So many rough Hessians, then exact ones.
    rough = 5
    #: How often a minimum is checked again with a new curvature.
    doubts = 3


class LeastNorms:
    """Constants of searches for the least norm under Wasserstein."""

    #: A Hessian serves again while it makes the error fall at least this much.
    good_enough = 0.01
    #: Multiplications in a Hessian that cost no more than a search in an ellipsoid.
    cheap = 1e8
    #: The norm is settled when its error is this share of the tolerance. Errors of coefficients
    #: are as its root, so they have digits, too.
    settled = 1e-3
    #: Never finer than this.
    rounding = 1e-12
    #: Accuracy of the least norm of the first model of the loss, and of others that are still far
    #: off: the next model gains more than what is left. Where curvatures jump it may not.
    first, early = 1e-2, 1e-5
    first_with_jumps, early_with_jumps = 1e-4, 1e-6
    #: No more is asked of a norm; of one that is nearly zero, relative to the norm of the start.
    digits = 1e-8
    #: Steps without progress after which the search gives up.
    patience = 4
    #: Damping to begin with where it is needed.
    damped = 1e-4
    #: The factor by which it changes.
    factor = 30.0


class Faces:
    """Constants of searches for the face of a ball."""

    #: Entries of at least this share of the largest are held there at first. To hold too many
    #: costs a try, too few may lead nowhere.
    long = 0.5
    #: Entries below this share of the largest are held at zero at first.
    short = 0.01
    #: If so many free entries lead nowhere: parts of them.
    parts = (1, 4, 16)
    #: Share of the entries on the wrong side that change it at least.
    least_share = 0.125
    #: Rounding that does not break a condition.
    exact = 1e-10


class QuadraticModels:
    """Constants of quadratic models of the loss."""

    #: How exactly the target is met in the end, relatively.
    exact = 1e-12
    #: Curvature, as a share of the mean one, that stands in where there is none.
    stand_in = 1e-9
