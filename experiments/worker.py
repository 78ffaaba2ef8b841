"""What runs in a worker: one unit. It imports little, since every worker imports it."""

from __future__ import annotations

import re
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from threadpoolctl import threadpool_limits

from experiments.experiment import Condition, RefusedError, Row
from experiments.journal import Unit

__all__ = ["Done", "plain", "work"]

_NUMBER = re.compile(r"\b\d[\d.,]*(e[-+]?\d+)?\b")


@dataclass(frozen=True)
class Done:
    """A unit with its rows and what it warned of, or with how it failed."""

    unit: Unit
    rows: list[Row]
    warned: Counter[str]
    failure: str = ""


def work(
    trial: Callable[[Condition, int, bool], Iterable[Row]], unit: Unit, seed: int, quick: bool
) -> Done:
    """Run one unit, with one thread."""
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            rows = [plain(row) for row in trial(unit.condition, seed, quick)]
            _check_rows(rows)
        except Exception as error:
            # Data that are not there: the loader says what to do.
            told = isinstance(error, RefusedError) or (
                isinstance(error, OSError) and error.errno is None
            )
            return Done(unit, [], Counter(), str(error) if told else traceback.format_exc())
    return Done(unit, rows, Counter(_said(w.category.__name__, str(w.message)) for w in caught))


def _said(kind: str, message: str) -> str:
    """A warning without its numbers, so that those of many trials count as one."""
    return f"{kind}: {_NUMBER.sub('…', ' '.join(message.split()))}"


def _check_rows(rows: Sequence[Row]) -> None:
    if not rows:
        raise ValueError("The trial returned no row; return one for each method.")
    if any("trial" in row for row in rows):
        raise ValueError("The runner adds the column 'trial': leave it out of the rows.")


def plain(values: Condition) -> Row:
    """NumPy's numbers as Python's, since only those read back the same everywhere."""
    return {name: _plain_value(name, value) for name, value in values.items()}


def _plain_value(name: str, value: object) -> str | int | float:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bool, np.bool_, Integral)):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise TypeError(f"{name!r} must be text or a number, not {type(value).__name__}: {value!r}.")
