"""Rows of JSON lines as Python's own json module and a literal search read them."""

from __future__ import annotations

import json


def rows(text):
    """Objects of the lines that are not blank."""
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def every_path(value):
    """All paths in a value with what they lead to, written out; of equal ones the longest keys."""
    found = []
    if isinstance(value, dict):
        parts = [(key, part) for key, part in value.items()]
    elif isinstance(value, list):
        parts = [(str(place), part) for place, part in enumerate(value)]
    else:
        parts = []
    for key, part in parts:
        found.append(((key,), part))
        found += [((key, *path), inner) for path, inner in every_path(part)]
    return found


def value_at(value, dotted):
    """What a dotted path leads to, in a list; empty if nowhere."""
    fits = [(path, inner) for path, inner in every_path(value) if ".".join(path) == dotted]
    fits.sort(key=lambda fit: [len(key) for key in fit[0]], reverse=True)
    return [inner for _, inner in fits[:1]]
