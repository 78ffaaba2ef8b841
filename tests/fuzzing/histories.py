"""Histories: whatever is changed in one, the alarm is that of its numbers, or there is none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np

from . import baselines

RATE = 0.02


def corpus() -> list[bytes]:
    """A good and a bad history, as the command writes them."""
    return [_history([9, 11, 8, 7]), _history([9, 11, 30, 44])]


def _history(errors: list[int]) -> bytes:
    lines = []
    for week, wrong in enumerate(errors, start=1):
        figures = {"fragility_index": {"value": 0.1, "interval": [0.05, 0.2]}}
        model = {
            "name": "m", "n": 900, "decided_alone": 500, "errors": wrong, "counts": "exact",
            "rule": {"kind": "confident", "level": 0.9}, "figures": figures, "passed": True,
        }  # fmt: skip
        record = {
            "format": "fragility history", "version": 1, "date": f"2026-01-0{week}T00:00:00Z",
            "file": "week.csv", "sha256": f"{week:064x}", "fragility_version": "1",
            "confidence": 0.95, "models": [model],
        }  # fmt: skip
        lines.append(json.dumps(record).encode() + b"\n")
    return b"".join(lines)


def mutations(data: bytes, rng: np.random.Generator) -> Iterator[bytes]:
    """Lines in another order, twice, left out, or with a mutation in one of them."""
    while True:
        lines = data.splitlines(keepends=True)
        place = int(rng.integers(len(lines)))
        kind = rng.integers(6)
        if kind == 0:
            rng.shuffle(lines)
        elif kind == 1:
            lines.insert(int(rng.integers(len(lines) + 1)), lines[place])
        elif kind == 2:
            del lines[place]
        else:
            lines[place] = next(baselines.mutations(lines[place].rstrip(), rng)) + b"\n"
        yield b"".join(lines)


def check(data: bytes) -> bool:
    """Read a history; whether it was accepted. AssertionError: a broken promise."""
    import os
    import tempfile

    from fragility.report.history import histories
    from fragility.report.records import read_history

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "h.jsonl")
        with open(path, "wb") as stream:
            stream.write(data)
        try:
            found = histories(read_history(path), max_error_rate=RATE)
        except ValueError as error:
            said = str(error)
            assert len(said) < 1000, f"a sentence of {len(said)} letters"
            assert "\n" not in said, said
            return False
    expected = _counted(data)
    assert [part.name for part in found] == list(expected)
    for part in found:
        assert part.alarm.errors.tolist() == [errors for errors, _ in expected[part.name]]
        assert part.alarm.decided.tolist() == [decided for _, decided in expected[part.name]]
        head, rows = part.rows()
        assert all(len(row) == len(head) for row in rows)
        assert all(part.sentences)
    return True


def _counted(data: bytes) -> dict[str, list[tuple[float, float]]]:
    """Errors and cases decided alone by model, in order of date, read literally."""
    records = [json.loads(line) for line in data.decode("utf-8-sig").split("\n") if line.strip()]

    def date(record):
        made = datetime.fromisoformat(record["date"])
        return made if made.tzinfo else made.replace(tzinfo=UTC)

    found: dict[str, list[tuple[float, float]]] = {}
    seen = set()
    for record in sorted(records, key=date):
        for model in record["models"]:
            own = found.setdefault(model["name"], [])
            if (model["name"], record["sha256"]) not in seen:
                seen.add((model["name"], record["sha256"]))
                assert 0 <= model["errors"] <= model["decided_alone"] <= model["n"]
                own.append((model["errors"], model["decided_alone"]))
    return found
