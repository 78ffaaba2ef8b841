"""Results in a terminal, a notebook or a picture: rows of a name, a value and a note; shares."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

#: Name, value, and a note on it.
SummaryRow = tuple[str, str, str]


class Summary:
    """A result that shows itself as rows: of text, and in a notebook as a table."""

    def _rows(self) -> Iterable[SummaryRow]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return as_text(self._rows())

    def _repr_html_(self) -> str:
        return as_html(self._rows())


def as_text(rows: Iterable[SummaryRow]) -> str:
    """Rows in columns."""
    return "\n".join(f"{name:<16} {value:<18} {note}".rstrip() for name, value, note in rows)


def as_html(rows: Iterable[SummaryRow]) -> str:
    """Rows as a table."""
    body = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td>{escape(value)}</td>"
        f"<td style='text-align:left;opacity:.7'>{escape(note)}</td></tr>"
        for name, value, note in rows
    )
    return f"<table>{body}</table>"


def percentage(share: float) -> str:
    """A share in per cent; a small one is not rounded to nothing, nor a large one to all."""
    if share <= 0.0 or share >= 1.0:
        return f"{100 * share:.0f} %"
    if share < 0.0005:
        return f"{100 * share:.1g} %"
    return f"{100 * min(share, 0.999):.1f} %"
