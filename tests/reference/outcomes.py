"""Answers without classes, from their definitions: loops over cases and pairs of cases.

An answer is a triple (correct, confidence, weight). Declined cases are not among them.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb, exp, inf, log


def answered(correct, confidence, declined=None, weights=None):
    """The answers of positive weight."""
    found = []
    for k in range(len(correct)):
        weight = 1.0 if weights is None else float(weights[k])
        if weight > 0.0 and not (declined is not None and declined[k]):
            found.append((bool(correct[k]), float(confidence[k]), weight))
    return found


def _mean(pairs):
    """Weighted mean of (value, weight)."""
    pairs = list(pairs)
    return sum(value * weight for value, weight in pairs) / sum(weight for _, weight in pairs)


def accuracy(answers):
    return _mean((float(correct), weight) for correct, _, weight in answers)


def auc(answers):
    pairs = [
        (1.0 if p > q else 0.5 if p == q else 0.0, v * w)
        for right, p, v in answers
        if right
        for other, q, w in answers
        if not other
    ]
    return _mean(pairs)


def log_loss(answers):
    least = 2.0**-52
    return _mean((-log(max(p if right else 1.0 - p, least)), w) for right, p, w in answers)


def brier(answers):
    return _mean(((p - right) ** 2, w) for right, p, w in answers)


def confident_error_rate(answers, level):
    """Wrong answers of a confidence above the level, of all answers."""
    return _mean((float(not right and p > level), w) for right, p, w in answers)


def error_rate_above(answers, least):
    return _mean((float(not right), w) for right, p, w in answers if p >= least)


def aurc(answers):
    """Mean over the answers of the error rate among those at least as confident."""
    return _mean((error_rate_above(answers, p), w) for _, p, w in answers)


def fragility_index(answers):
    """Smallest k at which the mean over pairs of exp((wrong − right) / k) is at most one."""
    errors = [
        (q - p, v * w) for right, p, v in answers if right for other, q, w in answers if not other
    ]
    if max(error for error, _ in errors) <= 0.0:
        return 0.0
    if _mean(errors) >= 0.0:
        return inf
    top = max(error for error, _ in errors)

    def too_large(s):
        # Divided by the largest term.
        return _mean((exp(s * (error - top)), w) for error, w in errors) > exp(-s * top)

    low, high = 0.0, 1.0
    while not too_large(high):
        low, high = high, 2.0 * high
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:  # no float lies between
            break
        low, high = (low, middle) if too_large(middle) else (middle, high)
    return 1.0 / low


def ratio(answers):
    right = _mean((p, w) for is_right, p, w in answers if is_right)
    wrong = _mean((p, w) for is_right, p, w in answers if not is_right)
    return fragility_index(answers) / (right - wrong)


def decisions(answers, thresholds):
    """At each threshold the weight of answers passed on, and of wrong ones given.

    Answers above the threshold are given; at zero all are.
    """
    reviewed, errors = [], []
    for threshold in thresholds:
        given = [a for a in answers if a[1] > threshold or threshold == 0.0]
        reviewed.append(sum(w for _, _, w in answers) - sum(w for _, _, w in given))
        errors.append(sum(w for right, _, w in given if not right))
    return reviewed, errors


def costs_at(threshold, correct, confidence, declined, weights, error_cost, review, reviewer_error):
    """Cost of every case, answered alone from the threshold on, and the weight passed on."""
    total, passed_on = Fraction(0), Fraction(0)
    for k in range(len(correct)):
        weight = Fraction(1 if weights is None else float(weights[k]))
        cost = Fraction(float(error_cost[k]) if hasattr(error_cost, "__len__") else error_cost)
        if declined[k] or confidence[k] < threshold:
            total += weight * (Fraction(review) + Fraction(reviewer_error) * cost)
            passed_on += weight
        elif not correct[k]:
            total += weight * cost
    return total, passed_on


def best_threshold(correct, confidence, declined, weights, costs, capacity=None):
    """Least cost over all thresholds within the capacity; then the fewest passed on.

    The largest threshold, infinity, passes everything on. If none is within the capacity, every
    answer is given.
    """
    seen = sorted({float(p) for k, p in enumerate(confidence) if not declined[k]})
    tried = [(t, *costs_at(t, correct, confidence, declined, weights, **costs)) for t in seen]
    tried.append((inf, *costs_at(inf, correct, confidence, declined, weights, **costs)))
    total = len(correct) if weights is None else sum(Fraction(float(w)) for w in weights)
    most = total * (1 if capacity is None else Fraction(capacity))
    possible = [entry for entry in tried if entry[2] <= most + Fraction(1, 10**9)]
    if not possible:
        return tried[0]
    least = min(entry[1] for entry in possible)
    return min((e for e in possible if e[1] <= least), key=lambda e: e[2])


def allowed_errors(n, share, delta):
    """Largest k with P(Bin(n, share) ≤ k) ≤ delta, by adding up; −1 if there is none."""
    total, k = Fraction(0), -1
    share = Fraction(share)
    while True:
        total += comb(n, k + 1) * share ** (k + 1) * (1 - share) ** (n - k - 1)
        if total > Fraction(delta):
            return k
        k += 1


def moves(figure, answers, step=1e-5):
    """Derivative of a figure by the logarithm of the weight of each answer."""
    found = []
    for k, (right, p, w) in enumerate(answers):
        ends = []
        for sign in (1.0, -1.0):
            changed = list(answers)
            changed[k] = (right, p, w * (1.0 + sign * step))
            ends.append(figure(changed))
        found.append((ends[0] - ends[1]) / (2.0 * step))
    return found


def error_of_difference(differences, weights=None, clusters=None):
    """Standard error of a difference, from how much each case moves it."""
    if clusters is not None:
        sums = {}
        for move, cluster in zip(differences, clusters, strict=True):
            sums[cluster] = sums.get(cluster, 0.0) + move
        n = len(sums)
        return (sum(move**2 for move in sums.values()) * n / (n - 1)) ** 0.5
    weights = [1.0] * len(differences) if weights is None else [w for w in weights if w > 0.0]
    n = sum(weights) ** 2 / sum(w**2 for w in weights)
    return (sum(move**2 for move in differences) * n / (n - 1.0)) ** 0.5
