"""What states are made into, from the definitions: case by case, pair by pair, slowly."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy.optimize import brentq, minimize, root
from scipy.special import stdtr

from . import calibration_maps

NEAREST = 1e-12
EPS = 2.0**-52


# Predictions.


def predicted_of_two(score, positive):
    """Class 0 or 1; at one half the first, whichever is the positive one."""
    if score == 0.5:
        return 0
    return positive if score > 0.5 else 1 - positive


def predictions(scores, positive):
    """Predicted class and confidence of each case."""
    found, confidence = [], []
    for row in scores:
        if np.ndim(row) == 0:
            p = float(row)
            found.append(predicted_of_two(p, positive))
            # The float next to one half is above it, though 1 - p is rounded to one half.
            least = 0.5 if p == 0.5 else np.nextafter(0.5, 1.0)
            confidence.append(max(p, 1.0 - p, least))
        else:
            row = [float(p) for p in row]
            found.append(row.index(max(row)))
            confidence.append(max(row))
    return found, confidence


def own_probability(score, code, positive):
    if np.ndim(score):
        return float(score[code])
    return float(score) if code == positive else 1.0 - float(score)


def log_loss(codes, scores, weights, positive):
    total = 0.0
    for code, score, w in zip(codes, scores, weights, strict=True):
        total -= w * math.log(min(max(own_probability(score, code, positive), EPS), 1.0))
    return total / sum(weights)


def brier(codes, scores, weights, positive):
    """Of two classes the square of one column, of several the sum over columns."""
    total = 0.0
    for code, score, w in zip(codes, scores, weights, strict=True):
        if np.ndim(score) == 0:
            total += w * (float(score) - (code == positive)) ** 2
        else:
            total += w * sum((float(p) - (c == code)) ** 2 for c, p in enumerate(score))
    return total / sum(weights)


def decisions(codes, scores, weights, positive, thresholds):
    """By threshold: reviewed, errors, false negatives, false positives, reviewed positives."""
    predicted, confidence = predictions(scores, positive)
    rows = []
    for threshold in thresholds:
        reviewed = errors = missed = alarms = reviewed_positives = 0.0
        for code, guess, sure, w in zip(codes, predicted, confidence, weights, strict=True):
            if sure <= threshold or threshold == 1.0:
                reviewed += w
                reviewed_positives += w * (code == positive)
            elif guess != code:
                errors += w
                missed += w * (code == positive)
                alarms += w * (code != positive)
        rows.append((reviewed, errors, missed, alarms, reviewed_positives))
    return np.array(rows).T


def confident_error_rate(codes, scores, weights, positive, threshold):
    predicted, confidence = predictions(scores, positive)
    wrong = [
        w
        for code, guess, sure, w in zip(codes, predicted, confidence, weights, strict=True)
        if guess != code and sure > threshold
    ]
    return sum(wrong) / sum(weights)


def confidence_histogram(codes, scores, weights, positive, edges):
    """Shares of wrong and of right ones in each bin, which holds its upper edge."""
    predicted, confidence = predictions(scores, positive)
    heights = np.zeros((2, len(edges) - 1))
    for code, guess, sure, w in zip(codes, predicted, confidence, weights, strict=True):
        place = 0
        while place < len(edges) - 2 and sure > edges[place + 1]:
            place += 1
        heights[int(guess == code), place] += w
    return [row / row.sum() if row.sum() else row for row in heights]


def risk_coverage(confidence, wrong, weights):
    """Mean over the cases of the error rate among those at least as confident."""
    total = 0.0
    for sure, w in zip(confidence, weights, strict=True):
        covered = [(o, x) for c, o, x in zip(confidence, wrong, weights, strict=True) if c >= sure]
        total += w * sum(x for o, x in covered if o) / sum(x for _, x in covered)
    return total / sum(weights)


def equal_mass_calibration_error(scores, happened, weights, n_bins):
    """Cases that share a score are cut in the same proportion at the end of a bin."""
    total = sum(weights)
    error, start = [0.0] * n_bins, 0.0
    for score in sorted(set(map(float, scores))):
        tied = [(h, w) for p, h, w in zip(scores, happened, weights, strict=True) if p == score]
        mass = sum(w for _, w in tied)
        gap = sum(w * (float(h) - score) for h, w in tied)
        for k in range(n_bins):
            low, high = total * k / n_bins, total * (k + 1) / n_bins
            part = max(min(high, start + mass) - max(low, start), 0.0)
            error[k] += gap * part / mass
        start += mass
    return sum(map(abs, error)) / total


# Pairs of a negative and a positive case.


def errors_of_pairs(negatives, positives, negative_weights, positive_weights):
    """Ranking error of every pair, and its share."""
    errors = np.subtract.outer(np.asarray(negatives), np.asarray(positives))
    shares = np.multiply.outer(np.asarray(negative_weights), np.asarray(positive_weights))
    return errors.ravel(), (shares / shares.sum()).ravel()


def auc(errors, shares):
    return float(shares[errors < 0].sum() + 0.5 * shares[errors == 0].sum())


def index(errors, shares):
    """Root of k ln E exp(ε / k) = 0."""
    if errors.max() <= 0.0:
        return 0.0
    if shares @ errors >= 0.0:
        return math.inf
    top = errors.max()

    def h(log_k):
        k = math.exp(log_k)
        return top + k * math.log(shares @ np.exp((errors - top) / k))

    low, high = -1.0, 1.0
    while h(low) <= 0.0:
        low -= 1.0
    while h(high) >= 0.0:
        high += 1.0
    return math.exp(brentq(h, low, high, xtol=1e-14, rtol=1e-14))


def separation(errors, shares):
    return -float(shares @ errors)


def buffered_auc(errors, shares):
    """One minus the least E(aε + 1)₊ over a ≥ 0: read at every corner, and far out."""
    if errors.size <= 64:  # few enough for exact arithmetic, where errors of 1e-16 are no problem
        pairs = [
            (Fraction(float(e)), Fraction(float(w))) for e, w in zip(errors, shares, strict=True)
        ]
        corners = [Fraction(0), *(-1 / e for e in {e for e, _ in pairs} if e < 0)]
        values = [float(sum(w * max(a * e + 1, 0) for e, w in pairs)) for a in corners]
    else:
        corners = [0.0, *(-1.0 / np.unique(errors[errors < -1e-300]))]
        values = [float(shares @ np.maximum(a * errors + 1.0, 0.0)) for a in corners]
    if errors.max() <= 0.0:
        values.append(float(shares[errors == 0.0].sum()))
    return 1.0 - min(values)


def cvar(errors, shares, level):
    """Least t + E(ε − t)₊ / (1 − level), read at every corner."""
    return min(
        float(t + shares @ np.maximum(errors - t, 0.0) / (1.0 - level)) for t in np.unique(errors)
    )


def ordered_pairs(codes, scores, weights, positive, n_classes):
    """Errors and shares of each pair of classes; of two classes there is one."""
    codes, scores, weights = np.asarray(codes), np.asarray(scores), np.asarray(weights)
    if n_classes == 2:
        pairs = [(positive, 1 - positive, scores)]
    else:
        pairs = [(i, j, scores[:, i]) for i in range(n_classes) for j in range(n_classes) if i != j]
    for i, j, column in pairs:
        own, other = codes == i, codes == j
        if own.any() and other.any():
            yield errors_of_pairs(column[other], column[own], weights[other], weights[own])


def mean_over_pairs(figure, codes, scores, weights, positive, n_classes):
    pairs = ordered_pairs(codes, scores, weights, positive, n_classes)
    return float(np.mean([figure(*pair) for pair in pairs]))


# Calibration by folds.


def platt(z, yes, weights):
    """Slope and intercept of the least log-loss with smoothed targets, over single cases."""
    z, yes, weights = np.array(z), np.array(yes, dtype=bool), np.array(weights)
    weights = weights / weights.sum()
    n_yes, n_no = int(yes.sum()), int((~yes).sum())
    target = np.where(yes, (n_yes + 1) / (n_yes + 2), 1 / (n_no + 2))

    def loss(ab):
        u = ab[0] * z + ab[1]
        return float(weights @ (np.logaddexp(0.0, u) - target * u))

    def gradient(ab):
        gap = weights * (1.0 / (1.0 + np.exp(-(ab[0] * z + ab[1]))) - target)
        return np.array([gap @ z, gap.sum()])

    found = minimize(loss, [0.3, 0.0], jac=gradient, method="BFGS", options={"gtol": 1e-9})
    found = root(gradient, found.x, tol=1e-13)
    assert np.abs(gradient(found.x)).max() < 1e-11, "the fit has not arrived"
    return found.x


def units_of(weights):
    """Cases that some weights count for: their effective number, rounded, at least one."""
    if not len(weights):
        return 0
    number = sum(weights) ** 2 / sum(w * w for w in weights)
    return max(1, math.floor(number * (1.0 + 1e-12) + 0.5))


def calibrated_units(means, amounts, splits, positive, method="platt"):
    """Every unit under the map that the other folds made.

    Parameters
    ----------
    means : sequence of float
        Mean score of each bin.
    amounts : array of shape (2, B)
        Weight of each class in each bin.
    splits : sequence of arrays of shape (2, n_folds, B)
        Units of each class, fold and bin.
    positive : int
    method : str
        Which map.

    Returns
    -------
    list of (class, bin, calibrated score, weight)
    """
    z = [math.log(q / (1.0 - q)) for q in (min(max(p, NEAREST), 1.0 - NEAREST) for p in means)]
    found = []
    for folds in splits:
        units = []
        for code in range(2):
            for b in range(len(means)):
                number = int(folds[code, :, b].sum())
                for fold in range(folds.shape[1]):
                    one = (code, b, fold, amounts[code][b] / number if number else 0.0)
                    units += [one] * int(folds[code, fold, b])
        for fold in range(folds.shape[1]):
            others = [unit for unit in units if unit[2] != fold]
            scores = map_of_units(method, means, z, others, positive)
            for code, b, own, w in units:
                if own == fold:
                    found.append((code, b, scores[b], w / len(splits)))
    return found


def map_of_units(method, means, z, units, positive):
    """Calibrated score of each bin by a map fitted to these units: (class, bin, fold, weight)."""
    if method == "platt":
        a, c = platt(
            [z[b] for _, b, _, _ in units],
            [code == positive for code, _, _, _ in units],
            [w for _, _, _, w in units],
        )
        return [1.0 / (1.0 + math.exp(-(a * x + c))) for x in z]
    if method == "identity":
        return list(means)  # to the last digit
    weight, number = np.zeros((2, len(z))), np.zeros((2, len(z)))
    for code, b, _, w in units:
        weight[int(code == positive), b] += w
        number[int(code == positive), b] += 1
    return calibration_maps.OF_TWO[method](np.array(z), weight, number)(np.array(z)).tolist()


def hypergeometric_moments(total, marked, drawn):
    """Mean, variance and fourth central moment of the marked ones among those drawn."""
    chances = {
        k: math.comb(marked, k) * math.comb(total - marked, drawn - k) / math.comb(total, drawn)
        for k in range(max(0, drawn + marked - total), min(marked, drawn) + 1)
    }
    mean = sum(k * chance for k, chance in chances.items())
    second, fourth = (
        sum((k - mean) ** power * chance for k, chance in chances.items()) for power in (2, 4)
    )
    return mean, second, fourth


# Standard errors of differences.


def left_out(values, weights):
    """For each entry how the log-mean of the others differs from that of all."""
    values, weights = np.asarray(values), np.asarray(weights)
    whole = math.log(weights @ values / weights.sum())
    found = []
    for i in range(values.size):
        rest = np.arange(values.size) != i
        others = weights[rest] @ values[rest] / weights[rest].sum()
        found.append(math.log(others) - whole)
    return np.array(found)


def movements(codes, columns, weights, pairs):
    """What the mean index and ratio over the pairs owe to each case, by leaving it out.

    `columns` gives for each pair (positive class, negative class) a function of s: for each case
    the mean of exp(sv), of v exp(sv) and of v over what may be its score, v = p or −p.
    """
    codes, weights = np.asarray(codes), np.asarray(weights)
    by_index, by_ratio = np.zeros(codes.size), np.zeros(codes.size)
    for (i, j), (moments, fragility) in zip(pairs, columns, strict=True):
        if not 0.0 < fragility < math.inf:
            continue
        s = 1.0 / fragility
        sides = [(codes == j, 1.0), (codes == i, -1.0)]
        slope, gap = 0.0, 0.0
        for own, sign in sides:
            exps, tilts, means = moments(s, sign)
            w = weights[own]
            slope += w @ tilts[own] / (w @ exps[own])
            gap -= w @ means[own] / w.sum()
        for own, sign in sides:
            exps, _, means = moments(s, sign)
            w = weights[own]
            share = w / w.sum()
            move = -(1.0 - share) * left_out(exps[own], w) / (s * s * slope)
            apart = share * (means[own] - w @ means[own] / w.sum())
            by_index[own] += move / len(pairs)
            by_ratio[own] += (move + fragility / gap * apart) / gap / len(pairs)
    return by_index, by_ratio


def error_of_difference(codes, change, weights):
    """Standard error and degrees of freedom of a sum over the cases, class by class."""
    total = squares = spread = 0.0
    for code in set(codes):
        own = [k for k, c in enumerate(codes) if c == code]
        size = sum(weights[k] for k in own) ** 2 / sum(weights[k] ** 2 for k in own)
        second = sum(change[k] ** 2 for k in own)
        total += second * size / (size - 1.0)
        squares += second
        spread += sum(change[k] ** 4 for k in own) - second**2 / len(own)
    return math.sqrt(total), 2.0 * squares**2 / spread


def p_value(difference, error, freedom):
    return 2.0 * float(stdtr(freedom, -abs(difference) / error))


# Costs.


def cost_at(units, place):
    """Cost at a threshold, and share of the weight that is reviewed."""
    reviewed = sum(unit[2] for unit in units if unit[1] <= place)
    cost = sum(unit[4] if unit[1] <= place else unit[3] for unit in units)
    return cost, reviewed / sum(unit[2] for unit in units)
