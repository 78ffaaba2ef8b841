r"""Worst-case weight of each case, and which cases a slice is compared with.

A slice is held against two kinds of cases:

* cases of the same *class*, whatever their scores: a slice has more than its share of the
  worst-case weight if its cases have higher weights than others of their class;
* cases of about the same *score* (for several classes, about the same probabilities), whatever
  their class: a slice has more weight than its scores lead one to expect if at the same score it
  has more cases of the wrong class.

The second is what a model can be blamed for: where it is rightly unsure, cases are hard, and any
model has much of its worst-case weight there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._typing import Floats, Integers, Mask
from .._validation import LabelledScores
from ..index.attribution import worst_case
from ..index.errors import RankingErrors
from ..index.fragility import solve_pairs, solved_pairs

#: Weights within a class are told apart up to this factor, 2 ** (1 / 8), ...
_STEPS_PER_DOUBLING = 8
#: ... and not at all below this lift, which adds nothing.
_LEAST_LIFT = 2.0**-6
#: Cases of about the same score: no fewer than these, and no more groups than about these.
_LEAST_ALIKE, _MOST_GROUPS = 5, 200


class Evidence(NamedTuple):
    """What is known of each case, without the columns.

    Attributes
    ----------
    classes : ndarray of shape (n,)
    weights : ndarray of shape (n,)
        Worst-case weights.
    shares : ndarray of shape (n,)
        The same without the shift: shares of the data, in which classes count alike.
    roots : ndarray of shape (n, 1) or (n, C)
        Square roots of the probabilities; of two classes, of the positive one alone.
    """

    classes: Integers
    weights: Floats
    shares: Floats
    roots: Floats

    def take(self, rows: Mask) -> Evidence:
        """Some of the cases."""
        return Evidence(
            self.classes[rows],
            self.weights[rows],
            self.shares[rows],
            self.roots[rows],
        )

    def levels(self) -> Integers:
        """Level of each case's lift: cases of one level have nearly the same."""
        lift = np.maximum(self.weights / self.shares, _LEAST_LIFT)
        found: Integers = np.rint(_STEPS_PER_DOUBLING * np.log2(lift)).astype(np.int64)
        return found

    def alike(self) -> Integers:
        """Group of cases of about the same score.

        All cases are cut in two at the median of the probability whose square root varies most,
        and so are the parts, as long as both have cases enough. Square roots, because one per cent
        more says more of a class of 1 % than of one of 50 %.
        """
        n = self.classes.size
        size = max(_LEAST_ALIKE, n / _MOST_GROUPS)
        groups = np.zeros(n, dtype=np.int64)
        waiting, n_groups = [np.arange(n)], 0
        while waiting:
            rows = waiting.pop()
            lower = _lower_part(self.roots[rows], size)
            if lower is None:
                groups[rows] = n_groups
                n_groups += 1
            else:
                waiting += [rows[lower], rows[~lower]]
        return groups

    def over_classes(self) -> Floats:
        """Weight beyond the mean of its class, by case; weights of cases are allowed for."""
        lifts = _by_group(self.classes, self.weights, self.shares)
        return self.weights - lifts[self.classes] * self.shares

    def expected(self, groups: Integers) -> Floats:
        """Weight that cases with such scores have on average."""
        return _by_group(groups, self.weights, self.shares)[groups] * self.shares


def _lower_part(roots: Floats, size: float) -> Mask | None:
    """The cases below the median of the first column that allows two parts of a size."""
    for column in np.argsort(-roots.var(axis=0), kind="stable"):
        own = roots[:, column]
        lower: Mask = own < np.partition(own, own.size // 2)[own.size // 2]
        if not lower.any():  # more than half have the least value
            lower = own == own.min()
        if size <= np.count_nonzero(lower) <= own.size - size:
            return lower
    return None


def _by_group(groups: Integers, weights: Floats, shares: Floats) -> Floats:
    """Mean lift of each group."""
    n_groups = int(groups.max()) + 1
    total, share = (np.bincount(groups, part, n_groups) for part in (weights, shares))
    found: Floats = np.divide(total, share, out=np.zeros(n_groups), where=share > 0.0)
    return found


@np.errstate(over="ignore", under="ignore")
def case_evidence(data: LabelledScores) -> Evidence:
    """Worst-case weights as `fragility.measure_fragility` has them, and predictions.

    Raises
    ------
    ValueError
        If the index is 0 or infinite: then there are no worst-case weights.
    """
    errors = RankingErrors(data)
    table = solve_pairs(errors, 0.0, "ovo", None)
    index = table.average(table.values)
    if not 0.0 < index < np.inf:
        why = "no case is ranked wrongly" if index == 0.0 else "a class is not ranked above another"
        raise ValueError(
            f"The Fragility Index is {'0' if index == 0.0 else 'infinite'} ({why}), so that there "
            "are no worst-case weights to search. Give more cases, or look at the groups of a "
            "Report, which need none."
        )
    found = worst_case(errors, solved_pairs(errors, table, "ovo"), 0.0)
    probabilities = data.scores.reshape(data.codes.size, -1).astype(np.float64)
    roots = np.sqrt(np.clip(probabilities, 0.0, 1.0))
    return Evidence(data.codes.astype(np.int64), found.weights, found.shares, roots)
