"""Robust training against robust baselines: wrong labels among 50 samples of two classes."""

from __future__ import annotations

from collections.abc import Iterator

from pandas import DataFrame

from experiments.experiment import Condition, Experiment, Report, Row
from experiments.synthetic import SMALL, TEST, adversarial_rows, flip_conditions, linear_rows
from experiments.synthetic_claims import baseline_claims
from experiments.synthetic_report import report_along

#: The paper compares at this target only.
RATIOS = (1.05,)


def trial(condition: Condition, seed: int, quick: bool) -> Iterator[Row]:
    """ERM, KL, Wasserstein and the baselines."""
    yield from linear_rows(condition, 2, seed, quick, RATIOS)
    yield from adversarial_rows(condition, 2, seed, quick)


def report(results: DataFrame) -> Report:
    """All figures against the share of wrong labels."""
    text = f"Two overlapping classes, {SMALL} training samples, {TEST} clean test samples."
    return report_along(results, "flip", "rate of wrong labels", text)


EXPERIMENT = Experiment(
    name="synthetic_baselines",
    title="drawn data of two classes: robust training against robust baselines",
    trials=100,
    quick_trials=2,
    conditions=flip_conditions,
    trial=trial,
    report=report,
    claims=baseline_claims("Appendix C.2.1"),
)
