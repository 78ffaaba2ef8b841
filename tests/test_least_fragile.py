"""The least fragile policy against all pairs of thresholds, each with its root by bisection."""

from __future__ import annotations

from math import exp, inf, log

import numpy as np
import pytest
from scipy.optimize import brentq

from fragility import best_policy
from fragility._validation import check_labelled_probabilities
from fragility.calibration.table import ScoreTable
from fragility.deferral import Costs, policy_search
from fragility.deferral.choosing import Allowed
from fragility.deferral.least_fragile import cost_bound, fragility_of, least_fragile
from fragility.deferral.two_classes import TwoClassPart

from .confident_models import model

SHARE_AT = 1000.0


def blended(y, p, share, weights):
    """(place, weight, class) of cases with their labels, and with those that p expects."""
    scores = sorted(set(p))
    found = []
    for label, score, weight in zip(y, p, weights, strict=True):
        place = scores.index(score)
        found.append((place, (1 - share) * weight, label))
        found.append((place, share * weight * (1 - score), 0))
        found.append((place, share * weight * score, 1))
    return [case for case in found if case[1] > 0]


def costs_of(cases, lower, upper, matrix, review, rate):
    """Distinct costs of the cases at two cuts, with their shares of the weight."""
    shares, total = {}, sum(weight for _, weight, _ in cases)
    for place, weight, label in cases:
        if place < lower:
            cost = matrix[label][0]
        elif place >= upper:
            cost = matrix[label][1]
        else:
            cost = review + (1 - rate) * matrix[label][label] + rate * matrix[label][1 - label]
        shares[cost] = shares.get(cost, 0.0) + weight / total
    return shares


def fragility(shares, bound):
    """Smallest k with k ln E exp(cost/k) ≤ bound."""
    mean, most = sum(c * q for c, q in shares.items()), max(shares)
    if most <= bound * (1 + 1e-13):
        return 0.0
    if mean >= bound * (1 - 1e-13):
        return inf

    def excess(k):
        total = sum(q * exp((c - most) / k) for c, q in shares.items())
        return most + k * log(total) - bound

    low, high = 1e-3 * most, most
    while excess(low) < 0:
        low /= 2
    while excess(high) > 0:
        high *= 2
    return brentq(excess, low, high, xtol=1e-13, rtol=1e-13)


def all_pairs(cases, n_places, bound, costs, capacity=None, weights=None):
    """Fragility and mean cost of every pair of cuts."""
    total = sum(weights)
    found = {}
    for lower in range(n_places + 1):
        for upper in range(lower, n_places + 1):
            reviewed = sum(w for place, w, _ in cases if lower <= place < upper)
            if capacity is None or reviewed <= capacity * total + 1e-9:
                shares = costs_of(cases, lower, upper, *costs)
                mean = sum(c * q for c, q in shares.items())
                found[lower, upper] = (None if bound is None else fragility(shares, bound)), mean
    return found


@pytest.mark.parametrize("seed", range(30))
def test_all_pairs(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 60))
    p = rng.integers(1, 12, n) / 12
    y = (rng.random(n) < p).astype(int)
    weights = rng.choice([0.5, 1.0, 2.0], n) if seed % 3 == 0 else np.ones(n)
    matrix = [[[0.0, 1.0], [5.0, 0.0]], [[0.2, 3.0], [4.0, 1.0]], [[0.0, 2.0], [2.0, 0.0]]][
        seed % 3
    ]
    review, rate = float(rng.choice([0.3, 0.6])), float(rng.choice([0.0, 0.1]))
    share = float(rng.choice([0.0, 0.3, 0.95, 1.0]))
    slack = float(rng.choice([0.05, 0.1, 0.5]))
    capacity = None if seed % 4 else 0.4
    data = check_labelled_probabilities(y, p, [0, 1], 1, weights, name="p")
    costs = Costs(matrix, review, capacity, rate).checked(2, None)
    part = TwoClassPart(ScoreTable.of_cases(data, None), 1, costs, None)
    cases = blended(y.tolist(), p.tolist(), share, weights.tolist())
    n_places, given = len(set(p.tolist())), (matrix, review, rate)
    means = all_pairs(cases, n_places, None, given, capacity, weights)
    best = min(mean for _, mean in means.values())
    everyone = sum(c * q for c, q in costs_of(cases, 0, n_places, *given).items())
    bound = best + slack * max(everyone - best, 0.0)
    allowed = Allowed(part.widest)
    most = inf if capacity is None else capacity * weights.sum()
    assert cost_bound(part, share, slack, allowed, most) == pytest.approx(bound, rel=1e-12)
    cuts = least_fragile(part, share, bound, allowed, most)
    found = all_pairs(cases, n_places, bound, given, capacity, weights)
    least = min(k for k, _ in found.values())
    k, mean = found[cuts.lower, cuts.upper]
    if bound <= best * (1 + 1e-12):  # nothing is cheaper than full review
        assert mean == pytest.approx(best, rel=1e-9)
        return
    assert k == pytest.approx(least, rel=1e-7)
    assert mean <= bound * (1 + 1e-9)
    told = fragility_of(part, share, cuts, bound, 0.95)
    assert told.fragility == pytest.approx(k, rel=1e-7)
    assert told.interval.low <= told.fragility * (1 + 1e-9)
    assert told.fragility <= told.interval.high * (1 + 1e-9)
    if least == 0.0:  # of all pairs at which no case costs more than the bound the cheapest
        cheapest = min(mean for k, mean in found.values() if k == 0.0)
        assert mean == pytest.approx(cheapest, rel=1e-9)


@pytest.mark.parametrize("criterion", ["cost", "fragility"])
@pytest.mark.parametrize("seed", range(4))
def test_best_policy(seed, criterion):
    """From labels to the number that is printed: scores in few, wide steps are their own bins."""
    y, p = model(seed, 400)
    p = np.clip(np.round(p * 16) / 16, 1 / 16, 15 / 16)
    matrix, review = [[0.0, 1.0], [5.0, 0.0]], 0.4
    policy = best_policy(y, p, error_cost=matrix, review_cost=review, criterion=criterion)
    share = SHARE_AT / (SHARE_AT + 400)
    scores = sorted(set(p.tolist()))
    fair = policy.decision.calibrated(np.array(scores)).tolist()
    cases = []
    for label, score in zip(y.tolist(), p.tolist(), strict=True):
        place = scores.index(score)
        cases += [(place, 1 - share, label), (place, share * (1 - fair[place]), 0)]
        cases.append((place, share * fair[place], 1))
    given = matrix, review, 0.0
    means = all_pairs(cases, len(scores), None, given, None, np.ones(400))
    best = min(mean for _, mean in means.values())
    bound = best + 0.1 * (review - best)
    assert policy.fragility_bound == pytest.approx(bound, rel=1e-9)
    lower, upper = (sum(s < end for s in scores) for end in (policy.lower, policy.upper))
    k = fragility(costs_of(cases, lower, upper, *given), bound)
    assert policy.fragility == pytest.approx(k, rel=1e-6)
    if criterion == "fragility":
        found = all_pairs(cases, len(scores), bound, given, None, np.ones(400))
        assert k == pytest.approx(min(k for k, _ in found.values()), rel=1e-6)
    else:
        assert means[lower, upper][1] == pytest.approx(best, rel=1e-9)


def test_no_slack_is_the_cheapest():
    y, p = model(5, 500)
    options = {"error_cost": [[0, 1], [5, 0]], "review_cost": 0.4}
    plain = best_policy(y, p, **options)
    tight = best_policy(y, p, criterion="fragility", slack=0.0, **options)
    assert (tight.lower, tight.upper) == (plain.lower, plain.upper)
    assert tight.fragility == inf
    assert tight.fragility_bound == pytest.approx(plain.fragility_bound, rel=0.2)


def test_full_review_where_it_is_the_cheapest():
    y, p = model(6, 500)
    for criterion in ("cost", "fragility"):
        policy = best_policy(y, p, error_cost=1e9, review_cost=1e-6, criterion=criterion)
        assert (policy.lower, policy.upper) == (0.0, inf)
        assert policy.fragility in (0.0, inf)
        # Folds decide cases beyond the scores that they know.
        assert policy.cost == pytest.approx(1e-6, rel=0.01)


@pytest.mark.parametrize("review", [1.0, 0.5, 0.3, 0.7, 1 / 3])
def test_all_slack_allows_full_review(review):
    """At b = full review every case reviewed costs b: nothing is fragile."""
    y, p = model(7, 501)
    policy = best_policy(y, p, error_cost=5, review_cost=review, criterion="fragility", slack=1.0)
    assert policy.fragility == 0.0
    assert policy.fragility_bound == pytest.approx(review, rel=1e-9)
    assert policy.cost <= review * (1 + 1e-9)


def test_less_fragile_than_the_cheapest_at_little_more_cost():
    y, p = model(8, 3000)
    options = {"error_cost": [[0, 1], [20, 0]], "review_cost": 0.4}
    plain = best_policy(y, p, **options)
    firm = best_policy(y, p, criterion="fragility", **options)
    assert firm.fragility < plain.fragility
    assert firm.fragility_bound == pytest.approx(plain.fragility_bound, rel=1e-12)
    assert firm.cost < plain.cost + 0.2 * (plain.cost_review_all - plain.cost)
    assert firm.misses < plain.misses


def test_guarantees_come_first():
    y, p = model(9, 1500)
    options = {"error_cost": [[0, 1], [5, 0]], "review_cost": 0.4, "max_misses": 0.03}
    policy = best_policy(y, p, criterion="fragility", **options)
    assert policy.guaranteed
    assert np.mean(p[y == 1] < policy.lower) < 0.03


def test_of_many_cases_the_thresholds_are_edges_of_bins(monkeypatch):
    y, p = model(2, 3000)
    fine = best_policy(y, p, error_cost=5, criterion="fragility")
    monkeypatch.setattr(policy_search, "_MANY_CASES", 0)
    coarse = best_policy(y, p, error_cost=5, criterion="fragility")
    assert coarse.cost == fine.cost
    for one, two in ((coarse.lower, fine.lower), (coarse.upper, fine.upper)):
        assert one != two
        assert one == pytest.approx(two, abs=2e-3)
        assert (one * 2**20) % 1 == 0  # an edge, a short binary number
