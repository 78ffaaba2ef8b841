"""Thresholds beside those of `best_policy`, on the sets of the bank that it takes as arrays."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fragility import best_policy
from fragility.cases.cases import Cases
from fragility.policies.choose import PolicySearch
from fragility.policies.costs import Costs
from fragility.policies.guarantee import Limits

from ..golden.more_sets import more_sets
from ..golden.sets import cases as sets

OPTIONS = ("cluster", "sample_weight", "human", "labels", "pos_label")
#: Sets with limits of errors have thresholds on the edges of bins in `best_policy`.
SETS = {
    name: case
    for name, case in [*sets(), *more_sets()]
    if "costs" in case and "y" in case and "max_" not in str(case.get("policy"))
}


def cases_of(case, model):
    """Cases of positive weight, and their costs."""
    labels = list(case.get("labels", np.unique(case["y"])))
    y = np.array([labels.index(label) for label in case["y"]])
    weight = case.get("sample_weight")
    rows = np.arange(y.size) if weight is None else np.flatnonzero(weight)
    columns = {
        name: np.unique(case[key], return_inverse=True)[1][rows]
        for name, key in (("cluster", "cluster"), ("human", "human"))
        if key in case
    }
    if weight is not None:
        columns["weight"] = weight[rows]
    positive = labels.index(case["pos_label"]) if "pos_label" in case else 1
    scores = {model: case["models"][model][rows]}
    costs = Costs(
        case["costs"]["error_cost"],
        review=case["costs"]["review_cost"],
        reviewer_error=case["costs"].get("reviewer_error", 0.0),
    )
    return Cases(y[rows], scores, tuple(labels), positive, **columns), costs


@pytest.mark.parametrize("name", SETS)
def test_thresholds_equal_those_of_best_policy(name):
    case = SETS[name]
    options = {"rule": "auto", "criterion": "cost", "slack": 0.1} | case.get("policy", {})
    for model, proba in case["models"].items():
        columns = {key: case[key] for key in case if key in OPTIONS}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            expected = best_policy(case["y"], proba, **case["costs"], **options, **columns)
        cases, costs = cases_of(case, model)
        search = PolicySearch(
            cases,
            model,
            costs,
            limits=Limits(capacity=case["costs"].get("capacity")),
            rule=options["rule"],
            criterion=options["criterion"],
            cost_tolerance=options["slack"],
        )
        policy = search.policy()
        decision = expected.decision
        if proba.ndim == 1:
            thresholds = decision.lower, decision.upper, decision.suggestion
            assert (policy.lower, policy.upper, policy.suggestion) == pytest.approx(
                thresholds, rel=1e-12
            )
        else:
            assert policy.lower == pytest.approx(decision.limit, rel=1e-12)
        assert policy.automation_rate == pytest.approx(expected.automation_rate, abs=1e-12)
        error = (expected.cost_interval.high - expected.cost) / 1.96
        mean = np.average(search.held_out()[0].cost, weights=cases.mass)
        # Folds that are dealt otherwise move the mean of `best_policy` itself by up to its error.
        assert abs(mean - expected.cost) <= 2.0 * error + 1e-12
