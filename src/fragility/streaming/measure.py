"""Every figure of a report from cases that do not fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf, nan
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._parameters import check_confidence, check_count
from .._validation import check_labels, check_presence, positive_index
from ..deferral import Costs
from ..deferral.decision_counts import DecisionCounts
from ..index.errors import pair_places
from ..index.inference import Interval, PairedDifference
from ..measured import Measured
from ..metrics.displays.error_curves import DrawnPair
from ..moments import Floats
from .batches import Batches, Block, CaseReader, ClassRows
from .confidences import ConfidenceHistogram, CostCurve
from .figures import decision_counts_of, drawn_errors_of, figures_of, index_interval
from .first_pass import Classes, Population
from .second_pass import ModelTilts, PopulationTilts

__all__ = ["MOST_GROUPS", "PairedModels", "StreamedMeasures", "StreamedModel", "measure_batches"]

#: Groups that are measured, too: each has bins of its own.
MOST_GROUPS = 100
#: Readings of the data after the first one.
_MOST_READINGS = 3

Part = TypeVar("Part")


@dataclass(frozen=True, eq=False)
class StreamedModel:
    """What was measured of one model.

    Attributes
    ----------
    figures : dict of str to Measured
        By the names of `fragility.measured.FIGURES`; "cost" only if costs were given.
    pairs : ndarray of shape (C, C)
        Fragility Index of each pair of classes, as in `fragility.Fragility`.
    standard_error : float
        Of the index; NaN where it is 0 or infinite.
    n_infinite_pairs : int
    histogram : ConfidenceHistogram
    curve : CostCurve or None
        None if no costs were given.
    decisions : DecisionCounts or None
        At the thresholds that were given, exact; None without any.
    ranking : DrawnPair or None
        Curves of the ranking errors, with every score at the mean of its bin: exact where the
        scores are known, else up to the width of a bin.
    group_figures : list of (dict of str to Measured, or None)
        The figures (but cost) of each group; None where the index is undefined, for the cases of
        the group are of fewer than two classes.
    group_intervals : list of (Interval or None)
        Of the index of each group, at a confidence that allows for the number of groups.
    """

    figures: dict[str, Measured]
    pairs: Floats
    standard_error: float
    n_infinite_pairs: int
    histogram: ConfidenceHistogram
    curve: CostCurve | None = None
    decisions: DecisionCounts | None = None
    ranking: DrawnPair | None = None
    group_figures: list[dict[str, Measured] | None] = field(default_factory=list)
    group_intervals: list[Interval | None] = field(default_factory=list)


@dataclass(frozen=True)
class PairedModels:
    """Difference of two models' indices and of their ratios, as of `compare_fragility`."""

    fragility_index: PairedDifference
    ratio: PairedDifference


@dataclass(frozen=True, eq=False)
class StreamedMeasures:
    """What was measured of all models.

    Attributes
    ----------
    labels : ndarray of shape (C,)
    support : ndarray of shape (C,)
        Cases of positive weight in each class.
    n_samples : int
        Cases, also those of no weight.
    models : dict of str to StreamedModel
    comparisons : dict of (str, str) to PairedModels
        For every two models, in the order that they were given in.
    group_support : list of ndarray of shape (C,)
        Cases of positive weight in each group and class.
    """

    labels: NDArray[Any]
    support: NDArray[np.int64]
    n_samples: int
    models: dict[str, StreamedModel]
    comparisons: dict[tuple[str, str], PairedModels]
    group_support: list[NDArray[np.int64]] = field(default_factory=list)


@np.errstate(over="ignore", under="ignore")
def measure_batches(
    batches: Batches,
    *,
    labels: Sequence[Any] | NDArray[Any],
    models: Sequence[str],
    pos_label: Any = None,
    costs: Costs | None = None,
    thresholds: Floats | None = None,
    n_groups: int = 0,
    confidence: float = 0.95,
    progress: Callable[[int], None] | None = None,
) -> StreamedMeasures:
    """Measure models on cases of any number, in constant memory.

    The cases are read twice. Plain means, the Fragility Index and its ratio are exact; so are the
    others where the order of the scores is known, which it is in all data of few cases or of
    rounded scores. Elsewhere they come with bounds that hold the exact figure.

    Scores that all but coincide, such as 0.3 and some millionths, are too close for the bins of the
    first reading: then the index has bounds instead of an interval.

    The best threshold is chosen on the cases that its cost is told of: of many cases, choosing one
    number among them makes no difference that could be seen.

    Parameters
    ----------
    batches : callable
        Without arguments; gives the same batches (an iterable of `Batch`) whenever it is called.
    labels : sequence
        All classes, in the order of the codes and of the columns of the scores.
    models : sequence of str
        Names of the models, all of which have scores in every batch.
    pos_label : label, optional
        The positive class of two; by default the second of `labels`.
    costs : Costs, optional
        What errors and reviews cost; `error_cost` is a number or a matrix.
    thresholds : ndarray, optional
        Thresholds of confidence to count decisions at, see
        `fragility.deferral.decision_counts.threshold_grid`.
    n_groups : int, default=0
        Groups of cases to measure, too, at most 100.
    confidence : float, default=0.95
        Of the intervals.
    progress : callable, optional
        Called with the number of cases read so far, in all readings together.

    Returns
    -------
    StreamedMeasures

    Examples
    --------
    >>> import numpy as np
    >>> from fragility.streaming import Batch, measure_batches
    >>> day = Batch(np.array([1, 0, 1, 0]), {"a": np.array([0.6, 0.1, 0.9, 0.8])})
    >>> measured = measure_batches(lambda: [day] * 3, labels=[0, 1], models=["a"])
    >>> round(measured.models["a"].figures["fragility_index"].value, 6)
    0.163282
    """
    classes, names = check_labels(labels), _check_models(models)
    confidence = check_confidence(confidence)
    n_groups = check_count(n_groups, "n_groups", least=0)
    if n_groups > MOST_GROUPS:
        raise ValueError(
            f"n_groups={n_groups} is more than {MOST_GROUPS}; join small groups into one."
        )
    kind = Classes(classes.size, positive_index(classes, pos_label))
    if costs is not None:
        costs = costs.checked(classes.size, None)
    reading = _Reading(CaseReader(batches, names, classes.size, n_groups), progress)
    everyone = Population(names, kind, costs=costs, thresholds=thresholds)
    groups = [Population(names, kind, n_groups) for _ in range(n_groups)]
    for block in reading:
        for population, rows_of_classes in _populations(everyone, groups, block):
            for rows in rows_of_classes:
                population.add(rows)
    n_samples = reading.n_done
    if not everyone.support.any():
        raise ValueError(
            "The batches hold no case of positive weight; there is nothing to measure."
        )
    check_presence(classes, everyone.support)
    for population in (everyone, *groups):
        population.check_weights()

    tilts = PopulationTilts(everyone)
    group_tilts = [
        PopulationTilts(group, compared=False) if np.count_nonzero(group.support) > 1 else None
        for group in groups
    ]
    _read_until_settled(reading, tilts, group_tilts)

    measured = {}
    cautious = 1.0 - (1.0 - confidence) / max(n_groups, 1)
    for name in names:
        found = figures_of(everyone, tilts.models[name], name, confidence)
        pairs = _pair_matrix(tilts.models[name], classes.size)
        measured[name] = StreamedModel(
            figures=found.figures,
            pairs=pairs,
            standard_error=found.standard_error,
            n_infinite_pairs=sum(t.fragility == inf for t in tilts.models[name].tilts),
            histogram=found.histogram,
            curve=found.curve,
            decisions=decision_counts_of(everyone, name),
            ranking=drawn_errors_of(everyone, name, pairs),
            group_figures=[
                None if part is None else figures_of(group, part.models[name], name, confidence)[0]
                for group, part in zip(groups, group_tilts, strict=True)
            ],
            group_intervals=[
                None if part is None else index_interval(part.models[name], cautious)
                for part in group_tilts
            ],
        )
    comparisons = {
        (a, b): PairedModels(
            *(
                _difference(measured, tilts, a, b, figure, confidence)
                for figure in ("fragility_index", "ratio")
            )
        )
        for place, a in enumerate(names)
        for b in names[place + 1 :]
    }
    support = [group.support for group in groups]
    return StreamedMeasures(classes, everyone.support, n_samples, measured, comparisons, support)


class _Reading:
    """Blocks of all cases, and how many were read so far."""

    def __init__(self, reader: CaseReader, progress: Callable[[int], None] | None) -> None:
        self._reader, self._progress = reader, progress
        self.n_done = 0

    def __iter__(self) -> Iterator[Block]:
        for block in self._reader.blocks():
            yield block
            self.n_done += block.n_read
            if self._progress is not None:
                self._progress(self.n_done)


def _populations(
    everyone: Part, groups: Sequence[Part], block: Block
) -> list[tuple[Part, list[ClassRows]]]:
    """Who gets which cases of a block."""
    return [(everyone, block.everyone), *zip(groups, block.groups, strict=True)]


def _read_until_settled(
    reading: _Reading, tilts: PopulationTilts, group_tilts: Sequence[PopulationTilts | None]
) -> None:
    """Read all cases once more, and again while that moves an index by more than rounding."""
    for _ in range(_MOST_READINGS):
        parts = [part for part in (tilts, *group_tilts) if part is not None]
        if not any(part.needs_reading for part in parts):
            return
        for part in parts:
            part.begin()
        for block in reading:
            for reader, rows_of_classes in _populations(tilts, group_tilts, block):
                if reader is not None and reader.needs_reading:
                    for rows in rows_of_classes:
                        reader.add(rows)
        for part in parts:
            part.finish()
        if all(part.settled for part in parts):
            return


def _pair_matrix(tilts: ModelTilts, n_classes: int) -> Floats:
    pairs = np.full((n_classes, n_classes), nan)
    for tilt in tilts.tilts:
        for place in pair_places(tilt.pair, n_classes, "ovo"):
            pairs[place] = tilt.fragility
    return pairs


def _difference(
    measured: dict[str, StreamedModel],
    tilts: PopulationTilts,
    a: str,
    b: str,
    figure: str,
    confidence: float,
) -> PairedDifference:
    values = [measured[name].figures[figure].value for name in (a, b)]
    error, freedom = nan, inf
    if all(0.0 < value < inf for value in values):
        error, freedom = tilts.difference_error(a, b, ratio=figure == "ratio")
    return PairedDifference.of(values[0], values[1], error, freedom, confidence)


def _check_models(models: Sequence[str]) -> list[str]:
    names = list(models)
    if isinstance(models, str) or not names or len(set(names)) < len(names):
        raise ValueError(f"models must list the names of the models, each once; got {models!r}.")
    return names
