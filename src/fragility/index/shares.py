r"""The worst relabelling of two classes, found and proven by bounds on intervals of their shares.

Sample n has the price P as a positive and Q as a negative, r is the part of it that ends as a
positive. The sum of the two classes' mean prices, J(r), is neither convex nor concave in the share
q of the positives, so its least value is bounded on intervals of q:

* At a share q those go first whose :math:`D_n = (1-q) P_n - q Q_n` is small, up to a level λ. Among
  samples of one label D grows with the logit, so they are the lowest logits of each label: sums
  from below and above, made once, give J at any q by a binary search.
* For a level λ(q) that is linear between two shares the excess :math:`\sum w (λ - D)_+` is convex
  there and lies below its chord, so that q (1 - q) J is never below the line between its ends less
  λ' (q - q₁) (q₂ - q). With q = sin² θ this is J ≥ m - (m + λ')₊ sin²(θ₂ - θ₁), m the smaller J of
  the two ends.

Intervals that may hold a J below what is allowed are halved until there are none, or until a
relabelling is known to be nearly the worst. At the ends one class has nothing but a trace of a
sample: a limit that no shift attains, but comes near to.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats, Mask
from .wasserstein import least_lack

Integers = NDArray[np.intp]
#: Relative difference of J from the target that is rounding.
TOLERANCE = 2.0**-40
#: A relabelling is taken once it is known to have this part of what the best could gain.
_ENOUGH = 0.9
_FIRST_SHARES, _MAX_ROUNDS = 33, 200


class Relabelling(NamedTuple):
    """The lowest of each label that end as positives, and a part of one more.

    `partial` says whose next one is split (1: of the positives), `part` the weight of it that ends
    as a positive.
    """

    negatives: int
    positives: int
    partial: int
    part: float


class Label:
    """Samples of one label, by logit, and what they pay at one multiplier."""

    def __init__(self, logits: Floats, weights: Floats) -> None:
        order = np.argsort(logits, kind="stable")
        self.logits, self.weights = logits[order], weights[order]
        self.below, self.above = _from_below(self.weights), _from_above(self.weights)

    def price(self, multiplier: float, as_positive: float, as_negative: float) -> None:
        """Prices at a multiplier, with the cost of the label as either; infinite at both ends."""
        up, down = least_lack(-self.logits, multiplier), least_lack(self.logits, multiplier)
        self.as_positive, self.as_negative = up + as_positive, down + as_negative
        self.paid_below = _from_below(self.weights * self.as_positive)
        self.paid_above = _from_above(self.weights * self.as_negative)

    def fitting(self, mass: Floats) -> Integers:
        """How many of the lowest fit into some mass; -1 if it is negative."""
        return np.searchsorted(self.below, mass, side="right") - 1

    def order(self, place: Integers, share: Floats) -> Floats:
        """D of the sample at a place, -∞ before the first and ∞ after the last."""
        inside = np.clip(place, 0, self.logits.size - 1)
        found = (1.0 - share) * self.as_positive[inside] - share * self.as_negative[inside]
        return np.where(place < 0, -inf, np.where(place >= self.logits.size, inf, found))


class _Shares(NamedTuple):
    """Shares of the positives, the least J there, and the level to the left and to the right."""

    share: Floats
    least: Floats
    left: Floats
    right: Floats

    def joined(self, other: _Shares) -> _Shares:
        return _Shares(*(np.concatenate(both) for both in zip(self, other, strict=True)))

    def chosen(self, which: Mask | slice) -> _Shares:
        return _Shares(*(values[which] for values in self))


class ShareSearch:
    """Search for a relabelling whose J is below what is allowed, at prices that are given."""

    def __init__(self, labels: list[Label], allowed: float) -> None:
        self.negatives, self.positives = labels
        self.allowed = allowed
        self.best: Relabelling | None = None
        self.best_value = allowed * (1.0 - TOLERANCE)

    def worst(self) -> Relabelling | None:
        """A relabelling of nearly the least J; None if no J is less than allowed."""
        angles = np.linspace(0.0, np.pi / 2.0, _FIRST_SHARES)[1:-1]
        own = self.positives.below[-1:]
        nodes = self._ends(self._at(np.unique(np.append(np.sin(angles) ** 2, own))))
        left, right = nodes.chosen(slice(-1)), nodes.chosen(slice(1, None))
        for _ in range(_MAX_ROUNDS):
            bound = _lower_bound(left, right)
            open_ = bound < self.best_value - TOLERANCE * self.allowed
            if not open_.any():
                break
            gain = self.allowed - self.best_value
            if self.best is not None and gain >= _ENOUGH * (self.allowed - bound.min()):
                break
            left, right = left.chosen(open_), right.chosen(open_)
            middle = _middle(left.share, right.share)
            inside = (left.share < middle) & (middle < right.share)
            if not inside.any():
                break
            left, right = left.chosen(inside), right.chosen(inside)
            found = self._at(middle[inside])
            left, right = left.joined(found), found.joined(right)
        return self.best

    def _ends(self, inner: _Shares) -> _Shares:
        """With the shares 0 and 1, where a class has nothing but a trace of one sample."""
        both = self.negatives, self.positives
        sizes = np.array([label.logits.size for label in both])
        first = min((0, 1), key=lambda label: float(both[label].as_positive[0]))
        last = min((0, 1), key=lambda label: float(both[label].as_negative[-1]))
        none, but_one = np.zeros(2, np.intp), sizes - (np.arange(2) == last)
        for counts, split in ((none, first), (but_one, last)):
            self._improve(counts[1:], counts[:1], np.array([split]))
        up, down = float(both[first].as_positive[0]), float(both[last].as_negative[-1])
        mean_up = sum(float(label.paid_below[-1]) for label in both)
        mean_down = sum(float(label.paid_above[0]) for label in both)
        start = _Shares(*(np.array([v]) for v in (0.0, up + mean_down, up, up)))
        end = _Shares(*(np.array([v]) for v in (1.0, mean_up + down, -down, -down)))
        return start.joined(inner).joined(end)

    def _at(self, share: Floats) -> _Shares:
        """The least J at some shares; remembers the best relabelling near them."""
        low, high = self.negatives, self.positives
        # The fewest positives after which no further one goes before the negatives that fit.
        some, most = np.zeros(share.size, np.intp), np.full(share.size, high.logits.size)
        while (some < most).any():
            middle = (some + most) // 2
            fitting = low.fitting(share - high.below[middle])
            enough = low.order(fitting, share) <= high.order(middle, share)
            some, most = np.where(enough, some, middle + 1), np.where(enough, middle, most)
        i, j = some, low.fitting(share - high.below[some])
        last = high.order(i - 1, share)
        split_negative = low.order(j, share) >= last
        # Else the last of these positives is split, after all negatives that go before it.
        some, most = np.zeros(share.size, np.intp), np.full(share.size, low.logits.size)
        while (some < most).any():
            middle = (some + most) // 2
            before = low.order(middle, share) < last
            some, most = np.where(before, middle + 1, some), np.where(before, most, middle)
        i = np.where(split_negative, i, i - 1)
        j = np.where(split_negative, j, some)
        split = np.where(split_negative, 0, 1)
        part = np.maximum(share - high.below[i] - low.below[j], 0.0)
        level = np.where(split_negative, low.order(j, share), last)
        left = np.maximum(high.order(i - 1, share), low.order(j - 1, share))
        right = np.minimum(high.order(i, share), low.order(j, share))
        whole = part == 0.0
        least = self._values(i, j, split, part)
        self._improve(i, j, split)
        return _Shares(share, least, np.where(whole, left, level), np.where(whole, right, level))

    def _values(self, i: Integers, j: Integers, split: Integers, part: Floats) -> Floats:
        """J where the lowest i positives, j negatives and a part of the next end as positives."""
        high, low = self.positives, self.negatives
        weight, up, down = self._next(i, j, split)
        rest = weight - part
        inside = high.below[i] + low.below[j] + part
        paid = high.paid_below[i] + low.paid_below[j] + part * up
        after_i, after_j = i + split, j + (1 - split)
        after_i = np.minimum(after_i, high.logits.size)
        after_j = np.minimum(after_j, low.logits.size)
        outside = high.above[after_i] + low.above[after_j] + rest
        owed = high.paid_above[after_i] + low.paid_above[after_j] + rest * down
        # A class with nothing in it is the limit of one with little of the sample that is split.
        first = np.where(inside > 0.0, paid / np.where(inside > 0.0, inside, 1.0), up)
        second = np.where(outside > 0.0, owed / np.where(outside > 0.0, outside, 1.0), down)
        return first + second

    def _next(self, i: Integers, j: Integers, split: Integers) -> tuple[Floats, Floats, Floats]:
        """Weight of the sample that is split, and its prices as positive and negative."""
        of_high = np.minimum(i, self.positives.logits.size - 1)
        of_low = np.minimum(j, self.negatives.logits.size - 1)
        found = []
        for name in ("weights", "as_positive", "as_negative"):
            high, low = getattr(self.positives, name), getattr(self.negatives, name)
            found.append(np.where(split == 1, high[of_high], low[of_low]))
        exhausted = np.where(
            split == 1, i == self.positives.logits.size, j == self.negatives.logits.size
        )
        found[0] = np.where(exhausted, 0.0, found[0])
        return found[0], found[1], found[2]

    def _improve(self, i: Integers, j: Integers, split: Integers) -> None:
        """Take the best part of each sample that is split: J is α/q + β/(1 - q) + a constant."""
        high, low = self.positives, self.negatives
        weight, up, down = self._next(i, j, split)
        inside, outside = high.below[i] + low.below[j], high.above[i] + low.above[j]
        alpha = high.paid_below[i] + low.paid_below[j] - up * inside
        beta = high.paid_above[i] + low.paid_above[j] - down * outside
        roots = np.sqrt(np.maximum(alpha, 0.0)), np.sqrt(np.maximum(beta, 0.0))
        both = roots[0] + roots[1]
        share = np.where(both > 0.0, roots[0] / np.where(both > 0.0, both, 1.0), inside)
        for part in (np.zeros_like(weight), weight, np.clip(share - inside, 0.0, weight)):
            values = self._values(i, j, split, part)
            place = int(np.argmin(values))
            if values[place] < self.best_value:
                self.best_value = float(values[place])
                self.best = Relabelling(
                    int(j[place]), int(i[place]), int(split[place]), float(part[place])
                )


def _lower_bound(left: _Shares, right: _Shares) -> Floats:
    """J between two shares is at least this."""
    least = np.minimum(left.least, right.least)
    width = right.share - left.share
    turn = (right.left - left.right) / width
    sine = width / (
        np.sqrt(right.share * (1.0 - left.share)) + np.sqrt(left.share * (1.0 - right.share))
    )
    bound: Floats = least - np.maximum(least + turn, 0.0) * sine**2
    return bound


def _middle(low: Floats, high: Floats) -> Floats:
    """The share midway in angle."""
    return np.sin((np.arcsin(np.sqrt(low)) + np.arcsin(np.sqrt(high))) / 2.0) ** 2


def _from_below(values: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(values)])


def _from_above(values: Floats) -> Floats:
    return np.concatenate([np.cumsum(values[::-1])[::-1], [0.0]])
