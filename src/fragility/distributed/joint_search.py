r"""The least fragile model from few readings of the data.

A sample is solved in memory. Then each reading sums value, gradient and Hessian at the model of the
lowest loss and at the least fragile one together: the target follows from the first, and both take
Newton's step. The last reading sums the next models without Hessians, and is the certificate.

By convexity a mixture of two models has at most the mixture of their losses: a model that meets
the target just so is known without another reading.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np

from .._typing import Floats
from ..ambiguity import Ambiguity, LossProfile
from ..exceptions import InfeasibleTargetError
from ..linear_model.out_of_fold import N_FOLDS, OutOfFold, TargetOrigin
from ..programs.objective import Evaluation, Objective
from ..programs.row_sums import Request, RowSums, SummedPoint
from ..programs.satisficing import SatisficingProgram
from ..programs.targets import Target
from ..solvers.erm import ReferenceModels, RiskMinimum
from ..solvers.passes import NEARLY, LeastNorm, LeastTilt, LowestLoss
from .fold_losses import out_of_fold
from .mixtures import Reached, shortest_mixture

#: The target is known well enough to go for it, as a share of what can be learned.
_KNOWN, _KNOWN_BY_FOLDS = 0.05, 1e-3
#: Losses of the models of the last reading lie apart by this share of the target: at least, most.
_APART, _FURTHEST = 1e-7, 1e-4
#: Readings at most: a search that takes more leads nowhere.
_MOST_PASSES = 60
#: A gap of the lowest loss below this share of the trivial one is rounding.
_SETTLED = 1e-10

Sums = Callable[[list[Request]], list[RowSums]]


@dataclass
class Start:
    """Where searches begin: a sample that is solved in memory.

    Attributes
    ----------
    lowest : ndarray
        Its model of the lowest loss.
    solve : callable
        How its least fragile model, for a target that is given as wanted, differs from that of
        the lowest loss, and one over the fragility; None if there is none.
    losses : callable
        Its losses for any model, and their weights.
    """

    lowest: Floats
    solve: Callable[[dict[str, Any]], tuple[Floats, float] | None]
    losses: Callable[[Floats], tuple[Floats, Floats]]


class _Told(NamedTuple):
    """Sums, what they are of, and which search asked for them."""

    place: str
    request: Request
    sums: RowSums


class JointSearch:
    """Searches for the lowest loss and the least fragility, in one reading after the other.

    Parameters
    ----------
    objective : Objective
        Without rows, but for one of zeros for each class, weighted by its share.
    ambiguity : Ambiguity or None
        None: only the lowest loss is wanted.
    wanted : dict
        ``target``, ``target_ratio`` and ``slack``; none of them: out of fold.
    start : Start
    trivial : Evaluation or LowestLoss
        The best model without features that may shift, or the search for it.
    sums : callable
        Reads the data.
    shorten : callable
        Of parameters and second derivatives: of equally good models the shortest.
    tol : float
    say : callable
        Told what a reading found, and how many more are expected.
    """

    def __init__(
        self,
        objective: Objective,
        ambiguity: Ambiguity | None,
        wanted: dict[str, Any],
        start: Start,
        trivial: Evaluation | LowestLoss,
        sums: Sums,
        *,
        shorten: Callable[[Floats, Floats], Floats],
        tol: float,
        max_iter: int,
        say: Callable[[str, int], None],
    ) -> None:
        self.objective, self.ambiguity, self.wanted = objective, ambiguity, wanted
        self.start, self.trivial = start, trivial
        self.lowest = LowestLoss(objective, start.lowest)
        self.least: LeastNorm | LeastTilt | None = None
        self.origin: TargetOrigin | None = None
        self.reached: Reached | None = None
        self._sums, self._say, self._shorten = sums, say, shorten
        self._tol, self._max_iter = tol, min(max_iter, _MOST_PASSES)
        self._out_of_fold: OutOfFold | None = None
        given = any(value is not None for value in wanted.values())
        given = given and ambiguity is not None
        self._by_folds = ambiguity is not None and not given
        #: The sample's least fragile model, before any search has it.
        self._near = self._beside(start.lowest, wanted) if given else None

    @property
    def trivial_loss(self) -> float:
        """Lowest loss without features that may shift."""
        return self.trivial.loss if isinstance(self.trivial, LowestLoss) else self.trivial.value

    @property
    def references(self) -> ReferenceModels:
        """The models that targets lie between."""
        point: Any = self.lowest.point
        separates = self.lowest.separates
        loss = 0.0 if separates else self.lowest.loss
        minimum = RiskMinimum(point, None, loss, 1, True, separates, not separates)
        trivial: Any = self.trivial
        if isinstance(trivial, LowestLoss):
            trivial = trivial.point
        return ReferenceModels(minimum, trivial)

    def lowest_loss(self) -> SummedPoint:
        """The model of the lowest loss, alone."""
        last = False
        for _ in range(self._max_iter):
            if last:
                self._shorten_trial(self.lowest)
            (sums,) = self._sums([self.lowest.request(self._order(last))])
            self.lowest.tell(sums)
            point, scale = self.lowest.point, _SETTLED * self.trivial_loss
            assert point is not None
            done = last and self.lowest.gap <= scale
            last = self.lowest.gap <= NEARLY * self.trivial_loss and not done
            self._say(f"lowest loss {self.lowest.loss:.8g}", 0 if done else 1 if last else 2)
            if done or self.lowest.failed or self.lowest.separates:
                break
        assert self.lowest.point is not None
        return self.lowest.point

    def least_fragile(self) -> Reached | None:
        """The least fragile model; None where no search is needed or none was settled."""
        last = False
        for _ in range(self._max_iter):
            asked, by_folds = self._asked(last)
            told = [
                _Told(place, request, sums)
                for (place, request), sums in zip(
                    asked, self._sums([request for _, request in asked]), strict=True
                )
            ]
            self._tell_lowest(told, by_folds)
            target = self.target
            if target is None:
                self._say(f"lowest loss about {self.lowest.loss:.6g}", 3)
                last = False
                if self.lowest.failed:
                    break
                continue
            if self._is_settled(target):
                if self._are_settled():
                    return None
                self._say(f"lowest loss about {self.lowest.loss:.6g}, trivial target", 1)
                last = False
                continue
            self._tell_least(target, told)
            assert self.least is not None
            if self.least.failed:
                break
            done = self._keep(target, told, last)
            last = not done and self._is_near()
            k = self.reached.fragility if self.reached is not None else self.least.k
            self._say(
                f"lowest loss {target.erm_loss:.8g}, target {target.value:.8g}, fragility {k:.8g}",
                0 if done else 1 if last else 2,
            )
            if done:
                return self.reached
        if self.reached is not None:  # it did not settle, for one reason or another
            self.reached.gap = max(self.reached.gap, *self._errors(), 1e-5)
        return self.reached

    def settle_trivial(self) -> None:
        """The losses that targets lie between, where no feature may shift: they are one."""
        trivial = self.trivial
        assert isinstance(trivial, LowestLoss)
        for _ in range(self._max_iter):
            trivial.tell(self._sums([trivial.request(2)])[0])
            self._say(f"lowest loss {trivial.loss:.8g}", 1)
            if trivial.failed or trivial.separates or trivial.gap <= _SETTLED * abs(trivial.loss):
                break
        self.lowest = trivial

    def _shorten_trial(self, search: LowestLoss | LeastTilt) -> None:
        """Of equally good models the last reading shall sum the shortest."""
        curvature, hessian = self.lowest.curvature, self.lowest.hessian
        if hessian is None or self.objective.is_penalised:
            return
        if curvature is not None and curvature.singular:
            search.trial = self._shorten(search.trial, hessian)

    def _order(self, last: bool) -> int:
        """Whether Hessians are needed: where curvatures jump, an old one proves nothing."""
        return 1 if last and not self.objective.loss.curvature_jumps else 2

    def _asked(self, last: bool) -> tuple[list[tuple[str, Request]], bool]:
        """What to sum, and for whom; whether the lowest loss is summed by folds."""
        order = self._order(last)
        own = self.lowest.request(order)
        by_folds = self._by_folds and order == 2
        if self.lowest.separates:
            asked = []
        elif by_folds:  # which cost no more than all rows at once
            asked = [("lowest", own._replace(fold=fold)) for fold in range(N_FOLDS)]
        else:
            asked = [("lowest", own)]
        if isinstance(self.trivial, LowestLoss):
            asked.append(("trivial", self.trivial.request(order)))
        if self.least is not None:
            asked.append(("least", self.least.request(order)))
            if last and isinstance(self.least, LeastTilt):
                self._shorten_trial(self.least)
                asked[-1] = ("least", self.least.request(order))
            elif last and isinstance(self.least, LeastNorm):
                apart = self._apart
                for name, share in (("longer", apart), ("shorter", -apart)):
                    asked.append((name, Request(self.least.stretched(share), 0)))
        elif self._near is not None:
            assert self.ambiguity is not None
            parameters, inverse = self._near
            s = inverse if self.ambiguity.reweights else None
            asked.append(("least", Request(parameters, order, s)))
        return asked, by_folds

    @property
    def _apart(self) -> float:
        assert self.least is not None
        miss = 3.0 * (self.least.gap / max(self.least.k, 1e-300)) ** 1.5
        return float(min(max(miss, _APART), _FURTHEST))

    def _tell_lowest(self, told: list[_Told], by_folds: bool) -> None:
        parts = [one.sums for one in told if one.place == "lowest"]
        if parts:
            request = self.lowest.request(2)
            whole = RowSums()
            for part in parts:
                whole.merge(part, request)
            tried = self.lowest.trial
            self.lowest.tell(whole)
            if by_folds and self.lowest.accepted:
                self._out_of_fold = out_of_fold(self.objective, tried, parts)
        if isinstance(self.trivial, LowestLoss):
            self.trivial.tell(next(one.sums for one in told if one.place == "trivial"))

    @property
    def target(self) -> Target | None:
        """The target, as well as it is known; None if the lowest loss is not known well enough."""
        references = self.references
        minimum, trivial = references.minimum, self.trivial_loss
        learned = trivial - minimum.loss
        settled = minimum.separable or self.lowest.gap <= _SETTLED * trivial
        known = _KNOWN_BY_FOLDS if self._by_folds else _KNOWN
        if not settled and not self.lowest.gap <= known * learned:
            return None
        wanted = dict(self.wanted)
        if self._by_folds:
            if self._out_of_fold is None:
                raise NotImplementedError(
                    "The classes can be told apart without a mistake, and the loss on folds is not "
                    "known then. Give slack (such as 0.1), an absolute target, or a penalty."
                )
            self.origin = TargetOrigin.between(self._out_of_fold, references)
            wanted["target"] = self.origin.target
        try:
            return Target.resolved(
                **wanted,
                erm_loss=minimum.loss,
                trivial_loss=trivial,
                separable=minimum.separable,
                attained=minimum.attained,
            )
        except InfeasibleTargetError:
            if settled:
                raise
            return None

    def _is_settled(self, target: Target) -> bool:
        """Whether no search is needed, because a model without features that shift will do."""
        assert self.ambiguity is not None
        if target.tight and not target.learnable:
            return True
        return not self.ambiguity.reweights and target.value >= target.trivial_loss

    def _are_settled(self) -> bool:
        """Whether the losses that targets lie between are known."""
        scale = 1e-8 * self.trivial_loss
        lowest = self.lowest.separates or self.lowest.failed or self.lowest.gap <= scale
        return lowest and (not isinstance(self.trivial, LowestLoss) or self.trivial.gap <= scale)

    def _tell_least(self, target: Target, told: list[_Told]) -> None:
        found = [one.sums for one in told if one.place == "least"]
        assert self.ambiguity is not None
        if self.ambiguity.reweights and self.lowest.separates:
            raise self._no_fragility(target)
        if self.least is None:
            self.least = self._new_search(target, self._near)
            if not found:
                return
        self.least.retarget(target.value)
        tried = self.least.trial
        self.least.tell(found[0])
        if self.least.point is None and self.least.failed:
            self.least = self._new_search(target, self._nearer(target, tried, found[0]))

    def _new_search(
        self, target: Target, near: tuple[Floats, float] | None
    ) -> LeastNorm | LeastTilt:
        lowest, ambiguity = self.lowest.point, self.ambiguity
        assert ambiguity is not None
        assert lowest is not None
        if near is None:
            learned = target.trivial_loss - target.erm_loss
            share = {"slack": (target.value - target.erm_loss) / learned}
            wanted = {"target": None, "target_ratio": None, **share}
            near = self._beside(self.lowest.trial, wanted)
        program = SatisficingProgram(self.objective, ambiguity, target)
        parameters = lowest.parameters if near is None else near[0]
        if not ambiguity.reweights:
            curvature = self.lowest.curvature
            underdetermined = not self.objective.is_penalised and (
                curvature is None or curvature.singular
            )
            return LeastNorm(program, parameters, lowest.parameters, underdetermined)
        zero = self.objective.at(np.zeros(self.objective.size))
        every = min(lowest.sums.largest + lowest.penalty, float(zero.losses.max()))
        if every <= target.value:
            raise self._no_fragility(target)
        return LeastTilt(program, parameters, near[1] if near else self._inverse(lowest, target))

    def _beside(self, lowest: Floats, wanted: dict[str, Any]) -> tuple[Floats, float] | None:
        """The least fragile model, by how that of the sample differs from its lowest loss."""
        found = self.start.solve(wanted)
        return None if found is None else (lowest + found[0], found[1])

    def _nearer(self, target: Target, tried: Floats, sums: RowSums) -> tuple[Floats, float]:
        """A model half way to the target, between that of the lowest loss and one that misses."""
        lowest = self.lowest.point
        assert lowest is not None
        there = SummedPoint(self.objective, tried, sums)
        room, above = max(target.value - lowest.value, 0.0), there.value - lowest.value
        share = min(0.5 * room / above, 1.0) if above > 0.0 else 0.0
        mixed = lowest.parameters + share * (tried - lowest.parameters)
        return mixed, self._inverse(lowest, target)

    def _inverse(self, point: SummedPoint, target: Target) -> float:
        """One over the fragility of a model, about, by the losses of the sample.

        Their mean is another than that of all rows: what counts is the room above it.
        """
        assert self.ambiguity is not None
        losses, weights = self.start.losses(point.parameters)
        mean, room = float(weights @ losses), target.value - point.value
        k = self.ambiguity.fragility(LossProfile(losses, weights), mean + room)
        if 0.0 < k < inf:
            return 1.0 / k
        spread = float(weights @ (losses - mean) ** 2)
        return 2.0 * max(room, 1e-3 * abs(mean)) / max(spread, 1e-300)

    def _errors(self) -> tuple[float, float]:
        """How far the fragility may be off by its own search, and by the target: relatively."""
        least = self.least
        assert least is not None
        k = max(least.k, 1e-300)
        ratio = self.wanted.get("target_ratio")
        moved = 0.0 if self.wanted.get("target") is not None else ratio or 1.0
        trivial = self.trivial.gap if isinstance(self.trivial, LowestLoss) else 0.0
        gaps = (0.0 if self.lowest.separates else self.lowest.gap) + trivial
        return least.error, float(moved * gaps * least.multiplier / k)

    def _is_near(self) -> bool:
        if self.least is None or self.least.point is None:
            return False
        return self.least.is_near and self._errors()[1] <= NEARLY and self._is_low()

    def _is_low(self) -> bool:
        """Whether the lowest loss is nearly known, whatever the target depends on."""
        return self.lowest.separates or self.lowest.gap <= NEARLY * self.trivial_loss

    def _keep(self, target: Target, told: list[_Told], last: bool) -> bool:
        """Keep the best model that meets the target; whether it is the one that was asked for."""
        least = self.least
        assert least is not None
        if least.point is None:
            return False
        if isinstance(least, LeastTilt):
            found = self._tilted(target, least)
        else:
            found = self._shortest(target, least, told)
        if found is not None:
            self.reached = found
        own, by_target = self._errors()
        accurate = max(self._tol, 1e-9)
        if found is None or not (last and least.accepted):
            return False
        if not self._are_settled():
            return False
        return max(found.gap, own, by_target) <= 0.3 * accurate

    def _tilted(self, target: Target, least: LeastTilt) -> Reached | None:
        point = least.point
        assert point is not None
        if not (point.value <= target.value and least.is_close):
            return None
        if point.sums.largest + point.penalty <= target.value:
            raise self._no_fragility(target)
        # Never below the true one.
        k, slope = least.k * (1.0 + least.root_error), 1.0 / point.divergence
        ends = point.sums.largest, point.sums.spread
        return Reached(target, point.parameters, point.value, k, least.error, slope, *ends)

    def _no_fragility(self, target: Target) -> Exception:
        return NotImplementedError(
            f"Every single row can meet the target {target.value:.6g}, so that the fragility is 0 "
            "and many models have it: the least of these is found in memory only. Give a smaller "
            'target, a penalty, or ambiguity="wasserstein".'
        )

    def _shortest(self, target: Target, least: LeastNorm, told: list[_Told]) -> Reached | None:
        """The shortest mixture of models that were summed that is known to meet the target."""
        point, lowest = least.point, self.lowest.point
        assert point is not None
        assert lowest is not None
        known = [point]
        for place, request, sums in told:
            if place in ("longer", "shorter"):
                known.append(SummedPoint(self.objective, request.parameters, sums))
        if lowest.value < target.value:
            known.append(lowest)
        return shortest_mixture(target, least, point, known)
