"""The report as one HTML page that needs no network and no other file."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from functools import lru_cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from .._optional import needed_for
from ..measured import figures_of
from . import text, words
from .case_text import case_tables
from .full_text import confusion_rows
from .group_comparison_text import cost_tables, loss_tables
from .group_text import about_groups, group_rows, ranked
from .page_data import cut_by, kind_of, page_data, script_json
from .page_parts import (
    COST_RISKS,
    COST_RULES,
    costs_in_words,
    fields,
    finding_texts,
    model_rows,
    verdict_numbers,
)
from .parts import GroupFigures
from .provenance import paper_trail

if TYPE_CHECKING:
    from .report import Report

#: Read in this order, they are one script.
_SCRIPTS = ("arithmetic.js", "charts.js", "folds.js", "page.js")
#: More rows of groups than this would make a large page.
_MOST_GROUP_ROWS = 100
#: Matrices of more classes would make a page of megabytes.
MOST_CLASSES = 20


def page(report: Report, *, cases: bool = True) -> str:
    """The page. Every name is shown as text, whatever characters it has."""
    from .. import __version__

    found, groups = page_data(report), _shown_groups(report)
    script, style = _script(), source("page.css")
    content: str = (
        environment()
        .get_template("report.html.jinja")
        .render(
            version=__version__,
            report=report,
            about=text.about(report),
            kind=found["kind"],
            costs=found["costs"],
            costs_in_words=costs_in_words(report),
            numbers=verdict_numbers(report),
            models=model_rows(report),
            fields=fields(report),
            findings=list(zip(report.findings, finding_texts(report, cases=cases), strict=True)),
            cost_risks=COST_RISKS,
            cost_rules=COST_RULES,
            cost_titles=_cost_titles(report),
            unlike=_unlike(report),
            paper_trail=list(paper_trail(report)),
            level=text.level(report),
            names=[words.shortened(model.name) for model in report.models],
            sides=_sides(report),
            negative=_negative(report),
            figures=[
                text.figure_rows(report, after=False),
                text.figure_rows(report, after=True) + text.map_rows(report),
            ],
            policies=text.policy_rows(report) if any(m.policy for m in report.models) else None,
            about_policies=text.about_policies(report),
            confusions=list(_confusions(report)),
            costs_compared=text.cost_rows(report),
            comparisons=text.comparison_rows(report) if report.comparisons else None,
            pairs=list(_pairs(report)),
            groups=group_rows(report, groups) if groups else None,
            few_groups=[part.too_small for part in groups],
            about_groups=about_groups(report),
            group_tests=list(_group_tests(report)),
            worst=list(case_tables(report, by_kind=True)) if cases else [],
            notes=[*report.notes, *_page_notes(report, len(groups))],
            meanings=[
                kind
                for name, kind in figures_of(report.answers, report.confident).items()
                if name in report.titles
            ],
            embedded=script_json(found),
            script=script,
            style=style,
            script_hash=content_hash(script),
            style_hash=content_hash(style),
        )
    )
    return content


def framed(content: str) -> str:
    """The page inside another one, such as a notebook: neither can touch the other."""
    return (
        f'<iframe title="Fragility report" sandbox="allow-scripts" srcdoc="{escape(content)}" '
        'style="width: 100%; height: 46rem; border: 0"></iframe>'
    )


def _cost_titles(report: Report) -> list[str]:
    """Titles of figures that depend on costs."""
    return [report.titles[name] for name in ("cost", "net_benefit") if name in report.titles]


def _sides(report: Report) -> list[tuple[str, str]]:
    """Thresholds that can be moved: key and label."""
    kind = kind_of(report)
    if kind == "answers":
        return [("upper", "Answer alone from")]
    if kind == "several":
        what = {
            "confidence": "confidence above",
            "rest": "one minus the confidence up to",
            "loss": "expected loss up to",
        }[cut_by(report)]
        return [("lower", f"Decide alone, {what}")]
    return [
        ("lower", f"Decide {words.shortened(_negative(report))} below"),
        ("upper", f"Decide {words.shortened(report.positive)} from"),
    ]


def _negative(report: Report) -> Any:
    """The class of two that is not the positive one."""
    return next(label for label in report.labels if label != report.positive)


def _unlike(report: Report) -> str:
    """How policies at other costs differ from those of the report, if they do."""
    policies = [model.policy for model in report.models if model.policy is not None]
    if any(policy.guarantees for policy in policies):
        return "Policies at other costs are the cheapest ones; they do not keep limits of errors."
    if any(policy.rule == "confidence" or policy.criterion != "cost" for policy in policies):
        return "Policies at other costs are the cheapest ones, chosen by costs alone."
    return ""


def _confusions(report: Report) -> Iterator[tuple[str, words.Table]]:
    """What the policy of each model decides, by true class; of two classes the script counts it."""
    if kind_of(report) != "two" and len(report.labels) <= MOST_CLASSES:
        for model in report.models:
            if model.confusion is not None:
                yield words.shortened(model.name), confusion_rows(report, model)


def _pairs(report: Report) -> Iterator[tuple[str, words.Table]]:
    """Of several classes: the index of every pair."""
    if 2 < len(report.labels) <= MOST_CLASSES:
        for place, model in enumerate(report.models):
            yield words.shortened(model.name), text.pair_rows(report, place)


def _shown_groups(report: Report) -> list[GroupFigures]:
    """All rows of groups, or the most fragile ones if there are very many."""
    groups = ranked(report)
    if len(groups) <= _MOST_GROUP_ROWS:
        return groups
    indices = [
        -1.0 if part.index is None or part.too_small else part.index.value for part in groups
    ]
    chosen = np.sort(np.argsort(-np.array(indices), kind="stable")[:_MOST_GROUP_ROWS])
    return [groups[place] for place in chosen.tolist()]


def _group_tests(report: Report) -> Iterator[tuple[str, str, words.Table, bool]]:
    """Models against each other by group, and whether costs are compared."""
    for found, of_costs in ((loss_tables, False), (cost_tables, True)):
        for title, note, rows in found(report, full=False):
            yield title, note, rows, of_costs


def _page_notes(report: Report, n_groups: int) -> Iterator[str]:
    if len(report.labels) == 2:
        yield (
            "Thresholds on this page are those of the report, and about five hundred more: steps "
            "of 1/256, finer towards 0 and 100 %. Costs and counts at each of them are exact."
        )
    elif report.costs is not None:
        yield "Limits of the loss on this page are that of the report, and some 240 more."
    if any(model.cells.declined for model in report.models):
        yield "Cases that a model declined count as reviewed, whatever the threshold."
    if len(report.labels) > MOST_CLASSES:
        yield f"The pairs of {len(report.labels)} classes are not shown; they are in the JSON."
    if n_groups < len(report.groups):
        yield (
            f"Of {len(report.groups):,} rows of groups the {n_groups} most fragile are shown; all "
            "are in the JSON."
        )


def content_hash(content: str) -> str:
    """Hash of a script or style for the content security policy: the browser runs no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def source(name: str) -> str:
    """Text of a file of the page."""
    return (files("fragility.report") / "templates" / name).read_text("utf-8")


@lru_cache(1)
def _script() -> str:
    """The modules as one script without imports, comments and indents."""
    found = "".join(map(source, _SCRIPTS))
    comments = (r"^ */\*\*(?s:.*?)\*/\n", r"^ *//.*\n")
    for left_out in (r"^import [^;]*;\n", r"^export ", *comments, r"^ +", r"^\n"):
        found = re.sub(left_out, "", found, flags=re.MULTILINE)
    return found


@lru_cache(1)
def environment() -> Any:
    """Templates of pages, which show every name as text."""
    with needed_for("Pages are made with Jinja2", "report"):
        from jinja2 import Environment, PackageLoader, StrictUndefined
    made = Environment(
        loader=PackageLoader("fragility.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["shortened"] = words.shortened
    made.filters["seen"] = words.seen
    made.filters["count"] = words.count
    made.filters["unbroken"] = lambda sentence: sentence.replace(" %", "\N{NO-BREAK SPACE}%")
    return made
