"""The command: list the experiments, run them, report what came out, check that it still does."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from experiments import files, reporting, runner, verify
from experiments.experiment import NAMES, Experiment, find
from experiments.journal import FILE
from experiments.page import about
from fragility.cli.console import say, show_lines

__all__ = ["main"]

_HERE = Path(__file__).parent
FULL, QUICK = _HERE / "results", _HERE / "results-quick"
_ALL = "all"
_SHOWN_WARNINGS = 5
_SHOWN_DIFFERENCES = 40


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: python -m experiments run example1",
)
def command() -> None:
    """Run the experiments of the paper and see our numbers beside the printed ones."""


@command.command("list")
@click.option("--results", type=click.Path(path_type=Path), help="Folder of results.")
def list_command(results: Path | None) -> None:
    """Every experiment: what it shows, how much it runs, what is there already."""
    rows = []
    for name in NAMES:
        try:
            one = find(name)
        except ImportError as error:
            rows.append([name, "–", "–", f"cannot be loaded: {error}"])
            continue
        rows.append([name, str(one.trials), _there((results or FULL) / name), one.title])
    head = ["experiment", "trials", "results", "what it shows"]
    widths = [max(len(row[place]) for row in [head, *rows]) for place in range(3)]
    for row in (head, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo("  ".join([*cells, row[3]]))
    click.echo(
        "\nTo run one: python -m experiments run NAME (--quick: a small version, in seconds)."
        "\nThe results, all on one page: index.html in experiments/results."
    )


def _there(folder: Path) -> str:
    try:
        record = files.record_of(folder)
        if record is None:
            return "begun" if (folder / FILE).is_file() else "none"
    except ValueError:
        return "unreadable"
    return f"{record.trials} trial{'s' if record.trials > 1 else ''}" + (
        ", quick" if record.quick else ""
    )


@command.command("run")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--trials", type=int, help="Trials of each condition. Default: the paper's number.")
@click.option("--jobs", type=int, help="Processes at a time. Default: one for each core.")
@click.option("--quick", is_flag=True, help="A small version that shows that everything works.")
@click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of results. Default: experiments/results, with --quick experiments/results-quick.",
)
@click.option("--restart", is_flag=True, help="Forget the trials of a run that was cut off.")
@click.option(
    "--trust-journal",
    is_flag=True,
    help="Go on with a run that was cut off, although the code is another now.",
)
@click.option("--extend", is_flag=True, help="Keep the results there are; run what they lack.")
def run_command(
    names: tuple[str, ...],
    trials: int | None,
    jobs: int | None,
    quick: bool,
    results: Path | None,
    restart: bool,
    trust_journal: bool,
    extend: bool,
) -> None:
    """Run experiments by name (or "all"), then write their tables, figures and the page.

    A run that was cut off goes on where it was: give the same command again.
    """
    root = results or (QUICK if quick else FULL)
    experiments = _possible([find(name) for name in (NAMES if names == (_ALL,) else names)])
    for one in experiments:
        with _progress(one.name) as progress:
            outcome = runner.run(
                one,
                root / one.name,
                trials=trials,
                jobs=min(_cores(), runner.MOST_JOBS) if jobs is None else jobs,
                quick=quick,
                restart=restart,
                trust_journal=trust_journal,
                extend=extend,
                progress=progress,
            )
        _tell(one.name, outcome)
    shown = reporting.report(root, [one.name for one in experiments])
    _show(shown, root)


def _possible(wanted: Sequence[Experiment]) -> list[Experiment]:
    """Experiments that can be run here; of the others it is said what they lack."""
    possible, flaws = [], []
    for one in wanted:
        flaw = one.lacks() if one.lacks is not None else ""
        if flaw:
            flaws.append(f"{one.name} is skipped. {flaw}")
        else:
            possible.append(one)
    if not possible:
        raise ValueError(" ".join(flaws))
    for flaw in flaws:
        say(flaw)
    return possible


def _tell(name: str, outcome: runner.Outcome) -> None:
    kept = f" and {outcome.kept} before" if outcome.kept else ""
    say(f"{name}: all done, {outcome.ran} now{kept}; {outcome.folder / 'results.csv'}")
    for text, count in outcome.warned.most_common(_SHOWN_WARNINGS):
        say(f"  warned {count} time{'s' if count > 1 else ''}: {text[:200]}")
    if len(outcome.warned) > _SHOWN_WARNINGS:
        say(f"  and {len(outcome.warned) - _SHOWN_WARNINGS} other warnings")


@command.command("report")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--quick", is_flag=True, help="Of the quick runs.")
@click.option("--results", type=click.Path(path_type=Path), help="Folder of results.")
def report_command(names: tuple[str, ...], quick: bool, results: Path | None) -> None:
    """Make tables, figures and the page again from the results; nothing is run."""
    root = results or (QUICK if quick else FULL)
    chosen = None if names in ((), (_ALL,)) else names
    _show(reporting.report(root, chosen), root)


@command.command("verify")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--conditions", default=2, show_default=True, help="Conditions of each experiment.")
@click.option("--trials", default=1, show_default=True, help="Trials of each condition.")
@click.option(
    "--tolerance", default=verify.TOLERANCE, show_default=True, help="Of numbers, relative."
)
@click.option("--jobs", type=int, help="Processes at a time. Default: one for each core.")
@click.option("--results", type=click.Path(path_type=Path), help="Folder of results.")
def verify_command(
    names: tuple[str, ...],
    conditions: int,
    trials: int,
    tolerance: float,
    jobs: int | None,
    results: Path | None,
) -> None:
    """Run a few trials again and compare their rows with the results that are there.

    Without names, all experiments that have results, but for those that train networks. It ends
    with 1 where anything differs, and says what.
    """
    root = results or FULL
    chosen = list(NAMES) if names in ((), (_ALL,)) else list(names)
    differences, checked = [], 0
    for one in map(find, chosen):
        if not names and one.name in verify.LONG:
            say(f"{one.name}: not checked, it trains networks; name it to check it.")
        elif chosen != list(names) and files.record_of(root / one.name) is None:
            say(f"{one.name}: not checked, there are no results of it in {root}.")
        else:
            found = verify.verify(
                one,
                root / one.name,
                conditions=conditions,
                trials=trials,
                tolerance=tolerance,
                jobs=min(_cores(), runner.MOST_JOBS) if jobs is None else jobs,
            )
            checked += found.rows
            differences += found.differences
            unlike = f", {len(found.differences)} differences" if found.differences else ""
            trials_run = f"{found.units} trial{'s' if found.units > 1 else ''}"
            say(f"{one.name}: {trials_run} run again, {found.rows} rows{unlike}")
    if not checked:
        raise ValueError(f"Nothing was checked: there are no results in {root}.")
    if differences:
        shown = "\n".join(differences[:_SHOWN_DIFFERENCES])
        rest = len(differences) - _SHOWN_DIFFERENCES
        more = f"\nand {rest} other differences" if rest > 0 else ""
        raise verify.DifferenceError(
            f"{len(differences)} differences from the results in {root}:\n{shown}{more}\nRun these "
            "experiments again, or take back what changed them."
        )


def _show(shown: Sequence[reporting.Reported], root: Path) -> None:
    for one in shown:
        click.echo(f"\n{one.experiment.name}: {one.experiment.title}")
        click.echo(f"  {about(one)}")
        if one.verdicts:
            show_lines(
                [
                    f"{verdict.holds.upper() if verdict else 'NOT JUDGED'} ({claim.where}): "
                    f"{claim.says}{' ' + verdict.because if verdict else ''}"
                    for claim, verdict in one.verdicts
                ]
            )
    click.echo(f"\nAll of it, to open in a browser: {root / 'index.html'}")


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def _progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with the time that remains; where no one looks on, a line at every tenth."""
    if not sys.stderr.isatty():
        yield _Lines(name)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        # Units differ in length: the whole run so far says more than its last seconds.
        TimeRemainingColumn(),
    )
    console = Console(file=sys.stderr)
    with Progress(*columns, console=console, speed_estimate_period=3600.0) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class _Lines:
    """Progress as lines of text."""

    def __init__(self, name: str) -> None:
        self.name, self._begun, self._first, self._tenth, self._last = name, 0.0, -1, -1, 0.0

    def __call__(self, done: int, total: int) -> None:
        """So many of a total are done."""
        now = time.monotonic()
        if self._first < 0:
            self._begun, self._first = now, done
        elif done < total and (done * 10 // total == self._tenth or now < self._last + 2.0):
            return
        self._tenth, self._last = done * 10 // total, now
        text = f"{self.name}: {done} of {total}"
        if done > self._first and done < total:
            left = (now - self._begun) / (done - self._first) * (total - done)
            text += f", about {_duration(left)} left"
        say(text)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def main(arguments: Sequence[str]) -> int:
    """Run the command; what a user can mend is said without a traceback."""
    try:
        command.main(list(arguments), "python -m experiments", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message())
        return 2
    except click.ClickException as error:
        error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        say("Interrupted. What finished is kept: give the same command again to continue.")
        return 130
    except (runner.TrialError, verify.DifferenceError) as error:
        say(f"Error: {error}")
        return 1
    except (ValueError, OSError, ImportError) as error:
        if "FRAGILITY_DEBUG" in os.environ:
            raise
        say(f"Error: {error}")
        return 2
    return 0
