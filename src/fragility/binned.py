r"""Log-moments of a large group from one pass over its values, with a certified error.

A column of scores is cut into narrow bins. Per class and bin a few numbers are kept, the weight and
the sums of :math:`d, d^2, \ldots`, where :math:`d` is the distance to the bin's centre in widths.
Then :math:`\sum a e^{s v}` for *every* :math:`s` is a sum over bins: :math:`e^{s v} = e^{s c}
e^{s w d}`, the second factor by its Taylor series, whose remainder is bounded because
:math:`|d| \le 1/2`. One histogram of a column serves all class pairs that share it, and a root on
it costs a fraction of a pass over the data.
"""

from __future__ import annotations

from functools import cached_property
from math import exp, factorial, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .moments import Floats, LogMoment

__all__ = ["BinnedColumn", "BinnedGroup", "Resolution", "bin_columns"]

#: Larger than the blocks of `moments`, for every call of `bincount` also pays for its bins; not a
#: power of two, for buffers that share cache sets evict each other.
_BLOCK = 60_000
#: Adding this to u rounds it to an integer that then stands in the low bits of the sum.
_ROUNDER = 1.5 * 2.0**52
_ROUNDER_BITS = int(np.array(_ROUNDER).view(np.int64))
#: What a sample adds to a sum that also counts: the rest of the sum stays below half of it.
_COUNTER = 2.0**15


class Resolution(NamedTuple):
    """How finely a column is binned.

    `bins` is a power of two, so that scores in [0, 1] are placed without rounding; `orders` is the
    number of moments per bin, at least four.
    """

    bins: int
    orders: int

    @property
    def centres(self) -> int:
        """Bins have their centres at both ends of the range, too."""
        return self.bins + 1

    def state_bytes(self, n_classes: int) -> int:
        """Memory of one binned column."""
        return 8 * self.orders * n_classes * self.centres


class BinnedColumn:
    """Bin moments of one score column, by class."""

    def __init__(self, moments: Floats, low: float, high: float) -> None:
        self._moments = moments  # (orders, classes, centres)
        self._low, self._high = low, high
        self._width = (high - low) / (moments.shape[2] - 1)
        self.magnitude = max(abs(low), abs(high))

    def group(self, *classes: int, negate: bool = False) -> BinnedGroup:
        """Values of the union of `classes`, or their negatives."""
        moments = self._moments[:, classes[0]]
        for c in classes[1:]:
            moments = moments + self._moments[:, c]
        first_centre = self._low
        if negate:
            moments = moments[:, ::-1] * (-1.0) ** np.arange(len(moments))[:, np.newaxis]
            first_centre = -self._high
        return BinnedGroup(moments, first_centre, self._width, self.magnitude)


def bin_columns(
    columns: NDArray[Any],
    codes: NDArray[Any],
    n_classes: int,
    ranges: Floats,
    resolution: Resolution,
    weights: Floats | None = None,
) -> list[BinnedColumn]:
    """Bin some columns in one pass.

    Parameters
    ----------
    columns : ndarray of shape (n, k)
        Finite real numbers.
    codes : ndarray of shape (n,)
        Class of each sample, ``0 .. n_classes - 1``.
    n_classes : int
    ranges : ndarray of shape (2, k)
        Smallest and largest value of each column.
    resolution : Resolution
    weights : ndarray of shape (n,), optional
    """
    n, k = columns.shape
    low, high = (np.array(end, dtype=np.float64) for end in ranges)
    probabilities = (low >= 0.0) & (high <= 1.0) & (high - low > 0.5)
    low[probabilities], high[probabilities] = 0.0, 1.0  # then the products below are exact
    high[low == high] += 1.0
    scale = resolution.bins / (high - low)
    length = n_classes * resolution.centres
    moments = np.zeros((k, resolution.orders, length))
    size = min(_BLOCK, n)
    turned = np.empty((k if k > 1 else 0, size))
    positions, offsets, sums, distances = np.empty((4, size))
    for start in range(0, n, _BLOCK):
        part = slice(start, min(start + _BLOCK, n))
        m = part.stop - part.start
        # Columns of a block are turned into rows once; a single column is read where it is.
        rows = columns[part].T
        if k > 1:
            np.copyto(turned[:, :m], rows)
            rows = turned[:, :m]
        # The class rides on the rounding constant, so that one sum gives the bin of the class (in
        # its low bits) and one difference the distance to the bin's centre.
        offset, d = offsets[:m], distances[:m]
        np.copyto(offset, codes[part])
        offset *= resolution.centres
        offset += _ROUNDER
        for i in range(k):
            u = positions[:m]
            if low[i] == 0.0:
                np.multiply(rows[i], scale[i], out=u)
            else:
                np.subtract(rows[i], low[i], out=u)
                u *= scale[i]
            np.add(u, offset, out=sums[:m])
            np.subtract(sums[:m], offset, out=d)
            np.subtract(u, d, out=d)
            bins = sums[:m].view(np.int64)
            bins -= _ROUNDER_BITS
            _add_moments(moments[i], bins, d, None if weights is None else weights[part], u)
    shaped = moments.reshape(k, resolution.orders, n_classes, resolution.centres)
    return [BinnedColumn(shaped[i], float(low[i]), float(high[i])) for i in range(k)]


def _add_moments(
    moments: Floats, bins: NDArray[np.int64], d: Floats, weights: Floats | None, power: Floats
) -> None:
    """Add the block's sums of weight times d**0, d, d**2, ...; `power` is overwritten."""
    orders, length = moments.shape
    if weights is not None:
        np.copyto(power, weights)
        for order in range(orders):
            moments[order] += np.bincount(bins, power, length)
            power *= d
        return
    moments[1] += np.bincount(bins, d, length)
    np.multiply(d, d, out=power)
    for order in range(2, orders - 1):
        moments[order] += np.bincount(bins, power, length)
        power *= d
    # A count is a whole number, and the highest moment, at most an eighth of it, needs the fewest
    # digits: both come out of one sum.
    power += _COUNTER
    both = np.bincount(bins, power, length)
    counts = np.rint(both * (1.0 / _COUNTER))
    moments[0] += counts
    counts *= _COUNTER
    both -= counts
    moments[-1] += both


class BinnedGroup:
    """A group of values known by its bin moments; see `fragility.moments.ValueGroup`."""

    def __init__(
        self, moments: Floats, first_centre: float, width: float, magnitude: float
    ) -> None:
        occupied = np.flatnonzero(moments[0])
        first, last = int(occupied[0]), int(occupied[-1])
        self._moments = moments[:, first : last + 1]
        self._below = np.arange(first - last, 1, dtype=np.float64)  # centres, in bins from the last
        self._width = width
        self.magnitude = magnitude
        self.pivot = first_centre + last * width
        # Half a bin, and a hair for the rounding of the positions.
        self.reached = self.pivot - 0.5001 * width
        self.reached_weight = float(self._moments[0, -1])
        self.spread = (last - first + 1) * width
        self.mean_residual = 0.0

    @cached_property
    def weight(self) -> float:
        return float(self._moments[0].sum())

    @cached_property
    def _centre_and_square(self) -> tuple[float, float]:
        zeroth, first, second = self._moments[:3]
        below = self._below
        centre = float(below @ zeroth + first.sum()) / self.weight
        square = float((below * zeroth + 2.0 * first) @ below + second.sum()) / self.weight
        return centre, square - centre * centre

    @property
    def mean(self) -> float:
        return self.pivot + self._width * self._centre_and_square[0]

    @property
    def variance(self) -> float:
        return self._width**2 * max(self._centre_and_square[1], 0.0)

    def log_moment(self, s: float) -> LogMoment:
        # With v = c + w d in bins from the pivot: sums of c^a d^k exp(s c), then exp(s w d) and its
        # first two derivatives by their Taylor series in x = s w.
        x = s * self._width
        with np.errstate(under="ignore"):
            tilt = _exp_of_steps(x, self._below.size)
            sums = []
            for _ in range(3):
                sums.append(self._moments @ tilt)
                tilt *= self._below
        series = np.array([x**k / factorial(k) for k in range(len(self._moments))])
        zeroth = sums[0] @ series
        first = sums[1] @ series + sums[0][1:] @ series[:-1]
        second = sums[2] @ series + 2.0 * sums[1][1:] @ series[:-1] + sums[0][2:] @ series[:-2]
        slope = float(first / zeroth)
        return LogMoment(
            log(zeroth / self.weight),
            self._width * slope,
            self._width**2 * (float(second / zeroth) - slope * slope),
        )

    def centred_log_moment(self, s: float) -> LogMoment:
        """Not more accurate than `log_moment` here: see `rounding`."""
        moment = self.log_moment(s)
        shift = self.mean - self.pivot
        return LogMoment(moment.value - s * shift, moment.slope - shift, moment.curvature)

    def remainder(self, s: float) -> float:
        """Bound on what cutting the Taylor series leaves out of the log-moment at `s`."""
        half_bin = min(s * self._width / 2.0, 700.0)
        order = len(self._moments)
        return half_bin**order / factorial(order) * exp(half_bin)

    def rounding(self, s: float) -> float:
        """Estimate of the rounding error of the log-moment at `s`."""
        return 2.0**-53 * (2.0 + s * self.magnitude + s * self.spread)


def _exp_of_steps(x: float, size: int) -> Floats:
    """exp(x·k) for k = 1 - size .. 0, from the products of two short tables."""
    fine = 128
    coarse = -(-size // fine)
    table: Floats = np.multiply.outer(
        np.exp(x * fine * np.arange(1 - coarse, 1)), np.exp(x * np.arange(1 - fine, 1))
    )
    return table.ravel()[-size:]
