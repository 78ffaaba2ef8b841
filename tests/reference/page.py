"""What the page of a report computes, from its definition: loops over cases and thresholds."""

from __future__ import annotations

from math import nan

from .companions import predict


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


def error_weight(decided, i, fn_weight):
    """Errors at a threshold, false negatives times their weight."""
    if decided["false_negatives"] is None:
        return decided["errors"][i]
    return fn_weight * decided["false_negatives"][i] + decided["false_positives"][i]


def cost(decided, i, total, error_cost, review_cost, reviewer_error=0.0, fn_weight=1.0):
    """Cost per case; reviewers miss positives, too, at the price of a false negative."""
    reviewed = decided["reviewed"][i]
    errors_of_humans = reviewer_error * reviewed
    if decided["reviewed_positives"] is not None:
        errors_of_humans += reviewer_error * (fn_weight - 1) * decided["reviewed_positives"][i]
    errors = errors_of_humans + error_weight(decided, i, fn_weight)
    return (review_cost * reviewed + error_cost * errors) / total


def automation(decided, i, total):
    """Share of the cases that the model decides alone."""
    return 1 - decided["reviewed"][i] / total


def error_rate(decided, i, total):
    """Share of these that are wrong; undefined if there are none."""
    alone = total - decided["reviewed"][i]
    return decided["errors"][i] / alone if alone > 0 else nan


def allowed(decided, i, total, capacity):
    """Whether humans can review so many."""
    return capacity is None or decided["reviewed"][i] / total <= capacity + 1e-12


def best(decided, n, total, capacity, **costs):
    """Place of the smallest allowed threshold of least cost."""
    choice = None
    for i in range(n):
        if allowed(decided, i, total, capacity):
            price = cost(decided, i, total, **costs)
            if choice is None or price < cost(decided, choice, total, **costs) * (1 - 1e-12):
                choice = i
    return choice


def chow(error_cost, review_cost, reviewer_error):
    """Chow's threshold; where errors cost nothing, automate all."""
    if error_cost <= 0:
        return 0.0
    return min(max(1 - review_cost / error_cost - reviewer_error, 0.0), 1.0)


def place_of(grid, threshold):
    """Largest threshold of the grid that is not above."""
    return max(i for i, value in enumerate(grid) if value <= threshold)
