"""Compare plain values with recorded ones, and say where they differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Path = tuple[str | int, ...]
Tolerance = float | Callable[[Path], float]


def differences(expected: Any, actual: Any, tolerance: Tolerance, path: Path = ()) -> list[str]:
    """Return a line for each place where two nested values differ.

    Parameters
    ----------
    expected, actual : nested mappings, sequences and single values
        Numbers may differ by `tolerance` times the larger of 1 and the expected size. NaN equals
        NaN, and the words "inf", "-inf" and "nan" equal the numbers.
    tolerance : float or function
        One number, or a function of the path that returns it.
    path : tuple, optional
        Where both values stand.
    """
    return list(_differences(expected, actual, tolerance, path))


def _differences(expected: Any, actual: Any, tolerance: Tolerance, path: Path) -> Iterator[str]:
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for name in dict.fromkeys([*expected, *actual]):
            if name not in actual or name not in expected:
                yield f"{_dotted((*path, name))}: {'missing' if name in expected else 'new'}"
            else:
                yield from _differences(expected[name], actual[name], tolerance, (*path, name))
    elif _is_list(expected) and _is_list(actual):
        if len(expected) != len(actual):
            yield f"{_dotted(path)}: {len(expected)} entries expected, got {len(actual)}"
        for place, pair in enumerate(zip(expected, actual, strict=False)):
            yield from _differences(*pair, tolerance, (*path, place))
    elif not _equal(expected, actual, tolerance(path) if callable(tolerance) else tolerance):
        yield f"{_dotted(path)}: expected {expected!r}, got {actual!r}"


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _equal(expected: Any, actual: Any, tolerance: float) -> bool:
    one, other = _as_number(expected), _as_number(actual)
    if one is None or other is None:
        return bool(expected == actual)
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return one == other or abs(one - other) <= tolerance * max(1.0, abs(one))


def _as_number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float) or value in ("inf", "-inf", "nan"):
        return float(value)
    return None


def _dotted(path: Path) -> str:
    return ".".join(map(str, path))
