"""The commands, and what happens when one of them fails."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

import click

from . import BAD_INPUT, FAULT, INTERRUPTED, PASSED
from .config import with_config
from .console import say, warn
from .process import lost_output, was_interrupted

#: The module of each command.
_MODULES = {
    **dict.fromkeys(("evaluate", "compare", "report", "cost"), "predictions"),
    "decide": "deciding",
    "demo": "demo",
    "gate": "gate",
    "history": "history",
    "slices": "slices",
    **dict.fromkeys(("sketch", "merge", "drift"), "sketches"),
}


class _Commands(click.Group):
    """Commands that are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        # Where there is no such command, all of them: click then names the nearest.
        for name in [cmd_name] if cmd_name in _MODULES else _MODULES:
            if name not in self.commands:
                module = import_module(f".{_MODULES[name]}", __package__)
                self.add_command(with_config(getattr(module, name)))
        return super().get_command(ctx, cmd_name)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: fragility demo",
)
@click.version_option(package_name="fragility", prog_name="fragility")
def command() -> None:
    """Measure how bad the confident mistakes of a classifier are, and what they cost.

    Every command reads a file of predictions (CSV or JSON lines, also gzip; Parquet; Arrow; - for
    standard input) with a column of true labels and one column of probabilities for each model.
    """


def run(arguments: Sequence[str]) -> int:
    """Run the command and say how it ended; what a user can mend is said in one line."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # of ≤ and ∞ some terminals have never heard
        sys.stdout.reconfigure(errors="backslashreplace")
    with warnings.catch_warnings():
        # What the library warns of is for the user; what other libraries do is not.
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_args, **_options: warn(str(message))
        return _ended(arguments)


def _ended(arguments: Sequence[str]) -> int:
    try:
        result = command.main(
            list(arguments), "fragility", standalone_mode=False, obj=list(arguments)
        )
        return _complete(result)
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message())
        return BAD_INPUT
    except click.ClickException as error:
        error.show()
        return BAD_INPUT
    except MemoryError:
        return _failed("the data do not fit in memory; hold none of them, with --hold 0.")
    except (Exception, KeyboardInterrupt) as error:
        if was_interrupted() or isinstance(error, (click.Abort, KeyboardInterrupt)):
            say("Interrupted.")
            return INTERRUPTED
        if "FRAGILITY_DEBUG" in os.environ:
            raise
        if isinstance(error, (ValueError, OSError, ImportError, NotImplementedError)):
            return _failed(str(error))
        say(
            f"Error: this is a fault of fragility, not yours: {type(error).__name__}: {error}. "
            "Please report it, with what FRAGILITY_DEBUG=1 prints."
        )
        return FAULT


def _complete(verdict: object) -> int:
    """Exit code of a command that came to its end: its verdict, however little could be printed.

    A command without a verdict was run for what it prints: to lose that is a failure.
    """
    lost = lost_output()
    code = int(verdict) if isinstance(verdict, int) else PASSED
    if lost is None:
        return code
    say(f"Error: standard output could not be written ({lost.strerror}); it is incomplete.")
    return code if isinstance(verdict, int) else BAD_INPUT


def _failed(message: str) -> int:
    say(f"Error: {' '.join(message.split())}")
    return BAD_INPUT
