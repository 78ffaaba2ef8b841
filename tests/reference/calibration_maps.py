"""Calibration maps and the choice between them, literally: textbook losses, general optimisers.

Maps of two classes are fitted to groups of cases: `z`, the log-odds of each group, ascending;
`weight` and `number`, of negatives and of positives in each, two rows. They map log-odds to
probabilities.
"""

import math

import numpy as np
from scipy.optimize import minimize_scalar, root


def sigmoid(u):
    return 1.0 / (1.0 + np.exp(-u))


def targets(number):
    """Platt's, of negatives and positives."""
    negatives, positives = np.rint(np.sum(number, axis=1))
    return 1.0 / (negatives + 2.0), (positives + 1.0) / (positives + 2.0)


def smoothed_loss(u, weight, number):
    """Log-loss of scores u, whose classes are a little uncertain."""
    total = 0.0
    for own, target in zip(weight, targets(number), strict=True):
        total += float(own @ (np.logaddexp(0.0, u) - target * u))
    return total / float(np.sum(weight))


def smoothed_slopes(u, columns, weight, number):
    """Derivatives by the coefficients of some columns that u is the sum of."""
    gap = sum(w * (sigmoid(u) - t) for w, t in zip(weight, targets(number), strict=True))
    return np.array([column @ gap for column in columns]) / float(np.sum(weight))


def identity(z, weight, number):
    return sigmoid


def temperature(z, weight, number):
    """The best power of the odds; at least one that leaves 0.001 of the largest log-odds."""
    largest = float(np.abs(z).max())
    if largest == 0.0:
        return sigmoid

    def slope(power):
        return smoothed_slopes(power * z, [z], weight, number)

    start = minimize_scalar(
        lambda power: smoothed_loss(power * z, weight, number),
        bounds=(0.0, 1e3 / largest),
        method="bounded",
        options={"xatol": 1e-9 / largest},
    )
    power = max(float(root(slope, start.x, tol=1e-14).x[0]), 1e-3 / largest)
    return lambda z: sigmoid(power * z)


def platt(z, weight, number):
    columns = [z, np.ones_like(z)]

    def slopes(ab):
        return smoothed_slopes(ab @ np.array(columns), columns, weight, number)

    ab = np.zeros(2)
    for _ in range(3):
        ab = root(slopes, ab, options={"xtol": 1e-15}).x
    return lambda z: sigmoid(ab[0] * z + ab[1])


def pooled(values, weights):
    """Pool adjacent violators: lists of places, of equal values too."""
    blocks = []
    for place, (value, weight) in enumerate(zip(values, weights, strict=True)):
        blocks.append([value, weight, [place]])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0] - 1e-12:
            value, weight, places = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + value * weight) / (last[1] + weight)
            last[1] += weight
            last[2] += places
    return [places for _, _, places in blocks]


def isotonic(z, weight, number):
    distinct = sorted({float(x) for x, w in zip(z, np.sum(weight, axis=0), strict=True) if w > 0.0})
    mass, positive, count = [], [], []
    for value in distinct:
        own = z == value
        mass.append(float(np.sum(weight, axis=0)[own].sum()))
        positive.append(float(weight[1][own].sum()))
        count.append(float(np.sum(number, axis=0)[own].sum()))
    blocks = pooled([p / m for p, m in zip(positive, mass, strict=True)], mass)
    shrunk, sizes = [], []
    for places in blocks:
        n = sum(count[k] for k in places)
        share = sum(positive[k] for k in places) / sum(mass[k] for k in places)
        shrunk.append((n * share + 0.5) / (n + 1.0))
        sizes.append(n + 1.0)
    centres, values = [], []
    for group in pooled(shrunk, sizes):
        places = [k for block in group for k in blocks[block]]
        centres.append(np.average([distinct[k] for k in places], weights=[mass[k] for k in places]))
        value = np.average([shrunk[b] for b in group], weights=[sizes[b] for b in group])
        values.append(math.log(value / (1.0 - value)))
    spread = distinct[-1] - distinct[0]

    def one(x):
        if x <= centres[0]:
            found = values[0]
        elif x >= centres[-1]:
            found = values[-1]
        else:
            k = max(k for k, centre in enumerate(centres) if centre <= x)
            part = (x - centres[k]) / (centres[k + 1] - centres[k])
            found = values[k] + part * (values[k + 1] - values[k])
        return found + (1e-3 * (x - centres[0]) / spread if spread else 0.0)

    return lambda z: sigmoid(np.array([one(float(x)) for x in z]))


#: The simplest first.
OF_TWO = {
    "identity": identity,
    "temperature": temperature,
    "platt": platt,
    "isotonic": isotonic,
}


# The choice.


def excess(losses, weights, squares, name, others):
    """Largest number of standard errors by which the mean loss is above that of others."""
    total = sum(weights)
    number = total**2 / sum(squares)
    worst = 0.0
    for other in others:
        gaps = [a - b for a, b in zip(losses[name], losses[other], strict=True)]
        mean = sum(w * gap for w, gap in zip(weights, gaps, strict=True)) / total
        spread = sum(s * (gap - mean) ** 2 for s, gap in zip(squares, gaps, strict=True))
        if mean > 1e-12:
            worst = max(worst, mean * total / math.sqrt(spread * number / (number - 1.0)))
    return worst


def best_and_standard(losses, weights):
    means = {name: np.average(part, weights=weights) for name, part in losses.items()}
    return min(means, key=means.get), "platt" if "platt" in losses else "temperature"


def chosen(losses, weights, squares):
    """The first name whose mean loss is within one standard error of the best and of Platt's.

    `losses` by name, the simplest first, of each part of the cases; `weights` and `squares` are the
    sums of their weights and squared weights.
    """
    others = best_and_standard(losses, weights)
    for name in losses:
        if excess(losses, weights, squares, name, others) <= 1.0:
            return name
    raise AssertionError("the best is never clearly worse")


def chosen_together(models):
    """One name for models that are compared, if one will do; `models` are arguments of `chosen`."""
    names = list(models[0][0])
    others = [best_and_standard(*model[:2]) for model in models]
    pairs = list(zip(models, others, strict=True))
    names = [n for n in names if all(excess(*m, n, other[1:]) <= 1.0 for m, other in pairs)]
    worst = [max(excess(*model, name, other) for model, other in pairs) for name in names]
    for name, far in zip(names, worst, strict=True):
        if far <= 1.0:
            return [name] * len(models)
    if min(worst) <= 3.0:
        return [names[worst.index(min(worst))]] * len(models)
    return [chosen(*model) for model in models]
