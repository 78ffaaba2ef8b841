"""How good probabilities are: log-loss, Brier score, calibration error, errors by confidence."""

from __future__ import annotations

import numpy as np

from .._typing import Floats
from ..measured import CALIBRATION_BINS, LEAST_PROBABILITY
from .scored import Estimate, Scored

#: Differences of probability and frequency that are this small are none.
_ROUNDING = 1e-14


def log_loss(model: Scored) -> Estimate:
    """Estimate the mean of minus the logarithm of the probability of the truth."""
    losses = -np.log(np.clip(model.p_true, LEAST_PROBABILITY, 1.0))
    return model.mean(losses)._replace(largest=float(losses.max()))


def brier(model: Scored) -> Estimate:
    """Estimate the mean squared error of the probabilities."""
    if model.is_binary:
        return model.mean((1.0 - model.p_true) ** 2)
    squares = np.einsum("ij,ij->i", model.p, model.p, dtype=np.float64)
    return model.mean(squares + 1.0 - 2.0 * model.p_true)


def accuracy(model: Scored) -> Estimate:
    """Estimate the share of right predictions."""
    return model.mean((~model.wrong).astype(np.float64))


def confident_error_rate(model: Scored) -> Estimate:
    """Estimate the share of the cases that are wrong at a high confidence."""
    confident = model.confidence > model.confident_above
    return model.mean((model.wrong & confident).astype(np.float64))


def aurc(model: Scored) -> Estimate:
    r"""Estimate the area under the risk–coverage curve (AURC).

    The mean over the cases of r(q), the error rate among the cases at least as confident as q. With
    S(q) their share, the influence of case k is
    :math:`r(q_k) - AURC + E[(\text{wrong}_k - r(q)) / S(q);\, q \le q_k]`.
    """
    levels, places = np.unique(-model.confidence, return_inverse=True)
    shares = np.bincount(places, model.mass, levels.size) / model.total
    errors = np.bincount(places, model.mass * model.wrong, levels.size) / model.total
    above = np.cumsum(shares)
    risk = np.cumsum(errors) / above
    value = float(shares @ risk)
    inverse, rated = _from_the_end(shares / above), _from_the_end(shares * risk / above)
    influence = risk[places] - value + model.wrong * inverse[places] - rated[places]
    influence -= model.mass @ influence / model.total
    return Estimate(value, influence / model.total)


def _from_the_end(values: Floats) -> Floats:
    """Return the total of each value and all later ones."""
    return np.asarray(np.cumsum(values[::-1])[::-1])


def calibration_error(model: Scored) -> Estimate:
    """Estimate the mean distance of probability and frequency, in bins of equal mass.

    A case on a boundary is divided between bins. There are no more bins than cases. Influences are
    those with the bins held fixed.
    """
    probability, happened = model.forecast
    values, places = np.unique(probability, return_inverse=True)
    mass = np.bincount(places, model.mass, values.size)
    residual = np.bincount(places, model.mass * (happened - probability), values.size)
    n_cases = model.y.size if model.cases.count is None else round(model.cases.count.sum())
    n_bins = min(CALIBRATION_BINS, n_cases)
    running = np.concatenate([[0.0], np.cumsum(mass)]) / model.total
    edges = np.arange(n_bins + 1) / n_bins
    totals = np.concatenate([[0.0], np.cumsum(residual)]) / model.total
    steps = np.diff(np.interp(edges, running, totals))
    steps[np.abs(steps) < _ROUNDING] = 0.0  # whose sign would be that of the rounding
    value = float(np.abs(steps).sum())
    # The cases of one probability may reach over several bins: they have the mean of their signs.
    signed = np.concatenate([[0.0], np.cumsum(np.sign(steps)) / n_bins])
    reach = np.diff(np.interp(running, edges, signed))
    sign = reach / np.maximum(np.diff(running), 1e-300)
    estimate = model.mean(sign[places] * (happened - probability))
    centre = running[:-1] + 0.5 * np.diff(running)
    bins = np.minimum((centre * n_bins).astype(np.intp), n_bins - 1)[places]
    # A bin in which nothing happened is not therefore certain: at least what probabilities say.
    squares = model.mass * model.cases.unit
    seen = np.bincount(bins, squares * (happened - probability) ** 2, n_bins)
    expected = np.bincount(bins, squares * probability * (1.0 - probability), n_bins)
    variances = np.maximum(seen, expected) / model.total**2
    return Estimate(value, estimate.influence, variances=variances)
