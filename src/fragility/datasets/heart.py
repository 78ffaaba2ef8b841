"""Heart failure prediction: 918 patients, 11 measurements."""

from __future__ import annotations

import os
from typing import Any, Literal, overload

from sklearn.utils import Bunch

from .._typing import Floats, Integers
from .files import DataFile
from .text_table import Table, names

_TABLE = Table(
    title="Heart failure prediction",
    file=DataFile(
        folder="heart",
        name="heart.csv",
        checksum="948420b084d8a3a0ca42b8419fce9aee175879e43f8aedf712377899a67aa49b",
        url="https://www.kaggle.com/api/v1/datasets/download/fedesoriano/heart-failure-prediction",
        licence="ODbL 1.0",
        note="The source gives an archive that holds the file, and may ask you to sign in.",
    ),
    columns=names(
        "Age, Sex, ChestPainType, RestingBP, Cholesterol, FastingBS, RestingECG, MaxHR, "
        "ExerciseAngina, Oldpeak, ST_Slope, HeartDisease"
    ),
    label="HeartDisease",
    positive="1",
    target_names=("no disease", "heart disease"),
    text=dict.fromkeys(("Sex", "ChestPainType", "RestingECG", "ExerciseAngina", "ST_Slope")),
    header=True,
)


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
        Folder that holds ``heart.csv`` or ``heart/heart.csv``; by default that of the environment
        variable ``FRAGILITY_DATA``, else the cache, else the file is downloaded. Its checksum must
        be the recorded one.
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
    columns = _TABLE.read(data_home)
    feature_names, data = _TABLE.features(columns)
    target = _TABLE.target(columns)
    if return_X_y:
        return data, target
    about: dict[str, Any] = {
        "feature_names": feature_names,
        "target_names": list(_TABLE.target_names),
        "DESCR": _TABLE.description,
    }
    return Bunch(data=data, target=target, **about)
