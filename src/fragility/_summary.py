"""Results in a terminal, a notebook or a picture: rows of a name, a value and a note; shares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from math import isnan
from typing import Any

#: Name, value, and a note on it.
SummaryRow = tuple[str, str, str]


class Summary:
    """A result that shows itself as rows: of text, and in a notebook as a table."""

    def _rows(self) -> Iterable[SummaryRow]:
        raise NotImplementedError

    def __repr__(self) -> str:
        rows = self._rows()
        return "\n".join(f"{name:<16} {value:<18} {note}".rstrip() for name, value, note in rows)

    def _repr_html_(self) -> str:
        body = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th><td>{escape(value)}</td>"
            f"<td style='text-align:left;opacity:.7'>{escape(note)}</td></tr>"
            for name, value, note in self._rows()
        )
        return f"<table>{body}</table>"


def samples_row(labels: Iterable[Any], support: Iterable[int]) -> SummaryRow:
    """How many samples there are, and how many of each class."""
    counts = dict(zip(labels, map(int, support), strict=True))
    classes = [f"{label}: {count}" for label, count in counts.items()]
    more = f", ... ({len(classes) - 10} more)" if len(classes) > 10 else ""
    return "samples", str(sum(counts.values())), ", ".join(classes[:10]) + more


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells as text in columns, each as wide as its longest cell."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def percent(share: float) -> str:
    """A share in per cent. A positive share is never shown as 0 %, one below 1 never as 100 %."""
    if isnan(share):
        return "undefined"
    if 0.0 < share < 0.0005:
        return f"{100 * share:.1g} %"
    if 0.9995 <= share < 1.0:
        return f"{100 * min(share, 0.99999):.3f} %"
    return f"{100 * share:.1f} %"


def threshold(score: float) -> str:
    """A threshold in per cent, with enough digits to decide by it."""
    return f"{100 * score:.4g} %"
