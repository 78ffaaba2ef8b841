"""More or fewer training samples of two overlapping classes, labels clean."""

from __future__ import annotations

from collections.abc import Iterator

from pandas import DataFrame

from experiments.experiment import Condition, Experiment, Report, Row
from experiments.synthetic import RATIOS, TEST, linear_rows, size_conditions
from experiments.synthetic_claims import size_claims
from experiments.synthetic_report import report_along


def trial(condition: Condition, seed: int, quick: bool) -> Iterator[Row]:
    """ERM, and KL and Wasserstein at each target."""
    return linear_rows(condition, 2, seed, quick, RATIOS)


def report(results: DataFrame) -> Report:
    """All figures against the number of samples."""
    text = f"Two overlapping classes, clean labels, {TEST} test samples."
    return report_along(results, "n", "training samples", text)


EXPERIMENT = Experiment(
    name="synthetic_size",
    title="drawn data of two classes: the number of training samples",
    trials=100,
    quick_trials=2,
    conditions=size_conditions,
    trial=trial,
    report=report,
    claims=size_claims("Appendix C.2.1"),
)
