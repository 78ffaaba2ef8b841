"""Single cases of a report as tables: shared by all models, new, and the worst of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from . import words
from .parts import NewMistake, NewMistakes, SharedMistake, WorstCase
from .words import Table

if TYPE_CHECKING:
    from .report import Report


#: Kinds of wrong predictions, and none: the order in which a page lists them.
_KINDS = ("miss", "false alarm", "mistake", "")


def case_tables(report: Report, *, by_kind: bool = False) -> Iterator[tuple[str, str, Table]]:
    """Title, what the rows are, heading and rows; `by_kind`: misses before false alarms."""
    above = f"Above {100 * report.confident:g} % confidence"
    if report.shared_mistakes:
        shown, n = len(report.shared_mistakes), report.n_shared_mistakes or 0
        some = "" if shown == n else f" The {shown} surest of {words.count(n)}."
        why = "wrong marks or questions, or" if report.answers else "wrong labels, or"
        yield "Wrong by all models", f"{above}: {why} a blind spot.{some}", shared_rows(report)
    for found in report.new_mistakes:
        if found.cases:
            shown, n = len(found.cases), found.n_new
            some = "" if shown == n else f" The {shown} surest are listed."
            note = f"{above}, and not so before: {words.count(n)}.{some}"
            yield f"Newly wrong by {words.shortened(found.model)}", note, new_rows(found)
    for model in report.models:
        if model.worst:
            title = f"Cases that carry the risk of {words.shortened(model.name)}"
            cases = model.worst
            if by_kind:
                cases = tuple(sorted(cases, key=lambda case: _KINDS.index(case.kind)))
            yield title, "", worst_rows(cases, answers=report.answers)


def shared_rows(report: Report) -> Table:
    """The cases that every model gets confidently wrong."""
    names = [model.name for model in report.models]

    def claimed(case: SharedMistake, name: str) -> str:
        sure = words.percent(case.confidence[name])
        return sure if report.answers else f"{words.shortened(case.predicted[name])}, {sure}"

    truth = [] if report.answers else ["truth"]  # of answers all are wrong
    rows = [
        [
            words.shortened(case.case),
            *(words.shortened(case.true) for _ in truth),
            *(claimed(case, name) for name in names),
        ]
        for case in report.shared_mistakes
    ]
    return ["case", *truth, *map(words.shortened, names)], rows


def new_rows(found: NewMistakes) -> Table:
    """The cases that a model gets confidently wrong, and did not before."""
    head = ["case", "truth", "predicted", "confidence", "previously", "confidence then"]

    def truth(case: NewMistake) -> str:
        now, then = map(words.shortened, (case.true, case.previously_true))
        return now if now == then else f"{now} (was {then})"

    rows = [
        [
            words.shortened(case.case),
            truth(case),
            words.shortened(case.predicted),
            words.percent(case.confidence),
            words.shortened(case.previously_predicted),
            words.percent(case.previous_confidence),
        ]
        for case in found.cases
    ]
    return head, rows


def worst_rows(cases: tuple[WorstCase, ...], *, answers: bool) -> Table:
    """The cases that the index of a model sits on."""
    # Of answers the prediction is always "right", and the score is the confidence.
    told = ["answer"] if answers else ["", "truth", "predicted", "score"]
    head = ["case", *told, "confidence", "times its share of the risk"]
    grouped = any(case.group is not None for case in cases)
    rows = []
    for case in cases:
        what = [words.shortened(case.true)]
        if not answers:
            predicted = words.shortened(case.predicted)
            what = [case.kind or "right", *what, predicted, words.number(case.score)]
        cells = [words.shortened(case.case), *what]
        cells += [words.percent(case.confidence), words.number(case.lift)]
        rows.append([*cells, *([words.shortened(case.group)] if grouped else [])])
    return head + ["group"] * grouped, rows
