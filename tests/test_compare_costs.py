"""The paired test of costs against costs that are counted case by case."""

from __future__ import annotations

import json
from math import isnan

import numpy as np
import pytest
from scipy import stats
from scipy.stats import ttest_rel

from fragility import Costs, Policy, best_policy, compare_costs
from fragility._validation import check_labelled_probabilities
from fragility.deferral import CostComparison, PolicySettings
from fragility.deferral.policy_search import PolicyCases

from .confident_models import classes_drawn, logistic, model


def two_models(seed, n=1200):
    rng = np.random.default_rng(seed)
    logit = rng.normal(-1, 2, n)
    y = (rng.random(n) < logistic(logit)).astype(int)
    return y, logistic(logit), logistic(logit + rng.normal(0, 1.5, n))


def literal(policy, y, p, error_cost, review, rate):
    """Cost of each case at two thresholds."""
    found = []
    for k, (label, score) in enumerate(zip(y, p, strict=True)):
        if np.ndim(error_cost) == 2:
            row = error_cost[label]
        else:
            amount = error_cost[k] if np.ndim(error_cost) else error_cost
            row = [amount, 0.0] if label else [0.0, amount]
        if score < policy.lower:
            found.append(row[0])
        elif score >= policy.upper:
            found.append(row[1])
        else:
            found.append(review + (1 - rate) * row[label] + rate * row[1 - label])
    return np.array(found)


@pytest.mark.parametrize("kind", ["number", "matrix", "cases"])
@pytest.mark.parametrize("seed", range(3))
def test_fixed_policies_are_a_paired_t_test(seed, kind):
    y, a, b = two_models(seed)
    cost = {"number": 4.0, "matrix": [[0.1, 1.0], [5.0, 0.5]]}.get(kind)
    if cost is None:
        cost = np.random.default_rng(seed).integers(1, 9, y.size).astype(float)
    options = {"review_cost": 0.6, "reviewer_error": 0.05}
    policies = tuple(
        best_policy(*model(seed + 9, 500, steepness), error_cost=[[0, 1], [4, 0]], review_cost=0.6)
        for steepness in (1.0, 2.0)
    )
    found = compare_costs(y, a, b, error_cost=cost, policies=policies, confidence=0.9, **options)
    paid = [
        literal(policy, y, p, cost, 0.6, 0.05) for policy, p in zip(policies, (a, b), strict=True)
    ]
    expected = ttest_rel(*paid)
    assert found.a == pytest.approx(paid[0].mean(), rel=1e-12)
    assert found.b == pytest.approx(paid[1].mean(), rel=1e-12)
    assert found.difference == pytest.approx((paid[0] - paid[1]).mean(), rel=1e-9)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-8)
    np.testing.assert_allclose(found.interval, expected.confidence_interval(0.9), rtol=1e-8)
    assert not found.too_few
    assert found.n_samples == 1200


@pytest.mark.parametrize("rule", ["auto", "tuned", "expected_cost", "confidence"])
@pytest.mark.parametrize("kind", ["matrix", "weights", "cases"])
def test_cross_fitted_costs_are_those_of_the_policies(rule, kind):
    y, a, b = two_models(5, 900)
    rng = np.random.default_rng(0)
    options = {"error_cost": [[0, 1], [5, 0]], "review_cost": 0.5, "rule": rule}
    if kind == "weights":
        options["sample_weight"] = rng.choice([0.0, 1.0, 2.0], 900)
    if kind == "cases":
        options["error_cost"] = rng.integers(1, 9, 900)
    found = compare_costs(y, a, b, **options)
    one, other = best_policy(y, a, **options), best_policy(y, b, **options)
    assert found.a == pytest.approx(one.cost, rel=1e-10)
    assert found.b == pytest.approx(other.cost, rel=1e-10)
    assert found.difference == pytest.approx(one.cost - other.cost, rel=1e-8, abs=1e-12)
    low, high = found.interval
    assert low < found.difference < high
    assert (found.p_value < 0.05) == (low > 0 or high < 0)


def test_several_classes():
    codes, p = classes_drawn(np.random.default_rng(2), 500)
    noisy = 0.5 * p + 0.5 / 3
    options = {"error_cost": 4, "capacity": 0.4}
    found = compare_costs(codes, p, noisy[:, [1, 2, 0]], **options)
    assert found.a == pytest.approx(best_policy(codes, p, **options).cost, rel=1e-10)
    assert found.difference < 0
    assert found.p_value < 0.01


def test_swapping_the_models_turns_the_sign():
    y, a, b = two_models(6, 500)
    one, other = (compare_costs(y, *pair, error_cost=5) for pair in ((a, b), (b, a)))
    assert one.difference == -other.difference
    assert one.p_value == other.p_value
    np.testing.assert_allclose(one.interval, [-end for end in other.interval[::-1]])


def test_shared_thresholds_widen_the_interval():
    """With cuts that every fold agrees on the standard error is 1.2 times the plain one."""
    y, a, b = two_models(7)
    options = {"error_cost": 1, "review_cost": 5, "rule": "confidence"}
    found = compare_costs(y, a, b, **options)
    paid = [((p > 0.5) != y).astype(float) for p in (a, b)]
    low, high = ttest_rel(*paid).confidence_interval()
    assert found.difference == pytest.approx((paid[0] - paid[1]).mean(), rel=1e-9)
    assert found.interval.high - found.interval.low == pytest.approx(1.2 * (high - low), rel=1e-8)


@pytest.mark.parametrize("fixed", [False, True])
def test_identical_models_have_no_test(fixed):
    y, a, _ = two_models(8, 400)
    policy = best_policy(y, a, error_cost=5)
    found = compare_costs(y, a, a, error_cost=5, policies=(policy, policy) if fixed else None)
    assert found.difference == 0.0
    assert found.a == found.b
    assert isnan(found.p_value)
    assert np.isnan(found.interval).all()
    assert not found.too_few
    assert "the costs do not differ" in repr(found)


def test_too_few_costly_cases():
    y, a, _ = two_models(9, 400)
    b = a.copy()
    policy = best_policy(y, a, error_cost=5)
    swapped = np.flatnonzero((y == 1) & (a > 0.9) & (a >= policy.upper))[:5]
    b[swapped] = 0.0
    found = compare_costs(y, a, b, error_cost=5, policies=(policy, policy))
    assert found.difference == pytest.approx(-25 / 400)
    assert found.test.effective == pytest.approx(5.0)
    assert not isnan(found.p_value)  # a plain t test, whatever it rests on
    y, a, b = two_models(0, 250)
    amounts = np.where(np.arange(250) < 3, 300.0, 1.0)
    crossed = compare_costs(y, a, b, error_cost=amounts, review_cost=5)
    assert crossed.test.effective < 10.0
    assert crossed.too_few
    assert isnan(crossed.p_value)
    assert "too few costly cases" in repr(crossed)


def test_plain_values_and_words():
    y, a, b = two_models(1, 400)
    found = compare_costs(y, a, b, error_cost=5)
    assert isinstance(found, CostComparison)
    stored = json.loads(json.dumps(found.to_dict()))
    assert stored["difference"] == found.difference
    assert stored["interval"] == list(found.interval)
    assert f"{found.p_value:.3g}" in repr(found)


def test_bad_input():
    y, a, b = two_models(1, 60)
    policy = best_policy(np.array(["no", "yes"])[y], a, error_cost=5)
    with pytest.raises(ValueError, match="The policy is for the classes"):
        compare_costs(y, a, b, error_cost=5, policies=(policy, policy))
    with pytest.raises(ValueError, match="proba_b"):
        compare_costs(y, a, b[:-1], error_cost=5)
    with pytest.raises(ValueError, match="rule"):
        compare_costs(y, a, b, error_cost=5, rule="best")


def test_policies_of_another_positive_class_are_refused():
    y, a, b = two_models(1, 300)
    own = best_policy(y, a, error_cost=5)
    turned = best_policy(y, 1 - a, error_cost=5, pos_label=0)
    with pytest.raises(ValueError, match="for scores of the class 0, these are of 1"):
        compare_costs(y, a, b, error_cost=5, policies=(turned, own))
    with pytest.raises(ValueError, match="a Policy for each of proba_a and proba_b"):
        compare_costs(y, a, b, error_cost=5, policies=own)
    named = best_policy(y.astype(str), a, error_cost=5)
    with pytest.raises(ValueError, match="The policy is for the classes"):
        compare_costs(y, a, b, error_cost=5, policies=(named, named))


@pytest.mark.parametrize("kind", ["number", "matrix", "by case", "reviewers", "three", "clusters"])
@pytest.mark.parametrize("weighted", [False, True])
def test_policies_against_no_review_and_full_review(kind, weighted):
    """Sums over kinds of cases are those over the cases, one after the other."""
    rng = np.random.default_rng(len(kind) + weighted)
    n, n_classes = 240, 3 if kind == "three" else 2
    y = rng.integers(0, n_classes, n)
    proba = rng.dirichlet(np.ones(n_classes), n) + 1.2 * np.eye(n_classes)[y]
    proba /= proba.sum(axis=1, keepdims=True)
    cost = {"matrix": [[0.0, 1.0], [4.0, 0.0]], "by case": rng.choice([1.0, 4.0, 9.0], n)}
    weights = rng.choice([1.0, 2.0, 5.0], n) if weighted else None
    if kind == "by case" and weighted:
        weights = np.full(n, 2.0)  # else sums do not tell how weights go with costs
    clusters = rng.integers(0, 60, n) if kind == "clusters" else None
    data = check_labelled_probabilities(
        y, proba if n_classes > 2 else proba[:, 1], None, None, weights, name="proba"
    )
    # Of the squared cost of a review that may go as wrong as a case is dear, a bound is known.
    errors = {"reviewers": rng.choice([0.0, 0.1, 0.5], n), "by case": 0.0}.get(kind, 0.05)
    costs = Costs(cost.get(kind, 5.0), 0.7, None, errors)
    cases = PolicyCases.of(data, costs, clusters)
    problem, solved = cases.solved(PolicySettings.of(), 0.95, 0)
    paid = cases._paid(problem, solved.mix)
    others = {
        "against_no_review": cases._paid(problem, solved.bare_mix),
        "against_full_review": cases._paid(problem, np.eye(3)[1][:, None] + 0 * solved.mix),
    }
    policy = cases.policy(PolicySettings.of(), 0.95, 0)
    for name, other in others.items():
        w = np.ones(n) if weights is None else weights / weights.max()
        each, total = w * (paid - other), w.sum()
        units = [[i] for i in range(n)]
        if clusters is not None:
            units = [np.flatnonzero(clusters == c) for c in np.unique(clusters)]
        parts = [(sum(w[i] for i in rows), sum(each[i] for i in rows)) for rows in units]
        mean = sum(d for _, d in parts) / total
        size = total**2 / sum(part**2 for part, _ in parts)
        spread = sum((d - mean * part) ** 2 for part, d in parts) * size / (size - 1)
        test = getattr(policy, name)
        assert test.a == pytest.approx(policy.cost)
        assert test.difference == pytest.approx(mean, rel=1e-9, abs=1e-12)
        reach = 1.2 * stats.t.ppf(0.975, size - 1) * np.sqrt(spread) / total
        if np.isnan(test.p_value):
            assert test.too_few or reach == pytest.approx(0.0, abs=1e-9)
            continue
        assert test.interval == pytest.approx((mean - reach, mean + reach), rel=1e-8, abs=1e-10)
    again = Policy.from_dict(json.loads(policy.to_json()))
    assert again.against_full_review.interval == pytest.approx(
        policy.against_full_review.interval, nan_ok=True
    )
