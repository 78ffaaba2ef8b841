"""Numbers that the page shows, as people read them."""

from __future__ import annotations

from math import inf, isnan

from fragility.report import words
from fragility.report.context import Context
from fragility.report.policy_cells import GRID

__all__ = ["cell", "check_row", "cuts_of", "is_shown", "live", "shown_text", "value"]

#: Cells of the table of models, and of the card.
CELLS = ("thresholds", "cost", "alone", "wrong", "reviews")


def cell(tab, model, name):
    return tab.text(f'#models tr[data-model="{model}"] [data-cell="{name}"]')


def live(tab, name):
    """What the card says of the chosen model."""
    return tab.text(f'.live [data-live="{name}"]')


def value(text):
    return float(text.replace(",", "").replace("−", "-").split(" ")[0])


def check_row(shown, found, currency=""):
    """Cost, shares and reviews as the report would print them."""
    money = Context(currency=currency).money
    assert shown("cost") == money(1000 * found["cost"])
    assert shown("alone") == words.percent(found["alone"])
    assert shown("wrong") == ("–" if isnan(found["wrong"]) else words.percent(found["wrong"]))
    assert value(shown("reviews")) == round(found["reviews"], 2)


def cuts_of(data, model):
    """All thresholds of a model of two classes, as the script has them."""
    cells = data["models"][model]["cells"]
    return [0.0, *sorted([*GRID[cells["cuts"]].tolist(), *cells["more"]]), inf]


def shown_text(tab, selector="body"):
    """The text that a person sees there."""
    return (
        tab.page.locator(selector)
        .inner_text()
        .replace("\xa0", " ")
        .replace("\u2068", "")
        .replace("\u2069", "")
    )


def is_shown(tab, words_on_page, selector="body"):
    return words_on_page in shown_text(tab, selector)
