"""Policies against loops over all thresholds, and what their held-out decisions may not know."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest

from fragility.cases.cases import Cases
from fragility.policies.choose import PolicySearch, policy_folds
from fragility.policies.costs import Costs, action_costs
from fragility.policies.guarantee import Limits

from ..reference import policies as reference


def two_classes(seed, n=40, digits=2, **columns):
    """Cases with tied scores that are roughly calibrated."""
    rng = np.random.default_rng(seed)
    score = np.round(rng.beta(0.6, 0.6, n), digits)
    y = (rng.random(n) < score).astype(int)
    y[:4] = [0, 0, 1, 1][:n]
    return Cases(y, {"m": score}, **columns)


def several_classes(seed, n=60, **columns):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(3), n)
    y = (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    y[:6] = 0, 0, 1, 1, 2, 2
    return Cases(y, {"m": p}, (0, 1, 2), **columns)


def cost_table(seed, n):
    """Costs for the library, and the same for the reference."""
    rng = np.random.default_rng([seed, 7])
    review, error = float(rng.choice([0.1, 0.3, 1])), float(rng.choice([0, 0.125]))
    matrix = [[0.0, 1.0], [float(rng.choice([1, 5])), 0.25]]
    if seed % 4 == 0:
        matrix = np.round(rng.uniform(0, 4, n), 1).tolist()
    if seed % 4 == 1:
        matrix = 2.0
    literal = {"error_cost": matrix, "review_cost": review, "reviewer_error": error}
    return Costs(matrix, review=review, reviewer_error=error), literal


@pytest.mark.parametrize("seed", range(40))
def test_tuned_thresholds_are_the_cheapest_of_all(seed):
    weight = None
    if seed % 3 == 0:
        weight = np.random.default_rng(seed).integers(1, 4, 40).astype(float)
    positive = seed // 2 % 2
    cases = two_classes(seed, weight=weight, positive=positive)
    costs, literal = cost_table(seed, cases.n)
    share = None if seed % 2 else float(np.random.default_rng(seed).choice([0, 0.125, 0.5]))
    policy = PolicySearch(cases, "m", costs, rule="tuned", limits=Limits(capacity=share)).policy()
    rows = reference.two_class_cases(
        cases.y.tolist(), cases.scores["m"].tolist(), weight, positive, **literal
    )
    least, ((reviews, *_), *_) = reference.best_pairs(rows, share, room=1e-11)
    cost, reviewed = reference.paid(rows, policy.lower, policy.upper)
    assert float(cost) == pytest.approx(float(least), abs=1e-9)
    assert float(reviewed) == pytest.approx(float(reviews), abs=1e-9)
    assert policy.automation_rate == pytest.approx(1 - float(reviewed) / cases.mass.sum())


@pytest.mark.parametrize("rule", ["auto", "expected_cost"])
@pytest.mark.parametrize("seed", range(20))
def test_blended_thresholds_are_the_cheapest_by_expected_costs(seed, rule):
    weight = np.random.default_rng(seed).uniform(0.5, 2, 40) if seed % 3 == 0 else None
    cases = two_classes(seed, weight=weight)
    costs, literal = cost_table(seed, cases.n)
    policy = PolicySearch(cases, "m", costs, rule=rule).policy()
    platt = policy.probability_map.platt
    slope = platt.slope / platt.scale
    line = slope, platt.intercept - slope * platt.centre
    share = 1.0 if rule == "expected_cost" else 1000 / 1040
    scores = cases.scores["m"].tolist()
    rows = reference.blended_cases(cases.y.tolist(), scores, share, line, weight, 1, **literal)
    least, ((reviews, *_), *_) = reference.best_pairs(rows, room=1e-9)
    cost, reviewed = reference.paid(rows, policy.lower, policy.upper)
    assert cost == pytest.approx(least, rel=1e-9)
    assert float(reviewed) == pytest.approx(float(reviews), abs=1e-6)


def test_a_threshold_lies_midway_between_its_neighbours():
    y, score = np.array([0, 0, 0, 1, 0, 1, 1, 1]), np.arange(1, 9) / 16
    policy = PolicySearch(Cases(y, {"m": score}), "m", Costs(1, review=0.25), rule="tuned").policy()
    assert (policy.lower, policy.upper) == (3.5 / 16, 5.5 / 16)


def test_expected_cost_thresholds_follow_the_formula():
    """By the map, lower = (r + ρF)/((1−ρ)M + ρF) and upper = ((1−ρ)F − r)/((1−ρ)F + ρM)."""
    cases = two_classes(3, n=20_000, digits=9)
    miss, alarm, review, error = 5.0, 2.0, 0.3, 0.05
    costs = Costs(miss=miss, false_alarm=alarm, review=review, reviewer_error=error)
    policy = PolicySearch(cases, "m", costs, rule="expected_cost").policy()
    p = policy.probability_map(np.array([policy.lower, policy.upper]))[:, 1]
    lower = (review + error * alarm) / ((1 - error) * miss + error * alarm)
    upper = ((1 - error) * alarm - review) / ((1 - error) * alarm + error * miss)
    assert p == pytest.approx([lower, upper], abs=1e-3)


@pytest.mark.parametrize("rule", ["tuned", "expected_cost", "confidence"])
@pytest.mark.parametrize("seed", range(8))
def test_several_classes_are_cut_where_it_is_cheapest(seed, rule):
    cases = several_classes(seed)
    matrix, review, error = [[0.0, 1.0, 2.0], [3.0, 0.0, 1.0], [6.0, 2.0, 0.5]], 0.4, 0.125
    policy = PolicySearch(
        cases, "m", Costs(matrix, review=review, reviewer_error=error), rule=rule
    ).policy()
    p, y = cases.scores["m"].tolist(), cases.y.tolist()
    temperature, loss_matrix, loss_error = policy.probability_map.temperature, matrix, error
    if rule == "confidence":
        temperature, loss_matrix, loss_error = 1.0, (1 - np.eye(3)).tolist(), 0.0
    losses = reference.expected_losses(p, loss_matrix, loss_error, temperature)
    each = []
    for true, (decided, loss, chances) in zip(y, losses, strict=True):
        paid = [reference.prices(c, matrix, review, error, 3) for c in range(3)]
        if rule == "expected_cost":
            alone = sum(q * float(row[decided]) for q, (row, _) in zip(chances, paid, strict=True))
            reviewed = sum(q * float(v) for q, (_, v) in zip(chances, paid, strict=True))
        else:
            alone, reviewed = float(paid[true][0][decided]), float(paid[true][1])
        each.append((loss, alone, reviewed))

    def cost(limit):
        return sum(alone if loss < limit else reviewed for loss, alone, reviewed in each)

    least = min(cost(limit) for limit in [-inf, inf, *(loss + 1e-9 for loss, *_ in each)])
    assert cost(policy.lower) == pytest.approx(least, abs=1e-9)
    assert policy.upper == inf


@pytest.mark.parametrize("positive", [0, 1])
@pytest.mark.parametrize("seed", range(4))
def test_the_confidence_rule_has_one_threshold_of_the_confidence(seed, positive):
    cases = two_classes(seed, digits=1, positive=positive)
    score, y = cases.scores["m"].copy(), cases.y
    score[::9] = 0.5
    costs = Costs([[0, 1], [2, 0]], review=0.4)
    paid = action_costs(cases, costs, "m")
    policy = PolicySearch(
        replace(cases, scores={"m": score}), "m", costs, rule="confidence"
    ).policy()
    # At one half the first class is predicted, be it the positive one or not.
    first = 1 - score if positive == 1 else score
    predicted = np.where(first >= 0.5, 0, 1)
    confidence = np.maximum(score, 1 - score)
    rows = np.arange(y.size)
    least = min(
        paid[rows, np.where(confidence > level, predicted, 2)].sum() for level in [0.0, *confidence]
    )
    decided = np.where(
        score < policy.lower, 1 - positive, np.where(score >= policy.upper, positive, 2)
    )
    assert paid[rows, decided].sum() == pytest.approx(least)
    alone = decided < 2
    assert (decided[alone] == predicted[alone]).all()


def answers(seed, n=200):
    rng = np.random.default_rng(seed)
    confidence = rng.random(n)
    right = rng.random(n) < confidence
    confidence[::10] = nan
    return Cases({"m": right}, {"m": confidence}, ("wrong", "right"))


def test_answers_are_never_turned_round_and_abstained_cases_always_reviewed():
    cases = answers(1)
    abstained = np.isnan(cases.scores["m"])
    search = PolicySearch(cases, "m", Costs(4, review=1))
    policy = search.policy()
    assert policy.lower == 0.0
    assert 0.0 < policy.upper < 1.0
    held_out, without_review = search.held_out()
    for decisions in held_out.decisions:
        assert {*np.unique(decisions)} <= {1, 2}
        assert (decisions[abstained] == 2).all()
    assert (without_review.decisions[:, ~abstained] == 1).all()
    over = PolicySearch(cases, "m", Costs(4, review=1), limits=Limits(capacity=0.05)).policy()
    assert not over.within_capacity
    assert "abstained" in over.notes[0]
    assert over.automation_rate == pytest.approx(0.9)


def test_capacity_counts_the_cases_that_the_model_abstained_on():
    policy = PolicySearch(answers(1), "m", Costs(9, review=1), limits=Limits(capacity=0.3)).policy()
    assert 0.69 <= policy.automation_rate <= 0.71


@pytest.mark.parametrize("share", [0.2, 0.3])
def test_two_classes_may_abstain_and_these_cases_take_capacity(share):
    cases = two_classes(4, n=100)
    score = cases.scores["m"].copy()
    score[::10] = nan
    costs, scored = Costs([[0, 1], [5, 0]], review=0.1), ~np.isnan(score)
    search = PolicySearch(
        replace(cases, scores={"m": score}), "m", costs, Limits(capacity=share), "tuned"
    )
    policy = search.policy()
    room = (100 * share - 10) / 90
    alone = PolicySearch(cases.take(scored), "m", costs, Limits(capacity=room), "tuned").policy()
    assert (policy.lower, policy.upper) == (alone.lower, alone.upper)
    assert policy.automation_rate == pytest.approx(0.9 * alone.automation_rate)
    assert (search.held_out()[0].decisions[:, ~scored] == 2).all()


def test_without_a_review_cost_two_classes_have_one_cut():
    cases = two_classes(5, n=300)
    costs = Costs(miss=5, false_alarm=1)
    search = PolicySearch(cases, "m", costs, rule="tuned")
    policy = search.policy()
    assert policy.lower == policy.upper
    assert policy.fragility is None
    ends = [0.0, *np.unique(cases.scores["m"]), inf]
    paid = action_costs(cases, costs, "m")
    cost = [np.where(cases.scores["m"] < cut, paid[:, 0], paid[:, 1]).sum() for cut in ends]
    chosen = np.where(cases.scores["m"] < policy.lower, paid[:, 0], paid[:, 1]).sum()
    assert chosen == pytest.approx(min(cost))
    assert np.isfinite(search.held_out()[0].cost).all()


@pytest.mark.parametrize(
    ("cases", "options", "message"),
    [
        (answers(1), {}, "m abstained on 20 of 200 cases"),
        (two_classes(1), {"criterion": "fragility"}, "cost of full review"),
        (two_classes(1), {"limits": Limits(error_rate=0.1)}, "need a review"),
        (two_classes(1, n=3), {}, "at least 4 cases"),
        (two_classes(1), {"rule": "confidence", "limits": Limits(miss_rate=0.1)}, "neither limits"),
        (two_classes(1), {"rule": "cheap"}, "rule must be one of"),
        (two_classes(1), {"limits": Limits(level=0.9)}, "no limit to guarantee"),
        (two_classes(1), {"limits": Limits(error_rate=0.0)}, "above 0 and below 1"),
        (several_classes(1), {"limits": Limits(miss_rate=0.1)}, "miss_rate is for two classes"),
        (two_classes(1), {"limits": Limits(capacity=10)}, "capacity must be a share"),
    ],
)
def test_what_makes_no_sense_is_refused(cases, options, message):
    with pytest.raises(ValueError, match=message):
        PolicySearch(cases, "m", Costs(1), **options).policy()


def test_scores_of_the_other_class_decide_all_cases_alike():
    cases = two_classes(2, n=400)
    reversed_scores = replace(cases, scores={"m": 1 - cases.scores["m"]})
    policy = PolicySearch(reversed_scores, "m", Costs([[0, 1], [5, 0]], review=0.3)).policy()
    assert (policy.lower, policy.upper) in [(0.0, 0.0), (0.0, inf), (inf, inf)]
    assert "scores of the other class" in policy.notes[0]


def test_too_few_cases_of_a_class_are_not_calibrated():
    y = np.array([0, 0, 0, 0, 0, 1])
    policy = PolicySearch(Cases(y, {"m": np.arange(6) / 8}), "m", Costs(1, review=0.1)).policy()
    assert not policy.probability_map.is_fitted
    assert "uncalibrated" in policy.notes[0]


def test_folds_are_even_within_classes_and_keep_clusters_together():
    cases = two_classes(0, n=203)
    deals = policy_folds(cases, "m", 0)
    assert len(deals) == 4
    for folds in deals:
        for code in (0, 1):
            numbers = np.bincount(folds[cases.y == code])
            assert numbers.size == 5
            assert np.ptp(numbers) <= 1
    cluster = np.random.default_rng(0).integers(0, 30, 203)
    for folds in policy_folds(replace(cases, cluster=cluster), "m", 0):
        assert all(np.unique(folds[cluster == c]).size == 1 for c in np.unique(cluster))


def test_folds_of_a_sample_are_ranks_of_its_numbers_within_cells():
    rng = np.random.default_rng(0)
    cell, number = rng.integers(0, 7, 90), rng.random(90)
    cases = two_classes(0, n=90, number=number, cell=cell, count=np.ones(90))
    (folds,) = policy_folds(cases, "m", 0)
    for k in range(90):
        below = sum(number[j] < number[k] for j in range(90) if cell[j] == cell[k])
        assert folds[k] == below % 5


def test_clusters_of_one_class_each_are_refused():
    y = np.repeat([0, 1], 20)
    cases = Cases(y, {"m": np.linspace(0, 1, 40)}, cluster=np.repeat([0, 1, 2, 3], [17, 2, 1, 20]))
    with pytest.raises(ValueError, match="separate the classes"):
        PolicySearch(cases, "m", Costs(1, review=0.1)).held_out()


@pytest.mark.parametrize("rule", ["tuned", "expected_cost"])
def test_held_out_decisions_do_not_depend_on_the_class_of_the_case(rule):
    """Folds of clusters do not look at classes, so another class changes other cases alone."""
    cases = two_classes(6, n=60, cluster=np.arange(60))
    costs = Costs([[0, 1], [5, 0]], review=0.3)
    before = PolicySearch(cases, "m", costs, rule=rule).held_out()[0].decisions
    changed = 0
    for k in range(0, 60, 4):
        y = cases.y.copy()
        y[k] = 1 - y[k]
        after = PolicySearch(replace(cases, y=y), "m", costs, rule=rule).held_out()[0].decisions
        assert (after[:, k] == before[:, k]).all()
        changed += int((after != before).any())
    assert changed > 0  # the change is large enough to move other decisions


def test_held_out_costs_are_the_mean_cost_of_the_held_out_decisions():
    cases = several_classes(2, n=100)
    costs = Costs(2, review=0.4, reviewer_error=0.1)
    held_out, _ = PolicySearch(cases, "m", costs).held_out()
    paid = action_costs(cases, costs, "m")
    expected = [paid[k, held_out.decisions[:, k]].mean() for k in range(100)]
    assert held_out.cost == pytest.approx(expected)


def test_rows_with_counts_choose_as_repeated_cases():
    """Thresholds of observed costs depend on the mass alone."""
    cases = two_classes(8, n=50)
    count = np.random.default_rng(0).integers(1, 4, 50)
    repeated = np.repeat(np.arange(50), count)
    costs = Costs([[0, 1], [5, 0]], review=0.3)
    sampled = replace(cases, count=count.astype(float), number=np.linspace(0, 1, 50))
    one = PolicySearch(sampled, "m", costs, rule="tuned").policy()
    other = PolicySearch(cases.take(repeated), "m", costs, rule="tuned").policy()
    assert (one.lower, one.upper) == (other.lower, other.upper)
