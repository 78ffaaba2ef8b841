"""Eight data sets of two classes from the UCI Machine Learning Repository."""

from __future__ import annotations

import os
from typing import Any, Literal, overload

import numpy as np
from sklearn.utils import Bunch

from .._labels import listed
from .._parameters import check_choice, check_number
from .._typing import Floats, Integers
from .uci_files import GERMAN_NUMERIC, LIVER_BY_DRINKS, SETS

_OTHER_NAMES = {
    "bupa": "liver", "wpbc": "prognostic", "pima": "diabetes",
    **{table.abbreviation.lower(): name for name, table in SETS.items()},
}  # fmt: skip


@overload
def load_uci(
    name: str,
    *,
    missing: Literal["median", "drop", "keep"] = ...,
    liver_label: Literal["selector", "drinks"] = ...,
    drinks_from: float = ...,
    german: Literal["categorical", "numeric"] = ...,
    data_home: str | os.PathLike[str] | None = ...,
    return_X_y: Literal[False] = ...,
) -> Bunch: ...
@overload
def load_uci(
    name: str,
    *,
    missing: Literal["median", "drop", "keep"] = ...,
    liver_label: Literal["selector", "drinks"] = ...,
    drinks_from: float = ...,
    german: Literal["categorical", "numeric"] = ...,
    data_home: str | os.PathLike[str] | None = ...,
    return_X_y: Literal[True],
) -> tuple[Floats, Integers]: ...
def load_uci(
    name: str,
    *,
    missing: Literal["median", "drop", "keep"] = "median",
    liver_label: Literal["selector", "drinks"] = "selector",
    drinks_from: float = 3.0,
    german: Literal["categorical", "numeric"] = "categorical",
    data_home: str | os.PathLike[str] | None = None,
    return_X_y: bool = False,
) -> Bunch | tuple[Floats, Integers]:
    """One of the eight UCI data sets of two classes that the paper uses.

    =============  =====  ======  ========  ===================================
    name           paper  rows    features  class 1 (its rows)
    =============  =====  ======  ========  ===================================
    "coimbra"      BCC    116     9         breast cancer patient (64)
    "liver"        LD     345     6         selector 2 (200), see `liver_label`
    "ilpd"         ILDP   583     10        liver patient (416)
    "german"       SG     1000    61        bad credit (300)
    "prognostic"   BCW    198     32        recurrence of breast cancer (47)
    "diabetes"     DI     768     8         diabetes (268)
    "ionosphere"   IO     351     34        good radar return (225)
    "sonar"        CB     208     60        mine (111)
    =============  =====  ======  ========  ===================================

    Values are not scaled. Text columns of "german" become one indicator per level, all levels
    kept; the sex in "ilpd" becomes one column. In "prognostic" the time to recurrence is left out,
    because it is known only together with the outcome. In "diabetes" a 0 often stands for unknown.

    Parameters
    ----------
    name : str
        As in the table above, or as abbreviated in the paper, in small or capital letters; "bupa",
        "wpbc" and "pima" are known, too.
    missing : {"median", "drop", "keep"}, default="median"
        What to do with values that are not known, four in "ilpd" and four in "prognostic": put the
        median of the column there, leave those rows out, or leave NaN.
    liver_label : {"selector", "drinks"}, default="selector"
        Label of "liver". The selector is what most of the literature takes, but it only tells two
        parts of the data apart. With "drinks", class 1 drinks at least `drinks_from` half-pints of
        alcohol a day, and the drinks are no feature: 5 features are left, and the selector is
        not used.
    drinks_from : float, default=3
        Used with ``liver_label="drinks"``.
    german : {"categorical", "numeric"}, default="categorical"
        Which of the two files of "german": the categories, or the 24 numbers that the donors made
        of them.
    data_home : path, optional
        Folder that holds the file, or ``uci/`` with it; by default that of the environment
        variable ``FRAGILITY_DATA``, else the cache, else the file is downloaded. Its checksum must
        be the recorded one.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    Bunch
        With ``data``, ``target``, ``feature_names``, ``target_names``, ``DESCR``, and
        ``n_missing``, the number of values that were not known.

    Examples
    --------
    >>> from fragility.datasets import load_uci
    >>> X, y = load_uci("sonar", return_X_y=True)  # doctest: +SKIP
    >>> X.shape  # doctest: +SKIP
    (208, 60)
    """
    check_choice(missing, ("median", "drop", "keep"), "missing")
    check_choice(liver_label, ("selector", "drinks"), "liver_label")
    check_choice(german, ("categorical", "numeric"), "german")
    key = _key(name)
    table = GERMAN_NUMERIC if key == "german" and german == "numeric" else SETS[key]
    by_drinks = key == "liver" and liver_label == "drinks"
    table = LIVER_BY_DRINKS if by_drinks else table
    columns = table.read(data_home)
    target = _at_least(columns["drinks"], drinks_from) if by_drinks else table.target(columns)
    names, data = table.features(columns)
    n_missing = int(np.isnan(data).sum())
    if missing == "drop":
        known = ~np.isnan(data).any(axis=1)
        data, target = data[known], target[known]
    elif missing == "median" and n_missing:
        data = np.where(np.isnan(data), np.nanmedian(data, axis=0), data)
    if return_X_y:
        return data, target
    about: dict[str, Any] = {
        "feature_names": names,
        "target_names": list(table.target_names),
        "n_missing": n_missing,
        "DESCR": table.description,
    }
    return Bunch(data=data, target=target, **about)


def _key(name: str) -> str:
    key = str(name).lower()
    key = _OTHER_NAMES.get(key, key)
    if key not in SETS:
        abbreviations = listed(table.abbreviation for table in SETS.values())
        raise ValueError(
            f"There is no data set {name!r}; there are {listed(SETS)}, or as the paper abbreviates "
            f"them {abbreviations}."
        )
    return key


def _at_least(values: list[str], least: float) -> Integers:
    target = (np.array(values, dtype=float) >= check_number(least, "drinks_from")).astype(np.int64)
    if target.min() == target.max():
        raise ValueError(
            f"drinks_from={least!r} puts all rows into one class; the drinks go from "
            f"{min(map(float, values)):g} to {max(map(float, values)):g}."
        )
    return target
