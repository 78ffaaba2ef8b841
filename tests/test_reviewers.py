"""Reviewers that err by class, by case, or as humans decided, against loops over cases."""

from __future__ import annotations

import json
from math import inf, isnan, nan

import numpy as np
import pytest
from scipy.stats import t as student

from fragility import (
    Costs,
    DeferralClassifier,
    Policy,
    Report,
    ScoreState,
    best_policy,
    compare_costs,
    deferral_curve,
)
from fragility.deferral.two_classes import Stakes
from fragility.scores.folds import dealt

from .reference import reviewers as reference

MATRICES = [[[0.0, 1.0], [5.0, 0.0]], [[0.25, 3.0], [4.0, 1.0]], [[0.0, 4.0], [4.0, 0.0]]]
REVIEWERS = ["class", "mapping", "case", "human"]


class Two:
    """Few cases of two classes with exact numbers, and reviewers of some kind."""

    def __init__(self, seed, n=None):
        rng = np.random.default_rng([seed, 7])
        n = int(rng.integers(8, 30)) if n is None else n
        self.p = rng.integers(0, 17, n) / 16
        self.positive = int(seed % 5 != 3)
        happened = np.r_[False, False, True, True, rng.random(n - 4) < self.p[4:]]
        self.y = np.where(happened, self.positive, 1 - self.positive)
        self.weights = rng.choice([0.0, 0.5, 1.0, 3.0], n) if seed % 2 else None
        if self.weights is not None:
            self.weights[:4] = 1.0
        self.matrix, self.price = MATRICES[seed % 3], float(rng.choice([0.25, 0.5, 1.0]))
        self.capacity = 0.4 if seed % 4 == 2 else None
        self.kind = REVIEWERS[seed % 4 if seed % 8 < 4 else -1]
        rates = rng.integers(0, 9, 2) / 16
        self.by_case = rates[self.y]
        self.given = {"reviewer_error": rates}
        self.human = None
        if self.kind == "mapping":
            self.given = {"reviewer_error": {1: float(rates[1]), 0: float(rates[0])}}
        elif self.kind == "case":
            self.by_case = rng.integers(0, 5, n) / 8
            self.given = {"reviewer_error": self.by_case}
        elif self.kind == "human":
            self.human = np.where(rng.random(n) < 0.3, 1 - self.y, self.y)
            self.by_case, self.given = None, {"human": self.human}

    def cases(self):
        own = self.y.tolist(), self.p.tolist(), self.weights, self.positive, self.matrix, self.price
        rates = None if self.by_case is None else self.by_case.tolist()
        human = None if self.human is None else self.human.tolist()
        return reference.cases_of_two(*own, rates, human)

    def policy(self, rule, **more):
        return best_policy(
            self.y,
            self.p,
            error_cost=self.matrix,
            review_cost=self.price,
            capacity=self.capacity,
            rule=rule,
            labels=[0, 1],
            pos_label=self.positive,
            sample_weight=self.weights,
            **self.given,
            **more,
        )


@pytest.mark.filterwarnings("ignore:Higher scores")
@pytest.mark.parametrize("seed", range(40))
def test_tuned_is_the_best_of_all_pairs(seed):
    given = Two(seed)
    policy, cases = given.policy("tuned"), given.cases()
    least, reviews, *_ = reference.best_pair(cases, given.capacity)
    assert reference.paid(cases, policy.lower, policy.upper) == (least, reviews)
    total = sum(case[1] for case in cases)
    everyone = sum(case[1] * case[3] for case in cases) / total
    assert policy.cost_review_all == pytest.approx(float(everyone), rel=1e-12)


@pytest.mark.parametrize("rule", ["auto", "expected_cost"])
@pytest.mark.parametrize("seed", range(24))
def test_blended_costs_take_the_mean_reviewer_of_each_class(seed, rule):
    given = Two(seed, 40)
    policy, cases = given.policy(rule), given.cases()
    assert policy.decision.slope > 0.0
    cells = {}
    for score, weight, *_, true in cases:
        cells.setdefault((score, true), []).append(weight)
    n = sum(int(sum(w) ** 2 / sum(x * x for x in w) + 0.5) for w in cells.values())
    share = 1.0 if rule == "expected_cost" else 1000 / (1000 + n)

    def calibrated(score):
        return float(policy.decision.calibrated(np.array([score]))[0])

    mixed = reference.blended(cases, share, calibrated, given.positive, given.matrix)
    least = reference.best_pair(mixed, given.capacity)[0]
    cost, reviews = reference.paid(mixed, policy.lower, policy.upper)
    assert cost == pytest.approx(least, abs=1e-9 * sum(case[1] for case in mixed))
    if given.capacity is not None:
        assert reviews <= given.capacity * sum(case[1] for case in mixed) + 1e-9


@pytest.mark.parametrize("positive", [0, 1])
@pytest.mark.parametrize("seed", range(8))
def test_thresholds_of_expected_costs(seed, positive):
    """SPEC 10.2 with an error rate for each class: where the three expected costs cross."""
    rng = np.random.default_rng(seed)
    alarm, miss, price = float(rng.uniform(1, 4)), float(rng.uniform(2, 9)), rng.uniform(0.1, 0.6)
    wrong = rng.uniform(0.0, 0.3, 2)
    matrix = np.zeros((2, 2))
    matrix[1 - positive, positive], matrix[positive, 1 - positive] = alarm, miss
    rates = np.zeros(2)
    rates[1 - positive], rates[positive] = wrong
    stakes = Stakes.of(Costs(matrix, price, None, rates).checked(2, None), positive)
    lower = (price + wrong[0] * alarm) / ((1 - wrong[1]) * miss + wrong[0] * alarm)
    upper = ((1 - wrong[0]) * alarm - price) / ((1 - wrong[0]) * alarm + wrong[1] * miss)
    for p in np.linspace(0.001, 0.999, 331).tolist():
        at = np.array([p])
        losses = float(stakes.loss_of_negative(at)[0]), float(stakes.loss_of_positive(at)[0])
        found = (
            "review" if min(losses) > price else ["negative", "positive"][int(np.argmin(losses))]
        )
        expected = reference.expected_choice(p, alarm, miss, price, *wrong)
        assert found == expected
        if lower < upper and min(abs(p - lower), abs(p - upper)) > 1e-9:
            assert expected == ("negative" if p < lower else "positive" if p >= upper else "review")
        terms = alarm, miss, price, *wrong
        assert float(stakes.price_of_negative(at)[0]) == pytest.approx(
            reference.error_price(p, True, *terms)
        )
        assert float(stakes.price_of_positive(at)[0]) == pytest.approx(
            reference.error_price(p, False, *terms)
        )


# Humans, model and policy.


def measured_case(seed, n=420):
    """Scores in few, wide steps, which are their own bins; every fold holds all of them."""
    rng = np.random.default_rng([seed, 3])
    p = rng.integers(1, 6, n) / 6
    y = (rng.random(n) < p).astype(int)
    human = np.where(rng.random(n) < np.where(y == 1, 0.15, 0.05), 1 - y, y)
    return y, p, human


@pytest.mark.parametrize("seed", range(4))
def test_humans_model_and_policy_are_measured_by_loops(seed):
    y, p, human = measured_case(seed)
    matrix, price = MATRICES[seed % 3], 0.3
    policy = best_policy(y, p, error_cost=matrix, review_cost=price, human=human, rule="tuned")
    made = policy.reviewers
    cases = reference.cases_of_two(y.tolist(), p.tolist(), None, 1, matrix, price, None, human)
    scores = sorted(set(p.tolist()))
    cells = {}
    for score, weight, *costs, true in cases:
        kinds = cells.setdefault((true, score), {})
        key = true, score, costs[1]
        old = kinds.get(key, (0, 0))
        kinds[key] = old[0] + 1, old[1] + weight, costs, key
    cells = {cell: list(kinds.values()) for cell, kinds in cells.items()}
    units = np.array([[sum(k[0] for k in cells[c, s]) for s in scores] for c in (0, 1)])
    splits = []
    for split in range(4):
        drawn = [dealt(units[code], 5, [int(code == 1), split, 0]) for code in (0, 1)]
        splits.append({(c, s): drawn[c][:, k] for c in (0, 1) for k, s in enumerate(scores)})
    at_policy, alone = reference.held_out(cells, splits)
    keys = [(case[5], case[0], case[3]) for case in cases]
    ones = [1] * len(cases)
    humans = [case[3] for case in cases]
    quantile = float(student.ppf(0.975, len(cases) - 1))
    mean, error = reference.mean_and_error(humans, ones)
    assert made.human.value == pytest.approx(mean, rel=1e-12)
    assert made.human.standard_error == pytest.approx(error, rel=1e-9)
    assert made.human.interval == pytest.approx(
        (max(mean - quantile * error, 0.0), mean + quantile * error), rel=1e-9
    )
    for found, costs in ((made.policy, at_policy), (made.model, alone)):
        assert found.value == pytest.approx(
            reference.mean_and_error([costs[key] for key in keys], ones)[0], rel=1e-12
        )
    assert (policy.cost, policy.cost_without_review) == (made.policy.value, made.model.value)
    pairs = (made.against_human, humans), (made.against_model, [alone[key] for key in keys])
    for test, others in pairs:
        apart = [float(at_policy[key] - other) for key, other in zip(keys, others, strict=True)]
        mean, error = reference.mean_and_error(apart, ones)
        assert test.difference == pytest.approx(mean, rel=1e-9, abs=1e-12)
        error *= 1.2
        if error > 0.0:
            ends = mean - quantile * error, mean + quantile * error
            assert test.interval == pytest.approx(ends, rel=1e-9)
            assert test.p_value == pytest.approx(
                2 * float(student.sf(abs(mean) / error, len(cases) - 1)), rel=1e-9
            )
    for code, rate in enumerate((*made.error_rates, made.error_rate)):
        own = [k for k in range(y.size) if code in (y[k], 2)]
        hits = sum(int(human[k] != y[k]) for k in own)
        assert rate.value == pytest.approx(hits / len(own))
        assert rate.interval == pytest.approx(
            reference.clopper_pearson(hits, len(own), 0.025), rel=1e-9, abs=1e-12
        )


def test_clusters_count_as_one_human_decision():
    y, p, human = measured_case(9)
    cluster = np.random.default_rng(0).integers(0, 60, y.size)
    options = {"error_cost": MATRICES[0], "review_cost": 0.3, "human": human}
    made = best_policy(y, p, **options, cluster=cluster).reviewers
    cases = reference.cases_of_two(y.tolist(), p.tolist(), None, 1, MATRICES[0], 0.3, None, human)
    ones = [1] * y.size
    error = reference.cluster_error([case[3] for case in cases], ones, cluster.tolist())
    assert made.human.standard_error == pytest.approx(error, rel=1e-9)
    wrong = (human != y).astype(float).tolist()
    error = reference.cluster_error(wrong, ones, cluster.tolist())
    assert made.error_rate.standard_error == pytest.approx(error, rel=1e-9)
    costs = {"error_cost": MATRICES[0], "review_cost": 0.3}
    report = Report.from_predictions(y, p, costs=costs, human=human, cluster=cluster)
    again = report.models[0].policy.reviewers
    assert again.human.standard_error == pytest.approx(made.human.standard_error, rel=1e-12)
    assert again.against_human.interval == pytest.approx(made.against_human.interval, rel=1e-9)
    assert again.error_rate == made.error_rate


@pytest.mark.parametrize("seed", range(6))
def test_single_reviews_count_in_the_fragility(seed):
    """A wrong human decision is as dear as any error, not the mean of the reviews of its score."""
    y, p, human = measured_case(seed, 120)
    matrix, price = MATRICES[seed % 3], 0.4
    options = {"error_cost": matrix, "review_cost": price, "human": human, "rule": "tuned"}
    policy = best_policy(y, p, **options, criterion="fragility", slack=0.3)
    cases = reference.cases_of_two(y.tolist(), p.tolist(), None, 1, matrix, price, None, human)
    best = float(reference.best_pair(cases)[0]) / y.size
    everyone = float(sum(case[3] for case in cases)) / y.size
    bound = best + 0.3 * max(everyone - best, 0.0)
    assert policy.fragility_bound == pytest.approx(bound, rel=1e-12)
    found = reference.least_fragility(cases, bound)
    place = sorted(set(p.tolist()))
    own = [sum(score < end for score in place) for end in (policy.lower, policy.upper)]
    at = {
        (sum(s < lower for s in place), sum(s < upper for s in place)): k
        for k, lower, upper in found
    }
    assert at[tuple(own)] == pytest.approx(min(at.values()), rel=1e-6)
    assert policy.fragility == pytest.approx(at[tuple(own)], rel=1e-6)


# Several classes.


class Three:
    """Few cases of three classes or more."""

    def __init__(self, seed):
        rng = np.random.default_rng([seed, 11])
        c, n = 3 + seed % 2, int(rng.integers(14, 40))
        self.proba = rng.dirichlet(np.full(c, 0.7), n)
        self.y = np.r_[np.arange(c), np.arange(c), rng.integers(0, c, n - 2 * c)]
        self.weights = rng.choice([0.5, 1.0, 2.0], n) if seed % 2 else np.ones(n)
        self.matrix = rng.integers(1, 9, (c, c)).astype(float)
        np.fill_diagonal(self.matrix, rng.integers(0, 2, c))
        self.price = float(rng.choice([0.25, 1.0]))
        slips = rng.random(n) < 0.3
        self.human = np.where(slips, (self.y + rng.integers(1, c, n)) % c, self.y)
        self.rates = rng.integers(0, 5, n) / 8
        self.kind = ["human", "case", "class", "matrix"][seed % 4]
        matrix = self.matrix.tolist()
        if self.kind == "human":
            self.given = {"human": self.human}
            own = zip(self.y, self.human, strict=True)
            self.reviewed = [reference.review_cost(t, matrix, self.price, human=h) for t, h in own]
            return
        if self.kind == "case":
            self.given, rates = {"reviewer_error": self.rates}, self.rates
        elif self.kind == "class":
            by_class = rng.integers(0, 5, c) / 8
            self.given, rates = {"reviewer_error": by_class}, by_class[self.y]
        else:
            decided = rng.dirichlet(np.ones(c), c)
            self.given = {"reviewer_error": decided}
            self.reviewed = [
                self.price + sum(decided[t][h] * matrix[t][h] for h in range(c)) for t in self.y
            ]
            return
        own = zip(self.y, rates, strict=True)
        self.reviewed = [reference.review_cost(t, matrix, self.price, r) for t, r in own]

    def class_means(self):
        """What reviewers decide costs, by class, without the price of a review."""
        found = []
        for code in range(len(self.matrix)):
            own = np.flatnonzero(self.y == code)
            mean = sum(self.weights[k] * self.reviewed[k] for k in own) / self.weights[own].sum()
            found.append(mean - self.price)
        return found


@pytest.mark.parametrize("rule", ["tuned", "auto", "expected_cost"])
@pytest.mark.parametrize("seed", range(16))
def test_several_classes_have_the_best_of_all_limits(seed, rule):
    given = Three(seed)
    policy = best_policy(
        given.y,
        given.proba,
        error_cost=given.matrix,
        review_cost=given.price,
        rule=rule,
        sample_weight=given.weights,
        **given.given,
    )
    means, matrix = given.class_means(), given.matrix.tolist()
    losses = reference.expected_losses(
        given.proba.tolist(), matrix, means, policy.decision.temperature
    )
    n, c = given.y.size, len(matrix)
    share = {"tuned": 0.0, "expected_cost": 1.0}.get(rule, 1000 / (1000 + n))

    def cost(limit):
        seen, _ = reference.cost_at_limit(
            losses, given.y, given.weights, matrix, given.reviewed, limit
        )
        expected = 0.0
        for k, (decided, loss, p) in enumerate(losses):
            alone = sum(p[y] * matrix[y][decided] for y in range(c))
            reviewed = given.price + sum(p[y] * means[y] for y in range(c))
            expected += given.weights[k] * (alone if loss <= limit + 1e-9 else reviewed)
        return (1 - share) * seen + share * expected

    least = min(cost(limit) for limit in [-inf, *(loss for _, loss, _ in losses)])
    assert cost(policy.decision.limit) == pytest.approx(least, rel=1e-9)
    everyone = np.average(given.reviewed, weights=given.weights)
    assert policy.cost_review_all == pytest.approx(float(everyone), rel=1e-12)
    if given.kind == "human":
        made = policy.reviewers
        total = given.weights.tolist()
        mean, error = reference.mean_and_error(given.reviewed, total)
        assert made.human.value == pytest.approx(mean, rel=1e-12)
        assert made.human.standard_error == pytest.approx(error, rel=1e-9)
        wrong = (given.human != given.y).astype(float).tolist()
        assert made.error_rate.value == pytest.approx(reference.mean_and_error(wrong, total)[0])
    decided = policy.decide(given.proba)
    own = [loss - given.price for _, loss, _ in losses]
    np.testing.assert_allclose(decided.saving, own, atol=1e-9)


# Equal by whatever way they are given.


def numbers(policy):
    """Every number of a policy, in order."""
    found = []

    def walk(part):
        if isinstance(part, dict):
            for name, value in part.items():
                if name != "reviewer_error":
                    walk(value)
        elif isinstance(part, list):
            for value in part:
                walk(value)
        else:
            found.append(nan if part is None else part)

    walk(policy.to_dict())
    return found


def same_policies(one, two, rel=1e-9):
    first, second = numbers(one), numbers(two)
    assert len(first) == len(second)
    for a, b in zip(first, second, strict=True):
        if isinstance(a, (bool, str)):
            assert a == b
        else:
            assert a == pytest.approx(b, rel=rel, abs=1e-11, nan_ok=True)


@pytest.mark.parametrize("seed", range(6))
def test_the_same_reviewers_in_other_words(seed):
    given = Two(seed, 60)
    options = {"error_cost": given.matrix, "review_cost": given.price, "labels": [0, 1]}
    options["pos_label"] = given.positive
    rate = 0.125
    number = best_policy(given.y, given.p, **options, reviewer_error=rate)
    for same in ([rate, rate], {0: rate, 1: rate}, [[1 - rate, rate], [rate, 1 - rate]]):
        same_policies(number, best_policy(given.y, given.p, **options, reviewer_error=same))
    case = np.full(given.y.size, rate)
    same_policies(number, best_policy(given.y, given.p, **options, reviewer_error=case))
    human = np.where(np.random.default_rng(seed).random(60) < 0.2, 1 - given.y, given.y)
    by_human = best_policy(given.y, given.p, **options, human=human)
    slips = (human != given.y).astype(float)
    by_error = best_policy(given.y, given.p, **options, reviewer_error=slips)
    assert by_error.reviewers is None
    assert by_human.reviewers is not None
    assert numbers(by_error) == numbers(by_human)[: len(numbers(by_error))]
    perfect = best_policy(given.y, given.p, **options, human=given.y)
    assert perfect.cost == pytest.approx(best_policy(given.y, given.p, **options).cost, rel=1e-12)
    assert perfect.reviewers.error_rate.value == 0.0


def test_order_does_not_matter():
    for seed in (0, 1):
        given, rng = Three(seed), np.random.default_rng(seed)
        order = rng.permutation(given.y.size)
        options = {"error_cost": given.matrix, "review_cost": given.price}
        one = best_policy(given.y, given.proba, **options, human=given.human)
        two = best_policy(given.y[order], given.proba[order], **options, human=given.human[order])
        same_policies(one, two)


# What else there is.


def test_compare_costs_with_humans():
    y, p, human = measured_case(2)
    q = np.random.default_rng(0).permutation(p)
    q[::2] = p[::2]
    options = {"error_cost": MATRICES[0], "review_cost": 0.6, "human": human}
    found = compare_costs(y, p, q, **options, rule="tuned")
    costs = {"error_cost": MATRICES[0], "review_cost": 0.6}
    report = Report.from_predictions(
        y, {"p": p, "q": q}, costs=costs, human=human, policy={"rule": "tuned"}
    )
    test = report.comparisons[0].cost.test
    assert found.difference == pytest.approx(test.difference, rel=1e-9)
    assert found.p_value < 1.0
    assert found.interval == pytest.approx(test.interval, rel=1e-9)
    fixed = best_policy(y, p, **options)
    again = compare_costs(y, p, q, **options, policies=(fixed, fixed))
    decided = [fixed.decide(part) for part in (p, q)]
    paid = []
    for made in decided:
        total = 0.0
        for k, (label, alone) in enumerate(zip(made.label, made.automate, strict=True)):
            total += MATRICES[0][y[k]][label if alone else human[k]] + (0.0 if alone else 0.6)
        paid.append(total / y.size)
    assert (again.a, again.b) == pytest.approx(tuple(paid), rel=1e-12)


def test_deferral_curve_by_class_and_by_case():
    given = Two(0, 25)
    rates = np.array([0.125, 0.5])
    by_class = deferral_curve(given.y, given.p, error_cost=given.matrix, reviewer_error=rates)
    by_case = deferral_curve(
        given.y, given.p, error_cost=given.matrix, reviewer_error=rates[given.y]
    )
    np.testing.assert_allclose(by_class.cost, by_case.cost, rtol=1e-12)
    own = [reference.review_cost(t, given.matrix, 1.0, rates[t]) for t in given.y]
    assert by_class.cost[-1] == pytest.approx(np.mean(own), rel=1e-12)
    costs = np.arange(25.0)
    priced = deferral_curve(given.y, given.p, error_cost=costs, reviewer_error=rates)
    assert priced.cost[-1] == pytest.approx(np.mean(1.0 + rates[given.y] * costs), rel=1e-12)


@pytest.mark.parametrize("kind", ["class", "human", "human of three"])
def test_saved_policies_decide_alike(kind):
    given = Three(0) if kind == "human of three" else Two(1, 80)
    scores = given.proba if kind == "human of three" else given.p
    options = {"error_cost": given.matrix, "review_cost": given.price}
    options |= {"human": given.human} if kind != "class" else {"reviewer_error": [0.1, 0.25]}
    if kind == "human":
        options["human"] = np.where(np.arange(given.y.size) % 7 == 0, 1 - given.y, given.y)
    policy = best_policy(given.y, scores, **options)
    again = Policy.from_dict(json.loads(policy.to_json()))
    assert again.to_json() == policy.to_json()
    for name in ("label", "automate", "score", "saving", "reason"):
        one, two = (getattr(part.decide(scores), name) for part in (policy, again))
        np.testing.assert_array_equal(one, two)
    assert policy.sentences() == again.sentences()
    rates = np.asarray(policy.to_dict()["costs"]["reviewer_error"])
    n_classes = len(given.matrix)
    assert rates.shape == ((2,) if n_classes == 2 else (n_classes, n_classes))
    if kind == "human":
        content = policy.to_dict()
        for name, damage in (
            ("error_rates", []),
            ("human", 3),
            ("confidence", 2.0),
            ("against_human", {"a": 1.0}),
        ):
            bad = {**content, "reviewers": {**content["reviewers"], name: damage}}
            with pytest.raises(ValueError, match=r"must|missing"):
                Policy.from_dict(bad)
    bad = policy.to_dict()
    bad["costs"] = {**bad["costs"], "reviewer_error": [0.1] * 7}
    with pytest.raises(ValueError, match="reviewer_error must be a number"):
        Policy.from_dict(bad)


Y, P = [0, 1, 0, 1, 0, 1], [0.1, 0.8, 0.3, 0.6, 0.2, 0.9]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"human": [0, 1, 0, 1, 0, 2]}, "human holds 2, but the classes are 0, 1"),
        ({"human": [0, 1, 0]}, "one decision for each of the 6 cases"),
        ({"human": [0, 1, 0, 1, 0, nan]}, "human has 1 missing .* reviewer_error by class"),
        ({"human": Y, "reviewer_error": 0.1}, "give one of both"),
        ({"human": Y, "reviewer_error": [0.1, 0.2]}, "give one of both"),
        ({"reviewer_error": [0.1, 0.2, 0.3]}, r"shape \(3,\); give one number, one for each of"),
        ({"reviewer_error": [0.1, 1.5]}, r"shares from 0 to 1; entry \[1\] is 1.5"),
        ({"reviewer_error": [0.1] * 5 + [2.0]}, r"entry \[5\] is 2.0"),
        ({"reviewer_error": [0.1, -0.5]}, "zero or more"),
        ({"reviewer_error": {0: 0.1}}, "missing, or are not classes: 1"),
        ({"reviewer_error": {0: 0.1, 1: 0.1, "b": 0.1}}, "not classes: 'b'"),
        ({"reviewer_error": {0: 0.1, 1: 7.0}}, r"reviewer_error\[1\] must be a share"),
        ({"reviewer_error": [[0.9, 0.2], [0.0, 1.0]]}, "must sum to 1; row 0 sums to 1.1"),
        ({"reviewer_error": [0.1] * 6, "error_cost": [1.0] * 6}, "both given by case"),
        ({"human": Y, "error_cost": [1.0] * 6}, "both given by case"),
    ],
)
def test_bad_reviewers(options, words):
    options = {"error_cost": 5.0, **options}
    with pytest.raises(ValueError, match=words):
        best_policy(Y, P, **options)
    human = options.pop("human", None)
    with pytest.raises(ValueError, match=words):
        Report.from_predictions(Y, P, costs=options, human=human)


def test_more_bad_reviewers():
    with pytest.raises(ValueError, match="say nothing without costs"):
        Report.from_predictions(Y, P, human=Y)
    state = ScoreState([0, 1], ["a"]).update(Y, P, human=Y)
    with pytest.raises(ValueError, match="give one of both"):
        Report.from_state(state, {"error_cost": 5.0, "reviewer_error": 0.1})
    with pytest.raises(ValueError, match="in every update, or in none"):
        state.update(Y, P)
    with pytest.raises(ValueError, match="in every update, or in none"):
        state.update(Y, P, reviewer_error=[0.1] * 6)
    with pytest.raises(ValueError, match="in different ways"):
        state.merge(ScoreState([0, 1], ["a"]).update(Y, P))
    with pytest.raises(ValueError, match="both given by case"):
        ScoreState([0, 1], ["a"]).update(Y, P, case_costs=[1.0] * 6, human=Y)
    assert state.support.tolist() == [3, 3]
    with pytest.raises(ValueError, match="one for each of the 2 classes, or a matrix"):
        DeferralClassifier(error_cost=3.0, reviewer_error=[0.1] * 6).fit(np.c_[P, P], Y)


def test_deferral_classifier_by_class():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.where(X[:, 0] + rng.normal(size=300) > 0, "yes", "no")
    rates = {"no": 0.0, "yes": 0.5}
    made = DeferralClassifier(error_cost=5.0, reviewer_error=rates, random_state=0).fit(X, y)
    assert np.asarray(made.policy_.costs.reviewer_error).tolist() == [0.0, 0.5]


def test_tables_and_words():
    y, p, human = measured_case(1)
    costs = {"error_cost": MATRICES[0], "review_cost": 0.3}
    report = Report.from_predictions(y, {"m": p}, costs=costs, human=human)
    made = report.models[0].policy.reviewers
    told = report.models[0].policy.sentences()
    assert (
        f"Humans alone: {made.human.value:.4g} per case (wrong in "
        f"{100 * made.error_rate.value:.1f} %), the model alone: {made.model.value:.4g}, the "
        f"policy: {made.policy.value:.4g}."
    ) in told
    content = json.loads(report.to_json())
    assert content["costs"]["reviewer_error"] == "measured from human decisions"
    reviewers = content["models"][0]["policy"]["reviewers"]
    assert reviewers["human"]["value"] == made.human.value
    assert reviewers["against_model"]["difference"] == made.against_model.difference
    frame = report.to_frame("reviewers")
    assert frame["of"].tolist() == [
        *("human", "model", "policy", "policy - human", "policy - model"),
        *("human", "human, 0", "human, 1"),
    ]
    assert frame["value"][3] == made.against_human.difference
    assert "errors of humans" in report.to_text()
    assert "against humans alone" in report.to_markdown()
    assert "human errors" in repr(report.models[0].policy)
    assert "error rate" in repr(made)
    assert "Reviewers’ errors, times those of the report" in report.to_html()


def test_a_class_without_cases_has_no_error_rate():
    """Its expected reviews are those of all cases."""
    y, p = np.r_[Y, Y], np.r_[P, P]
    human = y.copy()
    human[:3] = 1 - human[:3]
    proba = np.c_[0.9 * (1 - p), 0.9 * p, np.full(y.size, 0.1)]
    policy = best_policy(y, proba, error_cost=4.0, human=human, labels=[0, 1, 2])
    assert isnan(policy.reviewers.error_rates[2].value)
    assert policy.reviewers.error_rates[2].interval is None
    np.testing.assert_allclose(policy.costs.reviewer_error[2], [0.125, 0.125, 0.75])
    assert json.loads(policy.to_json())["reviewers"]["error_rates"][2]["value"] is None
