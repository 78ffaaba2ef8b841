"""Which columns and which rows of a table a model is trained on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._labels import in_rows
from ..exceptions import TableError
from .frames import check_present, missing_cells


def feature_names(
    frame: Any,
    label: str,
    weight: str | None,
    features: Iterable[str] | None,
    exclude: Iterable[str],
) -> list[str]:
    """Columns to use, in the order of the table."""
    columns = list(frame.columns)
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


def without_gaps(
    frame: Any, label: str, weight: str | None, names: list[str], impute: bool, drop_missing: bool
) -> Any:
    """The rows to use, of the columns to use."""
    if len(frame) == 0:
        raise TableError("The table has no rows.")
    others = [label] if weight is None else [label, weight]
    used = frame[[*names, *others]]
    empty = [name for name in used if used[name].isna().all()]
    if empty:
        raise TableError(
            f"Columns without a value in any row: {', '.join(map(repr, empty[:10]))}. Exclude "
            "them, or fill them in."
        )
    needed = others if impute else [*names, *others]
    if drop_missing:
        used = used[used[needed].notna().all(axis=1)]
        if len(used) == 0:
            raise TableError(
                f"All {len(frame)} rows miss some value, so none is left. Exclude the columns with "
                f"most gaps, or impute: {missing_cells(frame[needed])}."
            )
        return used
    for name, role in zip(others, ("label", "weight"), strict=False):
        gaps = used[name].isna()
        if gaps.any():
            raise TableError(
                f"The {role} column {name!r} is empty in {in_rows(gaps, used)}; a {role} is never "
                "filled in. Leave these rows out (drop_missing, on the command line "
                "--drop-missing)."
            )
    gaps = missing_cells(used[needed])
    if gaps:
        raise TableError(
            f"Values are missing: {gaps}. Fill them in by medians and most frequent levels "
            "(impute, on the command line --impute), leave these rows out (drop_missing, "
            "--drop-missing), or exclude the columns."
        )
    return used
