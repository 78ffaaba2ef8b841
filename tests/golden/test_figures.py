"""Reports give the figures that they gave when these were recorded."""

from __future__ import annotations

import warnings
from functools import cache

import pytest

from . import banks
from .ask import flat, report_of, whole
from .compare import differences
from .more_sets import more_sets
from .sets import cases

SETS = banks.read("sets")
MORE_SETS = banks.read("more_sets")

#: Ends of paths whose numbers rest on standard errors.
UNCERTAIN = {"standard_error", "p_value", "interval", "cost_interval", "low", "high"}


@cache
def drawn() -> dict[str, dict]:
    """Return every set of both banks by name."""
    return dict([*cases(), *more_sets()])


def report(name):
    case = dict(drawn()[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return report_of(case.pop("y", None), case.pop("models"), **case)


def tolerance(path):
    """Return 1e-9 for values, and 1e-6 for standard errors, intervals and what rests on them."""
    in_flat = path[0] in ("models", "groups") and path[-1] in (1, 2, 3)
    in_tests = path[0] == "comparisons" and path[-1] in (1, 2)
    uncertain = in_flat or in_tests or not UNCERTAIN.isdisjoint(path)
    return 1e-6 if uncertain else 1e-9


@pytest.mark.parametrize("name", SETS)
def test_figures_are_as_recorded(name):
    assert differences(SETS[name], banks.plain(flat(report(name))), tolerance) == []


@pytest.mark.parametrize("name", MORE_SETS)
def test_figures_and_whole_reports_are_as_recorded(name):
    this_report = report(name)
    recorded = MORE_SETS[name]
    figures = banks.plain(flat(this_report))
    assert differences(recorded["figures"], figures, tolerance) == []
    content = banks.shortened(banks.plain(whole(this_report)))
    assert differences(recorded["report"], content, lambda path: 1e-6) == []


def test_no_set_is_left_out():
    assert {*SETS, *MORE_SETS} == {*drawn()}


def test_a_changed_digit_is_noticed():
    recorded = SETS["costs 500"]
    changed = banks.plain(recorded)
    changed["models"]["m0"]["raw"]["auc"][0] += 1e-8
    changed["models"]["m1"]["policy"]["cost_interval"][1] *= 1 + 1e-5
    found = differences(recorded, changed, tolerance)
    assert [line.partition(":")[0] for line in found] == [
        "models.m0.raw.auc.0",
        "models.m1.policy.cost_interval.1",
    ]
