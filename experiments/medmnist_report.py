"""Tables of the deep networks: means with standard errors, the printed values, paired gains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pandas import DataFrame, read_csv

from experiments.tables import mean_error

__all__ = [
    "AT_EQUAL_CALIBRATION",
    "LESS_IS_BETTER",
    "PRINTED",
    "against",
    "benchmark",
    "beside_printed",
    "differences",
    "equal_calibration",
    "models",
    "printed",
    "summary",
]

_BY = ["dataset", "stem", "method", "pick"]
MEASURES = (
    "accuracy",
    "auc",
    "auc_ovr",
    "log_loss",
    "fragility_index",
    "capped_fragility_index",
    "ratio",
    "calibrated_fragility_index",
    "calibrated_log_loss",
    "scaled_fragility_index",
    "scaled_log_loss",
    "temperature",
    "infinite_pairs",
    "epochs",
)
#: What the paper prints -> what of ours stands beside it.
PRINTED = {
    "accuracy": "accuracy",
    "auc": "auc_ovr",
    "log_loss": "log_loss",
    "fragility_index": "capped_fragility_index",
}
#: The index after a temperature from the validation images, and cross-fitted on the test images.
AT_EQUAL_CALIBRATION = ("scaled_fragility_index", "calibrated_fragility_index")
LESS_IS_BETTER = ("log_loss", "fragility_index")


def printed() -> DataFrame:
    """The paper's table: one row for each set and method."""
    return read_csv(Path(__file__).parent / "printed" / "medmnist.csv")


def benchmark() -> DataFrame:
    """ResNet-18 in table 3 of MedMNIST v2 (doi:10.1038/s41597-022-01721-8), four of our sets."""
    return read_csv(Path(__file__).parent / "printed" / "medmnist_benchmark.csv")


def models(results: DataFrame) -> DataFrame:
    """Every measure of every method: mean over the finite trials, ``NAME_error``."""
    rows = []
    for key, part in results.groupby(_BY, sort=False):
        row = {**dict(zip(_BY, key, strict=True)), "trials": part["trial"].nunique()}
        for name in MEASURES:
            row[name], row[f"{name}_error"], _ = mean_error(part[name])
        row["infinite_trials"] = int(np.isinf(part["fragility_index"].to_numpy(float)).sum())
        rows.append(row)
    return DataFrame(rows)


def beside_printed(results: DataFrame, printed: DataFrame) -> DataFrame:
    """One row for each printed figure and stem: ours, the paper's, and whether they agree."""
    rows = []
    for line in printed.to_dict("records"):
        same = (results["dataset"] == line["dataset"]) & (results["method"] == line["method"])
        for stem, part in results[same & (results["pick"] == "ce")].groupby("stem", sort=False):
            for measure, ours in PRINTED.items():
                mean, error, n = mean_error(part[ours])
                rows.append(
                    {
                        "dataset": line["dataset"],
                        "stem": stem,
                        "method": line["method"],
                        "measure": measure,
                        "ours": mean,
                        "error": error,
                        "trials": n,
                        "paper": line[measure],
                        # Printed to four digits.
                        "inside": bool(abs(mean - line[measure]) <= 2.0 * error + 5e-5),
                    }
                )
    return DataFrame(rows)


def _less(these: Sequence[float], others: Sequence[float]) -> Sequence[float]:
    # Infinite less infinite is no number, and counts as little as infinite.
    with np.errstate(invalid="ignore"):
        return np.asarray(these, float) - np.asarray(others, float)


def _less_by_pairs(these: Sequence[object], others: Sequence[object]) -> Sequence[float]:
    """Differences of the mean over the pairs of classes that are finite in both."""
    found = []
    for one, other in zip(these, others, strict=True):
        changes = _less(_numbers(one), _numbers(other))
        changes = changes[np.isfinite(changes)]
        found.append(math.fsum(changes) / len(changes) if len(changes) else math.nan)
    return found


def _less_infinite(these: Sequence[object], others: Sequence[object]) -> Sequence[float]:
    counts = [[int(np.isinf(_numbers(text)).sum()) for text in part] for part in (these, others)]
    return _less(*counts)


def _numbers(text: object) -> Sequence[float]:
    """Of text such as "0.1 inf"; a single number was read as one already."""
    return np.array(str(text).split(), float)


_PAIRED = {"scaled_common_pairs": _less_by_pairs, "scaled_infinite_pairs": _less_infinite}


def differences(results: DataFrame, other: str = "ERM", measures: Sequence[str] = ()) -> DataFrame:
    """Every method minus ERM, by trial: mean, standard error, and trials that are both finite.

    An index may be infinite, and then no difference says more. So two more measures compare what
    is left after temperature scaling: ``scaled_common_pairs`` the mean index over those pairs of
    classes that are finite with both methods, ``scaled_infinite_pairs`` the number of others. All
    measures, unless some are asked for.
    """
    rows = []
    for key, part in results.groupby(["dataset", "stem", "pick"], sort=False):
        known = (*MEASURES, *(_PAIRED if "scaled_pairs" in part else ()))
        for measure in measures or known:
            values = "scaled_pairs" if measure in _PAIRED else measure
            wide = part.pivot(index="trial", columns="method", values=values)
            if other not in wide:
                continue
            # Columns as arrays: a frame for every two of them takes most of a report's time.
            columns = {name: wide[name].to_numpy() for name in wide}
            told = {name: wide[name].notna().to_numpy() for name in wide}
            for method in part["method"].unique():
                if method == other:
                    continue
                both = told[method] & told[other]
                change = _PAIRED.get(measure, _less)(columns[method][both], columns[other][both])
                mean, error, n = mean_error(change)
                rows.append(
                    {
                        **dict(zip(("dataset", "stem", "pick"), key, strict=True)),
                        "method": method,
                        "measure": measure,
                        "difference": mean,
                        "error": error,
                        "pairs": n,
                    }
                )
    return DataFrame(rows)


def against(results: DataFrame, other: str = "ERM", measures: Sequence[str] = ()) -> DataFrame:
    """The same in one row for each set, stem, method and choice of the epoch."""
    long = differences(results, other, measures)
    rows = []
    for key, part in long.groupby(_BY, sort=False) if len(long) else ():
        row = {**dict(zip(_BY, key, strict=True)), "trials": int(part["pairs"].max())}
        for line in part.itertuples():
            row[line.measure], row[f"{line.measure}_error"] = line.difference, line.error
        rows.append(row)
    return DataFrame(rows)


def summary(results: DataFrame, sets: Sequence[str], stem: str) -> DataFrame:
    """Index less that of ERM with one stem: as it is, and after each kind of calibration.

    ▼ and ▲: lower or higher by more than two standard errors.
    """
    part = results[(results["stem"] == stem) & (results["pick"] == "ce")]
    measures = ("fragility_index", *AT_EQUAL_CALIBRATION)
    long = differences(part[part["dataset"].isin(sets)], "ERM", measures)
    if long.empty or not set(sets) <= set(long["dataset"]):
        return DataFrame()
    rows = []
    for method, lines in long.groupby("method", sort=False):
        row = {"method": method}
        for dataset in sets:
            found = lines[lines["dataset"] == dataset].set_index("measure").loc[list(measures)]
            row[dataset.capitalize()] = " / ".join(
                _marked(line.difference, line.error) for line in found.itertuples()
            )
        rows.append(row)
    return DataFrame(rows)


def equal_calibration(results: DataFrame, sets: Sequence[str]) -> DataFrame:
    """Where a method is clearly lower than ERM by both kinds of calibration, or higher by any.

    Clearly: by more than two standard errors of the paired differences.
    """
    part = results[(results["pick"] == "ce") & results["dataset"].isin(sets)]
    long = differences(part, "ERM", AT_EQUAL_CALIBRATION)
    rows = []
    for method, lines in long.groupby("method", sort=False) if len(long) else ():
        lower, higher = [], []
        cells = lines.groupby(["stem", "dataset"], sort=False)
        for (stem, dataset), both in cells:
            name = f"{dataset.capitalize()} {stem}"
            if (both["difference"] < -2.0 * both["error"]).all():
                lower.append(name)
            if (both["difference"] > 2.0 * both["error"]).any():
                higher.append(name)
        rows.append(
            {
                "method": method,
                "cells": cells.ngroups,
                "lower by both": len(lower),
                "higher by any": len(higher),
                "lower": ", ".join(lower) or "–",
                "higher": ", ".join(higher) or "–",
            }
        )
    return DataFrame(rows)


def _marked(difference: float, error: float) -> str:
    mark = "" if abs(difference) <= 2.0 * error else "▼" if difference < 0.0 else "▲"
    return f"{difference:+.3f}".replace("0.", ".", 1).replace("-", "\N{MINUS SIGN}") + mark
