"""What a person sees: tables on standard output, everything else on standard error."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from textwrap import fill
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

#: A table that nobody looks at on a terminal is not wrapped.
_WIDE = 10_000
#: Blanks between columns.
_GAP = 2
_HANGING: dict[str, Any] = {"subsequent_indent": "  ", "break_on_hyphens": False}


def write(text: str) -> None:
    """To standard output, as it is."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


def write_json(text: str) -> None:
    """JSON to standard output; letters that it has no code for are escaped."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(json.loads(text), indent=2)
    write(text)


def say(text: str) -> None:
    """To standard error, as it is."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def warn(text: str) -> None:
    """A warning in one line."""
    say(f"Warning: {' '.join(text.split())}")


def show_text(text: str, *, stderr: bool = False) -> None:
    """A text as it is, where the tables go."""
    (say if stderr else write)(text)


def show_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, stderr: bool = False) -> None:
    """A table: first column left, the others right."""
    table = Table(box=None, pad_edge=False)
    for place, cell in enumerate(head):
        table.add_column(Text(cell), justify="left" if place == 0 else "right")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # text, so that no name is taken for markup
    _console(stderr).print(table)


def show_models(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, stderr: bool = False
) -> None:
    """A table with a column for each model: as many side by side as the terminal is wide."""
    lines = [head, *rows]
    widths = [max(cell_len(line[place]) for line in lines) for place in range(len(head))]
    room = _console(stderr).width - widths[0]
    blocks: list[list[int]] = [[]]
    for place in range(1, len(head)):
        used = sum(widths[other] + _GAP for other in blocks[-1])
        if blocks[-1] and used + widths[place] + _GAP > room:
            blocks.append([])
        blocks[-1].append(place)
    for number, block in enumerate(blocks):
        if number:
            show_text("", stderr=stderr)
        parts = [[line[place] for place in (0, *block)] for line in lines]
        show_table(parts[0], parts[1:], stderr=stderr)


def show_lines(lines: Sequence[str], *, stderr: bool = False) -> None:
    """Sentences, one under the other, broken at the width of the terminal."""
    console = _console(stderr)
    for line in lines:
        shown = f"• {line}"
        if console.is_terminal:
            # A number and its per cent sign stay together.
            kept = fill(shown.replace(" %", "\N{NO-BREAK SPACE}%"), console.width, **_HANGING)
            shown = kept.replace("\N{NO-BREAK SPACE}%", " %")
        console.print(Text(shown), soft_wrap=True)


def _console(stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = shutil.get_terminal_size().columns if stream.isatty() else _WIDE
    return Console(file=stream, width=width, highlight=False)


@contextmanager
def progress_bar(description: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, nothing elsewhere; call what it gives with the number done so far."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,} rows"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda done: bar.update(task, completed=done)
