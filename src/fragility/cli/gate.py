"""The command for continuous integration: fail when a model is not good enough."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from . import FAILED, PASSED
from .console import say, show_table, warn, write_json
from .options import (
    Command,
    against_option,
    check_ending,
    confident_option,
    cost_options,
    group_option,
    json_option,
    prediction_options,
)
from .recording import GateFiles, Recording, gate_file_options, record_options
from .reports import make_report

if TYPE_CHECKING:
    from ..report import Report
    from ..report.gates import Check
    from ..report.limits import Limits

#: Limits with an option of their own, by figure.
_NAMED = {
    "fragility_index": ("--max-fi", "Largest Fragility Index."),
    "ratio": ("--max-ratio", "Largest ratio."),
    "log_loss": ("--max-log-loss", "Largest log-loss."),
    "calibration_error": ("--max-calibration-error", "Largest calibration error."),
    "confident_error_rate": (
        "--max-confident-errors",
        "Most confident mistakes, as a share of all cases.",
    ),
    "auc": ("--min-auc", "Least AUC."),
    "cost": ("--max-cost", "Largest cost per case."),
}


def _limit_options(command: Any) -> Any:
    for name, (option, words) in reversed(_NAMED.items()):
        command = click.option(option, f"limit_{name}", type=float, metavar="X", help=words)(
            command
        )
    return command


@click.command(cls=Command)
@prediction_options
@group_option
@confident_option
@cost_options
@against_option
@click.option(
    "--baseline",
    type=click.Path(),
    metavar="JSON",
    help="Figures of the present model on other cases, as --save-baseline writes them: the same, "
    "by tests of two samples.",
)
@click.option(
    "--margin",
    type=float,
    metavar="X",
    help="Pass only what is shown to be worse by less than this: cost per case, or log-loss "
    "without costs (of answers the share of wrong ones).",
)
@click.option(
    "--tolerance",
    type=float,
    metavar="SHARE",
    help="How much figures differ from one training to the next, relative: adds to the standard "
    "errors [0.01].",
)
@_limit_options
@click.option(
    "--max",
    "largest",
    multiple=True,
    metavar="FIGURE=X",
    help="Largest value of any figure, by its name in JSON: brier=0.1, error_rate=0.02.",
)
@click.option(
    "--min", "least", multiple=True, metavar="FIGURE=X", help="Least value of any figure."
)
@click.option(
    "--upper-limit",
    is_flag=True,
    help="Hold the worse ends of the intervals, not the estimates, to the limits.",
)
@click.option(
    "--each-group", is_flag=True, help="Hold all of this in each group, too (see --group)."
)
@click.option(
    "--save-baseline",
    type=click.Path(),
    metavar="JSON",
    help="File to write the figures to, for --baseline later, if the gate passes.",
)
@record_options
@gate_file_options
@json_option
def gate(
    as_json: bool,
    against: str | None,
    baseline: str | None,
    margin: float | None,
    tolerance: float | None,
    largest: tuple[str, ...],
    least: tuple[str, ...],
    upper_limit: bool,
    each_group: bool,
    save_baseline: str | None,
    **options: Any,
) -> int:
    """Pass (exit 0) or fail (exit 1) by limits, the present model or a baseline; bad input is 2.

    \b
    fragility gate predictions.csv --label sick --score p_new --against p_old
    fragility gate predictions.csv --label sick --score p --max-log-loss 0.4 --max brier=0.1
    fragility gate old.csv --label sick --score p --save-baseline old.json
    fragility gate new.csv --label sick --score p --baseline old.json
    """  # noqa: D301
    from ..report import words
    from ..report.baseline_files import read_baseline
    from ..report.contrasts import TOLERANCE
    from ..report.data import json_text
    from ..report.gates import check_gates, not_held
    from ..tables import check_output

    given = {name: options.pop(f"limit_{name}") for name in _NAMED}
    limits = _limits(given, largest, least, upper_limit)
    compared = against is not None or baseline is not None
    _check_options(options, limits, compared, margin, tolerance, each_group, save_baseline)
    if save_baseline is not None:
        check_ending(save_baseline, ".json", option="--save-baseline")
        inputs = [path for path in (options["file"], baseline) if path is not None]
        check_output(save_baseline, inputs, force=options["force"])
    recording, files = (
        Recording.taken_from(options),
        GateFiles.taken_from(options, also=save_baseline is not None),
    )
    old = None if baseline is None else read_baseline(baseline)
    made = make_report(**options, against=against)
    present = made.context.against
    held: dict[str, Any] = {
        "against": present,
        "baseline": old,
        "margin": margin,
        "tolerance": TOLERANCE if tolerance is None else tolerance,
        "each_group": each_group,
    }
    asked = compared or not limits.empty
    checks = check_gates(made, limits, **held) if asked else []
    unheld = not_held(made, limits, **held) if asked else []
    passed = all(check.passed for check in checks)
    if as_json:
        content = {
            "passed": passed,
            "checks": [vars(check) for check in checks],
            "not_held": unheld,
            "report": made.to_dict(),
        }
        write_json(json_text(content))
    if checks:
        head = ["model", "figure", "value", "", "limit", ""]
        show_table(head, [check.cells() for check in checks], stderr=as_json)
    for model in made.models:  # the index is never shown alone
        figures = ("fragility_index", "ratio", "auc", "log_loss")
        told = [f"{made.titles[n]} {words.number(model.raw.figures[n].value)}" for n in figures]
        say(f"{words.shortened(model.name)}: {', '.join(told)}.")
    if limits.passed_by_shrinking and not compared:
        warn("scores that are shrunk pass --max-fi; add --max-ratio, --max-log-loss or --against.")
    if old is not None and (different := old.warning(made)):
        warn(different)
    _say_verdict(checks, unheld, asked)
    files.write(checks, unheld, options["file"], stderr=as_json)
    recording.add(made, checks)
    if save_baseline is not None:
        _save(save_baseline, made, present, passed)
    return PASSED if passed else FAILED


def _say_verdict(checks: list[Check], unheld: list[str], asked: bool) -> None:
    for sentence in unheld:
        say(f"Not held: {sentence}")
    failed = [check for check in checks if not check.passed]
    for check in failed:
        say(f"Gate failed: {check.reason}")
    if not failed:
        say("Gate passed." if asked else "Nothing was held: no limit, --against or --baseline.")


def _check_options(
    options: dict[str, Any],
    limits: Limits,
    compared: bool,
    margin: float | None,
    tolerance: float | None,
    each_group: bool,
    save_baseline: str | None,
) -> None:
    """Refuse options that would do nothing."""
    if limits.empty and not compared and save_baseline is None:
        raise click.UsageError(
            "Nothing to hold the model to: give --against, --baseline, --max-log-loss, ..."
        )
    for option, value in (("--margin", margin), ("--tolerance", tolerance)):
        if value is not None and not compared:
            raise click.UsageError(f"{option} is for --against and --baseline; give one of them.")
    if limits.upper_limit and limits.empty:
        raise click.UsageError("--upper-limit is for limits such as --max-log-loss; give one.")
    if each_group and not options["groups"]:
        raise click.UsageError("--each-group is for groups: name their column, --group COLUMN.")
    if each_group and limits.empty and not compared:
        raise click.UsageError("--each-group holds nothing without a limit or a comparison.")
    if options["groups"] and not each_group and save_baseline is None:
        raise click.UsageError("--group is for --each-group; give both.")
    ways = ("error_cost", "error_cost_column", "miss_cost")
    if "cost" in limits.largest and all(options[name] is None for name in ways):
        raise click.UsageError(
            "--max-cost needs costs: --error-cost, --miss-cost and --false-alarm-cost, or "
            "--error-cost-column."
        )


def _limits(
    named: dict[str, float | None], largest: Iterable[str], least: Iterable[str], upper: bool
) -> Limits:
    """Limits of all options, each figure once."""
    from ..report.limits import Limits

    found: dict[str, dict[str, float]] = {"--max": {}, "--min": {}}
    for name, limit in named.items():
        if limit is not None:
            found[_NAMED[name][0][:5]][name] = limit
    for option, texts in (("--max", largest), ("--min", least)):
        for text in texts:
            name, equals, number = text.partition("=")
            try:
                value = float(number)
            except ValueError:
                equals = ""
            if not equals:
                raise click.BadParameter(
                    f"{text!r} is not a figure with its limit, such as brier=0.1.",
                    param_hint=option,
                )
            name = name.strip()
            if name in found[option]:
                raise click.UsageError(f"{name} has two limits; give one.")
            found[option][name] = value
    return Limits(found["--max"], found["--min"], upper)


def _save(path: str, made: Report, present: str | None, passed: bool) -> None:
    """Write the figures of the new models, if they passed."""
    from ..report.baseline_files import baseline_text
    from ..report.baselines import Baseline
    from ..tables import write_file

    if not passed:
        say(f"Did not write {path}: the gate failed.")
        return
    about: dict[str, Any] = {"file": made.provenance.source, "sha256": made.provenance.sha256}
    settings = {
        "confidence": made.confidence,
        "clustered": made.clustered,
        "min_cell": made.min_cell,
    }
    write_file(path, baseline_text(Baseline.of(made, without=present), **about, settings=settings))
    say(f"Wrote {path}: hold later models to it with --baseline.")
