"""Functions beside the report, asked on a few drawn sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from . import ask
from .more_sets import COSTS, THREE_COSTS
from .sets import binary, several


def questions() -> Iterator[tuple[str, Any]]:
    """Yield the name of each question and its answer."""
    for name, y, scores, weight in drawn():
        one, other = scores.values()
        for figure, value in ask.metrics(y, one, weight).items():
            yield f"{name}, {figure}", value
        yield f"{name}, comparison of costs", ask.costs_compared(y, one, other, COSTS, weight)
        yield f"{name}, calibrated", ask.calibrated(y, one)[:20]
    y, scores, rng = binary(71, 500)
    for rule in ("auto", "tuned", "expected_cost", "confidence"):
        yield f"policy {rule}", ask.policy(y, scores["m0"], {**COSTS, "rule": rule})
    yield "decisions", ask.decisions(y, scores["m0"], COSTS)[:40]
    yield "deferral curve", ask.deferral(y, scores["m0"], COSTS)
    y3, scores3, _ = several(72, 400, 3)
    yield "policy, 3 classes", ask.policy(y3, scores3["m0"], THREE_COSTS)
    yield "decisions, 3 classes", ask.decisions(y3, scores3["m0"], THREE_COSTS)[:40]
    columns = {
        "age": np.round(rng.uniform(20, 90, 500)),
        "site": rng.choice(["north", "south", "west"], 500),
    }
    wrong = (columns["age"] > 70) & (columns["site"] == "north")
    bold = np.where(wrong, 1 - scores["m0"], scores["m0"])
    yield "slices", ask.slices(columns, y, bold)
    yield "plan for a width", ask.plan(y, scores, {"width": 0.05})
    yield "plan for a difference", ask.plan(y, scores, {"difference": 0.02})
    yield "alarm", ask.alarm([0, 1, 0, 2, 6, 9], [40, 50, 40, 60, 50, 60], 0.03)


def drawn() -> Iterator[tuple[str, Any, dict[str, Any], Any]]:
    """Yield name, labels, scores of two models and weights of each set."""
    for seed, n, shift in ((81, 60, 0.0), (82, 400, 0.0), (83, 3000, -3.0)):
        y, scores, rng = binary(seed, n, shift=shift)
        yield f"{n} cases", y, scores, None
        yield f"{n} cases, weights", y, scores, rng.lognormal(0, 1, n)
    y, scores, _ = binary(84, 500)
    yield "two digits", y, {name: np.round(p, 2) for name, p in scores.items()}, None
