"""How a policy is chosen: the cases that choose, the three rules, and what they are blended with.

Cases lie on a path: places in ascending order of a score. A policy is two cuts of the path. Before
the lower cut the model decides one way, from the upper cut on the other way, and a human decides
between. Several classes have one cut: their path is the expected loss of deciding alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import NamedTuple, Protocol

import numpy as np

from .._typing import Floats, Indices, Integers, Mask
from .held_out import Outcomes
from .settings import Rule
from .two_thresholds import Box, Cuts, GroupCosts, cheapest_cuts, cheapest_of

#: Cases at which expected and observed costs have equal say.
_PRIOR_CASES = 1000.0


class Layer(NamedTuple):
    """Some of the cases by place, all of one class or as if they were.

    Attributes
    ----------
    weight : ndarray of shape (n_rows,)
        Rows are places, or parts of places.
    costs : ndarray of shape (3, n_rows) or (3, 1)
        Cost of a case: decided before the lower cut, reviewed, from the upper cut on.
    """

    weight: Floats
    costs: Floats


class Steps(NamedTuple):
    """Cases in steps of a path that automates more and more of them.

    Attributes
    ----------
    key : ndarray of shape (n_steps,)
        A path at the limit t automates the steps with a key above t.
    number, wrong : ndarray of shape (n_steps,)
        Cases, and cases that are decided wrongly if they are automated.
    """

    key: Floats
    number: Floats
    wrong: Floats

    @property
    def automated(self) -> Steps:
        """Without the cases that no path automates."""
        return Steps(*(part[self.key > -inf] for part in self))

    def ordered(self) -> Steps:
        """One step for each key that holds any case, the first to be automated first."""
        held = np.flatnonzero(self.number > 0.0)
        keys, origin = np.unique(-self.key[held], return_inverse=True)
        number, wrong = (
            np.bincount(origin, part[held]).astype(np.float64) for part in (self.number, self.wrong)
        )
        return Steps(-keys, number, wrong)


class Part(ABC):
    """Cases that choose a policy.

    Attributes
    ----------
    n_places : int
    n_cases : float
        Number of the cases, fewer where some outweigh the others.
    weight : ndarray of shape (n_places,)
    """

    n_places: int
    n_cases: float
    weight: Floats

    @abstractmethod
    def layers(self, blend: float) -> Iterable[Layer]:
        """The cases with their labels, and in the share `blend` with their expected ones."""

    @abstractmethod
    def steps(self) -> Steps:
        """The cases along the path that automates most for its errors."""

    @abstractmethod
    def boxes_at(self, keys: Floats) -> tuple[Indices, Indices]:
        """Lower and upper cuts that automate the places with a key above each of these."""

    @abstractmethod
    def class_counts(self) -> Floats:
        """Cases of the negative and of the positive class by place, (2, n_places)."""

    @property
    def falling(self) -> bool:
        """Whether higher scores are of cases that are rather negative: scores say nothing then."""
        return False

    @property
    def widest(self) -> Box:
        """Cuts that the path allows: any, or for several classes no upper one."""
        return Box(self.n_places, 0)

    def translated(self, allowed: Allowed, other: Part) -> Allowed:
        """Cuts of other cases as cuts of these."""
        return allowed

    def by_place(self, amounts: Floats) -> Floats:
        """Sums over the rows of each place, of amounts (..., n_rows)."""
        return amounts

    def decided(self, cuts: Cuts) -> Integers:
        """What is decided on each row: 0 before the lower cut, 1 for review, 2 from the upper."""
        rows = np.ones(self.n_places, dtype=np.int64)
        rows[: cuts.lower], rows[cuts.upper :] = 0, 2
        return rows

    def groups(self, blend: float) -> GroupCosts:
        """Costs by place."""
        layers = iter(self.layers(blend))
        first = next(layers)
        totals = first.weight * first.costs
        for weight, costs in layers:
            totals += weight * costs
        negative, reviewed, positive = self.by_place(totals)
        return GroupCosts(negative, reviewed, positive, self.weight)

    @abstractmethod
    def symmetric(self) -> tuple[Indices, Indices]:
        """Cuts that a threshold of the confidence makes."""


#: What cases do at cuts that others chose: shares (3, K) of their kinds, by decision.
Pay = Callable[[Cuts], Floats]


class Problem(Protocol):
    """Cases of one model that choose a policy, and pay for policies that others chose."""

    @property
    def whole(self) -> Part:
        """All cases."""

    @property
    def outcomes(self) -> Outcomes:
        """What every kind of cases costs under each decision."""

    @property
    def decisions(self) -> Integers:
        """Classes that are decided before the lower and from the upper cut on, (2, R)."""

    def alone(self, cuts: Cuts) -> Mask:
        """Which kinds are decided alone at cuts of the whole."""

    def parts(self) -> Iterator[tuple[Part, Pay]]:
        """For each fold the cases that choose for it, and what it does with their choice."""


class Allowed(NamedTuple):
    """Cuts that a guarantee allows: all in a box; or, if `points` is given, only these in it."""

    box: Box
    points: tuple[Indices, Indices] | None = None


def blend_of(rule: Rule, n_cases: float) -> float:
    """Share of the expected costs beside the observed ones."""
    shares = {"expected_cost": 1.0, "auto": _PRIOR_CASES / (_PRIOR_CASES + n_cases)}
    return shares.get(rule, 0.0)


def cheapest(part: Part, rule: Rule, capacity: float = 1.0, allowed: Allowed | None = None) -> Cuts:
    """The cheapest cuts by a rule, of those that are allowed.

    `capacity` is the largest share of the weight that can be reviewed.
    """
    allowed = allowed or Allowed(part.widest)
    if rule in ("auto", "expected_cost") and part.falling and allowed.points is None:
        # The scores say nothing: decide all cases alike, or review them all.
        n, (last, first) = part.n_places, part.widest
        alike = np.array([0, last, 0], dtype=np.intp), np.array([n, n, first], dtype=np.intp)
        allowed = allowed._replace(points=alike)
    if rule == "confidence" and allowed.points is None:
        allowed = allowed._replace(points=part.symmetric())
    groups = part.groups(blend_of(rule, part.n_cases))
    cuts = cheapest_allowed(groups, allowed, most_reviews(part, capacity))
    return cuts._replace(fixed=rule == "confidence")


def most_reviews(part: Part, capacity: float) -> float:
    """Largest weight that can be reviewed."""
    return inf if capacity >= 1.0 else capacity * float(part.weight.sum())


def cheapest_allowed(groups: GroupCosts, allowed: Allowed, most: float) -> Cuts:
    """The cheapest cuts that are allowed and need no more reviews than `most`."""
    box, points = allowed
    if points is None:
        return cheapest_cuts(groups, most, box)
    within = (points[0] <= box.highest_lower) & (points[1] >= box.lowest_upper)
    # Full review keeps every limit.
    lowers = np.append(points[0][within], 0)
    uppers = np.append(points[1][within], groups.weight.size)
    return cheapest_of(groups, lowers, uppers, most)
