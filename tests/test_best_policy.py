"""Policies against loops over all pairs of thresholds, and what they cost on other cases."""

from __future__ import annotations

import warnings
from fractions import Fraction
from math import inf, isnan

import numpy as np
import pytest

from fragility import best_policy
from fragility.deferral import Policy

from .confident_models import classes_drawn, logistic, model
from .reference import policies as reference

#: Random labels may fall with the scores, which the policies then say.
pytestmark = pytest.mark.filterwarnings("ignore:Higher scores do not mean")

MATRICES = [[[0, 1], [5, 0]], [[0.5, 4], [8, 2]], [[1, 1], [1, 1]], [[0, 3], [0, 0]], 2.0, 0.0]


@pytest.fixture(autouse=True)
def every_floating_point_error_is_an_exception():
    with np.errstate(all="raise", under="ignore"):
        yield


def problem(seed):
    """A few cases with ties, at 0 and 1 too, and options of all kinds."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 13))
    codes = rng.integers(0, 2, n).tolist()
    scores = (rng.integers(0, 9, n) / 8).tolist()
    weights = None
    if seed % 3 == 0:
        weights = rng.choice([0, 0.25, 1, 3], n).tolist()
        weights[:5] = [1, 2, 1, 0.5, 1]
    costs = {
        "error_cost": MATRICES[int(rng.integers(len(MATRICES)))],
        "review_cost": float(rng.choice([0.0, 0.25, 0.5, 1.0, 3.0])),
        "reviewer_error": float(rng.choice([0.0, 0.0, 0.125, 0.5, 1.0])),
    }
    if seed % 4 == 1:
        costs["error_cost"] = (rng.integers(0, 20, n) / 2).tolist()
    capacity = None if seed % 2 else float(rng.choice([0.0, 0.125, 0.25, 0.5, 1.0]))
    return codes, scores, weights, int(seed % 5 != 0), costs, capacity


def found_policy(given, rule):
    codes, scores, weights, positive, costs, capacity = given
    return best_policy(
        codes,
        scores,
        sample_weight=weights,
        labels=[0, 1],
        pos_label=positive,
        capacity=capacity,
        rule=rule,
        **costs,
    )


def rounded(cases):
    """Thresholds as places among the scores: pairs that decide alike are the same."""
    scores = sorted({case[0] for case in cases})
    return lambda value: sum(score < value for score in scores)


@pytest.mark.parametrize("seed", range(90))
def test_tuned_is_the_best_of_all_pairs(seed):
    given = problem(seed)
    codes, scores, weights, positive, costs, capacity = given
    policy = found_policy(given, "tuned")
    cases = reference.two_class_cases(codes, scores, weights, positive, **costs)
    least, tied = reference.best_pairs(cases, capacity)
    cost, reviews = reference.paid(cases, policy.lower, policy.upper)
    assert cost == least
    assert reviews == tied[0][0]  # of equal ones the fewest reviews
    place = rounded(cases)
    first = min(pair for pair in tied if pair[0] == reviews)  # then the lowest lower
    assert place(policy.lower) == place(first[1])
    total = sum(case[1] for case in cases)
    assert policy.automation_rate == pytest.approx(float(1 - reviews / total), abs=1e-12)
    assert policy.within_capacity
    if capacity is not None:
        assert reviews <= Fraction(capacity) * total
    everyone = sum(weight * reviewed for _, weight, _, reviewed, _ in cases)
    assert policy.cost_review_all == pytest.approx(float(everyone / total), rel=1e-12)


@pytest.mark.parametrize("seed", range(0, 90, 6))
def test_decisions_are_those_of_the_thresholds(seed):
    given = problem(seed)
    policy = found_policy(given, "tuned")
    positive = given[3]
    assert policy.lower <= policy.decision.suggestion <= policy.upper
    asked = [0.0, 0.03, 0.125, 0.2, 0.5, 0.77, 0.875, 1.0]
    asked += [v for v in (policy.lower, policy.upper) if v <= 1.0]
    made = policy.decide(asked)
    for score, label, alone in zip(asked, made.label, made.automate, strict=True):
        if score < policy.lower:
            assert alone
            assert label == 1 - positive
        elif score >= policy.upper:
            assert alone
            assert label == positive
        else:
            assert not alone
    both = [[1 - p, p] if positive == 1 else [p, 1 - p] for p in asked]
    again = policy.decide(both)
    np.testing.assert_array_equal(again.label, made.label)
    np.testing.assert_array_equal(again.automate, made.automate)
    sure = [score for score, alone in zip(asked, made.automate, strict=True) if not alone]
    assert len(made.review_queue()) == len(sure)


def counted(codes, scores, weights):
    """Cases that weighted ones count for: by class and score, at least one where there is any."""
    cells = {}
    for k, key in enumerate(zip(codes, scores, strict=True)):
        cells.setdefault(key, []).append(1 if weights is None else weights[k])
    cells = {key: [w for w in own if w] for key, own in cells.items()}
    return sum(
        max(1, int(sum(own) ** 2 / sum(w * w for w in own) + 0.5)) for own in cells.values() if own
    )


@pytest.mark.parametrize("rule", ["auto", "expected_cost"])
@pytest.mark.parametrize("seed", range(24))
def test_blended_costs_are_searched_exactly(seed, rule):
    given = problem(seed)
    codes, scores, weights, positive, costs, capacity = given
    policy = found_policy(given, rule)
    n = counted(codes, scores, weights)
    share = 1.0 if rule == "expected_cost" else 1000 / (1000 + n)
    line = policy.decision.slope, policy.decision.intercept
    cases = reference.blended_cases(codes, scores, share, line, weights, positive, **costs)
    least, _ = reference.best_pairs(cases, capacity)
    if line[0] <= 0:  # the scores say nothing: all cases alike
        total = sum(case[1] for case in cases)
        alike = [reference.paid(cases, *pair) for pair in ((0.0, inf), (inf, inf), (0.0, 0.0))]
        most = total if capacity is None else capacity * total + 1e-9
        least = min(cost for cost, reviews in alike if reviews <= most)
        assert (policy.lower, policy.upper) in ((0.0, inf), (inf, inf), (0.0, 0.0))
    cost, reviews = reference.paid(cases, policy.lower, policy.upper)
    scale = sum(weight * max(rest) for _, weight, *rest in cases)
    assert cost == pytest.approx(least, abs=1e-9 * scale + 1e-12)
    if capacity is not None:
        assert reviews <= capacity * sum(case[1] for case in cases) + 1e-9


@pytest.mark.parametrize("seed", range(24))
def test_confidence_is_one_threshold_of_the_larger_probability(seed):
    given = problem(seed)
    codes, scores, weights, positive, costs, capacity = given
    policy = found_policy(given, "confidence")
    cases = reference.two_class_cases(codes, scores, weights, positive, **costs)
    most = Fraction(1 if capacity is None else capacity) * sum(case[1] for case in cases)
    tried = []
    for limit in [0.0, *{max(p, 1 - p) for p in scores}]:
        cost = reviews = 0
        for score, weight, negative, reviewed, as_positive in cases:
            # Of two equal probabilities the class that comes first is predicted.
            says_positive = score > 0.5 or (score == 0.5 and positive == 0)
            if max(score, 1 - score) > limit:
                cost += weight * (as_positive if says_positive else negative)
            else:
                cost += weight * reviewed
                reviews += weight
        if reviews <= most:
            tried.append((cost, reviews))
    assert reference.paid(cases, policy.lower, policy.upper) == min(tried)


# Several classes


def several(seed):
    rng = np.random.default_rng(seed)
    n_classes, n = int(rng.integers(3, 5)), int(rng.integers(8, 30))
    p = rng.dirichlet(np.full(n_classes, 0.6), n)
    p[n // 2 :] = p[rng.integers(0, n // 2, n - n // 2)]  # ties
    codes = np.array([rng.choice(n_classes, p=row) for row in p])
    matrix = rng.integers(1, 9, (n_classes, n_classes)).astype(float)
    np.fill_diagonal(matrix, rng.integers(0, 2, n_classes))
    costs = {
        "error_cost": [matrix.tolist(), 4.0, rng.integers(0, 12, n).astype(float).tolist()][
            seed % 3
        ],
        "review_cost": float(rng.choice([0.25, 1.0, 2.0])),
        "reviewer_error": float(rng.choice([0.0, 0.125])),
    }
    weights = rng.choice([0.25, 1.0, 3.0], n).tolist() if seed % 2 else None
    capacity = None if seed % 4 < 2 else 0.3
    return codes.tolist(), p, weights, costs, capacity


def matrix_of(error_cost, n_classes, weights):
    """As the policy has it: costs by case at their mean."""
    if np.ndim(error_cost) == 2:
        return error_cost
    mean = float(np.average(error_cost, weights=weights)) if np.ndim(error_cost) else error_cost
    return [[0.0 if d == y else mean for d in range(n_classes)] for y in range(n_classes)]


@pytest.mark.parametrize("rule", ["tuned", "auto", "confidence"])
@pytest.mark.parametrize("seed", range(24))
def test_several_classes_have_the_best_of_all_limits(seed, rule):
    codes, p, weights, costs, capacity = several(seed)
    n_classes, n = p.shape[1], len(codes)
    policy = best_policy(
        *(codes, p),
        labels=list(range(n_classes)),
        sample_weight=weights,
        capacity=capacity,
        rule=rule,
        **costs,
    )
    matrix, rate = matrix_of(costs["error_cost"], n_classes, weights), costs["reviewer_error"]
    if rule == "confidence":
        assert policy.decision.by_confidence
        plain = [[float(y != d) for d in range(n_classes)] for y in range(n_classes)]
        losses = reference.expected_losses(p, plain, 0.0, 1.0)
    else:
        losses = reference.expected_losses(p, matrix, rate, policy.decision.temperature)
    share = 1000 / (1000 + n) if rule == "auto" else 0.0
    mass = [1.0] * n if weights is None else weights
    cases = []
    for k, (decided, loss, chances) in enumerate(losses):
        row, reviewed = reference.prices(codes[k], **costs, n_classes=n_classes, case=k)
        own = {**costs}
        if np.ndim(own["error_cost"]) == 1:
            own["error_cost"] = costs["error_cost"][k]
        expected = [reference.prices(y, **own, n_classes=n_classes) for y in range(n_classes)]
        alone = sum(q * float(e[0][decided]) for q, e in zip(chances, expected, strict=True))
        human = sum(q * float(e[1]) for q, e in zip(chances, expected, strict=True))
        cases.append(
            (
                loss,
                mass[k],
                float(row[decided]) * (1 - share) + share * alone,
                float(reviewed) * (1 - share) + share * human,
            )
        )
    tried = []
    for limit in [-inf, *(case[0] + 1e-9 for case in cases)]:
        cost = sum(w * (alone if loss <= limit else human) for loss, w, alone, human in cases)
        reviews = sum(w for loss, w, *_ in cases if loss > limit)
        if capacity is None or reviews <= capacity * sum(mass) + 1e-9:
            tried.append((cost, reviews))
    made = policy.decide(p)
    assert made.label[made.automate].tolist() == [
        losses[k][0] for k in np.flatnonzero(made.automate)
    ]
    np.testing.assert_allclose(made.score, [loss for _, loss, _ in losses], atol=1e-9)
    cost = sum(
        w * (alone if yes else human)
        for (_, w, alone, human), yes in zip(cases, made.automate, strict=True)
    )
    least = min(tried)[0]
    assert cost == pytest.approx(least, rel=1e-9, abs=1e-9)
    reviews = float(np.dot(mass, ~made.automate))
    assert reviews <= min(r for c, r in tried if c <= least + 1e-9) + 1e-9
    assert policy.automation_rate == pytest.approx(1 - reviews / sum(mass), abs=1e-12)
    assert isnan(policy.lower)
    assert isnan(policy.misses)


def test_several_classes_expected_cost_is_chow():
    """With right probabilities the limit is the cost of a review; capacity moves it down."""
    codes, p = classes_drawn(np.random.default_rng(3), 6000)
    policy = best_policy(codes, p, error_cost=4, rule="expected_cost", reviewer_error=0.05)
    # Between the losses on both sides of 1, at the temperature that was found.
    losses = [s for _, s, _ in chow_losses(p, policy.decision.temperature)]
    alone = np.array(losses) <= 1.0
    np.testing.assert_array_equal(policy.decide(p).automate, alone)
    np.testing.assert_allclose(policy.decision.temperature, 1.0, atol=0.06)
    # Chow: q >= 1 - r/C - rho.
    confident = p.max(axis=1) >= 1 - 1 / 4 - 0.05
    assert np.mean(confident != alone) < 0.03
    tight = best_policy(
        codes, p, error_cost=4, rule="expected_cost", reviewer_error=0.05, capacity=0.2
    )
    reviewed = ~tight.decide(p).automate
    assert 0.19 < reviewed.mean() <= 0.2
    assert np.sort(losses)[-reviewed.sum()] == np.array(losses)[reviewed].min()


def chow_losses(p, temperature):
    matrix = (4.0 * (1 - np.eye(p.shape[1]))).tolist()
    return reference.expected_losses(p.tolist(), matrix, 0.05, temperature)


# Rules on many cases


@pytest.mark.parametrize(
    ("alarm", "miss", "review", "rate"), [(1, 5, 0.5, 0.0), (1, 5, 0.4, 0.05), (3, 2, 0.7, 0.02)]
)
def test_expected_cost_of_calibrated_scores(alarm, miss, review, rate):
    y, p = model(11, 100_000)
    policy = best_policy(
        *(y, p),
        error_cost=[[0, alarm], [miss, 0]],
        review_cost=review,
        reviewer_error=rate,
        rule="expected_cost",
    )
    lower = (review + rate * alarm) / ((1 - rate) * miss + rate * alarm)
    upper = ((1 - rate) * alarm - review) / ((1 - rate) * alarm + rate * miss)
    assert policy.lower == pytest.approx(lower, abs=0.01)
    assert policy.upper == pytest.approx(upper, abs=0.01)
    # Exactly there by the calibrated scores: between the scores on both sides.
    shown = policy.decision.calibrated(np.sort(p))
    order = np.sort(p)
    assert order[shown < lower].max() < policy.lower <= order[shown >= lower].min()
    assert order[shown < upper].max() < policy.upper <= order[shown >= upper].min()


def test_no_review_where_it_does_not_pay():
    y, p = model(12, 20_000)
    policy = best_policy(y, p, error_cost=[[0, 1], [4, 0]], review_cost=0.9, rule="expected_cost")
    assert policy.lower == policy.upper == pytest.approx(1 / 5, abs=0.01)
    assert policy.automation_rate == 1.0
    assert "no review" in policy.sentences()[0]


def test_auto_is_expected_cost_for_few_and_tuned_for_many():
    """Scores whose calibration no Platt map can mend: the rules disagree."""
    rng = np.random.default_rng(5)
    options = {"error_cost": [[0, 1], [5, 0]], "review_cost": 0.5}

    def drawn(n):
        p = np.sort(rng.random(n))
        return rng.random(n) < np.where(p < 0.5, 0.03, 0.9 * p), p

    y, p = drawn(200_000)
    auto, tuned, expected = (
        best_policy(y, p, rule=rule, **options) for rule in ("auto", "tuned", "expected_cost")
    )
    assert auto.lower == pytest.approx(tuned.lower, abs=0.01)
    assert auto.upper == pytest.approx(tuned.upper, abs=0.02)
    assert abs(expected.lower - tuned.lower) > 0.1
    assert auto.cost == pytest.approx(tuned.cost, rel=0.003)
    apart = {"tuned": 0.0, "expected_cost": 0.0}
    for _ in range(10):
        y, p = drawn(60)
        auto = best_policy(y, p, **options)
        for rule in apart:
            other = best_policy(y, p, rule=rule, **options)
            apart[rule] += abs(auto.lower - other.lower)
            apart[rule] += abs(min(auto.upper, 1.0) - min(other.upper, 1.0))
    assert apart["expected_cost"] < 0.2 * apart["tuned"]


# What held-out costs are worth


def true_cost(policy, chances, scores, alarm, miss, review):
    """Mean cost of a policy in a population whose chances are known."""
    negative, positive = scores < policy.lower, scores >= policy.upper
    return np.where(
        negative, miss * chances, np.where(positive, alarm * (1 - chances), review)
    ).mean()


@pytest.mark.parametrize("rule", ["auto", "tuned", "expected_cost", "confidence"])
@pytest.mark.parametrize("n", [300, 4000])
def test_held_out_cost_is_that_of_the_population(rule, n):
    rng = np.random.default_rng(21)
    logits = rng.normal(-1, 2, 300_000)
    chances, shown = logistic(logits), logistic(1.6 * logits + 0.5)
    apart, errors, inside = [], [], 0
    for seed in range(8):
        rows = rng.integers(0, logits.size, n)
        y = rng.random(n) < chances[rows]
        policy = best_policy(
            *(y, shown[rows]),
            error_cost=[[0, 1], [6, 0]],
            review_cost=0.5,
            rule=rule,
            random_state=seed,
        )
        truth = true_cost(policy, chances, shown, 1, 6, 0.5)
        apart.append(policy.cost - truth)
        errors.append((policy.cost_interval.high - policy.cost) / 1.96)
        inside += policy.cost_interval.low <= truth <= policy.cost_interval.high
    scatter = np.sqrt(np.mean(np.square(errors)))
    # Folds choose on fewer cases, which costs a little more.
    more = 0.01 if n == 300 else 0.002
    assert abs(np.mean(apart) - more) < 3 * scatter / np.sqrt(8) + more
    assert np.max(np.abs(apart)) < 4 * scatter
    assert inside >= 6


def test_a_cost_found_by_looking_is_too_good():
    """On noise the chosen thresholds look cheap; measured on others they are not."""
    looked, honest = [], []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        y, p = rng.permutation(np.repeat([0, 1], 30)), rng.random(60)
        policy = best_policy(y, p, error_cost=2, rule="tuned", random_state=seed)
        made = policy.decide(p)
        looked.append(np.where(made.automate, 2.0 * (made.label != y), 1.0).mean())
        honest.append(policy.cost)
    # Alone or reviewed, a case costs one: that is the truth at every pair.
    assert np.mean(looked) < 0.9
    assert np.mean(honest) == pytest.approx(1.0, abs=0.03)


def test_interval_is_that_of_a_mean():
    """Where reviews cost more than errors everything is automated: the cost is a plain mean."""
    y, p = model(8, 1500)
    policy = best_policy(y, p, error_cost=1, review_cost=5, rule="confidence")
    wrong = (p > 0.5) != y
    assert policy.cost == pytest.approx(wrong.mean(), rel=1e-12)
    assert policy.error_share == pytest.approx(wrong.mean(), rel=1e-12)
    assert policy.error_rate == pytest.approx(wrong.mean(), rel=1e-12)
    assert policy.misses == pytest.approx(wrong[y == 1].mean(), rel=1e-12)
    assert policy.false_alarms == pytest.approx(wrong[y == 0].mean(), rel=1e-12)
    reach = 1.9615 * wrong.std(ddof=1) / np.sqrt(1500)
    assert policy.cost_interval.high - policy.cost == pytest.approx(reach, rel=1e-3)
    assert policy.cost - policy.cost_interval.low == pytest.approx(reach, rel=1e-3)
    narrow = best_policy(
        y, p, error_cost=1, review_cost=5, rule="confidence", confidence=0.5
    ).cost_interval
    assert narrow.high - narrow.low == pytest.approx(2 * reach * 0.6747 / 1.9615, rel=1e-3)


def test_clusters_widen_the_interval():
    """Every case four times over: as one cluster each, the interval of the single cases."""
    y, p = model(9, 500)
    options = {"error_cost": 1, "review_cost": 5, "rule": "confidence"}
    one = best_policy(y, p, **options).cost_interval
    rows = np.repeat(np.arange(500), 4)
    blind = best_policy(y[rows], p[rows], **options).cost_interval
    fair = best_policy(y[rows], p[rows], cluster=rows, **options).cost_interval
    assert fair.high - fair.low == pytest.approx(one.high - one.low, rel=0.01)
    assert blind.high - blind.low == pytest.approx(0.5 * (one.high - one.low), rel=0.01)


# What must not matter


def same(one, other, rel=0.0):
    for name in ("lower", "upper", "cost", "automation_rate", "error_share", "misses"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=rel, abs=rel), name
    for name in ("cost_interval", "lower_interval", "upper_interval"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rel, atol=rel)


@pytest.mark.parametrize("kind", ["number", "matrix", "cases", "weights", "clusters", "limits"])
def test_order_does_not_matter(kind):
    y, p = model(2, 600)
    p = np.round(p, 2)
    rng = np.random.default_rng(0)
    order = rng.permutation(y.size)
    amounts, weights, cluster = (rng.integers(1, 30, y.size) for _ in range(3))

    def result(rows):
        more = {"error_cost": {"number": 10, "matrix": [[0, 7], [20, 1]]}.get(kind, 6)}
        if kind == "cases":
            more["error_cost"] = amounts[rows]
        if kind == "weights":
            more |= {"sample_weight": weights[rows], "max_error_share": 0.2}
        if kind == "clusters":
            more |= {"cluster": cluster[rows], "max_error_share": 0.3}
        if kind == "limits":
            more |= {"max_error_share": 0.05, "max_error_rate": 0.2}
        return best_policy(y[rows], p[rows], capacity=0.6, **more)

    one, other = result(np.arange(y.size)), result(order)
    same(one, other, 1e-12)
    assert [g.kept for g in one.guarantees] == [g.kept for g in other.guarantees]


def test_order_of_several_classes_does_not_matter():
    codes, p = classes_drawn(np.random.default_rng(0), 300)
    order = np.random.default_rng(1).permutation(300)
    one = best_policy(codes, p, error_cost=4)
    other = best_policy(codes[order], p[order], error_cost=4)
    assert one.cost == pytest.approx(other.cost, rel=1e-12)
    assert one.decision.limit == pytest.approx(other.decision.limit, rel=1e-9)


@pytest.mark.parametrize("rule", ["auto", "tuned", "expected_cost", "confidence"])
def test_the_other_class_mirrors_the_thresholds(rule):
    y, p = model(3, 4000)
    p = np.round(p * 512) / 512  # 1 - p is exact
    costs = {"error_cost": [[0.5, 2], [6, 1]], "review_cost": 0.6, "reviewer_error": 0.05}
    one = best_policy(y, p, rule=rule, **costs)
    other = best_policy(y, 1 - p, pos_label=0, rule=rule, **costs)
    assert other.lower == pytest.approx(1 - one.upper, abs=1 / 512)
    assert other.upper == pytest.approx(1 - one.lower, abs=1 / 512)
    assert other.automation_rate == pytest.approx(one.automation_rate, abs=0.01)
    error = (one.cost_interval.high - one.cost) / 1.96
    assert other.cost == pytest.approx(one.cost, abs=0.3 * error)
    np.testing.assert_array_equal(one.decide(p).label, other.decide(1 - p).label)
    both = best_policy(y, np.column_stack([1 - p, p]), rule=rule, **costs)
    same(both, one)


@pytest.mark.parametrize("rule", ["auto", "tuned", "confidence"])
def test_equal_weights_are_no_weights(rule):
    y, p = model(4, 700)
    costs = {"error_cost": [[0, 1], [6, 0]], "review_cost": 0.5, "rule": rule}
    plain = best_policy(y, p, **costs)
    for weight in (2.0, 0.3, 2.0**600):
        same(best_policy(y, p, sample_weight=np.full(700, weight), **costs), plain, 1e-9)
    padded = best_policy(
        *(np.append(y, [0, 1]), np.append(p, [1.0, 0.0])),
        sample_weight=np.append(np.ones(700), [0, 0]),
        **costs,
    )
    same(padded, plain, 1e-9)
    assert padded.n_samples == 700


@pytest.mark.parametrize("factor", [1e-9, 0.1, 3, 1e12])
def test_currency_does_not_matter(factor):
    y, p = model(3, 500)
    costs = {"error_cost": np.array([[0.1, 1.3], [7.0, 0.2]]), "review_cost": 0.7}
    for criterion in ("cost", "fragility"):
        one = best_policy(y, p, criterion=criterion, reviewer_error=0.05, **costs)
        scaled = {name: factor * cost for name, cost in costs.items()}
        other = best_policy(y, p, criterion=criterion, reviewer_error=0.05, **scaled)
        for name in ("lower", "upper", "automation_rate", "error_rate"):
            assert getattr(one, name) == getattr(other, name)
        for name in ("cost", "cost_interval", "cost_without_review", "fragility"):
            np.testing.assert_allclose(
                factor * np.array(getattr(one, name)), getattr(other, name), rtol=1e-9
            )


# Words, notes and bad input


def test_a_diagonal_is_paid_in_reviews_too():
    y, p = model(5, 400)
    bare = best_policy(y, p, error_cost=[[0, 1], [5, 0]], review_cost=0.5, rule="tuned")
    for more in (1.0, 4.0):
        raised = best_policy(
            y, p, error_cost=[[more, 1 + more], [5 + more, more]], review_cost=0.5, rule="tuned"
        )
        assert (raised.lower, raised.upper) == (bare.lower, bare.upper)
        assert raised.cost == pytest.approx(bare.cost + more, rel=1e-12)
        assert raised.cost_review_all == pytest.approx(0.5 + more, rel=1e-12)


@pytest.mark.filterwarnings("error")
def test_falling_scores_are_warned_of():
    y, p = model(6, 500)
    with pytest.warns(UserWarning, match="scores of the other class"):
        policy = best_policy(y, 1 - p, error_cost=5)
    assert (policy.lower, policy.upper) == (0.0, inf)
    assert policy.cost == pytest.approx(1.0, rel=1e-12)
    assert policy.automation_rate == 0.0
    with pytest.warns(UserWarning, match="the other class"):
        limited = best_policy(y, 1 - p, error_cost=5, max_error_share=0.2, rule="tuned")
    assert not limited.guaranteed
    assert limited.automation_rate == 0.0


def test_a_dear_case_is_named():
    y, p = model(7, 200)
    costs = np.full(200, 2.0)
    row = int(np.flatnonzero((y == 1) & (p < 0.4))[0])
    costs[row] = 1e6
    policy = best_policy(y, p, error_cost=costs, review_cost=0.8, reviewer_error=0.01)
    assert any(f"row {row}, makes" in note for note in policy.notes)
    assert best_policy(y, p, error_cost=np.full(200, 2.0), review_cost=0.8).notes == ()


def test_readable():
    y, p = model(0, 2000)
    policy = best_policy(y, p, error_cost=[[0, 1], [10, 0]], review_cost=0.5)
    assert isinstance(policy, Policy)
    shown = repr(policy)
    assert f"{100 * policy.lower:.4g} %" in shown
    assert f"{100 * policy.upper:.4g} %" in shown
    assert policy._repr_html_().count("<tr>") == len(shown.splitlines())
    first, second = policy.sentences()
    assert f"0 below {100 * policy.lower:.4g} %, 1 from {100 * policy.upper:.4g} % on" in first
    assert f"Cost per case {policy.cost:.4g}" in second
    low, high = policy.lower_interval
    assert low <= policy.lower <= high
    low, high = policy.upper_interval
    assert low <= policy.upper <= high


Y, P = [0, 1, 1, 0], [0.2, 0.9, 0.6, 0.7]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "best"}, "rule"),
        ({"rule": None}, "rule"),
        ({"criterion": "mean"}, "criterion"),
        ({"slack": 2}, "slack"),
        ({"slack": -0.1}, "slack"),
        ({"confidence": 95}, "confidence must lie between 0 and 1, such as 0.95; got 95"),
        ({"random_state": None}, "random_state must be a whole number .* got None"),
        ({"random_state": -3}, "random_state must be a whole number .* got -3"),
        ({"cluster": [1, 2]}, "4"),
        ({"rule": "confidence", "max_error_share": 0.1}, "plain threshold of the confidence"),
        ({"rule": "confidence", "criterion": "fragility"}, "plain threshold of the confidence"),
        ({"error_cost": [[0, 1], [2, 3]]}, "cheaper than being right: row 1 has 2 in column 0"),
        ({"error_cost": [[2, 1], [1, 0]]}, "is it transposed"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        best_policy(Y, P, **{"error_cost": 10, **options})


def test_too_few_to_measure():
    with pytest.raises(ValueError, match=r"at least 4 cases .* got 3"):
        best_policy(Y, P, error_cost=10, sample_weight=[1, 0, 2, 3])
    with pytest.raises(ValueError, match=r"at least 4 cases .* got 3"):
        best_policy([0, 1, 2], np.eye(3), error_cost=10)


@pytest.mark.parametrize("seed", range(12))
def test_no_cost_is_above_that_of_the_dearest_decision(seed):
    """Scores that say nothing, and reviews that nobody would pay for."""
    rng = np.random.default_rng(seed)
    y, p = rng.random(60) < 0.4, rng.random(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        policy = best_policy(y, p, error_cost=1, review_cost=10)
    assert policy.lower == policy.upper
    assert policy.cost <= 1.0
    assert policy.cost == pytest.approx(policy.cost_without_review, rel=1e-9)


def test_an_interval_of_few_clusters_is_wide():
    y, p = model(3, 400)
    four = best_policy(y, p, error_cost=1, review_cost=5, cluster=np.arange(400) % 4)
    held = four.cost_interval.high - four.cost
    errors = np.bincount(np.arange(400) % 4, ((p > four.lower) != y) - four.cost)
    expected = 3.182 * np.sqrt((errors**2).sum() * 4 / 3) / 400
    assert held == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize(
    ("cluster", "words"), [("one", "at least 2 clusters"), ("class", "separate the classes")]
)
def test_clusters_that_tell_nothing_are_refused(cluster, words):
    y, p = model(3, 400)
    names = np.zeros(400) if cluster == "one" else np.where(y, 0, 1 + np.arange(400) % 7)
    with pytest.raises(ValueError, match=words):
        best_policy(y, p, error_cost=5, cluster=names)


def test_many_ties_are_searched_at_once():
    """Free reviews: every pair of cuts that decides nothing wrong costs the same."""
    y, p = model(5, 20_000)
    policy = best_policy(y, p, error_cost=5, review_cost=0, rule="tuned")
    assert policy.decide(p).automate.mean() < 0.05
    assert ((policy.decide(p).label != y) & policy.decide(p).automate).sum() == 0


def test_thresholds_at_the_same_cost_keep_limit_and_capacity():
    y, p = model(6, 2000)
    limited = best_policy(y, p, error_cost=5, max_error_share=0.03)
    assert limited.lower_interval.high <= limited.lower + 1e-2
    assert limited.upper_interval.low >= limited.upper - 1e-2
    few = best_policy(y, p, error_cost=5, capacity=0.1)
    for lower, upper in (
        *((end, few.upper) for end in few.lower_interval),
        *((few.lower, end) for end in few.upper_interval),
    ):
        assert ((p >= lower) & (p < upper)).mean() <= 0.1 + 2 / 2000
