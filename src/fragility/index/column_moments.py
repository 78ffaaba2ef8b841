r"""The equations :math:`h(s)` of several class pairs that share a column of binned scores.

Each pair has its own :math:`s`, and all of them are evaluated at once: a table of :math:`e^{s c}`
with one row per pair is multiplied with the bin moments of the negatives row by row, and with the
bin moments of the common positives in one matrix product.
"""

from __future__ import annotations

from math import comb

import numpy as np

from .._typing import Floats
from ..moments import neg_log_shares

#: Bins in a row of the finer of the two tables whose products are the exponentials.
FINE_STEPS = 128
#: Number of bins merged into one for first guesses, and of moments kept. The exponential series of
#: three terms is positive everywhere.
_MERGED, _MERGED_ORDERS = 8, 3


class ColumnMoments:
    """Bin moments of the negatives of some pairs, and of their common positives.

    Arrays of shape (2, pairs) have one row for the negatives and one for the positives.

    Parameters
    ----------
    negatives : ndarray of shape (orders, pairs, bins)
        Groups without weight are allowed; their results are meaningless.
    positives : ndarray of shape (orders, bins)
    width : float
        Distance between neighbouring centres.
    target : float
    """

    def __init__(self, negatives: Floats, positives: Floats, width: float, target: float) -> None:
        self._negatives, self._positives = negatives, positives
        self.width = width
        self.orders, pairs, self.bins = negatives.shape
        taken = np.empty((pairs + 1, self.bins), dtype=bool)
        np.not_equal(negatives[0], 0.0, out=taken[:-1])
        np.not_equal(positives[0], 0.0, out=taken[-1])
        first, last = taken.argmax(axis=1), self.bins - 1 - taken[:, ::-1].argmax(axis=1)
        #: Widths of the bins from the first one in use to the last.
        self.spreads = _by_pair((last - first + 1) * width)
        #: The last bin of the negatives and the first one of the positives. Values are taken from
        #: their centres, so that no exponential overflows that counts.
        self._ends = np.stack([last[:-1], np.full(pairs, first[-1])])
        # Multiples of the width are exact, so that the difference is rounded once.
        self.apart = (self._ends[0] - self._ends[1]) * width
        self.gap = self.apart - target
        self.weights = np.empty((2, pairs))
        negatives[0].sum(axis=1, out=self.weights[0])
        self.weights[1] = positives[0].sum()

    def means_and_squares(self) -> Floats:
        """Means of the distances of the values from the ends, and of the squared distances.

        The distances of the positives are negated.
        """
        both = np.empty((2, *self.weights.shape))
        means, squares = both
        groups = self._negatives, self._positives
        for side, (group, distances) in enumerate(zip(groups, self._distances(), strict=True)):
            zeroth, first, second = group[:3]
            means[side] = np.vecdot(zeroth, distances) + first.sum(axis=-1)
            squares[side] = np.vecdot(zeroth * distances + 2.0 * first, distances)
            squares[side] += second.sum(axis=-1)
        means[1] *= -1.0
        both /= self.weights
        return both

    def neg_log_top_shares(self) -> Floats:
        """-log of the fraction of the weight in the bins at the ends."""
        pairs = self.weights.shape[1]
        rows, ends = np.arange(pairs + 1), np.append(self._ends[0], self._ends[1, 0])
        rest = np.concatenate([self._negatives[0], self._positives[:1]])
        part = rest[rows, ends]
        rest[rows, ends] = 0.0
        return _by_pair(neg_log_shares(part, rest.sum(axis=1)))

    def __call__(self, s: Floats) -> Floats:
        """Four rows: h, h' and h'' of each pair at its s, and a mean square.

        The last row is the mean squared distance to the bin centres, negatives plus positives.
        Every s times the total width of the bins must be at most a few hundred.
        """
        tilts = np.stack([s, -s])
        below, above = self._exponentials(tilts)
        from_last, from_first = self._distances()
        sums = np.zeros((3, self.orders, *tilts.shape))  # of c**a d**k exp(s c)
        # Slopes and curvatures only set the length of a step: a few of their terms suffice.
        for power, kept in enumerate((self.orders, min(4, self.orders), 2)):
            if power:
                below *= from_last
                above *= from_first
            np.vecdot(self._negatives[:kept], below, out=sums[power, :kept, 0])
            np.matmul(self._positives[:kept], above.T, out=sums[power, :kept, 1])
        square = (sums[0, 2] / sums[0, 0]).sum(axis=0)
        # exp(s d) and its first two derivatives by Taylor series.
        sums[2, :-1] += 2.0 * sums[1, 1:]
        sums[2, :-2] += sums[0, 2:]
        sums[1, :-1] += sums[0, 1:]
        series = np.ones((self.orders, *tilts.shape))
        for order in range(1, self.orders):
            np.multiply(series[order - 1], tilts / order, out=series[order])
        total, first, second = (sums * series).sum(axis=1)
        slopes = first / total
        curvatures = np.maximum(second / total - slopes * slopes, 0.0)
        values = np.log(total / self.weights)
        value = values[0] + values[1] + s * self.gap
        slope = slopes[0] - slopes[1] + self.gap
        return np.stack([value, slope, curvatures[0] + curvatures[1], square])

    def _distances(self) -> tuple[Floats, Floats]:
        """Distances of the centres from the ends."""
        bins = np.arange(0.0, self.bins)
        return (
            (bins - self._ends[0][:, np.newaxis]) * self.width,
            (bins - self._ends[1, 0]) * self.width,
        )

    def _exponentials(self, tilts: Floats) -> Floats:
        """exp(s c) of the negatives and exp(-s c) of the positives, c from the ends."""
        steps = (tilts * self.width)[..., np.newaxis]
        ends = self._ends[..., np.newaxis]
        if self.bins < 8 * FINE_STEPS:
            table: Floats = np.exp(steps * (np.arange(self.bins) - ends))
            return table
        coarse = np.exp(steps * (np.arange(0, self.bins, FINE_STEPS) - ends))
        fine = np.exp(steps * np.arange(FINE_STEPS))
        table = coarse[..., np.newaxis] * fine[:, :, np.newaxis]
        return table.reshape(*tilts.shape, -1)[..., : self.bins]


def merge_bins(moments: Floats, width: float) -> tuple[Floats, float]:
    """Moments of the same values in fewer, wider bins, and the width of these bins."""
    _, groups, bins = moments.shape
    whole = bins // _MERGED
    merged = np.zeros((_MERGED_ORDERS, groups, whole + 1))
    distances = (np.arange(_MERGED) - (_MERGED - 1) / 2.0) * width
    powers = distances[:, np.newaxis] ** np.arange(_MERGED_ORDERS)
    for order in range(_MERGED_ORDERS):  # (c + d)**k, term by term of its binomial
        part = moments[order, :, : whole * _MERGED].reshape(groups, whole, _MERGED)
        rest = moments[order, :, whole * _MERGED :]
        kept = _MERGED_ORDERS - order
        sums = part @ powers[:, :kept]
        last = rest @ powers[: rest.shape[1], :kept]
        for more in range(kept):
            factor = comb(order + more, order)
            merged[order + more, :, :-1] += factor * sums[..., more]
            merged[order + more, :, -1] += factor * last[:, more]
    return merged, width * _MERGED


def _by_pair(rows: Floats) -> Floats:
    """Shape (2, pairs) from one number per negative class, followed by one for the positives."""
    return np.stack([rows[:-1], np.broadcast_to(rows[-1], rows[:-1].shape)])
