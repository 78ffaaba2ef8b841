"""Every figure of a report, each as one record: what it is called, what it means, how it is made.

Reports, pages, gates, functions and tests read these records; nothing else lists figures. A new
figure is a function of a `Scored` and a record here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Literal

from ..measured import ANSWER_FIGURES
from ..measured import FIGURES as TEXTS
from . import interval_rules as rules
from . import probability, ranking
from .scored import Estimate, Scored


@dataclass(frozen=True)
class Figure:
    """One figure of a model.

    Attributes
    ----------
    name : str
        As in JSON and data frames.
    title, meaning : str
        As on a page.
    better : {"lower", "higher", "near 1", "near 0"}
    estimate : callable
        Value and influences of a `Scored`.
    rule : callable, optional
        Of its interval; None for the index and the ratio, whose intervals belong together.
    limits : (float, float)
        Least and largest possible value.
    by_class : bool
        Whether it compares classes, each of which is a sample of its own.
    answers_only : bool
        Whether only reports on answers show it.
    """

    name: str
    title: str
    meaning: str
    better: Literal["lower", "higher", "near 1", "near 0"]
    estimate: Callable[[Scored], Estimate]
    rule: rules.Rule | None
    limits: tuple[float, float]
    by_class: bool = False
    answers_only: bool = False


def _figure(
    name: str,
    estimate: Callable[[Scored], Estimate],
    rule: rules.Rule | None,
    limits: tuple[float, float] = (0.0, 1.0),
    *,
    by_class: bool = False,
    answers_only: bool = False,
) -> Figure:
    text = (ANSWER_FIGURES if answers_only else TEXTS)[name]
    return Figure(
        name,
        text.title,
        text.meaning,
        text.better,
        estimate,
        rule,
        limits,
        by_class,
        answers_only,
    )


#: In the order of every table.
FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        _figure("accuracy", probability.accuracy, rules.share_rule, answers_only=True),
        _figure("fragility_index", ranking.fragility_index, None, (0.0, inf), by_class=True),
        _figure("ratio", ranking.fragility_ratio, None, (0.0, inf), by_class=True),
        _figure("auc", ranking.auc, rules.auc_rule, by_class=True),
        _figure("log_loss", probability.log_loss, rules.log_loss_rule, (0.0, rules.WORST_LOSS)),
        _figure("brier", probability.brier, rules.brier_rule, (0.0, 2.0)),
        _figure("calibration_error", probability.calibration_error, rules.calibration_rule),
        _figure("buffered_auc", ranking.buffered_auc, rules.buffered_auc_rule, by_class=True),
        _figure("cvar", ranking.cvar, rules.cvar_rule, (-1.0, 1.0), by_class=True),
        _figure("confident_error_rate", probability.confident_error_rate, rules.share_rule),
        _figure("aurc", probability.aurc, rules.aurc_rule),
    )
}
