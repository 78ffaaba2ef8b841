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
from ..figures.spread import ClusterSums, nine_digits
from ..measured import Estimator
from ..scores.cases import Cases
from ..scores.sums import Shape
from .group_sums import GroupSums
from .policy_cells import PolicyCells
from .rereading import CaseNames, CaseRows, PartReader


class DecidedCases(NamedTuple):
    """What a policy does with every case.

    Attributes
    ----------
    alone : ndarray of bool
        Whether the policy decides it alone.
    tried, errors, cost : ndarray
        Of policies that other cases chose: the share of it that they decide alone, that is an
        error, and what it costs. They are chosen anew in every fold, and may decide it in parts.
    """

    alone: Mask
    tried: Floats
    errors: Floats
    cost: Floats


class DecidedPlaces(NamedTuple):
    """The first four of these for each class of two at each place of a table, (4, 2, R)."""

    scores: Floats
    weight: Floats
    rates: Floats


class Decided(NamedTuple):
    """The policy of one model, what it does with every case, and what is decided by true class.

    `cells` are the cases by what any other policy would do with them.
    """

    policy: Policy
    cases: Callable[[Cases], DecidedCases]
    by_place: Callable[[], DecidedPlaces]
    confusion: Floats
    cells: PolicyCells
    estimator: Estimator = "cross_fitted"


class CostReader(PartReader):
    """What a reading of the cases tells of the costs of models at their policies.

    Parameters
    ----------
    decided : mapping of str to Decided
    paired : bool
        Whether every two models are compared.
    groups : Shape, optional
        Of a state with groups: models are compared in each of them, too.
    """

    KNOWN = ("_decided", "_groups")

    def __init__(
        self, decided: Mapping[str, Decided], *, paired: bool, groups: Shape | None = None
    ) -> None:
        self._decided, self._groups = decided, groups
        #: Sums by group, if there are groups.
        self.by_group: GroupSums | None = None
        if groups is not None:
            self.by_group = GroupSums(sum(groups.n_groups), list(decided), centred=False)
        pairs = combinations(decided, 2) if paired else ()
        self._pairs = dict.fromkeys(pairs, CostSums())
        #: Costs by model, and weight, of each cluster, if there are clusters.
        self._clusters = ClusterSums(len(decided) + 1)
        #: By model the cost of the dearest case, its row, and the cost of all.
        self._dearest = dict.fromkeys(decided, (0.0, -1, 0.0))
        self._in_parts = False

    def add(self, found: CaseRows) -> None:
        """Add a block of cases."""
        block, rows, clusters = found
        costs = {model: own.cases(block).cost for model, own in self._decided.items()}
        self.add_costs(costs, block.weights, rows, clusters)
        if self._groups is not None and self.by_group is not None:
            places = self._groups.group_places(block)
            self.by_group.add(places, costs, block.weights, clusters)

    def add_costs(
        self,
        costs: Mapping[str, Floats],
        case_weights: Floats | None,
        rows: Integers,
        clusters: Integers | None,
    ) -> None:
        """Add what some cases cost at the policy of each model."""
        if clusters is not None:
            weights = np.ones(rows.size) if case_weights is None else case_weights
            self._clusters.add(clusters, *(weights * costs[who] for who in self._decided), weights)
        for a, b in self._pairs:
            more = CostSums.of(costs[a] - costs[b], case_weights)
            self._pairs[a, b] = self._pairs[a, b].plus(more)
        for model, spent in costs.items():
            weighted = spent if case_weights is None else spent * case_weights
            most, row, total = self._dearest[model]
            place = int(weighted.argmax())
            if float(weighted[place]) > most:
                most, row = float(weighted[place]), int(rows[place])
            self._dearest[model] = most, row, total + float(weighted.sum())

    def merge(self, other: CostReader) -> None:
        """Add what a reader of other cases, without clusters, was told."""
        if self.by_group is not None and other.by_group is not None:
            self.by_group.merge(other.by_group)
        for pair, sums in other._pairs.items():
            self._pairs[pair] = self._pairs[pair].plus(sums)
        for model, (most, row, total) in other._dearest.items():
            own, own_row, before = self._dearest[model]
            dearest = (most, row) if most > own else (own, own_row)
            self._dearest[model] = *dearest, before + total
        self._in_parts = True

    def finish(self) -> None:
        """Sums over parts are rounded: their last digits depend on the order of cases."""
        if self._in_parts:
            for pair, sums in self._pairs.items():
                self._pairs[pair] = CostSums._make(map(nine_digits, sums))
            for model, (most, row, total) in self._dearest.items():
                self._dearest[model] = most, row, nine_digits(total)

    def tests(self, confidence: float) -> dict[tuple[str, str], PairedCosts]:
        """A test of every two models."""
        found = {}
        for a, b in self._pairs:
            costs = self._decided[a].policy.cost, self._decided[b].policy.cost
            sums = self._by_cluster(a, b) or self._pairs[a, b]
            found[a, b] = sums.compared(*costs, confidence)
        return found

    def _by_cluster(self, a: str, b: str) -> CostSums | None:
        """What one model costs more than another, with clusters for cases."""
        *costs, weight = self._clusters.totals
        held = np.flatnonzero(weight)
        if not held.size:
            return None
        names = list(self._decided)
        first, second = (costs[names.index(name)][held] for name in (a, b))
        return CostSums.of((first - second) / weight[held], weight[held])

    def dearest_share(self, model: str) -> float | None:
        """Share of the cost of a model that its dearest case makes; None if nothing costs."""
        most, _, total = self._dearest[model]
        return most / total if total > 0.0 else None

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
