"""Tasks of the guard: cases to train on, and others, after a shift or without one, that judge."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from experiments.real_data import UCI, real_data
from experiments.shifts import NATURAL, SHIFTS, TwoParts, two_parts

__all__ = ["SIZES", "TASKS", "Task", "cases", "sizes"]

#: Cases that train, at most; a task has a size if its source has half of it at least.
SIZES = (300, 1_200, 10_000)
#: Cases that judge, at most.
JUDGES = 5_000
_QUICK_CASES = 150
#: The set of heart failures is made of the hospitals' cases, and both wines are of one study.
_FAMILIES = {"heart": "hospitals", "red": "wine", "white": "wine"}


class Task(NamedTuple):
    """What a task is: its shift is "natural", "made" or "none".

    Tasks of one family have cases in common, or nearly so, and are not independent.
    """

    shift: str
    family: str


TASKS = {
    **{
        name: Task("made" if one.tilted else "natural", _FAMILIES.get(one.family, one.family))
        for name, one in (SHIFTS | NATURAL).items()
    },
    **{
        name: Task("none", _FAMILIES.get(name, name))
        for name in ("heart", *UCI, "red", "white", "adult", "bank")
    },
}


def sizes(name: str) -> list[int]:
    """Sizes of a task: the least, and those of which its source has half."""
    source = _both(name, 0, True).y.size
    return [size for size in SIZES if size == SIZES[0] or source >= size / 2]


def cases(name: str, size: int, seed: int, quick: bool) -> TwoParts:
    """Some cases of the source, and others that judge, both drawn by the seed."""
    data = _both(name, seed, quick)
    rng = np.random.default_rng([seed, 2])
    here, there = (
        rng.permutation(part.size)[: min(most, _QUICK_CASES) if quick else most]
        for part, most in ((data.y, size), (data.y_after, JUDGES))
    )
    return TwoParts(data.X[here], data.y[here], data.X_after[there], data.y_after[there], data.name)


def _both(name: str, seed: int, quick: bool) -> TwoParts:
    """Both parts of a shift, or random halves of a set."""
    if TASKS[name].shift != "none":
        return two_parts(name, seed, quick)
    X, y, source = real_data(name, quick)
    order = np.random.default_rng([seed, 1]).permutation(y.size)
    train, judge = np.split(order, [y.size // 2])
    return TwoParts(X[train], y[train], X[judge], y[judge], source)
