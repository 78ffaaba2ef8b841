r"""What is known of the least fragility at a target: the multipliers that prove it.

By `tangents` every model with loss :math:`F(\theta', k') \le \tau` has
:math:`\langle M, \theta' \rangle - k' \gamma \varphi \le \tau - c`. Where M is made of moves
:math:`P_{ij}` of pairs of classes, :math:`M = -\sum_{ij} P_{ij} \otimes (e_i - e_j)`, and nothing
of it is left on the intercept and on features that cannot shift, its product with a model is at
least :math:`-k' \sum_{ij} \lVert P_{ij} \rVert`, so that

.. math:: k' \ge \frac{c - \tau}{r}, \qquad
          r = \sum_{ij} \lVert P_{ij} \rVert + \gamma \varphi .

At the least fragile model the two sides are equal, r is the critical distance
:math:`1 / |dk^*/d\tau|`, and :math:`P_{ij}` is how far, on average, the worst case moves samples
along the steepest way between the classes i and j. Under KL the weights q of the worst case take
the place of a, M vanishes, and r is the divergence of q.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, nan
from typing import Protocol

import numpy as np
from scipy.special import rel_entr

from .._typing import Floats, Indices
from ..ambiguity import Ambiguity, Transport, Wasserstein
from ..losses import LipschitzLoss
from ..programs.objective import Evaluation, Objective
from ..programs.satisficing import Outcome, SatisficingProgram, Solution
from .balance import Balance, balanced
from .norm_cones import Shape
from .robust import fragility_of
from .tangents import Tangent

#: Left over where nothing may be, as a share of what cancels: rounding.
_ROUNDING = 1e-12
#: Where classes are told apart each step leaves a third of the gradient.
_NEWTON_STEPS, _LEVEL_STEPS = 20, 4
#: Attempts to balance slopes and moves, unless what is proved is this near to the fragility.
_ROUNDS, _ENOUGH = 3, 1e-10
#: Parameters that may step at most, and how far as a share of the model.
_FEW, _FURTHEST = 1_500, 1e-2
#: Directions of less than this share of the largest curvature have none.
_SINGULAR = 1e-11


@dataclass(frozen=True, eq=False)
class PairMoves:
    """How the worst case moves samples between two classes.

    Attributes
    ----------
    first, second : int
        Places of the classes. Two classes are 1 and 0: their one score is that of class 1.
    distance : float
        Average distance of these moves, over the weight of all samples.
    direction : ndarray of shape (d,)
        Way of one unit of distance along which the score of `first` gains most on that of `second`,
        in the units of the features as given (of a priced intercept the last one is the constant).
    """

    first: int
    second: int
    distance: float
    direction: Floats


@dataclass(frozen=True, eq=False)
class Multipliers:
    """What proves how fragile a model must be that meets a target.

    Attributes
    ----------
    fragility : float
        Of the model that they belong to.
    lower : float
        No model that meets the target has a lower fragility, whatever the model is and however it
        was found. NaN if nothing was proved.
    critical_distance : float
        How far the worst case is from the data where this is proved; NaN if it is not.
    moves : tuple of PairMoves
        Empty under KL.
    flipped : float
        Weight of the samples that get another label.
    shares : ndarray of shape (n, C)
        Share of each label in each row of the objective.
    weights : ndarray of shape (n,)
        Weights of the rows in the worst case.
    """

    fragility: float
    lower: float
    critical_distance: float
    moves: tuple[PairMoves, ...]
    flipped: float
    shares: Floats
    weights: Floats


class Certified(Protocol):
    """What a certificate says of a model and its samples."""

    @property
    def fragility(self) -> float: ...
    @property
    def weights(self) -> Floats: ...
    def worst_case_weights(self) -> Floats: ...


def critical_distance(
    program: SatisficingProgram, solution: Solution, certificate: Certified
) -> float:
    r"""One over :math:`|dk^*/d\tau|` at a solution; NaN if no target changes its fragility k.

    By the solver's own multiplier if it has one. Under KL it is the divergence of the worst case,
    of which the certificate knows the weights. Where all is smooth, the plane that touches the
    loss at the model does: :math:`-\langle \theta, \nabla F \rangle / k`.
    """
    objective, ambiguity, target = program.objective, program.ambiguity, program.target.value
    k = certificate.fragility
    if solution.outcome not in (Outcome.SOLVED, Outcome.UNSETTLED) or not 0.0 < k < inf:
        return nan
    if solution.slope is not None:
        return 1.0 / solution.slope
    if isinstance(ambiguity, Transport) or isinstance(objective.loss, LipschitzLoss):
        return nan
    if isinstance(ambiguity, Wasserstein) and ambiguity.by_paper:
        return nan  # of another program than the fragility is of
    if ambiguity.reweights:
        return float(rel_entr(certificate.worst_case_weights(), certificate.weights).sum())
    if objective.is_smooth and solution.solver == "newton":
        point = objective.at(solution.parameters)
        # The product of gradient and parameters, by scores: no sum over the features.
        by_scores = (point.slopes * point.scores).reshape(point.losses.size, -1).sum(axis=1)
        ridge = 2.0 * objective.ridge_value(point.parameters)
        return -(float(objective.rows.weights @ by_scores) + ridge) / k
    return multipliers_of(objective, ambiguity, solution.parameters, target).critical_distance


def multipliers_of(
    objective: Objective, ambiguity: Ambiguity, parameters: Floats, target: float
) -> Multipliers:
    """The multipliers at a model, which should be nearly the least fragile one at the target."""
    point = objective.at(parameters)
    k = fragility_of(ambiguity, point, target)
    tangent = Tangent.at(objective, parameters, k, ambiguity.label_cost)
    nothing = Multipliers(
        k, nan, nan, (), tangent.flipped, tangent.relabelled(), objective.rows.weights
    )
    if not 0.0 < k < inf:
        return nothing
    if ambiguity.reweights:
        return _of_weights(tangent, ambiguity, point, k, target) or nothing
    return _of_moves(tangent, ambiguity, k, target) or nothing


def _of_moves(
    tangent: Tangent, ambiguity: Ambiguity, k: float, target: float
) -> Multipliers | None:
    objective, label_cost = tangent.objective, ambiguity.label_cost
    shape = Shape.of(objective, ambiguity)
    still = np.setdiff1d(np.arange(objective.size), shape.moves)
    best = None
    for _ in range(_ROUNDS):
        tangent, balance = balanced(tangent, shape, k, label_cost)
        found = _proved(_stilled(tangent, still), balance, still, k, label_cost, target)
        if found is not None and (best is None or found.lower > best.lower):
            best = found
            if best.lower >= (1.0 - _ENOUGH) * k:
                break
        tangent = _stepped(tangent, balance, k)
    return best


def _stepped(tangent: Tangent, balance: Balance, k: float) -> Tangent:
    """Tangent at a model near it where steepest moves alone balance the gradient: Newton's step."""
    objective = tangent.objective
    bends = tangent.pieces.bends or tangent.pieces.shared is not None
    if not bends or objective.size > _FEW:
        return tangent
    if len(balance.table) == 1:
        moves = balance.moved_to(tangent.gradient, inf)
        assert moves is not None
        balance = moves
    taken, bend = balance.steepest(tangent.parameters, k)
    left = tangent.gradient + taken
    free = (objective.lasso_weights == 0.0) | (tangent.parameters != 0.0)
    columns = np.arange(objective.size // objective.n_outputs)
    hessian = tangent.curvature(columns)
    hessian[np.diag_indices(objective.size)] += objective.ridge
    hessian = objective.fixed_gauge(hessian + bend)[np.ix_(free, free)]
    parameters = tangent.parameters.copy()
    parameters[free] -= np.linalg.lstsq(hessian, left[free], rcond=_SINGULAR)[0]
    far = np.abs(parameters - tangent.parameters).max()
    if not far <= _FURTHEST * np.abs(tangent.parameters).max():
        return tangent
    return tangent.moved_to(parameters)


def _proved(
    tangent: Tangent, balance: Balance, still: Indices, k: float, label_cost: float, target: float
) -> Multipliers | None:
    """What a tangent and moves that balance it prove; None if they do not."""
    gradient, flipped = tangent.gradient, tangent.flipped
    moves = balance.moved_to(gradient, _rounding(tangent))
    if moves is None or not _vanishes(tangent, gradient[still]):
        return None
    distances = moves.distances
    r = float(distances.sum()) + (label_cost * flipped if flipped > 0.0 else 0.0)
    if not r > 0.0:
        return None
    return Multipliers(
        k,
        (tangent.constant - target) / r,
        r,
        _in_user_units(tangent.objective, moves, distances),
        flipped,
        tangent.relabelled(),
        tangent.masses,
    )


def _of_weights(
    tangent: Tangent, ambiguity: Ambiguity, point: Evaluation, k: float, target: float
) -> Multipliers | None:
    own = tangent.objective.rows.weights
    tangent = replace(tangent, masses=ambiguity.tilt(point.losses, own, k))
    tangent, _ = balanced(tangent, None, k, inf)
    best = None
    # Weights nearby under which the gradient vanishes; or first a model where it does under these.
    for elsewhere in (False, True):
        start = _stilled(tangent, np.arange(tangent.objective.size)) if elsewhere else tangent
        level = _levelled(start)
        if level is None:
            continue
        r = float(rel_entr(level.masses, own).sum())
        if not r > 0.0:
            continue
        lower = (level.constant - target) / r
        if best is None or lower > best.lower:
            best = Multipliers(k, lower, r, (), 0.0, level.relabelled(), level.masses)
        if best.lower >= (1.0 - _ENOUGH) * k:
            break
    return best


def _levelled(tangent: Tangent) -> Tangent | None:
    """A tangent of weights nearby under which its gradient vanishes."""
    for _ in range(_LEVEL_STEPS):
        left = tangent.gradient
        if _vanishes(tangent, left):
            return tangent
        masses = _shifted(tangent, left)
        if masses is None:
            return None
        tangent = replace(tangent, masses=masses)
    return None


def _shifted(tangent: Tangent, left: Floats) -> Floats | None:
    """Weights nearest to the ones of a tangent that take what is left of its gradient."""
    objective, q, slopes = tangent.objective, tangent.masses, tangent.slopes
    first, second = np.tril_indices(len(slopes))

    def squares(part: slice) -> Floats:
        products: Floats = (slopes[first, part] * slopes[second, part] * q[part]).T
        return products

    gram = objective.collected_squares(squares)
    mean = objective.collected(slopes[0] * q if len(slopes) == 1 else slopes * q)
    spread = gram - np.multiply.outer(mean, mean)
    change = np.asarray(np.linalg.lstsq(spread, -left, rcond=1e-12)[0], dtype=np.float64)
    along = np.atleast_2d(objective.at(change).scores.T)
    factors = 1.0 + (slopes * along).sum(axis=0) - float(change @ mean)
    if not factors.min() > 0.0:
        return None
    masses: Floats = q * factors
    masses /= masses.sum()
    return masses


def _stilled(tangent: Tangent, still: Indices) -> Tangent:
    """Tangent at a model near it whose gradient vanishes on parameters that no move reaches."""
    objective = tangent.objective
    if not still.size or not (tangent.pieces.bends or tangent.pieces.shared or objective.alpha):
        return tangent
    width = objective.size // objective.n_outputs
    columns = np.unique(still % width)
    places = (np.arange(objective.n_outputs)[:, np.newaxis] * width + columns).ravel()
    # Where an absolute parameter is zero its subgradient keeps the balance.
    free = (objective.lasso_weights[places] == 0.0) | (tangent.parameters[places] != 0.0)
    places = places[free]
    for _ in range(_NEWTON_STEPS):
        left = tangent.gradient[places]
        if _vanishes(tangent, left):
            break
        hessian = tangent.curvature(columns)[np.ix_(free, free)]
        hessian[np.diag_indices(places.size)] += objective.ridge[places]
        parameters = tangent.parameters.copy()
        parameters[places] -= np.linalg.lstsq(hessian, left, rcond=1e-14)[0]
        after = tangent.moved_to(parameters)
        if not np.abs(after.gradient[places]).max() < np.abs(left).max():
            break
        tangent = after
    return tangent


def _vanishes(tangent: Tangent, left: Floats) -> bool:
    """Whether a part of the gradient is zero but for rounding."""
    return bool(np.abs(left).max(initial=0.0) <= _rounding(tangent))


def _rounding(tangent: Tangent) -> float:
    """What sums of slopes may be off by; columns are scaled to one."""
    return _ROUNDING * max(tangent.steepness, 1e-300)


def _in_user_units(
    objective: Objective, balance: Balance, distances: Floats
) -> tuple[PairMoves, ...]:
    """The moves of each pair of classes, for the features as given."""
    rows, shape, n_outputs = objective.rows, balance.shape, objective.n_outputs
    assert shape is not None
    place = shape.moves[: shape.moves.size // n_outputs]
    metric = shape.metric[: place.size] / objective.loss.steepness
    pairs = [(1, 0)] if n_outputs == 1 else np.transpose(np.triu_indices(n_outputs, 1)).tolist()
    found = []
    for (i, j), move, distance in zip(pairs, balance.table, distances, strict=True):
        if distance <= 0.0:
            continue
        # Features in their own units move by mobility along a plain direction.
        plain = np.zeros(rows.X.shape[1])
        plain[place] = metric * rows.scale[place] * move / distance
        way = plain if rows.space is None else rows.space.lift(plain[np.newaxis])[0]
        found.append(PairMoves(i, j, float(distance), way))
    return tuple(found)
