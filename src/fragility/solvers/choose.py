"""Which method solves which program, and what to say when none does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import Any, NamedTuple

import numpy as np

from .._typing import Floats
from ..ambiguity import KL, Ambiguity, Transport, Wasserstein
from ..losses import LipschitzLoss, Loss
from ..programs.low_rank import LowRank
from ..programs.objective import Evaluation, Objective
from ..programs.satisficing import (
    NO_HINT,
    Found,
    Hint,
    Outcome,
    RobustProgram,
    SatisficingProgram,
    Solution,
)
from ..programs.targets import Target
from . import conic, corners, kl, lipschitz, paper_labels, relabelling, transport, transport_profile
from .erm import (
    ReferenceModels,
    RiskMinimum,
    descend_below,
    least_norm_equivalent,
    same_for_all_labels,
    underdetermined,
)
from .feasible import first_below, first_share, meeting
from .interior_program import InteriorSolution
from .robust import fragility_of, profile_of, solve_robust, why_not_smooth
from .searching import Search
from .starts import inside_of, wasserstein_start
from .support_check import fits_inside
from .tuning import Labels as Tuning
from .wasserstein import LeastNormSearch

#: A fragility below this share of the target is zero but for rounding.
_NO_FRAGILITY = 1e-9


def solve(
    program: SatisficingProgram,
    references: ReferenceModels,
    *,
    solver: str,
    tol: float,
    max_iter: int,
    hint: Hint = NO_HINT,
    say: transport.Say | None = None,
) -> Search[Solution]:
    """Solve a program, with what is known of its solution."""
    target, objective = program.target, program.objective
    if paper_labels.applies(program.ambiguity):
        limits: Any = {"solver": solver, "tol": tol, "max_iter": max_iter}
        return (yield from _by_paper(program, references, limits))
    if isinstance(objective.loss, LipschitzLoss):
        return lipschitz.solve(program, references, tol=tol, max_iter=max_iter)
    method = _chosen(solver, objective, program.ambiguity)
    if program.ambiguity.moves_labels:
        safest = yield from same_for_all_labels(objective, max_iter=max_iter)
        if target.value >= _relabelled_mean(safest):
            return Solution(safest.parameters, Outcome.TRIVIAL, 1, "none")
    if target.tight and not target.learnable:
        return Solution(references.trivial.parameters, Outcome.NOTHING_LEARNED, 1, "none")
    features_only = not (program.ambiguity.reweights or program.ambiguity.moves_labels)
    if features_only and target.value >= target.trivial_loss:
        return Solution(references.trivial.parameters, Outcome.TRIVIAL, 1, "none")
    search = _Methods(program, references, tol, max_iter, say)
    return (yield from method.run(search, hint))


def _by_paper(
    program: SatisficingProgram, references: ReferenceModels, limits: Any
) -> Search[Solution]:
    """The same with the paper's label term, by programs where labels do not move."""
    objective, plain = program.objective, paper_labels.without_labels(program.ambiguity)
    raised = paper_labels.raised_by_labels(objective, program.ambiguity)

    def at_target(value: float, near: Solution | None) -> Search[Solution]:
        lower = SatisficingProgram(objective, plain, replace(program.target, value=value))
        hint = NO_HINT if near is None else Hint(near.parameters, near.curvature)
        return solve(lower, references, **limits, hint=hint)

    def in_ball(radius: float) -> Search[Solution]:
        solver = "auto" if limits["solver"] == "newton" else limits["solver"]
        ball = RobustProgram(objective, plain, radius)
        return solve_robust(ball, references, **{**limits, "solver": solver})

    found: Solution = yield from paper_labels.solve(program, raised, at_target, in_ball)
    return found


@dataclass(frozen=True, eq=False)
class _Methods:
    """A program that needs a search, and one method for each kind of search."""

    program: SatisficingProgram
    references: ReferenceModels
    tol: float
    max_iter: int
    say: transport.Say | None = None

    def by_transport(self) -> Search[Solution]:
        """General costs and supports, then the solution moved until it meets the target."""
        program, ambiguity = self.program, self.program.ambiguity
        assert isinstance(ambiguity, Transport)
        objective, target, minimum = self._parts
        free = ambiguity.free().solved_as(objective.loss)
        if ambiguity.support is not None and isinstance(free, Wasserstein):
            # Most often the worst case has room enough, and the support changes nothing.
            wide = replace(program, ambiguity=free)
            limits = {"solver": "auto", **self._limits}
            found = yield from solve(wide, self.references, **limits)
            place = objective, free, ambiguity.support, found.parameters, target.value
            if found.outcome is Outcome.SOLVED and fits_inside(*place):
                if self.say is not None:
                    self.say("the worst case fits inside the support, which changes nothing")
                return found
        inside = minimum.point if minimum.point.value < target.value else self._inside()
        solution = transport.solve(program, inside.parameters, self.say)
        point = objective.at(solution.parameters)
        return replace(solution, parameters=meeting(point, inside, target.value).parameters)

    def under_kl(self, hint: Hint) -> Search[Solution]:
        """Newton's method on the fragility itself."""
        (objective, target, minimum), (start, curvature, _) = self._parts, hint
        point = minimum.point if start is None else objective.at(start)
        if not point.value < target.value and target.value > target.erm_loss:
            bound = (target.value + target.erm_loss) / 2.0
            start = minimum.point.parameters
            point = descend_below(objective, start, bound, max_iter=self.max_iter)
            curvature = None
        found = kl.satisfice(objective, target.value, point, curvature=curvature, **self._limits)
        parameters = found.point.parameters
        if found.k <= _NO_FRAGILITY * target.value:
            short = yield from self._shortest_without_fragility(parameters)
            if short is not None:
                return replace(short, iterations=found.iterations + short.iterations)
        if underdetermined(objective, minimum):
            parameters = least_norm_equivalent(objective, parameters)
        settled = found.converged or (target.tight and found.k == inf)
        gap = found.gap / found.k if found.k < inf else inf
        return self._solution(parameters, settled, found, gap)

    def by_cones(self) -> Search[Solution]:
        """Solve with cvxpy, then move the solution until it meets the target exactly."""
        solution, target = conic.solve(self.program), self.program.target.value
        point = self.program.objective.at(solution.parameters)
        if not self.program.ambiguity.reweights:
            minimum = self.references.minimum.point
            inside = self._inside() if minimum.value > target else minimum
            return replace(solution, parameters=meeting(point, inside, target).parameters)
        short = None
        if float(point.losses.max()) + point.penalty <= target * (1.0 + 1e-6):
            short = yield from self._shortest_without_fragility(solution.parameters)
        return solution if short is None else replace(short, solver="conic")

    def under_wasserstein(self, hint: Hint) -> Search[Solution]:
        """Quadratic models of the loss, and their least norms."""
        (objective, target, minimum), (start, curvature, alike) = self._parts, hint
        ambiguity, inside = self.program.ambiguity, None
        hessian: Floats | LowRank | None = None
        if ambiguity.moves_labels and target.value >= target.trivial_loss:
            return (yield from self.with_corners())
        point = None if start is None else objective.at(start)
        if point is not None and not point.value < target.trivial_loss:
            point = None  # the hint is useless
        if point is not None and curvature is not None and minimum.point.value < target.value:
            hessian, inside = curvature, minimum.point
        elif point is not None and point.value < target.value:
            pass  # without a Hessian, but it meets the target
        elif minimum.curvature is not None and not minimum.curvature.singular:
            point, hessian = minimum.point, minimum.curvature.hessian
        else:
            point = yield from wasserstein_start(self.program, minimum, self.max_iter)
        search = LeastNormSearch(
            self.program,
            point,
            tol=self.tol,
            hessian=hessian,
            underdetermined=underdetermined(objective, minimum),
            inside=inside,
            alike=alike,
        )
        found = yield from search.run(self.max_iter)
        if ambiguity.moves_labels:
            # If no label moves at the fragility of features that move alone, this is the solution.
            profile = profile_of(ambiguity, found.point)
            room = target.value - found.point.penalty
            if ambiguity.fragility(profile, room) > profile.slope * (1.0 + 1e-12):
                solution = yield from self.with_corners(found.point, search.multiplier)
                return replace(solution, iterations=solution.iterations + found.iterations)
        gap, settled = found.gap / max(found.k, 1e-300), found.converged or target.tight
        return self._solution(found.point.parameters, settled, found, gap)

    def with_corners(
        self, near: Evaluation | None = None, multiplier: float = 0.0
    ) -> Search[Solution]:
        """The interior-point method; `near` is a model near the solution, if one is known.

        `multiplier` is about how fast the fragility falls there as the target rises.
        """
        program, (objective, target, minimum) = self.program, self._parts
        inside = minimum.point
        if inside.value >= target.value or (minimum.separable and not minimum.attained):
            inside = self._inside()
        reweights, short = program.ambiguity.reweights, None
        zero = objective.at(np.zeros(objective.size))
        if reweights and (minimum.separable or float(zero.losses.max()) <= target.value):
            short = yield from self._shortest_without_fragility(inside.parameters)
            if short is not None:
                return replace(short, solver="interior_point")
        found = None
        if near is not None and objective.loss.relabelled_by_gap:
            # Not all the way there, so that it meets the target with room. Few samples are dealt
            # with as they are; of many, most are left out.
            way = near.parameters - inside.parameters
            start = objective.at(inside.parameters + Tuning.near_share * way)
            if objective.rows.y.size <= Tuning.few_labels:
                found = yield from corners.satisfice(program, start, **self._limits)
            else:
                found = yield from relabelling.satisfice(
                    program, start, multiplier=multiplier, **self._limits
                )
        if found is None or not found.converged:
            found = yield from corners.satisfice(program, inside, **self._limits)
        if not (found.converged or reweights or target.tight):
            found = yield from self._from_nearer(found, inside)
        if reweights and not (found.converged and found.k > _NO_FRAGILITY * target.value):
            # Perhaps no loss need exceed the target at all.
            least = yield from corners.smallest_largest_loss(
                objective, inside.parameters, **self._limits
            )
            if least.cost < target.value:
                short = yield from self._shortest_without_fragility(least.parameters)
            if short is not None:
                return replace(short, solver="interior_point")
        parameters = meeting(objective.at(found.parameters), inside, target.value).parameters
        if reweights and underdetermined(objective, minimum):
            parameters = least_norm_equivalent(objective, parameters)
        outcome = Outcome.SOLVED if found.converged or target.tight else Outcome.UNSETTLED
        return Solution(
            parameters,
            outcome,
            found.iterations,
            "interior_point",
            found.gap,
            slope=found.multiplier or None,
        )

    def _from_nearer(self, found: InteriorSolution, inside: Evaluation) -> Search[InteriorSolution]:
        """The same from shorter models: from far out, where every label pays, no step may help."""
        program, (objective, target, _) = self.program, self._parts
        level = target.value - Tuning.shorter * (target.value - inside.value)
        zero = objective.at(np.zeros(objective.size))
        start = first_below(zero, inside, level, accuracy=0.01)
        for _ in range(2):
            other = yield from corners.satisfice(program, start, **self._limits)
            best = min(
                found, other, key=lambda one: (not one.converged, self._fragility(one, inside))
            )
            found = best._replace(iterations=found.iterations + other.iterations)
            if found.converged:
                break
            way = found.parameters - start.parameters
            start = objective.at(start.parameters + Tuning.near_share * way)
        return found

    def _fragility(self, found: InteriorSolution, inside: Evaluation) -> float:
        """Of a model, moved until it meets the target."""
        objective, target, _ = self._parts
        point = meeting(objective.at(found.parameters), inside, target.value)
        return fragility_of(self.program.ambiguity, point, target.value)

    @property
    def _parts(self) -> tuple[Objective, Target, RiskMinimum]:
        return self.program.objective, self.program.target, self.references.minimum

    @property
    def _limits(self) -> Any:
        return {"tol": self.tol, "max_iter": self.max_iter}

    def _solution(self, parameters: Floats, settled: bool, found: Found, gap: float) -> Solution:
        """What Newton's method found; its gap is relative."""
        outcome = Outcome.SOLVED if settled else Outcome.UNSETTLED
        return Solution(
            parameters, outcome, found.iterations, "newton", gap, found.k, found.curvature
        )

    def _inside(self) -> Evaluation:
        """A model half way between the lowest loss and the target."""
        return inside_of(self.program, self.references.minimum, self.max_iter)

    def _shortest_without_fragility(self, start: Floats) -> Search[Solution | None]:
        """The shortest model whose losses all meet the target, if there is one near a start."""
        objective, target = self.program.objective, self.program.target.value
        trivial, zero = self.references.trivial.parameters, np.zeros(objective.size)

        def met(parameters: Floats) -> bool:
            point = objective.at(parameters)
            return float(point.losses.max()) + point.penalty <= target

        parameters, iterations = zero, 1
        if not met(zero):
            if met(start):
                start = first_share(lambda share: met(share * start), accuracy=0.1) * start
            # Met to the last digit, or a fragility would be left.
            within = target * (1.0 - 1e-8)
            found = yield from corners.shortest_meeting(
                objective, within, start, tol=1e-6, max_iter=self.max_iter
            )
            parameters, iterations = found.parameters, found.iterations
            if not met(parameters):  # as near as rounding lets us
                if not met(start):
                    return None
                way = start - found.parameters
                share = first_share(lambda share: met(found.parameters + share * way))
                parameters = found.parameters + share * way
        coef, intercept = objective.split(parameters)
        alone = objective.join(np.zeros_like(coef), intercept)
        if met(alone):
            # No feature is needed: of the intercepts left, take the one of the lowest mean loss.
            shares = np.arange(64, 0, -1) / 64.0
            parameters = next((s * trivial for s in shares if met(s * trivial)), alone)
        return Solution(parameters, Outcome.NO_FRAGILITY, iterations, "newton")


class Solver(NamedTuple):
    """A method for some of the programs.

    Attributes
    ----------
    name : str
        By which users ask for it.
    why_not : callable
        Of the objective and the ambiguity: a sentence if it does not take them, else nothing.
    run : callable
        Solves a `_Methods`, with a hint if it can use one.
    taken : str
        When it may be: "always", "by name" only, or "unnamed" only.
    """

    name: str
    why_not: Callable[[Objective, Ambiguity], str]
    run: Callable[[_Methods, Hint], Search[Solution]]
    taken: str = "always"


def _not_kl(objective: Objective, ambiguity: Ambiguity) -> str:
    return why_not_smooth(objective, ambiguity) or (
        "" if ambiguity.reweights else "Features move: the fragility itself is not smooth."
    )


def _not_wasserstein(objective: Objective, ambiguity: Ambiguity) -> str:
    return why_not_smooth(objective, ambiguity) or (
        "Weights shift: there is no norm to minimise." if ambiguity.reweights else ""
    )


def _not_labels(objective: Objective, ambiguity: Ambiguity) -> str:
    if not ambiguity.moves_labels:
        return "Labels do not move."
    return "" if objective.is_smooth else "It begins with a smooth program, and this has corners."


def _not_transport(objective: Objective, ambiguity: Ambiguity) -> str:
    if not isinstance(ambiguity, Transport):
        return "There is neither a cost nor a support of its own."
    return transport_profile.why_not(objective.loss, ambiguity, objective.rows.n_classes)


#: In the order of choice: the first that takes a program solves it.
_TABLE = (
    Solver("newton", _not_kl, _Methods.under_kl),
    Solver("newton", _not_wasserstein, _Methods.under_wasserstein),
    # Labels that stay where they are first: most often that shows which of them may pay.
    Solver("interior_point", _not_labels, _Methods.under_wasserstein, "unnamed"),
    Solver("interior_point", lambda *_: "", lambda search, _: search.with_corners()),
    Solver(
        "conic",
        lambda objective, _: conic.why_not(objective.loss),
        lambda search, _: search.by_cones(),
        "by name",
    ),
)
_GENERAL = Solver("conic", _not_transport, lambda search, _: search.by_transport())
SOLVERS = ("auto", *dict.fromkeys(solver.name for solver in _TABLE))


def _chosen(name: str, objective: Objective, ambiguity: Ambiguity) -> Solver:
    """The first solver of a name, or for "auto" of any, that takes a program."""
    if isinstance(ambiguity, Transport):
        reason = _not_transport(objective, ambiguity)
        if name not in ("auto", "conic"):
            reason = f"solver={name!r} does not take {ambiguity!r}. Give solver='auto'."
        if reason:
            raise NotImplementedError(reason)
        return _GENERAL
    other = "by name" if name == "auto" else "unnamed"
    some = [s for s in _TABLE if s.taken != other and name in ("auto", s.name)]
    reasons = [solver.why_not(objective, ambiguity) for solver in some]
    for solver, reason in zip(some, reasons, strict=True):
        if not reason:
            return solver
    raise NotImplementedError(reasons[-1])


def check_solvable(loss: Loss, ambiguity: Ambiguity, solver: str) -> None:
    """Refuse, before any data are seen, what no solver or not the one that is asked for takes."""
    if type(ambiguity) not in (KL, Wasserstein, Transport):
        raise NotImplementedError(
            f"ambiguity must be KL(), Wasserstein() or Transport(); got {ambiguity!r}."
        )
    ambiguity = ambiguity.solved_as(loss)
    if isinstance(loss, LipschitzLoss):
        lipschitz.check_known(loss, ambiguity, solver)
        return
    if isinstance(ambiguity, Transport):
        reason = transport_profile.why_not(loss, ambiguity)
    else:
        reason = conic.why_not(loss) if solver == "conic" else ""
    if reason:
        raise NotImplementedError(reason)


def _relabelled_mean(point: Evaluation) -> float:
    """Mean loss of a model where every sample has its worst label."""
    worst = np.maximum(point.losses, point.relabelled)
    return float(point.objective.rows.weights @ worst) + point.penalty
