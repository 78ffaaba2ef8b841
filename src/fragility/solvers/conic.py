r"""The same programs through cvxpy: slow, independent, for a cross-check.

One small function lowers each loss to cones, another each ambiguity. cvxpy is an extra and is
imported when it is asked for, here and nowhere else.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np

from ..ambiguity import KL, Ambiguity, Wasserstein
from ..losses import CrossEntropy, Loss, SmoothedHinge
from ..moments import Floats
from ..programs.objective import Objective
from ..programs.satisficing import Outcome, SatisficingProgram, Solution

__all__ = ["refusal", "solve"]

#: Clarabel's own step first; shorter ones where exponential cones stall it.
_ATTEMPTS: tuple[dict[str, float], ...] = (
    {},
    {"max_step_fraction": 0.9},
    {"max_step_fraction": 0.8},
)


def refusal(loss: Loss) -> str | None:
    """Why a program is not lowered to cones, as a sentence; None if it is."""
    if type(loss) not in _LOSSES:
        return (
            f"solver='conic' knows the losses cross_entropy and smoothed_hinge; got {loss!r}. Use "
            "solver='newton', which takes any smooth loss."
        )
    return None


def solve(program: SatisficingProgram) -> Solution:
    """Solve a program by Clarabel, through cvxpy."""
    cp = _cvxpy()
    objective = program.objective
    coef = cp.Variable((objective.n_outputs, objective.rows.X.shape[1]))
    intercept = cp.Variable(objective.n_outputs)
    k = cp.Variable(nonneg=True)
    constraints = [] if objective.rows.fit_intercept else [intercept == 0.0]
    if objective.n_outputs > 1:
        constraints.append(cp.sum(intercept) == 0.0)
    losses = _losses(cp, objective, coef, intercept)
    ridge = objective.ridge.reshape(objective.n_outputs, -1)[:, : coef.shape[1]]
    penalty = 0.5 * cp.sum(cp.multiply(ridge, cp.square(coef)))
    lower = _AMBIGUITIES[type(program.ambiguity)]
    constraints += lower(cp, program, coef, losses, penalty, k)
    problem = cp.Problem(cp.Minimize(k), constraints)
    for options in _ATTEMPTS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of inaccuracy: the status says it, too
                problem.solve(solver=cp.CLARABEL, **options)
        except cp.error.SolverError:
            continue
        if problem.status == cp.OPTIMAL:
            break
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        how = f"ended with status {problem.status!r}" if problem.status else "failed"
        raise RuntimeError(f"The conic solver {how}. Use solver='newton'.")
    table = coef.value - coef.value.mean(axis=0) * (objective.n_outputs > 1)
    steps = int(problem.solver_stats.num_iters or 1)
    outcome = Outcome.SOLVED if problem.status == cp.OPTIMAL else Outcome.UNSETTLED
    return Solution(objective.join(table, intercept.value), outcome, steps, "conic", nan)


def _cvxpy() -> Any:
    try:
        import cvxpy
    except ImportError as error:
        raise ImportError(
            "solver='conic' needs cvxpy, which is not installed: pip install \"fragility[conic]\""
        ) from error
    return cvxpy


def _losses(cp: Any, objective: Objective, coef: Any, intercept: Any) -> Any:
    """Upper bounds of the losses, which are tight where a constraint holds them down."""
    rows = objective.rows
    scores = rows.X @ coef.T + np.ones((rows.y.size, 1)) @ cp.reshape(
        intercept, (1, objective.n_outputs), order="C"
    )
    return _LOSSES[type(objective.loss)](cp, objective.loss, scores, rows.y)


def _cross_entropy(cp: Any, loss: CrossEntropy, scores: Any, y: Floats) -> Any:
    if scores.shape[1] == 1:
        return cp.logistic(cp.multiply(np.where(y == 1, -1.0, 1.0), scores[:, 0]))
    own = cp.sum(cp.multiply(np.eye(scores.shape[1])[y], scores), axis=1)
    return cp.log_sum_exp(scores, axis=1) - own


def _smoothed_hinge(cp: Any, loss: SmoothedHinge, scores: Any, y: Floats) -> Any:
    # The maximum over shares that sum to at most one; t is the multiplier of that sum.
    t = cp.Variable(y.size, nonneg=True)
    if scores.shape[1] == 1:
        short = 1.0 - cp.multiply(np.where(y == 1, 1.0, -1.0), scores[:, 0])
        squares = cp.square(cp.pos(short - t))
    else:
        mine = np.eye(scores.shape[1])[y]
        wide = np.ones((1, scores.shape[1]))
        own = cp.sum(cp.multiply(mine, scores), axis=1, keepdims=True) @ wide
        short = 1.0 + scores - own - cp.reshape(t, (y.size, 1), order="C") @ wide
        squares = cp.sum(cp.multiply(1.0 - mine, cp.square(cp.pos(short))), axis=1)
    return t + squares / (2.0 * loss.smoothing)


def _kl(
    cp: Any,
    program: SatisficingProgram,
    coef: Any,
    losses: Any,
    penalty: Any,
    k: Any,
) -> list[Any]:
    # k ln Σ a exp((ℓ - room) / k) ≤ 0 in perspective: Σ a z ≤ k with k exp((ℓ - room) / k) ≤ z.
    weights = program.objective.rows.weights
    z, bound, room = cp.Variable(weights.size), cp.Variable(weights.size), cp.Variable()
    cone = cp.constraints.ExpCone(bound - room, k * np.ones(weights.size), z)
    return [losses <= bound, penalty <= program.target.value - room, cone, weights @ z <= k]


def _wasserstein(
    cp: Any,
    program: SatisficingProgram,
    coef: Any,
    losses: Any,
    penalty: Any,
    k: Any,
) -> list[Any]:
    objective, ambiguity = program.objective, program.ambiguity
    assert isinstance(ambiguity, Wasserstein)
    metric = ambiguity.mobility(coef.shape[1]) / objective.rows.scale
    dual = {1.0: "inf", 2.0: 2, inf: 1}[ambiguity.norm]
    if objective.n_outputs == 1:
        differences = [coef[0]]
    else:
        pairs = zip(*np.triu_indices(objective.n_outputs, 1), strict=True)
        differences = [coef[int(i)] - coef[int(j)] for i, j in pairs]
    mean = objective.rows.weights @ losses
    return [
        mean + penalty <= program.target.value,
        *(cp.norm(cp.multiply(metric, one), dual) <= k for one in differences),
    ]


_LOSSES: dict[type[Loss], Callable[..., Any]] = {
    CrossEntropy: _cross_entropy,
    SmoothedHinge: _smoothed_hinge,
}
_AMBIGUITIES: dict[type[Ambiguity], Callable[..., list[Any]]] = {
    KL: _kl,
    Wasserstein: _wasserstein,
}
