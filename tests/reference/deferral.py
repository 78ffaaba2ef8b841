"""Deferral from its definition: a loop over thresholds, a loop over cases, fractions."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import nan

from .companions import predict


def cases(codes, rows, error_cost, review_cost=1.0, reviewer_error=0.0, weights=None):
    """(confidence, wrong, weight, cost alone, cost reviewed) of each case of positive weight."""
    made = predict(rows)
    return of_predictions(codes, *made, error_cost, review_cost, reviewer_error, weights)


def of_predictions(
    codes, predicted, confidence, error_cost, review_cost=1.0, reviewer_error=0.0, weights=None
):
    """The same of predicted classes and their confidence."""
    found = []
    for k, true in enumerate(codes):
        weight = 1 if weights is None else weights[k]
        if weight == 0:
            continue
        wrong, right = predicted[k] != true, Fraction(0)
        if isinstance(error_cost, (int, float)):
            mistake = Fraction(error_cost)
            alone = mistake if wrong else Fraction(0)
        elif isinstance(error_cost[0], (int, float)):
            mistake = Fraction(error_cost[k])
            alone = mistake if wrong else Fraction(0)
        else:
            alone = Fraction(error_cost[true][predicted[k]])
            others = [Fraction(c) for j, c in enumerate(error_cost[true]) if j != true]
            mistake, right = sum(others) / len(others), Fraction(error_cost[true][true])
        rate = Fraction(reviewer_error)
        reviewed = Fraction(review_cost) + (1 - rate) * right + rate * mistake
        found.append((Fraction(confidence[k]), wrong, Fraction(weight), alone, reviewed))
    return found


def at(found, threshold):
    """Cost per case, automation rate, error rate among automated, review rate."""
    total = cost = automated = mistakes = Fraction(0)
    for confidence, wrong, weight, alone, reviewed in found:
        total += weight
        if confidence > threshold:
            cost += weight * alone
            automated += weight
            mistakes += weight * wrong
        else:
            cost += weight * reviewed
    if total == 0:
        return Fraction(0), Fraction(0), nan, Fraction(0)
    rate = mistakes / automated if automated else nan
    return cost / total, automated / total, rate, 1 - automated / total


def candidates(found):
    return [Fraction(0), *sorted({confidence for confidence, *_ in found})]


@cache
def offered(n_classes):
    """Thresholds on offer: 0, round numbers that lie closer towards one, and 1.

    From one over the number of classes in steps of 0.005 (of more than 20 classes 0.01 below one
    half) to 0.95, of 0.001 to 0.99, of 0.0005 to 0.999, of 0.0001 to 1.
    """
    found = [0.0]
    for tick in range(1, 10_001):
        if tick < 9_500:
            step = 100 if tick < 5_000 and n_classes > 20 else 50
        else:
            step = 10 if tick < 9_900 else 5 if tick < 9_990 else 1
        if tick % step == 0 and tick * n_classes >= 10_000:
            found.append(float(Fraction(tick, 10_000)))
    return tuple(Fraction(threshold) for threshold in found)


def allowed(found, capacity, thresholds=None):
    """Thresholds that the capacity allows; what is given in floats may be so by rounding only."""
    most = 1 if capacity is None else Fraction(capacity) + Fraction(1, 10**12)
    if thresholds is None:
        thresholds = candidates(found)
    return [threshold for threshold in thresholds if at(found, threshold)[3] <= most]


def best(found, capacity=None, thresholds=None):
    """The lowest of the cheapest thresholds that are allowed."""
    return min(
        allowed(found, capacity, thresholds),
        key=lambda threshold: (at(found, threshold)[0], threshold),
    )


def best_of_points(points, capacity=None):
    """The first of the cheapest (threshold, cost, automation rate, error rate) that are allowed."""
    most = 1.0 if capacity is None else capacity + 1e-12
    points = [point for point in points if 1.0 - point[2] <= most]
    room = 1e-12 * max(point[1] for point in points)
    return next(p for p in points if p[1] <= min(point[1] for point in points) + room)


def chow(found, error_cost, review_cost, reviewer_error, capacity=None):
    """Chow's threshold, or the highest that the capacity allows."""
    if error_cost == 0:
        threshold = Fraction(0)
    else:
        threshold = 1 - Fraction(review_cost) / Fraction(error_cost) - Fraction(reviewer_error)
        # As a float, which is what a confidence is compared with.
        threshold = Fraction(float(min(max(threshold, Fraction(0)), Fraction(1))))
    most = 1 if capacity is None else Fraction(capacity) + Fraction(1, 10**12)
    if at(found, threshold)[3] <= most:
        return threshold
    return max(allowed(found, capacity))


def decisions(codes, rows, grid, weights=None, positive=None):
    """Weight of the reviewed cases, of all errors, of false negatives and positives, by threshold.

    `rows` are probabilities of every class; `positive` is the place of the positive class of two.
    """
    predicted, confidence = predict(rows)
    names = ("reviewed", "errors", "false_negatives", "false_positives", "reviewed_positives")
    found = {name: [] for name in names}
    for threshold in grid:
        sums = dict.fromkeys(found, 0)
        for k, true in enumerate(codes):
            weight = 1 if weights is None else weights[k]
            if confidence[k] <= threshold:
                sums["reviewed"] += weight
                sums["reviewed_positives"] += weight * (true == positive)
            elif predicted[k] != true:
                sums["errors"] += weight
                sums["false_negatives" if true == positive else "false_positives"] += weight
        for name, amount in sums.items():
            found[name].append(amount)
    return found
