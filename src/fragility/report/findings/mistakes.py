"""Findings about single mistakes: those that all models make, and those that are new."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import words
from ..words import shortened as short
from .basis import Sentences

if TYPE_CHECKING:
    from ..report import Report


def shared_mistakes(report: Report) -> Sentences:
    """Cases that every model gets confidently wrong."""
    n = report.n_shared_mistakes
    if n:
        cases = "case" if n == 1 else "cases"
        suspect, wrong = words.suspects(n, answers=report.answers)
        who = "Both models" if len(report.models) == 2 else f"All {len(report.models)} models"
        yield (
            f"{who} get {words.count(n)} {cases} wrong above {100 * report.confident:g} % "
            f"confidence. Check {suspect} first: {wrong}, or a blind spot that another model "
            "of the same kind will not mend.",
            sorted(model.name for model in report.models),
        )


def new_mistakes(report: Report) -> Sentences:
    """Cases that each model gets confidently wrong, and did not before."""
    found = sorted(report.new_mistakes, key=lambda part: (-part.n_new, part.model))
    told = []
    for part in found:
        cases = "case is" if part.n_new == 1 else "cases are"
        unknown = ""
        if part.n_unknown:
            one = part.n_unknown == 1
            others = "is on a case that was" if one else "are on cases that were"
            unknown = f", {words.count(part.n_unknown)} more {others} not there before"
        told.append(
            f"{short(part.model)}: {words.count(part.n_new)} {cases} newly wrong above "
            f"{100 * report.confident:g} % confidence, {words.count(part.n_mended)} no longer"
            f"{unknown}"
        )
    if told:
        yield f"{'; '.join(told)}.", [part.model for part in found]
