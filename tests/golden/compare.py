"""Compare nested plain values and list every difference by its path.

The banks of this folder are plain JSON: mappings, lists, texts, truth values, None and numbers, of
which NaN and infinities are stored as texts (`plain`). Two numbers agree if

    |actual - expected| <= max(relative * |expected|, absolute)

and a list of numbers compared `by_norm` agrees if the norm of the difference does.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True)
class Tolerance:
    """How far a number may be from the recorded one."""

    relative: float
    absolute: float = 0.0
    by_norm: bool = False

    def allows(self, expected: Any, actual: Any) -> bool:
        """Return True if two finite numbers, or two arrays of them, agree."""
        distance = float(np.linalg.norm(np.subtract(actual, expected)))
        size = float(np.linalg.norm(expected))
        return distance <= max(self.relative * size, self.absolute)


EXACT = Tolerance(0.0)


def relative_above_one(size: float) -> Tolerance:
    """Return the tolerance that is absolute for numbers below one and relative above."""
    return Tolerance(size, size)


def differences(
    expected: Any, actual: Any, tolerance: Tolerance | Mapping[str, Tolerance] = EXACT
) -> list[str]:
    """Return a line for every difference between two nested plain values; none if they agree.

    Parameters
    ----------
    expected, actual : nested plain values
    tolerance : Tolerance or mapping of names to Tolerance
        One tolerance for every number, or one for each key: the innermost key on the path of a
        number that has a tolerance decides. The key "" is for all others; without it they must be
        equal.

    Notes
    -----
    NaN equals NaN. A missing or an additional key is a difference, and so is another length, type
    or sign of an infinity.
    """
    tolerances = {"": tolerance} if isinstance(tolerance, Tolerance) else dict(tolerance)
    return list(_differences(expected, actual, tolerances, tolerances.get("", EXACT), ""))


def _differences(
    expected: Any,
    actual: Any,
    tolerances: Mapping[str, Tolerance],
    inherited: Tolerance,
    path: str,
) -> Iterator[str]:
    where = path or "value"
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            below = f"{path}.{key}" if path else str(key)
            if key not in actual:
                yield f"{below}: missing, expected {_shown(expected[key])}"
            elif key not in expected:
                yield f"{below}: not expected, got {_shown(actual[key])}"
            else:
                inner = tolerances.get(key, inherited)
                yield from _differences(expected[key], actual[key], tolerances, inner, below)
    elif isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        if len(expected) != len(actual):
            yield f"{where}: expected {len(expected)} entries, got {len(actual)}"
        elif inherited.by_norm:
            yield from _difference_by_norm(expected, actual, inherited, where)
        else:
            for i, pair in enumerate(zip(expected, actual, strict=True)):
                yield from _differences(*pair, tolerances, inherited, f"{path}[{i}]")
    elif _is_number(expected) and _is_number(actual):
        a, b = _number(expected), _number(actual)
        finite = math.isfinite(a) and math.isfinite(b)
        equal = a == b or (math.isnan(a) and math.isnan(b))
        if not (equal or (finite and inherited.allows(a, b))):
            apart = f", {abs(a - b):.2g} apart" if finite else ""
            yield f"{where}: expected {a!r}, got {b!r}{apart}"
    elif type(expected) is not type(actual) or expected != actual:
        yield f"{where}: expected {_shown(expected)}, got {_shown(actual)}"


def _difference_by_norm(
    expected: Any, actual: Any, tolerance: Tolerance, where: str
) -> Iterator[str]:
    """Compare two lists of numbers, nested or not, as one vector each."""
    a, b = (np.vectorize(_number, otypes=[float])(values) for values in (expected, actual))
    if a.shape != b.shape:
        yield f"{where}: expected the shape {a.shape}, got {b.shape}"
        return
    finite = np.isfinite(a) & np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        yield f"{where}: expected {_shown(expected)}, got {_shown(actual)}"
    elif not tolerance.allows(a[finite], b[finite]):
        apart, size = np.linalg.norm(a[finite] - b[finite]), np.linalg.norm(a[finite])
        yield f"{where}: {apart:.3g} apart by norm, of a norm of {size:.6g}"


def plain(value: Any) -> Any:
    """Return a value as plain JSON: arrays as lists, NaN and infinities as texts."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def read_bank(path: Path) -> Any:
    """Return what a bank holds."""
    return json.loads(gzip.decompress(path.read_bytes()))


def write_bank(path: Path, content: Any) -> None:
    """Write a bank; the same content makes the same bytes."""
    text = json.dumps(plain(content), sort_keys=True, separators=(",", ":"), allow_nan=False)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return value in NOT_FINITE
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _number(value: Any) -> float:
    return NOT_FINITE[value] if isinstance(value, str) else float(value)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."
