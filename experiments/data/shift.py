"""Data sets with natural domains: the same question asked in another place, group or time.

The copies that we know come from mirrors, and are not the files of the official source byte by
byte: missing values are written as NaN, files are compressed, some columns are missing. So nothing
is downloaded. The files are read from a folder of the user, and only if their checksum is ours.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass

import numpy as np
from pandas import DataFrame, get_dummies, read_csv
from sklearn.utils import Bunch

from experiments.data.text_table import names
from fragility._labels import listed
from fragility.datasets.files import DataFile

__all__ = ["SETS", "ShiftTable", "load_shift"]

_ARCHIVE = "https://archive.ics.uci.edu/dataset/"
_HEART = names(
    "age, sex, cp, trestbps, chol, fbs, restecg, thalach, exang, oldpeak, slope, ca, thal, num"
)


@dataclass(frozen=True)
class ShiftTable:
    """One file of rows.

    Attributes
    ----------
    title : str
    file : DataFile
        Its address is that of the data set in the UCI repository, for people.
    label : str
        Column of the label.
    positive : str or float
        Class 1 is this text, or this number and more.
    columns : tuple of str
        Every column, where the file has no header.
    separator : str
    left_out : tuple of str
        Columns that are neither a feature nor the label.
    zero_is_unknown : tuple of str
    repeated : bool
        Whether rows that are the same in every column are kept.
    remark : str
    """

    title: str
    file: DataFile
    label: str
    positive: str | float
    columns: tuple[str, ...] = ()
    separator: str = ","
    left_out: tuple[str, ...] = ()
    zero_is_unknown: tuple[str, ...] = ()
    repeated: bool = True
    remark: str = ""

    def read(self, data_home: str | os.PathLike[str] | None) -> DataFrame:
        """The rows as they are in the file, numbers that are not known as NaN."""
        home = data_home if data_home is not None else os.environ.get("FRAGILITY_DATA")
        if home is None:
            raise FileNotFoundError(
                f"{self.file.name} is not downloaded: our copy is not the official file byte by "
                f"byte. Put it (SHA-256 {self.file.checksum}) into the folder {self.file.folder} "
                "of the folder that the environment variable FRAGILITY_DATA names."
            )
        frame = read_csv(
            io.BytesIO(self.file.read(home)),
            sep=self.separator,
            names=list(self.columns) or None,
            header=None if self.columns else 0,
            encoding="utf-8-sig",
            compression="gzip" if self.file.name.endswith(".gz") else None,
        )
        for name in self.zero_is_unknown:
            frame[name] = frame[name].replace(0, np.nan)
        return frame if self.repeated else frame.drop_duplicates(ignore_index=True)


def _file(name: str, checksum: str, page: str) -> DataFile:
    return DataFile("shift", name, checksum, _ARCHIVE + page, "CC BY 4.0")


def _hospital(name: str, title: str, checksum: str) -> ShiftTable:
    return ShiftTable(
        f"Heart Disease, {title}",
        _file(f"{name}.data", checksum, "45/heart+disease"),
        label="num",
        positive=1.0,
        columns=_HEART,
        zero_is_unknown=("chol", "trestbps"),
        remark="Class 1: any narrowing. The set heart.csv is made of these hospitals, too.",
    )


def _wine(colour: str, checksum: str) -> ShiftTable:
    return ShiftTable(
        f"Wine Quality, {colour}",
        _file(f"{colour}.csv.gz", checksum, "186/wine+quality"),
        label="quality",
        positive=6.0,
        repeated=False,
        remark="Class 1: quality 6 or more. Rows that repeat an earlier one are left out.",
    )


SETS = {
    "cleveland": _hospital(
        "cleveland",
        "Cleveland",
        "0ad84ed1809abe7206420c0c45d77153fb82b85bbb20a2de3d34c6be1696915c",
    ),
    "hungarian": _hospital(
        "hungarian",
        "Budapest",
        "b7e2781a582917c782f906d079efd9d8994fbbfaa8bd50cce0dbdfc529502551",
    ),
    "switzerland": _hospital(
        "switzerland",
        "Zurich and Basel",
        "75fa4ed7943b891bc232fd36363c83a00d52c7cd3edaffae17ec99036d7021a5",
    ),
    "va": _hospital(
        "va",
        "Long Beach",
        "9a439dc875370c855c1b9c4f8f53f07a4356534f309648948d4f5d0425b5b0c4",
    ),
    "adult": ShiftTable(
        "Adult",
        _file(
            "adult.csv.gz",
            "f008745b3bd62fe29749f6e3a172ed75e9f64f7167589ee85b03b751d76e41eb",
            "2/adult",
        ),
        label="income",
        positive=">50K",
        left_out=("fnlwgt", "education", "native.country"),
        remark=(
            "Left out are the weight of the survey, the education as text, which is there as a "
            "number, and the country, which is a domain."
        ),
    ),
    "bank": ShiftTable(
        "Bank Marketing",
        _file(
            "bank.csv.gz",
            "16a1318dc100d4e655b95ac5d883eb4d65edcafc7aec826a385d38ed21f0fe93",
            "222/bank+marketing",
        ),
        label="y",
        positive=1.0,
        separator=";",
        left_out=("duration",),
        remark=(
            "Rows are in the order of time. The duration of the call is left out: it is known only "
            "afterwards. This copy lacks contact, month, day and poutcome."
        ),
    ),
    "red": _wine("red", "11e0738a718507cba63988021d02976bea7b62cbcb2d6af5534a643855b844d6"),
    "white": _wine("white", "b5974d5e496afa71ee7eb9dcb360e4f6f377cc2d5623b29e0d90c70449292e07"),
}


def load_shift(name: str, *, data_home: str | os.PathLike[str] | None = None) -> Bunch:
    """One of eight data sets of two classes with natural domains.

    ==============  =====  ========  ==========================
    name            rows   features  class 1 (its rows)
    ==============  =====  ========  ==========================
    "cleveland"     303    13        heart disease (139)
    "hungarian"     294    13        heart disease (106)
    "switzerland"   123    13        heart disease (115)
    "va"            200    13        heart disease (149)
    "adult"         32561  49        income above 50,000 (7841)
    "bank"          41188  42        subscribes (4640)
    "red"           1359   11        quality 6 or more (719)
    "white"         3961   11        quality 6 or more (2613)
    ==============  =====  ========  ==========================

    Text columns become one indicator for each level. Values that are not known are NaN.

    Parameters
    ----------
    name : str
    data_home : path, optional
        Folder that holds the file, or ``shift/`` with it; by default that of the environment
        variable ``FRAGILITY_DATA``. Its checksum must be the recorded one.

    Returns
    -------
    Bunch
        With ``data``, ``target``, ``feature_names``, ``DESCR``, and ``frame``, the rows with all
        columns, also those that tell domains apart and are no feature.
    """
    if name not in SETS:
        raise ValueError(f"There is no data set {name!r}; there are {listed(SETS)}.")
    table = SETS[name]
    frame = table.read(data_home)
    label = frame[table.label]
    positive = table.positive
    target = label.str.strip() == positive if isinstance(positive, str) else label >= positive
    features = get_dummies(frame.drop(columns=[table.label, *table.left_out]), dtype=float)
    return Bunch(
        data=features.to_numpy(float),
        target=target.to_numpy(np.int64),
        feature_names=list(features.columns),
        frame=frame,
        DESCR=f"{table.title}, {table.file.url}, {table.file.licence}. {table.remark}",
    )
