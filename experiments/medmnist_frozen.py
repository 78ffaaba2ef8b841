"""One recipe, frozen before any test image judged it: what it came to.

The recipe is that of ``experiments/recipe.json``, chosen by `medmnist_search`. Its test figures are
not computed unless the last commit has this very file: whoever changes the recipe after seeing them
leaves a trace.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from pandas import DataFrame, Series

from experiments.claims import Verdict, gained
from experiments.experiment import RefusedError
from experiments.medmnist_report import LESS_IS_BETTER, PRINTED, against, printed
from experiments.medmnist_search import SETS
from experiments.tables import mean_error

__all__ = [
    "FROZEN",
    "OTHERS",
    "PARTS",
    "better_than_printed",
    "calibrated",
    "cells",
    "frozen_recipe",
    "lower_at_equal_calibration",
    "part_by_part",
]

RECIPE = Path(__file__).parent / "recipe.json"
FROZEN = "Frozen recipe"
#: What it is made of, before its teachers: name -> what of `Recipe` is set.
PARTS: Mapping[str, Mapping[str, Any]] = {
    "Moved+averaged": {"moved": 1.0, "average": 3.0},
    "Moved+averaged+regulariser": {"moved": 1.0, "average": 3.0, "regularizer": 0.1},
}
#: What it is compared with at equal calibration, on the same seeds.
OTHERS = ("ERM", "Smoothing", "Mixup")
#: Of the printed table.
_COLUMNS = ("ERM", "Regulariser")
#: What is compared at equal calibration; the first decides.
_CALIBRATED = (
    "scaled_common_pairs",
    "scaled_infinite_pairs",
    "calibrated_fragility_index",
    "scaled_log_loss",
    "ratio",
)
#: What is shown of each part of the recipe.
_ADDED = (
    "accuracy",
    "auc_ovr",
    "log_loss",
    "scaled_log_loss",
    "capped_fragility_index",
    "scaled_common_pairs",
    "calibrated_fragility_index",
)


@lru_cache(1)
def frozen_recipe() -> dict[str, Any]:
    """What of `Recipe` is set by the file, once git has it as it is.

    Raises
    ------
    RefusedError
        If it has not.
    """
    # Not what the index of git says, which can be told to look away, nor another repository.
    ours = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(RECIPE.parent), "show", f"HEAD:./{RECIPE.name}"]
    try:
        committed = subprocess.run(command, capture_output=True, check=False, env=ours)
    except OSError as error:
        raise RefusedError(f"git is needed to see that the recipe is frozen: {error}.") from None
    if committed.returncode or committed.stdout != RECIPE.read_bytes():
        raise RefusedError(
            f"{RECIPE.name} is not committed as it is: test images are seen only after the "
            "recipe is frozen. Choose it by `medmnist_search`, commit it, and run again."
        )
    return dict(json.loads(committed.stdout)["recipe"])


def cells(results: DataFrame, method: str = FROZEN) -> DataFrame:
    """Every set and printed figure: the recipe, or a part of it, beside both printed columns.

    ``gain``: how much better than the better of them, as a part of it.
    """
    table = printed().set_index(["dataset", "method"])
    compared = _compared(results)
    rows = []
    for dataset in SETS:
        part = compared[(compared["dataset"] == dataset) & (compared["method"] == method)]
        if part.empty:
            continue
        for figure, ours in PRINTED.items():
            mean, error, trials = mean_error(part[ours])
            both = erm, regularised = [table.loc[(dataset, m), figure] for m in _COLUMNS]
            less = figure in LESS_IS_BETTER
            best = min(both) if less else max(both)
            gain = best - mean if less else mean - best
            rows.append(
                {
                    "dataset": dataset,
                    "figure": figure,
                    "ours": mean,
                    "error": error,
                    "trials": trials,
                    "printed ERM": erm,
                    "printed FI": regularised,
                    "gain": gain / best,
                    "gain_error": error / best,
                    "better than both": bool(gain > 0.0),
                    "by two standard errors": bool(gain > 2.0 * error),
                }
            )
    return DataFrame(rows)


def _compared(results: DataFrame) -> DataFrame:
    """With the stem and the choice of the epoch that the paper has."""
    return results[(results["stem"] == "7x7") & (results["pick"] == "ce")]


def calibrated(results: DataFrame) -> DataFrame:
    """The recipe less each other method at equal calibration, paired by seed.

    ``lower``: the index after a temperature from the validation images is lower by mean over the
    pairs of classes that are finite with both, and no more of them are infinite; ``clearly``: by
    more than two standard errors. ``lower cross-fitted``: so is the index after calibration on the
    test images.
    """
    part = _compared(results)
    first = _CALIBRATED[0]
    rows = []
    for other in OTHERS:
        changes = against(part[part["method"].isin((FROZEN, other))], other, _CALIBRATED)
        for row in changes.to_dict("records"):
            lower = row[first] < 0.0 and row["scaled_infinite_pairs"] <= 0.0
            judged = {
                "dataset": row["dataset"],
                "against": other,
                "trials": row["trials"],
                "lower": lower,
                "clearly": lower and row[first] < -2.0 * row[f"{first}_error"],
                "lower cross-fitted": row["calibrated_fragility_index"] < 0.0,
            }
            rows.append({**judged, **_without(row, "stem", "method", "pick")})
    return DataFrame(rows)


def _without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def part_by_part(results: DataFrame) -> DataFrame:
    """What each part of the recipe adds to those before it, paired by seed; first to ERM."""
    part = _compared(results)
    rows = []
    for before, method in pairwise(("ERM", *PARTS, FROZEN)):
        changes = against(part[part["method"].isin((before, method))], before, _ADDED)
        for row in changes.to_dict("records"):
            rows.append({**_without(row, "stem", "pick"), "method": f"{method} less {before}"})
    return DataFrame(sorted(rows, key=lambda row: SETS.index(row["dataset"])))


def better_than_printed(results: DataFrame) -> Verdict | None:
    """Which of the cells are met."""
    table = cells(results)
    if table.empty:
        return None
    met = int(table["better than both"].sum())
    clearly = int(table["by two standard errors"].sum())
    worse = int((table["gain"] < -2.0 * table["gain_error"]).sum())
    missed = table[~table["better than both"]]
    names = [f"{row.dataset} {row.figure}" for row in missed.itertuples()]
    because = (
        f"Better than both printed columns in {met} of {len(table)} cells, by more than two "
        f"standard errors in {clearly}, worse by as much in {worse}. Not better: "
        f"{', '.join(names) or 'none'}."
    )
    others = {method: cells(results, method) for method in ("ERM", *PARTS)}
    counts = [f"{m} {int(t['better than both'].sum())}" for m, t in others.items() if len(t)]
    if counts:
        because += f" Of the same cells are met with less: {', '.join(counts)}."
    return gained(clearly, worse, len(table), because)


def lower_at_equal_calibration(results: DataFrame) -> Verdict | None:
    """On how many sets, against each other method."""
    table = calibrated(results)
    if table.empty:
        return None
    table = table[table["trials"] > 1]
    if table.empty:
        return None
    counts, most = [], []
    for other, part in table.groupby("against", sort=False):
        lower, fitted = int(part["lower"].sum()), int(part["lower cross-fitted"].sum())
        clearly = int(part["clearly"].sum())
        counts.append(
            f"{other} on {lower} of {len(part)} sets after a temperature from the validation "
            f"images (clearly on {clearly}), on {fitted} after cross-fitted calibration"
        )
        most.append(2 * int(_lower_by_both(part).sum()) > len(part))
    higher = int((table[_CALIBRATED[0]] > 2.0 * table[f"{_CALIBRATED[0]}_error"]).sum())
    because = f"Lower than {'; '.join(counts)}. Clearly higher in {higher} of {len(table)} cells."
    better = int(_lower_by_both(table).sum())
    return gained(better, higher, len(table), because, len(most) == len(OTHERS) and all(most))


def _lower_by_both(table: DataFrame) -> Series:
    """Clearly after a temperature, and after cross-fitted calibration, too."""
    return table["clearly"] & table["lower cross-fitted"]
