"""Figures as functions of weights, by their definitions; influences by finite differences."""

from __future__ import annotations

import numpy as np


def auc(y, p, w):
    """Weighted share of pairs, ties half: every pair."""
    positive, negative = y == 1, y == 0
    above, below = p[positive][:, np.newaxis], p[negative]
    wins = np.where(above > below, 1.0, np.where(above == below, 0.5, 0.0))
    pairs = np.multiply.outer(w[positive], w[negative])
    return (pairs * wins).sum() / pairs.sum()


def _errors(y, p, w):
    positive, negative = y == 1, y == 0
    errors = np.subtract.outer(p[negative], p[positive]).ravel()
    shares = np.multiply.outer(w[negative], w[positive]).ravel()
    return errors, shares / shares.sum()


def buffered_auc(y, p, w):
    """The function is piecewise linear in a: one of its corners is the minimum."""
    errors, shares = _errors(y, p, w)
    corners = np.append(0.0, -1.0 / errors[errors < 0.0])
    return 1.0 - (np.maximum(np.multiply.outer(corners, errors) + 1.0, 0.0) @ shares).min()


def cvar(y, p, w, level=0.95):
    errors, shares = _errors(y, p, w)
    excess = np.maximum(errors - errors[:, np.newaxis], 0.0) @ shares
    return (errors + excess / (1.0 - level)).min()


def log_loss(y, p, w):
    return float(np.average(-np.log(np.where(y == 1, p, 1.0 - p)), weights=w))


def brier(y, p, w):
    return float(np.average((p - y) ** 2, weights=w))


def confident_error_rate(y, p, w, level=0.9):
    wrong = (p > 0.5) != (y == 1)
    return float(np.average(wrong & (np.maximum(p, 1.0 - p) > level), weights=w))


def aurc(y, p, w):
    confidence, wrong = np.maximum(p, 1.0 - p), (p > 0.5) != (y == 1)
    kept = w * (confidence >= confidence[:, np.newaxis])  # a row for each least confidence
    return float(np.average((kept @ wrong) / kept.sum(axis=1), weights=w))


FIGURES = {
    "auc": auc,
    "buffered_auc": buffered_auc,
    "cvar": cvar,
    "log_loss": log_loss,
    "brier": brier,
    "confident_error_rate": confident_error_rate,
    "aurc": aurc,
}


def moves(figure, y, p, w, step=1e-5):
    """Derivative of a figure by the logarithm of each weight."""
    found = np.empty(y.size)
    for k in range(y.size):
        ends = []
        for sign in (1.0, -1.0):
            changed = w.copy()
            changed[k] *= 1.0 + sign * step
            ends.append(figure(y, p, changed))
        found[k] = (ends[0] - ends[1]) / (2.0 * step)
    return found


def delong(y, a, b):
    """AUCs of two models and their covariance (DeLong, DeLong and Clarke-Pearson 1988)."""

    def kernel(x, z):
        return 1.0 if x > z else 0.5 if x == z else 0.0

    positives, negatives = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    m, n = positives.size, negatives.size
    v10, v01, areas = [], [], []
    for scores in (a, b):
        table = [[kernel(scores[i], scores[j]) for j in negatives] for i in positives]
        by_positive = [sum(row) / n for row in table]
        by_negative = [sum(column) / m for column in zip(*table, strict=True)]
        areas.append(sum(by_positive) / m)
        v10.append(by_positive)
        v01.append(by_negative)

    def covariance(parts):
        size = len(parts[0])
        means = [sum(part) / size for part in parts]
        return [
            [
                sum(
                    (x - means[r]) * (z - means[s]) for x, z in zip(parts[r], parts[s], strict=True)
                )
                / (size - 1)
                for s in range(2)
            ]
            for r in range(2)
        ]

    s10, s01 = covariance(v10), covariance(v01)
    return areas, [[s10[r][s] / m + s01[r][s] / n for s in range(2)] for r in range(2)]
