"""Reports on synthetic predictions, for tests of their page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fragility import Costs, Report
from fragility.report.page_data import page_data

TWO_LABELS = ("well", "ill")


def predicted(
    n_models: int, n_classes: int, n: int = 300, seed: int = 0
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Codes of the true classes, and probabilities of every class by each model."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, n_classes, n)
    found = []
    for place in range(n_models):
        logits = rng.normal(size=(n, n_classes)) * (1.0 + 0.4 * place)
        logits[np.arange(n), true] += 1.8 + 0.3 * place
        odds = np.exp(1.6 * (logits - logits.max(axis=1, keepdims=True)))
        found.append(odds / odds.sum(axis=1, keepdims=True))
    return true, found


def example_report(
    names: tuple[str, ...] = ("plain", "robust"),
    *,
    labels: tuple[str, ...] = TWO_LABELS,
    group: str = "f",
    case: str = "row",
    costs: Costs | None = Costs(10.0, 1.0),  # noqa: B008
    **options: Any,
) -> Report:
    """A report on so many models and classes; its cases are of two groups and have names."""
    true, probabilities = predicted(len(names), len(labels))
    several = len(labels) > 2
    models = {name: p if several else p[:, 1] for name, p in zip(names, probabilities, strict=True)}
    return Report.from_predictions(
        np.array(labels, dtype=object)[true],
        models,
        labels=labels if several else None,
        pos_label=None if several else labels[1],
        groups=np.array([group, "m"], dtype=object)[np.arange(true.size) % 2],
        cases=[f"{case} {place}" for place in range(true.size)],
        n_worst=options.pop("n_worst", 3),
        costs=costs,
        **options,
    )


FOUR = ("plain", "robust", "trees", "neighbours")
HOSTILE = (
    "<script>alert('x')</script>",
    "\"'&quot;></td><img src=https://example.org/x onerror=alert(1)>",
    "\u202eشبكة عصبية</script><!--",
    "long " * 2000,
)
TWO_REPORT = example_report(FOUR)
MANY_REPORT = example_report(FOUR[:3], labels=("bird", "cat", "dog", "horse"))
TWO = page_data(TWO_REPORT)
BOTH = pytest.mark.parametrize("report", [TWO_REPORT, MANY_REPORT], ids=["two classes", "four"])
