"""Tables: figures over trials with their intervals, and frames as CSV and Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real

import numpy as np
from pandas import DataFrame, Series
from scipy.special import stdtrit

__all__ = ["csv_table", "interval", "markdown", "mean_error", "mean_interval", "shown", "summarise"]

LEVEL = 0.95
_DIGITS = 3


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


def mean_interval(values: Sequence[float] | Series) -> tuple[float, float, float]:
    """Mean of the finite values and the 95 % interval of that mean (Student's t).

    Examples
    --------
    >>> [round(x, 3) for x in mean_interval([1.0, 2.0, 3.0])]
    [2.0, -0.484, 4.484]
    """
    return interval(*mean_error(values))


def interval(mean: float, error: float, n: int) -> tuple[float, float, float]:
    """The same of a mean of `n` values whose standard error is known; NaN ends for one value."""
    half = float(stdtrit(n - 1, (1.0 + LEVEL) / 2.0)) * error if n > 1 else math.nan
    return mean, mean - half, mean + half


def summarise(results: DataFrame, by: Sequence[str], measures: Sequence[str]) -> DataFrame:
    """One row for each group: for each measure its mean over trials and the 95 % interval.

    Columns: those of `by`, ``trials``, for each measure ``NAME``, ``NAME_low``, ``NAME_high``,
    and for the index, and wherever a measure is infinite in some trial, ``NAME_infinite``: in how
    many. Those trials are not in the mean. Groups keep the order of the results.
    """
    unbounded = [
        name
        for name in measures
        if name == "fragility_index" or np.isinf(results[name].to_numpy(float)).any()
    ]
    rows = []
    for key, group in results.groupby(list(by), sort=False):
        row = {**dict(zip(by, key, strict=True)), "trials": group["trial"].nunique()}
        for name in measures:
            row[name], row[f"{name}_low"], row[f"{name}_high"] = mean_interval(group[name])
            if name in unbounded:
                row[f"{name}_infinite"] = int(np.isinf(group[name].to_numpy(float)).sum())
        rows.append(row)
    return DataFrame(rows)


def csv_table(table: DataFrame) -> str:
    """A table as CSV, numbers to six digits: more would be noise of the machine."""
    text = table.map(_stable)
    return str(text.to_csv(index=False, lineterminator="\n"))


def _stable(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, Real) and not isinstance(value, Integral) else value


def shown(value: object) -> str:
    """A cell as people read it: three digits behind the point, whole numbers as they are."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return str(value)
    if isinstance(value, Real):
        number = float(value)
        if math.isinf(number):
            return "∞" if number > 0 else "−∞"
        small = number != 0 and abs(number) < 10.0 ** (1 - _DIGITS)
        return f"{number:.2g}" if small else f"{number:.{_DIGITS}f}"
    return str(value)


def joined(table: DataFrame) -> DataFrame:
    """The same with ``NAME`` and its interval or error in one column of text.

    An interval is ``NAME_low`` and ``NAME_high``, a standard error ``NAME_error``.
    """
    parts = {
        name: [f"{name}_low", f"{name}_high"]
        for name in table
        if {f"{name}_low", f"{name}_high"} <= set(table)
    }
    errors = {name: f"{name}_error" for name in table if f"{name}_error" in table}
    dropped = {*errors.values(), *(end for ends in parts.values() for end in ends)}
    out = {}
    for name in table:
        if name in dropped:
            continue
        cells = [shown(value) for value in table[name]]
        if name in parts:
            low, high = (table[end] for end in parts[name])
            cells = [
                cell if math.isnan(a) else f"{cell} ({shown(a)} to {shown(b)})"
                for cell, a, b in zip(cells, low, high, strict=True)
            ]
        if name in errors:
            cells = [
                cell if math.isnan(error) else f"{cell} ± {shown(error)}"
                for cell, error in zip(cells, table[errors[name]], strict=True)
            ]
        out[str(name).replace("_", " ")] = cells
    return DataFrame(out)


def numeric(table: DataFrame) -> list[bool]:
    """Which columns of the joined table hold numbers: those go to the right."""
    from pandas.api.types import is_numeric_dtype

    kept = [str(name).replace("_", " ") for name in joined(table)]
    kinds = {str(name).replace("_", " "): is_numeric_dtype(table[name]) for name in table}
    return [kinds[name] for name in kept]


def markdown(table: DataFrame) -> str:
    """A table as Markdown, intervals beside their means."""
    cells = joined(table)
    rules = ["---:" if number else "---" for number in numeric(table)]
    lines = [list(cells.columns), rules, *cells.to_numpy().tolist()]
    return "".join("| " + " | ".join(_escaped(cell) for cell in line) + " |\n" for line in lines)


def _escaped(cell: str) -> str:
    return " ".join(cell.replace("|", "\\|").split())
