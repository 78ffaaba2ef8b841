"""Calibration maps of the models of a state, and what keeps them from being fitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._typing import Indices, Integers
from .._validation import LabelledScores
from ..calibration.cases import fitted_map
from ..calibration.choice import CalibrationChoice, Candidates, chosen_together
from ..calibration.cross_fitting import CannotCalibrateError, CrossFit, check_can_calibrate
from ..calibration.fitting import CalibrationMap
from ..calibration.sample import sample_folds
from ..calibration.table import ScoreTable, TableFits, folds_by_place
from ..figures.rank import auc
from ..scores.bins import ScoreBins
from ..scores.cases import Cases
from ..scores.state import ScoreState
from .rereading import CaseRows, Mapped, PartReader

#: Where bins leave more than this of the AUC open, they are too wide for calibration.
_UNRESOLVED = 2e-3


def chosen_for(models: Mapping[str, Candidates]) -> dict[str, CalibrationChoice]:
    """The map of each model, of one kind if one will do."""
    return dict(zip(models, chosen_together(list(models.values())), strict=True))


class ClusterFolds(NamedTuple):
    """Folds that keep clusters whole, by case, and how many cases a cluster has on average."""

    drawn: Indices
    alike: float

    @classmethod
    def of(
        cls, data: LabelledScores, beside: NDArray[Any] | None, seed: int, clusters: Integers
    ) -> ClusterFolds:
        """Of the clusters of some cases.

        Raises
        ------
        CannotCalibrateError
        """
        from ..deferral.problems import case_folds  # few reports have clusters

        try:
            drawn = case_folds(data, beside, seed, clusters)
        except ValueError as error:
            raise CannotCalibrateError(
                f"folds that keep clusters whole cannot be drawn ({str(error).rstrip('.')})"
            ) from None
        weights = np.ones(clusters.size) if data.weights is None else data.weights
        sums = np.bincount(clusters, weights)
        return cls(drawn, max(float(sums @ sums) / float(weights @ weights), 1.0))


def fits_of_two(
    state: ScoreState,
    name: str,
    bins: ScoreBins,
    cases: Cases | None,
    seed: int,
    clusters: Integers | None = None,
) -> TableFits:
    """Of bins of the scores; where they do not tell the classes apart, of the scores themselves.

    Raises
    ------
    CannotCalibrateError
    """
    table = ScoreTable.of_bins(bins)
    least, most = auc(bins.atoms(0, 1 - state.positive), bins.atoms(0, state.positive))
    if most - least > _UNRESOLVED:
        if cases is None:
            raise CannotCalibrateError(
                f"the scores of {name!r} lie too close together for bins, which leave "
                f"{most - least:.2g} of the AUC open; hold the cases (a larger hold)"
            )
        table = ScoreTable.of_cases(state.labelled(name, cases), cases.costs)
    if clusters is None or cases is None:
        return TableFits(table, state.positive, state.labels, seed)
    data = state.labelled(name, cases)
    drawn, alike = ClusterFolds.of(data, cases.beside, seed, clusters)
    folds = [folds_by_place(table, data, drawn)]
    return TableFits(table, state.positive, state.labels, seed, folds, alike=alike)


def fits_of_several(
    state: ScoreState, name: str, cases: Cases, seed: int, clusters: Integers | None = None
) -> CrossFit:
    """Of all cases; other columns order those that a model does not tell apart."""
    beside = [scores for other, scores in cases.scores.items() if other != name]
    if cases.beside is not None:
        beside.append(cases.beside)
    data = state.labelled(name, cases)
    if clusters is None:
        return CrossFit(data, random_state=seed, beside=beside)
    drawn, alike = ClusterFolds.of(data, cases.beside, seed, clusters)
    return CrossFit(data, random_state=seed, beside=beside, folds=drawn, alike=alike)


def sample_temperatures(state: ScoreState) -> dict[str, float]:
    """Temperature of each model of several classes, fitted to the sample."""
    from ..deferral.problems import sample_temperature

    return {name: sample_temperature(state, name) for name in state.models}


def sample_maps(
    state: ScoreState, seed: int
) -> tuple[dict[str, CalibrationMap], dict[str, CalibrationChoice]]:
    """Maps of several classes, chosen by and fitted to the sample of cases that a state keeps."""
    from ..deferral.problems import sample_cases

    samples = {name: sample_cases(state, name) for name in state.models}
    choices = chosen_for(
        {name: sample_folds(*part, seed).candidates for name, part in samples.items()}
    )
    maps = {name: fitted_map(data, choices[name].method) for name, (data, _) in samples.items()}
    return maps, choices


def sample_share(state: ScoreState) -> str:
    """How many of all cases the sample stands for, in words."""
    sample = state.sample()
    size = 0 if sample is None else int(sample.counts.sum())
    return f"{size:,} of {int(state.support.sum()):,} cases"


def check_sample(state: ScoreState) -> None:
    """Refuse a sample of several classes that no map can be fitted to.

    Raises
    ------
    CannotCalibrateError
    """
    sample = state.sample()
    if sample is None:
        raise CannotCalibrateError(
            "several classes are calibrated by a map that is fitted to cases, and this state "
            "holds none (hold=0)"
        )
    try:
        check_can_calibrate(
            state.labels, np.bincount(sample.cases.codes, minlength=state.labels.size)
        )
    except CannotCalibrateError as error:
        flaw = f"in the sample for calibration, {sample_share(state)}, {error}; raise --hold"
        raise CannotCalibrateError(flaw) from None


class Filling(PartReader):
    """Fills a state, which holds no case, with cases whose scores are mapped."""

    KNOWN = ("_mapped",)

    def __init__(self, state: ScoreState, mapped: Mapped) -> None:
        self.state, self._mapped = state, mapped

    def add(self, found: CaseRows) -> None:
        """Add a block of cases."""
        self.state.add(self._mapped(found.cases)._replace(groups=None))

    def merge(self, other: Filling) -> None:
        """Add what another one was filled with."""
        self.state.merge(other.state)

    def finish(self) -> None:
        """Nothing is handed on."""
