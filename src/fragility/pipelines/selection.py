"""Which columns and which rows of a table a model is trained on."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .._typing import Mask
from ..exceptions import TableError
from .frames import Column, check_present, missing_cells


def feature_names(
    columns: list[str],
    label: str,
    weight: str | None,
    features: Iterable[str] | None,
    exclude: Iterable[str],
) -> list[str]:
    """Columns to use, in the order of the table."""
    check_present([label], columns, "The label column is", "Name the column of the classes.")
    if weight is not None:
        check_present([weight], columns, "The weight column is", "Name the column of the weights.")
        if weight == label:
            raise TableError(f"{label!r} cannot be both the label and the weight.")
    exclude = _listed_names(exclude, "exclude")
    check_present(exclude, columns, "Columns to exclude are", "Correct their names.")
    asked = columns if features is None else _listed_names(features, "features")
    check_present(asked, columns, "Features are", "Correct their names.")
    if features is not None:
        for name, role in ((label, "label"), (weight, "weight")):
            if name in asked:
                raise TableError(
                    f"{name!r} is the {role}, and cannot be a feature, too; take it out of "
                    "features."
                )
    left = [name for name in columns if name in asked and name not in {label, weight, *exclude}]
    if not left:
        raise TableError(
            f"No feature column is left: the table has {len(columns)} columns, less the label"
            f"{'' if weight is None else ', the weight'} and {len(exclude)} excluded."
        )
    return left


def _listed_names(names: Iterable[str], parameter: str) -> list[str]:
    if isinstance(names, str):  # its letters would be taken for columns
        raise ValueError(f"{parameter} must be a list of columns, such as [{names!r}].")
    return list(names)


def rows_to_use(
    columns: dict[str, Column],
    label: str,
    weight: str | None,
    *,
    impute: bool,
    drop_missing: bool,
) -> Mask:
    """Which rows to use, of the columns to use; gaps that nobody allowed are an error."""
    n = columns[label].values.size
    if n == 0:
        raise TableError("The table has no rows.")
    empty = [name for name, column in columns.items() if column.missing.all()]
    if empty:
        raise TableError(
            f"Columns without a value in any row: {', '.join(map(repr, empty[:10]))}. Exclude "
            "them, or fill them in."
        )
    roles = {label: "label"} if weight is None else {label: "label", weight: "weight"}
    needed = [column for name, column in columns.items() if name in roles or not impute]
    if drop_missing:
        complete: Mask = ~np.any([column.missing for column in needed], axis=0)
        if not complete.any():
            raise TableError(
                f"All {n} rows miss some value, so none is left. Exclude the columns with most "
                f"gaps, or impute: {missing_cells(needed)}."
            )
        return complete
    for name, role in roles.items():
        gaps = columns[name].missing
        if gaps.any():
            raise TableError(
                f"The {role} column {name!r} is empty in {columns[name].rows(gaps)}; a {role} is "
                "never filled in. Leave these rows out (drop_missing, on the command line "
                "--drop-missing)."
            )
    cells = missing_cells(needed)
    if cells:
        raise TableError(
            f"Values are missing: {cells}. Fill them in by medians and most frequent levels "
            "(impute, on the command line --impute), leave these rows out (drop_missing, "
            "--drop-missing), or exclude the columns."
        )
    return np.ones(n, dtype=np.bool_)
