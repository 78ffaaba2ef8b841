"""Rows that engines must agree on: ties, saturated scores, one-class and empty files."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

#: Rows of the files: the second is empty, the third has one class.
ENDS = (0, 4_000, 4_000, 6_000, 12_000)

#: A report of these rows with groups, costs and a second reading.
ASKED: dict[str, Any] = {
    "label": "sick",
    "scores": ["p", "q"],
    "groups": "site",
    "costs": {"error_cost": 10.0, "review_cost": 1.0},
    "hold": 1000,
}


def columns(seed: int = 0) -> dict[str, Any]:
    """Labels, two scores with ties and saturation, weights, groups and names of cases."""
    rng = np.random.default_rng(seed)
    n = ENDS[-1]
    logit = 2.5 * rng.normal(size=n)
    label = (rng.random(n) < 1.0 / (1.0 + np.exp(-logit))).astype(np.int64)
    label[ENDS[2] : ENDS[3]] = 1
    first = np.round(1.0 / (1.0 + np.exp(-logit)), 3)
    first[rng.random(n) < 0.02] = 0.0
    first[rng.random(n) < 0.02] = 1.0
    second = 1.0 / (1.0 + np.exp(-logit - 0.6 * rng.normal(size=n)))
    return {
        "sick": label,
        "p": first,
        "q": second,
        "w": rng.integers(1, 4, n) / 2.0,
        "site": np.array(["a", "b", "c"])[rng.integers(0, 3, n)],
        "patient": np.array([f"patient {k}" for k in range(n)]),
    }


def write_parts(folder: Path, data: dict[str, Any]) -> Path:
    """The rows in files that engines read."""
    folder.mkdir(parents=True, exist_ok=True)
    for k, (start, stop) in enumerate(pairwise(ENDS)):
        part = {name: values[start:stop] for name, values in data.items()}
        pq.write_table(pa.table(part), folder / f"part-{k}.parquet")
    return folder


def write_hollow(path: Path, schema: Any) -> Path:
    """A Parquet file that says it has two rows, but has none: the reader gives no batch at all."""
    pq.write_table(schema.empty_table(), path)
    none, two = b"\x16\x00\x19", b"\x16\x04\x19"  # the number of rows, before their list
    content = path.read_bytes()
    assert content.count(none) == 1
    path.write_bytes(content.replace(none, two))
    return path


def wrong_parts() -> dict[str, tuple[dict[str, Any], str]]:
    """Parts that must be refused, and words of the message, by what is wrong with them."""
    y, p = pa.array([0, 1, 1]), pa.array([0.1, 0.5, 0.9])
    return {
        "null score": ({"sick": y, "p": pa.array([0.1, None, 0.9])}, "'p' has missing values"),
        "NaN": ({"sick": y, "p": pa.array([0.1, float("nan"), 0.9])}, "'p' has missing values"),
        "null label": ({"sick": pa.array([0, None, 1]), "p": p}, "'sick' has missing values"),
        "1.5": ({"sick": y, "p": pa.array([0.1, 1.5, 0.9])}, "from 0 to 1"),
        "third label": ({"sick": pa.array([0, 1, 7]), "p": p}, "7"),
    }
