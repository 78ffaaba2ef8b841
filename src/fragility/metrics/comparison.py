"""Two models on the same samples: a paired test of which is more fragile."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._labels import check_clusters
from .._parameters import check_choice, check_confidence, check_number
from .._summary import aligned
from .._typing import Labels
from .._validation import check_index_weights, check_labelled_scores
from ..index.errors import RankingErrors
from ..index.fragility import solve_pairs, solved_pairs
from ..index.inference import PairedDifference, SampleEvidence
from ..index.influence import (
    cluster_totals,
    clustered_error,
    degrees_of_freedom,
    influences,
)
from .functions import MultiClass


@dataclass(frozen=True, repr=False)
class FragilityComparison(PairedDifference):
    """Difference of two models' indices, and of their scale-free ratios.

    Made by `fragility.compare_fragility`.

    Attributes
    ----------
    a, b : float
        Fragility Index of the two models.
    difference : float
        ``a - b``: negative if the first model is less fragile.
    standard_error : float
        Standard error of the difference. NaN, like `interval` and `p_value`, where an index is 0
        or infinite.
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
        rows: list[tuple[str, ...]] = [head]
        for name, part in (("Fragility Index", self), ("ratio", self.ratio)):
            values = (part.a, part.b, part.difference)
            numbers = ["-" if np.isnan(value) else f"{value:.6g}" for value in values]
            test = ["-", "-"]
            if not np.isnan(part.p_value):
                test = ["({:.4g}, {:.4g})".format(*part.interval), f"{part.p_value:.3g}"]
            rows.append((name, *numbers, *test))
        return rows

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
        return f"{aligned(self._rows())}\n{self._note()}".rstrip("\n")

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
    pair_cost: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    confidence: float = 0.95,
) -> FragilityComparison:
    r"""Is one model more fragile than another? A paired test on the same samples.

    A Wald test: the standard error of the difference comes from the difference of each sample's
    influence on the two indices, so that common influences cancel. The influence of a sample is the
    change when it is left out. The test is Student's, with the degrees of freedom of the standard
    error, so that a few heavy samples do not look like certainty. Undefined (NaN) where an index is
    0 or infinite.

    A model with smaller scores has a smaller index: look at the `ratio` of the result, too, and
    compare at equal calibration.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    score_a, score_b : array-like of shape (n_samples,) or (n_samples, n_classes)
        Scores of the two models for the same samples.
    target, multi_class, labels, pos_label, sample_weight, pair_cost
        As in `fragility_index`.
    cluster : array-like of shape (n_samples,), optional
        Samples that belong together, such as those of one patient, count as one.
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
    ratio            0.183217   0.414533  -0.231316  (-1.143, 0.68)     0.557
    """
    check_choice(multi_class, ("ovo", "ovr"), "multi_class")
    target, confidence = check_number(target, "target"), check_confidence(confidence)
    models = []
    for name, score in (("score_a", score_a), ("score_b", score_b)):
        data = check_labelled_scores(y_true, score, labels, pos_label, sample_weight, name=name)
        models.append(RankingErrors(data))
    weights = check_index_weights(pair_cost, models[0].data.labels, multi_class)
    clusters = check_clusters(cluster, models[0].data.codes.size)
    with np.errstate(over="ignore", under="ignore"):
        tables = [solve_pairs(errors, target, multi_class, weights) for errors in models]
        indices = [table.average(table.values) for table in tables]
        ratios = [table.average(table.ratios) if target == 0.0 else nan for table in tables]
        solved = [solved_pairs(*pair, multi_class) for pair in zip(models, tables, strict=True)]

        def test(values: list[float], ratio: bool) -> PairedDifference:
            a, b = values
            error, freedom = nan, inf
            if 0.0 < a < inf and 0.0 < b < inf:
                own = [
                    influences(*model, target, ratio=ratio, left_out=True)
                    for model in zip(models, solved, strict=True)
                ]
                change = own[0] - own[1]
                if clusters is not None:
                    error, freedom = clustered_error(cluster_totals(models[0], change, clusters))
                else:
                    error = SampleEvidence(models[0].data).error_of_influences(solved[0], change)
                    freedom = degrees_of_freedom(models[0], change)
            return PairedDifference.of(a, b, error, freedom, confidence)

        return FragilityComparison(
            **vars(test(indices, ratio=False)),
            ratio=test(ratios, ratio=True),
            target=target,
            confidence=confidence,
        )
