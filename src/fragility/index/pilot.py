"""Statistics of a few thousand samples of several classes, to choose the bins for all samples."""

from __future__ import annotations

from math import inf

import numpy as np

from .._validation import LabelledScores
from ..binned import Grid

#: Number of samples to look at, and the least number of each class.
PILOT, _OF_EACH_CLASS = 4_096, 10


def steepest_step(data: LabelledScores, target: float, bins: int) -> float:
    """Largest root times bin width over the pairs of classes, for normal scores in `bins` bins.

    Infinite when a class has too few samples.
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
    scores -= data.ranges[0]  # so that an offset costs no digits
    starts, counts = np.cumsum(counts) - counts, counts[:, np.newaxis]
    # Rows are classes, columns are the score columns of present classes.
    means = (np.add.reduceat(scores, starts) / counts)[:, present]
    squares = (np.add.reduceat(scores * scores, starts) / counts)[:, present]
    variances = np.maximum(squares - means * means, 1e-300)
    margin = target + np.diagonal(means) - means
    np.fill_diagonal(margin, 0.0)
    grids = [Grid.over(float(low), float(high), bins) for low, high in data.ranges[:, present].T]
    steps = 2.0 * margin / (variances + np.diagonal(variances)) * [grid.width for grid in grids]
    return float(steps.max())
