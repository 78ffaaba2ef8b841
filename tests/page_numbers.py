"""Numbers that the page shows, against those of the reference."""

from __future__ import annotations

from math import isnan

from .reference import page

__all__ = ["best", "cell", "check_outcomes", "outcome", "place_of", "value"]


def cell(tab, model, name):
    return tab.text(f'tr[data-model="{model}"] [data-cell="{name}"]')


def value(text):
    return float(text.replace(",", "").replace("−", "-").split(" ")[0])


def outcome(data, model, place, version="raw", err=10.0, man=1.0, fn=1.0, rev=0.0):
    """Cost per case, share decided alone, share of errors among those, by the reference."""
    decided = data["models"][model][version]["decisions"]
    total = data["total"]
    return (
        page.cost(decided, place, total, err, man, rev, fn),
        page.automation(decided, place, total),
        page.error_rate(decided, place, total),
    )


def best(data, model, version="raw", capacity=None, err=10.0, man=1.0, fn=1.0, rev=0.0):
    """The best threshold of the grid, and its cost, by the reference."""
    decided = data["models"][model][version]["decisions"]
    costs = {"error_cost": err, "review_cost": man, "reviewer_error": rev, "fn_weight": fn}
    place = page.best(decided, len(data["grid"]), data["total"], capacity, **costs)
    return data["grid"][place], page.cost(decided, place, data["total"], **costs)


def cent(cost):
    """Half of the last digit shown."""
    return 0.00501 if cost >= 9.99995 else 0.0000501


def check_outcomes(tab, data, place, version="raw", **costs):
    """Every figure of the table against the reference: money to the cent and closer."""
    for model in range(len(data["models"])):
        cost, alone, errors = outcome(data, model, place, version=version, **costs)
        assert abs(value(cell(tab, model, "cost")) - cost) <= cent(cost)
        assert abs(value(cell(tab, model, "automation")) - 100 * alone) <= 0.051
        shown = cell(tab, model, "errors")
        assert shown == "–" if isnan(errors) else abs(value(shown) - 100 * errors) <= 0.051
        delta, least = best(data, model, version=version, **costs)
        assert abs(value(cell(tab, model, "best")) - delta) <= 0.0051 * (1.0 - delta)
        assert abs(value(cell(tab, model, "best-cost")) - least) <= cent(least)


def place_of(tab):
    return int(tab.page.input_value("#delta"))
