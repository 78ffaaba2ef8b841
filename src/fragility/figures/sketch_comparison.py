r"""Whether the index of one sample differs from that of another, by their sketches.

What is nearly normal is the root :math:`s = 1/FI` of the equation, not the index: h(s) is a sum of
logarithms of means, and the root moves with it in proportion. So the roots are compared, by a test
of Student's kind. A sample that happens to lack rare bad mistakes has a small index that looks sure
to be small; its root is large, and so is the standard error of it. Influences of single samples are
those of leaving them out, as in `compare_fragility`. The quotients that the same test accepts are
Fieller's interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, inf, isnan, nan, sqrt
from textwrap import fill

import numpy as np
from scipy.special import stdtr, stdtrit

from .._parameters import check_confidence
from .._summary import aligned
from .._typing import Interval
from ..index.influence import error_of_squares, freedom_of_squares
from ..scores.cases import check_agreement
from ..scores.sketch import FragilitySketch
from .influence import ScoreInfluence, case_influences
from .sketch import SketchFragility
from .spread import Spread


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
        why = f"the index of {' and '.join(odd)} is 0 or infinite"
        if not odd:
            why = "a class has a single sample, or an index is too near 0 for its bins"
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
    cases are compared by `compare_fragility`, which takes the pairs into account. The test is
    Student's, of the inverse indices, which are nearly normal. Undefined (NaN) where an index is 0
    or infinite.

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
    Fragility Index  0.206661  0.174346  0.0323151    1.18535   (1.08, 1.305)    0.000288
    ratio            0.43091   0.434537  -0.00362628  0.991655  (0.8576, 1.157)  0.912
    The index of a is 1.185 times that of b (95 % interval 1.08 to 1.305, p = 0.00029): a is
    more fragile.
    """
    confidence = check_confidence(confidence)
    for part in (a, b):
        if not isinstance(part, FragilitySketch):
            raise TypeError(f"compare_sketches takes sketches; got {type(part).__name__}.")
    for what, own, other in (
        ("labels", _listed(a), _listed(b)),
        ("the positive class", a._positive, b._positive),
    ):
        check_agreement("sketch", what, own, other)
    of_a, of_b = a.fragility(), b.fragility()
    with np.errstate(over="ignore", under="ignore"):
        errors = [_relative_errors(part) for part in (of_a, of_b)]
        index, ratio = (
            _test(values, [part[place] for part in errors], confidence)
            for place, values in enumerate([(of_a.value, of_b.value), (of_a.ratio, of_b.ratio)])
        )
    return SketchComparison(**vars(index), ratio=ratio, of_a=of_a, of_b=of_b, confidence=confidence)


def _listed(sketch: FragilitySketch) -> object:
    return None if sketch.labels is None else sketch.labels.tolist()


def _test(
    values: tuple[float, float], errors: list[Spread], confidence: float
) -> IndependentDifference:
    """Test of two positive figures by their inverses, with relative standard errors."""
    a, b = values
    difference = a - b if a != b else 0.0  # not ∞ - ∞
    quotient = a / b if 0.0 < b < inf and a < inf else nan
    if any(isnan(part.error) for part in errors) or not 0.0 < quotient < inf:
        none = Interval(nan, nan)
        return IndependentDifference(a, b, difference, nan, quotient, none, nan)
    of_a, of_b = (part.error for part in errors)
    # The difference of the inverses in units of 1/b, its standard error, and its freedom.
    apart, error = abs(1.0 - 1.0 / quotient), hypot(of_b, of_a / quotient)
    share = (of_a / quotient / error) ** 2 if error > 0.0 else 1.0
    freedom = 1.0 / (share**2 / errors[0].freedom + (1.0 - share) ** 2 / errors[1].freedom)
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


def _fieller(quotient: float, reach_a: float, reach_b: float) -> Interval:
    """Quotients that a test accepts: those k times this one with (1 - k)² ≤ reach_b² + k² reach_a².

    The reaches are quantiles times relative standard errors of the two inverses.
    """
    a, b = 1.0 - reach_a**2, 1.0 - reach_b**2
    root = 1.0 + sqrt(max(1.0 - a * b, 0.0))
    return Interval(
        quotient * b / root if b > 0.0 else 0.0, quotient * root / a if a > 0.0 else inf
    )


def _relative_errors(sample: SketchFragility) -> list[Spread]:
    """Standard errors of index and ratio, over these, with their degrees of freedom."""
    known, support = sample._evidence, sample.support
    if not (0.0 < sample.value < inf and known.is_near) or support.min() < 2:
        return [Spread(nan, nan)] * 2
    influence, by_class = ScoreInfluence(known, 2), np.empty((2, 2, 2))
    (pair,) = known.pairs
    for code, group in zip((pair.negatives[0], pair.positive), known.groups(pair), strict=True):
        parts = list(group.blocks())
        values = np.concatenate([values for values, _ in parts])
        counts = np.concatenate([np.ones(0) if own is None else own for _, own in parts])
        scores = values if code != pair.positive else -values
        tilted = list(influence.tilted(code, scores[np.newaxis]))
        shares = np.full(scores.size, 1.0 / float(support[code]))
        moves = case_influences(tilted, shares, left_out=True)
        moves /= np.array([[sample.value], [sample.ratio]])
        by_class[:, :, code] = moves**2 @ counts, moves**4 @ counts
    sizes = dict(enumerate(support.astype(np.float64).tolist()))
    return [
        Spread(error_of_squares(squares, sizes), freedom_of_squares(squares, fourths, support))
        for squares, fourths in zip(*by_class, strict=True)
    ]
