"""The one builder of reports: from a state, and a second reading of the cases if needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .._labels import listed
from .._typing import Floats, Integers
from .._validation import check_presence
from ..calibration.choice import CalibrationChoice, Candidates
from ..calibration.cross_fitting import CannotCalibrateError, check_can_calibrate
from ..calibration.table import TableFits
from ..figures.spread import MoveSums, Population
from ..measured import Estimator, Measured
from ..scores.cases import Cases, joined
from ..scores.state import ScoreState
from ..scores.sums import Sums
from .calibrating import (
    Filling,
    check_sample,
    chosen_for,
    fits_of_several,
    fits_of_two,
    sample_maps,
    sample_share,
    sample_temperatures,
)
from .comparing import compared, cost_tests
from .group_comparing import LossReader, group_comparisons
from .groups import Groups
from .mistakes import SharedMistakes
from .model_figures import Settings, model_figures
from .moves import moves_of_several, moves_of_two
from .parts import Built, Comparison, ModelReport, SharedMistake, WorstCase
from .policy_cells import cells_of_model
from .rereading import (
    BlockReader,
    CaseNames,
    MappedReading,
    Reader,
    Rereading,
    one_part,
    read_again,
)
from .sum_views import BinView, CalibratedView
from .views import DataView, View, levelled

if TYPE_CHECKING:  # policies are imported where one is made: without costs there is none
    from ..deferral.policy import Policy
    from .cost_reading import CostReader, Decided

#: Figures of the user's own for each model as it is, and a function that gives them after
#: calibration by a map of this name.
ExtraFigures = Mapping[str, tuple[dict[str, float], Callable[[str], dict[str, float]]]]


class Builder:
    """Measures everything that a report consists of.

    Parameters
    ----------
    state : ScoreState
    settings : Settings
    reread : callable, optional
        Gives the cases once more, if the state does not hold them.
    extra : mapping, optional
        Figures of the user's own for each model, as it is and after calibration.
    name_cases : callable, optional
        Names of the cases of some rows, to list worst cases.
    clustered : bool, default=False
        Whether the reading tells clusters of cases that are drawn together.
    """

    def __init__(
        self,
        state: ScoreState,
        settings: Settings,
        reread: Rereading | None = None,
        extra: ExtraFigures | None = None,
        name_cases: CaseNames | None = None,
        *,
        clustered: bool = False,
    ) -> None:
        if not state.support.any():
            raise ValueError("The state has no case of positive weight: update it first.")
        self.state, self.settings, self.extra = state, settings, extra or {}
        self.name_cases, self.reread, self.clustered = name_cases, reread, clustered
        self.paired = len(state.models) > 1
        self.cases: Cases | None = joined(state.held) if state.complete else None
        if reread is None and self.cases is not None:
            self.reread = one_part(self.cases)
        self.notes: list[str] = []
        #: After calibration: the views, and for several classes a reading of mapped cases.
        self.after: Mapping[str, View] | None = None
        self.reread_after: Rereading | None = None
        self.mapped: Callable[[Cases], Cases] | None = None
        self.choices: dict[str, CalibrationChoice] = {}
        self.fits: dict[str, TableFits] = {}
        self.estimator: Estimator = "cross_fitted"
        self.reader: Reader | None = None
        self.shared: SharedMistakes | None = None
        self.reader_after: Reader | None = None
        #: Gives cases that a model declined to answer, if there are any.
        self.unanswered: Rereading | None = None
        #: Policies by model, if costs were given, and a reading of what cases cost at them.
        self.decided: dict[str, Decided] = {}
        self.cost_reader: CostReader | None = None
        #: Log-losses by group, if models are compared there: as they are, and after calibration.
        self.losses: list[LossReader] = []

    @cached_property
    def clusters(self) -> Integers | None:
        """Cluster of each case, if all cases are held."""
        if not self.clustered or self.cases is None or self.reread is None:
            return None
        parts = [found.clusters for found in self.reread() if found.clusters is not None]
        return np.unique(np.concatenate(parts), return_inverse=True)[1]

    @property
    def declined_clusters(self) -> tuple[Floats, Integers] | None:
        """Weight and cluster of each case without an answer, if all cases are held."""
        return None

    @cached_property
    def sums(self) -> Sums:
        return self.state.sums()

    @cached_property
    def raw(self) -> Mapping[str, View]:
        """Each model as it is."""
        if self.cases is None:
            return self._bin_views(self.sums)
        return self._data_views(self.cases, self.clusters)

    def _bin_views(self, sums: Sums) -> dict[str, View]:
        support = self.state.support
        return self._levelled(
            {name: BinView(part, sums.shape, support) for name, part in sums.models.items()}
        )

    def _data_views(self, cases: Cases, clusters: Integers | None) -> dict[str, View]:
        labelled = self.state.labelled
        return self._levelled(
            {name: DataView(labelled(name, cases), clusters) for name in self.state.models}
        )

    def _levelled(self, views: Mapping[str, View]) -> dict[str, View]:
        return levelled(views, self.settings.confident)

    @cached_property
    def population(self) -> Population:
        """Numbers, weights and effective numbers of cases by class."""
        support, cells = self.state.support, next(iter(self.raw.values())).cells
        weight, squares = (
            np.bincount(cells.true, part, support.size).astype(np.float64)
            for part in (cells.weight, cells.squares)
        )
        sizes = np.zeros(support.size)
        np.divide(weight**2, squares, out=sizes, where=squares > 0.0)
        return Population(support, weight, sizes)

    @np.errstate(over="ignore", under="ignore")
    def build(self) -> Built:
        """Measure everything."""
        state, settings = self.state, self.settings
        absent = state.labels[state.support == 0]
        if state.labels.size - absent.size < 2:
            check_presence(state.labels, state.support)  # which refuses one class
        if not state.complete:
            self.notes.append(
                "Measured from sums in narrow bins: figures with ± are known up to that much, all "
                "others to nine digits or more."
            )
        if absent.size:
            self.notes.append(
                f"No case of {listed(absent)}: the pairs with these classes are left out."
            )
        if self.name_cases is None:
            others = ", nor those that all models get wrong" if self.paired else ""
            self.notes.append(
                f"The worst cases are not listed{others}: a state does not name its cases."
            )
        if self.clustered and self.clusters is None:
            self.notes.append(
                "Calibration, policies and figures by group count cases, not clusters: folds that "
                "keep clusters whole take all cases in memory (--in-memory)."
            )
        reason = "" if settings.calibrate else "not asked for"
        try:
            if settings.calibrate:
                self._calibrate()
        except CannotCalibrateError as error:
            reason = str(error)
            self.notes.append(f"No figures after calibration: {reason}.")
        self._decide()
        passed_on = None if self.declined_clusters is None else self.declined_clusters[1]
        groups = Groups(
            *(state, self.cases, settings, self.clusters),
            *(self.decided, self.unanswered, passed_on),
        )
        self._read(groups)
        worst, shared = self._worst_and_shared()
        policies = self._policies()
        models = []
        for name, view in self.raw.items():
            given, given_after = self.extra.get(name, ({}, lambda method: {}))
            after, choice = None, None
            if self.after is not None:
                choice = self.choices[name]
                moves = self._moves(name, self.after, self.reader_after)
                extra = given_after(choice.method)
                after = model_figures(self.after[name], settings, extra, moves)
                after = after.calibrated(self.estimator)
            policy = policies.get(name)
            cost = None
            if policy is not None:
                estimator = self.decided[name].estimator
                cost = Measured(policy.cost, policy.cost_interval, estimator=estimator)
            moves = self._moves(name, self.raw, self.reader)
            raw = model_figures(view, settings, given, moves, cost)
            confusion = self.decided[name].confusion if policy is not None else None
            dearest = None
            if policy is not None and self.cost_reader is not None:
                dearest = self.cost_reader.dearest_share(name)
            known = self.decided.get(name), raw.decisions
            cells = cells_of_model(state, name, *known, lambda: self.sums)
            about = worst.get(name, ()), cells, policy, confusion, choice
            models.append(ModelReport(name, raw, after, reason, *about, dearest_share=dearest))
        unknown = [
            model.name
            for model in models
            if model.raw.figures["fragility_index"].interval is None and self.reread is not None
        ]
        if unknown:
            self.notes.append(
                f"No interval of the index of {listed(unknown)}: the scores differ too little for "
                "bins; hold the cases (a larger hold)."
            )
        comparisons, by_group = self._comparisons(models), tuple(groups.figures(models))
        costs = None if self.cost_reader is None else self.cost_reader.by_group
        sums = [reader.sums for reader in self.losses]
        compared_there = group_comparisons(by_group, sums, costs, settings.confidence)
        notes = filter(None, (*self.notes, groups.note()))
        n_shared = None if self.shared is None else self.shared.n
        return Built(
            tuple(models), comparisons, by_group, compared_there, shared, n_shared, tuple(notes)
        )

    def _calibrate(self) -> None:
        """Views after calibration, or what another reading takes for them.

        Raises
        ------
        CannotCalibrateError
        """
        if not self.state.is_binary:
            self._calibrate_several()
            return
        fits = self.fits_of_two
        self.choices = self._chosen({name: part.candidates for name, part in fits.items()})
        self.after = self._levelled(
            {name: self._calibrated_two(name, part) for name, part in fits.items()}
        )
        self.fits = fits

    @cached_property
    def fits_of_two(self) -> dict[str, TableFits]:
        """Maps of two classes by model.

        Raises
        ------
        CannotCalibrateError
        """
        bins = {name: part.bins for name, part in self.sums.models.items()}
        own = self.cases, self.settings.random_state, self.clusters
        return {name: fits_of_two(self.state, name, bins[name], *own) for name in bins}

    def _chosen(self, candidates: Mapping[str, Candidates]) -> dict[str, CalibrationChoice]:
        """The map of each model of two classes."""
        return chosen_for(candidates)

    def _calibrated_two(self, name: str, fits: TableFits) -> View:
        """A model after calibration, which may need none."""
        choice, state = self.choices[name], self.state
        if choice.method == "identity":
            return self.raw[name]
        found = fits.calibrated(choice)
        return CalibratedView(
            fits.table, state.positive, state.support, found, answers=state.answers
        )

    def _calibrate_several(self) -> None:
        """A map for each model: cross-fitted, or of so many cases fitted to a sample."""
        state, cases, seed = self.state, self.cases, self.settings.random_state
        check_can_calibrate(state.labels, state.support)
        if cases is not None and state.fit_to_all:
            own = cases, seed, self.clusters
            fits = {name: fits_of_several(state, name, *own) for name in state.models}
            self.choices = chosen_for({name: part.candidates for name, part in fits.items()})
            kinds = {name: choice.method for name, choice in self.choices.items()}
            scores = {name: part.calibrated(kinds[name]).scores for name, part in fits.items()}
            self._take_calibrated(cases._replace(scores=scores))
            return
        self.estimator = "sample_fitted"
        self._check_sample()
        reread, (maps, self.choices) = self.reread, sample_maps(state, seed)
        named = ", ".join(f"{name}: {choice.title}" for name, choice in self.choices.items())
        of_all = sample_share(state)
        self.notes.append(f"Calibrated by maps that were fitted to {of_all} ({named}).")

        def mapped(part: Cases) -> Cases:
            scores = {name: found(part.scores[name]) for name, found in maps.items()}
            return part._replace(scores=scores)

        if cases is not None:
            self._take_calibrated(mapped(cases))
        elif reread is not None:
            self.mapped = mapped
            self.reread_after = MappedReading(reread, mapped)

    def _take_calibrated(self, cases: Cases) -> None:
        self.after = self._data_views(cases, self.clusters)
        self.reread_after = one_part(cases, self.clusters)

    @cached_property
    def _temperatures(self) -> dict[str, float]:
        """Temperatures fitted to the sample, for policies."""
        self._check_sample()
        return sample_temperatures(self.state)

    def _check_sample(self) -> None:
        """Refuse what no map can be fitted to, or used with.

        Raises
        ------
        CannotCalibrateError
        """
        if self.reread is None and self.state.sample() is not None:
            raise CannotCalibrateError(
                "figures of several classes after calibration take the cases once more, which a "
                "merged state does not hold"
            )
        check_sample(self.state)

    # Policies.

    def _decide(self) -> None:
        """The policy of each model, if costs were given."""
        state, settings, cases = self.state, self.settings, self.cases
        if settings.costs is None:
            return
        from .policies import PolicyMaker

        maker = PolicyMaker(
            state,
            settings.costs,
            settings.policy,
            settings.confidence,
            settings.random_state,
            self.clusters,
            self.declined_clusters,
        )
        if state.is_binary:
            bins = {name: part.bins for name, part in self.sums.models.items()}
            self.decided = {
                name: maker.of_two(name, self.fits.get(name), part, cases)
                for name, part in bins.items()
            }
        elif cases is not None and state.fit_to_all:
            self.decided = {name: maker.of_cases(name, cases) for name in state.models}
        elif self.reread is None:
            self.notes.append(
                "There are no policies and no costs: those of several classes take the cases once "
                "more, which a merged state does not hold."
            )
        else:  # more cases than are held: in a reading of their own
            try:
                temperatures = self._temperatures
            except CannotCalibrateError as error:
                temperatures = dict.fromkeys(state.models, 1.0)
                self.notes.append(f"Policies take the probabilities as they are: {error}.")
            self.decided = maker.of_bins(self.reread, temperatures)

    def _policies(self) -> dict[str, Policy]:
        """Policies by model."""
        found = {name: decided.policy for name, decided in self.decided.items()}
        if self.cost_reader is None or not self.state.priced:
            return found
        named = self.name_cases if self.settings.n_worst else None  # no single case is wanted
        return self.cost_reader.with_dominant_cases(found, named)

    # Further readings.

    def _reader(self, views: Mapping[str, View], *, intervals: bool, n_worst: int = 0) -> Reader:
        influences = {name: view.influence for name, view in views.items()}
        spreads = self.clustered or not self.state.is_binary
        figures = {}
        if self.paired or spreads:
            figures = {name: view.case_influences for name, view in views.items()}
        return Reader(
            self.state,
            influences,
            self.population,
            figures=figures,
            paired=self.paired,
            spreads=spreads,
            intervals=intervals,
            n_worst=n_worst,
        )

    def _moves(
        self, name: str, views: Mapping[str, View], reader: Reader | None
    ) -> MoveSums | None:
        """How the cases move the figures of a model; None if that takes a reading they lack."""
        if reader is not None and name in reader.own:
            return reader.own[name]
        if self.clustered:
            return None
        of_classes = moves_of_two if self.state.is_binary else moves_of_several
        return of_classes(views[name], self.population)

    def _read(self, groups: Groups) -> None:
        """Read the cases again, if something cannot be known otherwise."""
        state, reread, mapped = self.state, self.reread, self.mapped
        summed = self.cases is None and not state.is_binary
        if reread is None:
            missing = ["paired tests"] * self.paired
            missing += ["comparisons by group"] * (self.paired and bool(state.groups))
            missing += ["intervals but of log-loss and of figures by confidence"] * summed
            if missing:
                self.notes.append(
                    f"There are no {' and no '.join(missing)}: they take the cases once more, "
                    "which a merged state does not hold."
                )
            return
        n_worst = 0 if self.name_cases is None else self.settings.n_worst
        readers: list[BlockReader] = []
        in_groups = self.paired and bool(state.groups)
        if in_groups:
            self.losses.append(LossReader(state, self.raw))
            readers += self.losses
        if self.decided and (self.paired or state.priced):
            from .cost_reading import CostReader

            shape = state.shape if in_groups else None
            self.cost_reader = CostReader(self.decided, paired=self.paired, groups=shape)
            readers.append(self.cost_reader)
        if self.paired:
            self.shared = SharedMistakes(state, self.settings.confident, n_worst)
            readers.append(self.shared)
        several = not state.is_binary
        if self.paired or several or n_worst or self.clustered:
            self.reader = self._reader(self.raw, intervals=summed, n_worst=n_worst)
            readers.append(self.reader)
        readers += groups.readers()
        if self.after is not None and (self.paired or self.clustered) and state.is_binary:
            self.reader_after = self._reader(self.after, intervals=False)
            readers.append(self.reader_after)
            if in_groups:
                self.losses.append(LossReader(state, self.after))
                readers.append(self.losses[-1])
        if mapped is None:
            read_again(reread, readers)
        else:
            after = ScoreState(state.labels, state.models, weighted=state.weighted, hold=0)
            filling = Filling(after, mapped)
            read_again(reread, [filling, *readers])
            self.after = self._bin_views(filling.state.sums())
        if self.after is not None and self.reread_after is not None:
            self.reader_after = self._reader(self.after, intervals=summed)
            self.losses += [LossReader(state, self.after)] * in_groups
            read_again(self.reread_after, [self.reader_after, *self.losses[1:]])

    # Parts of the report.

    def _worst_and_shared(
        self,
    ) -> tuple[dict[str, tuple[WorstCase, ...]], tuple[SharedMistake, ...]]:
        """Worst cases by model, and cases that all get wrong; named all at once."""
        if self.reader is None or self.name_cases is None:
            return {}, ()
        worst = self.reader.worst
        rows = {case.row for cases in worst.values() for case in cases}
        rows |= set() if self.shared is None else {case.row for case in self.shared.cases}
        names = self.name_cases(sorted(rows)) if rows else {}
        listed_worst = {
            model: tuple(replace(case, case=names[case.row]) for case in cases)
            for model, cases in worst.items()
        }
        return listed_worst, () if self.shared is None else self.shared.named(names)

    def _comparisons(self, models: Sequence[ModelReport]) -> tuple[Comparison, ...]:
        """Every two models, as they are and after calibration."""
        if self.reader is None or not self.paired:
            return ()
        level, after = self.settings.confidence, self.reader_after
        costs = {} if self.cost_reader is None else cost_tests(self.cost_reader, level)
        pairs = self.reader.pairs, {} if after is None else after.pairs
        return compared(models, *pairs, costs, level)
