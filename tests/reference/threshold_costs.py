"""Cost of deciding alone above a confidence, case by case."""

from __future__ import annotations


def cost_per_case(cases, threshold, error_cost, review_cost, reviewer_error):
    """Mean cost of cases (true class, predicted class, confidence, weight) at a threshold."""
    spent = weight = 0.0
    for true, predicted, confidence, amount in cases:
        if hasattr(error_cost, "__len__"):
            wrong = [c for k, c in enumerate(error_cost[true]) if k != true]
            alone, blunder = error_cost[true][predicted], sum(wrong) / len(wrong)
        else:
            alone, blunder = error_cost * (true != predicted), error_cost
        reviewed = review_cost + reviewer_error * blunder
        spent += amount * (alone if confidence > threshold else reviewed)
        weight += amount
    return spent / weight


def best(cases, error_cost, review_cost, reviewer_error, capacity):
    """Least cost, and the smallest threshold that has it, among 0 and all confidences."""
    total = sum(case[3] for case in cases)
    found = []
    for threshold in [0.0, *sorted({case[2] for case in cases})]:
        reviewed = sum(case[3] for case in cases if case[2] <= threshold)
        if reviewed <= capacity * total * (1 + 1e-12):
            cost = cost_per_case(cases, threshold, error_cost, review_cost, reviewer_error)
            found.append((cost, threshold))
    least = min(cost for cost, _ in found)
    return least, min(threshold for cost, threshold in found if cost <= least + 1e-12)
