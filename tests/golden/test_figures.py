"""Reports give the figures that they gave when these were recorded."""

from __future__ import annotations

import warnings
from copy import deepcopy
from functools import cache

import pytest

from . import banks
from .ask import flat, report_of, whole
from .compare import differences, relative_above_one
from .more_sets import more_sets
from .sets import cases

SETS = banks.read("sets")
MORE_SETS = banks.read("more_sets")

VALUES = relative_above_one(1e-9)
#: For standard errors, intervals, p-values and sentences with these.
ERRORS = relative_above_one(1e-6)


@cache
def drawn() -> dict[str, dict]:
    """Return every set of both banks by name."""
    return dict([*cases(), *more_sets()])


def report(name):
    case = dict(drawn()[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return report_of(case.pop("y", None), case.pop("models"), **case)


def values_alone(figures):
    """Return the first number of every figure and test, without errors and limits."""
    return {
        "models": {
            name: {
                kind: {figure: numbers and numbers[0] for figure, numbers in model[kind].items()}
                for kind in ("raw", "calibrated")
                if kind in model
            }
            for name, model in figures["models"].items()
        },
        **{
            kind: {
                name: {figure: numbers and numbers[0] for figure, numbers in entry.items()}
                for name, entry in figures[kind].items()
            }
            for kind in ("comparisons", "groups")
        },
    }


def all_differences(recorded, figures):
    return [
        *differences(values_alone(recorded), values_alone(figures), VALUES),
        *differences(recorded, figures, ERRORS),
    ]


@pytest.mark.parametrize("name", SETS)
def test_figures_are_as_recorded(name):
    assert all_differences(SETS[name], banks.recordable(flat(report(name)))) == []


@pytest.mark.parametrize("name", MORE_SETS)
def test_figures_and_whole_reports_are_as_recorded(name):
    this_report = report(name)
    recorded = MORE_SETS[name]
    assert all_differences(recorded["figures"], banks.recordable(flat(this_report))) == []
    content = banks.shortened(banks.recordable(whole(this_report)))
    assert differences(recorded["report"], content, ERRORS) == []


def test_no_set_is_left_out():
    assert {*SETS, *MORE_SETS} == {*drawn()}


def test_a_changed_digit_is_noticed():
    recorded = SETS["costs 500"]
    changed = deepcopy(recorded)
    changed["models"]["m0"]["raw"]["auc"][0] += 1e-8
    changed["models"]["m1"]["policy"]["cost_interval"][1] *= 1 + 1e-5
    lines = all_differences(recorded, changed)
    assert [line.partition(":")[0] for line in lines] == [
        "models.m0.raw.auc",
        "models.m1.policy.cost_interval[1]",
    ]
