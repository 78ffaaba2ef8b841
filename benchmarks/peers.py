"""The training programs as other software solves them, for `training.py` to compare with."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import inf, nan
from time import process_time

import numpy as np

__all__ = ["PEERS", "Conic", "UnsolvedError", "conic"]

#: Share of the way to the boundary that Clarabel steps. Programs with exponential cones often fail
#: at its default, the first; shorter steps are slower and sometimes succeed.
_STEPS = (0.99, 0.9, 0.8)
#: The dual of each transport norm, as cvxpy names it.
_DUAL = {1: "inf", 2: 2, inf: 1}


class UnsolvedError(Exception):
    """A solver gave no answer; the message is a word or two for a table."""


@dataclass(frozen=True)
class Conic:
    """What cvxpy and Clarabel took and found (k, or the worst loss), and at which attempt."""

    seconds: float
    minimum: float
    attempt: int
    inaccurate: bool


def conic(
    X,
    y,
    *,
    loss: str,
    norm: float | None,
    label_cost: float,
    target: float,
    radius: float | None,
    penalty: str | None,
    alpha: float,
    limit: float,
) -> Conic:
    """Smallest k at a target, or with a radius the least worst loss; `norm` None: KL.

    Times the modelling and the solver, not the fit that the target comes from, and of several
    attempts the one that succeeded.
    """
    try:
        import cvxpy as cp
    except ImportError as error:
        raise UnsolvedError("not installed") from error
    start = process_time()
    n, d = X.shape
    n_classes = int(y.max()) + 1
    k = cp.Variable(nonneg=True)
    constraints = []
    if n_classes == 2:
        w, b = cp.Variable(d), cp.Variable()
        scores, B, differences = X @ w + b, w, [w]
    else:
        B, b = cp.Variable((d, n_classes)), cp.Variable((1, n_classes))
        scores = X @ B + np.ones((n, 1)) @ b
        # A vector added to all classes changes no loss: without this the solution is not unique.
        constraints += [cp.sum(b) == 0]
        if penalty != "l1":  # absolute values are least at a median, not at a mean
            constraints += [cp.sum(B, axis=1) == 0]
        differences = [B[:, i] - B[:, j] for i, j in combinations(range(n_classes), 2)]
    losses = _losses(cp, loss, scores, y, n_classes)
    if label_cost < inf:
        others = [(y + step) % n_classes for step in range(1, n_classes)]
        moved = [_losses(cp, loss, scores, o, n_classes) - label_cost * k for o in others]
        losses = cp.maximum(losses, *moved)
    paid = {None: 0.0, "l1": cp.sum(cp.abs(B)), "l2": cp.sum_squares(B)}[penalty] * alpha
    if norm is None:
        # k ln mean exp(l / k) <= level, with k exp((l - level) / k) <= z row by row
        bound, level, z = cp.Variable(n), cp.Variable(), cp.Variable(n)
        if radius is None:
            paid_at_most = cp.Variable()
            constraints += [paid <= paid_at_most]
            level = target - paid_at_most
        constraints += [
            losses <= bound,
            cp.constraints.ExpCone(bound - level, k * np.ones(n), z),
            cp.sum(z) / n <= k,
        ]
    else:
        level = cp.sum(losses) / n
        if radius is None:
            constraints += [level + paid <= target]
        constraints += [cp.norm(v, _DUAL[norm]) <= k for v in differences]
    minimised = k if radius is None else radius * k + level + paid
    problem = cp.Problem(cp.Minimize(minimised), constraints)
    modelling = process_time() - start
    for attempt, step in enumerate(_STEPS, 1):
        start = process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an inaccurate answer shows in the gap
            try:
                problem.solve(solver="CLARABEL", time_limit=limit, max_step_fraction=step)
            except cp.SolverError:
                continue
        if problem.status == "user_limit":
            raise UnsolvedError(f"over {limit:.0f} s")
        if problem.status in ("optimal", "optimal_inaccurate"):
            spent = modelling + process_time() - start
            return Conic(spent, float(problem.value), attempt, problem.status != "optimal")
    raise UnsolvedError("failed")


def _losses(cp, loss: str, scores, y, n_classes: int):
    """The losses under some labels, in cones."""
    unit = np.eye(n_classes)
    if n_classes == 2:
        gap = cp.multiply(np.where(y == 1, -1.0, 1.0), scores)
    elif loss == "cross_entropy":
        own = cp.sum(cp.multiply(unit[y], scores), axis=1)
        return cp.log_sum_exp(scores, axis=1) - own
    else:
        wrong = [(y + step) % n_classes for step in range(1, n_classes)]
        gap = cp.maximum(*(cp.sum(cp.multiply(unit[c] - unit[y], scores), axis=1) for c in wrong))
    return cp.pos(1.0 + gap) if loss == "hinge" else cp.logistic(gap)


def fit_dro(X, y, target_ratio: float) -> float:
    """Norm that ``dro`` reaches: the binary ℓ2 program without a penalty.

    `kappa` prices a move of the label; labels do not move here.
    """
    try:
        from dro.linear_model import WassersteinDROsatisficing
    except ImportError:
        try:
            from dro.src.linear_model.wasserstein_dro import WassersteinDROsatisficing
        except ImportError as error:
            raise UnsolvedError("not installed") from error
    # Its default solver, MOSEK, needs a licence.
    model = WassersteinDROsatisficing(
        input_dim=X.shape[1], model_type="logistic", solver="CLARABEL"
    )
    model.update({"target_ratio": target_ratio, "p": 2, "kappa": "inf"})
    model.fit(X, np.where(y == 1, 1.0, -1.0))
    return float(np.linalg.norm(model.theta))


def fit_skwdro(X, y, target_ratio: float) -> float:
    """``skwdro`` knows no target: robust logistic regression at a fixed radius stands for it."""
    try:
        from skwdro.linear_models import LogisticRegression
    except ImportError as error:
        raise UnsolvedError("not installed") from error
    LogisticRegression(rho=0.05, solver="dedicated").fit(X, np.where(y == 1, 1, -1))
    return nan


#: Name in the table, and the fit; each gets (X, y, target_ratio) and returns k or NaN.
PEERS: dict[str, Callable[..., float]] = {
    "`dro` WassersteinDROsatisficing, logistic, ℓ2": fit_dro,
    "`skwdro` LogisticRegression, dedicated solver, radius 0.05": fit_skwdro,
}
