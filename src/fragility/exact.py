r"""Sums that do not depend on the order of their terms.

Floating-point addition is not associative, so that two machines that merge the same parts in
different order would disagree in the last digits. Here every sum is a whole number in fixed point,
kept as digits in base :math:`2^{32}`: adding is exact, and the digits of a sum are unique.

Use these sums where parts are merged or stored; use `math.fsum` for a few numbers in one place.
"""

from __future__ import annotations

from math import frexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._typing import Floats, Integers

#: Terms that may be added at once.
MOST_TERMS = 1 << 16
_BASE_BITS = 32
_BASE = 1 << _BASE_BITS
#: What pending additions may amount to before digits must be carried.
_ROOM = 1 << 61
_LARGEST_TOTAL = 1 << 53
#: The least positive float is two to this power.
_LEAST_BITS = -1074
#: Powers of two that products with are exact but for the rounding of the product.
_LEAST_FACTOR, _LARGEST_FACTOR = -1022, 1023
#: Added to a float, it leaves no room for a fraction; and its own bits.
_WHOLE = 1.5 * 2.0**52
_WHOLE_BITS = np.float64(_WHOLE).view(np.int64)


class ExactSums:
    """An array of exact sums of floats.

    Parameters
    ----------
    shape : tuple of int
        Shape of the array of sums.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.lowest = 0  # exponent of the lowest digit, in digits
        self.digits: Integers = np.zeros((1, *shape), dtype=np.int64)
        self._pending = 0

    def add(self, totals: NDArray[Any], most: int = _LARGEST_TOTAL) -> None:
        """Add a whole number to each sum. They are up to `most`, which is at most 2⁶¹."""
        if self._pending >= _ROOM:
            self.settle()
        self._pending += most
        self._reach(0, 0)
        self.digits[-self.lowest] += totals.astype(np.int64)

    def add_each(
        self,
        bins: Integers,
        terms: Integers | int,
        place: Any = ...,
        exponent: int = 0,
        most: int | None = None,
    ) -> None:
        """Add whole numbers, each to the sum at its bin, among all sums or those at a place.

        At most `MOST_TERMS`, below 2⁴⁵, or one number to all bins. The time does not depend on how
        many sums there are. `most` is a bound on the sizes of the terms, if one is known.
        """
        assert bins.size <= MOST_TERMS
        if self._pending >= _ROOM:
            self.settle()
        if most is None:
            most = max(int(np.max(terms, initial=0)), -int(np.min(terms, initial=0)))
        self._pending += max(most * bins.size, _LARGEST_TOTAL)
        self._reach(exponent, exponent)
        np.add.at(self.digits[exponent - self.lowest][place].reshape(-1), bins, terms)

    def add_at(self, bins: Integers, terms: Floats, place: Any = ...) -> None:
        """Add each term to the sum at its bin, as `add_each` does; at most `MOST_TERMS`."""
        rest = terms.copy()
        largest = float(np.abs(rest).max(initial=0.0))
        exponent = (frexp(largest)[1] - 1) // _BASE_BITS
        while rest.any():
            bits = _BASE_BITS * exponent
            # Exact: the trailing bits are left. The unit of the tiniest floats is not a float.
            if bits >= _LEAST_BITS:
                unit = 2.0**bits
                digit = np.trunc(rest / unit)
                rest -= digit * unit
            else:
                digit = np.trunc(np.ldexp(rest, -bits))
                rest -= np.ldexp(digit, bits)
            self.add_each(bins, digit.astype(np.int64), place, exponent)
            exponent -= 1

    def merge(self, other: ExactSums) -> None:
        """Add the sums of another array of the same shape."""
        self.settle()
        other.settle()
        self._reach(other.lowest, other.lowest + len(other.digits) - 1)
        start = other.lowest - self.lowest
        self.digits[start : start + len(other.digits)] += other.digits
        self._pending = _BASE
        self.settle()

    def settle(self) -> None:
        """Carry, so that equal sums have equal digits: all but the top one are in [0, base)."""
        if not self._pending:
            return
        carried = 0
        digits = list(self.digits)
        for k, row in enumerate(digits):
            digits[k] = row + carried
            carried = digits[k] >> _BASE_BITS
            digits[k] &= _BASE - 1
        digits.append(np.zeros(self.shape, dtype=np.int64) + carried)
        # A top digit that only repeats the sign of the one below is not needed.
        while len(digits) > 1:
            below = digits[-2] - ((digits[-2] >> (_BASE_BITS - 1)) << _BASE_BITS)
            if not np.array_equal(digits[-1], below >> _BASE_BITS):
                break
            digits[-2:] = [below]
        while len(digits) > 1 and not digits[0].any():
            del digits[0]
            self.lowest += 1
        if len(digits) == 1 and not digits[0].any():
            self.lowest = 0
        self.digits = np.stack(digits)
        self._pending = 0

    @classmethod
    def of_digits(cls, rows: Integers, lowest: int) -> ExactSums:
        """Sums with these digits from the lowest on, brought to their unique form."""
        sums = cls(rows.shape[1:])
        sums.lowest, sums.digits, sums._pending = lowest, rows, _BASE
        sums.settle()
        return sums

    def take(self, lowest: int, rows: Integers, places: Integers) -> None:
        """Become sums that are zero but at some places, of digits in their unique form."""
        self.lowest, self._pending = lowest, 0
        self.digits = np.zeros((len(rows), *self.shape), dtype=np.int64)
        self.digits.reshape(len(rows), -1)[:, places] = rows

    def floats(self, place: Any = ...) -> Floats:
        """The sums at a place, correct but for the last bits."""
        total: Floats = _times_power(self.digits[-1][place], self.lowest + len(self.digits) - 1)
        for k in reversed(range(len(self.digits) - 1)):
            total += _times_power(self.digits[k][place], self.lowest + k)
        return total

    def _reach(self, lowest: int, highest: int) -> None:
        """Make room for digits down to one exponent and up to another."""
        below = max(self.lowest - lowest, 0)
        above = max(highest - self.lowest - len(self.digits) + 1, 0)
        if below or above:
            rooms = [np.zeros((count, *self.shape), dtype=np.int64) for count in (below, above)]
            self.digits = np.concatenate([rooms[0], self.digits, rooms[1]])
            self.lowest -= below


def _times_power(digits: Integers, exponent: int) -> Floats:
    """Digits times a power of the base, as floats."""
    found: Floats = digits.astype(np.float64)
    bits = _BASE_BITS * exponent
    if _LEAST_FACTOR <= bits <= _LARGEST_FACTOR:
        found *= 2.0**bits  # the same as `ldexp`, and faster
        return found
    return np.asarray(np.ldexp(found, bits))


def whole_numbers(terms: Floats) -> Integers:
    """The nearest whole numbers, of equally near ones the even, of terms that are written over.

    Terms of sizes up to 2⁵¹. The same as `rint`, without the slow conversion.
    """
    terms += _WHOLE
    found: Integers = terms.view(np.int64)
    found -= _WHOLE_BITS
    return found
