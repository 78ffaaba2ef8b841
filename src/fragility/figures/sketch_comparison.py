r"""Whether the index of one sample differs from that of another, by their sketches.

The logarithms of the two indices are compared, by a test of Student's kind. The squared standard
error of each is the larger of two: what the scores of its own sample tell, and what those of both
samples together tell about a sample of its size. The second is there for rare bad mistakes. A small
sample may lack them; then its index is small and looks sure to be so, but the other sample knows
better. Influences of single samples are those of leaving them out, as in `compare_fragility`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, hypot, inf, isnan, log, nan, sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from .._parameters import check_confidence
from .._summary import aligned
from .._typing import Floats, Interval
from ..moments import order_one_factor
from ..scores.atoms import PointSample
from ..scores.sketch import FragilitySketch
from .index import KnownIndex
from .influence import ScoreInfluence, case_influences
from .sketch import SketchFragility


@dataclass(frozen=True)
class IndependentDifference:
    """Two estimates from independent samples, with a test of their difference.

    Attributes
    ----------
    a, b, difference : float
        The estimates, and ``a - b``.
    standard_error : float
        Of the difference, to first order.
    quotient : float
        ``a / b``.
    interval : Interval
        Named tuple (low, high) for the quotient: the test accepts these.
    p_value : float
        Two-sided, of no difference. Like `standard_error` and `interval` NaN where an estimate is
        0, infinite or NaN, and where a class has fewer than two samples.
    """

    a: float
    b: float
    difference: float
    standard_error: float
    quotient: float
    interval: Interval
    p_value: float


@dataclass(frozen=True, repr=False)
class SketchComparison(IndependentDifference):
    """Difference of the indices of two independent samples, and of their scale-free ratios.

    Made by `fragility.compare_sketches`.

    Attributes
    ----------
    a, b : float
        Fragility Index of the two samples.
    difference : float
        ``a - b``: negative if the first is less fragile.
    standard_error : float
        Of the difference, to first order.
    quotient : float
        ``a / b``.
    interval : Interval
        Named tuple (low, high) for the quotient: without 1, the indices differ by more than chance.
    p_value : float
        Two-sided, of no difference. NaN, like `standard_error` and `interval`, where an index is 0
        or infinite, or where a class has fewer than two samples.
    ratio : IndependentDifference
        The same for the ratios, which do not reward shrinking the scores.
    of_a, of_b : SketchFragility
        What the sketches know, with intervals.
    confidence : float
    """

    ratio: IndependentDifference
    of_a: SketchFragility
    of_b: SketchFragility
    confidence: float

    @property
    def differs(self) -> bool:
        """Whether the samples show that the indices differ.

        By the test; where there is none, if the intervals of the two indices are disjoint.
        """
        if not isnan(self.p_value):
            return self.p_value < 1.0 - self.confidence
        (low_a, high_a), (low_b, high_b) = self._intervals
        return high_a < low_b or high_b < low_a

    @property
    def _intervals(self) -> tuple[Interval, Interval]:
        return self.of_a.interval(self.confidence), self.of_b.interval(self.confidence)

    @property
    def meaning(self) -> str:
        """The result in words."""
        if not isnan(self.p_value):
            low, high = self.interval
            shown = (
                f"{100.0 * self.confidence:g} % interval {low:.4g} to {high:.4g}, "
                f"p = {self.p_value:.2g}"
            )
            told = f"The index of a is {self.quotient:.4g} times that of b ({shown}): "
            if not self.differs:
                return told + "chance alone can explain the difference."
            return told + f"it is {'larger' if self.quotient > 1.0 else 'smaller'}."
        odd = [name for name, value in (("a", self.a), ("b", self.b)) if value in (0.0, inf)]
        why = f"the index of {' and '.join(odd)} is 0 or infinite"
        if not odd:
            why = "a class has a single sample"
        overlap = "do not overlap: they differ" if self.differs else "overlap: none is shown"
        return f"No test of a difference: {why}. The intervals of the two indices {overlap}."

    def __repr__(self) -> str:
        level = f"{100.0 * self.confidence:g}% interval"
        rows: list[tuple[str, ...]] = [("", "a", "b", "a - b", "a / b", level, "p-value")]
        for name, part in (("Fragility Index", self), ("ratio", self.ratio)):
            values = part.a, part.b, part.difference, part.quotient
            numbers = ["-" if isnan(value) else f"{value:.6g}" for value in values]
            test = ["-", "-"]
            if not isnan(part.p_value):
                test = ["({:.4g}, {:.4g})".format(*part.interval), f"{part.p_value:.3g}"]
            rows.append((name, *numbers, *test))
        return f"{aligned(rows)}\n{self.meaning}"


def compare_sketches(
    a: FragilitySketch, b: FragilitySketch, *, confidence: float = 0.95
) -> SketchComparison:
    """Does the index of one sample differ from that of another? A test of independent samples.

    For samples that have nothing in common, such as the cases of two weeks. Two models on the same
    cases are compared by `compare_fragility`, which takes the pairs into account. The test is about
    the logarithms of the indices, with a standard error that allows for rare bad mistakes that only
    one of the samples has. Undefined (NaN) where an index is 0 or infinite.

    Parameters
    ----------
    a, b : FragilitySketch
        Of two classes, the same classes and number of bins, without weights (or equal ones).
    confidence : float, default=0.95
        Of the intervals; one minus it is the level of the test.

    Returns
    -------
    SketchComparison

    Examples
    --------
    >>> import numpy as np
    >>> from fragility import FragilitySketch, compare_sketches
    >>> rng = np.random.default_rng(0)
    >>> def week(n, boldness):
    ...     logit = 2 * rng.normal(size=n)
    ...     sick = rng.random(n) < 1 / (1 + np.exp(-logit))
    ...     return FragilitySketch().update(sick, 1 / (1 + np.exp(-boldness * logit)))
    >>> compare_sketches(week(2000, 1.5), week(5000, 1.0))  # doctest: +NORMALIZE_WHITESPACE
    """
    confidence = check_confidence(confidence)
    for part in (a, b):
        if not isinstance(part, FragilitySketch):
            raise TypeError(f"compare_sketches takes sketches; got {type(part).__name__}.")
    pooled = a + b  # which refuses sketches that have nothing to do with each other
    found = [part.fragility() for part in (a, b)]
    for part in found:
        part.interval(confidence)  # or says why there is none
    with np.errstate(over="ignore", under="ignore"):
        spreads = _spreads(*found, pooled.fragility())
        index, ratio = (
            _test([getattr(part, name) for part in found], spreads[place], confidence)
            for place, name in enumerate(("value", "ratio"))
        )
    return SketchComparison(
        **vars(index), ratio=ratio, of_a=found[0], of_b=found[1], confidence=confidence
    )


class _Spread(NamedTuple):
    """Squared standard error of the logarithm of a figure, and the variance of that square."""

    square: float
    doubt: float


def _test(values: list[float], spreads: list[_Spread], confidence: float) -> IndependentDifference:
    a, b = values
    difference = a - b if a != b else 0.0  # not ∞ - ∞
    quotient = a / b if 0.0 < b < inf and a < inf else nan
    square = sum(part.square for part in spreads)
    if isnan(square) or not 0.0 < quotient < inf:
        none = Interval(nan, nan)
        return IndependentDifference(a, b, difference, nan, quotient, none, nan)
    doubt = sum(part.doubt for part in spreads)
    freedom = max(2.0 * square * square / doubt, 1.0) if doubt > 0.0 else inf
    reach = -float(stdtrit(freedom, 0.5 * (1.0 - confidence))) * sqrt(square)
    error = hypot(*(value * sqrt(part.square) for value, part in zip(values, spreads, strict=True)))
    interval = Interval(quotient * exp(-min(reach, 700.0)), _times_exp(quotient, reach))
    distance = abs(log(quotient))
    p_value = 1.0 if distance == 0.0 else 2.0 * float(stdtr(freedom, -distance / sqrt(square)))
    return IndependentDifference(a, b, difference, error, quotient, interval, p_value)


def _times_exp(value: float, exponent: float) -> float:
    return inf if exponent > 700.0 else value * exp(exponent)


def _spreads(
    a: SketchFragility, b: SketchFragility, pooled: SketchFragility
) -> list[list[_Spread]]:
    """Of index and ratio, of each sample: the larger of its own and that of both together."""
    all_moves = _moves(pooled)
    found: list[list[_Spread]] = [[], []]
    for sample in (a, b):
        own = _moves(sample)
        for place in (0, 1):
            ways = [_spread(own, place, sample), _spread(all_moves, place, sample)]
            usable = [way for way in ways if not isnan(way.square)]
            # Without a spread of its own a sample has no test.
            found[place].append(max(usable) if len(usable) == 2 else ways[0])
    return found


class _Moves(NamedTuple):
    """How single samples move index and ratio, relative to these, by class.

    Attributes
    ----------
    squares, fourths : ndarray of shape (2 figures, 2 classes)
        Sums over samples of second and fourth powers.
    support : ndarray of shape (2,)
    """

    squares: Floats
    fourths: Floats
    support: Floats


def _moves(sample: SketchFragility) -> _Moves:
    known, support = sample._known, sample.support.astype(np.float64)
    none = np.full((2, 2), nan)
    if known is None or not 0.0 < sample.value < inf or support.min() < 2.0:
        return _Moves(none, none, support)
    squares, fourths = np.empty((2, 2)), np.empty((2, 2))
    for code in (0, 1):
        values, counts = _points(known, code)
        tilted = list(ScoreInfluence(known, 2).tilted(code, values[np.newaxis]))
        shares = np.full(values.size, 1.0 / support[code])
        moves = case_influences(tilted, shares, left_out=True)
        moves /= np.array([[sample.value], [sample.ratio]])
        squares[:, code], fourths[:, code] = moves**2 @ counts, moves**4 @ counts
    return _Moves(squares, fourths, support)


def _spread(moves: _Moves, place: int, sample: SketchFragility) -> _Spread:
    """What these moves tell of a sample of that size."""
    n, own = moves.support, sample.support
    if isnan(moves.squares[place].sum()) or own.min() < 2:
        return _Spread(nan, nan)
    fewer = n / own  # samples move a figure the more, the fewer they are
    squares, fourths = moves.squares[place], moves.fourths[place]
    square = float((squares * fewer * n / (n - 1.0)).sum())
    doubt = float(((fourths - squares**2 / n) * fewer**2).sum())
    return _Spread(square, max(doubt, 0.0))


def _points(known: KnownIndex, code: int) -> tuple[Floats, Floats]:
    """Scores of a class that stand for its bins, and how many samples each stands for."""
    (pair,) = known.pairs
    sign = -1.0 if code == pair.positive else 1.0
    sample = known.source.sample(0, code, sign)
    assert isinstance(sample, PointSample)
    parts = list(sample.blocks())
    values = np.concatenate([values for values, _ in parts])
    weights = np.concatenate([weights for _, weights in parts if weights is not None])
    return sign * values, weights / order_one_factor(float(weights.max()))
