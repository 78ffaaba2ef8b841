r"""The same programs through cvxpy: slow, independent, for a cross-check.

One small function lowers each loss to cones, another each ambiguity. cvxpy is an extra and is
imported when it is asked for, here and nowhere else.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from math import inf, nan
from typing import Any

import numpy as np

from .._optional import needed_for
from .._typing import Floats
from ..ambiguity import KL, Ambiguity, Transport, Wasserstein
from ..losses import CrossEntropy, GapLoss, Hinge, Loss, MaxLogistic, SmoothedHinge
from ..losses.base import signs
from ..programs.objective import Objective
from ..programs.satisficing import Outcome, RobustProgram, SatisficingProgram, Solution
from .transport_cones import CostUnits, PieceCones

#: Clarabel's own step first; shorter ones where exponential cones stall it.
_STEP_FRACTIONS = (0.99, 0.9, 0.8)
#: Tighter than Clarabel's own, 1e-8, where a certificate is made of what it finds.
_ACCURATE = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
#: Dual norms, as cvxpy names them.
DUAL: dict[float, Any] = {1.0: "inf", 2.0: 2, inf: 1}


def why_not(loss: Loss) -> str:
    """Why a loss has no form as a conic program here; nothing if it has one."""
    if type(loss) in _LOSSES:
        return ""
    return (
        "solver='conic' knows the losses cross_entropy, smoothed_hinge, hinge and max_logistic; "
        f"got {loss!r}. Use solver='newton', which takes any smooth loss."
    )


def solve(program: SatisficingProgram | RobustProgram) -> Solution:
    """Least fragility at a target, or least worst-case loss, by Clarabel through cvxpy."""
    model = _Model(program)
    if isinstance(program, RobustProgram):
        return model.solved(model.k * program.radius + model.worst)
    met = model.worst <= program.target.value
    solution = model.solved(model.k, met)
    slope = float(np.ravel(met.dual_value)[0])
    return replace(solution, slope=slope if slope > 0.0 else None)


class _Model:
    """Variables of a linear model, expressions in them, and how the program is solved.

    `worst` is the largest penalised expected loss, less k times the distance.
    """

    def __init__(self, program: SatisficingProgram | RobustProgram) -> None:
        self.cp = cp = cvxpy_for("General transport or solver='conic'")
        self.objective = objective = program.objective
        rows, outputs = objective.rows, objective.n_outputs
        self.coef = cp.Variable((outputs, rows.X.shape[1]))
        self.intercept = cp.Variable(outputs)
        self.gauge = [] if rows.fit_intercept else [self.intercept == 0.0]
        if outputs > 1:
            self.gauge.append(cp.sum(self.intercept) == 0.0)
            if not objective.lasso:  # which has a gauge of its own
                self.gauge.append(cp.sum(self.coef, axis=0) == 0.0)
        self.scores = rows.X @ self.coef.T + np.ones((rows.y.size, 1)) @ cp.reshape(
            self.intercept, (1, outputs), order="C"
        )
        ridge = objective.ridge.reshape(outputs, -1)[:, : self.coef.shape[1]]
        penalty = 0.5 * cp.sum(cp.multiply(ridge, cp.square(self.coef)))
        if objective.lasso:
            in_user_units = np.tile(1.0 / rows.scale, (outputs, 1))
            penalty += objective.lasso * cp.sum(cp.abs(cp.multiply(in_user_units, self.coef)))
        self.price = cp.Variable(nonneg=True)
        self.ambiguity = ambiguity = program.ambiguity
        self.k = self.price  # in the user's units
        worst, self.limits = _AMBIGUITIES[type(ambiguity)](self, ambiguity)
        self.worst = worst + penalty

    def losses(self, relabelled: int = 0) -> Any:
        """Upper bounds of the losses, tight where a constraint holds them down.

        `relabelled` is the distance of the label from the true one, around the circle of classes.
        """
        rows, loss = self.objective.rows, self.objective.loss
        labels = (rows.y + relabelled) % rows.n_classes
        return lowered(self.cp, loss, self.scores, labels)

    def solved(self, minimised: Any, *bounds: Any) -> Solution:
        cp, objective = self.cp, self.objective
        problem = cp.Problem(cp.Minimize(minimised), [*self.limits, *bounds, *self.gauge])
        advice = " Scale the features, or use solver='auto' if it was asked for."
        run_clarabel(cp, problem, advice, accurately=isinstance(self.ambiguity, Transport))
        table = self.coef.value
        if objective.n_outputs > 1 and not objective.lasso:
            # A vector added to all classes changes no loss, and squares are least without it.
            # Absolute values are least at a median, which the solver has found.
            table = table - table.mean(axis=0)
        steps = int(problem.solver_stats.num_iters or 1)
        outcome = Outcome.SOLVED if problem.status == cp.OPTIMAL else Outcome.UNSETTLED
        parameters = objective.join(table, self.intercept.value)
        return Solution(parameters, outcome, steps, "conic", nan)


def cvxpy_for(what: str) -> Any:
    """cvxpy, or an error that says what needs it."""
    with needed_for(f"{what} needs cvxpy", "conic"):
        import cvxpy
    return cvxpy


def run_clarabel(cp: Any, problem: Any, advice: str = "", *, accurately: bool = False) -> None:
    """Solve a problem as well as Clarabel can; its status says how well that is."""
    attempts: list[dict[str, Any]] = [{"max_step_fraction": step} for step in _STEP_FRACTIONS]
    if accurately:
        attempts.insert(0, _ACCURATE)
    for own in attempts:
        try:
            with warnings.catch_warnings():
                # The status reports inaccuracy as well.
                warnings.simplefilter("ignore")
                # Else the solver of the last attempt is kept, with its settings.
                problem.solve(solver=cp.CLARABEL, warm_start=False, **own)
        except cp.error.SolverError:
            continue
        if problem.status == cp.OPTIMAL:
            break
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        how = f"ended with status {problem.status!r}" if problem.status else "failed"
        raise RuntimeError(f"The conic solver {how}.{advice}")


def lowered(cp: Any, loss: Loss, scores: Any, y: Any) -> Any:
    """Losses of scores (n, outputs), a variable or an expression, with these labels."""
    return _LOSSES[type(loss)](cp, loss, scores, y)


def _cross_entropy(cp: Any, loss: CrossEntropy, scores: Any, y: Floats) -> Any:
    classes = max(2, scores.shape[1])
    logs = 0.0 if loss.pair_cost is None else np.log(loss.costs(y, classes))
    if classes == 2:
        return cp.logistic(cp.multiply(-signs(y), scores[:, 0]) + logs)
    own = cp.sum(cp.multiply(np.eye(classes)[y], scores), axis=1)
    return cp.log_sum_exp(scores + logs, axis=1) - own


def _smoothed_hinge(cp: Any, loss: SmoothedHinge, scores: Any, y: Floats) -> Any:
    # The maximum over shares that sum to at most one; t is the multiplier of that sum.
    t, classes = cp.Variable(y.size, nonneg=True), max(2, scores.shape[1])
    costs = 1.0 if loss.pair_cost is None else loss.costs(y, classes)
    if classes == 2:
        short = cp.multiply(costs, 1.0 - cp.multiply(signs(y), scores[:, 0]))
        squares = cp.square(cp.pos(short - t))
    else:
        mine, wide = np.eye(classes)[y], np.ones((1, classes))
        own = cp.sum(cp.multiply(mine, scores), axis=1, keepdims=True) @ wide
        price = cp.reshape(t, (y.size, 1), order="C") @ wide
        short = cp.multiply(costs, 1.0 + scores - own) - price
        squares = cp.sum(cp.multiply(1.0 - mine, cp.square(cp.pos(short))), axis=1)
    return t + squares / (2.0 * loss.smoothing)


def _hinge(cp: Any, loss: Hinge, scores: Any, y: Floats) -> Any:
    return cp.pos(_largest(cp, loss, scores, y, lambda gap: 1.0 + gap))


def _max_logistic(cp: Any, loss: MaxLogistic, scores: Any, y: Floats) -> Any:
    return _largest(cp, loss, scores, y, cp.logistic)


def _largest(cp: Any, loss: GapLoss, scores: Any, y: Any, piece: Callable[[Any], Any]) -> Any:
    """The largest piece of a loss: of how far the wrong classes are ahead of the true one."""
    classes = max(2, scores.shape[1])
    if classes == 2:
        gaps, others = [cp.multiply(-signs(y), scores[:, 0])], [1 - y]
    else:
        unit, others = np.eye(classes), [(y + step) % classes for step in range(1, classes)]
        gaps = [cp.sum(cp.multiply(unit[label] - unit[y], scores), axis=1) for label in others]
    if loss.pair_cost is None:  # the widest gap has the largest piece
        return piece(gaps[0] if classes == 2 else cp.maximum(*gaps))
    table, pairs = np.asarray(loss.pair_cost), zip(gaps, others, strict=True)
    pieces = [cp.multiply(table[y, label], piece(gap)) for gap, label in pairs]
    return pieces[0] if classes == 2 else cp.maximum(*pieces)


def _kl(model: _Model, ambiguity: KL) -> tuple[Any, list[Any]]:
    # s ≥ k ln Σ a exp(ℓ / k) in perspective: Σ a z ≤ k with k exp((ℓ - s) / k) ≤ z.
    cp, weights, k = model.cp, model.objective.rows.weights, model.k
    z, bound, worst = cp.Variable(weights.size), cp.Variable(weights.size), cp.Variable()
    cone = cp.constraints.ExpCone(bound - worst, k * np.ones(weights.size), z)
    return worst, [model.losses() <= bound, cone, weights @ z <= k]


def _wasserstein(model: _Model, ambiguity: Wasserstein) -> tuple[Any, list[Any]]:
    cp, objective, coef, k = model.cp, model.objective, model.coef, model.k
    metric = ambiguity.mobility(coef.shape[1]) / objective.rows.scale
    losses = _with_labels(model, ambiguity)
    sizes = [cp.norm(cp.multiply(metric, one), DUAL[ambiguity.norm]) for one in _differences(coef)]
    slopes = _pair_slopes(objective)
    reach = [slope * size <= k for slope, size in zip(slopes, sizes, strict=True)]
    return objective.rows.weights @ losses, reach


def _pair_slopes(objective: Objective) -> list[float]:
    """Steepest slope of the losses between each two classes."""
    classes = objective.rows.n_classes
    steepness = objective.loss.pair_steepness(classes)
    return [max(steepness[i, j], steepness[j, i]) for i, j in combinations(range(classes), 2)]


def _differences(coef: Any) -> list[Any]:
    if coef.shape[0] == 1:
        return [coef[0]]
    pairs = zip(*np.triu_indices(coef.shape[0], 1), strict=True)
    return [coef[int(i)] - coef[int(j)] for i, j in pairs]


def _with_labels(model: _Model, ambiguity: Ambiguity) -> Any:
    """Upper bounds of the losses, with other labels if these may move."""
    losses = model.losses()
    if ambiguity.label_cost < inf:
        others = range(1, model.objective.rows.n_classes)
        moved = (model.losses(i) - ambiguity.label_cost * model.k for i in others)
        losses = model.cp.maximum(losses, *moved)
    return losses


def _transport(model: _Model, ambiguity: Transport) -> tuple[Any, list[Any]]:
    cp, objective, rows = model.cp, model.objective, model.objective.rows
    units = CostUnits.of(rows.given, ambiguity, rows.scale)
    model.k = model.price / units.price
    factors = np.tile(units.unit / rows.scale, (objective.n_outputs, 1))
    slopes = cp.multiply(factors, model.coef)
    pieces = objective.loss.pieces(rows.n_classes)
    if pieces is None:  # a norm: any loss
        pairs = zip(_pair_slopes(objective), _differences(slopes), strict=True)
        differences = cp.vstack([steep * one[units.moving] for steep, one in pairs])
        _, reach = units.cost.cone(cp, differences, model.price)
        return rows.weights @ _with_labels(model, ambiguity), reach
    cones = PieceCones(
        cp, pieces, rows.y, model.scores, slopes, model.price, units, ambiguity.label_cost
    )
    return rows.weights @ cones.worst, cones.limits


_LOSSES: dict[type[Loss], Callable[..., Any]] = {
    CrossEntropy: _cross_entropy,
    SmoothedHinge: _smoothed_hinge,
    Hinge: _hinge,
    MaxLogistic: _max_logistic,
}
_AMBIGUITIES: dict[type[Ambiguity], Callable[..., tuple[Any, list[Any]]]] = {
    KL: _kl,
    Wasserstein: _wasserstein,
    Transport: _transport,
}
