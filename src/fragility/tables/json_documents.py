"""JSON that is not one object a line: what it is, and how to make lines of it."""

from __future__ import annotations

import json
from typing import Any

#: Bytes of a single JSON document that is read as a whole.
LARGEST = 1 << 26


class NotJsonError(ValueError):
    """Text that is not JSON; the message says where and why."""


def parsed(text: str) -> Any:
    """The value of a JSON text; a `NotJsonError` in words where there is none."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, " if error.lineno > 1 else ""
        near = text[max(error.pos - 10, 0) : error.pos + 20]
        raise NotJsonError(
            f"{error.msg} at {where}character {error.colno}, near {near!r}"
        ) from error
    except RecursionError as error:
        raise NotJsonError("lists or objects in it are nested too deeply") from error
    except ValueError as error:  # of numbers that are too long
        raise NotJsonError(f"it holds a number that is too long ({error})") from error


def kind_of(value: Any) -> str:
    """What JSON calls a value, with its article."""
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    kinds = {dict: "an object", list: "a list", str: "a text", type(None): "null"}
    return kinds[type(value)]


def one_document(text: str, name: str) -> str | None:
    """Why a text that begins with an object that is not all of its line is not JSON lines.

    None if it begins with nothing that can be read.
    """
    start = len(text) - len(text.lstrip())
    try:
        value, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    if rest := text[end:].strip():
        is_spread = "\n" in text[start:end]
        if not is_spread and rest[0] != "{":
            return None
        spread = "over several lines each" if is_spread else "several to a line"
        return (
            f"the objects are written {spread}; JSON lines have one object a line. "
            f"Write them so: jq -c . {name} > lines.jsonl"
        )
    return of_one_object(value, name)


def lists_of_objects(value: dict[str, Any]) -> list[str]:
    """Keys of an object that hold lists of objects."""
    return [
        key
        for key, part in value.items()
        if isinstance(part, list) and part and all(isinstance(item, dict) for item in part)
    ]


def of_one_object(value: dict[str, Any], name: str) -> str:
    """How to make lines of a document that is one object, perhaps with a list of cases in it."""
    lists = lists_of_objects(value)
    if not lists:
        return (
            "this is one JSON object over the whole file; JSON lines have one object a line, one "
            "for each case."
        )
    key = max(lists, key=lambda name: len(value[name]))
    field = f".{key}" if key.isascii() and key.isidentifier() else f".[{json.dumps(key)}]"
    return (
        f"this is one JSON object with a list of {len(value[key]):,} objects in {key!r}; JSON "
        f"lines have one object a line, one for each case. Write them so: jq -c '{field}[]' "
        f"{name} > lines.jsonl"
    )
