"""Policies of the models of a report, and a paired test of what they cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from .._typing import Floats, Integers
from .._validation import LabelledScores
from ..calibration.table import ScoreTable, TableCalibration
from ..deferral.costs import Costs
from ..deferral.held_out import paid_by_case
from ..deferral.loss_bins import BinnedClasses, LossBins
from ..deferral.paired_costs import CostSums, PairedCosts
from ..deferral.policy import Policy
from ..deferral.policy_search import AnyProblem, PolicyCases
from ..deferral.problems import (
    add_to_bins,
    dominant_case,
    loss_bins,
    policy_of_several,
    policy_of_two,
    several_classes,
    two_classes,
)
from ..deferral.reviewers import Reviewers, clustered_rates, error_rates
from ..deferral.reviews import CaseReviews
from ..deferral.several_classes import ExpectedLoss
from ..deferral.solving import PolicySettings, Solved, solve
from ..deferral.two_classes import TwoClasses
from ..figures.spread import ClusterSums
from ..measured import Estimator, Measured
from ..scores.answer_state import AnswerState
from ..scores.cases import Cases, joined
from ..scores.state import ScoreState
from .rereading import CaseRows


class DecidedCases(NamedTuple):
    """By case: the share of it that is decided alone, that is an error, and what it costs.

    A policy that is chosen anew in every fold may decide a case in parts. `model` and `human` are
    what it costs if each decides alone, where decisions of humans are known.
    """

    alone: Floats
    errors: Floats
    cost: Floats
    model: Floats | None = None
    human: Floats | None = None


class DecidedPlaces(NamedTuple):
    """The same for each class of two at each place of a table of scores: `rates` (3, 2, R)."""

    scores: Floats
    weight: Floats
    rates: Floats


class Decided(NamedTuple):
    """The policy of one model, what it does with every case, and what is decided by true class."""

    policy: Policy
    cases: Callable[[Cases], DecidedCases]
    by_place: Callable[[], DecidedPlaces]
    confusion: Floats
    estimator: Estimator = "cross_fitted"


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
        self,
        model: str,
        table: ScoreTable,
        calibration: TableCalibration | None,
        cases: Cases | None,
    ) -> Decided:
        """Two classes, by bins of the scores; limits of weighted errors take the cases."""
        state = self._state
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

    def bins(self, temperature: float) -> LossBins:
        """Bins for the losses of several classes, to be filled with all cases."""
        state = self._state
        loss = ExpectedLoss.of(self._costs, state.labels.size, temperature, self._settings.rule)
        return loss_bins(loss, self._costs, state)

    def of_bins(self, model: str, bins: LossBins, temperature: float) -> Decided:
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
        n_classes, compared = self._state.labels.size, self._state.reviewed == "human"
        if compared:
            own = self._human_errors(), self._state.labels, self._confidence
            policy = replace(policy, reviewers=Reviewers.of(solved, *own))

        alone, errors = mix[0] + mix[2], (mix * outcomes.wrong).sum(axis=0)

        def cases(part: Cases) -> DecidedCases:
            reviews, places = CaseReviews.of(part), kinds(part)
            reviewed = None if reviews is None else reviews.costs(costs, n_classes)
            given = places, part.codes, costs, part.costs, reviewed
            found = DecidedCases(alone[places], errors[places], paid_by_case(outcomes, mix, *given))
            if not compared:
                return found
            model = paid_by_case(outcomes, solved.bare_mix, *given)
            return found._replace(model=model, human=reviewed)

        def by_place() -> DecidedPlaces:
            assert isinstance(problem, TwoClasses)
            rates = np.stack([alone, errors, outcomes.costs_by_kind(mix)]).reshape(3, 2, -1)
            scored = slice(problem.table.n_unscored, None)
            weight = outcomes.weight.reshape(2, -1)[:, scored]
            return DecidedPlaces(problem.table.scores[scored], weight, rates[:, :, scored])

        binned = isinstance(problem, BinnedClasses)
        unscored = problem.table.n_unscored if isinstance(problem, TwoClasses) else 0
        confusion = outcomes.confusion(mix, n_classes, problem.decisions, unscored)
        estimator: Estimator = "sample_fitted" if binned else "cross_fitted"
        return Decided(policy, cases, by_place, confusion, estimator)

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


def fill_bins(bins: Mapping[str, LossBins], cases: Cases) -> None:
    """Add cases to the bins of each model."""
    for model, own in bins.items():
        add_to_bins(own, cases, model)


#: Whose costs: of a policy ("policy", model), of a model alone ("model", model), or of humans.
_Payer = tuple[str, str]
_HUMAN: _Payer = ("human", "")


class CostReader:
    """What a reading of the cases tells of the costs of models at their policies.

    Parameters
    ----------
    decided : mapping of str to Decided
    paired : bool
        Whether every two models are compared.
    """

    def __init__(self, decided: Mapping[str, Decided], *, paired: bool) -> None:
        self._decided = decided
        pairs: list[tuple[_Payer, _Payer]] = []
        if paired:
            pairs += [(("policy", a), ("policy", b)) for a, b in combinations(decided, 2)]
        for model, own in decided.items():
            if own.policy.reviewers is not None:
                pairs += [(("policy", model), other) for other in (_HUMAN, ("model", model))]
        self._pairs = dict.fromkeys(pairs, CostSums())
        payers = [("policy", model) for model in decided]
        self._payers = list(dict.fromkeys([*payers, *(payer for pair in pairs for payer in pair)]))
        #: Costs by payer, and weight, of each cluster, if there are clusters.
        self._clusters = ClusterSums(len(self._payers) + 1)
        #: By model the cost of the dearest case, its row, and the cost of all.
        self._dearest = dict.fromkeys(decided, (0.0, -1, 0.0))

    def add(self, found: CaseRows) -> None:
        """Add a block of cases."""
        block, rows, clusters = found
        made = {model: own.cases(block) for model, own in self._decided.items()}
        others: dict[_Payer, Floats] = {}
        for name, paid in made.items():
            if paid.model is not None and paid.human is not None:
                others["model", name], others[_HUMAN] = paid.model, paid.human
        policies = {name: paid.cost for name, paid in made.items()}
        self.add_costs(policies, block.weights, rows, clusters, others)

    def add_costs(
        self,
        policies: Mapping[str, Floats],
        case_weights: Floats | None,
        rows: Integers,
        clusters: Integers | None,
        others: Mapping[_Payer, Floats] | None = None,
    ) -> None:
        """Add what some cases cost, at the policy of each model, and if others decide."""
        costs: dict[_Payer, Floats] = {("policy", name): paid for name, paid in policies.items()}
        costs |= others or {}
        if clusters is not None:
            weights = np.ones(rows.size) if case_weights is None else case_weights
            self._clusters.add(clusters, *(weights * costs[who] for who in self._payers), weights)
        for a, b in self._pairs:
            more = CostSums.of(costs[a] - costs[b], case_weights)
            self._pairs[a, b] = self._pairs[a, b].plus(more)
        for model, spent in policies.items():
            weighted = spent if case_weights is None else spent * case_weights
            most, row, total = self._dearest[model]
            place = int(weighted.argmax())
            if float(weighted[place]) > most:
                most, row = float(weighted[place]), int(rows[place])
            self._dearest[model] = most, row, total + float(weighted.sum())

    def finish(self) -> None:
        """Nothing is handed on."""

    def tests(self, confidence: float) -> dict[tuple[str, str], PairedCosts]:
        """A test of every two models."""
        found = {}
        for (a, b), (first, second) in (
            ((a[1], b[1]), (a, b)) for a, b in self._pairs if a[0] == b[0] == "policy"
        ):
            costs = self._decided[a].policy.cost, self._decided[b].policy.cost
            found[a, b] = self._sums(first, second).compared(*costs, confidence)
        return found

    def policy(self, model: str, confidence: float) -> Policy:
        """The policy of a model, compared with humans and with the model alone, if it can be."""
        policy = self._decided[model].policy
        if policy.reviewers is None:
            return policy
        own = "policy", model
        sums = self._sums(own, _HUMAN), self._sums(own, ("model", model))
        return replace(policy, reviewers=policy.reviewers.compared(*sums, confidence))

    def _sums(self, payer: _Payer, other: _Payer) -> CostSums:
        """What one costs more than another, by case or by cluster."""
        return self._by_cluster(payer, other) or self._pairs[payer, other]

    def _by_cluster(self, payer: _Payer, other: _Payer) -> CostSums | None:
        """What one costs more than another, with clusters for cases."""
        *costs, weight = self._clusters.totals
        held = np.flatnonzero(weight)
        if not held.size:
            return None
        a, b = (costs[self._payers.index(name)][held] for name in (payer, other))
        return CostSums.of((a - b) / weight[held], weight[held])

    def dominant_rows(self) -> dict[str, int]:
        """Row of the case that makes a tenth of the cost or more, by model."""
        return {
            model: row
            for model, (most, row, total) in self._dearest.items()
            if dominant_case("", most, total)
        }

    def dominant_note(self, model: str, name: str) -> str:
        """A note on the dominant case of a model."""
        most, _, total = self._dearest[model]
        return dominant_case(name, most, total)
