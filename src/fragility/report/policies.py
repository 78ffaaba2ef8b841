"""Policies of the models of a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from .._typing import Floats, Integers
from .._validation import LabelledScores
from ..calibration.choice import CalibrationChoice
from ..calibration.table import ScoreTable, TableFits
from ..deferral.costs import Costs
from ..deferral.held_out import paid_by_case
from ..deferral.loss_bins import BinnedClasses, LossBins
from ..deferral.policy import Policy
from ..deferral.policy_search import AnyProblem, PolicyCases
from ..deferral.problems import (
    add_to_bins,
    loss_bins,
    policy_of_several,
    policy_of_two,
    several_classes,
    two_classes,
)
from ..deferral.reviewers import Reviewers, clustered_rates, error_rates
from ..deferral.reviews import CaseReviews
from ..deferral.settings import PolicySettings
from ..deferral.several_classes import ExpectedLoss
from ..deferral.solving import Solved, solve
from ..deferral.two_classes import TwoClasses
from ..measured import Estimator, Measured
from ..scores.answer_state import AnswerState
from ..scores.bins import ScoreBins
from ..scores.cases import Cases, joined
from ..scores.state import ScoreState
from .cost_reading import Decided, DecidedCases, DecidedPlaces
from .policy_cells import cells_of_problem
from .rereading import CaseRows, PartReader, Rereading, read_again


class PolicyMaker:
    """Makes the policy of each model of a state.

    Parameters
    ----------
    state : ScoreState
    costs : Costs
    settings : PolicySettings
    confidence : float
    seed : int
    clusters : ndarray of int, optional
        Of all cases, if they are held: folds keep them whole, and intervals count them.
    declined_clusters : (ndarray, ndarray), optional
        Weight and cluster of each case without an answer.
    """

    def __init__(
        self,
        state: ScoreState,
        costs: Costs,
        settings: PolicySettings,
        confidence: float,
        seed: int,
        clusters: Integers | None = None,
        declined_clusters: tuple[Floats, Integers] | None = None,
    ) -> None:
        self._clusters, self._declined_clusters = clusters, declined_clusters
        self._declined = state.declined if isinstance(state, AnswerState) else None
        self._state, self._costs, self._settings = state, costs, settings
        self._confidence, self._seed = confidence, seed
        self._capacity = 1.0 if costs.capacity is None else costs.capacity
        self._n = int(state.support.sum())

    def of_two(
        self, model: str, fits: TableFits | None, bins: ScoreBins, cases: Cases | None
    ) -> Decided:
        """Two classes, by bins of the scores; limits of weighted errors take the cases.

        `fits` are calibration maps, if there are any: whatever map the figures have, policies take
        Platt's.
        """
        state, calibration = self._state, None
        if fits is None or fits.table.edges is None:
            table = ScoreTable.of_bins(bins)
        else:
            table, calibration = fits.table, fits.calibrated(CalibrationChoice("platt"))
        if self._takes_cases(cases):
            if cases is None:
                raise ValueError(
                    "Limits of errors of weighted cases take all cases, which this state does not "
                    "hold: hold them (hold=inf, --in-memory), or leave the limits out."
                )
            given = self._given(state.labelled(model, cases), cases)
            problem, solved = given.solved(self._settings, self._confidence, self._seed)
            assert isinstance(problem, TwoClasses)
        else:
            problem = two_classes(
                table,
                state.positive,
                state.labels,
                self._costs,
                self._seed,
                calibration,
                answers=state.answers,
                declined=self._declined,
            )
            solved = self._solved(problem)
        n_declined = 0 if self._declined is None else int(self._declined["number"])
        policy = policy_of_two(
            problem,
            solved,
            state.labels,
            self._settings,
            self._confidence,
            self._n + n_declined,
        )

        def kinds(part: Cases) -> Integers:
            places = problem.table.places(part.scores[model].astype(np.float64))
            return part.codes.astype(np.int64) * problem.table.scores.size + places

        return self._decided(problem, solved, policy, kinds)

    def _given(self, data: LabelledScores, cases: Cases) -> PolicyCases:
        return PolicyCases(
            data,
            self._costs,
            cases.costs,
            CaseReviews.of(cases),
            self._clusters,
            np.arange(self._n),
            self._declined,
            self._declined_clusters,
        )

    def _takes_cases(self, cases: Cases | None) -> bool:
        """Whether bins will not do: for clusters, and for limits of errors of unequal weights."""
        if self._clusters is not None:
            return True
        weighted = self._state.weighted and not _equally_weighted(cases)
        return bool(self._settings.limits.given) and weighted

    def of_cases(self, model: str, cases: Cases) -> Decided:
        """Several classes, cases in memory."""
        state = self._state
        data = state.labelled(model, cases)
        if self._takes_cases(cases):
            given = self._given(data, cases)
            problem, solved = given.solved(self._settings, self._confidence, self._seed)
            assert not isinstance(problem, TwoClasses)
        else:
            own = cases.costs, CaseReviews.of(cases), self._costs
            problem = several_classes(data, *own, self._settings.rule, self._seed)
            solved = self._solved(problem)
        policy = policy_of_several(
            problem, solved, state.labels, self._settings, self._confidence, self._n
        )
        done = 0

        def kinds(part: Cases) -> Integers:
            # The cases come in the order in which they were joined.
            nonlocal done
            rows = np.arange(done, done + part.size)
            done = (done + part.size) % self._n
            return part.codes.astype(np.int64) * self._n + rows

        return self._decided(problem, solved, policy, kinds)

    def _bins(self, temperature: float) -> LossBins:
        """Bins for the losses of several classes, to be filled with all cases."""
        state = self._state
        loss = ExpectedLoss.of(self._costs, state.labels.size, temperature, self._settings.rule)
        return loss_bins(loss, self._costs, state)

    def of_bins(self, reread: Rereading, temperatures: Mapping[str, float]) -> dict[str, Decided]:
        """Several classes, more cases than are held: in bins of the loss, filled by a reading."""
        reader = _BinReader({model: self._bins(own) for model, own in temperatures.items()})
        read_again(reread, [reader])
        return {
            model: self._of_bins(model, own, temperatures[model])
            for model, own in reader.bins.items()
        }

    def _of_bins(self, model: str, bins: LossBins, temperature: float) -> Decided:
        """Several classes, in bins of the loss under one map."""
        state = self._state
        if self._settings.limits.given and state.weighted:
            raise ValueError(
                "Limits of errors of weighted cases are not measured on so many cases of several "
                "classes: leave the limits or the weights out."
            )
        problem = BinnedClasses(bins, self._costs, temperature, self._seed)
        solved = self._solved(problem)
        policy = policy_of_several(
            problem, solved, state.labels, self._settings, self._confidence, self._n
        )
        return self._decided(
            problem, solved, policy, lambda part: bins.kinds(part.scores[model], part.codes)
        )

    def _solved(self, problem: AnyProblem) -> Solved:
        return solve(problem, self._settings, self._capacity, confidence=self._confidence)

    def _decided(
        self,
        problem: AnyProblem,
        solved: Solved,
        policy: Policy,
        kinds: Callable[[Cases], Integers],
    ) -> Decided:
        outcomes, mix, costs = problem.outcomes, solved.mix, self._costs
        n_classes = self._state.labels.size
        if self._state.reviewed == "human":
            own = self._human_errors(), self._state.labels, self._confidence
            policy = replace(policy, reviewers=Reviewers.of(solved, *own))

        alone = problem.alone(solved.cuts)
        tried, errors = mix[0] + mix[2], (mix * outcomes.wrong).sum(axis=0)

        def cases(part: Cases) -> DecidedCases:
            reviews, places = CaseReviews.of(part), kinds(part)
            reviewed = None if reviews is None else reviews.costs(costs, n_classes)
            given = places, part.codes, costs, part.costs, reviewed
            paid = paid_by_case(outcomes, mix, *given)
            return DecidedCases(alone[places], tried[places], errors[places], paid)

        def by_place() -> DecidedPlaces:
            assert isinstance(problem, TwoClasses)
            costs_by_kind = outcomes.costs_by_kind(mix)
            rates = np.stack([alone, tried, errors, costs_by_kind]).reshape(4, 2, -1)
            scored = slice(problem.table.n_unscored, None)
            weight = outcomes.weight.reshape(2, -1)[:, scored]
            return DecidedPlaces(problem.table.scores[scored], weight, rates[:, :, scored])

        binned = isinstance(problem, BinnedClasses)
        unscored = problem.table.n_unscored if isinstance(problem, TwoClasses) else 0
        confusion = outcomes.confusion(mix, n_classes, problem.decisions, unscored)
        estimator: Estimator = "sample_fitted" if binned else "cross_fitted"
        cells = cells_of_problem(problem, policy)
        return Decided(policy, cases, by_place, confusion, cells, estimator)

    def _human_errors(self) -> tuple[Measured, tuple[Measured, ...]]:
        """How often humans err; clusters count as in the costs of policies."""
        if self._clusters is None:
            return error_rates(self._state.reviews, self._confidence)
        cases = joined(self._state.held).weighted()
        reviews, n_classes = CaseReviews.of(cases), self._state.labels.size
        assert reviews is not None
        assert cases.weights is not None
        own = reviews, n_classes, cases.weights, self._clusters
        return clustered_rates(*own, self._confidence)


def _equally_weighted(cases: Cases | None) -> bool:
    """Whether cases are known to weigh the same, which is as good as no weights."""
    if cases is None or cases.weights is None:
        return False
    return bool(cases.weights.min() == cases.weights.max())


class _BinReader(PartReader):
    """Fills the bins of the losses of each model."""

    def __init__(self, bins: dict[str, LossBins]) -> None:
        self.bins = bins

    def add(self, found: CaseRows) -> None:
        """Add a block of cases."""
        for model, own in self.bins.items():
            add_to_bins(own, found.cases, model)

    def merge(self, other: _BinReader) -> None:
        """Add what a reader of other cases was told."""
        for model, own in self.bins.items():
            own.merge(other.bins[model])

    def finish(self) -> None:
        """Nothing is handed on."""
