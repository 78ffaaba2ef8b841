"""Shared by the Displays: the lazy import of matplotlib, colours, and labels."""

from __future__ import annotations

from math import isfinite, isinf
from typing import Any

from ... import _names
from ..._optional import needed_for

# Blue and vermilion of Okabe and Ito, told apart by every kind of colour vision.
RIGHT, WRONG, GREY = "#0072B2", "#D55E00", "#5F5F5F"
#: Several models: told apart by every kind of colour vision, in grey by the styles.
COLOURS = (RIGHT, WRONG, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (6, 2, 1.5, 2)), (0, (1.5, 1.5)), (0, (10, 3)))
#: Behind words that a line may cross.
BACKED = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5}
_LONGEST_NAME = 18


def pyplot() -> Any:
    """matplotlib.pyplot, imported when a picture is made and not before."""
    with needed_for("Displays draw with matplotlib", "plot"):
        import matplotlib.pyplot as plt
    return plt


def style(place: int) -> dict[str, Any]:
    """Colour and style of the line of a model, by its place among the models."""
    return {"color": COLOURS[place % len(COLOURS)], "linestyle": STYLES[place % len(STYLES)]}


def tidy(ax: Any) -> None:
    """Only the frame lines that carry a scale."""
    ax.spines[["top", "right"]].set_visible(False)


def write_note(ax: Any, x: float, y: float, text: str, colour: str, **options: Any) -> None:
    """Bold words below (x, y), in fractions of the axes."""
    options |= {"transform": ax.transAxes, "va": "top", "weight": "bold", "bbox": BACKED}
    ax.text(x, y, text, color=colour, **options)


def summary(fragility: float, ratio: float, auc: float, target: float) -> str:
    """The index beside its ratio and AUC, without which it can be gamed."""
    at = "" if target == 0.0 else f" at target {target:g}"
    return f"FI {number(fragility)}{at},  ratio {number(ratio)},  AUC {number(auc)}"


def number(value: float) -> str:
    """Three digits; ∞ and undefined in words that fit a label."""
    if isinf(value):
        return "∞" if value > 0.0 else "−∞"
    return f"{value:.3g}" if isfinite(value) else "undefined"


def shortened(label: Any) -> str:
    """Name of a class, cut to fit an axis."""
    return _names.shortened(label, _LONGEST_NAME)
