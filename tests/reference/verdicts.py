"""Which model to use, from what every case costs under each: loops over cases and pairs."""

from __future__ import annotations

from math import sqrt

from scipy.stats import t as student


def paired(first, second, factor=1.0):
    """Mean difference, its two-sided p-value and its interval at 95 %, by the t test."""
    n = len(first)
    apart = [a - b for a, b in zip(first, second, strict=True)]
    mean = sum(apart) / n
    error = factor * sqrt(sum((d - mean) ** 2 for d in apart) / (n - 1) / n)
    p = 2 * float(student.sf(abs(mean) / error, n - 1))
    reach = float(student.ppf(0.975, n - 1)) * error
    return mean, p, (mean - reach, mean + reach)


def effective(first, second):
    """How many cases a difference rests on."""
    apart = [a - b for a, b in zip(first, second, strict=True)]
    return sum(d**2 for d in apart) ** 2 / sum(d**4 for d in apart)


def holm(p_values):
    """Each p-value times the number of those that are at least as large, never falling."""
    found, largest = {}, 0.0
    left = len(p_values)
    for name, p in sorted(p_values.items(), key=lambda item: item[1]):
        largest = max(largest, min(p * left, 1.0))
        found[name] = largest
        left -= 1
    return found


def verdict(costs, against=None, factor=1.0):
    """The model, those tied with the best one, and the smallest distance of a p-value to .05."""
    means = {name: sum(own) / len(own) for name, own in costs.items()}
    ranked = sorted(means, key=lambda name: (means[name], name))
    best, tied = ranked[0], [ranked[0]]
    tests = {name: paired(costs[name], costs[best], factor) for name in ranked[1:]}
    tested = {name: test[1] for name, test in tests.items()}
    if factor > 1.0:  # costs that rest on fewer than ten cases have no test
        tested = {n: p for n, p in tested.items() if effective(costs[n], costs[best]) >= 10.0}
    adjusted = holm(tested)
    tied += [name for name in ranked[1:] if adjusted.get(name, 1.0) >= 0.05]
    nearest = min((abs(p - 0.05) for p in adjusted.values()), default=1.0)
    if len(tied) == 1:
        return best, tuple(tied), nearest
    return (against if against in tied else None), tuple(tied), nearest
