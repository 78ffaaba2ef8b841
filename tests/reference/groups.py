"""Groups, shared mistakes and new mistakes, counted case by case."""

from __future__ import annotations

from math import comb


def at_policy(y, p, groups, lower, upper, matrix, review):
    """By group: share decided alone, errors among these, errors of all, mean cost."""
    found = {}
    for name in sorted(set(groups)):
        n = alone = errors = 0
        cost = 0.0
        for label, score, group in zip(y, p, groups, strict=True):
            if group != name:
                continue
            n += 1
            if score < lower:
                decision = 0
            elif score >= upper:
                decision = 1
            else:
                cost += review + matrix[label][label]
                continue
            alone += 1
            errors += decision != label
            cost += matrix[label][decision]
        found[name] = alone / n, errors / alone if alone else float("nan"), errors / n, cost / n
    return found


def share_limits(hits, n, confidence):
    """Clopper and Pearson's limits of a share, by bisection of binomial sums."""
    tail = (1.0 - confidence) / 2.0

    def at_least(k, p):
        return sum(comb(n, i) * p**i * (1.0 - p) ** (n - i) for i in range(k, n + 1))

    def root(function):
        low, high = 0.0, 1.0
        for _ in range(200):
            middle = (low + high) / 2.0
            if not low < middle < high:  # no float lies between
                break
            low, high = (middle, high) if function(middle) < 0.0 else (low, middle)
        return low

    lower = 0.0 if hits == 0 else root(lambda p: at_least(hits, p) - tail)
    upper = 1.0 if hits == n else root(lambda p: tail - (1.0 - at_least(hits + 1, p)))
    return lower, upper


def predicted(p):
    """Class and confidence of a probability of class 1, or of probabilities of all classes."""
    if not hasattr(p, "__len__"):
        return (1, p) if p > 0.5 else (0, 1.0 - p)
    best = max(range(len(p)), key=lambda k: (p[k], -k))
    return best, p[best]


def shared(y, models, level):
    """Rows that every model gets wrong above a confidence, the least sure model's surest first."""
    rows = []
    for row, label in enumerate(y):
        sure = []
        for scores in models.values():
            guess, confidence = predicted(scores[row])
            if guess == label or not confidence > level:
                break
            sure.append(confidence)
        else:
            rows.append((-min(sure), row))
    return [row for _, row in sorted(rows)]


def newly_wrong(new, old, level):
    """Names that are confidently wrong in `new` and not in `old`, mended, and unknown ones.

    Both are mappings of names to (label, score).
    """

    def wrong(cases):
        found = set()
        for name, (label, score) in cases.items():
            guess, confidence = predicted(score)
            if guess != label and confidence > level:
                found.add(name)
        return found

    now, before = wrong(new), wrong(old)
    fresh = {name for name in now if name in old and name not in before}
    mended = {name for name in before if name in new and name not in now}
    return fresh, mended, {name for name in now if name not in old}
