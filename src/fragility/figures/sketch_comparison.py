r"""Whether the index of one sample differs from that of another, by their sketches.

Whether indices differ is said by the test of `fragility.figures.permutation`. What the quotient may
be, and whether ratios differ, is said by a test of Student's kind. What is nearly normal is the
root :math:`s = 1/FI` of the equation, not the index: h(s) is a sum of logarithms of means, and the
root moves with it in proportion. So inverses are compared. The squared standard error of each is
the mean of two estimates: from its own sample, and from both samples together for a sample of its
size. A sample that lacks rare bad mistakes by chance looks surer than it is, and the other may know
them. Influences of single samples are those of leaving them out, as in `compare_fragility`. The
quotients that this test accepts are Fieller's interval. Both tests are of one difference: where the
first rejects 1 it rejects what lies beyond, and where it accepts 1, what lies between.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import hypot, inf, isnan, nan, nextafter, sqrt
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from .._parameters import check_confidence, require
from .._summary import aligned
from .._typing import Floats, Interval
from ..index.certified import CertifiedIndex
from ..index.errors import PairIndex
from ..index.root import inverse, separation, solve
from ..moments import Sample
from ..scores.atoms import PointSample
from ..scores.sketch import FragilitySketch
from .index import KnownIndex
from .influence import ScoreInfluence, case_influences
from .permutation import permutation_test
from .sketch import PointSource, SketchFragility

#: Ends of an interval without 1.
_BELOW_ONE, _ABOVE_ONE = nextafter(1.0, 0.0), nextafter(1.0, 2.0)


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
        Named tuple (low, high) for the quotient: without 1, the estimates differ by more than
        chance.
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
        or infinite (or so near that bins cannot tell), or where a class has fewer than two samples.
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

    def told(self, a: str = "a", b: str = "b") -> str:
        """The result in words, of samples with these names."""
        if not isnan(self.p_value):
            low, high = self.interval
            shown = f"{100.0 * self.confidence:g} % interval {low:.4g} to {high:.4g}"
            told = f"The index of {a} is {self.quotient:.4g} times that of {b} ({shown}, "
            told += f"p = {self.p_value:.2g}): "
            if not self.differs:
                return told + "chance alone can explain that."
            return told + f"{a} is {'more' if self.quotient > 1.0 else 'less'} fragile."
        odd = [name for name, value in ((a, self.a), (b, self.b)) if value in (0.0, inf)]
        rough = [name for name, part in ((a, self.of_a), (b, self.of_b)) if not part._is_near]
        why = "a class has a single sample"
        if odd:
            why = f"the index of {' and '.join(odd)} is 0 or infinite"
        elif rough:
            why = f"bins of {' and '.join(rough)} are too few to tell the index (sketch with more)"
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
        return f"{aligned(rows)}\n{fill(self.told(), 88)}"


def compare_sketches(
    a: FragilitySketch, b: FragilitySketch, *, confidence: float = 0.95
) -> SketchComparison:
    """Does the index of one sample differ from that of another? A test of independent samples.

    For samples that have nothing in common, such as the cases of two weeks. Two models on the same
    cases are compared by `compare_fragility`, which takes the pairs into account. The test is a
    studentised permutation test of the equation of both samples: its level is right also where a
    model is hardly ever wrong, and few cases bear the index. Undefined (NaN) where an index is 0 or
    infinite. The interval of the quotient, and the test of the ratio, are Fieller's and Student's,
    of the inverses, which are nearly normal; an end of the interval moves to 1 where the test of
    the index knows better.

    Parameters
    ----------
    a, b : FragilitySketch
        Of the same two classes, without weights (or with equal ones).
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
    >>> compare_sketches(week(2000, 1.5), week(5000, 1.0))
                     a         b         a - b        a / b     95% interval     p-value
    Fragility Index  0.206661  0.174346  0.0323151    1.18535   (1.079, 1.306)   0.000362
    ratio            0.43091   0.434537  -0.00362628  0.991655  (0.8569, 1.159)  0.913
    The index of a is 1.185 times that of b (95 % interval 1.079 to 1.306, p = 0.00036): a
    is more fragile.
    """
    confidence = check_confidence(confidence)
    for part in (a, b):
        if not isinstance(part, FragilitySketch):
            raise TypeError(f"compare_sketches takes sketches; got {type(part).__name__}.")
    of_a, of_b = a.fragility(), b.fragility()  # which refuse to tell without cases
    for what, own, other in zip(
        ("labels", "the positive class"), _classes(a), _classes(b), strict=True
    ):
        require(
            own == other,
            f"The sketches differ in {what}: {own!r} and {other!r}. Only samples of the same "
            "classes are compared.",
        )
    known = of_a._evidence, of_b._evidence
    with np.errstate(over="ignore", under="ignore"):
        moves = [_moves(part) for part in (*known, _pooled(*known))]
        index, ratio = (
            _test(values, [_variance(own[place], moves[2][place]) for own in moves[:2]], confidence)
            for place, values in enumerate([(of_a.value, of_b.value), (of_a.ratio, of_b.ratio)])
        )
        if not isnan(index.p_value):
            low, high = permutation_test(*(part.groups(part.pairs[0]) for part in known))
            # What draws cannot tell is between: at most one in their number.
            p_value = min(max(index.p_value, low), high)
            index = _retested(index, p_value, p_value < 1.0 - confidence)
    return SketchComparison(**vars(index), ratio=ratio, of_a=of_a, of_b=of_b, confidence=confidence)


def _classes(sketch: FragilitySketch) -> tuple[list[Any], Any]:
    """Classes of a sketch that holds cases, and the positive one of two."""
    assert sketch.labels is not None
    labels = sketch.labels.tolist()
    return labels, labels[sketch._positive] if len(labels) == 2 else None


class _Variance(NamedTuple):
    """Squared relative standard error of a figure, and the variance of that estimate."""

    value: float
    doubt: float


def _test(
    values: tuple[float, float], variances: list[_Variance], confidence: float
) -> IndependentDifference:
    """Test of two positive figures by their inverses, with relative variances."""
    a, b = values
    difference = a - b if a != b else 0.0  # not ∞ - ∞
    quotient = a / b if 0.0 < b < inf and a < inf else nan
    if any(isnan(part.value) for part in variances) or not 0.0 < quotient < inf:
        none = Interval(nan, nan)
        return IndependentDifference(a, b, difference, nan, quotient, none, nan)
    of_a, of_b = (sqrt(part.value) for part in variances)
    # The difference of the inverses in units of 1/b, its standard error, and the freedom of that.
    apart, error = abs(1.0 - 1.0 / quotient), hypot(of_b, of_a / quotient)
    doubt = variances[0].doubt / quotient**4 + variances[1].doubt
    freedom = max(2.0 * error**4 / doubt, 1.0) if doubt > 0.0 else inf
    t = -float(stdtrit(freedom, 0.5 * (1.0 - confidence)))
    p_value = 2.0 * float(stdtr(freedom, -apart / error)) if error > 0.0 else float(apart == 0.0)
    return IndependentDifference(
        a,
        b,
        difference,
        hypot(a * of_a, b * of_b),
        quotient,
        _fieller(quotient, t * of_a, t * of_b),
        p_value,
    )


def _retested(found: IndependentDifference, p_value: float, differs: bool) -> IndependentDifference:
    """The same with the p-value of another test, which the interval agrees with about 1."""
    low, high = found.interval
    if not differs:
        low, high = min(low, 1.0), max(high, 1.0)
    elif found.quotient > 1.0:
        low = max(low, _ABOVE_ONE)
    else:
        high = min(high, _BELOW_ONE)
    return replace(found, p_value=p_value, interval=Interval(low, high))


def _fieller(quotient: float, reach_a: float, reach_b: float) -> Interval:
    """Quotients that a test accepts: those k times this one with (1 - k)² ≤ reach_b² + k² reach_a².

    The reaches are quantiles times relative standard errors of the two inverses.
    """
    a, b = 1.0 - reach_a**2, 1.0 - reach_b**2
    root = 1.0 + sqrt(max(1.0 - a * b, 0.0))
    return Interval(
        quotient * b / root if b > 0.0 else 0.0, quotient * root / a if a > 0.0 else inf
    )


class _Moves(NamedTuple):
    """How samples move a figure when they are left out, as shares of the figure.

    Attributes
    ----------
    support, squares, fourths : ndarray of shape (2,)
        By class: the number of samples, and sums over them of second and fourth powers.
    """

    support: Floats
    squares: Floats
    fourths: Floats

    def variance(self, support: Floats) -> _Variance:
        """Relative variance of the figure of a sample of that size."""
        n, fewer = self.support, self.support / support
        value = float((self.squares * fewer * n / (n - 1.0)).sum())
        doubt = float(((self.fourths - self.squares**2 / n) * fewer**2).sum())
        return _Variance(value, max(doubt, 0.0))


def _variance(own: _Moves, pooled: _Moves) -> _Variance:
    """Mean of what a sample tells itself and of what both samples tell together."""
    if own.support.min() < 2.0 or isnan(own.squares.sum()):
        return _Variance(nan, nan)
    first, second = (part.variance(own.support) for part in (own, pooled))
    if isnan(second.value):
        return first
    return _Variance(0.5 * (first.value + second.value), 0.25 * (first.doubt + second.doubt))


def _pooled(a: KnownIndex, b: KnownIndex) -> KnownIndex:
    """The samples of both."""
    (pair,), points = a.pairs, {}
    codes = pair.negatives[0], pair.positive
    for code, *groups in zip(codes, a.groups(pair), b.groups(b.pairs[0]), strict=True):
        values, counts = np.concatenate([_points(group) for group in groups], axis=1)
        points[code] = PointSample(values, counts, counts)
    groups = [points[code] for code in codes]
    value = inverse(solve(groups, 0.0))
    certified = CertifiedIndex(value, value, value, separation(groups))
    return KnownIndex(PointSource(certified, points), np.ones(2, dtype=np.int64), pair.positive)


def _moves(known: KnownIndex) -> list[_Moves]:
    """Of index and ratio."""
    (pair,), (found,) = known.pairs, known.found
    figures = [found.fragility, PairIndex(found.fragility, found.separation).ratio]
    support, powers = np.zeros(2), np.full((2, 2, 2), nan)
    usable = 0.0 < found.fragility < inf and known.is_near
    influence = ScoreInfluence(known, 2) if usable else None
    for code, group in zip((pair.negatives[0], pair.positive), known.groups(pair), strict=True):
        values, counts = _points(group)
        support[code] = counts.sum()
        if influence is not None:
            scores = values if code != pair.positive else -values
            tilted = list(influence.tilted(code, scores[np.newaxis]))
            shares = np.full(scores.size, 1.0 / support[code])
            moves = case_influences(tilted, shares, left_out=True)
            moves /= np.array(figures)[:, np.newaxis]
            moves *= moves
            powers[:, :, code] = moves @ counts, (moves * moves) @ counts
    return [_Moves(support, squares, fourths) for squares, fourths in zip(*powers, strict=True)]


def _points(group: Sample) -> Floats:
    """Values that stand for the bins of a class, and how many samples each stands for."""
    parts = [
        (values, np.ones_like(values) if own is None else own) for values, own in group.blocks()
    ]
    return np.concatenate([np.array(part) for part in parts], axis=1)
