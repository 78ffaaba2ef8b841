"""Commands on a file of predictions: evaluate, compare, report, cost.

Each command imports what it needs when it runs: help and version come at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from .console import (
    say,
    show_lines,
    show_models,
    show_table,
    show_text,
    write_json,
)
from .options import (
    Command,
    asked_models,
    case_options,
    check_ending,
    confident_option,
    context_options,
    cost_options,
    evidence_options,
    force_option,
    group_option,
    json_option,
    output_option,
    policy_options,
    prediction_options,
)
from .recording import Recording, record_options
from .reports import make_report, next_command

if TYPE_CHECKING:
    from ..report import Report
    from ..report.words import Table


@click.command(cls=Command)
@prediction_options
@group_option
@evidence_options
@cost_options
@policy_options
@context_options
@click.option(
    "--full",
    is_flag=True,
    help="Everything: all figures, tests, findings, groups, calibration, operating points, net "
    "benefit, surest cases, decisions of policies.",
)
@case_options
@record_options
@json_option
def evaluate(as_json: bool, full: bool, worst: int | None, **options: Any) -> None:
    """Say which model to use, when it may decide alone, what that costs, what can go wrong.

    \b
    fragility evaluate predictions.csv --label sick --score p_a --score p_b
    fragility evaluate predictions.csv --label sick --score p_new --against p_old \\
        --miss-cost 20 --false-alarm-cost 2 --review-cost 1 --currency EUR
    fragility evaluate predictions.csv --label sick --score p --full --prevalence 0.02
    fragility evaluate answers.jsonl --correct score.value --confidence score.confidence
    fragility evaluate new.csv --label sick --score p --previous old.csv --case patient
    """  # noqa: D301
    from ..report.answer_text import answer_table, no_group
    from ..report.case_text import case_tables
    from ..report.full_text import full_tables
    from ..report.text import group_tables, heading, table
    from ..report.verdict_text import verdict_lines

    recording = Recording.taken_from(options)
    made = make_report(**options, n_worst=worst)
    if as_json:
        write_json(made.to_json())
    show_text(heading(made) + "\n", stderr=as_json)
    show_lines(verdict_lines(made), stderr=as_json)
    show_text("", stderr=as_json)
    show_models(*(table if full else answer_table)(made), stderr=as_json)
    asked = worst or options["case_column"] is not None
    more = list(case_tables(made)) if full or asked else []
    if full:
        more += [*group_tables(made), *full_tables(made)]
    _show_tables(more, as_json)
    told = [str(found) for found in made.findings if full or found.rule == "new_mistakes"]
    if not full and (few := no_group(made)):
        told.append(few)
    _show_sentences(made, told, as_json)
    recording.add(made)
    following = "" if as_json else next_command(made)
    if following:
        show_text(f"\nNext: {following}")


@click.command(cls=Command)
@prediction_options
@group_option
@confident_option
@click.option(
    "--full",
    is_flag=True,
    help="Every figure, not the Fragility Index alone; and every group, not the largest "
    "differences alone.",
)
@json_option
def compare(as_json: bool, full: bool, **options: Any) -> None:
    """Test every two models against each other on the same cases.

    \b
    fragility compare predictions.csv --label sick --score p_a --score p_b
    fragility compare predictions.csv --label sick --score p_a --score p_b --group site
    """  # noqa: D301
    from ..report.data import json_text
    from ..report.findings import RULES
    from ..report.full_text import about_differences, difference_rows
    from ..report.group_comparison_text import loss_tables
    from ..report.text import about, comparison_rows

    given, is_answers = asked_models(**options)
    if len(given) < 2:
        repeated = "--correct and --confidence" if is_answers else "--score"
        raise click.UsageError(f"Two models at least are needed to compare: repeat {repeated}.")
    made = make_report(**options)
    compared = [rule.code for rule in RULES if rule.compares]
    if as_json:
        content = made.to_dict()
        kept = ["format", "fragility_version", "n_samples", "confidence", "comparisons", "notes"]
        kept.append("group_comparisons")
        found = [f for f in content["findings"] if f["code"] in compared]
        write_json(json_text({**{name: content[name] for name in kept}, "findings": found}))
    show_text(about(made) + "\n", stderr=as_json)
    show_table(*(difference_rows if full else comparison_rows)(made), stderr=as_json)
    if full and made.comparisons:
        show_text("\n" + about_differences(made), stderr=as_json)
    _show_tables(loss_tables(made, full=full), as_json)
    _show_sentences(made, [str(f) for f in made.findings if f.code in compared], as_json)


@click.command(cls=Command)
@prediction_options
@group_option
@evidence_options
@cost_options
@policy_options
@context_options
@output_option("File to write: .html, .md or .json.")
@click.option("--model-card", is_flag=True, help="Write a model card instead, .md, of one model.")
@click.option(
    "--model", metavar="NAME", help="Whose card [that of the model which the verdict names]."
)
@case_options
@force_option
def report(
    output: str,
    model_card: bool,
    model: str | None,
    worst: int | None,
    force: bool,
    **options: Any,
) -> None:
    """Write a report: a page to open, or Markdown, or JSON; or a model card.

    \b
    fragility report predictions.csv --label sick --score p_a --score p_b --output page.html
    fragility report predictions.csv --label sick --score p_a --output card.md --model-card
    """  # noqa: D301
    from ..report.verdict_text import verdict_lines
    from ..tables import check_output, write_file

    endings = {".html": "to_html", ".md": "to_markdown", ".json": "to_json"}
    if model_card:
        check_ending(output, ".md")
    elif model is not None:
        raise click.UsageError("--model is for --model-card, which is not given.")
    method = endings[check_ending(output, *endings)]
    inputs = [path for path in (options["file"], options["previous"]) if path is not None]
    check_output(output, inputs, force=force)
    made = make_report(**options, n_worst=10 if worst is None else worst)
    if model_card:
        write_file(output, made.to_model_card(model))
        _show_sentences(made, verdict_lines(made), True)
        say(f"Wrote {output}: search it for 'TO FILL IN'.")
        return
    write_file(output, getattr(made, method)())
    _show_sentences(made, verdict_lines(made), True)
    held = any(model.worst for model in made.models)
    say(f"Wrote {output}, which holds figures {'and worst cases' if held else 'only'}.")


@click.command(cls=Command)
@prediction_options
@group_option
@cost_options
@policy_options
@context_options
@click.option("--full", is_flag=True, help="Every group, not the dearest ones alone.")
@click.option(
    "--policy",
    "policy_file",
    type=click.Path(),
    metavar="JSON",
    help="File to write the policy to, for `fragility decide`; of one model.",
)
@force_option
@json_option
def cost(as_json: bool, full: bool, policy_file: str | None, force: bool, **options: Any) -> None:
    """Who should decide, the model or a human, at which thresholds, and what that costs.

    \b
    fragility cost predictions.csv --label sick --score p --error-cost '0,1;10,0' --review-cost 0.5
    fragility cost predictions.csv --label sick --score p --error-cost 10 --max-error-rate 0.02 \\
        --policy policy.json
    """  # noqa: D301
    from ..report.data import json_text
    from ..report.group_comparison_text import cost_tables, policy_tables
    from ..report.text import cost_rows, heading, policy_rows
    from ..report.words import shortened
    from ..tables import check_output, write_file

    ways = ("error_cost", "error_cost_column", "miss_cost", "false_alarm_cost")
    if all(options[name] is None for name in ways):
        raise click.UsageError(
            "Say what an error costs: --error-cost, --miss-cost and --false-alarm-cost, or "
            "--error-cost-column."
        )
    if policy_file is not None:
        given, is_answers = asked_models(**options)
        if len(given) != 1:
            option = "--confidence" if is_answers else "--score"
            raise click.UsageError(f"--policy writes the policy of one model: give one {option}.")
        check_ending(policy_file, ".json", option="--policy")
        check_output(policy_file, [options["file"]], force=force)
    made = make_report(**options)
    if as_json:
        content = made.to_dict()
        about = ("title", "context", "n_samples", "costs", "verdict", "notes")
        kept = {name: content[name] for name in about}
        models = [{"name": part["name"], "policy": part["policy"]} for part in content["models"]]
        tests = [{k: pair[k] for k in ("a", "b", "cost")} for pair in content["comparisons"]]
        about_group = ("column", "group", "n", "too_small")
        by_group = {
            name: [{k: part[k] for k in (*first, *about_group, last)} for part in content[name]]
            for name, first, last in (
                ("groups", ("model",), "policy"),
                ("group_comparisons", ("a", "b"), "cost"),
            )
        }
        write_json(json_text({**kept, "models": models, "comparisons": tests, **by_group}))
    show_text(heading(made) + "\n", stderr=as_json)
    promises = []
    for model in made.models:
        if model.policy is not None:
            lead = f"{shortened(model.name)}: " if len(made.models) > 1 else ""
            promises += [f"{lead}{line}" for line in model.policy.sentences()[2:]]
    told = made.verdict.sentences
    show_lines([*told, *(line for line in promises if line not in told)], stderr=as_json)
    show_text("", stderr=as_json)
    show_models(*policy_rows(made), stderr=as_json)
    if cost_rows(made)[1]:
        show_text("", stderr=as_json)
        show_table(*cost_rows(made), stderr=as_json)
    _show_tables([*policy_tables(made, full=full), *cost_tables(made, full=full)], as_json)
    _show_sentences(made, [], as_json)
    if policy_file is not None and made.models[0].policy is not None:
        write_file(policy_file, made.models[0].policy.to_json() + "\n")
        say(f"Wrote {policy_file}: use it with `fragility decide`.")


def _show_tables(tables: Iterable[tuple[str, str, Table]], stderr: bool) -> None:
    """Tables, each after its title and what its rows are."""
    for title, note, found in tables:
        show_text(f"\n{title}. {note}".rstrip() + "\n", stderr=stderr)
        show_table(*found, stderr=stderr)


def _show_sentences(made: Report, texts: list[str], stderr: bool) -> None:
    lines = [*texts, *(f"Note: {note}" for note in made.notes)]
    if lines and not stderr:
        show_text("")
    show_lines(lines, stderr=stderr)
