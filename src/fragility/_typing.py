"""Types that modules share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
#: The classes, in the order of the columns of a score; None: those that the labels hold, sorted.
Labels = Sequence[Any] | NDArray[Any] | None
#: An intercept that is free, one that is the coefficient of a constant feature, or none.
Intercept = bool | Literal["priced"]


class Interval(NamedTuple):
    """An interval: a confidence interval of a figure, or the bounds of an exact one."""

    low: float
    high: float
