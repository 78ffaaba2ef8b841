"""Reviews that differ by class or by case, from their definition: loops over cases and pairs."""

from __future__ import annotations

from fractions import Fraction
from math import comb, exp, inf, log, sqrt


def review_cost(true, matrix, price, rate=None, human=None):
    """r + (1 − ρ) c_yy + ρ mean over d ≠ y of c_yd; or r + c_yh, if a human decided h."""
    if human is not None:
        return price + matrix[true][human]
    wrong = [cost for decided, cost in enumerate(matrix[true]) if decided != true]
    return price + (1 - rate) * matrix[true][true] + rate * sum(wrong) / len(wrong)


def cases_of_two(codes, scores, weights, positive, matrix, price, rates=None, human=None):
    """(score, weight, decided negative, reviewed, decided positive, class) of cases with weight.

    `rates` has a number for each case.
    """
    exact = [[Fraction(cost) for cost in row] for row in matrix]
    found = []
    for k, true in enumerate(codes):
        weight = Fraction(1 if weights is None else weights[k])
        if weight > 0:
            rate = None if rates is None else Fraction(rates[k])
            own = None if human is None else human[k]
            reviewed = review_cost(true, exact, Fraction(price), rate, own)
            negative, as_positive = exact[true][1 - positive], exact[true][positive]
            found.append((scores[k], weight, negative, reviewed, as_positive, true))
    return found


def class_means(cases, n_classes=2):
    """Mean cost of a review of each class; of a class without cases nothing."""
    means = []
    for code in range(n_classes):
        own = [case for case in cases if case[5] == code]
        total = sum(case[1] for case in own)
        means.append(sum(case[1] * case[3] for case in own) / total if own else None)
    return means


def blended(cases, share, calibrated, positive, matrix):
    """Costs that are, in this share, those which calibrated scores expect."""
    reviewed = class_means(cases)
    found = []
    for score, weight, *seen, true in cases:
        p = [0.0, 0.0]
        p[positive], p[1 - positive] = calibrated(score), 1 - calibrated(score)
        expected = [
            sum(p[y] * float(matrix[y][1 - positive]) for y in (0, 1)),
            sum(p[y] * float(reviewed[y]) for y in (0, 1)),
            sum(p[y] * float(matrix[y][positive]) for y in (0, 1)),
        ]
        mixed = [(1 - share) * float(a) + share * b for a, b in zip(seen, expected, strict=True)]
        found.append((score, float(weight), *mixed, true))
    return found


def paid(cases, lower, upper):
    """Cost of all cases at two thresholds, and the weight of those reviewed."""
    cost = reviews = 0
    for score, weight, negative, reviewed, positive, _ in cases:
        if score < lower:
            cost += weight * negative
        elif score >= upper:
            cost += weight * positive
        else:
            cost += weight * reviewed
            reviews += weight
    return cost, reviews


def all_pairs(cases):
    ends = [*sorted({case[0] for case in cases}), inf]
    return [(a, b) for a in ends for b in ends if a <= b]


def best_pair(cases, capacity=None, rounding=0):
    """(cost, reviews, lower, upper): the cheapest, then fewest reviews, then lowest lower."""
    most = sum(case[1] for case in cases) * (1 if capacity is None else capacity)
    found = [(*paid(cases, *pair), *pair) for pair in all_pairs(cases)]
    found = [entry for entry in found if entry[1] <= most + 1e-9]
    least = min(found)[0]
    return min((e for e in found if e[0] <= least + rounding), key=lambda e: (e[1], e[2]))


def best_without_review(cases):
    """The cheapest threshold, of equal ones the lowest."""
    ends = [*sorted({case[0] for case in cases}), inf]
    return min((paid(cases, end, end)[0], end) for end in ends)[1]


def expected_choice(p, alarm, miss, price, wrong_alarms, wrong_misses):
    """What the expected costs of the three decisions say, with p of the positive class."""
    negative, positive = p * miss, (1 - p) * alarm
    reviewed = price + (1 - p) * wrong_alarms * alarm + p * wrong_misses * miss
    if min(negative, positive) <= reviewed:
        return "negative" if negative < positive else "positive"
    return "review"


def error_price(p, negative, alarm, miss, price, wrong_alarms, wrong_misses):
    """λ = (r + Q − e_d) / (1 − p_d) of a decision d."""
    expected = p * miss if negative else (1 - p) * alarm
    reviewer = (1 - p) * wrong_alarms * alarm + p * wrong_misses * miss
    return (price + reviewer - expected) / (p if negative else 1 - p)


# What is measured on cases that did not choose.


def held_out(cells, splits):
    """What every kind of cases pays at policies of the other folds, and at those without reviews.

    `cells` are {(class, score): [(units, weight, three costs, key), ...]}, kinds of cases that are
    dealt together; `splits` are {(class, score): units by fold} for each way to deal them.
    """
    policy, alone = {}, {}
    for folds in splits:
        n_folds = len(next(iter(folds.values())))
        for fold in range(n_folds):
            others = []
            for (true, score), kinds in cells.items():
                units = sum(kind[0] for kind in kinds)
                rest = 1 - Fraction(int(folds[true, score][fold]), units)
                for _, weight, costs, _ in kinds:
                    others.append((score, weight * rest, *costs, true))
            scale = sum(case[1] * max(case[2:5]) for case in others)
            _, _, lower, upper = best_pair(others, rounding=scale / 10**12)
            bare = best_without_review(others)
            for (true, score), kinds in cells.items():
                units = sum(kind[0] for kind in kinds)
                share = Fraction(int(folds[true, score][fold]), units) / len(splits)
                for _, _, costs, key in kinds:
                    own = [(score, 1, *costs, true)]
                    policy[key] = policy.get(key, 0) + share * paid(own, lower, upper)[0]
                    alone[key] = alone.get(key, 0) + share * paid(own, bare, bare)[0]
    return policy, alone


def mean_and_error(values, weights):
    """Weighted mean, and its standard error for independent cases."""
    total = sum(weights)
    mean = sum(w * v for w, v in zip(weights, values, strict=True)) / total
    n = total**2 / sum(w * w for w in weights)
    spread = sum((w * (v - mean)) ** 2 for w, v in zip(weights, values, strict=True))
    return float(mean), sqrt(float(spread) * float(n) / float(n - 1)) / float(total)


def cluster_error(values, weights, clusters):
    """Standard error of a weighted mean, if clusters are drawn."""
    total = sum(weights)
    mean = sum(w * v for w, v in zip(weights, values, strict=True)) / total
    sums = {}
    for value, weight, cluster in zip(values, weights, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0) + weight * (value - mean)
    n = len(sums)
    return sqrt(sum(float(part) ** 2 for part in sums.values()) * n / (n - 1)) / float(total)


def clopper_pearson(hits, n, tail):
    """Limits of a share: the binomial tails at them are `tail`."""

    def crossing(falls):
        low, high = 0.0, 1.0
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if falls(middle) else (low, middle)
        return low

    def at_most(k, p):
        return sum(comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k + 1))

    low = 0.0 if hits == 0 else crossing(lambda p: 1 - at_most(hits - 1, p) < tail)
    high = 1.0 if hits == n else crossing(lambda p: at_most(hits, p) > tail)
    return low, high


# Several classes.


def expected_losses(rows, matrix, reviewed, temperature):
    """Cheapest class of each row of probabilities, and s = e − Q, with Q = Σ p_y (v_y − r)."""
    n = len(matrix)
    found = []
    for row in rows:
        powers = [max(p, 1e-12) ** (1 / temperature) for p in row]
        p = [power / sum(powers) for power in powers]
        expected = [sum(p[y] * matrix[y][d] for y in range(n)) for d in range(n)]
        decided = min(range(n), key=lambda d: expected[d])
        found.append((decided, expected[decided] - sum(p[y] * reviewed[y] for y in range(n)), p))
    return found


def cost_at_limit(losses, codes, weights, matrix, reviewed_costs, limit):
    """Cost of all cases, if those with a loss above the limit are reviewed; and reviews."""
    cost = reviews = 0.0
    for k, (decided, loss, _) in enumerate(losses):
        if loss <= limit + 1e-9:
            cost += weights[k] * matrix[codes[k]][decided]
        else:
            cost += weights[k] * reviewed_costs[k]
            reviews += weights[k]
    return cost, reviews


# Fragility of the cost.


def fragility(costs, weights, bound):
    """Smallest k with k ln E exp(cost / k) ≤ bound."""
    total = sum(weights)
    mean = sum(c * w for c, w in zip(costs, weights, strict=True)) / total
    top = max(costs)
    if top <= bound * (1 + 1e-12):
        return 0.0
    if mean >= bound:
        return inf

    def excess(k):
        terms = (w * exp((c - top) / k) for c, w in zip(costs, weights, strict=True))
        return top + k * log(sum(terms) / total) - bound

    low, high = 1e-6 * top, 1e6 * top
    for _ in range(200):
        middle = sqrt(low * high)
        if not low < middle < high:  # no float lies between
            break
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return sqrt(low * high)


def least_fragility(cases, bound):
    """Of all pairs of thresholds."""
    found = []
    for lower, upper in all_pairs(cases):
        costs = [float(c[2] if c[0] < lower else c[4] if c[0] >= upper else c[3]) for c in cases]
        found.append((fragility(costs, [float(c[1]) for c in cases], bound), lower, upper))
    return found
