"""Policies from their definition: a loop over pairs of thresholds, a loop over cases."""

from __future__ import annotations

from fractions import Fraction
from math import exp, inf, log


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
