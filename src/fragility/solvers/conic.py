r"""The same programs through cvxpy: slow, independent, for a cross-check.

One small function lowers each loss to cones, another each ambiguity. cvxpy is an extra and is
imported when it is asked for, here and nowhere else.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import combinations
from math import inf, nan
from typing import Any

import numpy as np

from .._optional import needed_for
from .._typing import Floats
from ..ambiguity import KL, Ambiguity, Wasserstein
from ..losses import CrossEntropy, GapLoss, Hinge, Loss, MaxLogistic, SmoothedHinge
from ..losses.base import signs
from ..programs.satisficing import Outcome, RobustProgram, SatisficingProgram, Solution

#: Clarabel's own step first; shorter ones where exponential cones stall it.
_STEP_FRACTIONS = (0.99, 0.9, 0.8)


def why_not(loss: Loss) -> str:
    """Why a loss has no form as a conic program here; nothing if it has one."""
    if type(loss) in _LOSSES:
        return ""
    return (
        "solver='conic' knows the losses cross_entropy, smoothed_hinge, hinge and max_logistic; "
        f"got {loss!r}. Use solver='newton', which takes any smooth loss."
    )


def solve(program: SatisficingProgram) -> Solution:
    """Least fragility at a target, by Clarabel through cvxpy."""
    model = _Model(program)
    return model.solved(model.k, model.worst <= program.target.value)


def solve_robust(program: RobustProgram) -> Solution:
    """Least worst-case loss within a radius, by Clarabel through cvxpy."""
    model = _Model(program)
    return model.solved(model.k * program.radius + model.worst)


class _Model:
    """Variables of a linear model, expressions in them, and how the program is solved.

    `worst` is the largest penalised expected loss, less k times the distance.
    """

    def __init__(self, program: SatisficingProgram | RobustProgram) -> None:
        self.cp = cp = _cvxpy()
        self.objective = objective = program.objective
        rows, outputs = objective.rows, objective.n_outputs
        self.coef = cp.Variable((outputs, rows.X.shape[1]))
        self.intercept = cp.Variable(outputs)
        self.gauge = [] if rows.fit_intercept else [self.intercept == 0.0]
        if outputs > 1:
            self.gauge.append(cp.sum(self.intercept) == 0.0)
        self.scores = rows.X @ self.coef.T + np.ones((rows.y.size, 1)) @ cp.reshape(
            self.intercept, (1, outputs), order="C"
        )
        ridge = objective.ridge.reshape(outputs, -1)[:, : self.coef.shape[1]]
        penalty = 0.5 * cp.sum(cp.multiply(ridge, cp.square(self.coef)))
        if objective.lasso:
            in_user_units = np.tile(1.0 / rows.scale, (outputs, 1))
            penalty += objective.lasso * cp.sum(cp.abs(cp.multiply(in_user_units, self.coef)))
        self.k, ambiguity = cp.Variable(nonneg=True), program.ambiguity
        worst, self.limits = _AMBIGUITIES[type(ambiguity)](self, ambiguity, self.k)
        self.worst = worst + penalty

    def losses(self, relabelled: int = 0) -> Any:
        """Upper bounds of the losses, tight where a constraint holds them down.

        `relabelled` is the distance of the label from the true one, around the circle of classes.
        """
        rows, loss = self.objective.rows, self.objective.loss
        labels = (rows.y + relabelled) % rows.n_classes
        return _LOSSES[type(loss)](self.cp, loss, self.scores, labels)

    def solved(self, minimised: Any, *bounds: Any) -> Solution:
        cp, objective = self.cp, self.objective
        problem = cp.Problem(cp.Minimize(minimised), [*self.limits, *bounds, *self.gauge])
        for fraction in _STEP_FRACTIONS:
            try:
                with warnings.catch_warnings():
                    # The status reports inaccuracy as well.
                    warnings.simplefilter("ignore")
                    problem.solve(solver=cp.CLARABEL, max_step_fraction=fraction)
            except cp.error.SolverError:
                continue
            if problem.status == cp.OPTIMAL:
                break
        if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            how = f"ended with status {problem.status!r}" if problem.status else "failed"
            raise RuntimeError(f"The conic solver {how}. Use solver='auto'.")
        table = self.coef.value
        if objective.n_outputs > 1 and not objective.lasso:
            # A vector added to all classes changes no loss, and squares are least without it.
            # Absolute values are least at a median, which the solver has found.
            table = table - table.mean(axis=0)
        steps = int(problem.solver_stats.num_iters or 1)
        outcome = Outcome.SOLVED if problem.status == cp.OPTIMAL else Outcome.UNSETTLED
        parameters = objective.join(table, self.intercept.value)
        return Solution(parameters, outcome, steps, "conic", nan)


def _cvxpy() -> Any:
    with needed_for("solver='conic' needs cvxpy", "conic"):
        import cvxpy
    return cvxpy


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


def _kl(model: _Model, ambiguity: KL, k: Any) -> tuple[Any, list[Any]]:
    # s ≥ k ln Σ a exp(ℓ / k) in perspective: Σ a z ≤ k with k exp((ℓ - s) / k) ≤ z.
    cp, weights = model.cp, model.objective.rows.weights
    z, bound, worst = cp.Variable(weights.size), cp.Variable(weights.size), cp.Variable()
    cone = cp.constraints.ExpCone(bound - worst, k * np.ones(weights.size), z)
    return worst, [model.losses() <= bound, cone, weights @ z <= k]


def _wasserstein(model: _Model, ambiguity: Wasserstein, k: Any) -> tuple[Any, list[Any]]:
    cp, objective, coef = model.cp, model.objective, model.coef
    metric = ambiguity.mobility(coef.shape[1]) / objective.rows.scale
    dual = {1.0: "inf", 2.0: 2, inf: 1}[ambiguity.norm]
    classes = objective.rows.n_classes
    pairs, steepness = list(combinations(range(classes), 2)), objective.loss.pair_steepness(classes)
    slopes = [max(steepness[i, j], steepness[j, i]) for i, j in pairs]
    differences = [coef[0] if classes == 2 else coef[i] - coef[j] for i, j in pairs]
    losses = model.losses()
    if ambiguity.label_cost < inf:
        others = range(1, classes)
        losses = cp.maximum(losses, *(model.losses(i) - ambiguity.label_cost * k for i in others))
    sizes = [cp.norm(cp.multiply(metric, one), dual) for one in differences]
    reach = [slope * size <= k for slope, size in zip(slopes, sizes, strict=True)]
    return objective.rows.weights @ losses, reach


_LOSSES: dict[type[Loss], Callable[..., Any]] = {
    CrossEntropy: _cross_entropy,
    SmoothedHinge: _smoothed_hinge,
    Hinge: _hinge,
    MaxLogistic: _max_logistic,
}
_AMBIGUITIES: dict[type[Ambiguity], Callable[..., tuple[Any, list[Any]]]] = {
    KL: _kl,
    Wasserstein: _wasserstein,
}
