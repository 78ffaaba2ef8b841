"""Deferral from its definition: a loop over thresholds, a loop over cases, fractions."""

from __future__ import annotations

from fractions import Fraction
from math import nan

from .companions import predict


def cases(codes, rows, error_cost, review_cost=1.0, reviewer_error=0.0, weights=None):
    """(confidence, wrong, weight, cost alone, cost reviewed) of each case of positive weight."""
    predicted, confidence = predict(rows)
    found = []
    for k, true in enumerate(codes):
        weight = 1 if weights is None else weights[k]
        if weight == 0:
            continue
        wrong = predicted[k] != true
        if isinstance(error_cost, (int, float)):
            mistake = Fraction(error_cost)
            alone = mistake if wrong else Fraction(0)
        elif isinstance(error_cost[0], (int, float)):
            mistake = Fraction(error_cost[k])
            alone = mistake if wrong else Fraction(0)
        else:
            alone = Fraction(error_cost[true][predicted[k]])
            others = [Fraction(c) for j, c in enumerate(error_cost[true]) if j != true]
            mistake = sum(others) / len(others)
        reviewed = Fraction(review_cost) + Fraction(reviewer_error) * mistake
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


def allowed(found, capacity):
    """Thresholds that the capacity allows; what is given in floats may be so by rounding only."""
    most = 1 if capacity is None else Fraction(capacity) + Fraction(1, 10**12)
    return [threshold for threshold in candidates(found) if at(found, threshold)[3] <= most]


def best(found, capacity=None):
    """The lowest of the cheapest thresholds that are allowed."""
    return min(allowed(found, capacity), key=lambda threshold: (at(found, threshold)[0], threshold))


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


def cross_fitted(found, folds, counts, capacity=None, chow_options=None):
    """Sum of weight times cost, each case at the threshold of the other folds; and Chow's.

    Case k comes counts[k] times.
    """
    copies = [
        (fold, case)
        for fold, case, count in zip(folds, found, counts, strict=True)
        for _ in range(count)
    ]
    total, chow_total, thresholds = Fraction(0), Fraction(0), []
    for fold in range(max(folds) + 1):
        others = [case for f, case in copies if f != fold]
        own = [case for f, case in copies if f == fold]
        weight = sum(case[2] for case in own)
        thresholds.append(best(others, capacity))
        total += at(own, thresholds[-1])[0] * weight
        if chow_options is not None:
            chow_total += at(own, chow(others, *chow_options, capacity))[0] * weight
    return total, chow_total, thresholds
