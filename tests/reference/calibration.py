"""Platt scaling and temperature, literally: a general optimiser on the textbook loss."""

from math import log

import mpmath
import numpy as np
from scipy.optimize import minimize, minimize_scalar

from . import calibration_maps


def platt(p, positive, weights):
    """Map of a probability, fitted with Platt's smoothed targets."""
    z = np.log(p / (1 - p))
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))

    def loss(ab):
        q = 1 / (1 + np.exp(-(ab[0] * z + ab[1])))
        return -np.sum(weights * (target * np.log(q) + (1 - target) * np.log(1 - q)))

    a, b = 0.5, -0.1
    for _ in range(3):  # a fresh simplex each time: the first may collapse before the minimum
        options = {"xatol": 1e-10, "fatol": 1e-12}
        a, b = minimize(loss, [a, b], method="Nelder-Mead", options=options).x
    return lambda p: 1 / (1 + np.exp(-(a * np.log(p / (1 - p)) + b)))


def powered(p, beta):
    q = p**beta
    return q / q.sum(axis=1, keepdims=True)


def cross_entropy(p, codes, weights):
    return -np.average(np.log(p[np.arange(codes.size), codes]), weights=weights)


def temperature(p, codes, weights):
    """Map of a row of probabilities, of the least cross-entropy."""
    found = minimize_scalar(
        lambda log_beta: cross_entropy(powered(p, np.exp(log_beta)), codes, weights),
        bounds=(-5, 5),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return lambda p: powered(p, np.exp(found.x))


def exact_temperature(logits, codes, weights, start):
    """Temperature at which the derivative of the cross-entropy is zero, in 60 digits."""
    with mpmath.workdps(60):
        rows = [[mpmath.mpf(float(z)) for z in row] for row in logits]
        triples = list(zip(rows, codes.tolist(), weights.tolist(), strict=True))

        def loss(log_t):
            t = mpmath.exp(log_t)
            return sum(
                w * mpmath.log(sum(mpmath.exp((z - row[own]) / t) for z in row))
                for row, own, w in triples
            )

        def slope(log_t):
            return mpmath.diff(loss, log_t)

        root = mpmath.findroot(slope, (log(start) - 1e-3, log(start) + 1e-3), tol=1e-60)
        return float(mpmath.exp(root))


def bin_edges(m):
    """Least score of each bin that narrows towards 0 and 1, from the definition."""
    lower = {0.0, np.nextafter(0.0, 1.0)}
    for k in range(12):
        low, high, width = 2.0 ** -(5 + 4 * k), 2.0 ** -(1 + 4 * k), 2.0 ** -(m + 3 * k)
        lower.add(low)
        multiple = width
        while multiple < high:
            if multiple > low:
                lower.add(multiple)
            multiple += width
    upper = {1.0 - edge for edge in lower if edge >= 2.0**-49}
    return sorted(lower | upper | {0.5, 1.0})


def units_of(weights):
    """How many cases of equal weight these count for, rounded; at least one."""
    return max(1, int(np.floor(weights.sum() ** 2 / (weights**2).sum() * (1 + 1e-12) + 0.5)))


def mean(values, weights):
    """Weighted mean, between the least and the largest value."""
    return np.clip(np.average(values, weights=weights), values.min(), values.max())


def binned(p, truth, weights, deal, n_splits=4, n_folds=5):
    """Cross-fitted calibration of bins, as cases: truth, calibrated score, weight of each; the map.

    A case has the mean score of its bin. `deal(units, code, split)` gives how many of the units of
    each bin, of the cases that are not (0) or are (1) true, are in each fold: (n_folds, n_bins).
    """
    places = np.searchsorted(bin_edges(13), p, side="right") - 1
    bins = np.unique(places)
    means = np.array([mean(p[places == b], weights[places == b]) for b in bins])
    means = np.clip(means, 1e-12, 1 - 1e-12)
    z = np.log(means / (1 - means))
    weight, squares = np.zeros((2, bins.size)), np.zeros((2, bins.size))
    units = np.zeros((2, bins.size), dtype=int)
    for place, b in enumerate(bins):
        for code in (0, 1):
            own = weights[(places == b) & (truth == code)]
            if own.size:
                weight[code, place], units[code, place] = own.sum(), units_of(own)
                squares[code, place] = (own**2).sum()
    splits = [np.stack([deal(units[code], code, k) for code in (0, 1)]) for k in range(n_splits)]
    method = chosen_of_bins(z, weight, squares, units, splits[0])
    found = []
    for folds in splits:
        for fold in range(n_folds):
            share = folds[:, fold] / np.maximum(units, 1)
            rest = units - folds[:, fold]
            calibrated = calibration_maps.OF_TWO[method](z, weight * (1 - share), rest)(z)
            if method == "identity":
                calibrated = means  # to the last digit
            for code in (0, 1):
                held = np.flatnonzero(share[code])
                rows = np.full(held.size, code), calibrated[held], (weight * share)[code, held]
                found.append(rows)
    codes, scores, shares = (np.concatenate(part) for part in zip(*found, strict=True))
    return (codes, scores, shares / n_splits), method


def chosen_of_bins(z, weight, squares, units, folds):
    """Name of the map that one way to deal the units to folds, (2, n_folds, n_bins), chooses.

    Rows of `weight`, `squares` and `units` are of negatives and of positives.
    """
    losses = {name: [] for name in calibration_maps.OF_TWO}
    weights, squared = [], []
    for fold in range(folds.shape[1]):
        share = folds[:, fold] / np.maximum(units, 1)
        for name, fitted in calibration_maps.OF_TWO.items():
            q = fitted(z, weight * (1 - share), units - folds[:, fold])(z)
            for code in (0, 1):
                held = np.flatnonzero(share[code])
                own = q[held] if code else 1 - q[held]
                losses[name] += (-np.log(np.clip(own, 2.0**-52, 1.0))).tolist()
        for code in (0, 1):
            held = np.flatnonzero(share[code])
            weights += (weight * share)[code, held].tolist()
            squared += (squares * share)[code, held].tolist()
    return calibration_maps.chosen(losses, weights, squared)
