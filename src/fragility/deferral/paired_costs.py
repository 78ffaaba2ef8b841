"""A paired test of two mean costs on the same cases, from sums over the cases."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan, sqrt
from typing import Any, NamedTuple

import numpy as np

from .._typing import Floats, Integers, Interval
from ..index.inference import cautious_test

#: Standard errors of costs at policies that the cases chose are larger than those of independent
#: cases: the thresholds are shared. Five folds, by simulation.
SHARED_THRESHOLDS = 1.2
#: Why there is no test where none is needed.
ALWAYS = "every case differs by the same"
#: Costs that differ by no more than this, relative to their size, are the same.
_ROUNDING = 1e-12
#: Costs that rest on fewer cases than this have no test.
_LEAST_CASES = 10.0


@dataclass(frozen=True)
class PairedCosts:
    """Difference of the mean costs of two models on the same cases, a − b.

    Attributes
    ----------
    a, b : float
        Mean cost of a case.
    difference : float
    interval : Interval
        NaN, as `p_value`, if too few cases make the difference.
    p_value : float
    effective : float
        Cases that the difference rests on: (ΣD²)² / ΣD⁴.
    too_few : bool
        Whether the costs differ, but in too few cases for a test.
    """

    a: float
    b: float
    difference: float
    interval: Interval
    p_value: float
    effective: float
    too_few: bool

    @property
    def why_no_test(self) -> str:
        """Why there is no p-value; empty if there is one."""
        if not isnan(self.p_value):
            return ""
        if self.too_few:
            return "too few costly cases make the difference"
        return ALWAYS if self.difference else "the costs do not differ"

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values; floats may be NaN."""
        return {**vars(self), "interval": list(self.interval)}


class CostSums(NamedTuple):
    """Sums over cases of powers of what the first model costs more, by which they are compared."""

    weight: float = 0.0
    squares: float = 0.0
    first: float = 0.0
    crossed: float = 0.0
    second: float = 0.0
    fourth: float = 0.0

    @classmethod
    def of(
        cls, difference: Floats, weights: Floats | None, clusters: Integers | None = None
    ) -> CostSums:
        """Of the differences of some cases; a cluster counts as one case."""
        w = np.ones(difference.size) if weights is None else weights
        terms = w * difference
        if clusters is not None:
            w, terms = (np.bincount(clusters, part).astype(np.float64) for part in (w, terms))
        return cls(
            float(w.sum()),
            float(w @ w),
            float(terms.sum()),
            float(w @ terms),
            float(terms @ terms),
            float((terms**2) @ (terms**2)),
        )

    def plus(self, other: CostSums) -> CostSums:
        """Of both."""
        return CostSums._make(a + b for a, b in zip(self, other, strict=True))

    def compared(
        self,
        a: float,
        b: float,
        confidence: float,
        factor: float = SHARED_THRESHOLDS,
        farthest: float = 0.0,
    ) -> PairedCosts:
        """The test; `factor` times the standard error of independent cases is used.

        It allows for one more case that moves the mean by `farthest`.
        """
        mean = self.first / self.weight
        rounding = _ROUNDING * (abs(a) + abs(b))
        if abs(mean) <= rounding:
            mean = 0.0
        effective = self.second**2 / self.fourth if self.fourth > 0.0 else 0.0
        freedom = max(self.weight**2 / self.squares - 1.0, 1.0)
        variance = self.second - 2.0 * mean * self.crossed + mean**2 * self.squares
        error = factor * sqrt(max(variance, 0.0) * (1.0 + 1.0 / freedom)) / self.weight
        too_few = 0.0 < effective < _LEAST_CASES and factor > 1.0
        if too_few or error <= rounding:
            return PairedCosts(a, b, mean, Interval(nan, nan), nan, effective, too_few)
        interval, p = cautious_test(mean, error, freedom, farthest, confidence)
        return PairedCosts(a, b, mean, interval, p, effective, False)
