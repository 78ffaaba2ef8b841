"""Names: the nearest to a mistyped one, short ones, ones that differ, where they are first seen."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

#: Characters that command a terminal, reverse the writing direction, or cannot be encoded.
_UNSEEN = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")


def nearest(name: str, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The name that is most alike, in upper or lower case; None if none is."""
    by_folded = {known.casefold(): known for known in names}
    close = get_close_matches(name.casefold(), by_folded, n=1, cutoff=cutoff)
    return by_folded[close[0]] if close else None


def did_you_mean(names: Iterable[Any], known: Collection[str], cutoff: float = 0.6) -> str:
    """For a message: which known names are most like those that are not known; may be empty."""
    near = ((name, nearest(str(name), known, cutoff)) for name in names)
    hints = [f"{found!r} for {name!r}" for name, found in near if found is not None]
    return f" Did you mean {' and '.join(hints)}?" if hints else ""


def shortened(name: Any, longest: int) -> str:
    """A name with its middle left out if it is long: long names often differ at their end only."""
    text = str(name)
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]}…{text[1 - half :]}"


def seen(name: Any) -> str:
    """The whole name on one line, with invisible characters escaped."""
    return _UNSEEN.sub(_escaped, " ".join(str(name).split())) or repr(name)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def shown(value: Any, longest: int = 80) -> str:
    """A value for a message; a long one is cut, and a very long integer cannot be written out."""
    if isinstance(value, int) and value.bit_length() > 1024:
        return f"an integer of {value.bit_length()} bits"
    try:
        return shortened(repr(value), longest)
    except ValueError:  # such an integer, inside something else
        return f"a value of type {type(value).__name__}"


def told_apart(name: str, taken: Container[str]) -> str:
    """The name, with a number from 2 on if it is taken."""
    number, numbered = 2, name
    while numbered in taken:
        number, numbered = number + 1, f"{name} {number}"
    return numbered


def seen_first(what: str, places: Mapping[Any, str]) -> str:
    """A sentence that tells in which of several files or parts each value is first seen."""
    told = ", ".join(f"{value!r} in {place}" for value, place in list(places.items())[:5])
    return f"The {what} are first seen: {told}."
