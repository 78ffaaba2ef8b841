r"""Influence of a case on the figures beside the index, by its class and score.

A figure moves by :math:`w_k \varphi_k` if the weight of case k grows by a small part of itself; the
squares of these moves add up to the squared standard error. Figures of pairs (AUC, buffered AUC,
CVaR) are means over two classes, of which each counts by itself: for AUC these are DeLong's
components. The other figures are means over all cases, or functions of such means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import NamedTuple, Protocol

import numpy as np

from .._typing import Floats, Indices
from ..measured import CALIBRATION_BINS, CVAR_LEVEL
from ..ordered import distinct_places, running_totals
from ..scores.atoms import Atoms
from .confidence import PredictionAtoms
from .proper import log_losses
from .rank import Levels
from .tails import TailBounds

#: Figures of pairs of classes, and figures of all cases.
OF_PAIRS = ("auc", "buffered_auc", "cvar")
OF_ALL = ("log_loss", "brier", "calibration_error", "confident_error_rate", "aurc")
FIGURES_BY_CASE = OF_PAIRS + OF_ALL
#: Beside these, of answers: the share of them that is right.
OF_ANSWERS = ("accuracy",)


class PairInfluence(NamedTuple):
    """Influence on `OF_PAIRS` of cases of unit weight of the two classes of a pair.

    Attributes
    ----------
    negatives, positives : ndarray of shape (3, B)
        By figure and atom of the class, over the weight of the class.
    worst : ndarray of shape (2, 3)
        The same, times that weight, for the worst mistake of each class.
    """

    negatives: Floats
    positives: Floats
    worst: Floats


def pair_influence(negatives: Atoms, positives: Atoms, tails: TailBounds) -> PairInfluence:
    """Influence of scores at the means of their atoms."""
    below = _share_below(positives, negatives)
    above = 1.0 - _share_below(negatives, positives)
    excesses_above = _excesses(negatives, positives)
    of_negatives, of_positives, worst = [above], [below], [(0.0, 0.0)]
    if 0.0 < tails.buffer < inf:  # else no case moves it
        excesses, ends = excesses_above(-1.0 / tails.buffer)
        of_negatives.append(-tails.buffer * excesses[0])
        of_positives.append(-tails.buffer * excesses[1])
        worst.append((-tails.buffer * ends[0], -tails.buffer * ends[1]))
    else:
        for rows, atoms in ((of_negatives, negatives), (of_positives, positives)):
            rows.append(np.zeros(atoms.weight.size))
        worst.append((0.0, 0.0))
    excesses, ends = excesses_above(tails.quantile)
    of_negatives.append(excesses[0] / (1.0 - CVAR_LEVEL))
    of_positives.append(excesses[1] / (1.0 - CVAR_LEVEL))
    worst.append((ends[0] / (1.0 - CVAR_LEVEL), ends[1] / (1.0 - CVAR_LEVEL)))
    found, ends_of = [], np.array(worst).T
    for code, (rows, atoms) in enumerate(((of_negatives, negatives), (of_positives, positives))):
        values, weight = np.array(rows), float(atoms.weight.sum())
        means = values @ (atoms.weight / weight)
        ends_of[code] -= means
        found.append((values - means[:, np.newaxis]) / weight)
    return PairInfluence(found[0], found[1], ends_of)


def _share_below(own: Atoms, others: Atoms) -> Floats:
    """Share of the weight of another class below each atom; of the same atom one half."""
    before = running_totals(others.weight) / others.weight.sum()
    first = others.low.searchsorted(own.low)
    shared = np.append(others.low, np.nan).take(first) == own.low
    found: Floats = before.take(first)
    found += before.take(first + shared)
    found *= 0.5
    return found


def _excesses(
    negatives: Atoms, positives: Atoms
) -> Callable[[float], tuple[list[Floats], list[float]]]:
    r"""By level t: mean of :math:`(\varepsilon - t)_+` over the other class, by atom.

    Also for the worst mistakes, which are a negative of score 1 and a positive of score 0.
    """
    masses, sums = (
        running_totals(part) / positives.weight.sum()
        for part in (positives.weight, positives.weight * positives.mean)
    )

    def of_negatives(scores: Floats, level: float) -> Floats:
        apart = scores - level
        place = positives.mean.searchsorted(apart)
        return np.asarray(apart * masses.take(place) - sums.take(place))

    masses_above, sums_above = (
        running_totals(part[::-1])[::-1] / negatives.weight.sum()
        for part in (negatives.weight, negatives.weight * negatives.mean)
    )

    def of_positives(scores: Floats, level: float) -> Floats:
        apart = scores + level
        place = negatives.mean.searchsorted(apart, side="right")
        return np.asarray(sums_above.take(place) - apart * masses_above.take(place))

    def above(level: float) -> tuple[list[Floats], list[float]]:
        found = [of_negatives(negatives.mean, level), of_positives(positives.mean, level)]
        ends = of_negatives(np.ones(1), level), of_positives(np.zeros(1), level)
        return found, [float(end[0]) for end in ends]

    return above


def proper_influence(p_true: Floats, squares: Floats) -> Floats:
    """Log-loss and squared error of cases, (2, n), by the probability of their class."""
    return np.array([log_losses(p_true), squares])


def risk_coverage_influence(atoms: PredictionAtoms, levels: Levels) -> Floats:
    r"""Influence of each atom of predictions on AURC, per unit of its share of the weight.

    With r(q) the error rate among the cases at least as confident as q, and S(q) their share,
    :math:`\varphi = r(q_k) - AURC + E[(\text{wrong}_k - r(q)) / S(q);\, q \le q_k]`.
    """
    total = levels.weight.sum()
    share = levels.weight / total
    above = np.cumsum(share[::-1])[::-1]
    risk = np.cumsum(levels.wrong[::-1])[::-1] / total / above
    inverse, rated = np.cumsum(share / above), np.cumsum(share * risk / above)
    own = levels.places
    found: Floats = risk[own] - share @ risk + atoms.wrong * inverse[own] - rated[own]
    return found


class CalibrationInfluence(NamedTuple):
    """Influence on the calibration error, and how uncertain each of its bins is.

    Attributes
    ----------
    happened, others : ndarray
        By atom: mean sign of the differences in its bins, frequency minus score.
    variances : ndarray of shape (n_bins,)
        Of the difference in each bin, over all cases.
    """

    happened: Floats
    others: Floats
    variances: Floats


def calibration_influence(happened: Atoms, others: Atoms, n_bins: int) -> CalibrationInfluence:
    """Bins of equal mass, as in `fragility.figures.rank.calibration_error`."""
    low, origin = distinct_places(happened.low, others.low)
    yes = np.arange(origin.size) < happened.low.size
    weight, mean, squares = (
        np.concatenate([getattr(part, name) for part in (happened, others)])
        for name in ("weight", "mean", "squares")
    )
    total = float(weight.sum())
    masses, residuals = (
        running_totals(np.bincount(origin, part, low.size).astype(np.float64)) / total
        for part in (weight, weight * (yes - mean))
    )
    edges = np.arange(n_bins + 1) / n_bins
    steps = np.diff(np.interp(edges, masses, residuals))
    # An atom may reach over several bins: its parts move each of them.
    signed = np.concatenate([[0.0], np.cumsum(np.sign(steps)) / n_bins])
    reach = np.diff(np.interp(masses, edges, signed))
    sign = reach / np.maximum(np.diff(masses), 1e-300)
    # The spread of outcomes within a bin, and at least what the scores themselves say: a bin in
    # which nothing happened is not therefore certain.
    centre = masses[:-1] + 0.5 * np.diff(masses)
    place = np.minimum((centre * n_bins).astype(np.intp), n_bins - 1)[origin]
    seen = squares * (yes - mean) ** 2
    told = squares * mean * (1.0 - mean)
    variances = np.maximum(*(np.bincount(place, part, n_bins) for part in (seen, told)))
    of_happened, of_others = np.split(sign.take(origin), [happened.low.size])
    return CalibrationInfluence(of_happened, of_others, variances / total**2)


class CaseInfluences(Protocol):
    """Influence of cases on all figures of one model."""

    @property
    def worst(self) -> Floats:
        """Of the worst mistake of each class on `OF_PAIRS`, (C, 3), see `PairInfluence`."""

    @property
    def calibration(self) -> Floats:
        """Variance of each bin of the calibration error."""

    @property
    def largest_loss(self) -> float:
        """Largest log-loss of a case."""

    def values(self, code: int, columns: Floats) -> Floats:
        """Influence on `FIGURES_BY_CASE` of cases of a class, (8, n), of unit weight.

        Of answers also on `OF_ANSWERS`, (9, n).

        `columns` are their scores, (1, n) or (C, n).
        """


class ScoreInfluences(NamedTuple):
    """Influence on all figures of cases of two classes, by their score.

    Attributes
    ----------
    low : sequence of ndarray
        By class, the least score of each atom.
    tables : sequence of ndarray of shape (8, B)
        By class: influence of a case of unit weight on `FIGURES_BY_CASE`.
    worst : ndarray of shape (2, 3)
        Of the worst mistakes, see `PairInfluence`, by class.
    calibration : ndarray
        Variance of each bin of the calibration error.
    largest_loss : float
        Largest log-loss of a case.
    """

    low: Sequence[Floats]
    tables: Sequence[Floats]
    worst: Floats
    calibration: Floats
    largest_loss: float

    def values(self, code: int, columns: Floats) -> Floats:
        return _looked_up(self.low[code], self.tables[code], columns[0])


def _looked_up(low: Floats, table: Floats, scores: Floats) -> Floats:
    """Rows of a table at the atom of each score."""
    places = low.searchsorted(scores, side="right") - 1
    return table.take(np.maximum(places, 0, out=places), axis=1)


def score_influences(
    atoms: Sequence[Atoms],
    predictions: PredictionAtoms,
    levels: Levels,
    positive: int,
    tails: TailBounds,
    confident: float,
    n_cases: int,
    *,
    answers: bool = False,
) -> ScoreInfluences:
    """Influences of two classes.

    Parameters
    ----------
    atoms : sequence of Atoms
        By class.
    predictions : PredictionAtoms
        Of these atoms, those of the first class first.
    levels : Levels
        Of these predictions.
    positive : int
    tails : TailBounds
    confident : float
        Above this confidence an error is a confident one.
    n_cases : int
    answers : bool
        Whether cases are answers: `OF_ANSWERS` comes last then.
    """
    total = float(sum(part.weight.sum() for part in atoms))
    ranked = pair_influence(atoms[1 - positive], atoms[positive], tails)
    pairs = [ranked.negatives, ranked.positives][:: 1 if positive else -1]
    calibration = calibration_influence(
        atoms[positive], atoms[1 - positive], min(CALIBRATION_BINS, n_cases)
    )
    p_true = np.concatenate(
        [part.mean if code == positive else 1.0 - part.mean for code, part in enumerate(atoms)]
    )
    signs = [calibration.others, calibration.happened][:: 1 if positive else -1]
    sign, scores = np.concatenate(signs), np.concatenate([part.mean for part in atoms])
    codes = np.repeat([0, 1], [part.mean.size for part in atoms])
    rows = np.stack(
        [
            *proper_influence(p_true, (1.0 - p_true) ** 2),
            sign * ((codes == positive) - scores),
            predictions.wrong & (predictions.mean > confident),
            risk_coverage_influence(predictions, levels),
            *([~predictions.wrong] if answers else []),
        ]
    )
    means = rows @ np.concatenate([part.weight for part in atoms]) / total
    rows -= means[:, np.newaxis]
    largest = float(rows[0].max() + means[0])
    rows /= total
    own = rows[:, : atoms[0].mean.size], rows[:, atoms[0].mean.size :]
    tables = [np.concatenate(parts) for parts in zip(pairs, own, strict=True)]
    worst = ranked.worst if positive else ranked.worst[::-1]
    lows = [part.low for part in atoms]
    return ScoreInfluences(lows, tables, worst, calibration.variances, largest)


class TableInfluences(NamedTuple):
    """The same for calibrated scores, by the place of the score before calibration in a table.

    `tables` has shape (2, 8, B): cases of a class and place are under several maps, and count with
    the mean of their influences.
    """

    tables: Floats
    places: Callable[[Floats], Indices]
    worst: Floats
    calibration: Floats
    largest_loss: float

    def values(self, code: int, columns: Floats) -> Floats:
        found: Floats = self.tables[code].take(self.places(columns[0]), axis=1)
        return found


class RowInfluences(NamedTuple):
    """The same for several classes.

    Attributes
    ----------
    pairs : mapping of (int, int) to (ndarray, ndarray)
        By class and column: least score of each atom, and influences on `OF_PAIRS`, (3, B).
    outcomes : sequence of (ndarray, ndarray)
        Of wrong and of right predictions, by confidence: least confidence of each atom, and
        influences on the last three of `OF_ALL`.
    means : ndarray of shape (2,)
        Log-loss and Brier score.
    total : float
        Weight of all cases.
    worst, calibration, largest_loss
        As in `CaseInfluences`.
    """

    pairs: Mapping[tuple[int, int], tuple[Floats, Floats]]
    outcomes: Sequence[tuple[Floats, Floats]]
    means: Floats
    total: float
    worst: Floats
    calibration: Floats
    largest_loss: float

    def values(self, code: int, columns: Floats) -> Floats:
        found = np.zeros((len(FIGURES_BY_CASE), columns.shape[1]))
        for column, scores in enumerate(columns):
            if (code, column) in self.pairs:
                found[:3] += _looked_up(*self.pairs[code, column], scores)
        p_true = columns[code]
        squares = np.einsum("cn,cn->n", columns, columns) + 1.0 - 2.0 * p_true
        found[3:5] = (proper_influence(p_true, squares) - self.means[:, np.newaxis]) / self.total
        right, confidence = columns.argmax(axis=0) == code, columns.max(axis=0)
        for outcome, (low, table) in enumerate(self.outcomes):
            own = np.flatnonzero(right == bool(outcome))
            if own.size:
                found[5:, own] = _looked_up(low, table, confidence[own])
        return found


def outcome_influences(
    wrong: Atoms,
    right: Atoms,
    predictions: PredictionAtoms,
    levels: Levels,
    confident: float,
    n_cases: int,
) -> tuple[list[tuple[Floats, Floats]], Floats]:
    """`RowInfluences.outcomes`, and the variances of the bins of the calibration error."""
    found = calibration_influence(right, wrong, min(CALIBRATION_BINS, n_cases))
    sign = np.concatenate([found.others, found.happened])
    rows = np.stack(
        [
            sign * (~predictions.wrong - predictions.mean),
            predictions.wrong & (predictions.mean > confident),
            risk_coverage_influence(predictions, levels),
        ]
    )
    total = float(predictions.weight.sum())
    rows -= (rows @ predictions.weight / total)[:, np.newaxis]
    parts = np.split(rows / total, [wrong.low.size], axis=1)
    return [(wrong.low, parts[0]), (right.low, parts[1])], found.variances
