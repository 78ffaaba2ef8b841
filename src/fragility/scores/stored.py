"""What sketches and states from elsewhere hold: refused where no samples can have made it.

A checksum tells that bytes are as they were written, not who wrote them. Sizes are checked before
any memory is asked for, and numbers against each other: a weight lies within its bin, and so do
means, squares and extremes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._names import shown
from .._typing import Floats, Integers
from ..exact import ExactSums
from .bins import MEAN_UNIT, SQUARE_UNIT
from .layout import Layout

#: Weights and costs of cases beyond these would need very many digits.
LIGHTEST, HEAVIEST = 1e-30, 1e30
#: Exponents of digits, in digits of 32 bits, that sums of such weights stay within.
_FARTHEST_DIGIT = 16
#: Allowed for the rounding of floats that exact sums are turned into.
_ROUNDING = 1e-12
#: And for that of x and x², which are kept to 2⁻³⁷ and 2⁻²³.
_ROUNDED = 2e-7
#: Labels from a file may take so many bytes.
_LONGEST_LABELS = 1 << 26


def check_stored(
    arrays: Sequence[NDArray[Any]],
    layout: Layout,
    counts: Integers,
    *,
    n_extra: int = 0,
    ranges: bool = False,
) -> int:
    """Bytes of the bins that `ScoreBins.to_arrays` makes up.

    Parameters
    ----------
    arrays : sequence of ndarray
    layout : Layout
    counts : ndarray of shape (n_columns, n_classes)
        Samples that they are said to hold.
    n_extra : int
        Sums beside those of weights, x and x².
    ranges : bool
        Whether there is a least and a largest score of each bin.

    Raises
    ------
    ValueError
        If no samples can have made them.
    """
    n_sums = 3 + n_extra
    expected = 2 + n_sums + 3 + ranges
    if len(arrays) != expected:
        raise ValueError(f"it has {len(arrays)} arrays of bins instead of {expected}.")
    held, lowest, *rest = arrays
    digits, (smallest, largest, lightest, *of_bins) = rest[:n_sums], rest[n_sums:]
    check_kind(held, "i", (held.size,), "bins")
    check_kind(lowest, "i", (n_sums,), "digits")
    for rows in digits:
        check_kind(rows, "i", (rows.shape[0] if rows.ndim else 0, held.size), "sums")
    for name, part in (("smallest", smallest), ("largest", largest), ("lightest", lightest)):
        check_kind(part, "f", counts.shape, name)
    size = counts.size * layout.length
    inside = (held >= 0) & (held < size)
    if not inside.all() or (np.diff(held) <= 0).any():
        raise ValueError("its bins are not in order, or outside of those that it has.")
    exact = [check_sums(*part) for part in zip(digits, lowest.tolist(), strict=True)]
    weights, sums, squares, *extra = (part.floats() for part in exact)
    places, bins = np.divmod(held, layout.length)
    groups = _Groups(
        layout, counts.shape, places, bins, weights, sums * MEAN_UNIT, squares * SQUARE_UNIT
    )
    _check_bins(groups)
    for part in extra:
        if not (part >= 0.0).all():
            raise ValueError("a sum of squares or costs of its bins is negative.")
    if extra and not (extra[1] <= weights**2 * (1.0 + _ROUNDING)).all():
        raise ValueError("its squared weights are larger than the squares of its weights.")
    _check_extremes(groups, smallest.ravel(), largest.ravel(), lightest.ravel())
    _check_support(counts, groups, lightest)
    if ranges:
        _check_ranges(of_bins[0], groups)
    return 8 * sum(len(rows) for rows in digits) * size


def check_sums(digits: NDArray[Any], lowest: int) -> ExactSums:
    """Exact sums of these digits; refused where sums of samples do not have such."""
    if not (abs(lowest) <= _FARTHEST_DIGIT and 1 <= len(digits) <= 2 * _FARTHEST_DIGIT - lowest):
        raise ValueError("its sums have digits that sums of samples do not have.")
    found = ExactSums.of_digits(digits, lowest)
    if found.lowest != lowest or not np.array_equal(found.digits, digits):
        raise ValueError("its sums have digits that this library writes in another way.")
    return found


class _Groups(NamedTuple):
    """Bins that hold anything: their column and class, their place, and what they hold.

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


def check_kind(part: NDArray[Any], kind: str, shape: tuple[int, ...], name: str) -> None:
    """Refuse an array of another type or shape."""
    if part.dtype.kind != kind or part.shape != shape:
        wanted = "whole numbers" if kind == "i" else "floats"
        raise ValueError(
            f"its array of {name} has dtype {part.dtype} and shape {part.shape}; it must hold "
            f"{wanted} of shape {shape}."
        )


def _check_bins(groups: _Groups) -> None:
    weights, sums, squares = groups.weights, groups.sums, groups.squares
    if not (weights > 0.0).all():
        raise ValueError("a weight of its bins is not positive.")
    # No score is below 0 or above 1.
    low = np.maximum(-groups.centres / groups.widths, -0.5) * weights
    high = np.minimum((1.0 - groups.centres) / groups.widths, 0.5) * weights
    room = _ROUNDED * weights
    means = sums / weights
    if not (
        (low - room <= sums)
        & (sums <= high + room)
        & (means * means * weights - room <= squares)
        & (squares <= 0.25 * weights + room)
        & (squares >= 0.0)
    ).all():
        raise ValueError("the sums of its bins are not those of scores in these bins.")


def _check_ranges(ranges: NDArray[Any], groups: _Groups) -> None:
    """The least and the largest score of each bin that holds any, in any class."""
    length = groups.layout.length
    columns = groups.places // groups.shape[1]
    held = np.unique(columns * length + groups.bins)
    check_kind(ranges, "f", (2, held.size), "ranges")
    bins = held % length
    apart = np.abs(ranges - groups.layout.centres[bins]) <= 0.5 * groups.layout.widths[bins]
    if not (apart.all() and (ranges[0] <= ranges[1]).all() and (ranges >= 0.0).all()):
        raise ValueError("the ranges of its bins are not those of scores in these bins.")
    if not (ranges <= 1.0).all():
        raise ValueError("the ranges of its bins go beyond 1.")


def _check_extremes(groups: _Groups, smallest: Floats, largest: Floats, lightest: Floats) -> None:
    held = groups.totals() > 0.0
    for name, part, none in (
        ("smallest", smallest, np.inf),
        ("largest", largest, -np.inf),
        ("lightest", lightest, np.inf),
    ):
        if not (part[~held] == none).all():
            raise ValueError(f"it has a {name} value of a group without samples.")
    weight = groups.totals(groups.weights)
    total = weight[held] * (1.0 + _ROUNDING)
    if not ((lightest[held] >= LIGHTEST) & (lightest[held] <= np.minimum(HEAVIEST, total))).all():
        raise ValueError("its lightest weights are out of range, or above the weight of the group.")
    if (groups.weights * (1.0 + _ROUNDING) < lightest[groups.places]).any():
        raise ValueError("a bin weighs less than the lightest sample.")
    # Less than twice the lightest sample is one sample.
    one = groups.weights < (2.0 - _ROUNDING) * lightest[groups.places]
    means = groups.sums / groups.weights
    if (one & (groups.squares > (means * means + _ROUNDED) * groups.weights)).any():
        raise ValueError("the sums of a bin that holds one sample are not those of one.")
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
        mean = groups.sums[bins] / groups.weights[bins]
        if not (possible & (sign * (mean - distance) >= -room)).all():
            raise ValueError(f"its {name} scores are not in the outermost bins that hold samples.")
    if not (smallest[held] <= largest[held]).all():
        raise ValueError("a smallest score is above the largest one.")


def _check_support(counts: Integers, groups: _Groups, lightest: Floats) -> None:
    """The samples of each class are as many as they are said to be, in every column."""
    weight, used = (groups.totals(of).reshape(groups.shape) for of in (groups.weights, None))
    ends = np.where(used > 0.0, lightest, 0.0), np.where(used > 0.0, HEAVIEST, 0.0)
    if not (
        (used <= counts)
        & (ends[0] * counts <= weight * (1.0 + _ROUNDING))
        & (weight <= ends[1] * counts)
        & ((used > 0.0) == (counts > 0))
    ).all():
        raise ValueError("its number of samples does not fit the weights and bins that they have.")
    # Every column has the same samples, whatever class they are of.
    same = weight if (counts == counts[:1]).all() else weight.sum(axis=1, keepdims=True)
    if not np.allclose(same, same[:1], rtol=1e-9, atol=0.0):
        raise ValueError("its columns differ in the weight of the samples.")


def check_support(support: NDArray[Any], shape: tuple[int, ...]) -> None:
    """Numbers of samples that can be."""
    check_kind(support, "i", shape, "samples")
    if (support < 0).any() or sum(support.ravel().tolist()) >= 2**63:
        raise ValueError("its number of samples does not fit the weights and bins that they have.")


def check_stored_labels(labels: Any) -> None:
    """Before they become an array, in which every label has the room of the longest."""
    kinds = {type(label) for label in labels} if isinstance(labels, list) else {dict}
    if kinds not in ({str}, {int}):
        raise ValueError(
            f"its classes are {shown(labels)}; they must be a list of text or integers."
        )
    if kinds == {str} and 4 * len(labels) * max(map(len, labels)) > _LONGEST_LABELS:
        raise ValueError("the names of its classes take more than 64 MiB.")
