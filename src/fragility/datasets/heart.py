"""Heart failure prediction: 918 patients, 11 measurements."""

from __future__ import annotations

import csv
import os
from typing import Literal, overload

import numpy as np
from sklearn.utils import Bunch

from .._typing import Floats, Integers
from .files import DataFile

_FILE = DataFile(
    folder="heart",
    name="heart.csv",
    checksum="948420b084d8a3a0ca42b8419fce9aee175879e43f8aedf712377899a67aa49b",
    url="https://www.kaggle.com/api/v1/datasets/download/fedesoriano/heart-failure-prediction",
    licence="ODbL 1.0",
    note="The source gives an archive that holds the file, and may ask you to sign in.",
)
_LABEL = "HeartDisease"
_TEXT = ("Sex", "ChestPainType", "RestingECG", "ExerciseAngina", "ST_Slope")


@overload
def load_heart(
    *, data_home: str | os.PathLike[str] | None = ..., return_X_y: Literal[False] = ...
) -> Bunch: ...
@overload
def load_heart(
    *, data_home: str | os.PathLike[str] | None = ..., return_X_y: Literal[True]
) -> tuple[Floats, Integers]: ...
def load_heart(
    *, data_home: str | os.PathLike[str] | None = None, return_X_y: bool = False
) -> Bunch | tuple[Floats, Integers]:
    """Heart failure prediction (fedesoriano, Kaggle): whether a patient has a heart disease.

    918 patients, 508 of them with a heart disease (class 1). Text columns become one indicator per
    level, all levels kept: 20 columns. Values are not scaled; 172 patients have a `Cholesterol` of
    0, which stands for unknown.

    Parameters
    ----------
    data_home : path, optional
        Folder that holds ``heart.csv`` or ``heart/heart.csv``. By default the file is taken from
        the folder that the environment variable ``FRAGILITY_DATA`` names, else from the cache,
        else it is downloaded (``pip install "fragility[datasets]"``). Its checksum must be the
        recorded one.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    Bunch
        With ``data`` (918, 20), ``target`` (918,), ``feature_names``, ``target_names``, ``DESCR``.

    Examples
    --------
    >>> from fragility.datasets import load_heart
    >>> load_heart().data.shape  # doctest: +SKIP
    (918, 20)
    """
    names, *rows = csv.reader(_FILE.read(data_home).decode("utf-8-sig").splitlines())
    columns: dict[str, list[float]] = {}
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        if name in _TEXT:
            for level in sorted(set(values)):
                columns[f"{name}={level}"] = [value == level for value in values]
        else:
            columns[name] = [float(value) for value in values]
    target = np.array(columns.pop(_LABEL), dtype=np.int64)
    data = np.array(list(columns.values()), dtype=float).T.copy()
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        feature_names=list(columns),
        target_names=["no disease", "heart disease"],
        DESCR=f"Heart failure prediction, {_FILE.url}, {_FILE.licence}.",
    )
