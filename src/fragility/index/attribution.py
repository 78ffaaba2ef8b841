r"""Attribution of the risk: the worst-case shift of the data, sample by sample.

At the index the expectation of the ranking error meets the target under exactly one shifted
distribution: negatives reweighted by :math:`e^{s p}`, positives by :math:`e^{-s p}`. Its weights
say which samples carry the risk; they are also the gradient,
:math:`\partial FI / \partial p = \pm w / D^*`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np

from .._typing import Floats
from .errors import RankingErrors, SolvedPair
from .root import SampleEquation, inverse


@dataclass(frozen=True, slots=True)
class AttributedSample:
    """A sample and its part in the worst case.

    `lift` is the weight of the sample in the worst case over its share of the data.
    """

    index: int
    label: Any
    score: float
    weight: float
    lift: float


class WorstCase(NamedTuple):
    """Worst-case shift of some pairs, averaged by their shares.

    `weights` and `shares` (the same average without the shift) are aligned with the samples.
    `shift` is the KL divergence between them, averaged over the pairs.
    """

    weights: Floats
    shares: Floats
    shift: float


def worst_case(errors: RankingErrors, solved: Iterable[SolvedPair], target: float) -> WorstCase:
    """Worst case of some pairs."""
    n = errors.data.codes.size
    weights, shares, shift = np.zeros(n), np.zeros(n), 0.0
    for pair, fragility, share in solved:
        groups, factor = errors.groups(pair), errors.factor(pair)
        s = inverse(fragility * factor)
        for group, rows in zip(groups, errors.group_rows(pair), strict=True):
            weights[rows] += share * group.tilted_weights(s)
            shares[rows] += share * group.tilted_weights(0.0)
        if s == inf:  # all weight on the maximisers
            divergence = sum(g.neg_log_top_share for g in groups)
        else:
            equation = SampleEquation(groups, target * factor)
            divergence = 0.0 if s == 0.0 else s * equation(s).slope
        shift += share * divergence
    return WorstCase(weights, shares, shift)
