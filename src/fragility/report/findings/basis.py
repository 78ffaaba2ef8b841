"""What all rules share: their types, and how they name and list models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf, isnan
from typing import TYPE_CHECKING, Any

from ..._typing import Interval
from ...measured import Measured
from .. import words
from ..parts import ModelReport
from ..words import shortened

if TYPE_CHECKING:
    from ..report import Report

#: Sentences of a rule, each with the names of the models that it is about.
Sentences = Iterator[tuple[str, Sequence[str]]]
Speaks = Callable[[Any], Sentences]


def ordered(
    models: Iterable[ModelReport], figure: Callable[[ModelReport], float]
) -> list[ModelReport]:
    """Models by a figure, then by name: sentences do not depend on the order of the models."""

    def key(model: ModelReport) -> tuple[float, str]:
        value = figure(model)
        return inf if isnan(value) else value, model.name

    return sorted(models, key=key)


def joined(parts: Sequence[str], last: str = "and") -> str:
    """Parts of a sentence: a, b and c."""
    *others, final = parts
    return f"{', '.join(others)} {last} {final}" if others else final


def named(models: Sequence[ModelReport]) -> str:
    """Names of models: a, b and c."""
    return joined([shortened(model.name) for model in models])


def names(models: Sequence[ModelReport]) -> list[str]:
    """Names of models as they are."""
    return [model.name for model in models]


def measured(report: Report, figures: Sequence[Measured]) -> str:
    """Figures with their intervals: a (95 % interval 1 to 2) and b (3 to 4)."""
    told: list[str] = []
    for figure in figures:
        text = words.number(figure.value, 3)
        if figure.interval is not None:
            level = "" if told else f"{words.level(report.confidence)} "
            text = words.number(figure.value, words.decimals_for(figure.interval))
            text += f" ({level}{words.interval(figure.interval)})"
        told.append(text)
    return joined(told)


def error_rate(report: Report, model: ModelReport) -> float:
    """Share of the predictions, or answers, that are wrong."""
    if report.answers:
        return 1.0 - model.raw.figures["accuracy"].value
    decisions = model.raw.decisions
    return float(decisions.errors[0]) / decisions.total


def corrected(interval: Interval, p_value: float, adjusted: float, n_tests: int) -> str:
    """Why a difference counts as chance although its own interval leaves zero out; else nothing."""
    if interval.low <= 0.0 <= interval.high:
        return ""
    return f" (p = {p_value:.2g} alone, {adjusted:.2g} corrected for {n_tests} tests)"


def possessive(name: str) -> str:
    """Name of a model in the genitive."""
    shown = shortened(name)
    return f"{shown}'" if shown.endswith("s") else f"{shown}'s"
