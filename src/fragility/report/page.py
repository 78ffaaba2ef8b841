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
from .group_text import about_groups, group_rows, ranked
from .page_data import MOST_CLASSES, declined_weight, page_data, script_json, starting_cost
from .parts import GroupFigures
from .provenance import paper_trail
from .verdict_text import verdict_lines

if TYPE_CHECKING:
    from .report import Report

#: Read in this order, they are one script.
_SCRIPTS = ("arithmetic.js", "charts.js", "page.js")
#: More rows of groups than this would make a large page.
_MOST_GROUP_ROWS = 100


def page(report: Report, *, cases: bool = True) -> str:
    """The page. Every name is shown as text, whatever characters it has."""
    from .. import __version__

    found, groups = page_data(report), _shown_groups(report)
    script, style = _script(), _source("page.css")
    content: str = _template().render(
        version=__version__,
        report=report,
        about=text.about(report),
        verdict=verdict_lines(report, 9),
        paper_trail=list(paper_trail(report)),
        costs=found["costs"],
        of_two=of_two_classes(report),
        last_place=len(found["grid"]) - 1,
        fields=_fields(report),
        level=text.level(report),
        names=[words.shortened(model.name) for model in report.models],
        figures=[
            text.figure_rows(report, after=False),
            text.figure_rows(report, after=True) + text.map_rows(report),
        ],
        policies=text.policy_rows(report) if any(m.policy for m in report.models) else None,
        about_policies=text.about_policies(report),
        costs_compared=text.cost_rows(report),
        comparisons=text.comparison_rows(report) if report.comparisons else None,
        groups=group_rows(report, groups) if groups else None,
        few_groups=[part.too_small for part in groups],
        about_groups=about_groups(report),
        worst=list(case_tables(report)) if cases else [],
        notes=[*report.notes, *_page_notes(report, len(groups))],
        meanings=[
            kind
            for name, kind in figures_of(report.answers, report.confident).items()
            if name in report.titles
        ],
        embedded=script_json(found),
        script=script,
        style=style,
        script_hash=_hash(script),
        style_hash=_hash(style),
    )
    return content


def framed(content: str) -> str:
    """The page inside another one, such as a notebook: neither can touch the other."""
    return (
        f'<iframe title="Fragility report" sandbox="allow-scripts" srcdoc="{escape(content)}" '
        'style="width: 100%; height: 46rem; border: 0"></iframe>'
    )


def _fields(report: Report) -> list[tuple[str, str]]:
    """Numbers to enter: key and label."""
    fields = [
        ("err", "Cost of an error"),
        ("man", "Cost of a review"),
        ("fn", "Weight of a false negative"),
        ("cap", "Review at most (% of cases)"),
        ("rev", "Error of reviewers (%)"),
    ]
    return [field for field in fields if of_two_classes(report) or field[0] != "fn"]


def of_two_classes(report: Report) -> bool:
    """Whether errors are of two kinds; a wrong answer is of one."""
    return len(report.labels) == 2 and not report.answers


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


def _page_notes(report: Report, n_groups: int) -> Iterator[str]:
    if report.streamed:
        yield (
            "Decisions at each threshold are exact. The curves of ranking errors are drawn from "
            "narrow bins of the scores."
        )
    if any(declined_weight(model) for model in report.models):
        yield "Cases that a model declined count as reviewed, whatever the threshold."
    mean_over = "" if report.costs is None else starting_cost(report.costs, report)[2]
    if mean_over:
        yield (
            f"The report was made with a cost for each {mean_over}; the cost curves start with "
            "their mean for all errors."
        )
    if report.costs is not None and np.ndim(report.costs.reviewer_error) > 0:
        yield (
            "The report was made with errors of reviewers for each class; the cost curves start "
            "with their mean."
        )
    if len(report.labels) > MOST_CLASSES:
        yield f"The pairs of {len(report.labels)} classes are not shown; they are in the JSON."
    if n_groups < len(report.groups):
        yield (
            f"Of {len(report.groups):,} rows of groups the {n_groups} most fragile are shown; all "
            "are in the JSON."
        )


def _hash(content: str) -> str:
    """Hash of a script or style for the content security policy: the browser runs no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def _source(name: str) -> str:
    return (files("fragility.report") / "templates" / name).read_text("utf-8")


@lru_cache(1)
def _script() -> str:
    """The modules as one script without imports, comments and indents."""
    source = "".join(map(_source, _SCRIPTS))
    comments = (r"^ */\*\*(?s:.*?)\*/\n", r"^ *//.*\n")
    for left_out in (r"^import [^;]*;\n", r"^export ", *comments, r"^ +", r"^\n"):
        source = re.sub(left_out, "", source, flags=re.MULTILINE)
    return source


@lru_cache(1)
def _template() -> Any:
    with needed_for("Pages are made with Jinja2", "report"):
        from jinja2 import Environment, PackageLoader, StrictUndefined
    environment = Environment(
        loader=PackageLoader("fragility.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shortened"] = words.shortened
    environment.filters["seen"] = words.seen
    environment.filters["count"] = words.count
    environment.filters["unbroken"] = lambda sentence: sentence.replace(" %", "\N{NO-BREAK SPACE}%")
    return environment.get_template("report.html.jinja")
