"""The one builder of reports: from a state, and a second reading of the cases if needed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._labels import listed
from .._validation import LabelledScores, check_presence
from ..calibration import (
    CalibrationMap,
    calibrated,
    calibrated_bins,
    fitted_map,
    why_not_calibrated,
)
from ..deferral.costs import Costs
from ..deferral.cross_fitting import judge
from ..figures.confidence import HISTOGRAM_BINS, confidence_shares
from ..figures.index import BinSource, KnownIndex
from ..figures.influence import BinInfluence, Population, ScoreInfluence
from ..figures.rank import (
    Clusters,
    auc,
    calibration_error,
    measured_between,
    risk_coverage_area,
)
from ..figures.tails import tail_bounds, tail_of
from ..index.errors import RankingErrors, class_pairs
from ..index.fragility import measure
from ..index.inference import Interval, PairedDifference
from ..measured import CALIBRATION_BINS, CONFIDENT, CVAR_LEVEL, Estimator, Measured
from ..metrics.comparison import compare
from ..metrics.displays.error_curves import drawn_pair, most_fragile_pair
from ..moments import Floats
from ..scores.cases import Cases, joined
from ..scores.state import ScoreState
from ..scores.sums import Sums
from ..scores.tally import decision_counts, most_probable, threshold_grid
from .parts import (
    Comparison,
    ConfidentCases,
    GroupFigures,
    ModelFigures,
    ModelReport,
    PairedFigures,
    ThresholdFigures,
    WorstCase,
)
from .rereading import CaseRows, Reader, Rereading, read_again
from .views import BinView, CalibratedView, DataView, View

#: Draws for the intervals of costs.
_DRAWS = 500
#: Figure of labels and probabilities, with `sample_weight=` if it takes that.
Metric = Callable[..., float]


@dataclass(frozen=True)
class Settings:
    """What is asked of every model alike."""

    confidence: float = 0.95
    costs: Costs | None = None
    calibrate: bool = True
    n_worst: int = 0
    random_state: int = 0


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
        if self.name_cases is None and settings.n_worst:
            self.notes.append("The worst cases are not listed: a state does not name its cases.")
        self._calibrate()
        groups = self._group_knowns()
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
        built.comparisons = self._comparisons(built.models)
        built.groups = list(self._groups(groups, built.models))
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
        after = {}
        for name in self.state.models:
            sums = self.sums.models[name]
            found = calibrated_bins(
                sums.bins,
                self.state.positive,
                self.state.labels.tolist(),
                self.settings.random_state,
            )
            if isinstance(found, str):
                return found
            after[name] = CalibratedView(sums, self.sums.shape, self.state.support, found)
        self.after = after
        return ""

    def _classes_after(self) -> str:
        state = self.state
        present = state.support[state.support > 0]
        if present.min(initial=2) < 2:
            label = state.labels.tolist()[int(np.flatnonzero(state.support == 1)[0])]
            return f"class {label!r} has a single sample"
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
            reason = why_not_calibrated(sampled)
            if reason:
                return f"in the sample for calibration {reason}"
            self.mapped[name] = fitted_map(sampled)
        self.notes.append(
            "Calibrated by one temperature for each model, fitted to "
            f"{int(sample.counts.sum()):,} of {int(state.support.sum()):,} cases."
        )
        if self.cases is not None:
            self.after = {
                name: DataView(self._mapped_data(view.data, self.mapped[name]), self.cases.costs)
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

    @staticmethod
    def _mapped_data(data: LabelledScores, mapped: CalibrationMap) -> LabelledScores:
        scores = mapped(data.scores)
        ranges = np.stack([scores.min(axis=0), scores.max(axis=0)])
        return replace(data, scores=scores, ranges=ranges)

    # Further readings.

    def _read(self, groups: Mapping[tuple[str, int], KnownIndex]) -> None:
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
                describe=self._describe,
            )
            readers.append(self.reader)
            if n_classes > 2:
                readers += self._group_readers(groups)
        if self.after is not None and state.is_binary and paired:
            self.later_reader = Reader(
                {
                    name: BinInfluence(view.known, *self._dense(view))
                    for name, view in self.after.items()
                    if isinstance(view, CalibratedView)
                },
                self.population,
                paired=True,
                layout=self.sums.shape.layout,
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

    def _dense(self, view: CalibratedView) -> tuple[Floats, Floats]:
        """Calibrated scores and shares of all bins, also those that hold nothing."""
        found, length = view.calibration, self.sums.shape.layout.length
        scores = np.zeros((len(found.scores), length))
        shares = np.zeros((2, len(found.scores), length))
        scores[:, found.bins], shares[..., found.bins] = found.scores, found.shares
        return scores, shares

    def _describe(self, name: str, cases: Cases) -> tuple[NDArray[Any], Floats]:
        return most_probable(cases.scores[name], self.state.positive)

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

    def _attributed(self, view: DataView, n: int, rows: NDArray[np.int64]) -> Iterator[WorstCase]:
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

    # Groups.

    def _group_knowns(self) -> dict[tuple[str, int], KnownIndex]:
        """By model and group, where sums tell the index."""
        state = self.state
        if self.cases is not None:
            return {}
        found = {}
        for name in state.models:
            bins = self.sums.models[name].groups
            for place, support in enumerate(state.group_support):
                if bins is not None and np.count_nonzero(support) > 1:
                    source = BinSource(bins, place * state.labels.size)
                    found[name, place] = KnownIndex(source, support, state.positive)
        return found

    def _group_readers(self, knowns: Mapping[tuple[str, int], KnownIndex]) -> Iterator[Reader]:
        state, first = self.state, 0
        n_classes = state.labels.size
        for column, names in enumerate(state.groups.values()):
            for place in range(len(names)):
                influences: dict[str, ScoreInfluence | BinInfluence] = {
                    name: ScoreInfluence(knowns[name, first + place], n_classes)
                    for name in state.models
                    if (name, first + place) in knowns
                }
                support = state.group_support[first + place]
                weight = support.astype(np.float64)
                bins = self.sums.models[state.models[0]].groups
                if state.weighted and bins is not None:
                    table = bins.weights().sum(axis=1).reshape(-1, n_classes)
                    weight = table[first + place]
                population = Population(support, weight, weight)
                yield Reader(influences, population, paired=False, group=(column, place))
            first += len(names)

    def _groups(
        self, knowns: Mapping[tuple[str, int], KnownIndex], models: Sequence[ModelReport]
    ) -> Iterator[GroupFigures]:
        state, names = self.state, self.state.group_names
        if not names:
            return
        cautious = 1.0 - (1.0 - self.settings.confidence) / len(names)
        for model in models:
            for place, group in enumerate(names):
                support = state.group_support[place]
                n, present = int(support.sum()), np.flatnonzero(support)
                if present.size < 2:
                    only = (
                        f"all of its cases are {state.labels.tolist()[present[0]]!r}" if n else ""
                    )
                    reason = only or "none of its cases has weight"
                    yield GroupFigures(model.name, group, n, None, nan, None, reason)
                    continue
                index, ratio, interval = self._group_index(model.name, place, knowns, cautious)
                yield GroupFigures(
                    model.name,
                    group,
                    n,
                    index,
                    ratio,
                    interval,
                    "",
                    index_between(model.raw.pairs, present),
                    present.size < int(np.count_nonzero(state.support)),
                )

    def _group_index(
        self,
        model: str,
        place: int,
        knowns: Mapping[tuple[str, int], KnownIndex],
        cautious: float,
    ) -> tuple[Measured, float, Interval | None]:
        confidence = self.settings.confidence
        if self.cases is None:
            known = knowns[model, place]
            figures = known.figures(confidence)
            return figures.index, figures.ratio.value, known.interval(cautious)
        assert self.cases.groups is not None
        ends = np.cumsum([len(names) for names in self.state.groups.values()])
        column = int(np.searchsorted(ends, place, side="right"))
        first = int(ends[column - 1]) if column else 0
        part = self.cases.take(self.cases.groups[:, column] == place - first)
        found = measure(RankingErrors(self.state.labelled(model, part)), 0.0, "ovo", None)
        index = Measured(found.value, found.interval(confidence))
        return index, found.ratio, found.interval(cautious)


def model_figures(view: View, settings: Settings, extra: Mapping[str, float]) -> ModelFigures:
    """All figures of a model, in the order of `fragility.measured.FIGURES`."""
    found = view.index(settings.confidence)
    cells, grid = view.cells, threshold_grid(view.n_classes)
    weight = float(cells.weight.sum())
    ranked, buffered, cvar = _pairwise(view)
    log_loss, brier = view.proper_scores
    others, happened = view.outcomes()
    n_bins = min(CALIBRATION_BINS, int(view.support.sum()))  # as many as cases, if there are few
    above = cells.place > int(np.searchsorted(grid, CONFIDENT))
    threshold = _threshold(view, settings)
    figures = {
        "fragility_index": found.index,
        "ratio": found.ratio,
        "auc": ranked,
        "log_loss": Measured(log_loss),
        "brier": Measured(brier),
        "calibration_error": calibration_error(happened, others, n_bins),
        "buffered_auc": buffered,
        "cvar": cvar,
        "confident_error_rate": Measured(float(cells.weight[above & cells.wrong].sum()) / weight),
        "aurc": risk_coverage_area(Clusters.of(view.predictions())),
        **({} if threshold is None else {"cost": threshold.cost}),
        **{name: Measured(value) for name, value in extra.items()},
    }
    sure, squares = float(cells.weight[above].sum()), float(cells.squares[above].sum())
    count = float(cells.number[above].sum())
    confident = ConfidentCases(
        int(count) if count.is_integer() else count,
        sure**2 / squares if squares > 0.0 else 0.0,
        view.sure / sure if sure > 0.0 else nan,
        float(cells.weight[above & ~cells.wrong].sum()) / sure if sure > 0.0 else nan,
    )
    positive = view.positive if view.n_classes == 2 else None
    # Bins of the histogram end at thresholds on offer, so that cells tell all of it.
    even = np.linspace(1.0 / view.n_classes, 1.0, HISTOGRAM_BINS + 1)
    edges = np.unique(grid[1:][np.abs(grid[1:] - even[:, np.newaxis]).argmin(axis=1)])
    return ModelFigures(
        figures,
        found.pairs,
        found.n_infinite_pairs,
        threshold,
        confident,
        decision_counts(cells, grid, positive, whole=view.whole),
        confidence_shares(grid[cells.place], cells.wrong, cells.weight, edges, cells.number),
        _drawn(view, found.pairs),
    )


def _pairwise(view: View) -> tuple[Measured, Measured, Measured]:
    """AUC, buffered AUC and CVaR: means over the pairs of classes."""
    pairs = list(class_pairs(view.support, view.positive, "ovo"))
    bounds = []
    for pair in pairs:
        column = 0 if view.n_classes == 2 else pair.positive
        negatives, positives = (
            view.atoms(column, code) for code in (pair.negatives[0], pair.positive)
        )
        tails = tail_bounds(negatives, positives, CVAR_LEVEL, len(pairs))
        bounds.append((auc(negatives, positives), tails.buffered_auc, tails.cvar))
    ranked, buffered, cvar = np.mean(bounds, axis=0).tolist()
    return measured_between(*ranked), measured_between(*buffered), measured_between(*cvar)


def _drawn(view: View, pairs: Floats) -> Any:
    """Curves of the ranking errors, with every score at the mean of its atom."""
    pair = most_fragile_pair(pairs, view.positive)
    if pair is None:
        return None
    column = 0 if view.n_classes == 2 else pair.positive
    tail = tail_of(view.atoms(column, pair.negatives[0]), view.atoms(column, pair.positive))
    return drawn_pair(tail, 1.0, pair, pairs)


def _threshold(view: View, settings: Settings) -> ThresholdFigures | None:
    costs = settings.costs
    if costs is None:
        return None
    found = judge(
        list(view.folds(costs, settings.random_state)),
        threshold_grid(view.n_classes),
        costs,
        n_draws=_DRAWS,
        confidence=settings.confidence,
        seed=settings.random_state,
    )
    return ThresholdFigures(
        found.threshold,
        Measured(found.cost, found.cost_interval, estimator="cross_fitted"),
        found.automation_rate,
        found.error_rate,
        found.chow_threshold,
        found.chow_cost,
        found.chow_cost - found.cost,
        found.gap_interval,
        found.automate_all,
        found.review_all if costs.capacity is None or costs.capacity >= 1.0 else nan,
    )


def extra_figures(
    metrics: Mapping[str, Metric], y_true: Any, proba: Any, weights: Floats | None
) -> dict[str, float]:
    """Figures by functions of the user's own."""
    values = {}
    for name, metric in metrics.items():
        options = {}
        if weights is not None:
            try:
                takes_weights = "sample_weight" in inspect.signature(metric).parameters
            except (TypeError, ValueError):  # a builtin tells nothing
                takes_weights = False
            if not takes_weights:
                raise ValueError(
                    f"extra_metrics[{name!r}] takes no sample_weight, but weights were given; "
                    "give a function (y_true, proba, sample_weight=...)."
                )
            options["sample_weight"] = weights
        value = metric(y_true, proba, **options)
        try:
            values[name] = float(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"extra_metrics[{name!r}] must return one number; it returned {value!r}."
            ) from None
    return values


def index_between(pairs: Floats, classes: NDArray[Any]) -> float:
    """Mean index of the pairs of some classes: a group may lack the others."""
    of_these = pairs[np.ix_(classes, classes)]
    return float(np.mean(of_these[~np.isnan(of_these)]))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjustment for several tests; undefined ones do not count."""
    p = np.array(p_values, dtype=np.float64)
    defined = np.flatnonzero(~np.isnan(p))
    order = defined[np.argsort(p[defined], kind="stable")]
    adjusted = p.copy()
    factors = np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return [float(value) for value in adjusted]
