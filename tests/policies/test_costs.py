"""Costs of every kind against exact fractions, case by case, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import numpy as np
import pandas as pd
import pytest

from fragility.cases.cases import Cases
from fragility.policies.costs import Costs, action_costs, decision_costs

from ..reference.policies import costs_of_case, review_decisions

MATRIX = [[0.25, 1.5, 2.0], [3.0, 0.5, 1.0], [6.0, 2.0, 0.0]]
N = 40


def table(n_classes=3, seed=0, **columns):
    """Cases of each class; the scores do not matter."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, N - n_classes)])
    scores = rng.random(N) if n_classes == 2 else rng.dirichlet(np.ones(n_classes), N)
    return Cases(y, {"m": scores}, tuple("abcdef"[:n_classes]), **columns)


def literal(cases, matrix, review, amounts=None, human=None, error=0):
    """Costs of each case under each decision; `error` of all cases or by case."""
    n_classes = len(matrix)
    rows = []
    for k, true in enumerate(cases.y.tolist()):
        error_of_case = error[k] if isinstance(error, np.ndarray) else error
        decided = None if human is None else int(human[k])
        shares = review_decisions(true, n_classes, decided, error_of_case)
        amount = 1 if amounts is None else amounts[k]
        rows.append([float(c) for c in costs_of_case(true, matrix, amount, review, shares)])
    return np.array(rows)


HUMANS = [[0.75, 0.125, 0.125], [0.0, 1.0, 0.0], [0.25, 0.25, 0.5]]
BY_CASE = np.random.default_rng(1).random(N)
ONES = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        (Costs(2.0, review=0.5), {"matrix": np.multiply(2, ONES), "review": 0.5}),
        (Costs(MATRIX, review=0.5), {"matrix": MATRIX, "review": 0.5}),
        (
            Costs(MATRIX, review=0.5, reviewer_error=0.25),
            {"matrix": MATRIX, "review": 0.5, "error": 0.25},
        ),
        (
            Costs(MATRIX, review=0.5, reviewer_error=HUMANS),
            {"matrix": MATRIX, "review": 0.5, "error": HUMANS},
        ),
        (
            Costs(MATRIX, review=0.5, reviewer_error=BY_CASE),
            {"matrix": MATRIX, "review": 0.5, "error": BY_CASE},
        ),
        (Costs(BY_CASE, review=0.5), {"matrix": ONES, "review": 0.5, "amounts": BY_CASE}),
        (
            Costs(BY_CASE, review=0.5, reviewer_error=0.5),
            {"matrix": ONES, "review": 0.5, "amounts": BY_CASE, "error": 0.5},
        ),
    ],
)
def test_costs_of_every_case_and_decision(costs, expected):
    cases = table()
    paid = action_costs(cases, costs, "m")
    np.testing.assert_allclose(paid, literal(cases, **expected), rtol=1e-13, atol=1e-15)


def test_costs_and_reviewers_by_case_may_be_columns_of_the_cases():
    amounts = BY_CASE + 1.0
    cases = table(error_cost=amounts, reviewer_error=BY_CASE)
    expected = literal(cases, ONES, 0.5, amounts, error=BY_CASE)
    np.testing.assert_allclose(action_costs(cases, Costs(review=0.5), "m"), expected, rtol=1e-13)


def test_a_human_decision_costs_what_the_matrix_says():
    human = np.random.default_rng(2).integers(0, 3, N)
    cases = table(human=human)
    paid = action_costs(cases, Costs(MATRIX, review=0.5), "m")
    np.testing.assert_allclose(paid, literal(cases, MATRIX, 0.5, human=human), rtol=1e-13)


def test_expected_costs_use_the_mean_decisions_of_reviewers_on_each_class():
    weight = np.random.default_rng(3).uniform(0.5, 2, N)
    human = np.random.default_rng(2).integers(0, 3, N)
    cases = table(human=human, weight=weight)
    costs = decision_costs(cases, Costs(MATRIX, review=0.5), "m")
    for code in range(3):
        rows = cases.y == code
        mean = np.average(np.array(MATRIX)[code, human[rows]], weights=weight[rows])
        assert costs.reviewed[code] == pytest.approx(mean)


def test_costs_by_case_have_the_mean_of_the_mass_in_the_matrix():
    weight = np.random.default_rng(3).uniform(0.5, 2, N)
    costs = decision_costs(table(weight=weight), Costs(BY_CASE, review=0.5), "m")
    mean = np.average(BY_CASE, weights=weight)
    np.testing.assert_allclose(costs.matrix, mean * np.array(ONES))


def test_costs_of_another_class_keep_the_amount_of_the_case():
    costs = decision_costs(table(), Costs(BY_CASE, review=0.5, reviewer_error=0.25), "m")
    decisions = np.tile([0, 3, 2], (N, 1))
    paid = costs.of_class(2, decisions, np.arange(N))
    expected = np.column_stack([BY_CASE, 0.25 * BY_CASE + 0.5, np.zeros(N)])
    np.testing.assert_allclose(paid, expected)


@pytest.mark.parametrize("positive", [0, 1])
def test_two_costs_follow_the_positive_class(positive):
    cases = replace(table(2), positive=positive)
    paid = action_costs(cases, Costs(miss=5, false_alarm=1, review=0.3), "m")
    miss, alarm = paid[cases.y == positive], paid[cases.y != positive]
    assert (miss[:, 1 - positive] == 5).all()
    assert (miss[:, positive] == 0).all()
    assert (alarm[:, positive] == 1).all()


def test_labelled_tables_are_aligned_by_name():
    matrix = np.array(MATRIX)
    frame = pd.DataFrame(matrix, list("abc"), list("abc")).loc[["c", "a", "b"], ["b", "c", "a"]]
    mapping = {true: dict(frame.loc[true]) for true in frame.index}
    for labelled in (frame, mapping):
        assert np.array_equal(Costs(labelled, review=1).checked(tuple("abc")).matrix, matrix)
    shares = {"c": 0.5, "a": 0.25, "b": 0.0}
    expected = Costs(1, reviewer_error=[0.25, 0.0, 0.5]).checked("abc").reviewer_error
    for labelled in (shares, pd.Series(shares)):
        checked = Costs(1, reviewer_error=labelled).checked("abc")
        assert np.array_equal(checked.reviewer_error, expected)


def test_right_decisions_that_a_mapping_leaves_out_cost_nothing():
    checked = Costs({"a": {"b": 1}, "b": {"a": 2, "b": 0.5}}).checked("ab")
    assert checked.matrix.tolist() == [[0, 1], [2, 0.5]]


def test_without_a_cost_reviews_are_not_on_offer():
    assert (action_costs(table(), Costs(MATRIX), "m")[:, -1] == inf).all()


def test_the_review_of_an_abstained_answer_costs_that_of_a_right_one():
    scores = np.array([0.2, nan, 0.9, nan])
    right = np.array([False, False, True, True])
    answers = Cases({"m": right}, {"m": scores}, ("wrong", "right"))
    error = {"wrong": 0.5, "right": 0.25}
    paid = action_costs(answers, Costs(4, review=1, reviewer_error=error), "m")
    assert paid[:, -1].tolist() == [3.0, 2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "no costs of errors"),
        ({"matrix": -1.0}, "matrix must be zero or more"),
        ({"matrix": np.ones(7)}, r"matrix has shape \(7,\)"),
        ({"matrix": [[0, 1], [1, 0]]}, r"of shape \(3, 3\)"),
        ({"matrix": np.triu(np.ones((3, 3)))}, "cheaper than being right: row 1"),
        ({"matrix": {"a": {"b": 1}}}, "no cost for 'b', 'c'"),
        (
            {"matrix": {"a": {"b": 1}, "b": {"a": 1, "c": 1}, "c": {"a": 1, "b": 1}}},
            "no cost in the row of true class 'a' for 'c'",
        ),
        ({"matrix": {"a": 1, "b": 2, "c": 3}}, "mapping of classes to costs"),
        ({"matrix": {"a": {"b": 1, "d": 1}, "b": {}, "c": {}}}, "for 'd', but the classes are"),
        ({"miss": 5, "false_alarm": 1}, r"of 3 give a cost for each pair: Costs\({'a': {'b': 1"),
        ({"matrix": 1, "review": -1}, "review must be zero or more"),
        ({"matrix": 1, "reviewer_error": 1.5}, "reviewer_error must be a share"),
        ({"matrix": 1, "reviewer_error": [0.1, 0.2]}, r"reviewer_error has shape \(2,\)"),
        ({"matrix": 1, "reviewer_error": [0.1, 0.2, 1.2]}, r"entry \[2\] is 1.2"),
        ({"matrix": 1, "reviewer_error": np.ones((3, 3)) / 2}, "row 0 sums to 1.5"),
        ({"matrix": 1, "reviewer_error": {"a": 0.1}}, "missing, or are not classes: 'b', 'c'"),
    ],
)
def test_costs_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        action_costs(table(), Costs(**arguments), "m")


def test_costs_that_are_said_twice_are_refused():
    with pytest.raises(ValueError, match="Both a matrix"):
        Costs(1, miss=2)
    with pytest.raises(ValueError, match="false_alarm is missing"):
        Costs(miss=2)
    with pytest.raises(ValueError, match="for all cases and by case"):
        action_costs(table(error_cost=BY_CASE), Costs(1), "m")
    with pytest.raises(ValueError, match="more than once"):
        action_costs(table(reviewer_error=BY_CASE), Costs(1, reviewer_error=0.1), "m")
    answers = Cases({"m": np.array([True])}, {"m": np.ones(1)}, ("wrong", "right"))
    with pytest.raises(ValueError, match="one kind of error"):
        action_costs(answers, Costs(miss=1, false_alarm=1), "m")
