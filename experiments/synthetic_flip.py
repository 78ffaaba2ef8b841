"""More or fewer wrong labels among 50 training samples of two overlapping classes."""

from __future__ import annotations

from collections.abc import Iterator

from pandas import DataFrame

from experiments.experiment import Condition, Experiment, Report, Row
from experiments.synthetic import RATIOS, SMALL, TEST, flip_conditions, linear_rows
from experiments.synthetic_claims import flip_claims
from experiments.synthetic_report import report_along


def trial(condition: Condition, seed: int, quick: bool) -> Iterator[Row]:
    """ERM, and KL and Wasserstein at each target."""
    return linear_rows(condition, 2, seed, quick, RATIOS)


def report(results: DataFrame) -> Report:
    """All figures against the share of wrong labels."""
    text = f"Two overlapping classes, {SMALL} training samples, {TEST} clean test samples."
    return report_along(results, "flip", "rate of wrong labels", text)


EXPERIMENT = Experiment(
    name="synthetic_flip",
    title="drawn data of two classes: the rate of wrong labels",
    trials=100,
    quick_trials=2,
    conditions=flip_conditions,
    trial=trial,
    report=report,
    claims=flip_claims("Appendix C.2.1"),
)
