"""Baselines: whatever is changed in one, the gate gives the verdict of its numbers, or none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

VALUES = [
    None, True, False, 0, 1, -1, 0.5, 1e308, -0.0, 10**400, -(10**400), "", "x", "Infinity",
    "-Infinity", "NaN", "0.5", [], {}, [[]], [0.1, 0.9], {"value": 0.5}, "\ud800", "\0",
]  # fmt: skip
TEXTS = ["NaN", "Infinity", "-Infinity", "1e400", "1e-400", "[" * 3000, "9" * 5000, "\ufeff", ","]


@lru_cache(1)
def _report():
    """A report on a bad model, which few honest baselines would let pass."""
    from fragility import Report

    rng = np.random.default_rng(1)
    p = rng.random(60)
    y = (rng.random(60) < 0.3 + 0.4 * p).astype(int)
    return Report.from_predictions(
        y, {"a": p, "b": p**2}, costs={"error_cost": 5.0}, calibrate=False
    )


def corpus() -> list[bytes]:
    """Baselines as the command writes them: one that passes, and one whose figures are better."""
    made = _report().to_json().encode()
    content = json.loads(made)
    for model in content["models"]:
        for figure in model["raw"]["figures"].values():
            if isinstance(figure["value"], float):
                figure["value"] *= 0.9
    return [made, json.dumps(content).encode()]


def mutations(data: bytes, rng: np.random.Generator) -> Iterator[bytes]:
    """Values replaced, removed, doubled and renamed anywhere in the tree; bytes flipped or cut."""
    while True:
        kind = rng.integers(8)
        if kind < 5:
            content = json.loads(data)
            for _ in range(int(rng.integers(1, 4))):
                _change(content, rng)
            yield json.dumps(content).encode("utf-8", "surrogatepass")
        elif kind == 5:
            text = data.decode()
            place = int(rng.integers(len(text)))
            yield (text[:place] + str(rng.choice(TEXTS)) + text[place:]).encode()
        elif kind == 6:
            changed = bytearray(data)
            for place in rng.integers(len(changed), size=int(rng.integers(1, 6))):
                changed[place] = rng.integers(256)
            yield bytes(changed)
        else:
            start, stop = np.sort(rng.integers(len(data), size=2))
            yield data[:start] + data[stop:]


def _change(content, rng):
    """Change one value of a tree in place; figures and models twice as often as the rest."""
    places = []

    def walk(node, weight):
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in list(items):
            own = weight * (2 if key in ("models", "raw", "figures", "value", "classes") else 1)
            places.append((own, node, key))
            if isinstance(value, (dict, list)):
                walk(value, own)

    walk(content, 1)
    if not places:
        return
    weights = np.array([weight for weight, _, _ in places], dtype=float)
    _, node, key = places[int(rng.choice(len(places), p=weights / weights.sum()))]
    action = rng.integers(4)
    if action == 0:
        del node[key]
    elif action == 1 and isinstance(node, dict):
        node[key + "x"] = node.pop(key)
    elif action == 1:
        node.append(node[key])
    elif action == 2 and isinstance(node[key], float):
        node[key] *= float(rng.choice([-1.0, 0.0, 0.5, 2.0, 1e300]))
    else:
        node[key] = VALUES[int(rng.integers(len(VALUES)))]


def check(data: bytes) -> bool:
    """Hold the report to a baseline; whether it was accepted. AssertionError: a broken promise."""
    import os
    import tempfile

    from fragility.report.baselines import read_baseline
    from fragility.report.gates import Limits, check_gates

    report = _report()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "old.json")
        with open(path, "wb") as stream:
            stream.write(data)
        try:
            baseline = read_baseline(path)
            checks = check_gates(report, Limits(), baseline)
            assert all(isinstance(part, str) for part in baseline.not_held(report))
            assert isinstance(baseline.warning(report), str)
        except ValueError as error:
            said = str(error)
            assert len(said) < 1000, f"a sentence of {len(said)} letters"
            assert "\n" not in said, said
            return False
    expected = _verdict(json.loads(data), report)
    assert all(check.passed for check in checks) == expected, f"expected {expected}"
    return True


def _verdict(content, report):
    """Whether the report passes, read literally; AssertionError where no verdict may be given."""
    first, second = (part["label"] for part in content["classes"])
    assert first in (0, "0", "0.0", "false", "False")  # a number is the same however written
    assert second in (1, "1", "1.0", "true", "True")
    assert content["positive"] in (1, "1", "1.0", "true", "True")
    assert content["weighted"] is False
    old = {model["name"]: model["raw"]["figures"] for model in content["models"]}
    assert len(old) == len(content["models"])
    costs = content.get("costs")
    own = {"error_cost": 5.0, "review_cost": 1.0, "capacity": None, "reviewer_error": 0.0}
    assert costs in (None, own)
    names = ["fragility_index", "ratio", "log_loss", "auc", *(["cost"] if costs else [])]
    passed = True
    for model in report.models:
        for name in names:
            figure = old[model.name][name]
            assert name != "cost" or figure["estimator"] == "cross_fitted"
            value, bounds = figure.get("value"), figure.get("bounds")
            if bounds is not None:
                value = bounds[0] if name == "auc" else bounds[1]
            value = float("inf") if value == "Infinity" else value
            assert type(value) in (int, float), value
            assert 0 <= value <= (1 if name == "auc" else float("inf"))
            found, room = model.raw.figures[name].value, 1e-9 * value
            passed &= found >= value - room if name == "auc" else found <= value + room
    return bool(passed)
