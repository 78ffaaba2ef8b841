"""The command for continuous integration: fail when a model is not good enough."""

from __future__ import annotations

from typing import Any

import click

from . import FAILED, PASSED
from .console import say, show_table, warn, write_json
from .options import cost_options, json_option, prediction_options
from .recording import GateFiles, Recording, gate_file_options, record_options
from .reports import make_report


@click.command()
@prediction_options
@cost_options
@click.option(
    "--max-fi", "fragility_index", type=float, metavar="X", help="Largest Fragility Index."
)
@click.option("--max-ratio", "ratio", type=float, metavar="X", help="Largest ratio.")
@click.option("--max-log-loss", "log_loss", type=float, metavar="X", help="Largest log-loss.")
@click.option("--min-auc", "auc", type=float, metavar="X", help="Least AUC.")
@click.option("--max-cost", "cost", type=float, metavar="X", help="Largest cost per case.")
@click.option(
    "--baseline",
    type=click.Path(),
    metavar="JSON",
    help="What `evaluate --json` printed for the model to beat: index, ratio, log-loss and AUC "
    "(and cost) must not be worse.",
)
@click.option(
    "--tolerance",
    default=0.0,
    show_default=True,
    help="How much worse than the baseline is allowed, relative.",
)
@click.option(
    "--upper-limit",
    is_flag=True,
    help="Hold the upper limits of the intervals, not the estimates, against --max-fi and "
    "--max-cost.",
)
@record_options
@gate_file_options
@json_option
def gate(
    as_json: bool, baseline: str | None, tolerance: float, upper_limit: bool, **options: Any
) -> int:
    """Pass (exit 0) or fail (exit 1) by limits or a baseline; bad input is exit 2.

    \b
    fragility gate predictions.csv --label sick --score p --max-fi 0.2 --min-auc 0.8
    fragility evaluate old.csv --label sick --score p --json > old.json
    fragility gate new.csv --label sick --score p --baseline old.json
    """  # noqa: D301
    from ..report import words
    from ..report.baselines import HELD, read_baseline
    from ..report.data import json_text
    from ..report.gates import Limits, check_gates

    limits = Limits(**{name: options.pop(name) for name in HELD}, upper_limit=upper_limit)
    if limits.empty and baseline is None:
        raise click.UsageError("Nothing to hold the model to: give --max-fi, --baseline, ...")
    if tolerance and baseline is None:
        raise click.UsageError("--tolerance is for --baseline, which is not given.")
    if upper_limit and limits.fragility_index is None and limits.cost is None:
        raise click.UsageError("--upper-limit is for --max-fi and --max-cost; give one of them.")
    no_cost = options["error_cost"] is None and options["error_cost_column"] is None
    if limits.cost is not None and no_cost:
        raise click.UsageError("--max-cost needs --error-cost or --error-cost-column.")
    recording, files = Recording.taken_from(options), GateFiles.taken_from(options)
    old = None if baseline is None else read_baseline(baseline)
    made = make_report(**{**options, "no_calibration": True})
    checks = check_gates(made, limits, old, tolerance)
    failed = [check for check in checks if not check.passed]
    not_held = [] if old is None else old.not_held(made)
    if as_json:
        content = {
            "passed": not failed,
            "checks": [vars(check) for check in checks],
            "not_held": not_held,
            "report": made.to_dict(),
        }
        write_json(json_text(content))
    head = ["model", "figure", "value", "", "limit", ""]
    show_table(head, [check.cells() for check in checks], stderr=as_json)
    for model in made.models:  # the index is never shown alone
        figures = ("fragility_index", "ratio", "auc", "log_loss")
        told = [f"{made.titles[n]} {words.number(model.raw.figures[n].value)}" for n in figures]
        say(f"{words.shortened(model.name)}: {', '.join(told)}.")
    if limits.passed_by_shrinking and old is None:
        warn("scores that are shrunk pass --max-fi; add --max-ratio, --max-log-loss or --baseline.")
    if old is not None and (different := old.warning(made)):
        warn(different)
    for sentence in not_held:
        say(f"Not held: {sentence}")
    for check in failed:
        say(f"Gate failed: {check.reason}")
    if not failed:
        say("Gate passed.")
    files.write(checks, options["file"], stderr=as_json)
    recording.add(made, checks)
    return FAILED if failed else PASSED
