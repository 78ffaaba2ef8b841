"""Values in nested JSON by dotted paths, such as ``sample.target`` and ``resps.0.1``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

#: What a path leads to where it leads nowhere; null is a value.
ABSENT: Final = object()
_PLACE = re.compile("0|[1-9][0-9]{0,8}")


def value_at(value: Any, path: str) -> Any:
    """What a path leads to, `ABSENT` if nowhere.

    Keys of objects and places in lists, from 0, are joined by dots. A key may have dots itself:
    the longest key that leads on is taken.

    Examples
    --------
    >>> row = {"sample": {"target": "A"}, "resps": [[-0.5, "no"]], "a.b": 1, "a": {"b": 2}}
    >>> value_at(row, "sample.target"), value_at(row, "resps.0.1"), value_at(row, "a.b")
    ('A', 'no', 1)
    >>> value_at(row, "sample.id") is ABSENT
    True
    """
    if isinstance(value, dict):
        if path in value:
            return value[path]
        end = path.rfind(".")
        while end >= 0:
            key = path[:end]
            if key in value:
                found = value_at(value[key], path[end + 1 :])
                if found is not ABSENT:
                    return found
            end = path.rfind(".", 0, end)
    elif isinstance(value, list):
        place, dot, rest = path.partition(".")
        if _PLACE.fullmatch(place) and int(place) < len(value):
            return value_at(value[int(place)], rest) if dot else value[int(place)]
    return ABSENT


def leaves(value: Any, before: str = "") -> Iterator[str]:
    """Paths of all single values in an object, in their order.

    Examples
    --------
    >>> list(leaves({"id": 1, "sample": {"target": "A", "choices": ["A", "B"]}}))
    ['id', 'sample.target', 'sample.choices.0', 'sample.choices.1']
    """
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in parts:
        if isinstance(part, dict | list):
            yield from leaves(part, f"{before}{key}.")
        else:
            yield f"{before}{key}"
