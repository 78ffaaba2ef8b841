"""What the page of a report says, from its definition: loops over cases and thresholds.

A case of the positive class is a miss if it is decided negative, another one a false alarm if it is
decided positive. The score decides: negative below `lower`, positive from `upper` on.
"""

from __future__ import annotations

from math import nan


def outcome(
    positive,
    scores,
    lower,
    upper,
    miss,
    alarm,
    review,
    rate=0.0,
    weights=None,
    costs=None,
    rates=None,
):
    """Cost per case, shares decided alone and wrong of these, weight reviewed, missed, alarms.

    `costs` are what an error costs on each case; they are multiplied by `miss` and `alarm`.
    `rates` are how often reviewers err on each case, multiplied by `rate`. A score of None was
    declined: such a case is always reviewed.
    """
    paid = total = reviewed = missed = alarms = 0.0
    for k, score in enumerate(scores):
        weight = 1.0 if weights is None else weights[k]
        error = (miss if positive[k] else alarm) * (1.0 if costs is None else costs[k])
        total += weight
        if score is not None and score < lower:
            if positive[k]:
                missed += weight
                paid += weight * error
        elif score is not None and score >= upper:
            if not positive[k]:
                alarms += weight
                paid += weight * error
        else:
            reviewed += weight
            wrong = rate * (1.0 if rates is None else rates[k])
            paid += weight * (review + wrong * error)
    alone = total - reviewed
    return {
        "cost": paid / total,
        "alone": alone / total,
        "wrong": (missed + alarms) / alone if alone > 1e-9 * total else nan,
        "reviews": reviewed,
        "missed": missed,
        "alarms": alarms,
    }


def blended(positive, scores, p, share, lower, upper, **costs):
    """Cost per case, a share of it as if cases were positive with probability `p`."""
    observed = outcome(positive, scores, lower, upper, **costs)["cost"]
    n = len(scores)
    twice = [True] * n + [False] * n
    weights = [*p, *(1.0 - x for x in p)]
    both = [*scores, *scores]
    expected = outcome(twice, both, lower, upper, weights=weights, **costs)["cost"]
    return (1.0 - share) * observed + share * expected


def cheapest(positive, scores, p, share, thresholds, capacity=1.0, **costs):
    """The cheapest pair of thresholds; of equal ones those with the fewest reviews."""
    best = None
    for lower in thresholds:
        for upper in thresholds:
            if lower > upper:
                continue
            reviewed = sum(lower <= score < upper for score in scores)
            if reviewed > capacity * len(scores) + 1e-9:
                continue
            cost = blended(positive, scores, p, share, lower, upper, **costs)
            key = (round(cost, 10), reviewed, lower)
            if best is None or key < best[0]:
                best = key, (lower, upper)
    return best[1]


def of_losses(wrong, losses, limit, error, review, rate=0.0):
    """Several classes: decided alone up to a limit of the expected loss."""
    n = len(losses)
    alone = [loss <= limit for loss in losses]
    mistakes = sum(a and w for a, w in zip(alone, wrong, strict=True))
    reviewed = n - sum(alone)
    paid = error * mistakes + reviewed * (review + rate * error)
    return {
        "cost": paid / n,
        "alone": 1.0 - reviewed / n,
        "wrong": mistakes / sum(alone) if any(alone) else nan,
        "reviews": reviewed,
    }
