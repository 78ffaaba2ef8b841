r"""Influence of each sample on the index, and the standard error that follows.

To first order sample :math:`k` changes the index by its share of its class times the influence

.. math:: IF_k = \frac{e^{s v_k} / \overline{e^{s v}} - 1}{s^2 h'(s)} = \frac{FI}{D^*} (lift_k - 1).

Here *influence* is this product of share and influence function. The samples of each class count as
independent draws: squared influences add up to the squared standard error. For two models on the
same samples, squared differences of influences add up to the squared standard error of the
difference of the indices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats, Integers
from ..moments import Sample
from .errors import RankingErrors, SolvedPair
from .root import SampleEquation, separation

#: Least fraction of the weight that remains without a sample: less is rounding.
LEAST_REST = 1e-9
#: With fewer effective samples the variance of a class is unknown.
LEAST_EFFECTIVE = 1.0 + 1e-9
#: A class, and the influence of a pseudo-sample of the class.
PseudoInfluence = tuple[int, float]


def influences(
    errors: RankingErrors,
    solved: Sequence[SolvedPair],
    target: float,
    *,
    ratio: bool = False,
    left_out: bool = False,
) -> Floats:
    """Influence of each sample on the average index (or ratio).

    To first order, or from the equation with the sample left out, which does not understate the
    influence of heavy samples. On pairs of index zero no sample has an influence: small changes
    leave them at zero. NaN if a pair is infinite.
    """
    total = np.zeros(errors.data.codes.size)
    for pair, fragility, share in solved:
        if fragility == inf:
            return np.full_like(total, nan)
        if fragility == 0.0:
            continue
        groups, factor = errors.groups(pair), errors.factor(pair)
        s = 1.0 / (fragility * factor)
        by_group = group_influences(groups, target * factor, s, left_out)
        apart = separation(groups)
        for group, rows, own in zip(groups, errors.group_rows(pair), by_group, strict=True):
            if ratio:  # FI / separation, where the separation falls with the values
                own += (fragility * factor / apart) * deviations(group)
                own /= apart
            else:
                own /= factor
            total[rows] += share * own
    return total


def group_influences(
    groups: Sequence[Sample], target: float, s: float, left_out: bool = False
) -> list[Floats]:
    """Influence of each member of the groups on the index, whose inverse is `s`."""
    scale = 1.0 / (s * (s * SampleEquation(groups, target)(s).slope))
    excess = _removal_excess if left_out else _tilt_excess
    return [scale * excess(group, s) for group in groups]


def error_of_squares(
    squares: Sequence[float] | NDArray[Any], sizes: Mapping[int, float], added: float = 0.0
) -> float:
    """Standard error from the sum of squared influences of each class.

    `sizes` maps the counted classes to their effective numbers of samples; `added` is the number of
    pseudo-samples in each. NaN where a class has one sample only.
    """
    if any(size < LEAST_EFFECTIVE for size in sizes.values()):
        return nan
    total = 0.0
    for code, size in sizes.items():
        total += float(squares[code]) * (size + added) / (size + added - 1.0)
    return sqrt(total)


def cluster_totals(errors: RankingErrors, by_sample: Floats, clusters: Integers) -> Floats:
    """Sum of the influences of each cluster; samples of no weight are in none."""
    weights = errors.data.weights
    held = slice(None) if weights is None else weights > 0.0
    _, places = np.unique(clusters[held], return_inverse=True)
    found: Floats = np.bincount(places, by_sample[held]).astype(np.float64, copy=False)
    return found


def clustered_error(totals: Floats) -> tuple[float, float]:
    """Standard error and degrees of freedom, from the sum of the influences of each cluster.

    NaN if there are fewer than two clusters.
    """
    n, unit = totals.size, float(np.abs(totals).max(initial=0.0))
    if n < 2:
        return nan, nan
    if unit == 0.0:
        return 0.0, inf
    squares = (totals / unit) ** 2
    total = float(squares.sum())
    freedom = freedom_of_squares([total], [float((squares**2).sum())], [n])
    return unit * sqrt(total * n / (n - 1.0)), freedom


def counted_classes(solved: Sequence[SolvedPair]) -> list[int]:
    """The classes that occur in some pairs."""
    return sorted({c for pair, _, _ in solved for c in (pair.positive, *pair.negatives)})


def degrees_of_freedom(errors: RankingErrors, by_sample: Floats) -> float:
    """Satterthwaite's degrees of freedom: few if few samples dominate the standard error."""
    codes, n_classes = errors.data.codes, errors.data.labels.size
    unit = float(np.abs(by_sample).max(initial=0.0))
    if not 0.0 < unit < inf:
        return inf
    squares = (by_sample / unit) ** 2
    by_class = np.bincount(codes, squares, n_classes)
    fourths = np.bincount(codes, squares * squares, n_classes)
    return freedom_of_squares(by_class.tolist(), fourths.tolist(), errors.data.support.tolist())


def freedom_of_squares(
    squares: Sequence[float], fourths: Sequence[float], support: Sequence[int]
) -> float:
    """Degrees of freedom from the sums of squares and of fourth powers of each class.

    No more than samples beyond one in each class: equal squares do not make few samples many.
    """
    most = max(float(sum(max(count - 1, 0) for count in support)), 1.0)
    parts = zip(squares, fourths, support, strict=True)
    total = sum(fourth - square * square / max(count, 1) for square, fourth, count in parts)
    return min(2.0 * sum(squares) ** 2 / total, most) if total > 0.0 else most


def _tilt_excess(group: Sample, s: float) -> Floats:
    """Worst-case share of each member minus its share, exact also for small tilts."""
    near = s * group.spread < 1.0
    pivot = group.mean if near else group.pivot
    value = (group.centred_log_moment(s) if near else group.log_moment(s)).value
    return group.weighted(lambda values: np.expm1(s * (values - pivot) - value)) / group.weight


def _removal_excess(group: Sample, s: float) -> Floats:
    """The same from leaving each member out, which gives more for heavy members."""
    shares, tilted = group.tilted_weights(0.0), group.tilted_weights(s)
    rest = np.maximum(1.0 - shares, LEAST_REST)
    excess: Floats = rest * (np.log(rest) - np.log(np.maximum(1.0 - tilted, LEAST_REST)))
    return excess


def deviations(group: Sample) -> Floats:
    """Distance of each value from the mean, times its share of the weight."""
    return group.weighted(lambda v: v - group.mean - group.mean_residual) / group.weight
