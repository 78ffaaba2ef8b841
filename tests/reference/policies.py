"""Policies from their definition: a loop over pairs of thresholds, a loop over cases."""

from __future__ import annotations

from fractions import Fraction
from math import comb, exp, inf, log


def prices(true, error_cost, review_cost, reviewer_error, n_classes, case=None):
    """What a case of a class costs if each class is decided, and what it costs reviewed."""
    if isinstance(error_cost, (int, float)):
        row = [Fraction(0) if d == true else Fraction(error_cost) for d in range(n_classes)]
    elif isinstance(error_cost[0], (int, float)):
        row = [Fraction(0) if d == true else Fraction(error_cost[case]) for d in range(n_classes)]
    else:
        row = [Fraction(cost) for cost in error_cost[true]]
    rate = Fraction(reviewer_error)
    wrong = [cost for d, cost in enumerate(row) if d != true]
    reviewed = Fraction(review_cost) + (1 - rate) * row[true] + rate * sum(wrong) / len(wrong)
    return row, reviewed


def two_class_cases(codes, scores, weights=None, positive=1, **costs):
    """(score, weight, cost decided negative, reviewed, decided positive) of cases with weight."""
    found = []
    for k, (true, score) in enumerate(zip(codes, scores, strict=True)):
        weight = Fraction(1 if weights is None else weights[k])
        if weight > 0:
            row, reviewed = prices(true, **costs, n_classes=2, case=k)
            found.append((score, weight, row[1 - positive], reviewed, row[positive]))
    return found


def paid(cases, lower, upper):
    """Cost of all cases at two thresholds, and the weight of those reviewed."""
    cost = reviews = 0
    for score, weight, negative, reviewed, positive in cases:
        if score < lower:
            cost += weight * negative
        elif score >= upper:
            cost += weight * positive
        else:
            cost += weight * reviewed
            reviews += weight
    return cost, reviews


def best_pairs(cases, capacity=None, room=0, pairs=None):
    """Least cost of all pairs of thresholds, with its pairs (reviews, lower, upper) in order."""
    ends = [*sorted({case[0] for case in cases}), inf]
    if pairs is None:
        pairs = [(a, b) for a in ends for b in ends if a <= b]
    most = sum(case[1] for case in cases) * (1 if capacity is None else Fraction(capacity))
    found = [(*paid(cases, *pair), *pair) for pair in pairs]
    found = [entry for entry in found if entry[1] <= most + Fraction(1, 10**9)]
    least = min(found)[0]
    return least, sorted(entry[1:] for entry in found if entry[0] <= least + room)


def platt(score, slope, intercept):
    """Calibrated probability of the positive class."""
    score = min(max(score, 1e-12), 1 - 1e-12)
    return 1 / (1 + exp(-slope * log(score / (1 - score)) - intercept))


def blended_cases(codes, scores, share, line, weights=None, positive=1, **costs):
    """Two-class cases whose costs are, in this share, those that calibrated scores expect."""
    costs_by_case = not isinstance(costs["error_cost"], (int, float)) and isinstance(
        costs["error_cost"][0], (int, float)
    )
    found = []
    for k, (true, score) in enumerate(zip(codes, scores, strict=True)):
        weight = 1 if weights is None else weights[k]
        if weight == 0:
            continue
        p = platt(score, *line)
        own = {**costs}
        if costs_by_case:  # of all cases of the same score
            alike = [j for j, other in enumerate(scores) if other == score]
            mass = [1 if weights is None else weights[j] for j in alike]
            total = sum(w * costs["error_cost"][j] for j, w in zip(alike, mass, strict=True))
            own["error_cost"] = total / sum(mass)
        layers = []
        for code in (0, 1):
            row, reviewed = prices(code, **own, n_classes=2)
            layers.append((row[1 - positive], reviewed, row[positive]))
        row, reviewed = prices(true, **costs, n_classes=2, case=k)
        seen = row[1 - positive], reviewed, row[positive]
        mixed = [
            float((1 - share) * a) + share * float((1 - p) * b + p * c)
            for a, b, c in zip(seen, layers[1 - positive], layers[positive], strict=True)
        ]
        found.append((score, weight, *mixed))
    return found


def expected_losses(rows, matrix, reviewer_error, temperature):
    """Cheapest class of each row of probabilities at a temperature, and s = e − Q."""
    n = len(matrix)
    found = []
    for row in rows:
        powers = [max(p, 1e-12) ** (1 / temperature) for p in row]
        p = [power / sum(powers) for power in powers]
        expected = [sum(p[y] * matrix[y][d] for y in range(n)) for d in range(n)]
        decided = min(range(n), key=lambda d: expected[d])
        reviewed = 0.0
        for y in range(n):
            wrong = sum(matrix[y][d] for d in range(n) if d != y) / (n - 1)
            reviewed += p[y] * ((1 - reviewer_error) * matrix[y][y] + reviewer_error * wrong)
        found.append((decided, expected[decided] - reviewed, p))
    return found


def review_decisions(true, n_classes, human=None, error=0):
    """How often the reviewers of a case decide for each class."""
    if human is not None:
        return [Fraction(int(d == human)) for d in range(n_classes)]
    if isinstance(error, list):  # how often humans decide for each class, by true class
        return [Fraction(share) for share in error[true]]
    wrong = Fraction(error) / (n_classes - 1)
    return [1 - Fraction(error) if d == true else wrong for d in range(n_classes)]


def costs_of_case(true, matrix, amount, review, decisions):
    """What a case costs under each decision, and reviewed."""
    row = [Fraction(amount) * Fraction(cost) for cost in matrix[true]]
    reviewed = sum(share * cost for share, cost in zip(decisions, row, strict=True))
    return [*row, Fraction(review) + reviewed]


def best_cuts(below, reviewed, above, weight, capacity=None, pairs=None):
    """Least cost of all pairs of cuts of groups, and its pairs (reviews, lower, upper) in order."""
    n = len(weight)
    candidates = []
    for i in range(n + 1):
        for j in range(i, n + 1):
            reviews = sum(weight[i:j])
            if pairs is not None and (i, j) not in pairs:
                continue
            if capacity is None or reviews <= capacity:
                cost = sum(below[:i]) + sum(reviewed[i:j]) + sum(above[j:])
                candidates.append((cost, reviews, i, j))
    if not candidates:
        return None
    least = min(candidates)[0]
    return least, sorted(entry[1:] for entry in candidates if entry[0] == least)


def binomial_tail(k, n, limit):
    """P(Bin(n, limit) ≤ k), term by term."""
    limit = Fraction(limit)
    return sum(comb(n, j) * limit**j * (1 - limit) ** (n - j) for j in range(k + 1))


def most_errors(n, limit, delta):
    """The largest k with P(Bin(n, limit) ≤ k) ≤ delta, counted up from 0; −1 if there is none."""
    k = -1
    while k + 1 < n and binomial_tail(k + 1, n, limit) <= delta:
        k += 1
    return k


def automated_for_share(prices, wrong, limit, delta):
    """Cases that can be automated, the dearest price per error first, whole prices at a time."""
    most = most_errors(len(prices), limit, delta)
    if most < 0:
        return set()
    for price in sorted(set(prices), reverse=True):
        cases = {k for k, other in enumerate(prices) if other >= price}
        if sum(wrong[k] for k in cases) > most:
            return {k for k, other in enumerate(prices) if other > price}
    return set(range(len(prices)))


def rates_that_pass(prices, wrong, limit, delta):
    """Prices at which one fixed sequence of tests of the error rate passes."""
    n = len(prices)

    def enough(errors):
        number = errors + 1
        while binomial_tail(errors, number, limit) > delta:
            number += 1
        return number

    start = enough(0)
    for errors in range(1, 6):
        if enough(errors) <= max(n / 4, enough(0)):
            start = enough(errors)
    passed = []
    for price in sorted(set(prices), reverse=True):
        cases = [k for k, other in enumerate(prices) if other >= price]
        if len(cases) < start:
            continue
        if binomial_tail(sum(wrong[k] for k in cases), len(cases), limit) > delta:
            break
        passed.append(price)
    return passed


def bets_win(errors, weights, limit, delta, largest):
    """Whether the wealth of bets on clusters in their order ever grows to 1/δ."""
    shares = [
        (error - limit * weight) / largest + limit
        for error, weight in zip(errors, weights, strict=True)
    ]
    if sum(errors) > limit * sum(weights):
        return False
    wealth, seen, squares = 1.0, [limit], [limit * (1 - limit)]
    for share in shares:
        mean, variance = sum(seen) / len(seen), sum(squares) / len(squares)
        bet = (2 * log(1 / delta) / (len(shares) * max(variance, 1e-12))) ** 0.5
        wealth *= 1 - min(bet, 0.9 / (1 - limit)) * (share - limit)
        if wealth >= 1 / delta:
            return True
        seen.append(share)
        squares.append((share - mean) ** 2)
    return False


def fragility(costs, weights, bound):
    """Least k with k ln mean exp(cost / k) ≤ bound, by bisection; cost 0 to 100."""
    total = sum(weights)
    mean = sum(w * c for w, c in zip(weights, costs, strict=True)) / total
    if max(costs) <= bound * (1 + 1e-12):
        return 0.0
    if mean >= bound:
        return inf

    def value(k):
        top = max(costs)
        terms = (w * exp((c - top) / k) for w, c in zip(weights, costs, strict=True))
        return top + k * log(sum(terms) / total)

    low, high = 0.0, 1.0
    while value(high) > bound:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if middle == 0 or value(middle) > bound else (low, middle)
    return high
