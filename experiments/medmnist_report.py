"""Tables of the deep networks: means with standard errors, the printed values, paired gains."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from pandas import DataFrame, Series

__all__ = ["beside_printed", "differences", "mean_error", "models"]

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
_PRINTED = {
    "accuracy": "accuracy",
    "auc": "auc_ovr",
    "log_loss": "log_loss",
    "fragility_index": "capped_fragility_index",
}


def mean_error(values: Sequence[float] | Series) -> tuple[float, float, int]:
    """Mean of the finite values, its standard error (NaN for one value), and their number.

    Examples
    --------
    >>> mean_error([1.0, 3.0, float("inf")])
    (2.0, 1.0, 2)
    """
    finite = np.asarray(values, float)
    finite = finite[np.isfinite(finite)]
    n = len(finite)
    if n == 0:
        return math.nan, math.nan, 0
    mean = math.fsum(finite) / n
    if n == 1:
        return mean, math.nan, 1
    return mean, math.sqrt(math.fsum((finite - mean) ** 2) / (n - 1) / n), n


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
            for measure, ours in _PRINTED.items():
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


def differences(results: DataFrame, other: str = "ERM") -> DataFrame:
    """Every method minus ERM, by trial: mean, standard error, and pairs that are both finite."""
    rows = []
    for key, part in results.groupby(["dataset", "stem", "pick"], sort=False):
        for measure in MEASURES:
            wide = part.pivot(index="trial", columns="method", values=measure)
            if other not in wide:
                continue
            for method in part["method"].unique():
                if method == other:
                    continue
                # Infinite less infinite is no number, and counts as little as infinite.
                with np.errstate(invalid="ignore"):
                    change = wide[method].to_numpy(float) - wide[other].to_numpy(float)
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
