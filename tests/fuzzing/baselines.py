"""Baselines: whatever is changed in one, the gate gives the verdict of its numbers, or none."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from scipy import stats

VALUES = [
    None, True, False, 0, 1, -1, 0.5, 1e308, -0.0, 10**400, -(10**400), "", "x", "Infinity",
    "-Infinity", "NaN", "0.5", [], {}, [[]], [0.1, 0.9], {"value": 0.5}, "\ud800", "\0",
]  # fmt: skip
TEXTS = ["NaN", "Infinity", "-Infinity", "1e400", "1e-400", "[" * 3000, "9" * 5000, "\ufeff", ","]


@lru_cache(1)
def _report():
    """A report on two models, one of them bad, which few honest baselines would let pass."""
    from fragility import Report

    rng = np.random.default_rng(1)
    p = rng.random(60)
    y = (rng.random(60) < 0.3 + 0.4 * p).astype(int)
    return Report.from_predictions(
        y, {"a": p, "b": p**2}, costs={"error_cost": 5.0}, calibrate=False
    )


def corpus() -> list[bytes]:
    """Baselines as the command writes them: one that passes, and one whose figures are better."""
    from fragility.report.baseline_files import baseline_text
    from fragility.report.baselines import Baseline

    made = baseline_text(Baseline.of(_report())).encode()
    content = json.loads(made)
    for model in content["models"]:
        for figure in model["raw"].values():
            figure["value"] *= 0.4
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
            own = weight * (
                2
                if key in ("models", "raw", "log_loss", "value", "standard_error", "classes")
                else 1
            )
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

    from fragility.report.baseline_files import read_baseline
    from fragility.report.gates import check_gates, not_held

    report = _report()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "old.json")
        with open(path, "wb") as stream:
            stream.write(data)
        try:
            baseline = read_baseline(path)
            checks = check_gates(report, baseline=baseline, tolerance=0.0)
            assert all(isinstance(part, str) for part in not_held(report, baseline=baseline))
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
    assert content["kind"] == "fragility baseline"
    assert content["format"] == 2
    first, second = content["classes"]
    assert first in (0, "0", "0.0", "false", "False")  # a number is the same however written
    assert second in (1, "1", "1.0", "true", "True")
    assert content["positive"] in (1, "1", "1.0", "true", "True")
    assert content["weighted"] is False
    assert content["answers"] is False
    old = {model["name"]: model for model in content["models"]}
    assert len(old) == len(content["models"])
    costs = content.get("costs")
    own = {"error_cost": 5.0, "review_cost": 1.0, "capacity": None, "reviewer_error": 0.0}
    assert costs in (None, own)
    names = ["log_loss", *(["cost"] if costs else [])]
    pairs = []
    for model in report.models:
        there = old[model.name] if len(old) > 1 or model.name in old else next(iter(old.values()))
        for name in names:
            figure = there["raw"][name]
            assert name != "cost" or there["cost_estimator"] == "cross_fitted"
            value, error = (
                float("inf") if part == "Infinity" else part
                for part in (figure.get("value"), figure.get("standard_error"))
            )
            assert type(value) in (int, float), value
            assert 0 <= value <= (36.05 if name == "log_loss" else 1.8e308)
            found = model.raw.figures[name]
            spread = found.standard_error
            if name == "cost":  # its interval is Student's; thresholds are shared
                quantile = stats.t.ppf(0.975, 59)
                spread = 1.2 * (found.interval.high - found.value) / quantile
            known = error is not None and math.hypot(spread, float(error)) < float("inf")
            pairs.append((found.value, float(value), spread, float(error) if known else None))
    tested = sum(error is not None for *_, error in pairs)
    passed = True
    for new, value, spread, error in pairs:
        room = 1e-9 * value
        if error is None:
            continue  # not held where it is worse
        z = float(stats.norm.ppf(1.0 - 0.05 / tested))
        if value > 0:
            reach = math.hypot(spread / new, error / value)
            limit = value * math.exp(min(z * reach, 700.0))
        else:
            limit = z * math.hypot(spread, error)
        passed &= new <= limit + room
    return bool(passed)
