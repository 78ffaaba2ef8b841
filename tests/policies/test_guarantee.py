"""Guarantees against binomial sums, literal paths and bets, and simulations of their promise."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from scipy.stats import binom

from fragility.cases.cases import Cases
from fragility.policies.choose import PolicySearch
from fragility.policies.costs import Costs
from fragility.policies.guarantee import (
    Limits,
    PathCases,
    allowed_errors,
    at_most_probability,
    cases_that_pass,
)

from ..confident_models import logistic, model
from ..reference import policies as reference

COSTS = Costs([[0, 1], [5, 0]], review=0.3)


@pytest.mark.parametrize("limit", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("delta", [0.2, 0.05])
def test_allowed_errors_are_counted_by_binomial_sums(limit, delta):
    for n in (1, 2, 7, 29, 59, 80):
        assert allowed_errors(n, limit, delta) == reference.most_errors(n, limit, delta)
        for k in (0, 3, n):
            tail = float(reference.binomial_tail(min(k, n), n, limit))
            assert at_most_probability(k, n, limit) == pytest.approx(tail, rel=1e-10)
    assert allowed_errors(0, limit, delta) == -1


@pytest.mark.parametrize("limit", [0.02, 0.1, 0.5])
def test_the_least_number_of_cases_that_passes(limit):
    for errors in range(4):
        numbers = np.arange(errors + 1, 2000)
        first = numbers[binom.cdf(errors, numbers, limit) <= 0.05][0]
        assert cases_that_pass(errors, limit, 0.05) == first


def path(seed, n=60):
    """Cases whose errors become more common along a path with ties."""
    rng = np.random.default_rng(seed)
    price = np.round(rng.normal(size=n), 1)
    wrong = rng.random(n) < logistic(-price - 3)
    return price, wrong, PathCases(price, wrong, np.zeros(n, dtype=np.intp), wrong)


@pytest.mark.parametrize("seed", range(20))
def test_an_error_share_ends_before_the_error_that_goes_beyond(seed):
    price, wrong, cases = path(seed)
    limit = float(np.random.default_rng(seed).choice([0.02, 0.1, 0.25]))
    proved = cases.test("error_share", limit, 0.1, 1.0).proved_prices()
    automated = reference.automated_for_share(price.tolist(), wrong.tolist(), limit, 0.1)
    assert {*np.flatnonzero(price > (proved[0] if proved.size else inf))} == automated


@pytest.mark.parametrize("seed", range(20))
def test_an_error_rate_is_one_fixed_sequence_of_tests(seed):
    price, wrong, cases = path(seed)
    limit = float(np.random.default_rng(seed).choice([0.1, 0.25]))
    proved = cases.test("error_rate", limit, 0.1, 1.0).proved_prices()
    expected = reference.rates_that_pass(price.tolist(), wrong.tolist(), limit, 0.1)
    assert proved.tolist() == expected


@pytest.mark.parametrize("scale", [1.25, 2.0])
def test_each_case_can_count_as_several(scale):
    price, _, cases = path(0)
    test = cases.test("error_share", 0.1, 0.1, scale)
    errors = scale * np.cumsum(cases.is_wrong[np.argsort(-price, kind="stable")])
    beyond = np.flatnonzero(errors > allowed_errors(60 * scale, 0.1, 0.1))
    expected = np.sort(price)[::-1][beyond[0]] if beyond.size else -inf
    assert test.proved_prices()[0] == expected


@pytest.mark.parametrize("name", ["error_share", "error_rate"])
@pytest.mark.parametrize("seed", range(4))
def test_bets_are_placed_on_one_cluster_after_the_other(seed, name):
    rng = np.random.default_rng(seed)
    price, wrong, cases = path(seed, 900)
    cluster, weight = rng.integers(0, 300, 900), rng.uniform(0.5, 2, 900)
    cluster = np.unique(cluster, return_inverse=True)[1]
    cases = cases._replace(weight=weight, cluster=cluster)
    limit = 0.15 if name == "error_share" else 0.3
    proved = cases.test(name, limit, 0.05, 1.0).proved_prices()

    def sums(mask):
        return np.bincount(cluster, weight * mask)

    def wins(automated):
        base = sums(automated) if name == "error_rate" else sums(True)
        largest = sums(True).max()
        return reference.bets_win(sums(automated & wrong), base, limit, 0.05, largest)

    assert proved.size
    for proved_price in proved:
        assert wins(price >= proved_price if name == "error_rate" else price > proved_price)
    # The path ends at the first of 200 points that is lost.
    if name == "error_share" and proved[0] > -inf:
        errors = np.sort(price[wrong])[::-1]
        points = errors[np.linspace(0, errors.size - 1, min(200, errors.size)).astype(int)]
        following = np.unique(np.append(points[points < proved[0]], -inf))[-1]
        assert not wins(price > following)


@pytest.mark.parametrize("positive", [0, 1])
def test_misses_and_false_alarms_are_limited_by_scores_of_their_class(positive):
    y, score = model(5, 400)
    cases = Cases(y, {"m": score}, positive=positive)
    is_positive = y == positive
    limit, delta = 0.1, 0.05
    policy = PolicySearch(cases, "m", COSTS, limits=Limits(miss_rate=limit)).policy()
    if not policy.guarantees[0].proved:
        assert policy.lower == 0.0
        return
    most = reference.most_errors(int(is_positive.sum()), limit, delta)
    assert policy.lower <= np.sort(score[is_positive])[most]
    policy = PolicySearch(cases, "m", COSTS, limits=Limits(false_alarm_rate=limit)).policy()
    most = reference.most_errors(int((~is_positive).sum()), limit, delta)
    assert policy.upper > np.sort(score[~is_positive])[::-1][most]


def test_thresholds_automate_no_score_beyond_the_certified_ones():
    y, score = model(3, 600, 1.5)
    cases = Cases(y, {"m": score})
    free = PolicySearch(cases, "m", Costs(1, review=0.6)).policy()
    policy = PolicySearch(
        cases, "m", Costs(1, review=0.6), limits=Limits(error_share=0.03)
    ).policy()
    assert policy.guarantees[0].proved
    assert policy.lower < free.lower
    # Each threshold touches a score: nobody has seen what lies between it and the next one.
    assert np.nextafter(policy.lower, 0.0) in score
    assert policy.upper in score


@pytest.mark.parametrize(
    ("limits", "n", "reason"),
    [
        (Limits(error_share=0.02), 60, "60 cases are too few for error_share=0.02: it takes 149"),
        (Limits(miss_rate=0.001), 300, "positive cases are too few for miss_rate=0.001"),
        (Limits(error_rate=0.01), 300, "error_rate=0.01"),
    ],
)
def test_limits_that_cannot_be_proved_say_why_and_leave_the_decision_to_humans(limits, n, reason):
    y, score = model(1, n)
    policy = PolicySearch(Cases(y, {"m": score}), "m", COSTS, limits=limits).policy()
    (guarantee,) = policy.guarantees
    assert not guarantee.proved
    assert reason in guarantee.reason
    assert policy.lower == 0.0
    if limits.miss_rate is None:
        assert policy.automation_rate == 0.0


def test_a_guarantee_goes_before_the_capacity():
    y, score = model(1, 600)
    limits = Limits(error_share=0.02, capacity=0.05)
    policy = PolicySearch(Cases(y, {"m": score}), "m", COSTS, limits=limits).policy()
    assert policy.guarantees[0].proved
    assert not policy.within_capacity
    assert "capacity" in policy.notes[-1]


def test_a_sample_promises_on_its_plain_half_alone():
    y, score = model(2, 800)
    plain = np.random.default_rng(0).random(800) < 0.5
    sample = Cases(
        y, {"m": score}, plain=plain, number=np.linspace(0, 1, 800), count=np.where(plain, 1, 9.0)
    )
    limits = Limits(error_share=0.02)
    policy = PolicySearch(sample, "m", COSTS, limits=limits).policy()
    free = Limits(miss_rate=0.05)
    one = PolicySearch(sample, "m", COSTS, limits=free, rule="tuned").policy()
    most = reference.most_errors(int(y[plain].sum()), 0.05, 0.05)
    assert one.lower <= np.sort(score[plain & (y == 1)])[most]
    few = PolicySearch(
        replace(sample, plain=plain & (np.cumsum(plain) <= 100)), "m", COSTS, limits=limits
    ).policy()
    assert policy.guarantees[0].proved
    assert "100 cases are too few" in few.guarantees[0].reason


def true_error_share(policy, steepness):
    """Share of errors in the population of `model`, by an integral over its logits."""
    logit = np.linspace(-12, 12, 24_001)
    density = np.exp(-(logit**2) / 8) / np.sqrt(8 * np.pi) * (logit[1] - logit[0])
    score, p = logistic(steepness * logit), logistic(logit)
    wrong = np.where(score < policy.lower, p, np.where(score >= policy.upper, 1 - p, 0.0))
    alone = (score < policy.lower) | (score >= policy.upper)
    return density @ wrong, density @ alone


@pytest.mark.parametrize("steepness", [1.0, 2.0])
def test_limits_hold_in_the_population_as_often_as_promised(steepness):
    """At δ = .1, 150 samples break .1 + .014 more often than .18 of the time in 1 % of tries."""
    broken = {"error_share": 0, "error_rate": 0}
    for seed in range(150):
        y, score = model([seed, 9], 300, steepness)
        for name, limit in (("error_share", 0.05), ("error_rate", 0.1)):
            policy = PolicySearch(
                Cases(y, {"m": score}), "m", COSTS, limits=Limits(**{name: limit}, level=0.9)
            ).policy()
            wrong, alone = true_error_share(policy, steepness)
            broken[name] += wrong > limit * (alone if name == "error_rate" else 1.0)
    assert max(broken.values()) <= 0.18 * 150
