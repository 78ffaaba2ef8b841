"""The limits of a gate, case by case, with Student's and the normal distribution."""

import math

from scipy import stats


def losses(codes, probabilities):
    """Log-loss of each case of two classes."""
    return [-math.log(p if code else 1.0 - p) for code, p in zip(codes, probabilities, strict=True)]


def mean(values):
    return sum(values) / len(values)


def standard_error(values):
    middle, n = mean(values), len(values)
    return math.sqrt(sum((v - middle) ** 2 for v in values) / (n - 1) / n)


def freedom(values):
    """Satterthwaite's degrees of freedom of a variance that a few values may rule."""
    middle, n = mean(values), len(values)
    squares = [(v - middle) ** 2 for v in values]
    apart = sum(s**2 for s in squares) - sum(squares) ** 2 / n
    return min(2.0 * sum(squares) ** 2 / apart, n - 1)


def paired_limit(new, old, level, tolerance):
    """Largest mean loss of the new model that is not clearly above that of the old one."""
    apart = [a - b for a, b in zip(new, old, strict=True)]
    error = math.sqrt(standard_error(apart) ** 2 + (tolerance * mean(old)) ** 2)
    return mean(old) + stats.t.ppf(1.0 - level, freedom(apart)) * error


def group_limit(new, old, level, n_groups, confidence):
    """The same in a group: its simultaneous interval, which allows for one more case, scaled."""
    apart = [a - b for a, b in zip(new, old, strict=True)]
    farthest, tail = max(map(abs, apart)) / len(apart), 0.5 * (1.0 - confidence) / n_groups
    doubt = math.sqrt(standard_error(apart) ** 2 + farthest**2)
    half = farthest + stats.t.ppf(1.0 - tail, freedom(apart)) * doubt
    return mean(old) + half * stats.norm.ppf(1.0 - level) / stats.norm.ppf(1.0 - tail)


def margin_limit(new, old, margin, confidence):
    """Largest mean loss whose difference has an upper limit below the margin."""
    apart = [a - b for a, b in zip(new, old, strict=True)]
    reach = stats.t.ppf(0.5 + 0.5 * confidence, freedom(apart)) * standard_error(apart)
    return mean(old) + margin - reach


def unpaired_limit(new, old, level, tolerance):
    """The same on other cases, by logarithms."""
    parts = [standard_error(v) / mean(v) for v in (new, old)]
    error = math.sqrt(sum(part**2 for part in parts) + tolerance**2)
    return mean(old) * math.exp(stats.norm.ppf(1.0 - level) * error)
