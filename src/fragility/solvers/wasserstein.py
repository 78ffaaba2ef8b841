r"""Robust satisficing under Wasserstein ambiguity: the model of least norm that meets the target.

.. math:: \min_\theta \max_{i<j} \lVert \beta_i - \beta_j \rVert_* \quad\text{s.t.}\quad
          L(\theta) \le \tau .

Each step replaces the loss by its quadratic model, exact or a little old, which makes the problem
one of least norm in an ellipsoid, of a size that does not depend on the number of samples. Between
two of them the model's errors fall quadratically, so a handful of passes over the data suffices.
"""

from __future__ import annotations

from math import inf

from .._typing import Floats
from ..programs.low_rank import LowRank
from ..programs.objective import Evaluation
from ..programs.satisficing import Found, SatisficingProgram
from .feasible import meeting
from .geometry import Geometry, Model
from .newton import Curvature
from .searching import Search
from .tuning import LeastNorms as Tuning


class LeastNormSearch:
    """Search for the model of least norm whose penalised mean loss meets the target.

    It steps from one quadratic model of the loss to the next.

    Parameters
    ----------
    program : SatisficingProgram
        Under `Wasserstein` ambiguity.
    start : Evaluation
        A model that meets the target with room to spare.
    tol : float
        Accuracy of the norm, relative.
    hessian : ndarray or LowRank, optional
        At or near the start.
    underdetermined : bool
        Whether different coefficients may have the same loss: the shortest are wanted then.
    inside : Evaluation, optional
        A model that meets the target with room to spare, where the start need not because it is
        next to the solution.
    alike : ndarray, optional
        Parameters with the zeros or largest entries that the solution likely has.
    """

    def __init__(
        self,
        program: SatisficingProgram,
        start: Evaluation,
        *,
        tol: float,
        hessian: Floats | LowRank | None = None,
        underdetermined: bool = False,
        inside: Evaluation | None = None,
        alike: Floats | None = None,
    ) -> None:
        self.objective, self.target = program.objective, program.target.value
        self.tol, self.alike = tol, alike
        self.near_solution = inside is not None
        self.settled = max(Tuning.settled * tol, Tuning.rounding)
        self.inside = start if inside is None else inside
        headroom = max(self.target - self.inside.value, 1e-9 * self.target)
        self.geometry = Geometry(program, underdetermined, headroom)
        self.point, self.k = start, self.geometry.norm(start)
        self.hessian = start.structured_hessian if hessian is None else hessian
        self.curvature = Curvature(self.objective.fixed_gauge(self.hessian))
        self.fresh, self.stalled, self.multiplier = hessian is None, 0, 0.0
        # The weight of a violation must be above what the violation can gain. As the least norm is
        # convex in the target, the gain is at most what a model inside gives.
        self.penalty_weight = self.geometry.norm(self.inside) / headroom
        first, early = Tuning.first, Tuning.early
        if self.objective.loss.curvature_jumps:
            first, early = Tuning.first_with_jumps, Tuning.early_with_jumps
        self.early = max(self.settled, early)
        # Next to the solution the first step may be the last.
        self.accuracy = max(self.settled, 1e-6) if self.near_solution else first
        self.damping = Tuning.damped if self.curvature.singular else 0.0
        self.unit = float(self.hessian.trace()) / len(self.hessian) or 1.0

    def run(self, max_iter: int) -> Search[Found]:
        """Search for at most this number of steps."""
        iteration, gap = 0, inf
        while iteration < max_iter:
            iteration += 1
            model = yield from self._model()
            gain, self.multiplier = self._gain(model), model.multiplier
            if self.fresh and model.multiplier > 0.0 and abs(gain) <= self.settled * self.k:
                gap = abs(gain)
                break
            self.penalty_weight = max(self.penalty_weight, 2.0 * model.multiplier)
            trial, length = self._shortened(model)
            if trial is None and self._raise_damping():
                continue
            if trial is None or self.stalled == Tuning.patience:
                gap = yield from self._last_look()
                break
            gap = self._take(trial, length, model)
            if gap <= self.settled * self.k and not self.objective.loss.curvature_jumps:
                break
        else:
            gap = yield from self._last_look()
        # The rest of the miss is corrected at the rate of the optimum: only its square counts.
        # Where many models are solved for, a loss within the tolerance of its target is enough.
        exact = {"exact": self.settled, "aim": 0.5} if self.near_solution else {}
        point = self.geometry.scaled(self.point, **exact)
        point = meeting(point, self.inside, self.target)
        k = self.geometry.norm(point)
        converged = gap <= max(
            max(self.tol, Tuning.digits) * k, 0.1 * Tuning.digits * self.geometry.norm(self.inside)
        )
        return Found(point, k, gap, iteration, converged, self.hessian)

    def _renew(self, damping: float | None = None) -> None:
        """The model of the loss at the present point, damped by what is given or needed."""
        self.hessian, self.fresh = self.point.structured_hessian, True
        self.curvature = Curvature(self.objective.fixed_gauge(self.hessian))
        # Damping is in units of the curvature, which weights of classes make small.
        self.unit = float(self.hessian.trace()) / len(self.hessian) or self.unit
        if damping is not None:
            self.damping = damping
        if self.curvature.singular:
            least = (
                Tuning.damped if self.damping == 0.0 and damping is None else 1e-6 * Tuning.damped
            )
            self.damping = max(self.damping, least)

    def _model(self) -> Search[Model]:
        damping = self.damping * self.unit
        alike, self.alike = self.alike, None  # after a step its own end is
        step = self.geometry.step(self.point, self.hessian, self.accuracy, damping, alike)
        return (yield from step)

    def _gain(self, model: Model) -> float:
        """How much the norm may still fall at the same loss."""
        return self.k + model.multiplier * (self.point.value - self.target) - model.norm

    def _last_look(self) -> Search[float]:
        """The gap of a search that ends early: what an undamped, accurate model still gains."""
        proven = self.geometry.duality_gap(self.point)
        if proven <= self.tol * self.k:
            return proven
        self._renew(damping=0.0)
        self.accuracy = self.settled
        model = yield from self._model()
        return abs(self._gain(model))

    def _merit(self, point: Evaluation, k: float) -> float:
        """The norm with an exact penalty for a violation."""
        return k + self.penalty_weight * max(0.0, point.value - self.target)

    def _shortened(self, model: Model) -> tuple[Evaluation | None, float]:
        """A point on the way to the model's optimum that is low enough; None if there is none."""
        merit = self._merit(self.point, self.k)
        length, move = 1.0, model.parameters - self.point.parameters
        while length >= 1e-8:
            trial = self.objective.at(self.point.parameters + length * move)
            reached = self._merit(trial, self.geometry.norm(trial))
            if reached <= merit - 1e-4 * length * (merit - model.norm):
                self.stalled = self.stalled + 1 if merit - reached <= Tuning.rounding * merit else 0
                return trial, length
            length /= 2.0
        return None, length

    def _raise_damping(self) -> bool:
        """After a failed step, renew the model, or damp a new one more; False at the limit."""
        if self.fresh:
            if self.damping >= 1.0:
                return False
            self.damping = max(Tuning.damped, Tuning.factor * self.damping)
        self._renew()
        return True

    def _missed(self, trial: Evaluation, turned: Floats) -> float:
        """Square of what the gradient turned out to be, less what the model said it would."""
        hessian, point = self.hessian, self.point
        if isinstance(hessian, LowRank) and hessian.weights.all():
            # By scores it is never less: no system need be solved.
            told = hessian.weights * (trial.scores - point.scores)
            surprise = self.objective.rows.weights * (trial.slopes - point.slopes) - told
            return float(surprise @ (surprise / hessian.weights))
        surprise = trial.gradient - point.gradient - turned
        return -float(surprise @ self.curvature.step(surprise))

    def _take(self, trial: Evaluation, length: float, model: Model) -> float:
        """Move on, renew the Hessian if it pays, and estimate the gap at the new point."""
        self.damping *= 1.0 / Tuning.factor if length == 1.0 else Tuning.factor
        move = trial.parameters - self.point.parameters
        turned = self.hessian @ move
        missed = self._missed(trial, turned)
        contraction = missed / max(float(move @ turned), 1e-300)
        self.point, self.k = trial, self.geometry.norm(trial)
        self.fresh = False
        miss = (trial.value - self.target) ** 2 / self.geometry.headroom
        gap = inf
        if length == 1.0 and model.multiplier > 0.0:
            gap = model.multiplier * (missed + miss)
        near = gap <= self.settled * self.k
        if near and not self.objective.loss.curvature_jumps:
            return gap
        self.accuracy = self.settled if gap <= 1e-2 * self.k else self.early
        cheap = self.objective.rows.y.size * self.objective.size**2 <= Tuning.cheap
        unfinished = gap * contraction > self.settled * self.k
        if near:  # where curvatures jump, only a new one without damping proves anything
            self._renew(damping=0.0)
        elif gap == inf or contraction > Tuning.good_enough or (unfinished and cheap):
            self._renew()
        return gap
