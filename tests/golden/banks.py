"""Recorded answers as files: JSON, compressed, the same bytes for the same content."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def plain(value: Any) -> Any:
    """Return the value as JSON has it: lists, words for what is not finite, 12 digits."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float):
        return float(f"{value:.12g}") if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


#: Longer lists are recorded by their length, a few of their entries and, of numbers, their sum.
LONGEST = 24


def shortened(value: Any) -> Any:
    """Return plain values with long lists as length, sum and every so many-th entry."""
    if isinstance(value, dict):
        return {name: shortened(entry) for name, entry in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) <= LONGEST:
        return [shortened(entry) for entry in value]
    step = len(value) // 8
    summary = {"length": len(value), f"every {step}": [shortened(entry) for entry in value[::step]]}
    if all(isinstance(entry, int | float) for entry in value):
        summary["sum"] = math.fsum(value)
    return summary


def write(name: str, content: Any) -> Path:
    """Write a bank; 12 digits are more than any comparison asks for."""
    path = FOLDER / f"{name}.json.gz"
    text = json.dumps(shortened(plain(content)), separators=(",", ":"), sort_keys=True)
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        file.write(text.encode())
    return path


def read(name: str) -> Any:
    """Return the content of a bank."""
    return json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))
