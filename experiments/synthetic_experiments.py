"""Drawn data of two and of four overlapping classes: what varies, and what is compared.

Three questions, each for two and for four classes: more or fewer training samples with clean
labels; more or fewer wrong labels among 50 training samples; and, with the same wrong labels,
robust training against robust baselines. The intercept is the paper's, priced; the first two
questions have a free one, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from pandas import DataFrame

from experiments.comparison import merit_table, of_the_paper, papers_claim
from experiments.experiment import Claim, Condition, Experiment, Report, Row
from experiments.intercept_report import intercept_claim, intercept_table
from experiments.synthetic import (
    RATIOS,
    SMALL,
    TEST,
    adversarial_rows,
    flip_conditions,
    linear_rows,
    size_conditions,
)
from experiments.synthetic_claims import baseline_claims, flip_claims, size_claims
from experiments.synthetic_report import report_along

__all__ = ["EXPERIMENTS"]


class _Question(NamedTuple):
    """What varies, how it is shown, and at which targets models are trained."""

    name: str
    title: str
    conditions: Callable[[bool], Sequence[Condition]]
    along: str
    axis: str
    samples: str
    claims: Callable[[str, bool], list[Claim]]
    ratios: Sequence[float] = RATIOS
    has_baselines: bool = False
    intercepts: Sequence[str] = ("priced", "free")


_NOISY = f"{SMALL} training samples, {TEST} clean test samples"
_QUESTIONS = (
    _Question(
        name="synthetic_size",
        title="the number of training samples",
        conditions=size_conditions,
        along="n",
        axis="training samples",
        samples=f"clean labels, {TEST} test samples",
        claims=lambda where, many: size_claims(where),
    ),
    _Question(
        name="synthetic_flip",
        title="the rate of wrong labels",
        conditions=flip_conditions,
        along="flip",
        axis="rate of wrong labels",
        samples=_NOISY,
        claims=flip_claims,
    ),
    _Question(
        name="synthetic_baselines",
        title="robust training against robust baselines",
        conditions=flip_conditions,
        along="flip",
        axis="rate of wrong labels",
        samples=_NOISY,
        claims=baseline_claims,
        ratios=(1.05,),  # the paper compares at this target only
        has_baselines=True,
        intercepts=("priced",),
    ),
)


def trial(
    condition: Condition,
    seed: int,
    quick: bool,
    *,
    n_classes: int,
    ratios: Sequence[float],
    has_baselines: bool,
    intercepts: Sequence[str],
) -> Iterator[Row]:
    """ERM, KL and Wasserstein at each target, and the baselines if they are compared."""
    yield from linear_rows(condition, n_classes, seed, quick, ratios, intercepts)
    if has_baselines:
        yield from adversarial_rows(condition, n_classes, seed, quick)


def _experiment(asked: _Question, n_classes: int) -> Experiment:
    classes, where = {2: ("two", "Appendix C.2.1"), 4: ("four", "Appendix C.2.2")}[n_classes]

    def report(results: DataFrame) -> Report:
        """All figures against what varies."""
        text = f"{classes.capitalize()} overlapping classes, {asked.samples}."
        shown = report_along(of_the_paper(results), asked.along, asked.axis, text)
        free = results[results["intercept"] == "free"]
        if free.empty:
            return shown
        more = {
            "free_intercept": merit_table(free, [asked.along, "model"]),
            "intercepts": intercept_table(results, [asked.along], "model"),
        }
        said = (
            " The models have the paper's priced intercept, a constant inside norm and penalty; "
            "`free intercept`: the same with one that is neither moved nor penalised; "
            "`intercepts`: gains over ERM with both."
        )
        return replace(shown, tables={**shown.tables, **more}, text=shown.text + said)

    return Experiment(
        name=asked.name if n_classes == 2 else f"{asked.name}_{n_classes}",
        title=f"drawn data of {classes} classes: {asked.title}",
        trials=100,
        quick_trials=2,
        conditions=asked.conditions,
        # Workers import the function; one made here they could not find.
        trial=partial(
            trial,
            n_classes=n_classes,
            ratios=asked.ratios,
            has_baselines=asked.has_baselines,
            intercepts=asked.intercepts,
        ),
        report=report,
        claims=[
            *map(papers_claim, asked.claims(where, n_classes > 2)),
            *(
                [intercept_claim(where, [asked.along], "model")]
                if "free" in asked.intercepts
                else []
            ),
        ],
    )


EXPERIMENTS = {
    experiment.name: experiment
    for n_classes in (2, 4)
    for experiment in (_experiment(asked, n_classes) for asked in _QUESTIONS)
}
