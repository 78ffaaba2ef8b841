"""Figures of merit of two-class predictions, sample by sample and pair by pair."""

import math


def accuracy(y, p):
    return sum((q >= 0.5) == (label == 1) for label, q in zip(y, p, strict=True)) / len(y)


def auc(y, p):
    positives = [q for label, q in zip(y, p, strict=True) if label == 1]
    negatives = [q for label, q in zip(y, p, strict=True) if label == 0]
    won = sum(1.0 if a > b else 0.5 if a == b else 0.0 for a in positives for b in negatives)
    return won / len(positives) / len(negatives)


def log_loss(y, p):
    return -sum(
        math.log(q if label == 1 else 1.0 - q) for label, q in zip(y, p, strict=True)
    ) / len(y)


def brier(y, p):
    return sum((q - label) ** 2 for label, q in zip(y, p, strict=True)) / len(y)


def cost(y, p, threshold, error_cost):
    """Total cost of the paper's section 5.3, with a review at the price of one."""
    total = 0.0
    for label, q in zip(y, p, strict=True):
        confidence, predicted = max(q, 1.0 - q), int(q >= 0.5)
        total += 1.0 if confidence <= threshold else error_cost * (predicted != label)
    return total


def histogram_density(values, low, high, bins):
    width = (high - low) / bins
    counts = [0] * bins
    for value in values:
        counts[min(int((value - low) / width), bins - 1)] += 1
    return [count / len(values) / width for count in counts]
