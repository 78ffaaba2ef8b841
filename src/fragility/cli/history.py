"""The command that looks at a history: what was recorded, and whether errors became frequent."""

from __future__ import annotations

import click

from . import FAILED, PASSED
from .console import say, show_lines, show_table, show_text, write_json
from .options import Command, check_ending, confidence_level_option, force_option, json_option


@click.command(cls=Command)
@click.argument("file", type=click.Path())
@click.option("--model", metavar="NAME", help="Only this model [each].")
@click.option(
    "--max-error-rate",
    type=float,
    metavar="SHARE",
    help="The promised share of errors among cases decided alone [the upper limit of the first "
    "record's].",
)
@click.option("--since", metavar="DATE", help="Begin with the records of this date.")
@confidence_level_option(
    "One minus the probability of a false alarm over all looks; also of the intervals."
)
@click.option("--output", type=click.Path(), metavar="FILE", help="Also write a page of it: .html.")
@force_option
@json_option
def history(
    file: str,
    model: str | None,
    max_error_rate: float | None,
    since: str | None,
    confidence: float,
    output: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """Show what --record has written; exit 1 if errors of cases decided alone raise an alarm.

    The alarm may be asked after every record: all looks at a model together have at most 5 % false
    alarms.

    \b
    fragility gate week.csv --label sick --score p --max-fi 0.2 --record history.jsonl
    fragility history history.jsonl --max-error-rate 0.02 --output history.html
    """  # noqa: D301
    from ..report.data import json_text
    from ..report.history import histories, is_ordered
    from ..report.records import parse_date, read_history

    try:
        begin = None if since is None else parse_date(since)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--since") from None
    if output is not None:
        from ..tables import check_output

        check_ending(output, ".html")
        check_output(output, [file], force=force)
    records = read_history(file)
    found = histories(
        records, model=model, since=begin, max_error_rate=max_error_rate, confidence=confidence
    )
    if not is_ordered(records):
        say("Note: the records are not in order of date; they are shown and counted in that order.")
    on = any(part.alarm.alarm for part in found)
    if as_json:
        content = {"alarm": on, "confidence": confidence, "models": [p.to_dict() for p in found]}
        write_json(json_text(content))
    for number, part in enumerate(found):
        if number:
            show_text("", stderr=as_json)
        if len(found) > 1:
            show_text(f"{part.title}\n", stderr=as_json)
        show_table(*part.rows(), stderr=as_json)
        show_text("", stderr=as_json)
        show_lines(part.sentences, stderr=as_json)
    if output is not None:
        from ..report.history_page import history_page
        from ..tables import write_file

        write_file(output, history_page(found))
        say(f"Wrote {output}.")
    return FAILED if on else PASSED
