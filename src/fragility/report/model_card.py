"""A model card in Markdown: what a report knows of a model, and marked fields for the rest.

The sections are those of Mitchell et al., Model Cards for Model Reporting (2019).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from .._labels import listed
from .._names import shown
from . import words
from .group_text import about_groups, all_rows
from .provenance import paper_trail
from .text import about, figure_rows, markdown, meanings, plain, policy_rows

if TYPE_CHECKING:
    from .report import Report

#: What marks a field that only a person can fill in.
UNFILLED = "**TO FILL IN:**"


def model_card(report: Report, model: str | None = None) -> str:
    """Card of a model, by default of the one that the verdict names."""
    names = [part.name for part in report.models]
    name = model if model is not None else report.verdict.model
    if name is None:
        raise ValueError(
            f"The cases cannot tell which model to use: say whose card it is, one of "
            f"{listed(names)}."
        )
    if name not in names:
        raise ValueError(f"There is no model {shown(name)}; there are {listed(names)}.")
    return "\n\n".join(_parts(report, name)) + "\n"


def _parts(report: Report, name: str) -> Iterator[str]:
    own = next(model for model in report.models if model.name == name)
    alone = replace(
        report,
        models=(own,),
        comparisons=(),
        shared_mistakes=(),
        n_shared_mistakes=None,
        groups=tuple(part for part in report.groups if part.model == name),
        new_mistakes=tuple(part for part in report.new_mistakes if part.model == name),
        context=replace(report.context, against=None),
    )
    yield f"# Model card: {plain(words.seen(name))}"
    yield "## Model details"
    yield _fields("Developed by", "Date and version", "Type of model and training", "License")
    yield "## Intended use"
    yield _fields("Who uses it, for which decision", "Uses that are out of scope")
    yield "## Training data"
    yield _fields("Where they come from, what was left out, how labels were made")
    yield "## Evaluation data"
    yield f"- {plain(about(report))}.\n- {UNFILLED} how these cases were drawn, and when"
    yield "## Decisions"
    yield _bullets([*alone.verdict.sentences, *_promises(alone)])
    if report.verdict.model != name and len(report.models) > 1:
        yield f"- The report as a whole: {plain(report.verdict.sentences[0])}"
    if own.policy is not None:
        yield markdown(policy_rows(alone))
    yield "## Figures"
    yield markdown((["", words.seen(name)], figure_rows(alone, after=False)))
    yield meanings(report)
    if alone.groups:
        yield "## Factors: figures by group"
        yield plain(about_groups(alone))
        yield markdown(all_rows(alone, name))
    else:
        yield "## Factors"
        yield _fields("Groups in which it was not measured (give --group)")
    yield "## What can go wrong"
    risks = [risk.text for risk in report.verdict.risks] if report.verdict.subject == name else []
    yield _bullets(risks or [risk.text for risk in alone.verdict.risks] or ["Nothing was found."])
    yield _fields("Harm that a wrong decision does, and to whom", "Who watches it, how often")
    yield "## Paper trail"
    yield _bullets(list(paper_trail(report)))


def _promises(report: Report) -> list[str]:
    policy = report.models[0].policy
    if policy is None:
        return ["No costs were given: the report says nothing on who decides."]
    told = [] if not policy.guarantees else policy.sentences()[2:]
    return [line for line in told if line not in report.verdict.sentences]


def _fields(*what: str) -> str:
    return "\n".join(f"- {UNFILLED} {line}" for line in what)


def _bullets(lines: list[str]) -> str:
    return "\n".join(f"- {plain(line)}" for line in lines)
