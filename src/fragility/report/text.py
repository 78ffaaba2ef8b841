"""A report as text: for a terminal, and in Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from math import inf, isnan
from typing import TYPE_CHECKING

from .._summary import aligned, threshold
from .._typing import Interval
from ..measured import Measured, figures_of
from . import words
from .case_text import case_tables
from .full_text import full_tables
from .group_comparison_text import cost_tables, loss_tables
from .group_text import about_groups, group_rows
from .parts import PairedFigures
from .provenance import paper_trail
from .verdict_text import verdict_lines
from .words import Table

if TYPE_CHECKING:
    from ..deferral.guarantees import Guarantee
    from ..deferral.paired_costs import PairedCosts
    from ..deferral.policy import Policy
    from .report import Report


#: Errors of humans are told for no more classes; the JSON has all.
_MOST_CLASSES = 10


def table(report: Report) -> Table:
    """Heading and rows of the table for people: a column for each model."""
    after = [[f"{title}, calibrated", *cells] for title, *cells in figure_rows(report, after=True)]
    rows = figure_rows(report, after=False) + after + map_rows(report)
    return ["", *(words.shortened(model.name) for model in report.models)], rows


def figure_rows(report: Report, *, after: bool) -> list[list[str]]:
    """Every figure, before or after calibration; no rows if no model was calibrated."""
    found = [model.calibrated if after else model.raw for model in report.models]
    if not any(found):
        return []
    return [
        [title, *("–" if part is None else words.measured(part.figures[name]) for part in found)]
        for name, title in report.titles.items()
        if any(part is not None and name in part.figures for part in found)
    ]


def map_rows(report: Report) -> list[list[str]]:
    """By which map each model was calibrated; no row if none was."""
    found = [model.calibration for model in report.models]
    if not any(found):
        return []
    return [["calibration map", *("–" if part is None else part.title for part in found)]]


def comparison_rows(report: Report) -> Table:
    """Every two models, as they are and calibrated."""
    head = ["", "Fragility Index", "difference", level(report), "ratio", "p (Holm)"]
    rows = []
    for pair in report.comparisons:
        name = f"{words.shortened(pair.a)} − {words.shortened(pair.b)}"
        rows.append([name, *_test_cells(pair.raw)])
        if pair.calibrated is not None:
            rows.append([f"{name}, calibrated", *_test_cells(pair.calibrated)])
    return head, rows


def cost_rows(report: Report) -> Table:
    """What every two models cost, each at its policy."""
    head = ["", "cost per case", "difference", level(report), "p (Holm)"]
    rows = []
    for pair in report.comparisons:
        if pair.cost is None:
            continue
        test = pair.cost.test
        defined = not isnan(test.p_value)
        rows.append(
            [
                f"{words.shortened(pair.a)} − {words.shortened(pair.b)}",
                f"{words.money(test.a)}, {words.money(test.b)}",
                words.signed(test.difference, 4),
                " to ".join(map(words.money, test.interval))
                if defined
                else f"no test: {test.why_no_test}",
                f"{pair.cost.p_value:.2g}" if defined else "–",
            ]
        )
    return head, rows


def level(report: Report) -> str:
    """Name of the intervals in tables and sentences."""
    return words.level(report.confidence)


def _test_cells(test: PairedFigures) -> list[str]:
    values = f"{words.number(test.index.a)}, {words.number(test.index.b)}"
    if test.is_rounding:
        return [values, "0", "equal but for rounding", "0", "–"]
    defined = not isnan(test.p_value)
    odd = any(value in (0.0, inf) for value in (test.index.a, test.index.b))
    why_not = "an index is 0 or ∞" if odd else "a class has one case, or one outweighs all others"
    return [
        values,
        words.signed(test.index.difference, words.decimals_for(test.index.interval)),
        words.interval(test.index.interval) if defined else f"no test: {why_not}",
        words.signed(test.ratio.difference),
        f"{test.p_value:.2g}" if defined else "–",
    ]


def policy_rows(report: Report) -> Table:
    """The policy of each model: its thresholds, its cost, its errors."""
    known = [model for model in report.models if model.policy is not None]
    head = ["", *(words.shortened(model.name) for model in known)]
    found = [model.policy for model in known if model.policy is not None]
    of_two = len(report.labels) == 2
    alone = "answered alone" if report.answers else "decided alone"

    def row(title: str, shown: Callable[[Policy], str]) -> list[str]:
        return [title, *map(shown, found)]

    rows = [row("cost per case", lambda p: words.amount(Measured(p.cost, p.cost_interval)))]
    if report.answers:
        rows += [
            row("answer alone from", lambda p: _threshold(p.upper, "always", "never")),
            row("at the same cost", lambda p: words.thresholds(p.upper_interval, words.FROM)),
        ]
    elif of_two:
        (negative,) = (label for label in report.labels if label != report.positive)
        sides = words.shortened(negative), words.shortened(report.positive)
        rows += [
            row(f"decide {sides[0]} below", lambda p: _threshold(p.lower, "never", "always")),
            row("at the same cost", lambda p: words.thresholds(p.lower_interval, words.BELOW)),
            row(f"decide {sides[1]} from", lambda p: _threshold(p.upper, "always", "never")),
            row("at the same cost", lambda p: words.thresholds(p.upper_interval, words.FROM)),
        ]
    else:
        rows += [
            row("alone up to a loss of", _loss_limit),
            row("at the same cost", lambda p: _losses(p.lower_interval)),
        ]
    rows += [
        row(alone, lambda p: words.percent(p.automation_rate)),
        row("wrong of these", words.wrong_of_alone),
        row("errors of all", lambda p: words.percent(p.error_share)),
    ]
    if of_two and not report.answers:
        rows += [
            row("missed positives", lambda p: words.percent(p.misses)),
            row("false alarms", lambda p: words.percent(p.false_alarms)),
        ]
    rows += [
        row("cost without review", lambda p: words.money(p.cost_without_review)),
        row("cost of full review", lambda p: words.money(p.cost_review_all)),
        *_human_rows(report, found),
        row("fragility of the cost", lambda p: words.number(p.fragility)),
        row("above a cost of", lambda p: words.money(p.fragility_bound)),
    ]
    for place, part in enumerate(found[0].guarantees if found else ()):
        title = f"{part.title} ≤ {part.percent}"
        rows.append([title, *(_kept(policy.guarantees[place]) for policy in found)])
    return head, rows


def _human_rows(report: Report, policies: Sequence[Policy]) -> list[list[str]]:
    """Errors of humans, and what policies cost more than humans and than models alone."""
    found = [part.reviewers for part in policies if part.reviewers is not None]
    if not found:
        return []
    rows = [["errors of humans", *(words.share(part.error_rate) for part in found)]]
    for place, label in enumerate(report.labels[:_MOST_CLASSES]):
        title = f"errors of humans, {words.shortened(label)}"
        rows.append([title, *(words.share(part.error_rates[place]) for part in found)])
    rows.append(["against humans alone", *(_against(part.against_human) for part in found)])
    rows.append(["against the model alone", *(_against(part.against_model) for part in found)])
    return rows


def _against(test: PairedCosts | None) -> str:
    if test is None:
        return "–"
    if isnan(test.p_value):
        return f"{words.signed(test.difference)} (no test: {test.why_no_test})"
    decimals = words.decimals_for(test.interval)
    return f"{words.signed(test.difference, decimals)} ({words.interval(test.interval)})"


def _threshold(value: float, at_zero: str, at_infinity: str) -> str:
    return {0.0: at_zero, inf: at_infinity}.get(value, threshold(value))


def _losses(ends: Interval) -> str:
    return " to ".join({inf: "all", -inf: "none"}.get(end, f"{end:.4g}") for end in ends)


def _loss_limit(policy: Policy) -> str:
    from ..deferral.decision_rules import LossLimit

    assert isinstance(policy.decision, LossLimit)
    if policy.automation_rate == 0.0:
        return "never"
    return "always" if policy.decision.limit == inf else words.money(policy.decision.limit)


def _kept(part: Guarantee) -> str:
    return f"guaranteed, {100 * part.level:g} %" if part.kept else "not proved"


def about_policies(report: Report) -> str:
    """What the rows of `policy_rows` are, in a line or two."""
    without = "of the best policy that needs none"
    if report.answers:
        without = "if every answer is given; declined cases are passed on and cost a review"
    return (
        "Costs and errors are those of new cases, which did not choose the policy; without review: "
        f"{without}. These cases do not tell thresholds at the same cost "
        "apart. The fragility of the cost is how fast a shift in the mix of cases can raise it "
        "above its bound."
    )


def pair_rows(report: Report, model: int) -> Table:
    """Matrix of the index: rows are what a case was scored as, columns what it was."""
    names = [words.shortened(label) for label in report.labels]
    rows = [
        [f"scored as {name}", *("–" if i == j else words.number(x) for j, x in enumerate(values))]
        for i, (name, values) in enumerate(
            zip(names, report.models[model].raw.pairs.tolist(), strict=True)
        )
    ]
    return ["", *(f"true {name}" for name in names)], rows


def group_tables(report: Report) -> Iterator[tuple[str, str, Table]]:
    """What matters most by group, if there are groups."""
    if report.groups:
        yield "By group", about_groups(report), group_rows(report)


def heading(report: Report) -> str:
    """The title, if there is one, and the cases that were measured."""
    title = words.shortened(report.context.title) if report.context.title else ""
    return f"{title}: {about(report)}" if title else about(report)


def about(report: Report) -> str:
    """The cases that were measured, in a line."""
    if report.answers:
        return "; ".join([f"{words.count(report.n_samples)} cases", *_answer_counts(report)])
    classes = ", ".join(
        f"{words.shortened(label)}: {words.count(n)}"
        for label, n in list(zip(report.labels, report.support, strict=True))[:10]
    )
    more = f", … ({len(report.labels) - 10} more)" if len(report.labels) > 10 else ""
    positive = "" if report.positive is None else f"; positive: {words.shortened(report.positive)}"
    return f"{words.count(report.n_samples)} cases ({classes}{more}{positive})"


def _answer_counts(report: Report) -> Iterator[str]:
    """How many answers of each model are right and wrong, and how many cases it declined."""
    for model in report.models:
        found = model.answers
        assert found is not None
        line = (
            f"{words.shortened(model.name)}: {words.count(found.right)} answers right, "
            f"{words.count(found.wrong)} wrong"
        )
        if found.declined:
            share = words.percent(found.declined_share)
            line += f", {words.count(found.declined)} declined ({share})"
        yield line


def _tables(report: Report) -> Iterator[tuple[str, str, Table]]:
    """Tables of all models after the figures: title, what the rows are, heading and rows."""
    if report.comparisons:
        yield "Model against model", "", comparison_rows(report)
    if any(model.policy is not None for model in report.models):
        yield "Who decides", about_policies(report), policy_rows(report)
        if cost_rows(report)[1]:
            yield "Cost against cost", "", cost_rows(report)
    yield from case_tables(report)
    yield from group_tables(report)


def to_text(report: Report, *, full: bool = False) -> str:
    """Tables and findings for a terminal; `full` adds those of `fragility.report.full_text`."""
    sentences = [
        "\n".join(f"* {line}" for line in verdict_lines(report, 9)),
        "\n".join(f"* {finding}" for finding in report.findings),
        "\n".join(f"note: {note}" for note in report.notes),
    ]
    head, rows = table(report)
    shown = [aligned([head, *rows])]
    for title, note, (head, rows) in (*_tables(report), *(full_tables(report) if full else ())):
        lead = f"{title}. {note}".rstrip()
        shown.append(f"{lead}\n\n{aligned([head, *rows])}")
    return "\n\n".join([heading(report), sentences[0], *shown, *filter(None, sentences[1:])])


def to_markdown(report: Report, *, full: bool = False) -> str:
    """The whole report in Markdown; `full` adds the tables of `fragility.report.full_text`."""
    parts = [f"# {plain(report.context.title or 'Fragility report')}", about(report)]
    parts += ["## Verdict", "\n".join(f"- {plain(line)}" for line in verdict_lines(report, 9))]
    if report.findings:
        parts += ["## Findings", "\n".join(f"- {plain(str(f))}" for f in report.findings)]
    parts += ["## Figures", markdown(table(report)), meanings(report)]
    by_group = (*loss_tables(report, full=False), *cost_tables(report, full=False))
    more = full_tables(report) if full else by_group
    for title, about_rows, found in (*_tables(report), *more):
        parts += [f"## {plain(title)}", plain(about_rows), markdown(found)]
    for place, model in enumerate(report.models if len(report.labels) > 2 else ()):
        parts += [f"## Pairs of classes: {plain(words.shortened(model.name))}"]
        parts += [markdown(pair_rows(report, place))]
    parts += ["## Paper trail", "\n".join(f"- {plain(line)}" for line in paper_trail(report))]
    if report.notes:
        parts += ["## Notes", "\n".join(f"- {plain(note)}" for note in report.notes)]
    return "\n\n".join(filter(None, parts)) + "\n"


def meanings(report: Report) -> str:
    """What each figure is, a line each."""
    lines = [
        f"- {kind.title} ({kind.better} is better): {kind.meaning}"
        for name, kind in figures_of(report.answers, report.confident).items()
        if name in report.titles
    ]
    return "\n".join(lines)


def markdown(found: Table) -> str:
    """A table in Markdown."""
    head, rows = found
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(plain(cell) for cell in line) + " |" for line in lines)


def plain(text: str) -> str:
    """Text that Markdown does not take for anything else."""
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", text)
