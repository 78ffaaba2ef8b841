"""The measured result: the Fragility Index of a classifier with everything that explains it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, nan
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._brent import bracketed_root
from .._optional import data_frame
from .._parameters import check_choice, check_confidence, check_number
from .._summary import Summary, SummaryRow, samples_row
from .._typing import Floats, Integers, Interval, Mask
from .._validation import PROBABILITY_ROUNDING, check_values
from .attribution import AttributedSample, WorstCase, worst_case
from .errors import PairIndex, RankingErrors, SolvedPair, pair_entries
from .inference import SampleEvidence, cluster_stretch, confidence_interval, stretched
from .influence import cluster_totals, clustered_error, influences


@dataclass(frozen=True, eq=False)
class PairTable:
    """Index of every pair of a classifier, and how to average over them."""

    values: Floats
    separations: Floats
    shares: Floats

    @property
    def counted(self) -> Mask:
        """Pairs that enter the average."""
        return self.shares > 0.0

    @property
    def ratios(self) -> Floats:
        """Scale-free ratio of each pair (meaningful at target 0)."""
        pairs = zip(self.values.flat, self.separations.flat, strict=True)
        ratios = [PairIndex(float(f), float(s)).ratio for f, s in pairs]
        return np.reshape(ratios, self.values.shape)

    def average(self, values: Floats) -> float:
        """Average over the counted pairs; pairs of no weight do not touch it (0·∞ is NaN)."""
        return float(values[self.counted] @ self.shares[self.counted])


# Exponentials may underflow, and trial steps overflow, without harm.
_quiet = np.errstate(over="ignore", under="ignore")


@_quiet
def solve_pairs(
    errors: RankingErrors, target: float, multi_class: str, pair_weight: Floats | None
) -> PairTable:
    """Index of all pairs: (C, C) with NaN on the diagonal, or (C,) for "ovr"."""
    data = errors.data
    n = data.labels.size
    values = np.full((n, n) if multi_class == "ovo" else n, np.nan)
    separations = values.copy()
    for pair, index in errors.solve(errors.pairs(multi_class), target):
        for entry in pair_entries(pair, n, multi_class):
            values[entry], separations[entry] = index
    shares = np.where(np.isnan(values), 0.0, 1.0 if pair_weight is None else pair_weight)
    if not shares.any():
        raise ValueError("pair_cost is zero for every pair of classes that have samples.")
    return PairTable(values, separations, shares / shares.sum())


def solved_pairs(
    errors: RankingErrors, table: PairTable, multi_class: str
) -> tuple[SolvedPair, ...]:
    """The counted pairs of a table."""
    solved = []
    for pair in errors.pairs(multi_class):
        entries = pair_entries(pair, errors.data.labels.size, multi_class)
        share = float(sum(table.shares[entry] for entry in entries))
        if share > 0.0:
            solved.append(SolvedPair(pair, float(table.values[entries[0]]), share))
    return tuple(solved)


@dataclass(frozen=True, eq=False, repr=False)
class Fragility(Summary):
    r"""Fragility Index of a classifier's scores, with the figures that explain it.

    Made by `fragility.measure_fragility`.

    Attributes
    ----------
    value : float
        The index; for several classes the (weighted) mean over class pairs. ``inf`` if any counted
        pair is.
    ratio : float
        Scale-free companion, FI divided by the mean separation of the classes. Defined at target 0
        only: NaN at another target (`fragility.fragility_ratio` gives it), and for constant scores.
    target : float
        The level that the expected ranking error must meet.
    shift : float
        :math:`D^*`, the KL divergence of the worst-case shift from the data (mean over pairs).
    worst_case_weights : ndarray of shape (n_samples,)
        Weight of each sample in the worst case, summing to one within each class (several classes:
        mean over pairs).
    pairs : ndarray of shape (C, C), or (C,) for one-versus-rest
        ``pairs[i, j]`` is the index of samples of class j scored as class i. NaN on the diagonal
        and for absent classes.
    labels : ndarray of shape (C,)
        The classes, in the order of `pairs` and `support`.
    support : ndarray of shape (C,)
        Samples of positive weight in each class.
    n_infinite_pairs : int
        Counted pairs with an infinite index (two classes make one).
    finite_mean : float
        Mean over the counted pairs with a finite index; NaN if there is none.
    median : float
        Median over the counted pairs.
    multi_class : {"ovo", "ovr"}
    """

    value: float
    ratio: float
    target: float
    pairs: Floats
    labels: NDArray[Any]
    support: Integers
    n_infinite_pairs: int
    finite_mean: float
    median: float
    multi_class: str
    _pair_shares: Floats = field(repr=False)
    _pair_ratios: Floats = field(repr=False)
    _solved: tuple[SolvedPair, ...] = field(repr=False)
    _errors: SampleEvidence = field(repr=False)
    _clusters: Integers | None = field(repr=False, default=None)

    @cached_property
    @_quiet
    def _worst(self) -> WorstCase:
        return worst_case(self._errors, self._solved, self.target)

    @property
    def shift(self) -> float:
        """KL divergence of the worst-case shift from the data."""
        return self._worst.shift

    @property
    def worst_case_weights(self) -> Floats:
        """Weight of each sample in the worst case."""
        return self._worst.weights

    @cached_property
    @_quiet
    def standard_error(self) -> float:
        """Standard error of `value`, by the delta method on the influence of each sample.

        In clusters the influences of a cluster add up. NaN if the index is 0 or infinite, or if a
        class has one sample only. With several classes, pairs of index 0 count as certain; prefer
        `interval`, which does not make that assumption.
        """
        if self.value in (0.0, inf):
            return nan
        return self._clustered[0]

    @cached_property
    def _clustered(self) -> tuple[float, float]:
        """Standard error, and its degrees of freedom: infinite without clusters."""
        if self._clusters is None:
            return self._errors.index_error(self._solved, self.target), inf
        by_sample = influences(self._errors, self._solved, self.target)
        return clustered_error(cluster_totals(self._errors, by_sample, self._clusters))

    @_quiet
    def interval(
        self,
        confidence: float = 0.95,
        *,
        method: Literal["auto", "log_wald"] = "auto",
        score_range: tuple[float, float] | None = None,
    ) -> Interval:
        r"""Confidence interval of `value`.

        Parameters
        ----------
        confidence : float, default=0.95
        method : {"auto", "log_wald"}, default="auto"
            "auto", two classes: the values of the index that a test of its equation does not
            reject. For the upper limit, one worst possible mistake is added to each class. The
            interval holds its level where mistakes are rare, and is infinite where the data cannot
            exclude an infinite index. Several classes: the lower limit of the logarithmic interval
            below; the upper limit combines the upper limits of the pairs by their correlation.
            "log_wald": :math:`FI e^{\pm z \, se / FI}`; too short when mistakes are rare.
            In clusters either is stretched, in logarithms, as the standard error is.
        score_range : (float, float), optional
            Lowest and highest score that the model could give; by default (0, 1) if no score lies
            outside by more than rounding (1e-6). Without a range the worst possible mistake is
            unknown, and "auto" has the upper limit of "log_wald".

        Returns
        -------
        Interval
            Named tuple (low, high). With fewer than two samples in a class (0, inf), and so in
            clusters where the index is 0 or infinite.

        Examples
        --------
        >>> import numpy as np
        >>> from fragility import measure_fragility
        >>> sick, score = [0] * 50 + [1] * 50, np.r_[0:0.7:50j, 0.3:1:50j]
        >>> low, high = measure_fragility(sick, score).interval()
        >>> round(low, 3), round(high, 3)
        (0.082, 0.318)
        """
        check_choice(method, ("auto", "log_wald"), "method")
        confidence = check_confidence(confidence)
        found = confidence_interval(
            self._errors,
            self._solved,
            self.target,
            confidence=confidence,
            method=method,
            score_range=self._score_range(score_range),
        )
        if self._clusters is None:
            return found
        error, freedom = self._clustered
        alone = self._errors.index_error(self._solved, self.target)
        if not (0.0 < self.value < inf and error < inf and 0.0 < alone < inf):
            return Interval(0.0, inf)
        return stretched(self.value, found, cluster_stretch(error / alone, freedom, confidence))

    @cached_property
    def _usual_interval(self) -> Interval:
        return self.interval()

    def _score_range(self, given: tuple[float, float] | None) -> tuple[float, float] | None:
        lowest, highest = (float(f(self._errors.data.ranges)) for f in (np.min, np.max))
        if given is None:
            low, high = min(lowest, 0.0), max(highest, 1.0)
            beyond = max(-low, high - 1.0)
            return (low, high) if beyond <= PROBABILITY_ROUNDING else None
        if np.shape(given) != (2,):
            raise ValueError(f"score_range must be two numbers; got {given!r}.")
        low, high = (check_number(end, "score_range") for end in given)
        if not low <= lowest <= highest <= high or low == high:
            raise ValueError(
                f"score_range={given!r} must include all scores, which go from {lowest:g} to "
                f"{highest:g}."
            )
        return low, high

    @overload
    def tail_bound(self, theta: float) -> float: ...
    @overload
    def tail_bound(self, theta: NDArray[Any]) -> Floats: ...
    def tail_bound(self, theta: ArrayLike) -> float | Floats:
        r"""Bound on the share of ranking errors that reach `theta`.

        :math:`\hat P(\varepsilon \ge \theta) \le e^{-(\theta - \tau)/FI}`, never above one. For
        several classes the pair of classes is drawn by its weight in the average.
        """
        thetas = check_values(theta, "theta")
        if np.isnan(thetas).any():
            raise ValueError("theta must not be NaN.")
        above = np.maximum(thetas - self.target, 0.0)
        counted = self._pair_shares > 0.0
        fragility, shares = self.pairs[counted], self._pair_shares[counted]
        with np.errstate(all="ignore"):  # 0/0 and ∞/∞ are at or below the target, or infinite
            exponent = np.where(above[..., None] > 0.0, -above[..., None] / fragility, 0.0)
            bound = np.exp(np.where(np.isnan(exponent), 0.0, exponent)) @ shares
        return bound if np.ndim(theta) else float(bound)

    def var_bound(self, level: float) -> float:
        r"""Bound on the value at risk of the ranking error, its quantile at `level` (say 0.95).

        :math:`VaR_{1-a}(\varepsilon) \le \tau - FI \ln a` with :math:`a = 1 -` `level`. For several
        classes, the point where `tail_bound` falls to :math:`a`.
        """
        level = check_confidence(level, "level")
        counted = self._pair_shares > 0.0
        fragility, shares = self.pairs[counted], self._pair_shares[counted]
        # Infinite pairs may exceed any level, pairs of index zero never exceed the target.
        tail = 1.0 - level - float(shares[np.isinf(fragility)].sum())
        if tail <= 0.0:
            return inf
        decaying = (fragility > 0.0) & np.isfinite(fragility)
        fragility, shares = fragility[decaying], shares[decaying]
        if shares.sum() <= tail:
            return self.target
        unit = float(fragility.max())
        highest = float(np.log(shares.sum() / tail))
        if np.ptp(fragility) == 0.0:
            return self.target + unit * highest

        def excess(above: float) -> float:
            with np.errstate(under="ignore"):
                return float(np.exp(-above * (unit / fragility)) @ shares) - tail

        highest = highest * (1.0 + 1e-9) + 1e-14
        root = bracketed_root(excess, 0.0, highest, xtol=1e-300, rtol=1e-14)
        return self.target + unit * root * (1.0 + 1e-12)  # not below the crossing

    def attribution(self, n: int = 10) -> list[AttributedSample]:
        """The `n` samples with the largest lift, in descending order.

        Each has its index in the input, label, score (two classes: of the positive class; several:
        of its own class), worst-case weight, and lift: the worst-case weight over its share of the
        data. ``pandas.DataFrame(result.attribution())`` makes a table of them.
        """
        if n < 1:
            raise ValueError(f"n must be at least 1; got {n!r}.")
        with np.errstate(all="ignore"):  # samples without weight have no lift: see below
            lift = self.worst_case_weights / self._worst.shares
        lift[self._worst.shares == 0.0] = -1.0  # without weight, or in no counted pair
        n = min(int(n), int(np.count_nonzero(lift >= 0.0)))
        candidates = np.arange(lift.size)
        if n < lift.size:
            threshold = np.partition(lift, lift.size - n)[lift.size - n] if n else inf
            candidates = np.flatnonzero(lift >= threshold)
        order = candidates[np.argsort(-lift[candidates], kind="stable")][:n]
        labels, data = self.labels.tolist(), self._errors.data
        return [
            AttributedSample(
                int(i),
                labels[data.codes[i]],
                data.own_score(int(i)),
                float(self.worst_case_weights[i]),
                float(lift[i]),
            )
            for i in order
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values (no per-sample arrays), for logs; floats may be inf and NaN.

        The interval has a confidence of 0.95.
        """
        return {
            "value": self.value,
            "ratio": self.ratio,
            "target": self.target,
            "standard_error": self.standard_error,
            "interval": list(self._usual_interval),
            "shift": self.shift,
            "multi_class": self.multi_class,
            "labels": self.labels.tolist(),
            "support": self.support.tolist(),
            "pairs": self.pairs.tolist(),
            "n_infinite_pairs": self.n_infinite_pairs,
            "finite_mean": self.finite_mean,
            "median": self.median,
        }

    def to_frame(self) -> Any:
        """Return the index of each pair of classes as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            A row for each ordered pair of classes. `fragility_index` and `ratio` are those of
            samples of class `true` that are scored as class `scored_as`; `support` and
            `support_scored_as` count the samples of these two classes. Both figures are NaN if one
            of the classes has no samples; the ratio is NaN at another target than 0, too. For
            one-versus-rest there is a row for each class, which the rest may be scored as: `true`
            is None, and `support` counts the samples of the rest.

        Examples
        --------
        >>> from fragility import measure_fragility
        >>> y, p = ["a", "b", "c"], [[0.6, 0.2, 0.2], [0.3, 0.5, 0.2], [0.1, 0.6, 0.3]]
        >>> pairs = measure_fragility(y, p).to_frame()
        >>> pairs.loc[pairs["fragility_index"].idxmax(), ["true", "scored_as"]].tolist()
        ['c', 'b']
        """
        n_classes = self.labels.size
        if self.multi_class == "ovo":
            scored_as, true = np.nonzero(~np.eye(n_classes, dtype=bool))
            entries: Any = (scored_as, true)
            true_labels, support = self.labels[true], self.support[true]
        else:
            scored_as = entries = np.arange(n_classes)
            true_labels, support = None, self.support.sum() - self.support
        return data_frame(
            {
                "true": true_labels,
                "scored_as": self.labels[scored_as],
                "fragility_index": self.pairs[entries],
                "ratio": self._pair_ratios[entries],
                "support": support,
                "support_scored_as": self.support[scored_as],
            }
        )

    def _rows(self) -> Iterator[SummaryRow]:
        yield "Fragility Index", f"{self.value:.6g}", f"target {self.target:g}"
        note = "for the population the samples are from"
        if self._score_range(None) is None:
            note = "too short if mistakes are rare: see score_range of interval()"
        low, high = self._usual_interval
        yield "95% interval", f"{low:.4g} to {high:.4g}", note
        if self.target == 0.0:
            yield "ratio", f"{self.ratio:.6g}", "scale-free: compare models by this too"
        else:
            yield "ratio", "-", "defined at target 0: see fragility_ratio"
        yield "shift D*", f"{self.shift:.6g}", "KL divergence of the worst case from the data"
        if self._pair_shares.size > 2 and self.labels.size > 2:
            counted = int(np.count_nonzero(self._pair_shares))
            kind = "class pairs" if self.multi_class == "ovo" else "classes against the rest"
            yield "averaged over", str(counted), kind
            yield "infinite", str(self.n_infinite_pairs), f"finite mean {self.finite_mean:.6g}"
            yield "median", f"{self.median:.6g}", f"largest: {self._largest_pair()}"
        yield samples_row(self.labels.tolist(), self.support)
        top = self.attribution(1)[0]
        if top.lift > 1.0 + 1e-9:  # at FI = ∞ and for constant scores no sample stands out
            where = f"label {top.label}, score {top.score:.3g}, lift {top.lift:.3g}"
            yield "worst sample", f"#{top.index}", where

    def _largest_pair(self) -> str:
        values = np.where(self._pair_shares > 0.0, self.pairs, -1.0)
        largest = np.unravel_index(int(values.argmax()), values.shape)
        names = [str(self.labels[i]) for i in largest]
        where = names[0] if len(names) == 1 else f"true {names[1]} scored as {names[0]}"
        return f"{values[largest]:.6g} ({where})"


@_quiet
def measure(
    errors: RankingErrors,
    target: float,
    multi_class: str,
    pair_weight: Floats | None,
    clusters: Integers | None = None,
) -> Fragility:
    """Measure everything; `fragility.measure_fragility` is the public face."""
    data = errors.data.copy()  # the caller may change the arrays later
    errors = SampleEvidence(data)
    table = solve_pairs(errors, target, multi_class, pair_weight)
    solved = solved_pairs(errors, table, multi_class)
    values = np.array([part.fragility for part in solved])
    finite = np.isfinite(values)
    finite_shares = np.array([part.share for part in solved])[finite]
    ratios = table.ratios if target == 0.0 else np.full_like(table.values, nan)
    return Fragility(
        value=table.average(table.values),
        ratio=table.average(ratios),
        target=target,
        pairs=table.values,
        labels=data.labels,
        support=data.support,
        n_infinite_pairs=int(np.count_nonzero(~finite)),
        finite_mean=float(np.average(values[finite], weights=finite_shares))
        if finite.any()
        else float("nan"),
        median=float(np.median(values)),
        multi_class=multi_class,
        _pair_shares=table.shares,
        _pair_ratios=ratios,
        _solved=solved,
        _errors=errors,
        _clusters=clusters,
    )
