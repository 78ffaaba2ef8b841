"""Statistics of a few thousand samples, to choose the bins for all samples."""

from __future__ import annotations

from math import inf

import numpy as np

from .._typing import Floats
from .._validation import LabelledScores

#: Number of samples to look at, and the least number of each class.
_PILOT, _OF_EACH_CLASS = 4_096, 10


def steepest_tilt(data: LabelledScores, target: float, scales: Floats) -> float:
    """Largest root times the scale of its score column over the pairs of classes.

    The roots are those of normal scores. Infinite when a class has too few samples.
    """
    thin = slice(None, None, max(1, data.codes.size // _PILOT))
    codes, scores = data.codes[thin], data.scores[thin]
    if data.weights is not None:
        weighty = data.weights[thin] > 0.0
        codes, scores = codes[weighty], scores[weighty]
    classes = columns = np.flatnonzero(data.support)
    own = np.arange(classes.size)  # the row of a column's own class
    if data.is_binary:
        classes, columns, own = np.arange(2), np.array([0]), np.array([data.positive])
        scores = scores[:, np.newaxis]
    counts = np.bincount(codes, minlength=data.support.size)[classes]
    if counts.min() < _OF_EACH_CLASS:
        return inf
    scores = scores[np.argsort(codes, kind="stable")].astype(np.float64)
    scores -= data.ranges[0]  # so that an offset costs no digits
    starts, counts = np.cumsum(counts) - counts, counts[:, np.newaxis]
    # Rows are classes, columns are the score columns of present classes.
    means = (np.add.reduceat(scores, starts) / counts)[:, columns]
    squares = (np.add.reduceat(scores * scores, starts) / counts)[:, columns]
    variances = np.maximum(squares - means * means, 1e-300)
    place = own, np.arange(columns.size)
    margin = target + means[place] - means
    margin[place] = 0.0
    return float((2.0 * margin / (variances + variances[place]) * scales[columns]).max())
