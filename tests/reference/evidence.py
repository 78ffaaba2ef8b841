"""Calibration, operating points, coverage and credit, case by case. Slow, literal."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import exp, inf, log, nan, sqrt

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

NEAREST = 1e-12


def logit(p):
    p = min(max(p, NEAREST), 1.0 - NEAREST)
    return log(p) - log1p_minus(p)


def log1p_minus(p):
    return float(np.log1p(-p))


def logistic_regression(y, columns, weights, offset=None):
    """Coefficients of the greatest likelihood, by iteratively reweighted least squares."""
    x = np.column_stack(columns)
    y, w = np.asarray(y, float), np.asarray(weights, float)
    offset = np.zeros(y.size) if offset is None else np.asarray(offset)
    beta = np.zeros(x.shape[1])
    for _ in range(500):
        eta = np.clip(x @ beta + offset, -30, 30)
        mu = 1.0 / (1.0 + np.exp(-eta))
        v = np.maximum(mu * (1.0 - mu), 1e-300)
        response = eta - offset + (y - mu) / v
        root = np.sqrt(w * v)
        fitted, *_ = np.linalg.lstsq(x * root[:, None], response * root, rcond=None)
        step = fitted - beta
        if abs(step).max() < 1e-13:
            return fitted
        beta = beta + step * min(1.0, 2.0 / abs(step).max())
    return beta


def calibration_slope(y, p, w):
    x = [logit(v) for v in p]
    return logistic_regression(y, [np.ones(len(x)), x], w)[1]


def calibration_intercept(y, p, w):
    """Root of the score equation: as many positives as expected."""

    def excess(a):
        expected = sum(b / (1.0 + exp(-(a + logit(v)))) for v, b in zip(p, w, strict=True))
        return expected - sum(b for v, b in zip(y, w, strict=True) if v)

    return brentq(excess, -60.0, 60.0, xtol=1e-13, rtol=1e-14)


def observed_expected_ratio(y, p, w):
    observed = sum(b for v, b in zip(y, w, strict=True) if v)
    return observed / sum(a * b for a, b in zip(p, w, strict=True))


def equal_mass_groups(y, p, w, n_groups):
    """By group: weight, Σ w p, Σ w y, Σ w², and the shares of the cases; ties in proportion."""
    w = [Fraction(float(b)) for b in w]
    total = sum(w)
    groups = [[Fraction(0)] * 4 for _ in range(n_groups)]
    shares = [{} for _ in range(n_groups)]
    done = Fraction(0)
    for value in sorted(set(map(float, p))):
        rows = [i for i in range(len(p)) if float(p[i]) == value]
        mass = sum(w[i] for i in rows)
        if mass == 0:
            continue
        for g in range(n_groups):
            low, high = total * g / n_groups, total * (g + 1) / n_groups
            part = min(high, done + mass) - max(low, done)
            if part > 0:
                share = part / mass
                for i in rows:
                    if w[i] == 0:
                        continue
                    groups[g][0] += share * w[i]
                    groups[g][1] += share * w[i] * Fraction(value)
                    groups[g][2] += share * w[i] * int(bool(y[i]))
                    groups[g][3] += share * w[i] ** 2
                    shares[g][i] = float(share)
        done += mass
    return [[float(x) for x in group] for group in groups], shares


def wilson(observed, n, confidence):
    """Frequencies p with |observed − p| = z √(p (1 − p) / n): both roots."""
    z = norm.ppf(0.5 + 0.5 * confidence)

    def gap(p):
        return abs(observed - p) - z * sqrt(max(p * (1.0 - p), 0.0) / n)

    low = 0.0 if observed == 0.0 else brentq(gap, 1e-15, observed - 1e-12, xtol=1e-15)
    high = 1.0 if observed == 1.0 else brentq(gap, observed + 1e-12, 1.0 - 1e-15, xtol=1e-15)
    return low, high


def reliability_curve(y, p, w, n_bins, confidence):
    """Rows of predicted, observed, lower, upper, counts."""
    rows = []
    for weight, score, yes, squares in equal_mass_groups(y, p, w, n_bins)[0]:
        observed = yes / weight
        limits = wilson(min(observed, 1.0), weight**2 / squares, confidence)
        rows.append([score / weight, observed, *limits, weight])
    return np.array(rows).T


def uniform_reliability(y, p, w, n_bins, confidence):
    rows = []
    for b in range(n_bins):
        inside = [
            i for i, v in enumerate(p) if min(int(np.floor(round(v * n_bins, 9))), n_bins - 1) == b
        ]
        weight = sum(w[i] for i in inside)
        if weight == 0:
            continue
        observed = sum(w[i] for i in inside if y[i]) / weight
        n = weight**2 / sum(w[i] ** 2 for i in inside)
        limits = wilson(observed, n, confidence)
        rows.append([sum(w[i] * p[i] for i in inside) / weight, observed, *limits, weight])
    return np.array(rows).T


def clustered_size(y, w, clusters, shares):
    """Kish's number of cases of one bin over the design effect."""
    own = {i: share * w[i] for i, share in shares.items() if w[i] > 0}
    total = sum(own.values())
    mean = sum(v for i, v in own.items() if y[i]) / total
    by_cluster, weight = {}, {}
    for i, v in own.items():
        by_cluster[clusters[i]] = by_cluster.get(clusters[i], 0.0) + v * (bool(y[i]) - mean)
        weight[clusters[i]] = weight.get(clusters[i], 0.0) + v
    if len(weight) == 1 or mean in (0.0, 1.0):
        return total**2 / sum(v**2 for v in weight.values())
    g, n = len(by_cluster), len(own)
    alike = sum(v**2 for v in by_cluster.values()) * g / (g - 1)
    single = sum((v * (bool(y[i]) - mean)) ** 2 for i, v in own.items()) * n / (n - 1)
    kish = total**2 / sum(share * w[i] ** 2 for i, share in shares.items())
    return kish / max(alike / single, 1.0)


def integrated_calibration_index(y, p, w):
    """200 groups, a tricube line at each through the nearest 150, mean distance to the groups."""
    groups = equal_mass_groups(y, p, w, 200)[0]
    x = [score / weight for weight, score, _, _ in groups]
    f = [yes / weight for weight, _, yes, _ in groups]
    total = 0.0
    for at in x:
        nearest = sorted(range(200), key=lambda i, at=at: abs(x[i] - at))[:150]
        h = max(abs(x[i] - at) for i in nearest)
        weights = [(1.0 - (abs(x[i] - at) / h) ** 3) ** 3 if h > 1e-12 else 1.0 for i in nearest]
        xs, fs = [x[i] for i in nearest], [f[i] for i in nearest]
        if (
            max(xs) - min(xs) < 1e-12
            or len({round(v, 12) for v, a in zip(xs, weights, strict=True) if a > 0}) == 1
        ):
            fitted = np.average(fs, weights=weights)
        else:
            root = np.sqrt(weights)
            design = np.column_stack([root, root * (np.array(xs) - at)])
            fitted = np.linalg.lstsq(design, root * np.array(fs), rcond=None)[0][0]
        total += abs(min(max(fitted, 0.0), 1.0) - at)
    return total / 200


def counts_at(y, p, w, threshold):
    """Weights of TP, FP, FN, TN, flagged: score ≥ threshold."""
    found = [0.0] * 4
    for truth, score, weight in zip(y, p, w, strict=True):
        flagged = score >= threshold
        found[(0 if flagged else 2) if truth else (1 if flagged else 3)] += weight
    return found


def ratio(a, b):
    return a / b if b else (inf if a else nan)


def operating_point(y, p, w, threshold):
    tp, fp, fn, tn = counts_at(y, p, w, threshold)
    return {
        "sensitivity": ratio(tp, tp + fn),
        "specificity": ratio(tn, tn + fp),
        "ppv": ratio(tp, tp + fp),
        "npv": ratio(tn, tn + fn),
        "flagged": (tp + fp) / (tp + fp + fn + tn),
        "number_needed_to_evaluate": ratio(tp + fp, tp),
    }


def net_benefit(y, p, w, threshold):
    tp, fp, fn, tn = counts_at(y, p, w, threshold)
    n = tp + fp + fn + tn
    return tp / n - fp / n * threshold / (1.0 - threshold)


def alert_threshold(p, w, rate):
    """Smallest score at which no more than a share is flagged."""
    total = sum(w)
    for candidate in [*sorted(set(p)), inf]:
        if sum(b for v, b in zip(p, w, strict=True) if v >= candidate) / total <= rate + 1e-12:
            return candidate
    raise AssertionError


def gini(y, p, w):
    pairs = better = 0.0
    for a, s, u in zip(y, p, w, strict=True):
        for b, t, v in zip(y, p, w, strict=True):
            if a and not b:
                pairs += u * v
                better += u * v * (int(s > t) - int(s < t))
    return better / pairs


def ks_statistic(y, p, w):
    widest = 0.0
    for t in p:
        shares = []
        for kind in (True, False):
            own = [(v, b) for a, v, b in zip(y, p, w, strict=True) if bool(a) is kind]
            shares.append(sum(b for v, b in own if v <= t) / sum(b for _, b in own))
        widest = max(widest, abs(shares[0] - shares[1]))
    return widest


def population_stability_index(expected, actual, n_bins):
    edges = np.quantile(expected, [k / n_bins for k in range(1, n_bins)])
    edges = [-inf, *sorted(set(edges.tolist())), inf]
    total = 0.0
    for low, high in itertools.pairwise(edges):
        e, a = (max(np.mean([low <= v < high for v in part]), 1e-4) for part in (expected, actual))
        total += (a - e) * log(a / e)
    return total


def risk_coverage(wrong, confidence, w):
    """A point for each confidence, from the surest on."""
    points = []
    for q in sorted(set(confidence), reverse=True):
        inside = [(a, b) for a, v, b in zip(wrong, confidence, w, strict=True) if v >= q]
        weight = sum(b for _, b in inside)
        points.append((weight / sum(w), sum(b for a, b in inside if a) / weight))
    return points


def errors_in_surest(wrong, confidence, w, share):
    """Error rate in the surest share; the confidence at its end is taken in proportion."""
    left, errors, total = share * sum(w), 0.0, share * sum(w)
    for q in sorted(set(confidence), reverse=True):
        inside = [(a, b) for a, v, b in zip(wrong, confidence, w, strict=True) if v == q]
        weight = sum(b for _, b in inside)
        taken = min(weight, left)
        errors += taken * sum(b for a, b in inside if a) / weight
        left -= taken
    return errors / total
