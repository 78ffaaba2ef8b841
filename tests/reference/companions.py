"""The companions of the index from their definitions: fractions, all pairs, loops, replication."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def exact_pairs(negatives, positives, negative_weights=None, positive_weights=None):
    """Every ranking error and its share, as fractions."""
    a = [Fraction(float(v)) for v in negatives]
    b = [Fraction(float(v)) for v in positives]
    wa = [Fraction(float(w)) for w in _ones(negative_weights, len(a))]
    wb = [Fraction(float(w)) for w in _ones(positive_weights, len(b))]
    total = sum(wa) * sum(wb)
    return [
        (x - y, u * v / total)
        for x, u in zip(a, wa, strict=True)
        for y, v in zip(b, wb, strict=True)
        if u > 0 and v > 0
    ]


def exact_buffered_auc(pairs):
    """One minus the least E(a ε + 1)+: the least is at 0, at a corner -1/ε or in the limit."""
    candidates = [Fraction(0), *(-1 / e for e in {e for e, _ in pairs} if e < 0)]
    least = min(sum(w * max(a * e + 1, 0) for e, w in pairs) for a in candidates)
    if max(e for e, _ in pairs) <= 0:
        least = min(least, sum(w for e, w in pairs if e == 0))
    return float(1 - least)


def exact_cvar(pairs, level):
    """Mean of the worst share 1 - level of the errors, the last one split."""
    share = left = 1 - Fraction(level)
    total = Fraction(0)
    for error, weight in sorted(pairs, reverse=True):
        taken = min(weight, left)
        total += taken * error
        left -= taken
    return float(total / share)


def buffered_auc(errors, weights):
    """The same for many pairs in floats: bisection over the corners of the convex function."""
    errors, weights = np.ravel(errors), np.ravel(weights)
    corners = np.r_[0.0, np.sort(-1 / np.unique(errors[errors < 0]))]

    def value(a):
        return weights @ np.maximum(a * errors + 1, 0)

    low, high = 0, corners.size - 1
    while low < high:
        middle = (low + high) // 2
        if value(corners[middle]) <= value(corners[middle + 1]):
            high = middle
        else:
            low = middle + 1
    return 1 - value(corners[low])


def cvar(errors, weights, level):
    """The same for many pairs in floats."""
    order = np.argsort(-np.ravel(errors))
    errors, weights = np.ravel(errors)[order], np.ravel(weights)[order]
    before = np.cumsum(weights) - weights
    taken = np.clip(1 - level - before, 0, weights)
    return taken @ errors / taken.sum()


def mean_over_pairs(metric, codes, scores, weights=None):
    """Mean over ordered pairs of present classes of `metric` (of exact pairs)."""
    codes, scores = np.asarray(codes), np.asarray(scores, float)
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, float)
    values = []
    for i in range(scores.shape[1]):
        for j in range(scores.shape[1]):
            own, other = codes == i, codes == j
            if i != j and weights[own].any() and weights[other].any():
                values.append(
                    metric(
                        exact_pairs(scores[other, i], scores[own, i], weights[other], weights[own])
                    )
                )
    return float(np.mean(values))


def mean_over_rest(metric, codes, scores, weights=None):
    codes, scores = np.asarray(codes), np.asarray(scores, float)
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, float)
    values = []
    for i in range(scores.shape[1]):
        own = codes == i
        values.append(
            metric(exact_pairs(scores[~own, i], scores[own, i], weights[~own], weights[own]))
        )
    return float(np.mean(values))


def replicated(codes, rows, counts):
    """Codes and rows of probabilities with sample k repeated counts[k] times."""
    index = [k for k, count in enumerate(counts) for _ in range(int(count))]
    return [int(codes[k]) for k in index], [[float(p) for p in rows[k]] for k in index]


def predict(rows):
    """Most probable class (the first of equals) and its probability."""
    chosen = [max(range(len(row)), key=lambda c: (row[c], -c)) for row in rows]
    return chosen, [row[c] for row, c in zip(rows, chosen, strict=True)]


def confident_error_rate(codes, rows, threshold):
    chosen, confidence = predict(rows)
    mistakes = [k for k in range(len(codes)) if chosen[k] != codes[k] and confidence[k] > threshold]
    return len(mistakes) / len(codes)


def area_under_risk_coverage(codes, rows):
    chosen, confidence = predict(rows)
    risks = []
    for k in range(len(codes)):
        covered = [j for j in range(len(codes)) if confidence[j] >= confidence[k]]
        risks.append(sum(chosen[j] != codes[j] for j in covered) / len(covered))
    return sum(risks) / len(risks)


def textbook_risk_coverage(codes, rows):
    """(1/n) Σ_k errors among the k most confident / k, for confidences without ties."""
    chosen, confidence = predict(rows)
    order = sorted(range(len(codes)), key=lambda k: -confidence[k])
    wrong = [chosen[k] != codes[k] for k in order]
    return sum(sum(wrong[: k + 1]) / (k + 1) for k in range(len(wrong))) / len(wrong)


def equal_mass_calibration_error(codes, rows, n_bins):
    """Every sample is cut into n_bins pieces, so that the bins hold whole pieces."""
    if len(rows[0]) == 2:
        probability, happened = [row[1] for row in rows], [code == 1 for code in codes]
    else:
        chosen, probability = predict(rows)
        happened = [c == code for c, code in zip(chosen, codes, strict=True)]
    residual = {}  # of equal probabilities each piece has the mean residual
    for p, h in zip(probability, happened, strict=True):
        residual.setdefault(p, []).append(Fraction(int(h)) - Fraction(p))
    pieces = [sum(residual[p]) / len(residual[p]) for p in sorted(probability)]
    pieces = [piece for piece in pieces for _ in range(n_bins)]
    size = len(codes)
    bins = [sum(pieces[b * size : (b + 1) * size]) for b in range(n_bins)]
    return float(sum(abs(b) for b in bins) / len(pieces))


def _ones(weights, n):
    return [1.0] * n if weights is None else weights
