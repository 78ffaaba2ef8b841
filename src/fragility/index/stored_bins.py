"""Arrays of a sketch that come from elsewhere: refused where no samples can have made them.

A checksum tells that bytes are as they were written, not who wrote them. Sizes are checked before
any memory is asked for, and numbers against each other: a weight lies within its bin, and so do
means, squares and extremes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..exact import ExactSums
from ..moments import Floats
from .score_bins import MEAN_UNIT, SQUARE_UNIT

__all__ = ["HEAVIEST", "LIGHTEST", "Shape", "check_stored"]

#: Weights beyond these would need very many digits.
LIGHTEST, HEAVIEST = 1e-30, 1e30
#: Exponents of digits, in digits of 32 bits, that sums of such weights stay within.
_FARTHEST_DIGIT = 12
#: Allowed for the rounding of floats that exact sums are turned into.
_ROUNDING = 1e-12
#: And for that of x and x², which are kept to 2⁻³⁷ and 2⁻²³.
_ROUNDED = 2e-7
_NAMES = (
    "samples",
    "bins",
    "digits",
    "weights",
    "sums",
    "squares",
    "smallest",
    "largest",
    "lightest",
)


class Shape(NamedTuple):
    """Columns of scores, groups of samples in each, and centres of bins."""

    columns: int
    groups: int
    centres: int

    @property
    def size(self) -> int:
        """Sums of one kind."""
        return self.columns * self.groups * self.centres


def check_stored(arrays: Sequence[NDArray[Any]], shape: Shape, n_classes: int) -> int:
    """Bytes of the state that the support of the classes and `ScoreBins.to_arrays` make up.

    Raises
    ------
    ValueError
        If no samples can have made them.
    """
    if len(arrays) != len(_NAMES):
        raise ValueError(f"it has {len(arrays)} arrays instead of {len(_NAMES)}.")
    support, held, lowest, *digits, smallest, largest, lightest = arrays
    extremes = shape.columns, shape.groups
    _check_kind(support, "i", (n_classes,), "samples")
    _check_kind(held, "i", (held.size,), "bins")
    _check_kind(lowest, "i", (3,), "digits")
    for name, rows in zip(("weights", "sums", "squares"), digits, strict=True):
        _check_kind(rows, "i", (rows.shape[0] if rows.ndim else 0, held.size), name)
    for name, part in (("smallest", smallest), ("largest", largest), ("lightest", lightest)):
        _check_kind(part, "f", extremes, name)
    inside = (held >= 0) & (held < shape.size)
    if not inside.all() or (np.diff(held) <= 0).any():
        raise ValueError("its bins are not in order, or outside of those that it has.")
    lengths = np.array([len(rows) for rows in digits])
    if not (
        (lowest >= -_FARTHEST_DIGIT)
        & (lowest <= _FARTHEST_DIGIT)
        & (lengths >= 1)
        & (lengths <= _FARTHEST_DIGIT - lowest)
    ).all():
        raise ValueError("its sums have digits that sums of samples do not have.")
    exact = [ExactSums.of_digits(*part) for part in zip(digits, lowest.tolist(), strict=True)]
    for own, rows, exponent in zip(exact, digits, lowest.tolist(), strict=True):
        if own.lowest != exponent or not np.array_equal(own.digits, rows):
            raise ValueError("its sums have digits that this library writes in another way.")
    weights, sums, squares = (part.floats() for part in exact)
    places, centres = np.divmod(held, shape.centres)
    groups = _Groups(shape, places, centres, weights, sums * MEAN_UNIT, squares * SQUARE_UNIT)
    _check_bins(groups)
    _check_extremes(groups, smallest.ravel(), largest.ravel(), lightest.ravel())
    _check_support(support, groups, lightest)
    return 8 * int(lengths.sum()) * shape.size


class _Groups(NamedTuple):
    """Bins that hold anything: their group among all, their centre, and what they hold.

    The sums are of x and x², where x is the distance to the centre in widths.
    """

    shape: Shape
    places: NDArray[np.int64]
    centres: NDArray[np.int64]
    weights: Floats
    sums: Floats
    squares: Floats

    @property
    def number(self) -> int:
        return self.shape.columns * self.shape.groups

    def totals(self, of: Floats | None = None) -> Floats:
        """Sum over the bins of each group; by default their number."""
        return np.bincount(self.places, of, self.number).astype(np.float64)


def _check_kind(part: NDArray[Any], kind: str, shape: tuple[int, ...], name: str) -> None:
    if part.dtype.kind != kind or part.shape != shape:
        wanted = "whole numbers" if kind == "i" else "floats"
        raise ValueError(
            f"its array of {name} has dtype {part.dtype} and shape {part.shape}; it must hold "
            f"{wanted} of shape {shape}."
        )


def _check_bins(groups: _Groups) -> None:
    _, _, centres, weights, sums, squares = groups
    if not (weights > 0.0).all():
        raise ValueError("a weight of its bins is not positive.")
    # The outermost bins are half as wide: no score is below 0 or above 1.
    low = np.where(centres == 0, 0.0, -0.5 * weights)
    high = np.where(centres == groups.shape.centres - 1, 0.0, 0.5 * weights)
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
    n_bins, room = groups.shape.centres - 1.0, 1e-9
    for name, part, bins, sign in (
        ("smallest", smallest, first, 1.0),
        ("largest", largest, last, -1.0),
    ):
        at = part[held]
        possible = (at >= 0.0) & (at <= 1.0)
        distance = np.where(possible, at, 2.0) * n_bins - groups.centres[bins]
        possible &= abs(distance) <= 0.5
        mean = groups.sums[bins] / groups.weights[bins]
        if not (possible & (sign * (mean - distance) >= -room)).all():
            raise ValueError(f"its {name} scores are not in the outermost bins that hold samples.")
    if not (smallest[held] <= largest[held]).all():
        raise ValueError("a smallest score is above the largest one.")


def _check_support(support: NDArray[np.int64], groups: _Groups, lightest: Floats) -> None:
    """The samples of each class are those of the groups, in every column."""
    table = groups.shape.columns, groups.shape.groups
    wrong = ValueError("its number of samples does not fit the weights and bins that they have.")
    if (support < 0).any() or sum(support.tolist()) >= 2**63:
        raise wrong
    one_versus_rest = table[1] != support.size
    counts = np.column_stack([support.sum() - support, support])
    if not one_versus_rest:
        counts = np.broadcast_to(support, table)
    weight = groups.totals(groups.weights).reshape(table)
    used = groups.totals().reshape(table)
    ends = np.where(used > 0.0, lightest, 0.0), np.where(used > 0.0, HEAVIEST, 0.0)
    if not (
        (used <= counts)
        & (ends[0] * counts <= weight * (1.0 + _ROUNDING))
        & (weight <= ends[1] * counts)
        & ((used > 0.0) == (counts > 0))
    ).all():
        raise wrong
    # Every column has the same samples; of one-versus-rest, whatever class they are of.
    same = weight.sum(axis=1, keepdims=True) if one_versus_rest else weight
    if not np.allclose(same, same[:1], rtol=1e-9, atol=0.0):
        raise ValueError("its columns differ in the weight of the samples.")
