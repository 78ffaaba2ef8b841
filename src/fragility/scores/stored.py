"""Checked reading of sketches and states from untrusted bytes.

A checksum tells that bytes are as they were written, not who wrote them. Sizes are checked before
any memory is asked for, and numbers against each other: a sum must be one that samples in its bin
can have, and so must means, squares and extremes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._labels import listed
from .._names import shown
from .._parameters import require
from .._typing import Floats, Integers
from ..envelope import Envelope
from ..exact import ExactSums
from .bins import MEAN_UNIT, SQUARE_UNIT
from .cases import HEAVIEST, LIGHTEST
from .layout import Layout

#: Exponents of digits, in digits of 32 bits, that sums of weights in this range stay within.
_FARTHEST_DIGIT = 16
#: Allowed for the rounding of floats that exact sums are turned into.
_ROUNDING = 1e-12
#: Allowed for the rounding of x and x², which are kept to 2⁻³⁷ and 2⁻²³.
_ROUNDED = 2e-7
#: Most bytes that labels from a file may take.
_LONGEST_LABELS = 1 << 26


def check_head(head: dict[str, Any], names: Iterable[str]) -> None:
    """A head has these entries, no more and no less."""
    unlike = set(head) ^ set(names)
    require(not unlike, f"its head lacks, or should not have, {listed(sorted(unlike))}.")


class StoredArrays:
    """Arrays from bytes, which are read one after the other.

    Parameters
    ----------
    arrays : iterable of ndarray
    """

    def __init__(self, arrays: Iterable[NDArray[Any]]) -> None:
        self._rest = deque(arrays)

    def __len__(self) -> int:
        return len(self._rest)

    def first(self, count: int) -> StoredArrays:
        """The next arrays, to be read later."""
        found = list(islice(self._rest, count))
        for _ in found:
            self._rest.popleft()
        return StoredArrays(found)

    def read(self, kind: str, shape: tuple[int | None, ...], name: str) -> NDArray[Any]:
        """The next array: whole numbers (kind "i") or floats ("f"), where None is any length."""
        require(self._rest, "it lacks arrays.")
        part = self._rest.popleft()
        fits = len(part.shape) == len(shape) and all(
            wanted in (None, found) for found, wanted in zip(part.shape, shape, strict=True)
        )
        if part.dtype.kind != kind or not fits:
            wanted = "whole numbers" if kind == "i" else "floats"
            raise ValueError(
                f"its array of {name} has dtype {part.dtype} and shape {part.shape}; it must hold "
                f"{wanted} of shape {shape}."
            )
        return part

    def places(self, size: int, name: str) -> Integers:
        """Ascending places of sums that are not zero, among `size` sums."""
        held = self.read("i", (None,), name)
        inside = (held >= 0) & (held < size)
        ordered = inside.all() and (np.diff(held) > 0).all()
        require(ordered, f"its {name} are not in order, or outside of those that it has.")
        return held

    def support(self, shape: tuple[int, ...]) -> Integers:
        """Numbers of samples."""
        found = self.read("i", shape, "samples")
        possible = (found >= 0).all() and sum(found.ravel().tolist()) < 2**63
        require(possible, "its number of samples does not fit the weights and bins that they have.")
        return found

    def finish(self) -> None:
        """Refuse arrays that nobody has read."""
        require(not self._rest, "it has more arrays than it should.")


def check_memory(n_bytes: int, most: int) -> None:
    """Refuse what would take more bytes than it may."""
    flaw = f"it needs {n_bytes / 2**30:.1f} GiB, more than {most / 2**30:g} GiB."
    require(n_bytes <= most, flaw)


def read_bins(
    source: StoredArrays,
    layout: Layout,
    counts: Integers,
    most_bytes: int,
    *,
    n_extra: int = 0,
    ranges: bool = False,
) -> list[NDArray[Any]]:
    """Arrays of `ScoreBins.to_arrays`, for `ScoreBins.take_arrays`.

    Parameters
    ----------
    source : StoredArrays
    layout : Layout
    counts : ndarray of shape (n_columns, n_classes)
        Samples that the bins are said to hold.
    most_bytes : int
        Most memory that the bins may take.
    n_extra : int
        Number of sums besides the sums of weights, x and x².
    ranges : bool
        Whether there is a least and a largest score of each bin.

    Raises
    ------
    ValueError
        If no samples can have made them, or if they take too much memory.
    """
    n_sums, size = 3 + n_extra, counts.size * layout.length
    held = source.places(size, "bins")
    lowest = source.read("i", (n_sums,), "digits")
    digits = [source.read("i", (None, held.size), "sums") for _ in range(n_sums)]
    extremes = [
        source.read("f", counts.shape, name) for name in ("smallest", "largest", "lightest")
    ]
    exact = [check_sums(*part) for part in zip(digits, lowest.tolist(), strict=True)]
    weights, sums, squares, *extra = (part.floats() for part in exact)
    places, bins = np.divmod(held, layout.length)
    groups = _Groups(
        layout, counts.shape, places, bins, weights, sums * MEAN_UNIT, squares * SQUARE_UNIT
    )
    _check_bins(groups)
    positive = all((part >= 0.0).all() for part in extra)
    require(positive, "a sum of squares or costs of its bins is negative.")
    if extra:
        fits = (extra[1] <= weights**2 * (1.0 + _ROUNDING)).all()
        require(fits, "its squared weights are larger than the squares of its weights.")
    _check_extremes(groups, *(part.ravel() for part in extremes))
    _check_support(counts, groups, extremes[2])
    of_bins = [_read_ranges(source, groups)] if ranges else []
    check_memory(8 * sum(map(len, digits)) * size, most_bytes)
    return [held, lowest, *digits, *extremes, *of_bins]


def read_sums(source: StoredArrays, sums: ExactSums, name: str) -> None:
    """Fill exact sums, of which those that are not zero were stored."""
    held = source.places(int(np.prod(sums.shape)), name)
    lowest = int(source.read("i", (1,), name)[0])
    digits = source.read("i", (None, held.size), name)
    if held.size:
        check_sums(digits, lowest)
    else:
        empty = len(digits) == 1 and lowest == 0
        require(empty, f"its {name} are not written as this library writes them.")
    sums.take(lowest, digits, held)


def check_sums(digits: NDArray[Any], lowest: int) -> ExactSums:
    """Exact sums of these digits; refused where sums of samples do not have such."""
    possible = abs(lowest) <= _FARTHEST_DIGIT and 1 <= len(digits) <= 2 * _FARTHEST_DIGIT - lowest
    require(possible, "its sums have digits that sums of samples do not have.")
    found = ExactSums.of_digits(digits, lowest)
    same = found.lowest == lowest and np.array_equal(found.digits, digits)
    require(same, "its sums have digits that this library writes in another way.")
    return found


class _Groups(NamedTuple):
    """Bins that are not empty: their column and class, their place, and their sums.

    The sums are of x and x², where x is the distance to the centre in widths.
    """

    layout: Layout
    shape: tuple[int, ...]
    places: Integers
    bins: Integers
    weights: Floats
    sums: Floats
    squares: Floats

    def totals(self, of: Floats | None = None) -> Floats:
        """Sum over the bins of each column and class; by default their number."""
        return np.bincount(self.places, of, int(np.prod(self.shape))).astype(np.float64)

    @property
    def centres(self) -> Floats:
        return self.layout.centres[self.bins]

    @property
    def widths(self) -> Floats:
        return self.layout.widths[self.bins]


def _check_bins(groups: _Groups) -> None:
    weights, sums, squares = groups.weights, groups.sums, groups.squares
    require((weights > 0.0).all(), "a weight of its bins is not positive.")
    # No score is below 0 or above 1.
    low = np.maximum(-groups.centres / groups.widths, -0.5) * weights
    high = np.minimum((1.0 - groups.centres) / groups.widths, 0.5) * weights
    room = _ROUNDED * weights
    means = sums / weights
    possible = (
        (low - room <= sums)
        & (sums <= high + room)
        & (means * means * weights - room <= squares)
        & (squares <= 0.25 * weights + room)
        & (squares >= 0.0)
    )
    require(possible.all(), "the sums of its bins are impossible for scores in these bins.")


def _read_ranges(source: StoredArrays, groups: _Groups) -> NDArray[Any]:
    """The least and the largest score of each bin that is not empty, in any class."""
    length = groups.layout.length
    columns = groups.places // groups.shape[1]
    held = np.unique(columns * length + groups.bins)
    ranges = source.read("f", (2, held.size), "ranges")
    bins = held % length
    near = np.abs(ranges - groups.layout.centres[bins]) <= 0.5 * groups.layout.widths[bins]
    possible = near.all() and (ranges[0] <= ranges[1]).all() and (ranges >= 0.0).all()
    require(possible, "the ranges of its bins are impossible for scores in these bins.")
    require((ranges <= 1.0).all(), "the ranges of its bins go beyond 1.")
    return ranges


def _check_extremes(groups: _Groups, smallest: Floats, largest: Floats, lightest: Floats) -> None:
    held = groups.totals() > 0.0
    for name, part, none in (
        ("smallest", smallest, np.inf),
        ("largest", largest, -np.inf),
        ("lightest", lightest, np.inf),
    ):
        empty = (part[~held] == none).all()
        require(empty, f"it has a {name} value of a group without samples.")
    total = groups.totals(groups.weights)[held] * (1.0 + _ROUNDING)
    possible = (lightest[held] >= LIGHTEST) & (lightest[held] <= np.minimum(HEAVIEST, total))
    flaw = "its lightest weights are out of range, or above the weight of the group."
    require(possible.all(), flaw)
    least = lightest[groups.places]
    enough = (groups.weights * (1.0 + _ROUNDING) >= least).all()
    require(enough, "a bin weighs less than the lightest sample.")
    # A bin that weighs less than twice the lightest sample holds one sample.
    one = groups.weights < (2.0 - _ROUNDING) * least
    means = groups.sums / groups.weights
    spread = groups.squares > (means * means + _ROUNDED) * groups.weights
    flaw = "the sums of a bin that holds one sample are impossible for one sample."
    require(not (one & spread).any(), flaw)
    # The extremes lie in the outermost bins that hold any, and their means between them.
    first = np.flatnonzero(np.diff(groups.places, prepend=-1))
    last = np.flatnonzero(np.diff(groups.places, append=-1))
    room = 1e-9
    for name, part, bins, sign in (
        ("smallest", smallest, first, 1.0),
        ("largest", largest, last, -1.0),
    ):
        at = part[held]
        possible = (at >= 0.0) & (at <= 1.0)
        distance = (np.where(possible, at, 2.0) - groups.centres[bins]) / groups.widths[bins]
        possible &= abs(distance) <= 0.5
        possible &= sign * (means[bins] - distance) >= -room
        flaw = f"its {name} scores are not in the outermost bins that hold samples."
        require(possible.all(), flaw)
    require((smallest[held] <= largest[held]).all(), "a smallest score is above the largest one.")


def _check_support(counts: Integers, groups: _Groups, lightest: Floats) -> None:
    """The samples of each class are as many as they are said to be, in every column."""
    weight, used = (groups.totals(of).reshape(groups.shape) for of in (groups.weights, None))
    least, most = np.where(used > 0.0, lightest, 0.0), np.where(used > 0.0, HEAVIEST, 0.0)
    possible = (
        (used <= counts)
        & (least * counts <= weight * (1.0 + _ROUNDING))
        & (weight <= most * counts)
        & ((used > 0.0) == (counts > 0))
    )
    flaw = "its number of samples does not fit the weights and bins that they have."
    require(possible.all(), flaw)
    # Every column has the same samples, whatever class they are of.
    same = weight if (counts == counts[:1]).all() else weight.sum(axis=1, keepdims=True)
    equal = np.allclose(same, same[:1], rtol=1e-9, atol=0.0)
    require(equal, "its columns differ in the weight of the samples.")


def plain_labels(labels: NDArray[Any]) -> list[Any]:
    """Labels as a file has them: 0 and 1 may have come as booleans."""
    found: list[Any] = (labels.astype(np.int64) if labels.dtype.kind == "b" else labels).tolist()
    return found


def seal(
    envelope: Envelope, head: dict[str, Any], arrays: list[NDArray[Any]], holder: str
) -> bytes:
    """Bytes of a head with labels, and of arrays."""
    try:
        return envelope.seal(head, arrays)
    except TypeError:
        named = f" (pos_label={head['pos_label']!r})" if "pos_label" in head else ""
        raise ValueError(
            f"A {holder} is written with labels that are text, whole numbers or booleans; these "
            f"are {listed(head['labels'] or [])}{named}."
        ) from None


def check_stored_labels(labels: Any) -> None:
    """Labels, before they become an array that gives each the room of the longest."""
    kinds = {type(label) for label in labels} if isinstance(labels, list) else {dict}
    if kinds not in ({str}, {int}):
        raise ValueError(
            f"its classes are {shown(labels)}; they must be a list of text or integers."
        )
    if kinds == {str}:
        short = 4 * len(labels) * max(map(len, labels)) <= _LONGEST_LABELS
        require(short, "the names of its classes take more than 64 MiB.")
