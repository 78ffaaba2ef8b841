"""What all rules share: their types, and how they name models and classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

from ..._typing import Interval
from ..parts import ModelReport
from ..words import shortened

if TYPE_CHECKING:
    from ..report import Report

#: Sentences of a rule, each with the names of the models that it is about.
Sentences = Iterator[tuple[str, Sequence[str]]]
Rule = Callable[[Any], Sentences]


def of_each_model(sentence: Callable[[Report, ModelReport], str | None]) -> Rule:
    """Rule that asks for one sentence about each model of a report; None says nothing."""

    @wraps(sentence)
    def rule(report: Report) -> Sentences:
        for model in report.models:
            text = sentence(report, model)
            if text is not None:
                yield text, [model.name]

    return rule


def corrected(interval: Interval, p_value: float, adjusted: float, n_tests: int) -> str:
    """Why a difference counts as chance although its own interval leaves zero out; else nothing."""
    if interval.low <= 0.0 <= interval.high:
        return ""
    return f" (p = {p_value:.2g} alone, {adjusted:.2g} corrected for {n_tests} tests)"


def possessive(name: str) -> str:
    """Name of a model in the genitive."""
    shown = shortened(name)
    return f"{shown}'" if shown.endswith("s") else f"{shown}'s"
