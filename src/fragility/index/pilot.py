"""A look at a few thousand samples of several classes, to choose the bins for all of them."""

from __future__ import annotations

from math import inf

import numpy as np

from .._validation import LabelledScores
from ..binned import Grid

#: Samples to look at, and how many of each class at least.
PILOT, _OF_EACH_CLASS = 4_096, 10


def steepest_step(data: LabelledScores, target: float, bins: int) -> float:
    """Largest s times the width of `bins`, over the pairs of classes, if scores were normal.

    Infinite when a class is too rare to tell.
    """
    thin = slice(None, None, max(1, data.codes.size // PILOT))
    codes, scores = data.codes[thin], data.scores[thin]
    if data.weights is not None:
        weighty = data.weights[thin] > 0.0
        codes, scores = codes[weighty], scores[weighty]
    present = np.flatnonzero(data.support)
    counts = np.bincount(codes, minlength=data.support.size)[present]
    if counts.min() < _OF_EACH_CLASS:
        return inf
    scores = scores[np.argsort(codes, kind="stable")].astype(np.float64)
    scores -= data.ranges[0]  # small numbers lose no digits to an offset
    starts, counts = np.cumsum(counts) - counts, counts[:, np.newaxis]
    # By class and column, of the columns of present classes.
    means = (np.add.reduceat(scores, starts) / counts)[:, present]
    squares = (np.add.reduceat(scores * scores, starts) / counts)[:, present]
    variances = np.maximum(squares - means * means, 1e-300)
    slack = target + np.diagonal(means) - means
    np.fill_diagonal(slack, 0.0)
    grids = [Grid.over(float(low), float(high), bins) for low, high in data.ranges[:, present].T]
    steps = 2.0 * slack / (variances + np.diagonal(variances)) * [grid.width for grid in grids]
    return float(steps.max())
