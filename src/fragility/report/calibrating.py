"""Calibration maps of the models of a state, and what keeps them from being fitted."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..calibration.cases import fitted_map
from ..calibration.choice import CalibrationChoice, Candidates, chosen_together
from ..calibration.cross_fitting import CannotCalibrateError, CrossFit, check_can_calibrate
from ..calibration.fitting import CalibrationMap
from ..calibration.sample import sample_folds
from ..calibration.table import ScoreTable, TableFits
from ..deferral.problems import sample_cases
from ..figures.rank import auc
from ..scores.bins import ScoreBins
from ..scores.cases import Cases
from ..scores.state import ScoreState

#: Where bins leave more than this of the AUC open, they are too wide for calibration.
_UNRESOLVED = 2e-3


def chosen_for(models: Mapping[str, Candidates]) -> dict[str, CalibrationChoice]:
    """The map of each model, of one kind if one will do."""
    return dict(zip(models, chosen_together(list(models.values())), strict=True))


def fits_of_two(
    state: ScoreState, name: str, bins: ScoreBins, cases: Cases | None, seed: int
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
    return TableFits(table, state.positive, state.labels, seed)


def fits_of_several(state: ScoreState, name: str, cases: Cases, seed: int) -> CrossFit:
    """Of all cases; other columns order those that a model does not tell apart."""
    beside = [scores for other, scores in cases.scores.items() if other != name]
    if cases.costs is not None:
        beside.append(cases.costs)
    return CrossFit(state.labelled(name, cases), random_state=seed, beside=beside)


def sample_maps(
    state: ScoreState, seed: int
) -> tuple[dict[str, CalibrationMap], dict[str, CalibrationChoice]]:
    """Maps of several classes, chosen by and fitted to the sample of cases that a state keeps."""
    samples = {name: sample_cases(state, name) for name in state.models}
    choices = chosen_for(
        {name: sample_folds(*part, seed).candidates for name, part in samples.items()}
    )
    maps = {
        name: fitted_map(data, None, choices[name].method, counts)
        for name, (data, counts) in samples.items()
    }
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
