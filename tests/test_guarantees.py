"""Guarantees against binomial tails, sorting, and a literal loop of bets."""

from __future__ import annotations

from math import ceil, inf, log, sqrt

import numpy as np
import pytest
from scipy.special import betainc
from scipy.stats import binom

from fragility import best_policy
from fragility._validation import check_labelled_probabilities
from fragility.calibration.table import ScoreTable
from fragility.deferral import Costs, RiskLimits
from fragility.deferral.choosing import Steps
from fragility.deferral.guarantees import (
    WeightedCases,
    allowed_errors,
    at_most_probability,
    cases_for_rate,
    cases_for_share,
    cases_that_pass,
    certify,
    certify_weighted,
    passed_keys,
)
from fragility.deferral.problems import case_folds
from fragility.deferral.two_classes import TwoClassPart

from .confident_models import classes_drawn, model

SHARES = [0.003, 0.02, 0.1, 0.5, 0.97]
LEVELS = [0.2, 0.05, 0.01]


@pytest.mark.parametrize("limit", SHARES)
@pytest.mark.parametrize("delta", LEVELS)
def test_allowed_errors(limit, delta):
    for n in (1, 2, 7, 59, 60, 148, 149, 150, 1001):
        # The tail grows with the errors: those it allows are the first.
        expected = int((binom.cdf(np.arange(n), n, limit) <= delta).sum()) - 1
        assert allowed_errors(n, limit, delta) == expected
    assert allowed_errors(0, limit, delta) == -1


def first_that_passes(errors, limit, delta):
    """The first number of cases of which so many errors are few enough, one after the other."""
    for start in range(errors + 1, 10**6, 500):
        numbers = np.arange(start, start + 500)
        passes = np.flatnonzero(binom.cdf(errors, numbers, limit) <= delta)
        if passes.size:
            return numbers[passes[0]]
    raise AssertionError("no number of cases passes")


@pytest.mark.parametrize("limit", SHARES)
@pytest.mark.parametrize("delta", LEVELS)
def test_cases_that_pass(limit, delta):
    for errors in range(7 if limit > 0.01 else 2):
        assert cases_that_pass(errors, limit, delta) == first_that_passes(errors, limit, delta)


@pytest.mark.parametrize("limit", SHARES)
def test_at_most_probability(limit):
    for n in (1, 5, 80):
        for k in range(n + 3):
            assert at_most_probability(k, n, limit) == pytest.approx(
                binom.cdf(k, n, limit), rel=1e-10
            )
        # Between whole numbers it rises.
        between = [at_most_probability(k, n, limit) for k in np.linspace(0, n, 40)]
        assert (np.diff(between) >= 0).all()


def sequence(wrong, limit, delta):
    """Numbers of first cases at which a fixed sequence of tests passes, one by one."""
    n = len(wrong)
    least = [first_that_passes(errors, limit, delta) for errors in range(6)]
    start = max(number for number in least if number <= max(n / 4, least[0]))
    tails = binom.cdf(np.cumsum(wrong), np.arange(1, n + 1), limit)
    passed = []
    for number in range(start, n + 1):
        if tails[number - 1] > delta:
            break
        passed.append(number)
    return passed


@pytest.mark.parametrize("seed", range(30))
def test_rate_is_one_fixed_sequence(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 400))
    limit, delta = float(rng.choice([0.05, 0.1, 0.3])), float(rng.choice(LEVELS))
    wrong = (rng.random(n) < np.linspace(0, rng.choice([0.1, 0.3]), n)).astype(float)
    keys = np.linspace(9, -2, n)
    expected = [keys[number - 1] for number in sequence(wrong.tolist(), limit, delta)]
    shuffled = rng.permutation(n)
    steps = Steps(keys[shuffled], np.ones(n), wrong[shuffled]).ordered()
    assert passed_keys(steps, limit, delta).tolist() == expected


def part_of(y, p, costs, weights=None):
    """Cases by their scores, which are taken for the probabilities."""
    data = check_labelled_probabilities(y, p, [0, 1], 1, weights, name="p")
    return TwoClassPart(ScoreTable.of_cases(data, None), 1, costs.checked(2, None), None)


def prices(p, alarm, miss, review, rate):
    """λ of each case, and whether it is decided negative: at even cost it is positive."""
    found = []
    for chance in p:
        expected = [miss * chance, alarm * (1 - chance)]
        human = chance * rate * miss + (1 - chance) * rate * alarm
        negative = expected[0] < expected[1]
        error = chance if negative else 1 - chance
        found.append(((review + human - min(expected)) / error, negative))
    return found


def path(y, p, costs, limit, delta):
    """Scores that the certified pair automates, by SPEC 10.3: whole groups of equal price."""
    alarm, miss = costs.error_cost[0][1], costs.error_cost[1][0]
    found = prices(p, alarm, miss, costs.review_cost, costs.reviewer_error)
    most = -1
    while binom.cdf(most + 1, len(y), limit) <= delta:
        most += 1
    if most < 0:
        return set(), set()
    wrong = sorted(
        (price for (price, negative), true in zip(found, y, strict=True) if negative == bool(true)),
        reverse=True,
    )
    stop = wrong[most] if len(wrong) > most else -inf
    low = {
        score
        for score, (price, negative) in zip(p, found, strict=True)
        if negative and price > stop
    }
    high = {
        score
        for score, (price, negative) in zip(p, found, strict=True)
        if not negative and price > stop
    }
    return low, high


@pytest.mark.parametrize("seed", range(24))
def test_error_share_along_the_path(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 300))
    p = rng.uniform(0.01, 0.99, n) if seed % 2 else rng.choice(rng.uniform(0.01, 0.99, 30), n)
    y = (rng.random(n) < p).astype(int)
    costs = Costs(
        [[0, float(rng.choice([1, 2]))], [float(rng.choice([3, 5])), 0]],
        float(rng.choice([0.3, 0.6])),
        None,
        float(rng.choice([0.0, 0.1])),
    )
    limit, level = float(rng.choice([0.05, 0.1, 0.2])), float(rng.choice([0.8, 0.95]))
    part = part_of(y, p, costs)
    (box, points), (made,) = certify(part, RiskLimits(max_error_share=limit, level=level))
    assert points is None
    low, high = path(y.tolist(), p.tolist(), costs, limit, 1 - level)
    scores = sorted(set(p.tolist()))
    assert made.kept == (binom.cdf(0, n, limit) <= 1 - level)
    if not made.kept:
        assert tuple(box) == (0, len(scores))
        return
    assert set(scores[: box.highest_lower]) == low
    assert set(scores[box.lowest_upper :]) == high


@pytest.mark.parametrize("seed", range(24))
def test_misses_and_false_alarms_are_sorted_scores(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 300))
    p = rng.uniform(0, 1, n) if seed % 2 else rng.integers(0, 41, n) / 40
    y = (rng.random(n) < p).astype(int)
    limit = float(rng.choice([0.05, 0.1, 0.3]))
    part = part_of(y, p, Costs([[0, 1], [5, 0]], 0.5))
    limits = RiskLimits(max_misses=limit, max_false_alarms=limit, level=0.9)
    (box, _), made = certify(part, limits)
    scores = np.unique(p)
    positives, negatives = np.sort(p[y == 1]), np.sort(p[y == 0])[::-1]

    def most(size):
        found = -1
        while size and found + 1 < size and binom.cdf(found + 1, size, limit) <= 0.05:
            found += 1
        return found

    k = most(positives.size)
    assert made[0].kept == (k >= 0)
    # Scores below the (K+1)-th smallest of the positives may be decided negative.
    lower = 0 if k < 0 else int(np.sum(scores < positives[k]))
    k = most(negatives.size)
    assert made[1].kept == (k >= 0)
    upper = scores.size if k < 0 else int(np.sum(scores <= negatives[k]))
    assert tuple(box) == (lower, upper)


def test_several_limits_share_what_may_go_wrong():
    limits = RiskLimits(max_error_share=0.1, max_misses=0.2, max_error_rate=0.1, level=0.94)
    assert limits.delta == pytest.approx(0.02)
    assert RiskLimits(max_error_share=0.1).delta == pytest.approx(0.05)
    y, p = model(0, 600)
    policy = best_policy(*(y, p), error_cost=5, max_error_share=0.05, max_misses=0.1, guarantee=0.9)
    assert [part.name for part in policy.guarantees] == ["max_error_share", "max_misses"]
    assert [part.level for part in policy.guarantees] == pytest.approx([0.95, 0.95])
    assert policy.guaranteed
    alone = best_policy(y, p, error_cost=5, max_misses=0.1, guarantee=0.95)
    positives = np.sort(p[y == 1])
    most = np.sum(binom.cdf(np.arange(positives.size), positives.size, 0.1) <= 0.05) - 1
    for found in (policy, alone):
        assert np.sum(positives < found.lower) <= most


@pytest.mark.parametrize("name", ["max_error_share", "max_misses", "max_false_alarms"])
def test_printed_thresholds_keep_the_count(name):
    """Even where errors cost nothing, so that costs would automate all."""
    for seed in range(5):
        y, p = model(seed, 800)
        policy = best_policy(y, p, error_cost=0.01, review_cost=9, **{name: 0.04})
        wrong = {
            "max_misses": (y == 1) & (p < policy.lower),
            "max_false_alarms": (y == 0) & (p >= policy.upper),
        }
        errors = wrong.get(name, wrong["max_misses"] | wrong["max_false_alarms"])
        n = {"max_misses": y.sum(), "max_false_alarms": (1 - y).sum()}.get(name, y.size)
        most = np.sum(binom.cdf(np.arange(n), n, 0.04) <= 0.05) - 1
        assert policy.guaranteed
        # Bins and cross-fitted maps cost a few; one more error is one too many.
        room = 0 if name != "max_error_share" else 3
        assert most - 12 <= errors.sum() <= most + room


@pytest.mark.parametrize("name", ["max_error_share", "max_error_rate", "max_misses"])
@pytest.mark.parametrize("limit", [0, 1, -0.1, 1.5, 0.0])
def test_limits_that_say_nothing_are_refused(name, limit):
    with pytest.raises(ValueError, match=f"{name} must be a share above 0 and below 1"):
        best_policy([0, 1, 1, 0], [0.1, 0.9, 0.7, 0.4], error_cost=5, **{name: limit})


def test_bad_limits():
    y, p = [0, 1, 1, 0], [0.1, 0.9, 0.7, 0.4]
    for level in (0, 1, 95):
        with pytest.raises(ValueError, match="guarantee must lie between 0 and 1"):
            best_policy(y, p, error_cost=5, max_misses=0.1, guarantee=level)
    with pytest.raises(ValueError, match="has no limit to guarantee"):
        best_policy(y, p, error_cost=5, guarantee=0.9)
    codes, rows = classes_drawn(np.random.default_rng(0), 60)
    for name in ("max_misses", "max_false_alarms"):
        with pytest.raises(ValueError, match=f"{name} is for two classes; of 3 use"):
            best_policy(codes, rows, error_cost=5, **{name: 0.1})
    with pytest.raises(ValueError, match="max_misses must be a number"):
        best_policy(y, p, error_cost=5, max_misses="few")


@pytest.mark.parametrize("limit", [0.001, 0.02, 0.05])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_too_few_cases_are_told_how_many_more(limit, level):
    y, p = model(1, 44)
    needed = ceil(log(1 - level) / log(1 - limit))
    policy = best_policy(y, p, error_cost=5, max_error_share=limit, guarantee=level)
    if needed <= 44:
        assert policy.guaranteed
        return
    assert (policy.lower, policy.upper) == (0.0, inf)
    assert policy.automation_rate == 0.0
    assert not policy.guaranteed
    (made,) = policy.guarantees
    assert f"44 cases are too few for max_error_share={limit:g}" in made.reason
    assert f"it takes {needed:,}, {needed - 44:,} more" in made.reason
    assert made.reason in policy.sentences()[2]
    # As many would do, one less would not.
    assert binom.cdf(0, needed, limit) <= 1 - level < binom.cdf(0, needed - 1, limit)
    assert "positive cases are too few" in cases_for_share("max_misses", 10, limit, 1 - level)


def test_rates_that_no_number_of_cases_proves():
    wrong = Steps(np.arange(50.0)[::-1], np.ones(50), np.ones(50))
    assert cases_for_rate(wrong, 0.1, 0.05).startswith("no number of cases will do")
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, 600), rng.uniform(0.01, 0.99, 600)
    part = part_of(y, p, Costs([[0, 1], [1, 0]], 0.4))
    _, (made,) = certify(part, RiskLimits(max_error_rate=0.02))
    assert not made.kept
    some = Steps(np.arange(40.0)[::-1], np.ones(40), np.zeros(40))
    told = cases_for_rate(some, 0.05, 0.05)
    more = int(told.split("about ")[1].split(" more")[0])
    # At a rate of (0 + 1/2)/(n + 1) of 40 cases: between the rule of three and twice that.
    assert 59 - 40 <= more <= 120 - 40


def test_rates_that_these_cases_are_too_few_to_speak_of():
    """Nobody has as many cases as the search for their number ends at: that is no answer."""
    wrong = np.tile([0.0, 0.0, 1.0], 40)
    steps = Steps(np.arange(120.0)[::-1], np.ones(120), wrong)
    told = cases_for_rate(steps, 0.0001, 0.05)
    needed = next(n for n in range(29_000, 31_000) if 0.9999**n <= 0.05)
    assert told == (
        f"120 cases are too few for max_error_rate=0.0001: it takes {needed:,} decided alone, even "
        "if none of them is wrong"
    )
    assert cases_for_rate(steps, 1e-15, 0.05).endswith("cases will do for max_error_rate=1e-15")
    # The surest ones may be right often enough where all are not: 30 of them, the rate is 1/62.
    some = Steps(np.arange(50.0)[::-1], np.ones(50), np.repeat([0.0, 1.0], [30, 20]))
    more = int(cases_for_rate(some, 0.05, 0.05).split("about ")[1].split(" more")[0])
    sizes = np.arange(31, 4000)
    passes = betainc(sizes * (1 - 1 / 62), sizes / 62 + 1, 0.95) <= 0.05
    assert more == np.ceil(50 * sizes[passes][0] / 30 - 50)
    assert np.isinf(cases_that_pass(0.0, 0.1, 0.05, 0.1))


def test_a_rate_that_is_too_near_the_limit():
    """Of 205 cases 10 are wrong: fewer than 5 %, but not by half a case."""
    steps = Steps(np.array([3.0, 2.0]), np.array([205.0, 600.0]), np.array([10.0, 300.0])).ordered()
    assert cases_for_rate(steps, 0.05, 0.05).endswith("4.88 % are wrong, too near the limit")


@pytest.mark.parametrize("seed", range(6))
def test_rates_have_only_points_that_passed(seed):
    """Without a map: every allowed pair is one of the sequence, and the cheapest is taken."""
    rng = np.random.default_rng(seed)
    n, limit = 500, 0.1
    p = rng.uniform(0.01, 0.99, n)
    y = (rng.random(n) < p).astype(int)
    costs = Costs([[0, 1], [2, 0]], 0.3)
    part = part_of(y, p, costs)
    (_, points), (made,) = certify(part, RiskLimits(max_error_rate=limit))
    found = prices(p, 1, 2, 0.3, 0.0)
    order = sorted(range(n), key=lambda k: -found[k][0])
    wrong = [int(found[k][1] == bool(y[k])) for k in order]
    passed = sequence(wrong, limit, 0.05)
    assert made.kept == bool(passed)
    expected = set()
    for number in passed:
        low = sum(found[k][1] for k in order[:number])
        expected.add((low, n - (number - low)))
    assert set(zip(*(part.tolist() for part in points), strict=True)) == expected


# Bets


def wins(errors, bases, limit, delta, largest):
    """The wealth of bets on one cluster after the other, literally."""
    n = len(errors)
    # Sums of what was seen: added up anew before each bet they would take most of the time.
    wealth, seen, spread = 1.0, limit, limit * (1 - limit)
    for number, (error, base) in enumerate(zip(errors, bases, strict=True), start=1):
        y = (error - limit * base) / largest + limit
        mean = seen / number
        variance = max(spread / number, 1e-12)
        bet = min(sqrt(2 * log(1 / delta) / (n * variance)), 0.9 / (1 - limit))
        wealth *= 1 - bet * (y - limit)
        if wealth >= 1 / delta:
            return True
        seen += y
        spread += (y - mean) ** 2
    return False


@pytest.mark.parametrize("name", ["max_error_share", "max_error_rate"])
@pytest.mark.parametrize("seed", range(6))
def test_bets_are_the_loop(seed, name):
    rng = np.random.default_rng(seed)
    n, n_clusters = 600, 150 if seed % 2 else 600
    p = rng.uniform(0.01, 0.99, n)
    y = (rng.random(n) < p).astype(int)
    weight = rng.choice([0.5, 1.0, 2.0], n) if seed % 3 else np.ones(n)
    cluster = rng.integers(0, n_clusters, n) if seed % 2 else rng.permutation(n)
    limit, delta = float(rng.choice([0.1, 0.2, 0.3])), 0.05
    costs = Costs([[0, 1], [2, 0]], 0.4)
    part = part_of(y, p, costs, weight)
    found = prices(p, 1, 2, 0.4, 0.0)
    key = np.array([price for price, _ in found])
    wrong = np.array([negative == bool(true) for (_, negative), true in zip(found, y, strict=True)])
    scores = np.unique(p)
    cases = WeightedCases(np.searchsorted(scores, p), key, wrong, y == 1, weight, cluster)
    allowed, (made,) = certify_weighted(part, cases, RiskLimits(**{name: limit}))
    own = [np.flatnonzero(cluster == g) for g in np.unique(cluster)]
    totals = [weight[rows].sum() for rows in own]
    rate = name == "max_error_rate"

    def verdict(automated):
        base = weight * automated if rate else weight
        error = weight * (automated & wrong)
        errors = [error[rows].sum() for rows in own]
        bases = [base[rows].sum() for rows in own]
        return wins(errors, bases, limit, delta, max(totals))

    if rate:
        places = np.unique(np.maximum(np.linspace(n / 4, n, 200).astype(int) - 1, 0))
        tried = np.sort(key)[::-1][places]
    else:
        errors = np.sort(key[wrong])[::-1]
        places = np.linspace(0, errors.size - 1, min(200, errors.size)).astype(int)
        tried = np.append(errors[np.unique(places)], -inf)
    passed = []
    for limit_of_key in tried:
        if not verdict(key >= limit_of_key if rate else key > limit_of_key):
            break
        passed.append(limit_of_key)
    assert made.kept == bool(passed)
    negative = np.array([low for _, low in found])

    def cuts(automated):
        low = int(np.sum(automated & negative))
        return low, n - int(np.sum(automated & ~negative))

    if rate and passed:
        expected = {cuts(key >= limit_of_key) for limit_of_key in passed}
        assert set(zip(*(part.tolist() for part in allowed.points), strict=True)) == expected
    elif passed:
        assert tuple(allowed.box) == cuts(key > passed[-1])
    else:
        assert tuple(allowed.box) == (0, n)


@pytest.mark.parametrize("seed", range(6))
def test_bets_on_misses_and_false_alarms(seed):
    rng = np.random.default_rng(seed)
    n, limit, delta = 500, 0.2, 0.025
    p = rng.integers(1, 60, n) / 60
    y = (rng.random(n) < p).astype(int)
    weight = rng.choice([0.5, 1.0, 2.0], n)
    cluster = rng.permutation(n)
    part = part_of(y, p, Costs([[0, 1], [2, 0]], 0.4), weight)
    scores = np.unique(p)
    place = np.searchsorted(scores, p)
    cases = WeightedCases(place, np.zeros(n), np.zeros(n, bool), y == 1, weight, cluster)
    limits = RiskLimits(max_misses=limit, max_false_alarms=limit)
    (box, _), made = certify_weighted(part, cases, limits)

    def verdict(own, automated):
        order = own[np.argsort(cluster[own])]
        errors = (weight * automated)[order]
        return wins(errors, weight[order], limit, delta, weight[order].max())

    lower = 0
    own = np.flatnonzero(y == 1)
    for cut in range(1, scores.size + 1):
        if not verdict(own, place < cut):
            break
        lower = cut
    upper = scores.size
    own = np.flatnonzero(y == 0)
    for cut in range(scores.size - 1, -1, -1):
        if not verdict(own, place >= cut):
            break
        upper = cut
    assert all(part.kept for part in made)
    # A place without errors of the kind is no test of its own: cuts next to it are the same.
    between = slice(min(lower, box.highest_lower), max(lower, box.highest_lower))
    assert not np.isin(place[y == 1], np.arange(scores.size)[between]).any()
    between = slice(min(upper, box.lowest_upper), max(upper, box.lowest_upper))
    assert not np.isin(place[y == 0], np.arange(scores.size)[between]).any()


def test_clusters_too_few_for_bets():
    rng = np.random.default_rng(0)
    y, p = model(2, 400)
    cluster = np.arange(400) // 10
    policy = best_policy(y, p, error_cost=5, cluster=cluster, max_error_share=0.02)
    assert (policy.lower, policy.upper) == (0.0, inf)
    needed = ceil(log(20) / log(1 + 0.9 * 0.02 / 0.98))
    (made,) = policy.guarantees
    assert f"it takes {needed}, {needed - 40} more" in made.reason
    weights = rng.choice([0.5, 1.0], 400)
    weighted = best_policy(y, p, error_cost=5, sample_weight=weights, max_error_share=0.2)
    assert weighted.guaranteed
    assert weighted.automation_rate > 0.0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_folds_never_split_clusters(n_classes):
    rng = np.random.default_rng(n_classes)
    n = 400
    codes, p = classes_drawn(rng, n, n_classes)
    p = np.round(p, 1)
    p /= p.sum(axis=1, keepdims=True)
    names = rng.integers(0, 60, n)
    _, clusters = np.unique(names, return_inverse=True)
    data = check_labelled_probabilities(codes, p, None, None, None, name="p")
    folds = case_folds(data, None, 3, clusters)
    assert set(folds.tolist()) == set(range(5))
    for name in set(clusters.tolist()):
        assert np.unique(folds[clusters == name]).size == 1
    # Neither the order of the rows nor the names of the clusters matter.
    order = rng.permutation(n)
    renamed = rng.permutation(clusters.max() + 1)[clusters]
    again = check_labelled_probabilities(codes[order], p[order], None, None, None, name="p")
    np.testing.assert_array_equal(case_folds(again, None, 3, renamed[order]), folds[order])
    few = case_folds(data, None, 0, np.arange(n) % 4)
    assert np.unique(few).size == 4


@pytest.mark.parametrize("kind", ["counted", "weights", "clusters"])
def test_the_limit_holds_in_the_population(kind):
    """Few samples only: `make coverage` has many. A guarantee at 90 % fails once or so of 12."""
    rng = np.random.default_rng(3)
    broken = 0
    for seed in range(12):
        logit = rng.normal(-1, 2, 1500)
        chances = 1 / (1 + np.exp(-logit))
        y = rng.random(1500) < chances
        more = {}
        if kind == "weights":
            more["sample_weight"] = rng.choice([1.0, 3.0], 1500)
        if kind == "clusters":
            more["cluster"] = np.arange(1500) // 2
        policy = best_policy(
            *(y, 1 / (1 + np.exp(-1.5 * logit))),
            error_cost=0.01,
            review_cost=5,
            max_error_share=0.05,
            guarantee=0.9,
            random_state=seed,
            **more,
        )
        wide = rng.normal(-1, 2, 50_000)
        p, shown = 1 / (1 + np.exp(-wide)), 1 / (1 + np.exp(-1.5 * wide))
        share = np.where(shown < policy.lower, p, np.where(shown >= policy.upper, 1 - p, 0)).mean()
        broken += share > 0.05
        assert policy.guaranteed
        assert share > 0.015
    assert broken <= 4


def test_a_rate_whose_surest_cases_are_bad_says_so():
    """The sequence begins with the surest cases: more of the others would change nothing."""
    steps = Steps(np.array([3.0, 2.0]), np.array([200.0, 4000.0]), np.array([100.0, 0.0])).ordered()
    assert not passed_keys(steps, 0.1, 0.05).size
    said = cases_for_rate(steps, 0.1, 0.05)
    assert said.startswith("no number of cases will do")
    assert "of the 200 cases that the model is surest of, 50 % are wrong" in said
