"""A bar that says how far training is, and what it has come to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.deep.trainer import Epoch

__all__ = ["epoch_bar", "summary"]


def summary(epoch: Epoch) -> str:
    """One epoch in a line."""
    return (
        f"loss {epoch.loss:.4f}  validation CE {epoch.cross_entropy:.4f}  "
        f"FI {epoch.fragility_index:.4f}"
    )


@contextmanager
def epoch_bar(total: int, *, shown: bool) -> Iterator[Callable[[Epoch], None]]:
    """A bar over the epochs, to be told each of them; nothing if it is not shown."""
    if not shown:
        yield lambda epoch: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        yield lambda epoch: bar.update(task, completed=epoch.number, description=summary(epoch))
