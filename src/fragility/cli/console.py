"""What a person sees: tables on standard output, everything else on standard error.

Rich is imported where it draws, on terminals. Into a file or a pipe go the same lines, at once.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from textwrap import fill
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

if TYPE_CHECKING:
    from rich.console import Console

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
    lines = [head, *rows]
    if _is_plain((cell for line in lines for cell in line), stderr):
        show_text("\n".join(_padded(lines)), stderr=stderr)
        return
    from rich.table import Table
    from rich.text import Text

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
    widths = _widths(lines)
    room = _room(stderr) - widths[0]
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
    if _is_plain(lines, stderr):
        for line in lines:
            show_text(f"• {line}", stderr=stderr)
        return
    from rich.text import Text

    console = _console(stderr)
    for line in lines:
        shown = f"• {line}"
        if console.is_terminal:
            # A number and its per cent sign stay together.
            kept = fill(shown.replace(" %", "\N{NO-BREAK SPACE}%"), console.width, **_HANGING)
            shown = kept.replace("\N{NO-BREAK SPACE}%", " %")
        console.print(Text(shown), soft_wrap=True)


def _is_plain(texts: Iterable[str], stderr: bool) -> bool:
    """Whether there is nothing to draw: no terminal, and no tab or line break in a text."""
    stream = sys.stderr if stderr else sys.stdout
    return not stream.isatty() and all(text.isprintable() for text in texts)


def _widths(lines: Sequence[Sequence[str]]) -> list[int]:
    """Of each column of a table."""
    return [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]


def _padded(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = _widths(lines)
    for line in lines:
        blanks = [" " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True)]
        rest = (" " * _GAP + blank + cell for cell, blank in zip(line[1:], blanks[1:], strict=True))
        yield "".join([line[0], blanks[0], *rest])


def _room(stderr: bool) -> int:
    stream = sys.stderr if stderr else sys.stdout
    return shutil.get_terminal_size().columns if stream.isatty() else _WIDE


def _console(stderr: bool) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, width=_room(stderr), highlight=False)


@contextmanager
def progress_bar(description: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, nothing elsewhere; call what it gives with the number done so far."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
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
