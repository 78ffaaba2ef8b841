"""Tables of rows in text files, of which one column is the label."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan
from typing import Literal

import numpy as np

from fragility._typing import Floats, Integers
from fragility.datasets.files import DataFile


@dataclass(frozen=True)
class TextTable:
    """One file of rows.

    Attributes
    ----------
    title : str
    file : DataFile
    columns : tuple of str
        Every column of the file, in order.
    label, positive : str
        Name of the label's column, and the value there that becomes class 1.
    target_names : tuple of str
        Meaning of class 0 and of class 1.
    text : mapping of str to str or None
        Text columns: they become an indicator of the value, or, without one, of every level.
    left_out : tuple of str
        Columns that are neither a feature nor the label.
    separator : str or None
        Between columns; None for any white space.
    header : bool
    missing : str or None
        How a value that is not known is written.
    remark : str
        What to know about the data.
    abbreviation : str
        As in the paper's table.
    """

    title: str
    file: DataFile
    columns: tuple[str, ...]
    label: str
    positive: str
    target_names: tuple[str, str]
    text: Mapping[str, str | None] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    separator: Literal[","] | None = ","
    header: bool = False
    missing: str | None = None
    remark: str = ""
    abbreviation: str = ""

    @property
    def description(self) -> str:
        """What it is, whence it comes, and what to know about it."""
        return f"{self.title}, {self.file.url}, {self.file.licence}. {self.remark}".rstrip()

    def read(self, data_home: str | os.PathLike[str] | None) -> dict[str, list[str]]:
        """Values of each column, as they are written."""
        lines = self.file.read(data_home).decode("utf-8-sig").splitlines()
        lines = [line for line in lines if line.strip()]
        rows = csv.reader(lines) if self.separator else map(str.split, lines)
        values = zip(*list(rows)[self.header :], strict=True)
        return {
            name: [value.strip() for value in column]
            for name, column in zip(self.columns, values, strict=True)
        }

    def features(self, columns: dict[str, list[str]]) -> tuple[list[str], Floats]:
        """Names and values of the features, NaN where a value is not known."""
        found: dict[str, list[float]] = {}
        for name, values in columns.items():
            if name == self.label or name in self.left_out:
                continue
            if name not in self.text:
                found[name] = [nan if v == self.missing else float(v) for v in values]
            elif (one := self.text[name]) is not None:
                found[name] = [v == one for v in values]
            else:
                for level in sorted(set(values)):
                    found[f"{name}={level}"] = [v == level for v in values]
        return list(found), np.array(list(found.values()), dtype=float).T.copy()

    def target(self, columns: dict[str, list[str]]) -> Integers:
        """1 where a row is of the positive class, else 0."""
        return np.array([int(value == self.positive) for value in columns[self.label]])


def names(text: str) -> tuple[str, ...]:
    """Names with commas between them."""
    return tuple(text.split(", "))
