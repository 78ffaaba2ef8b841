"""The one builder of reports: from a state, and a second reading of the cases if needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np

from .._labels import listed
from .._typing import Integers
from .._validation import check_presence
from ..calibration import (
    CalibrationMap,
    calibrated,
    fitted_map,
    why_not_calibrated,
)
from ..calibration_table import ScoreTable, calibrated_table
from ..figures.influence import Population, ScoreInfluence, TableInfluence
from ..figures.rank import auc
from ..index.inference import PairedDifference
from ..measured import Estimator
from ..metrics.comparison import compare
from ..scores.cases import Cases, joined
from ..scores.state import ScoreState
from ..scores.sums import Sums
from ..scores.tally import most_probable
from .groups import Groups
from .model_figures import Settings, model_figures
from .parts import (
    Comparison,
    GroupFigures,
    ModelFigures,
    ModelReport,
    PairedFigures,
    WorstCase,
)
from .rereading import CaseRows, Reader, Rereading, read_again
from .views import BinView, CalibratedView, DataView, View

#: Where bins leave more than this of the AUC open, they are too wide for calibration.
_UNRESOLVED = 2e-3


@dataclass
class Built:
    """All that a report consists of."""

    models: list[ModelReport] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    groups: list[GroupFigures] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@np.errstate(over="ignore", under="ignore")
def build(
    state: ScoreState,
    settings: Settings,
    *,
    reread: Rereading | None = None,
    extra: Mapping[str, tuple[dict[str, float], dict[str, float]]] | None = None,
    name_cases: Callable[[Sequence[int]], Mapping[int, str]] | None = None,
) -> Built:
    """Measure everything.

    Parameters
    ----------
    state : ScoreState
    settings : Settings
    reread : callable, optional
        The cases once more, if the state does not hold them.
    extra : mapping, optional
        Figures of the user's own for each model, as it is and after calibration.
    name_cases : callable, optional
        What the cases of some rows are called, to list worst cases.
    """
    return _Builder(state, settings, reread, extra or {}, name_cases).build()


class _Builder:
    def __init__(
        self,
        state: ScoreState,
        settings: Settings,
        reread: Rereading | None,
        extra: Mapping[str, tuple[dict[str, float], dict[str, float]]],
        name_cases: Callable[[Sequence[int]], Mapping[int, str]] | None,
    ) -> None:
        if not state.support.any():
            raise ValueError("The state has no case of positive weight: update it first.")
        self.state, self.settings, self.extra = state, settings, extra
        self.name_cases = name_cases
        self.cases: Cases | None = None
        self.reread = reread
        if state.complete:
            self.cases = cases = joined(state.held)
            if reread is None:
                rows = np.arange(cases.size)
                self.reread = lambda: [CaseRows(cases, rows)]
        self.notes: list[str] = []

    @cached_property
    def sums(self) -> Sums:
        return self.state.sums()

    @cached_property
    def population(self) -> Population:
        """Numbers, weights and effective numbers of cases by class."""
        support = self.state.support
        if not self.state.weighted:
            return Population(support, support.astype(np.float64), support.astype(np.float64))
        cells = next(iter(self.raw.values())).cells
        weight, squares = (
            np.bincount(cells.true, part, support.size).astype(np.float64)
            for part in (cells.weight, cells.squares)
        )
        sizes = np.zeros(support.size)
        np.divide(weight**2, squares, out=sizes, where=squares > 0.0)
        return Population(support, weight, sizes)

    def build(self) -> Built:
        state, settings = self.state, self.settings
        check = state.labels[state.support == 0]
        if state.labels.size - check.size < 2:
            check_presence(state.labels, state.support)
        if check.size:
            self.notes.append(
                f"No case of {listed(check)}: the pairs with these classes are left out."
            )
        if not state.complete:
            self.notes.insert(
                0,
                "Measured from sums in narrow bins: figures with ± are known up to that much, all "
                "others to nine digits or more.",
            )
        if self.name_cases is None:
            self.notes.append("The worst cases are not listed: a state does not name its cases.")
        self._calibrate()
        groups = Groups(
            state, None if state.complete else self.sums, self.cases, settings.confidence
        )
        self._read(groups)
        built = Built(notes=self.notes)
        worst = self._worst()
        for name, view in self.raw.items():
            given, later = self.extra.get(name, ({}, {}))
            after = None
            if self.after is not None:
                figures = model_figures(self.after[name], settings, later)
                after = figures.calibrated(self.estimator)
            raw = model_figures(view, settings, given)
            built.models.append(ModelReport(name, raw, after, self.reason, worst.get(name, ())))
        unknown = [
            model.name
            for model in built.models
            if model.raw.figures["fragility_index"].interval is None and self.reread is not None
        ]
        if unknown:
            self.notes.append(
                f"No interval of the index of {listed(unknown)}: the scores differ too little for "
                "bins; hold the cases (a larger hold)."
            )
        built.comparisons = self._comparisons(built.models)
        built.groups = list(groups.figures(built.models))
        return built

    # Views.

    @cached_property
    def raw(self) -> Mapping[str, DataView | BinView]:
        """Each model as it is."""
        state = self.state
        if self.cases is None:
            return {
                name: BinView(self.sums.models[name], self.sums.shape, state.support)
                for name in state.models
            }
        return {
            name: DataView(state.labelled(name, self.cases), self.cases.costs)
            for name in state.models
        }

    def _calibrate(self) -> None:
        """Each model after calibration, or why not."""
        self.after: Mapping[str, View] | None = None
        self.mapped: dict[str, CalibrationMap] | None = None
        self.mapped_state: ScoreState | None = None
        self.estimator: Estimator = "cross_fitted"
        self.reason = "not asked for"
        if not self.settings.calibrate:
            return
        self.reason = self._bins_after() if self.state.is_binary else self._classes_after()
        if self.reason:
            self.notes.append(f"No figures after calibration: {self.reason}.")

    def _bins_after(self) -> str:
        """Bins of the scores; where they do not tell the classes apart, the scores themselves."""
        state, after = self.state, {}
        for name in state.models:
            bins = self.sums.models[name].bins
            table = ScoreTable.of_bins(bins)
            if all(state.support):
                least, most = auc(*(bins.atoms(0, c) for c in (1 - state.positive, state.positive)))
                if most - least > _UNRESOLVED and self.cases is None:
                    return (
                        f"the scores of {name!r} lie too close together for bins, which leave "
                        f"{most - least:.2g} of the AUC open; hold the cases (a larger hold)"
                    )
                if most - least > _UNRESOLVED and self.cases is not None:
                    data = state.labelled(name, self.cases)
                    table = ScoreTable.of_cases(data, self.cases.costs)
            found = calibrated_table(
                table, state.positive, state.labels, self.settings.random_state
            )
            if isinstance(found, str):
                return found
            after[name] = CalibratedView(table, state.positive, state.support, found)
        self.after = after
        return ""

    def _classes_after(self) -> str:
        state = self.state
        reason = why_not_calibrated(state.labels, state.support)
        if reason:
            return reason
        if self.cases is not None and state.fit_to_all:
            costs = [] if self.cases.costs is None else [self.cases.costs]
            scores = self.cases.scores
            self.after = {
                name: DataView(
                    calibrated(
                        view.data,
                        random_state=self.settings.random_state,
                        beside=[*(scores[key] for key in scores if key != name), *costs],
                    ),
                    self.cases.costs,
                )
                for name, view in self._data_views().items()
            }
            return ""
        self.estimator = "sample_fitted"
        sample = state.sample()
        if sample is None:
            return (
                "several classes are calibrated by a map that is fitted to cases, and this state "
                "holds none (hold=0)"
            )
        weights = sample.counts.astype(np.float64)
        if sample.cases.weights is not None:
            weights *= sample.cases.weights
        fitted = sample.cases._replace(weights=weights)
        self.mapped = {}
        for name in state.models:
            sampled = state.labelled(name, fitted)
            reason = why_not_calibrated(sampled.labels, sampled.support)
            if reason:
                return (
                    f"in the sample for calibration, {int(sample.counts.sum()):,} of "
                    f"{int(state.support.sum()):,} cases, {reason}; raise --hold"
                )
            self.mapped[name] = fitted_map(sampled)
        self.notes.append(
            "Calibrated by one temperature for each model, fitted to "
            f"{int(sample.counts.sum()):,} of {int(state.support.sum()):,} cases."
        )
        if self.cases is not None:
            self.after = {
                name: DataView(
                    view.data.with_scores(self.mapped[name](view.data.scores)), self.cases.costs
                )
                for name, view in self._data_views().items()
            }
        elif self.reread is None:
            return (
                "figures of several classes after calibration take the cases once more, which a "
                "merged state does not hold"
            )
        else:
            self.mapped_state = ScoreState(
                state.labels,
                state.models,
                weighted=state.weighted,
                hold=0,
            )
        return ""

    def _data_views(self) -> dict[str, DataView]:
        return {name: view for name, view in self.raw.items() if isinstance(view, DataView)}

    # Further readings.

    def _read(self, groups: Groups) -> None:
        """Read the cases again, if something cannot be known otherwise."""
        state, n_classes = self.state, self.state.labels.size
        self.reader = self.later_reader = None
        paired = len(state.models) > 1
        if self.reread is None:
            missing = ["paired tests"] * paired + ["intervals of several classes"] * (n_classes > 2)
            if missing:
                self.notes.append(
                    f"There are no {' and no '.join(missing)}: they take the cases once more, "
                    "which a merged state does not hold."
                )
            return
        readers = []
        knowns = {name: view.known for name, view in self.raw.items() if isinstance(view, BinView)}
        if knowns:
            self.reader = Reader(
                {name: ScoreInfluence(known, n_classes) for name, known in knowns.items()},
                self.population,
                paired=paired,
                n_worst=self.settings.n_worst if self.name_cases is not None else 0,
                positive=state.positive,
            )
            readers.append(self.reader)
            if n_classes > 2:
                readers += groups.readers()
        if self.after is not None and state.is_binary and paired:
            self.later_reader = Reader(
                {
                    name: TableInfluence(
                        view.known,
                        view.calibration.scores,
                        view.calibration.shares,
                        view.table.places,
                    )
                    for name, view in self.after.items()
                    if isinstance(view, CalibratedView)
                },
                self.population,
                paired=True,
            )
            readers.append(self.later_reader)
        if self.mapped_state is None or self.mapped is None:
            read_again(self.reread, readers)
            return
        target, maps, reread = self.mapped_state, self.mapped, self.reread

        def mapping() -> Iterator[CaseRows]:
            for cases, rows in reread():
                scores = {name: maps[name](part) for name, part in cases.scores.items()}
                target.add(cases._replace(scores=scores, groups=None))
                yield CaseRows(cases, rows)

        read_again(mapping, readers)
        sums = target.sums()
        views = {
            name: BinView(sums.models[name], sums.shape, state.support) for name in state.models
        }
        self.after = views
        self.later_reader = Reader(
            {name: ScoreInfluence(view.known, n_classes) for name, view in views.items()},
            self.population,
            paired=paired,
            mapped=maps,
        )
        read_again(reread, [self.later_reader])

    # Parts of the report.

    def _worst(self) -> dict[str, tuple[WorstCase, ...]]:
        n, state = self.settings.n_worst, self.state
        if n == 0 or self.name_cases is None:
            return {}
        if self.cases is not None:
            rows = np.concatenate([part.rows for part in self.reread()]) if self.reread else None
            assert rows is not None
            return {
                name: tuple(self._attributed(view, n, rows))
                for name, view in self._data_views().items()
            }
        if self.reader is None:
            return {}
        labels, groups = state.labels.tolist(), state.group_names
        found = {}
        for name, cases in self.reader.worst.items():
            names = self.name_cases([case.row for case in cases])
            found[name] = tuple(
                WorstCase(
                    case.row,
                    names[case.row],
                    labels[case.code],
                    labels[case.predicted],
                    case.score,
                    case.confidence,
                    case.lift,
                    groups[case.group] if case.group >= 0 else None,
                )
                for case in cases
            )
        return found

    def _attributed(self, view: DataView, n: int, rows: Integers) -> Iterator[WorstCase]:
        assert self.name_cases is not None
        assert self.cases is not None
        labels, groups = self.state.labels.tolist(), self.state.group_names
        found = [case for case in view.found.attribution(n) if case.lift > 1.0 + 1e-9]
        names = self.name_cases([int(rows[case.index]) for case in found])
        for case in found:  # where no case stands out there is none to show
            part = view.data.scores[case.index : case.index + 1]
            predicted, confidence = most_probable(part, view.positive)
            group = None if self.cases.groups is None else groups[self.cases.groups[case.index, 0]]
            row = int(rows[case.index])
            yield WorstCase(
                row,
                names[row],
                case.label,
                labels[int(predicted[0])],
                case.score,
                float(confidence[0]),
                case.lift,
                group,
            )

    def _comparisons(self, models: Sequence[ModelReport]) -> list[Comparison]:
        pairs = list(combinations(range(len(models)), 2))
        if not pairs or self.reread is None:
            return []
        raw = self._paired(pairs, self.raw, self.reader, [model.raw for model in models])
        after: Sequence[PairedFigures | None] = [None] * len(pairs)
        if self.after is not None:
            figures = [model.calibrated for model in models if model.calibrated is not None]
            after = self._paired(pairs, self.after, self.later_reader, figures)
        return [
            Comparison(models[a].name, models[b].name, before, later)
            for (a, b), before, later in zip(pairs, raw, after, strict=True)
        ]

    def _paired(
        self,
        pairs: Sequence[tuple[int, int]],
        views: Mapping[str, View],
        reader: Reader | None,
        figures: Sequence[ModelFigures],
    ) -> list[PairedFigures]:
        confidence, names = self.settings.confidence, self.state.models
        found: list[tuple[PairedDifference, PairedDifference]] = []
        for a, b in pairs:
            one, other = views[names[a]], views[names[b]]
            if isinstance(one, DataView) and isinstance(other, DataView):
                test = compare(one.errors, other.errors, 0.0, "ovo", None, confidence)
                found.append((test, test.ratio))
                continue
            assert reader is not None
            sums = reader.pairs[names[a], names[b]]
            index, ratio = (
                sums.difference(
                    figures[a].figures[name].value,
                    figures[b].figures[name].value,
                    kind,
                    self.population,
                    confidence,
                )
                for kind, name in enumerate(("fragility_index", "ratio"))
            )
            found.append((index, ratio))
        adjusted = holm([index.p_value for index, _ in found])
        return [
            PairedFigures(index, ratio, p)
            for (index, ratio), p in zip(found, adjusted, strict=True)
        ]


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjustment for several tests; undefined ones do not count."""
    p = np.array(p_values, dtype=np.float64)
    defined = np.flatnonzero(~np.isnan(p))
    order = defined[np.argsort(p[defined], kind="stable")]
    adjusted = p.copy()
    factors = np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return [float(value) for value in adjusted]
