"""Two models on the same samples: which is more fragile, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._parameters import check_choice, check_confidence, check_number
from .._typing import Floats, Labels
from .._validation import check_labelled_scores, check_pair_weight
from ..index.errors import RankingErrors
from ..index.fragility import PairTable, solve_pairs, solved_pairs
from ..index.inference import PairedDifference
from ..index.influence import SolvedPair, degrees_of_freedom, movements, standard_error
from .functions import MultiClass


@dataclass(frozen=True, repr=False)
class FragilityComparison(PairedDifference):
    """Difference of two models' indices, with that of their scale-free ratios.

    Made by `fragility.compare_fragility`.

    Attributes
    ----------
    a, b : float
        Fragility Index of the two models.
    difference : float
        ``a - b``: negative if the first model is less fragile.
    standard_error : float
        Of the difference. NaN, like `interval` and `p_value`, where an index is 0 or infinite.
    interval : Interval
        Named tuple (low, high) for the difference.
    p_value : float
        Two-sided, of no difference.
    ratio : PairedDifference
        The same for the ratios, which do not reward shrinking the scores. NaN at a target other
        than 0.
    target, confidence : float
    """

    ratio: PairedDifference
    target: float
    confidence: float

    def _rows(self) -> list[tuple[str, ...]]:
        head = ("", "a", "b", "a - b", f"{100 * self.confidence:g}% interval", "p-value")
        rows = [("Fragility Index", self), ("ratio", self.ratio)]
        return [head] + [
            (
                name,
                *(
                    "-" if np.isnan(value) else f"{value:.6g}"
                    for value in (part.a, part.b, part.difference)
                ),
                "-" if np.isnan(part.p_value) else "({:.4g}, {:.4g})".format(*part.interval),
                "-" if np.isnan(part.p_value) else f"{part.p_value:.3g}",
            )
            for name, part in rows
        ]

    def _note(self) -> str:
        odd = [name for name, value in (("a", self.a), ("b", self.b)) if value in (0.0, inf)]
        if odd:
            return (
                f"No test: the index of {' and '.join(odd)} is 0 or infinite. Compare the "
                "intervals of measure_fragility instead."
            )
        if np.isnan(self.p_value):
            return "No test: a class has a single sample, or one that outweighs all others."
        return "" if self.target == 0.0 else "The ratio is defined at target 0 only."

    def __repr__(self) -> str:
        rows = self._rows()
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return "\n".join(lines + [self._note()] * bool(self._note()))

    def _repr_html_(self) -> str:
        head, *rows = self._rows()
        cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
        )
        note = f"<caption>{escape(self._note())}</caption>" if self._note() else ""
        return f"<table>{note}<tr>{cells}</tr>{body}</table>"


def compare_fragility(
    y_true: ArrayLike,
    score_a: ArrayLike,
    score_b: ArrayLike,
    *,
    target: float = 0.0,
    multi_class: MultiClass = "ovo",
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    pair_weight: ArrayLike | None = None,
    confidence: float = 0.95,
) -> FragilityComparison:
    r"""Is one model more fragile than another? A paired test on the same samples.

    A Wald test: the standard error of the difference comes from the difference of each sample's
    influence on the two indices, so what moves both models alike cancels. The influence is that of
    leaving the sample out, and the test is Student's with as many degrees of freedom as the
    standard error has itself, so that a few heavy samples do not pass for certainty. Undefined
    (NaN) where an index is 0 or infinite.

    A model with smaller scores has a smaller index: look at the `ratio` of the result, too, and
    compare at equal calibration.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    score_a, score_b : array-like of shape (n_samples,) or (n_samples, n_classes)
        Scores of the two models for the same samples.
    target, multi_class, labels, pos_label, sample_weight, pair_weight
        As in `fragility_index`.
    confidence : float, default=0.95
        Of the interval.

    Returns
    -------
    FragilityComparison

    Examples
    --------
    >>> from fragility import compare_fragility
    >>> sick = [0, 0, 0, 0, 1, 1, 1, 1]
    >>> cautious = [0.1, 0.2, 0.3, 0.6, 0.4, 0.7, 0.8, 0.9]
    >>> bold = [0.0, 0.1, 0.2, 0.8, 0.3, 0.8, 0.9, 1.0]
    >>> compare_fragility(sick, cautious, bold)
                     a          b         a - b      95% interval       p-value
    Fragility Index  0.0732868  0.196903  -0.123616  (-0.4608, 0.2136)  0.399
    ratio            0.183217   0.414533  -0.231316  (-1.111, 0.648)    0.554
    """
    check_choice(multi_class, ("ovo", "ovr"), "multi_class")
    target, confidence = check_number(target, "target"), check_confidence(confidence)
    errors = []
    for name, score in (("score_a", score_a), ("score_b", score_b)):
        data = check_labelled_scores(
            y_true,
            score,
            labels=labels,
            pos_label=pos_label,
            sample_weight=sample_weight,
            name=name,
        )
        errors.append(RankingErrors(data))
    pairs = check_pair_weight(pair_weight, errors[0].data.labels.size, multi_class)
    return compare(errors[0], errors[1], target, multi_class, pairs, confidence)


@np.errstate(over="ignore", under="ignore")
def compare(
    errors_a: RankingErrors,
    errors_b: RankingErrors,
    target: float,
    multi_class: str,
    pairs: Floats | None,
    confidence: float,
) -> FragilityComparison:
    """Compare checked predictions of the same samples; `compare_fragility` is the public face."""
    a, b = (_Model(errors, target, multi_class, pairs) for errors in (errors_a, errors_b))
    index = _difference(a, b, confidence, ratio=False)
    return FragilityComparison(
        **vars(index),
        ratio=_difference(a, b, confidence, ratio=True),
        target=target,
        confidence=confidence,
    )


class _Model:
    def __init__(
        self, errors: RankingErrors, target: float, multi_class: str, pairs: Floats | None
    ) -> None:
        self.errors, self._target = errors, target
        self._table: PairTable = solve_pairs(errors, target, multi_class, pairs)
        self.solved: tuple[SolvedPair, ...] = solved_pairs(errors, self._table, multi_class)

    def value(self, ratio: bool) -> float:
        if ratio and self._target != 0.0:
            return nan
        return self._table.average(self._table.ratios if ratio else self._table.values)

    def movements(self, ratio: bool) -> Floats:
        return movements(self.errors, self.solved, self._target, ratio=ratio, left_out=True)


def _difference(a: _Model, b: _Model, confidence: float, ratio: bool) -> PairedDifference:
    values = a.value(ratio), b.value(ratio)
    error, freedom = nan, inf
    if all(0.0 < value < inf for value in values):
        change = a.movements(ratio) - b.movements(ratio)
        error = standard_error(a.errors, a.solved, change)
        freedom = degrees_of_freedom(a.errors, change)
    return PairedDifference.of(*values, error, freedom, confidence)
