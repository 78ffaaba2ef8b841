r"""Log-moments of a large group from one pass over its values, with a certified error.

A column of scores is cut into narrow bins. Per class and bin a few numbers are kept, the weight and
the sums of :math:`d, d^2, \ldots`, where :math:`d` is the distance to the bin's centre :math:`c`.
Then :math:`\sum a e^{s v}` for *every* :math:`s` is a sum over bins: :math:`e^{s v} = e^{s c}
e^{s d}`, the second factor by its Taylor series, whose remainder is bounded because :math:`|d|` is
at most half a bin. One histogram of a column serves all class pairs that share it, and a root on it
costs a fraction of a pass over the data.

Bin widths are powers of two and centres multiples of the width, so that centres and distances are
exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import factorial, frexp, fsum, log
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ._typing import Floats, Integers
from .moments import EPS, LogMoment, neg_log_share

#: Least and most elements per block. Larger than the blocks of `moments`, and larger still for many
#: bins, because every call of `bincount` also pays for its bins. Not powers of two, because buffers
#: that share cache sets evict each other.
_BLOCKS = 40_000, 60_000
#: Adding this times a bin's width rounds a value to a multiple of the width; the multiple then
#: stands in the low bits of the sum.
ROUNDER = 1.5 * 2.0**52
#: Added for each sample to a sum that also counts, in units of the largest summand: the rest of the
#: sum stays below half of it.
_COUNTER = 2.0**17


class Resolution(NamedTuple):
    """How finely a column is binned: maximum number of bins (a power of two), moments per bin."""

    bins: int
    orders: int

    @property
    def centres(self) -> int:
        """Number of bin centres: one at each end of the range, and one beyond."""
        return self.bins + 2

    def state_bytes(self, n_classes: int) -> int:
        """Memory of one binned column."""
        return 8 * self.orders * n_classes * self.centres


class Grid(NamedTuple):
    """Bins of a column: centres are ``(first + b) * width``, b = 0, 1, ..."""

    first: float
    width: float

    @classmethod
    def over(cls, low: float, high: float, bins: int) -> Grid:
        # The largest value must have a multiple of the width in its low bits, and the powers of
        # the width must not underflow.
        finest = max(high - low, 2.0**-30 * max(abs(low), abs(high)), 2.0**-100) / bins
        mantissa, exponent = frexp(finest)
        width = 2.0 ** (exponent - (mantissa == 0.5))
        return cls(float(np.rint(low / width)), width)


@dataclass(frozen=True, eq=False)
class BinnedColumn:
    """Bin moments of one score column, by class.

    Attributes
    ----------
    moments : ndarray of shape (orders, n_classes, centres)
    grid : Grid
    drifts : ndarray of shape (n_classes,)
        Bound on the error of the weight of each class, in units of rounding.
    """

    moments: Floats
    grid: Grid
    drifts: Floats

    @property
    def longest_sum(self) -> float:
        """Largest number of terms that one bin received within a block."""
        if self.drifts.any():  # weighted: the counts are not known
            return float(_BLOCKS[1])
        return min(float(_BLOCKS[1]), float(self.moments[0].max()))

    def group(self, *classes: int, negate: bool = False) -> BinnedGroup:
        """Values of the union of `classes`, or their negatives."""
        moments = self.moments[:, classes[0]]
        for c in classes[1:]:
            moments = moments + self.moments[:, c]
        first = self.grid.first
        if negate:
            orders, centres = moments.shape
            moments = moments[:, ::-1] * (-1.0) ** np.arange(orders)[:, np.newaxis]
            first = -(first + centres - 1)
        drift = float(self.drifts[list(classes)].sum())
        return BinnedGroup(moments, Grid(first, self.grid.width), drift)


def bin_columns(
    columns: NDArray[Any],
    codes: NDArray[Any],
    support: Integers,
    ranges: Floats,
    resolution: Resolution,
    weights: Floats | None = None,
) -> list[BinnedColumn]:
    """Bin some columns in one pass.

    Parameters
    ----------
    columns : ndarray of shape (n, k)
        Real numbers up to about 1e20.
    codes : ndarray of shape (n,)
        Class of each sample, ``0 .. n_classes - 1``.
    support : ndarray of shape (n_classes,)
        Samples of each class.
    ranges : ndarray of shape (2, k)
        Smallest and largest value of each column.
    resolution : Resolution
    weights : ndarray of shape (n,), optional
        Up to about 1e20.
    """
    n, k = columns.shape
    n_classes = support.size
    grids = [Grid.over(float(low), float(high), resolution.bins) for low, high in ranges.T]
    moments = np.zeros((k, resolution.orders, n_classes * resolution.centres))
    last_digit = 0.0 if weights is None else 2.0 ** (frexp(float(weights.max()))[1] - 36)
    leading = ROUNDER * last_digit
    block = min(max(2 * moments.shape[2], _BLOCKS[0]), _BLOCKS[1])
    powers = np.empty(min(block, n))
    for i, part, bins, d in binned_blocks(columns, codes, grids, resolution.centres, block):
        block_weights = None if weights is None else weights[part]
        _add_moments(
            moments[i], bins, d, block_weights, leading, grids[i].width, powers[: bins.size]
        )
    shape = (resolution.orders, n_classes, resolution.centres)
    drifts = block / 2.0 * last_digit / 2.0 * support.astype(np.float64)
    return [
        BinnedColumn(m.reshape(shape), grid, drifts) for m, grid in zip(moments, grids, strict=True)
    ]


def binned_blocks(
    columns: NDArray[Any], codes: NDArray[Any], grids: list[Grid], centres: int, block: int
) -> Iterator[tuple[int, slice, Integers, Floats]]:
    """Column, rows, bins and distances to the centres, block by block.

    A sample of class c in bin b has the number ``c * centres + b``. The arrays are overwritten
    by the next block.
    """
    n, k = columns.shape
    size = min(block, n)
    direct = k == 1 and columns.dtype == np.float64
    turned = np.empty((0 if direct else k, size))
    offsets, sums, distances = np.empty((3, size))
    for start in range(0, n, block):
        part = slice(start, min(start + block, n))
        m = part.stop - part.start
        # The columns of a block are turned into rows once; a single one is read where it is.
        rows = columns[part].T
        if not direct:
            np.copyto(turned[:, :m], rows)
            rows = turned[:, :m]
        offset, total, d = offsets[:m], sums[:m], distances[:m]
        prepared: Grid | None = None
        for i, grid in enumerate(grids):
            if grid != prepared:
                # The class rides on the rounding constant, so that one sum gives the bin of the
                # class (in its low bits) and one difference the bin's centre.
                np.copyto(offset, codes[part])
                offset *= centres * grid.width
                offset += (ROUNDER - grid.first) * grid.width
                prepared = grid
            np.add(rows[i], offset, out=total)
            np.subtract(total, offset, out=d)
            np.subtract(rows[i], d, out=d)
            bins = total.view(np.int64)
            bins -= int(np.array(ROUNDER * grid.width).view(np.int64))
            yield i, part, bins, d


def _add_moments(
    moments: Floats,
    bins: Integers,
    d: Floats,
    weights: Floats | None,
    leading: float,
    width: float,
    power: Floats,
) -> None:
    """Add the block's sums of weight times d**0, d, d**2, ...; `power` is overwritten.

    Adding and subtracting `leading` leaves the leading 36 bits of a weight.
    """
    orders, length = moments.shape
    if weights is not None:
        # Long sums of equal weights drift: the leading digits, added exactly, and the rest apart.
        np.add(weights, leading, out=power)
        power -= leading
        moments[0] += np.bincount(bins, power, length)
        np.subtract(weights, power, out=power)
        moments[0] += np.bincount(bins, power, length)
        np.copyto(power, weights)
        for order in range(1, orders):
            power *= d
            moments[order] += np.bincount(bins, power, length)
        return
    moments[1] += np.bincount(bins, d, length)
    np.multiply(d, d, out=power)
    for order in range(2, orders - 1):
        moments[order] += np.bincount(bins, power, length)
        power *= d
    # A count is a whole number, and the highest moment needs the fewest digits: both come out of
    # one sum.
    counter = _COUNTER * (width / 2.0) ** (orders - 1)
    power += counter
    both = np.bincount(bins, power, length)
    counts = np.rint(both * (1.0 / counter))
    moments[0] += counts
    counts *= counter
    both -= counts
    moments[-1] += both


class BinnedGroup:
    """A group of values known by its bin moments; see `fragility.moments.ValueGroup`."""

    def __init__(self, moments: Floats, grid: Grid, drift: float) -> None:
        self._drift = drift
        occupied = np.flatnonzero(moments[0])
        first, last = int(occupied[0]), int(occupied[-1])
        self._moments = moments[:, first : last + 1]
        self._below = np.arange(first - last, 1, dtype=np.float64)  # centres, in bins from the last
        self.width = grid.width
        #: Up to this s the truncated series of exp(s d) stays positive.
        self.steepest = 2.0 / grid.width
        self.pivot = (grid.first + last) * grid.width
        self.reached = self.pivot - 0.5 * grid.width
        self.spread = (last - first + 1) * grid.width
        zeroth, first_order, second_order = self._moments[:3]
        self.weight = float(zeroth.sum())
        self.neg_log_top_share = neg_log_share(float(zeroth[-1]), float(zeroth[:-1].sum()))
        centres = self._below * self.width
        mean = float(centres @ zeroth + first_order.sum()) / self.weight
        square = float((centres * zeroth + 2.0 * first_order) @ centres + second_order.sum())
        #: Mean of the values minus the pivot.
        self.mean_above_pivot = mean
        self.mean = self.pivot + mean
        self.mean_residual = fsum([self.pivot, mean, -self.mean])
        self.variance = max(square / self.weight - mean * mean, 0.0)

    def log_moment(self, s: float) -> LogMoment:
        # Sums of c^a d^k exp(s c), then exp(s d) and its first two derivatives by Taylor series.
        tilt = _exp_of_steps(s * self.width, self._below.size)
        by_power = []
        for _ in range(3):
            by_power.append(np.vecdot(self._moments, tilt))
            tilt *= self._below
        zero, one, two = (sums * self.width**a for a, sums in enumerate(by_power))
        series = np.array([s**k / factorial(k) for k in range(len(self._moments))])
        total = zero @ series
        first = one @ series + zero[1:] @ series[:-1]
        second = two @ series + 2.0 * one[1:] @ series[:-1] + zero[2:] @ series[:-2]
        slope = float(first / total)
        return LogMoment(
            log(total / self.weight), slope, max(float(second / total) - slope * slope, 0.0)
        )

    def remainder(self, s: float) -> float:
        """Bound on the error of the log-moment at `s` from truncating the Taylor series."""
        tilt = _exp_of_steps(s * self.width, self._below.size)
        mean_square = float(self._moments[2] @ tilt) / float(self._moments[0] @ tilt)
        half_bin = min(s * self.width / 2.0, 300.0)
        # As a float, which overflows in silence.
        return s * s * mean_square * float(remainder_factor(half_bin, len(self._moments)))

    def rounding(self, s: float) -> float:
        """Estimate of the rounding error of the log-moment at `s`."""
        distances = s * self.width / 2.0 * _BLOCKS[1]
        return rounding_bound(s * self.spread, distances, self._drift / self.weight)


Numbers = TypeVar("Numbers", float, Floats)


def remainder_factor(half_bin: Numbers, orders: int) -> Numbers:
    """Bound on the error of a truncated Taylor series, relative to the mean of (s d)**2.

    `half_bin` is s times half the width of a bin.
    """
    # |s d| is at most half_bin: this bounds all its powers but two, whose mean is known.
    factor: Numbers = half_bin ** (orders - 2) / factorial(orders) * np.exp(2.0 * half_bin)
    return factor


def rounding_bound(spread: Numbers, distances: Numbers, drift: Numbers) -> Numbers:
    """Estimate of the rounding error of a log-moment.

    Parameters
    ----------
    spread : float or ndarray
        s times the spread of the values.
    distances : float or ndarray
        s times half a bin width times the number of terms in the longest sum.
    drift : float or ndarray
        Bound on the relative error of the weights, in units of rounding.
    """
    # Long sums of equal numbers drift: sums of distances, and of the trailing digits of weights.
    return EPS * (2.0 + spread + distances / 2.0 + drift)


def _exp_of_steps(x: float, size: int) -> Floats:
    """exp(x·k) for k = 1 - size .. 0, as products of two short tables."""
    fine = 128
    coarse = -(-size // fine)
    table: Floats = np.multiply.outer(
        np.exp(x * fine * np.arange(1 - coarse, 1)), np.exp(x * np.arange(1 - fine, 1))
    )
    return table.ravel()[-size:]
