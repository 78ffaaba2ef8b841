"""Findings about policies: who decides, what that costs, and which model costs least."""

from __future__ import annotations

from math import inf, isnan
from typing import TYPE_CHECKING

from .. import words
from ..parts import CostTest
from ..words import level
from ..words import shortened as short
from .basis import Sentences, corrected, ordered

if TYPE_CHECKING:
    from ..report import Report


#: A smaller relative difference of costs is none.
_ROUNDING = 1e-12


def cheapest(report: Report) -> Sentences:
    """Which model costs least, each at its own policy, and whether that is more than chance.

    A policy that needs more reviews than there can be is none that a model could be used at.
    """
    known = {
        model.name: model.policy.cost
        for model in report.models
        if model.policy is not None and model.policy.within_capacity
    }
    if len(known) < 2:
        return
    first, second = sorted(known, key=lambda name: (known[name], name))[:2]
    found = _test_of(report, first, second)
    if found is None:
        return
    test, sign = found
    if abs(test.test.difference) <= _ROUNDING * (abs(test.test.a) + abs(test.test.b)):
        return
    text = (
        f"{short(first)} is the cheapest, {words.money(known[first])} per case; next is "
        f"{short(second)} with {words.money(known[second])}"
    )
    if isnan(test.p_value):
        text += f"; no test: {test.test.why_no_test}"
    else:
        low, high = sorted(sign * end for end in test.test.interval)
        chance = ""
        if not test.p_value < 1.0 - report.confidence:
            why = corrected(test.test.interval, test.test.p_value, test.p_value, test.n_tests)
            chance = f", which could be chance{why}"
        text += (
            f": {words.money(-sign * test.test.difference)} less ({level(report.confidence)} "
            f"{words.money(-high)} to {words.money(-low)}){chance}"
        )
    yield text + ".", [first, second]


def _test_of(report: Report, first: str, second: str) -> tuple[CostTest, float] | None:
    """Test of two models, and the sign of the first against the second in it."""
    for pair in report.comparisons:
        if pair.cost is not None and {pair.a, pair.b} == {first, second}:
            return pair.cost, 1.0 if pair.a == first else -1.0
    return None


def who_decides(report: Report) -> Sentences:
    """What each model decides alone, what that costs, and what is promised: a sentence for each."""
    models = [model for model in report.models if model.policy is not None]
    for model in ordered(models, lambda model: model.policy.cost if model.policy else inf):
        if model.policy is not None:
            yield f"{short(model.name)}: {' '.join(model.policy.sentences())}", [model.name]
