"""What cases cost at policies, and paired tests of these costs from a reading of the cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from .._typing import Floats, Integers, Mask
from ..deferral.paired_costs import CostSums, PairedCosts
from ..deferral.policy import Policy
from ..deferral.problems import dominant_case
from ..figures.spread import ClusterSums
from ..measured import Estimator
from ..scores.cases import Cases
from .rereading import CaseNames, CaseRows

#: Whose costs: of a policy ("policy", model), of a model alone ("model", model), or of humans.
_Payer = tuple[str, str]
_HUMAN: _Payer = ("human", "")


class DecidedCases(NamedTuple):
    """What a policy does with every case.

    Attributes
    ----------
    alone : ndarray of bool
        Whether the policy decides it alone.
    tried, errors, cost : ndarray
        Of policies that other cases chose: the share of it that they decide alone, that is an
        error, and what it costs. They are chosen anew in every fold, and may decide it in parts.
    model, human : ndarray, optional
        What it costs if each decides alone, where decisions of humans are known.
    """

    alone: Mask
    tried: Floats
    errors: Floats
    cost: Floats
    model: Floats | None = None
    human: Floats | None = None


class DecidedPlaces(NamedTuple):
    """The first four of these for each class of two at each place of a table, (4, 2, R)."""

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

    def policies(self, confidence: float) -> dict[str, Policy]:
        """Policies by model, compared with humans and with the model alone, if they can be."""
        return {model: self._policy(model, confidence) for model in self._decided}

    def _policy(self, model: str, confidence: float) -> Policy:
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

    def with_dominant_cases(
        self, policies: Mapping[str, Policy], name_cases: CaseNames | None
    ) -> dict[str, Policy]:
        """The same policies; where one case makes much of the cost, a note names it."""
        rows = {
            model: row
            for model, (most, row, total) in self._dearest.items()
            if dominant_case("", most, total)
        }
        names: Mapping[int, str] = {}
        if name_cases is not None and rows:
            names = name_cases(sorted(set(rows.values())))
        found = dict(policies)
        for model, row in rows.items():
            most, _, total = self._dearest[model]
            note = dominant_case(names.get(row, ""), most, total)
            found[model] = replace(found[model], notes=(*found[model].notes, note))
        return found
