"""The index of a sketch: certified bounds, its interval, and the figures to show beside it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._parameters import check_confidence, check_number
from .._summary import Summary, SummaryRow, samples_row
from .._typing import Floats, Integers, Interval
from ..index.certified import BinMoments, CertifiedIndex, certify
from ..index.errors import Pair, class_pairs, pair_entries
from ..index.fragility import PairTable
from ..index.inference import error_at_root
from ..index.influence import LEAST_EFFECTIVE
from ..measured import Measured
from ..moments import Sample
from ..scores.atoms import Atoms, PointSample
from ..scores.bins import ScoreBins
from .index import KnownIndex, Source
from .rank import auc, measured_between

# Exponentials may underflow, and trial steps overflow, without harm.
_quiet = np.errstate(over="ignore", under="ignore")
#: Weights that differ by less are equal but for rounding.
_ROUNDING = 1e-12

_SEVERAL = (
    "A sketch of several classes cannot tell an interval: it does not know which scores belong to "
    "the same sample. Use measure_fragility, or a report."
)
_WEIGHTS = (
    "A sketch of samples with different weights cannot tell an interval: it keeps no squared "
    "weights. Use measure_fragility, or a report."
)


@dataclass(frozen=True, eq=False, repr=False)
class SketchFragility(Summary):
    """Fragility Index known from a sketch: an estimate between certified bounds.

    Attributes
    ----------
    value : float
        Estimate of the index; for several classes the mean over class pairs.
    lower, upper : float
        The index of the data lies between these.
    pairs : ndarray of shape (C, C), or (C,) for one-versus-rest
        Estimate for each pair, as in `fragility.Fragility`.
    support : ndarray of shape (C,)
        Samples of positive weight in each class.
    pairs_lower, pairs_upper : ndarray
        Bounds for each pair.
    ratio : float
        Scale-free companion of `value`; NaN at a target other than 0.
    labels : ndarray of shape (C,)
    target : float
    auc : Measured or None
        Of two classes: ``auc.value`` between ``auc.bounds``, None where it is exact. Within a bin
        the order of the scores is not known.
    brier : float
        Brier score; NaN for several classes.
    """

    value: float
    lower: float
    upper: float
    pairs: Floats
    support: Integers
    pairs_lower: Floats
    pairs_upper: Floats
    ratio: float
    labels: NDArray[Any]
    target: float
    auc: Measured | None = None
    brier: float = nan
    _known: KnownIndex | None = field(default=None, repr=False)
    _why_no_interval: str = field(default=_SEVERAL, repr=False)

    @property
    @_quiet
    def standard_error(self) -> float:
        """Standard error of `value`, as `fragility.Fragility` has it.

        NaN if the index is 0 or infinite, if a class has one sample only, and where `interval`
        cannot be told.
        """
        known = self._known
        if known is None or not known.is_near or not 0.0 < self.value < inf:
            return nan
        if any(known.effective_size(code) < LEAST_EFFECTIVE for code in (0, 1)):
            return nan
        return error_at_root(known.groups(known.pairs[0]), self.target, 1.0 / self.value)

    @_quiet
    def interval(self, confidence: float = 0.95) -> Interval:
        """Confidence interval of `value`, as `fragility.Fragility.interval` has it by default.

        Parameters
        ----------
        confidence : float, default=0.95

        Returns
        -------
        Interval
            Named tuple (low, high). With fewer than two samples in a class (0, inf).

        Raises
        ------
        ValueError
            Of several classes, and of samples with different weights: a sketch knows too little.

        Notes
        -----
        Where the certified bounds differ by more than a hundred-thousandth, the index is so small
        or so large that bins cannot tell one limit, which is 0 or infinite then.
        """
        known, confidence = self._evidence, check_confidence(confidence)
        low, high = known.rough_interval(confidence, self.target)
        if known.is_near:
            return Interval(low, high)
        return Interval(0.0, high) if self.value < 1.0 else Interval(low, inf)

    @property
    def _is_near(self) -> bool:
        """Whether bins tell the index so well that intervals and tests can be made of it."""
        return self._known is not None and self._known.is_near

    @property
    def _evidence(self) -> KnownIndex:
        """What intervals and tests are made of; refused where a sketch knows too little."""
        if self._known is None:
            raise ValueError(self._why_no_interval)
        return self._known

    def _rows(self) -> list[SummaryRow]:
        ratio = f"{self.ratio:.6g}", "scale-free: compare models by this too"
        if self.target != 0.0:
            ratio = "-", "defined at target 0"
        rows = [
            ("Fragility Index", f"{self.value:.6g}", f"target {self.target:g}"),
            ("certified", f"[{self.lower:.12g}, {self.upper:.12g}]", ""),
            ("ratio", *ratio),
        ]
        if self.auc is not None:
            low, high = self.auc.bounds or (self.auc.value, self.auc.value)
            within = "" if low == high else f"from {low:.6g} to {high:.6g}"
            rows += [("AUC", f"{self.auc.value:.6g}", within), ("Brier", f"{self.brier:.6g}", "")]
        return [*rows, samples_row(self.labels.tolist(), self.support)]


@dataclass(eq=False)
class PointSource(Source):
    """Two classes whose index is known, as points that stand for their bins."""

    certified: CertifiedIndex
    points: dict[int, PointSample]

    def _new_sample(self, column: int, code: int, sign: float) -> Sample:
        return self.points[code]

    def index(self, column: int, negative: int, positive: int) -> CertifiedIndex:
        return self.certified


@_quiet
def measured_sketch(
    bins: ScoreBins,
    labels: NDArray[Any],
    support: Integers,
    positive: int,
    multi_class: str,
    target: float,
) -> SketchFragility:
    """The index of the samples in the bins of a sketch; two classes or more have samples."""
    target, n = check_number(target, "target"), labels.size
    found = np.full((n, n, 4) if multi_class == "ovo" else (n, 4), np.nan)
    positives = lru_cache(1)(lambda place: bins.moments(*place).negated())
    for pair in class_pairs(support, positive, multi_class):
        column, own, others = _where(pair, n, multi_class)
        certified = certify(bins.moments(column, others), positives((column, own)), target)
        for place in pair_entries(pair, n, multi_class):
            found[place] = certified
    values, lower, upper, separations = np.moveaxis(found, -1, 0)
    shares = np.where(np.isnan(values), 0.0, 1.0)
    table = PairTable(values, separations, shares / shares.sum())
    beside = _of_two_classes(bins, support, positive, certified) if n == 2 else {}
    return SketchFragility(
        value=table.average(values),
        lower=table.average(lower),
        upper=table.average(upper),
        pairs=values,
        support=support.copy(),
        pairs_lower=lower,
        pairs_upper=upper,
        ratio=table.average(table.ratios) if target == 0.0 else nan,
        labels=labels.copy(),
        target=target,
        **beside,
    )


def _where(pair: Pair, n_classes: int, multi_class: str) -> tuple[int, int, int]:
    """Column of a pair, and the groups of its positives and of its negatives in the bins."""
    if n_classes == 2:
        return 0, pair.positive, 1 - pair.positive
    if multi_class == "ovr":
        return pair.positive, 1, 0
    return pair.positive, pair.positive, pair.negatives[0]


def _of_two_classes(
    bins: ScoreBins, support: Integers, positive: int, certified: CertifiedIndex
) -> dict[str, Any]:
    """What a sketch knows of two classes beside the index.

    Later samples change the bins, but not what was measured: points are made at once.
    """
    moments = [bins.moments(0, code) for code in (0, 1)]
    squares = [bins.squared_distance(0, code, float(code == positive)) for code in (0, 1)]
    weight = sum(part.weight for part in moments)
    atoms = [_atoms(part) for part in moments]
    beside: dict[str, Any] = {
        "auc": measured_between(*auc(atoms[1 - positive], atoms[positive])),
        "brier": sum(squares) / weight,
        "_why_no_interval": _WEIGHTS,
    }
    if not all(map(_alike, moments, support.tolist())):
        return beside
    points = {}
    for code, part in enumerate(moments):
        counts = replace(part, weights=part.weights / part.lightest, lightest=1.0)
        sign = -1.0 if code == positive else 1.0
        points[code] = bins.points(0, code, sign, counts)
    beside["_known"] = KnownIndex(PointSource(certified, points), support.copy(), positive)
    return beside


def _alike(moments: BinMoments, n: int) -> bool:
    """Whether all samples of a class have the same weight."""
    return abs(moments.weight - n * moments.lightest) <= _ROUNDING * moments.weight


def _atoms(moments: BinMoments) -> Atoms:
    """Bins of a class from edge to edge, which the other class has, too."""
    low = np.maximum(moments.centres - 0.5 * moments.widths, 0.0)
    high = np.minimum(moments.centres + 0.5 * moments.widths, 1.0)
    mean = moments.centres + moments.widths * moments.means
    return Atoms(low, high, moments.weights, mean, moments.weights)
