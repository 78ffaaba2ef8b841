r"""Layouts of bins: equal bins, and bins that narrow towards 0 and 1.

Equal bins know little of an overconfident model, whose scores crowd at both ends. Here, with
:math:`r = \min(p, 1 - p)`, bins are :math:`2^{-(m + 3k)}` wide where
:math:`2^{-(5 + 4k)} \le r < 2^{-(1 + 4k)}`, :math:`k = 0, \ldots, 11`. Nearer to 0 and to 1 there
is one more bin on each side, and 0 and 1 have bins of their own.

Every bin is an interval :math:`[a, b)` of p on both sides of one half: a score on an edge lies
above it, as a rule "positive if p is at least `upper`" wants. The bin of a score depends on nothing
but the score.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from .._typing import Floats, Integers

#: Values of k; below the last of them is one bin.
_GROUPS = 12
#: Bits of the fraction of a float, and the exponent that stands for 1.
_FRACTION_BITS, _BIAS = 52, 1023


@dataclass(frozen=True)
class Uniform:
    """Equal bins around the multiples of a width, in which sketch files keep their scores.

    The saturated scores 0 and 1 are centres. A score half-way between two of them belongs to the
    even one.

    Parameters
    ----------
    n_bins : int
        One over the width, a power of two.
    """

    n_bins: int

    @property
    def length(self) -> int:
        """Number of bins: the bins of 0 and 1 are half as wide."""
        return self.n_bins + 1

    @cached_property
    def centres(self) -> Floats:
        """Middle of each bin."""
        return np.arange(self.length) / self.n_bins

    @cached_property
    def widths(self) -> Floats:
        """Width of each bin."""
        return np.full(self.length, 1.0 / self.n_bins)

    def places(self, scores: Floats) -> Integers:
        """Bin of each score."""
        return np.rint(scores * self.n_bins).astype(np.int64)

    def distances(self, scores: Floats, places: Integers) -> Floats:
        """Distance of each score to the centre of its bin, in widths."""
        found: Floats = scores * self.n_bins - places  # both exact
        return found


@dataclass(frozen=True)
class Tails:
    """Bins that narrow towards 0 and 1.

    Parameters
    ----------
    m : int
        Bins in the middle are :math:`2^{-m}` wide, 4 to 16.
    """

    m: int

    def __post_init__(self) -> None:
        if not 4 <= self.m <= 16:
            raise ValueError(f"m must be from 4 to 16; got {self.m!r}.")

    @cached_property
    def _table(self) -> tuple[Floats, Integers]:
        """By the exponent of r: bins in a unit, and what to add to the number of whole ones."""
        scale = np.zeros(_BIAS)
        offset = np.ones(_BIAS, dtype=np.int64)  # bin 0 holds 0 alone
        first = 2  # bin 1 holds all scores nearer to 0 than the last value of k
        for k in reversed(range(_GROUPS)):
            exponents = slice(_BIAS - 5 - 4 * k, _BIAS - 1 - 4 * k)
            scale[exponents] = 2.0 ** (self.m + 3 * k)
            below = 2 ** (self.m - 5 - k) if self.m >= 5 + k else 0
            offset[exponents] = first - below
            first += 2 ** (self.m - 1 - k) - below if self.m > k else 1
        return scale, offset

    @cached_property
    def length(self) -> int:
        """Number of bins."""
        return int(self.places(np.ones(1))[0]) + 1

    @cached_property
    def _below_half(self) -> int:
        """Bins of scores below one half."""
        scale, offset = self._table
        largest = np.nextafter(0.5, 0.0)
        exponent = _BIAS - 2
        return int(largest * scale[exponent]) + int(offset[exponent]) + 1

    def places(self, scores: Floats) -> Integers:
        """Bin of each score from 0 to 1, non-decreasing in the score."""
        scale, offset = self._table
        # Above one half the bins are mirrored. There [a, b) is (1 - b, 1 - a] of 1 - p, which is
        # [1 - b, 1 - a) of the float before it. Both differences are exact.
        upper = scores >= 0.5
        rest = 1.0 - scores
        bits = np.where(upper, rest.view(np.int64) - 1, scores.view(np.int64))
        np.maximum(bits, 0, out=bits)
        exponent = bits >> _FRACTION_BITS
        found: Integers = (bits.view(np.float64) * scale.take(exponent)).astype(np.int64)
        found += offset.take(exponent)
        found -= bits == 0  # 0 itself; of 1 - p only where p is 1
        return np.where(upper, 2 * self._below_half - 1 - found, found)

    def distances(self, scores: Floats, places: Integers) -> Floats:
        """Distance of each score to the centre of its bin, in widths."""
        found: Floats = scores - self.centres.take(places)
        found *= self._per_width.take(places)
        return found

    def within(self, wider: Tails) -> Integers:
        """Bin of a wider layout, of no larger `m`, that each of these lies in."""
        return np.searchsorted(wider.edges, self.edges, side="right") - 1

    @property
    def edges(self) -> Floats:
        """Least score of each bin, ascending; the last bin holds 1 alone."""
        return _edges(self.m)

    @property
    def centres(self) -> Floats:
        """A point of each bin: its middle; of 0 and 1 themselves."""
        return _centres(self.m)

    @property
    def widths(self) -> Floats:
        """The least power of two that each bin is not wider than."""
        return _widths(self.m)

    @property
    def _per_width(self) -> Floats:
        """One over each width: products with a power of two are exact, and fast."""
        return _per_width(self.m)


# Every report asks for the same few layouts: they are made once, and nobody may change them.


@cache
def _edges(m: int) -> Floats:
    half = _edges_below_half(m)
    # The bin after [a, b) begins at b: mirrored, at 1 - b.
    mirrored = 1.0 - np.append(half[2:], 0.5)[::-1]
    return _kept(np.concatenate([half, mirrored, [1.0]]))


def _edges_below_half(m: int) -> Floats:
    parts: list[Any] = [0.0, np.nextafter(0.0, 1.0)]
    for k in reversed(range(_GROUPS)):
        width = 2.0 ** -(m + 3 * k)
        low, high = 2.0 ** -(5 + 4 * k), 2.0 ** -(1 + 4 * k)
        whole = np.arange(np.floor(low / width) + 1, np.ceil(high / width)) * width
        parts.extend([low, *whole.tolist()])
    return np.array(parts)


@cache
def _centres(m: int) -> Floats:
    edges = _edges(m)
    return _kept(np.concatenate([[0.0], 0.5 * (edges[1:-1] + edges[2:]), [1.0]]))


@cache
def _widths(m: int) -> Floats:
    edges = _edges(m)
    widths = np.diff(edges, append=edges[-1])
    widths[0], widths[-1] = widths[1], widths[-2]
    return _kept(2.0 ** np.ceil(np.log2(widths)))


@cache
def _per_width(m: int) -> Floats:
    return _kept(1.0 / _widths(m))


def _kept(values: Floats) -> Floats:
    values.setflags(write=False)
    return values


#: Bins of the scores from 0 to 1, in ascending order: their number is `length`, no score is farther
#: from the centre of its bin than half of its width, and widths are powers of two.
Layout = Uniform | Tails
