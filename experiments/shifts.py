"""Shifts: data sets in two parts, one to choose a policy on and another one to pay on."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import rankdata
from sklearn.datasets import make_classification
from sklearn.utils import Bunch

from experiments.baselines.losses import Floats
from experiments.data import load_shift, load_uci
from experiments.data.shift import SETS
from fragility.datasets import load_heart

__all__ = ["NATURAL", "SHIFTS", "Shift", "TwoParts", "lacking", "two_parts"]

#: How steeply the chance to be in the second part rises with the rank of a feature.
_TILT = 3.0


class TwoParts(NamedTuple):
    """Cases before and after a shift; the name is "stand-in for ..." if they are not real."""

    X: Floats
    y: Floats
    X_after: Floats
    y_after: Floats
    name: str


@dataclass(frozen=True)
class Shift:
    """Cases of one kind, then of another.

    Attributes
    ----------
    family : str
        The data; shifts of one family are not independent.
    before, after : str
        Names of the data sets.
    parts : callable, optional
        Takes the table of a single data set, returns which rows are before and which after.
    tilted : str
        Name of a feature of a single data set: the larger it is, the rather a row is after. Rows
        are dealt by chance.
    """

    family: str
    before: str
    after: str = ""
    parts: Callable[[Any], tuple[Any, Any]] | None = None
    tilted: str = ""

    def cases(self, seed: int, home: str | None) -> TwoParts:
        """The cases of both parts; the seed deals those of a tilted set."""
        first = _loaded(self.before, home)
        if self.after:
            second = _loaded(self.after, home)
            return TwoParts(first.data, first.target, second.data, second.target, self.before)
        if self.parts is not None:
            before, after = (np.asarray(rows) for rows in self.parts(first.frame))
        else:
            values = first.data[:, list(first.feature_names).index(self.tilted)]
            rank = 2.0 * rankdata(values) / (values.size + 1.0) - 1.0
            after = np.random.default_rng([seed, 1]).random(rank.size) < expit(_TILT * rank)
            before = ~after
        X, y = first.data, first.target
        return TwoParts(X[before], y[before], X[after], y[after], self.before)


@lru_cache(maxsize=8)
def _loaded(name: str, home: str | None) -> Bunch:
    if name == "heart":
        return load_heart(data_home=home)
    if name in ("diabetes", "german", "ilpd"):
        return load_uci(name, data_home=home)
    return load_shift(name, data_home=home)


def _is(column: str, value: str) -> Callable[[Any], tuple[Any, Any]]:
    """Rows with a value, and all others."""
    return lambda frame: (frame[column] == value, frame[column] != value)


def _swapped(parts: Callable[[Any], tuple[Any, Any]]) -> Callable[[Any], tuple[Any, Any]]:
    return lambda frame: parts(frame)[::-1]


def _private(frame: Any) -> tuple[Any, Any]:
    return frame["workclass"] == "Private", frame["workclass"].str.startswith("Self-")


def _young(frame: Any) -> tuple[Any, Any]:
    return frame["age"] < 35, frame["age"] >= 50


def _early(frame: Any) -> tuple[Any, Any]:
    """The first 55 % of the rows against the last 25 %."""
    place = np.arange(len(frame)) / len(frame)
    return place < 0.55, place >= 0.75


_US = _is("native.country", "United-States")

SHIFTS = {
    **{
        f"{a} to {b}": Shift("hospitals", a, b)
        for a in ("cleveland", "hungarian")
        for b in ("cleveland", "hungarian", "switzerland", "va")
        if a != b
    },
    "red to white": Shift("wine", "red", "white"),
    "white to red": Shift("wine", "white", "red"),
    "adult: United States to others": Shift("adult", "adult", parts=_US),
    "adult: others to United States": Shift("adult", "adult", parts=_swapped(_US)),
    "adult: private to self-employed": Shift("adult", "adult", parts=_private),
    "adult: self-employed to private": Shift("adult", "adult", parts=_swapped(_private)),
    "adult: men to women": Shift("adult", "adult", parts=_is("sex", "Male")),
    "adult: under 35 to 50 and more": Shift("adult", "adult", parts=_young),
    "bank: early to late": Shift("bank", "bank", parts=_early),
    "bank: late to early": Shift("bank", "bank", parts=_swapped(_early)),
    "bank: under 35 to 50 and more": Shift("bank", "bank", parts=_young),
    "diabetes, by age": Shift("diabetes", "diabetes", tilted="age"),
    "diabetes, by bmi": Shift("diabetes", "diabetes", tilted="bmi"),
    "german, by age": Shift("german", "german", tilted="age"),
    "german, by amount": Shift("german", "german", tilted="amount"),
    "ilpd, by age": Shift("ilpd", "ilpd", tilted="age"),
    "heart, by age": Shift("heart", "heart", tilted="Age"),
    "heart, by maximal heart rate": Shift("heart", "heart", tilted="MaxHR"),
}


#: Shifts that nobody made, also the ways back that `SHIFTS` leaves out.
NATURAL = {
    **{name: shift for name, shift in SHIFTS.items() if not shift.tilted},
    "adult: women to men": Shift("adult", "adult", parts=_is("sex", "Female")),
    "adult: 50 and more to under 35": Shift("adult", "adult", parts=_swapped(_young)),
    "bank: 50 and more to under 35": Shift("bank", "bank", parts=_swapped(_young)),
}


def lacking() -> str:
    """Why natural shifts cannot be run, as a sentence; nothing if they can."""
    home = os.environ.get("FRAGILITY_DATA")
    absent = []
    for table in SETS.values():
        try:
            table.read(home)
        except FileNotFoundError:
            absent.append(table.file.name)
    if not absent:
        return ""
    return (
        f"The data of natural shifts are not there ({', '.join(absent)}), and are not downloaded: "
        "put them into the folder shift of the folder that the environment variable "
        "FRAGILITY_DATA names."
    )


def two_parts(name: str, seed: int, quick: bool) -> TwoParts:
    """The cases of a shift by its name.

    In a quick run, what is not in the folder that ``FRAGILITY_DATA`` names is replaced by random
    data.
    """
    home = os.environ.get("FRAGILITY_DATA")
    found = SHIFTS.get(name) or NATURAL[name]
    if not quick:
        return found.cases(seed, None)
    try:
        if home is None:
            raise FileNotFoundError
        return found.cases(seed, home)
    except FileNotFoundError:
        return _stand_in(name)


def _stand_in(name: str) -> TwoParts:
    X, y = make_classification(2_000, 8, n_informative=6, flip_y=0.1, random_state=0)
    after = X[:, 0] > 0.0
    return TwoParts(X[~after], y[~after], X[after], y[after], f"stand-in for {name}")
