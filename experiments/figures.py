"""Figures: one style, and files that come out the same byte for byte."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import font_manager, style
from matplotlib.figure import Figure

__all__ = ["COLOURS", "GREY", "band", "colour", "panels", "svg"]

#: Okabe and Ito's colours, told apart by every kind of colour vision; the yellow is too light.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#5F5F5F"
_MARKERS = "osD^vPX"
#: Coordinates beyond a thousandth of a point: their last digits are not those of all machines.
_COORDINATE = re.compile(r"-?\b[1-9]\d*\.\d{4,}")

_STYLE = {
    "svg.hashsalt": "fragility",
    "svg.fonttype": "path",
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.0,
    "path.simplify": False,
}


def colour(place: int) -> str:
    """Colour of the series at a place."""
    return COLOURS[place % len(COLOURS)]


def panels(columns: int = 1, rows: int = 1, *, width: float = 0.0, height: float = 0.0) -> Any:
    """A figure and its axes, an array of `rows` × `columns` (always an array)."""
    size = (width or 3.6 * columns + 0.8, height or 2.9 * rows + 0.3)
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def band(
    ax: Any,
    x: Sequence[float],
    mean: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    *,
    label: str,
    place: int,
) -> None:
    """A line of means with its band, in the colour and with the marker of its place."""
    marker = _MARKERS[place % len(_MARKERS)]
    dashes = ("-", "--", ":")[place // len(COLOURS) % 3]
    ax.plot(x, mean, marker=marker, color=colour(place), linestyle=dashes, label=label)
    ax.fill_between(x, low, high, color=colour(place), alpha=0.15, linewidth=0)


@cache
def _own_fonts() -> None:
    """Take matplotlib's own fonts only, whatever its cache says.

    The font of the same name of a system has other numbers for its letters, and so other bytes.
    """
    shipped = Path(matplotlib.get_data_path(), "fonts", "ttf")
    manager = font_manager.fontManager
    manager.ttflist = []
    for file in sorted(shipped.glob("*.ttf")):
        manager.addfont(file)


def svg(draw: Callable[[], Figure]) -> str:
    """A figure as SVG: whatever the user has configured, without a date."""
    _own_fonts()
    text = io.StringIO()
    with style.context(["default", _STYLE], after_reset=True):
        figure = draw()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    if figure.number if hasattr(figure, "number") else False:  # made by pyplot, which keeps it
        matplotlib.pyplot.close(figure)
    rounded = _COORDINATE.sub(lambda found: f"{float(found[0]):.3f}", text.getvalue())
    return "\n".join(line.rstrip() for line in rounded.splitlines()) + "\n"
