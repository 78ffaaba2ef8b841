r"""Programs of losses of which only a bound of the slope is known, through cvxpy.

.. math:: \min k \quad\text{s.t.}\quad
          \sum_n a_n \max_y \{\ell(u_n, y) - k \gamma 1(y \ne y_n)\} + R \le \tau,
          \quad \omega_1 \lVert B \rVert \le k

Losses of the library have cones. A function of the user is replaced by its tangents: each round
solves the program with those known so far, which is a lower bound, and adds the tangents at what it
found and at the nearest model that meets the target, which is an upper bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from scipy import sparse

from .._typing import Mask
from ..ambiguity import Ambiguity, LossProfile, Wasserstein
from ..losses import LipschitzLoss
from ..programs.objective import Evaluation, Objective
from ..programs.satisficing import Outcome, RobustProgram, SatisficingProgram, Solution
from .conic import DUAL, cvxpy_for, lowered, run_clarabel, why_not
from .erm import ReferenceModels, RiskMinimum, erm, trivial_model
from .feasible import first_share
from .searching import Search
from .starts import inside_of

#: Largest coefficient, for features of deviation one, of a model of the lowest loss: without any
#: limit the first tangents have no minimum, and some losses never have one.
_FARTHEST = 1e4
#: Steps by quadratic models, and rounds of tangents.
_STEPS, _ROUNDS = 20, 100
#: Accuracy of the lowest loss, relative.
_LOWEST = 1e-8


def check_known(loss: LipschitzLoss, ambiguity: Any, solver: str) -> None:
    """Refuse, before any data are seen, what has no form."""
    if not isinstance(ambiguity, Wasserstein):
        raise NotImplementedError(
            f"LipschitzLoss bounds what a loss gains as features move, under Wasserstein(); under "
            f"{ambiguity!r} nothing needs a bound: give the loss itself, as a Loss."
        )
    if solver not in ("auto", "conic"):
        raise NotImplementedError(
            f"LipschitzLoss is solved by cvxpy; give solver='auto' or 'conic', not {solver!r}."
        )
    cvxpy_for("LipschitzLoss")


def references(
    objective: Objective, ambiguity: Ambiguity, *, tol: float, max_iter: int
) -> Search[ReferenceModels]:
    """Models of the lowest loss: of all, and of those without features that may shift."""
    loss, fixed = objective.loss, ambiguity.fixed(objective.rows.X.shape[1])
    assert isinstance(loss, LipschitzLoss)
    assert isinstance(ambiguity, Wasserstein)
    loss.check(objective.rows.n_classes, ambiguity.norm)
    if loss.known is not None:
        plain = replace(objective, loss=loss.known)
        zero = np.zeros(objective.size)
        known = yield from erm(plain, zero, tol=tol, max_iter=max_iter)
        none = yield from trivial_model(plain, fixed, max_iter=max_iter)
        point, trivial = objective.at(known.point.parameters), objective.at(none.parameters)
        return ReferenceModels(known._replace(point=point, curvature=None), trivial)
    minimum = _lowest(objective, np.ones(fixed.size, dtype=bool), max_iter)
    nothing = _lowest(objective, fixed, max_iter)
    if minimum.loss > nothing.loss:
        minimum = nothing
    return ReferenceModels(minimum, nothing.point)


def solve(
    program: SatisficingProgram, references: ReferenceModels, *, tol: float, max_iter: int
) -> Solution:
    """Least bound of the fragility at a target."""
    objective, target = program.objective, program.target.value
    trivial = references.trivial
    if not program.target.learnable and program.target.tight:
        return Solution(trivial.parameters, Outcome.NOTHING_LEARNED, 1, "none")
    for none in (trivial, objective.at(np.zeros(objective.size))):
        if _fragility(program, none) == 0.0:
            return Solution(none.parameters, Outcome.TRIVIAL, 1, "none")
    inside = references.minimum.point
    if not inside.value < target:
        inside = inside_of(program, references.minimum, max_iter)
    far = _fragility(program, inside)
    if far == inf:  # the target is the lowest loss itself, and labels may move
        return Solution(inside.parameters, Outcome.UNSETTLED, 1, "conic", inf)
    assert isinstance(program.ambiguity, Wasserstein)
    model = _Model(objective, program.ambiguity)

    def met(point: Evaluation, k: float) -> tuple[Evaluation, float]:
        # At twice its fragility a model meets the target with room.
        nearest = _nearest(program, point, k, inside, 2.0 * far)
        return nearest, _fragility(program, nearest)

    def wanted(worst: Any) -> tuple[Any, list[Any], float]:
        return model.k_in_units, [worst <= target], model.unit

    return model.solved(wanted, met, inside, far, tol, max_iter)


def solve_robust(
    program: RobustProgram, references: ReferenceModels, *, tol: float, max_iter: int
) -> Solution:
    """Least bound of the worst-case loss in a ball."""
    assert isinstance(program.ambiguity, Wasserstein)
    model = _Model(program.objective, program.ambiguity)

    def met(point: Evaluation, value: float) -> tuple[Evaluation, float]:
        worst = program.ambiguity.worst_loss(profile_of(program.ambiguity, point), program.radius)
        return point, worst.value + point.penalty

    def wanted(worst: Any) -> tuple[Any, list[Any], float]:
        return model.k * program.radius + worst, [], 1.0

    trivial = references.trivial
    return model.solved(wanted, met, *met(trivial, 0.0), tol, max_iter)


def profile_of(ambiguity: Any, point: Evaluation) -> LossProfile:
    """The losses of a model, and the bound of their slope."""
    objective = point.objective
    assert isinstance(objective.loss, LipschitzLoss)
    coef, _ = objective.split(point.parameters)
    mobility = ambiguity.mobility(coef.shape[1]) / objective.rows.scale
    return LossProfile(
        point.losses,
        objective.rows.weights,
        objective.loss.reach(coef, ambiguity.norm, mobility),
        point.relabelled if ambiguity.moves_labels else None,
    )


def _fragility(program: SatisficingProgram, point: Evaluation) -> float:
    room = program.target.value - point.penalty
    return program.ambiguity.fragility(profile_of(program.ambiguity, point), room)


def _nearest(
    program: SatisficingProgram, point: Evaluation, k: float, inside: Evaluation, far: float
) -> Evaluation:
    """The first model with a k that meets the target, on the way to one that does."""
    ambiguity, objective = program.ambiguity, program.objective
    target, way = program.target.value, inside.parameters - point.parameters

    def meets(share: float) -> bool:
        there = objective.at(point.parameters + share * way)
        losses = there.losses
        if ambiguity.moves_labels:
            price = ambiguity.label_cost * (k + share * (far - k))
            losses = np.maximum(losses, there.relabelled - price)
        return float(objective.rows.weights @ losses) + there.penalty <= target

    return point if meets(0.0) else objective.at(point.parameters + first_share(meets) * way)


class _Model:
    """Variables of a linear model, and its losses as cones or by tangents."""

    def __init__(self, objective: Objective, ambiguity: Wasserstein | None) -> None:
        self.cp = cp = cvxpy_for("LipschitzLoss")
        rows, outputs = objective.rows, objective.n_outputs
        self.objective, self.loss = objective, objective.loss
        self.coef, self.intercept = cp.Variable((outputs, rows.X.shape[1])), cp.Variable(outputs)
        self.scores = cp.Variable((rows.y.size, outputs))
        self.losses, self.k_in_units = cp.Variable(rows.y.size), cp.Variable(nonneg=True)
        metric = 1.0 if ambiguity is None else ambiguity.mobility(rows.X.shape[1]) / rows.scale
        #: Or Clarabel takes a small fragility, of features in small units, for zero.
        self.unit = float(np.max(metric))
        self.k = self.unit * self.k_in_units
        ones = np.ones((rows.y.size, 1))
        shift = ones @ cp.reshape(self.intercept, (1, outputs), order="C")
        self.limits = [self.scores == rows.X @ self.coef.T + shift]
        if not rows.fit_intercept:
            self.limits.append(self.intercept == 0.0)
        size = 1.0 / rows.scale
        in_user_units = self.coef @ sparse.diags_array(size)
        self.worst = rows.weights @ self.losses
        if objective.alpha:
            self.worst += objective.alpha * cp.sum_squares(in_user_units)
        if objective.lasso:
            self.worst += objective.lasso * cp.sum(cp.abs(in_user_units))
        self.label_cost = inf if ambiguity is None else ambiguity.label_cost
        if ambiguity is not None:
            self.limits.append(self._reach(ambiguity, metric / self.unit) <= self.k_in_units)
        known = objective.loss.known if isinstance(objective.loss, LipschitzLoss) else None
        self.by_cones = known is not None and not why_not(known)
        if self.by_cones:
            for labels, cost in self._labels():
                lost = lowered(cp, known, self.scores, labels)  # type: ignore[arg-type]
                self.limits.append(lost - cost <= self.losses)
            if outputs > 1 and rows.fit_intercept:
                self.limits.append(cp.sum(self.intercept) == 0.0)
        else:
            self.limits += [cp.abs(part) <= _FARTHEST for part in (self.coef, self.intercept)]
        #: How many of them do not speak of losses.
        self.n_plain = len(self.limits)
        self.best, self.least, self.k_of_best, self.steps = objective.at(np.zeros(0)), inf, 0.0, 0

    def _labels(self) -> list[tuple[Any, Any]]:
        """The labels of the samples, in turn each they may get, and what that costs."""
        rows = self.objective.rows
        turns = range(1 if self.label_cost == inf else rows.n_classes)
        costs = [self.label_cost * self.k if turn else 0.0 for turn in turns]
        return [((rows.y + turn) % rows.n_classes, costs[turn]) for turn in turns]

    def _reach(self, ambiguity: Wasserstein, metric: Any) -> Any:
        """What a loss gains at most per unit of distance, with moves in some metric."""
        cp, loss, norm = self.cp, self.loss, float(ambiguity.norm)
        assert isinstance(loss, LipschitzLoss)
        moved = self.coef @ sparse.diags_array(metric)
        if self.coef.shape[0] == 1:
            norms = cp.norm(moved[0], DUAL[norm])
        else:
            norms = operator_norm_of(cp, moved, norm, loss.operator_norm)
        return loss.lipschitz_in(norm, self.objective.rows.n_classes) * norms

    def _tangents(self, point: Evaluation) -> list[Any]:
        """Bounds of the losses from below: their tangents at a model, at every label."""
        cp, loss, scores = self.cp, self.loss, point.scores
        bounds = []
        for labels, cost in self._labels():
            slopes = loss.gradient(scores, labels).reshape(self.scores.shape)
            there = scores.reshape(self.scores.shape)
            base = loss.value(scores, labels) - (slopes * there).sum(axis=1)
            line = base + cp.sum(cp.multiply(slopes, self.scores), axis=1)
            bounds.append(line - cost <= self.losses)
        return bounds

    def solved(
        self,
        wanted: Callable[[Any], tuple[Any, list[Any], float]],
        met: Callable[[Evaluation, float], tuple[Evaluation, float]],
        start: Evaluation,
        value: float,
        tol: float,
        max_iter: int,
        scale: float = 0.0,
    ) -> Solution:
        """The best allowed model, by rounds of tangents where there are no cones.

        `wanted` makes of the worst loss what is minimised, bounds, and a unit of it; `met` makes of
        a model and the minimum of a round a model that is allowed, with its value. `start` is one.
        The accuracy `tol` is relative to the value, or to `scale` if that is more.
        """
        self.best, self.least, self.steps = start, value, 0
        if not self.by_cones:
            self._follow_curvature(wanted, met)
        gap = inf
        for _ in range(1 if self.by_cones else min(max_iter, _ROUNDS)):
            lower = self._run(wanted, self.worst, self.limits, not self.by_cones)
            point = self._found()
            nearest, _ = self._adopt(met, point, lower)
            gap = max(0.0, self.least - lower) / max(abs(self.least), scale, 1e-300)
            if gap <= tol:
                break
            if not self.by_cones:
                self.limits += self._tangents(point)
                self.limits += self._tangents(
                    self._half_way(point) if nearest is point else nearest
                )
        # Cones end at the accuracy of Clarabel, which certificates do not depend on.
        settled = gap <= (1e-4 if self.by_cones else tol)
        outcome = Outcome.SOLVED if settled else Outcome.UNSETTLED
        return Solution(self.best.parameters, outcome, self.steps, "conic", gap)

    def _follow_curvature(self, wanted: Any, met: Any) -> None:
        """Go where quadratic models of the worst loss lead, as long as that helps.

        Where a loss has corners it soon does not. Tangents at the end show how good it is.
        """
        self.limits += self._tangents(self.best)
        for _ in range(_STEPS):
            start, before, k = self.best, self.least, self.k_of_best
            try:
                value = self._run(wanted, *self._quadratic(start, k))
            except RuntimeError:
                return
            way, rise = self._found().parameters - start.parameters, value - before
            for share in (1.0, 0.5, 0.2):  # far away a quadratic model promises too much
                point = self.objective.at(start.parameters + share * way)
                nearest, there = self._adopt(met, point, before + share * rise)
                if there < before:
                    break
            self.limits += self._tangents(nearest)
            if not there < before - 1e-9 * abs(before):
                return

    def _run(self, wanted: Any, worst: Any, limits: list[Any], accurately: bool = False) -> float:
        minimised, bounds, unit = wanted(worst)
        problem = self.cp.Problem(self.cp.Minimize(minimised), [*limits, *bounds])
        run_clarabel(self.cp, problem, accurately=accurately)
        self.steps += int(problem.solver_stats.num_iters or 1)
        return float(unit * problem.value)

    def _found(self) -> Evaluation:
        return self.objective.at(self.objective.join(self.coef.value, self.intercept.value))

    def _adopt(self, met: Any, point: Evaluation, value: float) -> tuple[Evaluation, float]:
        """The nearest model that is allowed, and its value; the best so far is kept."""
        nearest, there = met(point, value)
        if there < self.least:
            self.best, self.least = nearest, there
            self.k_of_best = 0.0 if self.k.value is None else float(self.k.value)
        return nearest, there

    def _quadratic(self, point: Evaluation, k: float) -> tuple[Any, list[Any]]:
        """Model of the worst loss near a model: tangents at every label, and curvature.

        The curvature is that of the label of each sample that is worst there.
        """
        cp, objective, rows = self.cp, self.objective, self.objective.rows
        labels = rows.y
        if self.label_cost < inf:
            every = [self.loss.value(point.scores, labels) for labels, _ in self._labels()]
            prices = np.array([[0.0], *[[self.label_cost * k]] * (rows.n_classes - 1)])
            labels = (rows.y + (np.array(every) - prices).argmax(axis=0)) % rows.n_classes
        data = Objective(replace(rows, y=labels), objective.loss)
        values, vectors = np.linalg.eigh(data.at(point.parameters).hessian)
        root = vectors * np.sqrt(np.maximum(values, 0.0) / 2.0)
        table = self.coef
        if rows.fit_intercept:
            column = cp.reshape(self.intercept, (objective.n_outputs, 1), order="C")
            table = cp.hstack([table, column])
        step = cp.reshape(table, (objective.size,), order="C") - point.parameters
        plain = self.limits[: self.n_plain]
        return self.worst + cp.sum_squares(root.T @ step), [*plain, *self._tangents(point)]

    def _half_way(self, point: Evaluation) -> Evaluation:
        """Half way to the best model so far, where tangents help most."""
        return point.objective.at((point.parameters + self.best.parameters) / 2.0)


def operator_norm_of(cp: Any, coef: Any, norm: float, kind: str) -> Any:
    """The norm of `fragility.losses.lipschitz.operator_norm` for a variable (outputs, d)."""
    if kind == "frobenius":
        return cp.norm(coef, "fro")
    if norm == 2:
        return cp.sigma_max(coef)
    return cp.max(cp.sum(cp.abs(coef), axis=0 if norm == 1 else 1))


def _lowest(objective: Objective, allowed: Mask, max_iter: int) -> RiskMinimum:
    """The lowest loss of a function of the user, with some of the features."""
    model = _Model(objective, None)
    if not allowed.all():
        model.limits.insert(0, model.coef[:, np.flatnonzero(~allowed)] == 0.0)
        model.n_plain += 1

    def met(point: Evaluation, value: float) -> tuple[Evaluation, float]:
        return point, point.value

    zero = objective.at(np.zeros(objective.size))
    wanted = zero, zero.value, _LOWEST, max_iter, zero.value
    found = model.solved(lambda worst: (worst, [], 1.0), met, *wanted)
    point = objective.at(found.parameters)
    settled = found.outcome is Outcome.SOLVED
    attained = bool(np.abs(found.parameters).max(initial=0.0) < 0.99 * _FARTHEST)
    return RiskMinimum(point, None, point.value, found.iterations, settled, attained=attained)
