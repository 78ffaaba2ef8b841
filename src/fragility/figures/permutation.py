r"""A studentised permutation test that two independent samples have the same index.

At the root s of both samples together, the equations :math:`h_a(s)` and :math:`h_b(s)` are
compared: their difference over its standard error, each from its own sample. If the samples are of
one population, every exchange of cases of a class between them was as probable as what was seen. So
the statistic is held against its values under such exchanges, and the level is right however skewed
the tilted scores are. Where a model is hardly ever wrong few cases bear the index, and no normal or
Student's distribution fits. Because the statistic is studentised, the test is right in large
samples also where populations differ but for their index (Janssen 1997, Chung and Romano 2013).

The most tilted cases of a class are exchanged one by one, in drawn arrangements; sums over the
others are nearly normal, with the moments of sampling without replacement. So the cost hardly grows
with the number of cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from .._brent import bracketed_root
from .._typing import Floats, Interval, Mask
from ..index.root import SampleEquation
from ..moments import Sample

#: Cases of a class that are exchanged one by one, and pairs of opposite arrangements of them.
_CASES, _PAIRS = 64, 4_000
#: Standard errors, relative to what was seen, that bins and rounding may make of no difference.
_ROUNDING = 1e-8
#: A part of a case that is rounding.
_SAME_CASE = 1e-9


class SharedClass(NamedTuple):
    """A class in both samples: tilted scores over their mean in both together, less `base`.

    Attributes
    ----------
    base : float
        1 where scores are hardly tilted, and so what is left of them is exact; else 0, because
        the mean of a sample without the most tilted cases may be next to nothing.
    largest : ndarray of shape (m,)
        Of the most tilted cases.
    in_first : ndarray of bool, shape (m,)
        Which of these are in the first sample.
    others : ndarray
        Of points that stand for the other cases.
    counts : ndarray of shape (2, n_points)
        Cases at each of these points, by sample.
    """

    base: float
    largest: Floats
    in_first: Mask
    others: Floats
    counts: Floats

    @property
    def sizes(self) -> Floats:
        """Number of cases in each sample."""
        n_largest = np.array([np.sum(self.in_first), np.sum(~self.in_first)])
        found: Floats = np.rint(self.counts.sum(axis=1) + n_largest)
        return found


class _Statistic(NamedTuple):
    """Share of a class in the statistic, in each of some arrangements.

    Attributes
    ----------
    change, square : ndarray
        Of a class: its part of h_a(s) - h_b(s), and of the squared standard error of that.
    scatter, shear : ndarray
        Variance of `change` by the cases that are not drawn, and covariance with `square`.
    """

    change: Floats
    square: Floats
    scatter: Floats
    shear: Floats


def permutation_test(a: Sequence[Sample], b: Sequence[Sample]) -> Interval:
    """Bounds of the two-sided p-value of equal indices, which both are positive and finite.

    The upper one counts what was seen as one of the arrangements, as a test by draws has to, and so
    cannot be below one in their number. The lower one trusts the normal distribution of the rest.

    Parameters
    ----------
    a, b : sequences of Sample
        Points of the negatives and of the negated positives: two cases or more of each.
    """
    s = common_root(a, b)
    classes = [shared_class(s, *groups) for groups in zip(a, b, strict=True)]
    change, square = (sum(found) for found in zip(*map(_seen, classes), strict=True))
    if abs(change) <= _ROUNDING * sqrt(max(square, 0.0)):
        return Interval(1.0, 1.0)
    if square <= 0.0:  # scores that differ by rounding alone
        return Interval(0.0, 1.0)
    parts = [_arranged(part, _uniforms(number)) for number, part in enumerate(classes)]
    whole = _Statistic(*(np.sum(values, axis=0) for values in zip(*parts, strict=True)))
    tail = _tail(whole, abs(change) / sqrt(square))
    low, high = float(np.mean(tail[1:])), float(np.mean(tail))
    return Interval(min(low, high), high)


def common_root(a: Sequence[Sample], b: Sequence[Sample]) -> float:
    """Root of the mean of both equations, each by the size of its sample: between their roots.

    Scores of all cases of a sample may move together without moving it.
    """
    equations = [SampleEquation(groups, 0.0) for groups in (a, b)]
    # The variance of h is the sum of those of its classes.
    sizes = [1.0 / sum(group.concentration for group in groups) for groups in (a, b)]

    def mean(s: float) -> float:
        return sum(size * part(s).value for size, part in zip(sizes, equations, strict=True))

    low, high = sorted(equation.root() for equation in equations)
    # Roots that differ by rounding need no search.
    if not mean(low) < 0.0 < mean(high):
        return low
    return bracketed_root(mean, low, high, xtol=1e-300, rtol=1e-13)


def shared_class(s: float, a: Sample, b: Sample) -> SharedClass:
    """The tilted scores of a class in both samples."""
    points = [_points(group) for group in (a, b)]
    values, counts = (np.concatenate(parts) for parts in zip(*points, strict=True))
    size = counts.sum()
    if s * (values.max() - values.min()) < 1.0:  # small terms, exact about a value near the mean
        tilted = np.expm1(s * (values - (counts @ values) / size))
        mean = (counts @ tilted) / size
        base, tilts = 1.0, (tilted - mean) / (1.0 + mean)
    else:
        tilted = np.exp(s * (values - values.max()))
        base, tilts = 0.0, tilted * (size / (counts @ tilted))
    ends = points[0][0].size
    ordered = [_descending(tilts[part], counts[part]) for part in (slice(ends), slice(ends, None))]
    cases = [_cases(*part) for part in ordered]
    largest, of_a = np.concatenate(cases), np.repeat([True, False], [part.size for part in cases])
    chosen = np.argsort(-largest, kind="stable")[:_CASES]
    taken = np.sum(of_a[chosen]), np.sum(~of_a[chosen])
    rest = [_without(count, n) for (_, count), n in zip(ordered, taken, strict=True)]
    return SharedClass(
        base,
        largest[chosen],
        of_a[chosen],
        np.concatenate([part for part, _ in ordered]),
        np.stack([np.append(rest[0], 0.0 * rest[1]), np.append(0.0 * rest[0], rest[1])]),
    )


def _points(group: Sample) -> tuple[Floats, Floats]:
    """Values of a sample, and how many cases each stands for, which need not be whole."""
    blocks = list(group.blocks())
    values = np.concatenate([part for part, _ in blocks])
    if blocks[0][1] is None:
        return values, np.ones_like(values)
    # Weights of a sample are equal, but may have been scaled.
    weights = np.concatenate([own for _, own in blocks if own is not None])
    return values, weights / (group.weight * group.concentration)


def _descending(tilts: Floats, counts: Floats) -> tuple[Floats, Floats]:
    order = np.argsort(-tilts, kind="stable")
    return tilts[order], counts[order]


def _cases(tilts: Floats, counts: Floats) -> Floats:
    """The most tilted cases of a sample: each has the mean of the points that it is made of."""
    reached = np.append(0.0, np.cumsum(counts))
    whole = np.rint(reached)
    np.copyto(reached, whole, where=np.abs(reached - whole) < _SAME_CASE)
    starts = np.arange(min(_CASES, whole[-1]))[:, np.newaxis]
    used = np.searchsorted(reached, starts.size)
    # Not by differences of sums, in which the first cases may drown the others.
    shares = np.minimum(reached[1 : used + 1], starts + 1.0) - np.maximum(reached[:used], starts)
    found: Floats = np.maximum(shares, 0.0) @ tilts[:used]
    return found


def _without(counts: Floats, taken: int) -> Floats:
    """Counts without the first cases."""
    after = np.cumsum(counts) - taken
    left: Floats = np.clip(after, 0.0, counts)
    left[left < _SAME_CASE] = 0.0
    return left


def _seen(part: SharedClass) -> tuple[float, float]:
    """What a class adds to the statistic and to its squared standard error."""
    members = np.stack([part.in_first, ~part.in_first]).astype(np.float64)
    sums, squares = (
        members @ part.largest**power + part.counts @ part.others**power for power in (1, 2)
    )
    found = _of_sums(part.base, part.sizes, sums[:, np.newaxis], squares[:, np.newaxis])
    return float(found[0][0]), float(found[1][0])


def _of_sums(
    base: float, sizes: Floats, sums: Floats, squares: Floats
) -> tuple[Floats, Floats, Floats, tuple[Floats, Floats]]:
    """Share of a class in the statistic by sums of tilted scores, (2, n), and of their squares.

    Returns `change` and `square`, the slope of `change` by the first sum of `sums`, and those of
    `square` by it and by the first sum of `squares`. What one sample gains the other loses.
    """
    n = sizes[:, np.newaxis]
    mean, second = sums / n, squares / n
    level = np.maximum(base + mean, 1e-300)  # what has no tilt at all is still more than nothing
    logs = np.log1p(mean) if base else np.log(level)
    with np.errstate(over="ignore", invalid="ignore"):
        relative = second / level / level
        square = np.maximum(relative - (mean / level) ** 2, 0.0) / (n - 1.0)
        by_mean = -2.0 * (base * mean / level / level + relative) / level / ((n - 1.0) * n)
        by_second = 1.0 / level / level / ((n - 1.0) * n)
        return (
            logs[0] - logs[1],
            square.sum(axis=0),
            (1.0 / (n * level)).sum(axis=0),
            (by_mean[0] - by_mean[1], by_second[0] - by_second[1]),
        )


def _arranged(part: SharedClass, uniforms: Floats) -> _Statistic:
    """A class in drawn arrangements; the first is that of the samples."""
    sizes, largest = part.sizes, part.largest
    exchanged = _members(sizes, uniforms[: largest.size])
    inside = np.column_stack([part.in_first, exchanged]).astype(np.float64)
    # Of the others so many belong to the first sample; of their sums only moments are known.
    counts, others = part.counts.sum(axis=0), part.others
    n_others = sizes.sum() - largest.size
    chosen = sizes[0] - inside.sum(axis=0)
    mean, second = (float(counts @ others**power) / max(n_others, 1.0) for power in (1, 2))
    apart = others - mean
    variance, covariance = (
        float(counts @ (apart * by)) / max(n_others - 1.0, 1.0)
        for by in (apart, others**2 - second)
    )
    # Both samples are summed: a difference from the whole may lose all digits.
    members = (inside, chosen), (1.0 - inside, n_others - chosen)
    sums = np.stack([largest @ drawn + left * mean for drawn, left in members])
    squares = np.stack([largest**2 @ drawn + left * second for drawn, left in members])
    change, square, slope, (by_mean, by_second) = _of_sums(part.base, sizes, sums, squares)
    spread = chosen * (n_others - chosen) / max(n_others, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):  # then the others cannot be seen
        scatter = slope * slope * variance * spread
        shear = slope * (by_mean * variance + by_second * covariance) * spread
    return _Statistic(change, square, scatter, shear)


@cache
def _uniforms(number: int) -> Floats:
    """Uniform numbers by case and arrangement: always the same, and with their opposites.

    With opposites the two samples may change places: the arrangements are the same then.
    """
    drawn = np.random.default_rng(number).random((_CASES, _PAIRS))
    return np.concatenate([drawn, 1.0 - drawn], axis=1)


def _members(sizes: Floats, uniforms: Floats) -> Mask:
    """Which cases are in the first sample: one after the other, without replacement."""
    left, size = np.full(uniforms.shape[1], sizes[0]), sizes.sum()
    inside = np.empty(uniforms.shape, dtype=bool)
    for number, row in enumerate(uniforms):
        np.less(row * (size - number), left, out=inside[number])
        left -= inside[number]
    return inside


def _tail(found: _Statistic, t: float) -> Floats:
    """Probability of a statistic beyond ±t in each arrangement.

    Where few tilted scores are large, the standard error falls with the change: to first order.
    """
    error = np.sqrt(found.square)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shear = np.nan_to_num(found.shear / (2.0 * error * found.scatter), posinf=0.0, neginf=0.0)
        beyond = np.zeros_like(error)
        for sign in (1.0, -1.0):
            missing = t * error - sign * found.change
            # What was seen is not beyond itself.
            missing[np.abs(missing) <= _ROUNDING * t * error] = 0.0
            spread = np.sqrt(found.scatter) * np.abs(sign - t * shear)
            z = np.where(spread > 0.0, missing / spread, np.where(missing > 0.0, np.inf, -np.inf))
            beyond += ndtr(-z)
    return np.minimum(beyond, 1.0)
