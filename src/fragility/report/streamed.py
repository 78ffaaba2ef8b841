"""A report on a file that is too large for memory, from passes over its batches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import isnan, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from .._labels import listed
from .._validation import check_labelled_probabilities
from ..calibration import CalibrationMap, fitted_map, why_not_calibrated
from ..confidence import ConfidenceShares
from ..deferral import Costs
from ..deferral.decision_counts import threshold_grid
from ..exceptions import AbsentClassWarning
from ..index.inference import Interval
from ..measured import Measured
from ..streaming import (
    MOST_GROUPS,
    Batch,
    CostCurve,
    StreamedMeasures,
    StreamedModel,
    measure_batches,
)
from ..streaming.batches import joined
from ..tables import PredictionFile
from .measuring import holm, index_between
from .parts import (
    Comparison,
    ConfidentCases,
    GroupFigures,
    ModelFigures,
    ModelReport,
    PairedFigures,
    ThresholdFigures,
)
from .report import Report

__all__ = ["streamed_report"]

#: Cases that a calibration map is fitted to, at least (if there are as many).
_SAMPLE = 100_000


def streamed_report(
    file: PredictionFile,
    *,
    costs: Costs | None,
    confidence: float,
    calibrate: bool,
    progress: Callable[[int], None] | None,
) -> Report:
    """Report in constant memory; `fragility.report.files.report_on_file` is the public face."""
    if costs is not None and costs.error_cost is None:
        raise ValueError(
            "A cost for each case is used in memory only: give --in-memory if the file fits, or "
            "one --error-cost for all cases."
        )
    if len(file.group_names) > MOST_GROUPS:
        raise ValueError(
            f"{len(file.group_names):,} groups are too many for a file measured in passes, which "
            f"takes up to {MOST_GROUPS}: join small ones, or give --in-memory."
        )
    names = list(file.columns.models)
    sample = _Sample()
    before = _measured(
        file, names, lambda: sample.watch(_batches(file)), costs, confidence, progress
    )
    after, reason = None, "not asked for"
    if calibrate:
        maps, reason = _maps(file, names, sample)
        if maps is not None:
            start = 2 * before.n_samples
            later = None if progress is None else (lambda done: progress(start + done))
            after = _measured(
                file, names, lambda: _mapped(_batches(file), maps), costs, confidence, later
            )
    classes = file.classes
    support = _Support(int(before.support.sum()), file.columns.weight is not None, confidence)
    return Report(
        models=tuple(_model(name, before, after, reason, costs, support) for name in names),
        comparisons=tuple(_comparisons(before, after)),
        groups=tuple(_groups(file, before)),
        labels=tuple(classes),
        support=tuple(before.support.tolist()),
        positive=file.positive,
        costs=costs,
        confidence=confidence,
        notes=tuple(_notes(file, before, after, reason, sample, costs, calibrate)),
        streamed=True,
        weighted=support.weighted,
    )


def _batches(file: PredictionFile) -> Iterator[Batch]:
    for part in file.batches():
        scores = {name: _positive_column(file, values) for name, values in part.scores.items()}
        yield Batch(part.codes, scores, part.weights, part.groups)


def _positive_column(file: PredictionFile, scores: NDArray[Any]) -> NDArray[Any]:
    """Of two columns that of the positive class: they sum to one."""
    if file.positive is None or scores.ndim == 1:
        return scores
    return scores[:, file.classes.index(file.positive)]


def _measured(
    file: PredictionFile,
    names: list[str],
    batches: Callable[[], Iterator[Batch]],
    costs: Costs | None,
    confidence: float,
    progress: Callable[[int], None] | None,
) -> StreamedMeasures:
    classes = file.classes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AbsentClassWarning)  # a note says it
        return measure_batches(
            batches,
            labels=range(len(classes)),
            models=names,
            pos_label=classes.index(file.positive) if file.positive is not None else None,
            costs=costs,
            thresholds=threshold_grid(len(classes)),
            n_groups=len(file.group_names),
            confidence=confidence,
            progress=progress,
        )


class _Sample:
    """One case in k of a stream whose length is not known: k doubles as the cases come.

    Drawn by lot: files may have a rhythm, such as a patient and a control by turns.
    """

    def __init__(self) -> None:
        self.step = 1
        self._lot = np.random.default_rng(0)
        self._parts: list[Batch] = []
        self._complete = False

    def watch(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The same batches, looked at on their first way."""
        if self._complete:
            yield from batches
            return
        kept = 0
        for batch in batches:
            part = _taken(batch, self._drawn(len(batch.codes), self.step))
            self._parts.append(part)
            kept += len(part.codes)
            while kept > 2 * _SAMPLE:
                self._parts = [_taken(self.cases(), self._drawn(kept, 2))]
                self.step, kept = 2 * self.step, len(self._parts[0].codes)
            yield batch
        self._complete = True

    def _drawn(self, n: int, step: int) -> NDArray[np.intp]:
        return np.flatnonzero(self._lot.integers(0, step, n) == 0)

    def cases(self) -> Batch:
        """All cases of the sample."""
        return joined(self._parts)


def _taken(batch: Batch, rows: NDArray[np.intp]) -> Batch:
    """Some rows of a batch without their groups, in memory of their own: the batch can go."""
    scores = {name: values[rows] for name, values in batch.scores.items()}
    weights = None if batch.weights is None else batch.weights[rows]
    return Batch(batch.codes[rows], scores, weights)


def _maps(
    file: PredictionFile, names: list[str], sample: _Sample
) -> tuple[dict[str, CalibrationMap] | None, str]:
    """A map for each model, or why there is none."""
    cases = sample.cases()
    labels = np.arange(len(file.classes))
    positive = None if file.positive is None else file.classes.index(file.positive)
    maps = {}
    for name in names:
        data = check_labelled_probabilities(
            cases.codes,
            cases.scores[name],
            labels=labels,
            pos_label=positive,
            sample_weight=cases.weights,
        )
        reason = why_not_calibrated(replace(data, labels=np.array(file.classes)))
        if reason:
            return None, f"in the sample for calibration {reason}"
        maps[name] = fitted_map(data)
    return maps, ""


def _mapped(batches: Iterator[Batch], maps: Mapping[str, CalibrationMap]) -> Iterator[Batch]:
    for batch in batches:
        scores = {name: maps[name](values) for name, values in batch.scores.items()}
        yield batch._replace(scores=scores)


def _model(
    name: str,
    before: StreamedMeasures,
    after: StreamedMeasures | None,
    reason: str,
    costs: Costs | None,
    support: _Support,
) -> ModelReport:
    raw = _figures(before.models[name], costs, support)
    later = None
    if after is not None:
        later = _figures(after.models[name], costs, support).calibrated("sample_fitted")
    return ModelReport(name, raw, later, reason, ())


class _Support(NamedTuple):
    """How much is known: cases, whether they have weights, confidence of intervals."""

    n: int
    weighted: bool
    confidence: float


def _figures(model: StreamedModel, costs: Costs | None, support: _Support) -> ModelFigures:
    shown, confident = model.histogram, model.histogram.confident
    assert model.decisions is not None
    return ModelFigures(
        model.figures,
        model.pairs,
        model.n_infinite_pairs,
        None if model.curve is None or costs is None else _threshold(model.curve, costs, support),
        ConfidentCases(confident.n, confident.effective, confident.mean, confident.right),
        model.decisions,
        ConfidenceShares(shown.edges, shown.wrong, shown.right, shown.n_wrong, shown.n_right),
        model.ranking,
    )


def _threshold(curve: CostCurve, costs: Costs, support: _Support) -> ThresholdFigures:
    # Where humans are few Chow's rule may ask for more of them than there are.
    free = costs.capacity is None or costs.capacity >= 1.0
    chow_cost = curve.chow_cost.value if free else nan
    gap = chow_cost - curve.best_cost.value
    least, most = curve.chow_cost.bounds or (chow_cost, chow_cost)
    cheapest = curve.best_cost.bounds.low if curve.best_cost.bounds else curve.best_cost.value
    largest = float(np.max(costs.error_cost))
    # No case differs by more than this between the two rules: a cautious standard error.
    error = max(largest, costs.review_cost + costs.reviewer_error * largest) / sqrt(support.n)
    half = -float(ndtri((1.0 - support.confidence) / 2.0)) * error
    return ThresholdFigures(
        curve.best_threshold,
        curve.best_cost,
        curve.best_automation_rate,
        curve.best_error_rate,
        curve.chow_threshold if free else nan,
        chow_cost,
        gap,
        None
        if support.weighted or isnan(gap)
        else Interval(least - curve.best_cost.value - half, most - cheapest + half),
        float(curve.cost[0]),
        float(curve.cost[-1]) if free else nan,
    )


def _comparisons(before: StreamedMeasures, after: StreamedMeasures | None) -> Iterator[Comparison]:
    raw = _paired(before)
    later = None if after is None else _paired(after)
    for place, (a, b) in enumerate(before.comparisons):
        yield Comparison(a, b, raw[place], None if later is None else later[place])


def _paired(measures: StreamedMeasures) -> list[PairedFigures]:
    tests = list(measures.comparisons.values())
    adjusted = holm([test.fragility_index.p_value for test in tests])
    return [
        PairedFigures(test.fragility_index, test.ratio, p)
        for test, p in zip(tests, adjusted, strict=True)
    ]


def _groups(file: PredictionFile, measures: StreamedMeasures) -> Iterator[GroupFigures]:
    for name, model in measures.models.items():
        for place, group in enumerate(file.group_names):
            support = measures.group_support[place]
            figures = model.group_figures[place]
            n = int(support.sum())
            if figures is None:
                only = [file.classes[code] for code in np.flatnonzero(support)]
                reason = (
                    f"all of its cases are {only[0]!r}" if only else "none of its cases has weight"
                )
                yield GroupFigures(name, group, n, None, nan, None, reason)
                continue
            index: Measured = figures["fragility_index"]
            present = np.flatnonzero(support)
            yield GroupFigures(
                name,
                group,
                n,
                index,
                figures["ratio"].value,
                model.group_intervals[place],
                "",
                index_between(model.pairs, present),
                present.size < int(np.count_nonzero(measures.support)),
            )


def _notes(
    file: PredictionFile,
    before: StreamedMeasures,
    after: StreamedMeasures | None,
    reason: str,
    sample: _Sample,
    costs: Costs | None,
    calibrate: bool,
) -> Iterator[str]:
    yield (
        "Measured in passes over the file: figures with ± are known up to that much, all others "
        "are exact."
    )
    absent = [file.classes[code] for code in np.flatnonzero(before.support == 0)]
    if absent:
        yield f"No case of {listed(absent)}: the pairs with these classes are left out."
    if after is None and calibrate:
        yield f"No figures after calibration: {reason}."
    elif sample.step > 1:
        yield f"Calibrated by one map for each model, fitted to about one case in {sample.step}."
    if costs is not None:
        yield (
            "The threshold was chosen on the very cases that its cost is measured on, which "
            "flatters it if they are few; the interval of the gap to Chow's rule is a cautious one."
        )
