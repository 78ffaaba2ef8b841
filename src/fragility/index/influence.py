r"""What the index owes to each sample, and the standard error that follows.

To first order the index moves with sample :math:`k` by its share of its class times its influence,

.. math:: IF_k = \frac{e^{s v_k} / \overline{e^{s v}} - 1}{s^2 h'(s)} = \frac{FI}{D^*} (lift_k - 1).

The samples of each class are taken as independent draws: the squares of these movements add up to
the squared standard error and, for two models on the same samples, those of their differences to
that of the difference of the indices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, inf, isnan, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats, Integers
from ..moments import Sample
from .errors import Pair, RankingErrors
from .root import SampleEquation

#: What is left of the weight without a sample, at least: less is rounding.
LEAST_REST = 1e-9
#: With fewer effective samples a class says nothing about its own spread.
LEAST_EFFECTIVE = 1.0 + 1e-9


class SolvedPair(NamedTuple):
    """A pair of classes, its index, and its share in the average."""

    pair: Pair
    fragility: float
    share: float


def movements(
    errors: RankingErrors,
    solved: Sequence[SolvedPair],
    target: float,
    *,
    ratio: bool = False,
    left_out: bool = False,
) -> Floats:
    """How much the average index (or ratio) owes to each sample.

    To first order, or from the equation with the sample left out, which does not understate what
    hangs on few samples. Pairs of index zero owe nothing to any sample: small changes leave them
    at zero. NaN if a pair is infinite.
    """
    moves = np.zeros(errors.data.codes.size)
    for pair, fragility, share in solved:
        if fragility == inf:
            return np.full_like(moves, nan)
        if fragility == 0.0:
            continue
        groups, factor = errors.groups(pair), errors.factor(pair)
        separation = -fsum(part for g in groups for part in (g.mean, g.mean_residual))
        for group, rows, move in zip(
            groups,
            errors.group_rows(pair),
            group_movements(groups, target * factor, 1.0 / (fragility * factor), left_out),
            strict=True,
        ):
            if ratio:  # of FI / separation, where the separation falls with the values
                move += (fragility * factor / separation) * deviations(group)
                move /= separation
            else:
                move /= factor
            moves[rows] += share * move
    return moves


def group_movements(
    groups: Sequence[Sample], target: float, s: float, left_out: bool = False
) -> list[Floats]:
    """What the index owes to each member of the groups."""
    scale = 1.0 / (s * (s * SampleEquation(groups, target)(s).slope))
    excess = _removal_excess if left_out else _tilt_excess
    return [scale * excess(group, s) for group in groups]


def standard_error(
    errors: RankingErrors, solved: Sequence[SolvedPair], moves: Floats, *pseudo: tuple[int, float]
) -> float:
    """Standard error of an estimate that moves like this with the samples.

    `pseudo` lists the classes and movements of pseudo-samples. NaN with a class of one sample, or
    of one that outweighs all others.
    """
    data = errors.data
    sizes = {code: effective_size(errors, code) for code in counted_classes(solved)}
    unit = max([float(np.abs(moves).max()), *(abs(move) for _, move in pseudo)])
    if isnan(unit) or unit == 0.0:
        return error_of_squares(np.full(data.labels.size, unit), sizes)
    squares = np.bincount(data.codes, (moves / unit) ** 2, data.labels.size)
    for code, move in pseudo:
        squares[code] += (move / unit) ** 2
    return unit * error_of_squares(squares, sizes, 1.0 if pseudo else 0.0)


def error_of_squares(
    squares: NDArray[Any], sizes: Mapping[int, float], added: float = 0.0
) -> float:
    """Standard error from the sums of squared movements of each class.

    `sizes` has the effective number of samples of the classes that count, and `added` how many
    pseudo-samples each has besides. NaN where a class has one sample only.
    """
    if any(size < LEAST_EFFECTIVE for size in sizes.values()):
        return nan
    total = 0.0
    for code, size in sizes.items():
        total += float(squares[code]) * (size + added) / (size + added - 1.0)
    return sqrt(total)


def counted_classes(solved: Sequence[SolvedPair]) -> list[int]:
    """The classes that occur in some pairs."""
    return sorted({c for pair, _, _ in solved for c in (pair.positive, *pair.negatives)})


def effective_size(errors: RankingErrors, code: int) -> float:
    """Kish's effective number of samples of a class: their number if they weigh the same."""
    data = errors.data
    if data.weights is None:
        return float(data.support[code])
    weights = data.weights[data.codes == code]
    weights = weights / weights.max()
    return float(weights.sum()) ** 2 / float(weights @ weights)


def degrees_of_freedom(errors: RankingErrors, moves: Floats) -> float:
    """Satterthwaite's: few if the standard error itself hangs on few samples."""
    codes, n_classes = errors.data.codes, errors.data.labels.size
    unit = float(np.abs(moves).max(initial=0.0))
    if not 0.0 < unit < inf:
        return inf
    squares = (moves / unit) ** 2
    by_class = np.bincount(codes, squares, n_classes)
    fourths = np.bincount(codes, squares * squares, n_classes)
    return freedom_of_squares(by_class, fourths, errors.data.support)


def freedom_of_squares(squares: NDArray[Any], fourths: NDArray[Any], support: Integers) -> float:
    """Degrees of freedom from the sums of squares and of fourth powers of each class."""
    total = float((fourths - squares**2 / np.maximum(support, 1)).sum())
    return 2.0 * float(squares.sum()) ** 2 / total if total > 0.0 else inf


def _tilt_excess(group: Sample, s: float) -> Floats:
    """What the worst case adds to the shares of the weight, exact also for small tilts."""
    near = s * group.spread < 1.0
    pivot = group.mean if near else group.pivot
    value = (group.centred_log_moment(s) if near else group.log_moment(s)).value
    parts = []
    for values, weights in group.blocks():
        part = np.expm1(s * (values - pivot) - value)
        parts.append(part if weights is None else part * weights)
    excess: Floats = np.concatenate(parts) / group.weight
    return excess


def _removal_excess(group: Sample, s: float) -> Floats:
    """The same from leaving each member out instead of to first order: more for heavy ones."""
    shares, tilted = group.tilted_weights(0.0), group.tilted_weights(s)
    rest = np.maximum(1.0 - shares, LEAST_REST)
    excess: Floats = rest * (np.log(rest) - np.log(np.maximum(1.0 - tilted, LEAST_REST)))
    return excess


def deviations(group: Sample) -> Floats:
    """Distance of each value from the mean, times its share of the weight."""
    parts = []
    for values, weights in group.blocks():
        part = values - group.mean - group.mean_residual
        parts.append(part if weights is None else part * weights)
    found: Floats = np.concatenate(parts) / group.weight
    return found
