"""Two models in a group of cases: means, standard error, interval and test, case by case."""

from __future__ import annotations

from math import inf, isnan, log, nan, sqrt

from scipy import stats


def loss(truth, scores):
    """Log-loss of a case by its class and its probability of class 1, or of every class."""
    if hasattr(scores, "__len__"):
        return -log(scores[truth])
    return -log(scores if truth == 1 else 1.0 - scores)


def difference(rows, confidence):
    """Means of two models, and a test of their difference.

    `rows` are (value of a or None, value of b or None, weight, cluster or None), one for each case
    of the group. A case without a value of a model does not count in that model's mean.
    """
    means, masses = [], []
    for model in (0, 1):
        total = mass = 0.0
        for row in rows:
            if row[model] is not None:
                total += row[2] * row[model]
                mass += row[2]
        means.append(total / mass if mass else nan)
        masses.append(mass)
    moves = {}
    for number, row in enumerate(rows):
        move = 0.0
        for model, sign in ((0, 1.0), (1, -1.0)):
            if row[model] is not None:
                move += sign * row[2] * (row[model] - means[model]) / masses[model]
        cluster = ("case", number) if row[3] is None else row[3]
        moves[cluster] = moves.get(cluster, 0.0) + move
    weight = sum(row[2] for row in rows)
    size = weight**2 / sum(row[2] ** 2 for row in rows)
    if rows[0][3] is not None:
        size = len(moves)
    second = sum(move**2 for move in moves.values())
    fourth = sum(move**4 for move in moves.values())
    error = sqrt(second * size / (size - 1.0))
    # Satterthwaite: the variance of the estimated variance, no more than of so many normal ones.
    excess = fourth - second**2 / len(moves)
    freedom = min(2.0 * second**2 / excess, len(moves) - 1.0) if excess > 0.0 else len(moves) - 1.0
    apart = means[0] - means[1]
    # One more case, as far as the farthest, may speak against whatever is said.
    single = {}
    for number, row in enumerate(rows):
        cluster = ("case", number) if row[3] is None else row[3]
        own = row[2] * ((row[0] or 0.0) - (row[1] or 0.0))
        single[cluster] = single.get(cluster, 0.0) + own
    farthest = max(abs(value) for value in single.values()) / min(masses)
    doubt = sqrt(error**2 + farthest**2)
    reach = farthest + stats.t.ppf(0.5 + 0.5 * confidence, freedom) * doubt
    p = 1.0
    if abs(apart) > farthest:
        p = 2.0 * stats.t.sf((abs(apart) - farthest) / doubt, freedom)
    return {
        "a": means[0],
        "b": means[1],
        "difference": apart,
        "standard_error": error,
        "interval": (apart - reach, apart + reach),
        "p_value": p,
    }


def cost_difference(rows, confidence, all_rows):
    """The same of costs, whose thresholds are shared: errors are 1.2 times as large.

    The farthest case is one of all cases.
    """
    single = {}
    for number, (a, b, weight, cluster) in enumerate(all_rows):
        key = ("case", number) if cluster is None else cluster
        single[key] = single.get(key, 0.0) + weight * (a - b)
    units = {}
    for number, (a, b, weight, cluster) in enumerate(rows):
        key = ("case", number) if cluster is None else cluster
        more, mass = units.get(key, (0.0, 0.0))
        units[key] = more + weight * (a - b), mass + weight
    weight = sum(mass for _, mass in units.values())
    mean = sum(more for more, _ in units.values()) / weight
    size = weight**2 / sum(mass**2 for _, mass in units.values())
    variance = sum((more - mean * mass) ** 2 for more, mass in units.values())
    error = 1.2 * sqrt(variance * size / (size - 1.0)) / weight
    farthest = max(abs(value) for value in single.values()) / weight
    doubt = sqrt(error**2 + farthest**2)
    reach = farthest + stats.t.ppf(0.5 + 0.5 * confidence, size - 1.0) * doubt
    p = 1.0
    if abs(mean) > farthest:
        p = 2.0 * stats.t.sf((abs(mean) - farthest) / doubt, size - 1.0)
    return {
        "a": sum(row[2] * row[0] for row in rows) / weight,
        "b": sum(row[2] * row[1] for row in rows) / weight,
        "difference": mean,
        "interval": (mean - reach, mean + reach),
        "p_value": p,
    }


def holm(p_values):
    """Holm's step-down adjustment, one hypothesis after the other; NaN is no test."""
    left = {place: p for place, p in enumerate(p_values) if not isnan(p)}
    found = [nan] * len(p_values)
    highest = -inf
    while left:
        place = min(left, key=lambda key: (left[key], key))
        highest = max(highest, len(left) * left[place])
        found[place] = min(highest, 1.0)
        del left[place]
    return found
