"""The worst-case ranking error of class pairs at given s, sample by sample in plain Python."""

from __future__ import annotations

import math


def pair_level(negatives, positives, s):
    """h(s)/s = (ln mean exp(s p) over negatives + ln mean exp(-s p) over positives) / s."""
    a = sum(math.exp(s * p) for p in negatives) / len(negatives)
    b = sum(math.exp(-s * p) for p in positives) / len(positives)
    return (math.log(a) + math.log(b)) / s


def pair_weights(values, s):
    """Worst-case weights, proportional to exp(s v), summing to one."""
    largest = max(values)
    tilted = [math.exp(s * (v - largest)) for v in values]
    return [t / sum(tilted) for t in tilted]


def worst_case_error(negatives, positives, s):
    """The expected ranking error under the worst-case weights at s."""
    up = sum(w * p for w, p in zip(pair_weights(negatives, s), negatives, strict=True))
    minus = [-p for p in positives]
    down = sum(w * p for w, p in zip(pair_weights(minus, s), positives, strict=True))
    return up - down


def mean_over_pairs(function, probs, labels, s):
    """Mean of function(negatives, positives, s[i, j]) over ordered pairs that have samples.

    `probs` has a column per class; `s` is a nested list or array indexed by [i][j].
    """
    n_classes = len(probs[0])
    results = []
    for i in range(n_classes):
        for j in range(n_classes):
            negatives = [row[i] for row, y in zip(probs, labels, strict=True) if y == j]
            positives = [row[i] for row, y in zip(probs, labels, strict=True) if y == i]
            if i != j and negatives and positives:
                results.append(function(negatives, positives, float(s[i][j])))
    return sum(results) / len(results)
