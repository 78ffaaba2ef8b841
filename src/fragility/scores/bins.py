"""Exact sums of scores in [0, 1] by class and bin, the content of sketches and states.

Per column, class and bin: the weight and the sums of :math:`x` and :math:`x^2`, where x is the
distance of a score to the centre of its bin in bin widths, rounded to a fixed number of digits.
Rounded so, the sums are exact, and do not depend on the order of the samples or on how they came in
parts. The bin of a score depends on nothing but the score.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import ceil, inf, log2
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats, Indices, Integers
from ..exact import ExactSums, whole_numbers
from ..index.certified import BinMoments
from .atoms import Atoms, PointSample
from .cases import REVIEW_SUMS, case_amounts
from .layout import Layout
from .unit_counts import MOST, UnitCounts

#: Units of x and x². Half of them are the errors that `fragility.index.certified` allows for.
MEAN_UNIT, SQUARE_UNIT = 2.0**-37, 2.0**-23
#: No x or x² is more than so many units.
_MOST_X = 1 << 37
#: Workers of Dask give freed memory back at once: arrays of 128 KiB are new memory each time.
_GIVES_BACK = "MALLOC_TRIM_THRESHOLD_" in os.environ
#: Samples per block, few enough for the cache, and samples that are summed together: no more than
#: exact sums take at once.
BLOCK = (1 << 14) - 64 if _GIVES_BACK else 1 << 15
CHUNK = BLOCK if _GIVES_BACK else 2 * BLOCK
#: All classes.
ALL = slice(None)


class ClassSums(NamedTuple):
    """Sums of a class: weight, x and x² in their units, by bin; and the bins that hold any."""

    weight: Floats
    x: Floats
    x_squares: Floats
    held: Indices


class ScoreBins:
    """Bins of some score columns, for each of some classes.

    Parameters
    ----------
    layout : Layout
    n_columns, n_classes : int
    ranges : bool, default=False
        Whether to keep the least and the largest score of every bin.
    squares : bool, default=False
        Whether to keep the number of samples and the sum of their squared weights.
    costs : bool, default=False
        Whether to keep the sums of weight times cost, and of its square.
    reviews : bool, default=False
        Whether to keep the sums of `fragility.scores.cases.REVIEW_SUMS`.
    """

    def __init__(
        self,
        layout: Layout,
        n_columns: int,
        n_classes: int,
        *,
        ranges: bool = False,
        squares: bool = False,
        costs: bool = False,
        reviews: bool = False,
    ) -> None:
        self.layout = layout
        shape = (n_columns, n_classes * layout.length)
        names = ["weight", "x", "x_squares"]
        names += ["number", "squares"] * squares + ["costs", "cost_squares"] * costs
        names += list(REVIEW_SUMS) * reviews
        self._sums = {name: ExactSums(shape) for name in names}
        #: Unweighted samples of a single column that the sums have not got yet.
        self._counts: UnitCounts | None = None
        self.ranges = np.full((2, n_columns, layout.length if ranges else 0), inf)
        self.ranges[1] = -inf
        self._smallest = np.full((n_columns, n_classes), inf)
        self._largest = np.full((n_columns, n_classes), -inf)
        self._lightest = np.full((n_columns, n_classes), inf)
        #: Of the two classes that were asked for last, by column and class.
        self._latest: dict[tuple[int, int], ClassSums] = {}

    @property
    def sums(self) -> dict[str, ExactSums]:
        """Sums by name: of x and x², and of `fragility.scores.cases.case_amounts`."""
        self._take_counts()
        return self._sums

    def _take_counts(self) -> None:
        if self._counts is not None:
            totals, self._counts = self._counts.totals(), None
            for name, more in zip(("weight", "x", "x_squares"), totals, strict=True):
                self._sums[name].add(more, most=MOST * _MOST_X)

    @property
    def nbytes(self) -> int:
        """Memory of the sums, which weights of many scales make longer."""
        return sum(part.digits.nbytes for part in self._sums.values())

    @staticmethod
    def state_bytes(
        length: int, n_columns: int, n_classes: int, weights: Floats | None = None
    ) -> int:
        """Memory of the three sums of unweighted samples, or of samples of such weights."""
        digits = 5  # of the three exact sums
        if weights is not None:
            # From the last bit of the lightest product to room for many of the heaviest.
            spanned = log2(float(weights.max()) / float(weights.min())) + 53
            digits = 3 * (2 + ceil((spanned + 40) / 32))
        return 8 * digits * n_columns * n_classes * length

    def add(
        self,
        scores: NDArray[Any],
        codes: NDArray[Any],
        weights: Floats | None = None,
        first: int = 0,
        costs: Floats | None = None,
        slips: Floats | None = None,
        places: Sequence[Integers] | None = None,
    ) -> list[Integers]:
        """Add samples: scores (n,) or (n, K) of the columns from `first` on, and their classes.

        Costs and slips need weights. Weights must be positive, and their products with 2³⁷ in
        range. `places` are the bins of at most `CHUNK` samples in one column, block by block, if
        they are known: `take_ranges` must follow then. Returns the bins of the last column, block
        by block.
        """
        self._latest.clear()
        found: list[Integers] = []
        columns = scores.reshape(codes.size, -1)
        for start in range(0, codes.size, CHUNK):
            part = slice(start, start + CHUNK)
            own = None if weights is None else weights[part]
            paid, slipped = (None if each is None else each[part] for each in (costs, slips))
            more = paid, slipped, places
            for column, values in enumerate(columns[part].T, start=first):
                located = self._add_column(column, values, codes[part], own, *more)
            found += located
        return found

    def _add_column(
        self,
        column: int,
        scores: NDArray[Any],
        codes: NDArray[Any],
        weights: Floats | None,
        costs: Floats | None,
        slips: Floats | None,
        known: Sequence[Integers] | None,
    ) -> list[Integers]:
        layout, found = self.layout, []
        bins, x = np.empty(codes.size, dtype=np.int64), np.empty(codes.size)
        for number, start in enumerate(range(0, codes.size, BLOCK)):
            part = slice(start, start + BLOCK)
            values = np.ascontiguousarray(scores[part], dtype=np.float64)
            classes = codes[part].astype(np.int64, copy=False)
            places = layout.places(values) if known is None else known[number]
            x[part] = layout.distances(values, places)
            if self.ranges.size and known is None:
                np.minimum.at(self.ranges[0, column], places, values)
                np.maximum.at(self.ranges[1, column], places, values)
            self._reach(column, classes, values)
            np.multiply(classes, layout.length, out=bins[part])
            bins[part] += places
            found.append(places)
        if weights is None:
            self._count(column, bins, x)
        else:
            self._weigh(column, bins, x, codes, weights, costs, slips)
        return found

    def _reach(self, column: int, classes: Integers, values: Floats) -> None:
        """Take in the extreme values of classes: after a while few samples move these."""
        smallest, largest = self._smallest[column], self._largest[column]
        below = np.flatnonzero(values < smallest.max())
        if 8 * below.size > values.size:  # of a class with few samples or none
            below = np.flatnonzero(values < smallest.take(classes))
        np.minimum.at(smallest, classes.take(below), values.take(below))
        above = np.flatnonzero(values > largest.min())
        if 8 * above.size > values.size:
            above = np.flatnonzero(values > largest.take(classes))
        np.maximum.at(largest, classes.take(above), values.take(above))

    def _count(self, column: int, bins: Integers, x: Floats) -> None:
        """Add unweighted samples."""
        units = whole_numbers(x * (1.0 / MEAN_UNIT))
        x *= x
        x *= 1.0 / SQUARE_UNIT
        squares = whole_numbers(x)
        n_columns, n_bins = self._sums["weight"].shape
        if n_columns == 1:
            if self._counts is not None and not self._counts.has_room(bins.size):
                self._take_counts()
            if self._counts is None:
                self._counts = UnitCounts(n_bins)
            self._counts.add(bins, units, squares)
        else:  # of which there may be many: side by side they would take more memory
            for name, terms in (("weight", 1), ("x", units), ("x_squares", squares)):
                self._sums[name].add_each(bins, terms, column, most=_MOST_X)
        lightest = self._lightest[column]  # one, of a class that has samples
        np.minimum(lightest, np.where(self._smallest[column] < inf, 1.0, inf), out=lightest)

    def _weigh(
        self,
        column: int,
        bins: Integers,
        x: Floats,
        codes: NDArray[Any],
        weights: Floats,
        costs: Floats | None,
        slips: Floats | None,
    ) -> None:
        """Add weighted samples."""
        # The products are rounded once, each for itself: their sums are exact again, and weights
        # that are whole numbers count like repetitions.
        amounts = case_amounts(bins.size, weights, costs, slips)
        amounts["x"] = np.rint(x * (1.0 / MEAN_UNIT)) * weights
        amounts["x_squares"] = np.rint(x * x * (1.0 / SQUARE_UNIT)) * weights
        for name, sums in self.sums.items():
            sums.add_at(bins, amounts[name], column)
        np.minimum.at(self._lightest[column], codes.astype(np.intp), weights)

    def take_ranges(self, narrower: ScoreBins, within: Integers) -> None:
        """Take the ranges from narrower bins of the same samples, which lie `within` these."""
        starts = np.flatnonzero(np.diff(within, prepend=-1))
        np.minimum.reduceat(narrower.ranges[0], starts, axis=1, out=self.ranges[0])
        np.maximum.reduceat(narrower.ranges[1], starts, axis=1, out=self.ranges[1])

    def merge(self, other: ScoreBins) -> None:
        """Add the samples of other bins of the same kind; without weights each weighs one."""
        self._latest.clear()
        for name, own in self.sums.items():
            own.merge(other.sums.get(name, other.sums["weight"]))
        np.minimum(self._smallest, other._smallest, out=self._smallest)
        np.maximum(self._largest, other._largest, out=self._largest)
        np.minimum(self._lightest, other._lightest, out=self._lightest)
        np.minimum(self.ranges[0], other.ranges[0], out=self.ranges[0])
        np.maximum(self.ranges[1], other.ranges[1], out=self.ranges[1])

    def table(self, name: str, column: int = 0, codes: slice = ALL) -> Floats:
        """One of the sums, by class and bin, of all or of some classes.

        Without weights "weight" is "number" and "squares", too.
        """
        sums, length = self.sums.get(name, self.sums["weight"]), self.layout.length
        first, last, _ = codes.indices(sums.shape[1] // length)
        found = sums.floats((column, slice(first * length, last * length)))
        return found.reshape(last - first, length)

    def score_sums(self, column: int = 0, codes: slice = ALL) -> Floats:
        """Sum of weight times score, by class and bin."""
        layout = self.layout
        found: Floats = self.table("weight", column, codes) * layout.centres
        found += self.table("x", column, codes) * (layout.widths * MEAN_UNIT)
        return found

    def squared_distance(self, column: int, code: int, point: float) -> float:
        """Sum over a class of weight times the squared distance of the scores to a point."""
        layout, own = self.layout, self._class_sums(column, code)
        apart = layout.centres - point
        terms = own.weight * apart**2
        terms += own.x * (2.0 * MEAN_UNIT * apart * layout.widths)
        terms += own.x_squares * (SQUARE_UNIT * layout.widths**2)
        return float(terms.sum())

    def _class_sums(self, column: int, code: int) -> ClassSums:
        """Sums of a class, which figures ask for again and again."""
        if (column, code) not in self._latest:
            parts = (
                self.table(name, column, slice(code, code + 1))[0]
                for name in ("weight", "x", "x_squares")
            )
            weight, x, x_squares = parts
            if len(self._latest) > 1:
                del self._latest[next(iter(self._latest))]
            held = np.flatnonzero(weight)
            self._latest[column, code] = ClassSums(weight, x, x_squares, held)
        return self._latest[column, code]

    def moments(self, column: int, code: int) -> BinMoments:
        """What is known of the scores of a class, which must have samples."""
        weights, sums, squares, held = self._class_sums(column, code)
        weights = weights.take(held)
        return BinMoments(
            centres=self.layout.centres.take(held),
            widths=self.layout.widths.take(held),
            weights=weights,
            means=sums.take(held) / weights * MEAN_UNIT,
            squares=squares.take(held) / weights * SQUARE_UNIT,
            smallest=float(self._smallest[column, code]),
            largest=float(self._largest[column, code]),
            lightest=float(self._lightest[column, code]),
        )

    def atoms(self, column: int, code: int) -> Atoms:
        """The bins of a class that hold any; `ranges` must be kept."""
        layout, (weight, x, _, held) = self.layout, self._class_sums(column, code)
        weight = weight.take(held)
        low, high = (part[column].take(held) for part in self.ranges)
        mean = weight * layout.centres.take(held)
        mean += x.take(held) * (layout.widths.take(held) * MEAN_UNIT)
        mean /= weight
        np.minimum(np.maximum(mean, low, out=mean), high, out=mean)
        return Atoms(low, high, weight, mean, self._squares(column, code, weight))

    def _squares(self, column: int, code: int, weight: Floats) -> Floats:
        """Sums of squared weights in the bins of a class that hold any; `weight` is there."""
        if "squares" not in self.sums:
            return weight
        squares: Floats = self.table("squares", column, slice(code, code + 1))[0]
        return np.asarray(squares[squares > 0.0])

    def points(
        self, column: int, code: int, sign: float, found: BinMoments | None = None
    ) -> PointSample:
        """Two points for each bin of a class, with its mean and variance; or minus them.

        `found` are its moments, if they are known.
        """
        if found is None:
            found = self.moments(column, code)
        squares = self._squares(column, code, found.weights)
        mean = found.centres + found.widths * found.means
        variance = np.maximum(found.squares - found.means**2, 0.0) * found.widths**2
        low = np.maximum(found.centres - 0.5 * found.widths, found.smallest)
        high = np.minimum(found.centres + 0.5 * found.widths, found.largest)
        below, above = np.maximum(mean - low, 0.0), np.maximum(high - mean, 0.0)
        # One deviation to both sides; where that leaves the bin, to its end and so much farther
        # on the other side that the variance is right.
        deviation = np.sqrt(variance)
        down = np.minimum(deviation, below)
        up = np.minimum(np.divide(variance, down, out=np.zeros_like(down), where=down > 0.0), above)
        down = np.divide(variance, up, out=np.zeros_like(up), where=up > 0.0)
        down = np.minimum(down, below)
        share = np.full_like(up, 0.5)
        np.divide(down, up + down, out=share, where=up + down > 0.0)
        shares = np.array([1.0 - share, share])
        values, weights = sign * np.array([mean - down, mean + up]), found.weights * shares
        carrying = shares > 0.0
        chosen: Any = ... if carrying.all() else carrying
        own = weights[chosen].ravel()
        own_squares = own if squares is found.weights else (squares * shares)[chosen].ravel()
        return PointSample(values[chosen].ravel(), own, own_squares)

    def to_arrays(self) -> list[NDArray[Any]]:
        """The state in few arrays, the same for the same samples."""
        sums = self.sums.values()
        for part in sums:
            part.settle()
        held = np.flatnonzero(self.sums["weight"].digits.any(axis=0))
        digits = [part.digits.reshape(len(part.digits), -1)[:, held] for part in sums]
        lowest = np.array([part.lowest for part in sums])
        ranges = [self.ranges[:, np.isfinite(self.ranges[0])]] if self.ranges.size else []
        # The least of 0.0 and −0.0 is either: adding zero makes it 0.0.
        extremes = self._smallest + 0.0, self._largest + 0.0
        return [held, lowest, *digits, *extremes, self._lightest, *ranges]

    def take_arrays(self, arrays: list[NDArray[Any]]) -> None:
        """Become the state that `to_arrays` gave; `fragility.scores.stored` checks the arrays."""
        self._latest.clear()
        held, lowest, *rest = arrays
        count = len(self.sums)
        for part, exponent, rows in zip(self.sums.values(), lowest, rest[:count], strict=True):
            part.take(int(exponent), rows, held)
        self._smallest[...], self._largest[...], self._lightest[...] = rest[count : count + 3]
        ranges = rest[count + 3 :]
        if ranges:
            columns, bins = np.divmod(held, self.sums["weight"].shape[1])
            bins = np.unique(columns * self.layout.length + bins % self.layout.length)
            self.ranges.reshape(2, -1)[:, bins] = ranges[0]
