"""The paper's statements one by one, each with the number that bears it out or refutes it.

Each statement becomes one or more comparisons: a quantity, what the statement asks of it (such as
≤ a value), and what we find. A comparison that fails refutes the statement, or shows its limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from textwrap import fill

import numpy as np
from matplotlib.figure import Figure
from pandas import DataFrame

from experiments import errata_index, errata_training, errata_transport, figures
from experiments.claims import Claim, Verdict
from experiments.errata_item import stands, verdict
from experiments.experiment import Condition, Experiment, Report, Row

ITEMS = errata_index.ITEMS | errata_training.ITEMS | errata_transport.ITEMS


def conditions(quick: bool) -> list[Condition]:
    """Every statement; that on the number of trials needs results of `uci` to compare with."""
    there = errata_training.UCI_RESULTS.exists()
    return [{"item": name} for name in ITEMS if there or name != "uci_trials"]


def trial(condition: Condition, seed: int, quick: bool) -> Iterator[Row]:
    """The comparisons of one item."""
    yield from ITEMS[str(condition["item"])].rows(seed)


def report(results: DataFrame) -> Report:
    """Every comparison."""
    judged = stands(results)
    table = judged[["item", "quantity", "relation", "paper", "found", "agrees"]].copy()
    table["agrees"] = np.where(table["agrees"], "yes", "no")
    table = table.rename(columns={"paper": "paper_says", "found": "we_find"})
    said = [found.holds for name in ITEMS if (found := _verdict(name, results))]
    text = (
        f"Of {len(said)} statements {said.count('holds')} stand every comparison, "
        f"{said.count('holds partly')} some; {said.count('does not hold')} are refuted. The "
        "library has the class-conditional divergence of the paper's own lemma, every case of the "
        "root, sums instead of pairs, the exact Wasserstein index, exact label costs, bounds with "
        "the intercept, both kinds of SCE, and the usual AUC."
    )
    if "uci_trials" not in set(judged["item"]):
        text += (
            " The number of trials behind the UCI table is not judged: that takes the results of "
            "`uci`, which are not there."
        )
    return Report({"comparisons": table}, {"ratios": lambda: _figure(judged)}, text)


def _figure(judged: DataFrame) -> Figure:
    """How far each comparison is off, as found over paper where both are positive."""
    shown = judged[(judged["paper"] > 0) & (judged["found"] > 0) & np.isfinite(judged["found"])]
    figure, axes = figures.panels(1, width=7.6, height=0.3 * len(shown) + 0.9)
    ax = axes[0, 0]
    places = np.arange(len(shown))[::-1]
    ratio = shown["found"] / shown["paper"]
    for agrees, number, marker in ((True, 0, "o"), (False, 1, "X")):
        chosen = (shown["agrees"] == agrees).to_numpy()
        ax.scatter(
            ratio[chosen],
            places[chosen],
            color=figures.colour(number),
            marker=marker,
            label="as the paper says" if agrees else "not as it says",
            zorder=3,
        )
    ax.axvline(1.0, color=figures.GREY, linewidth=0.8)
    ax.set(xscale="log", xlabel="found over what the paper says", yticks=places)
    ax.set_yticklabels(
        [fill(f"{row.quantity} ({row.relation})", 58) for row in shown.itertuples()], fontsize=7
    )
    figure.legend(loc="outside upper right", ncols=2)
    return figure


def _verdict(name: str, results: DataFrame) -> Verdict | None:
    return verdict(ITEMS[name], results[results["item"] == name])


EXPERIMENT = Experiment(
    name="errata",
    title="the paper's statements, each with the number that bears it out or refutes it",
    trials=1,
    quick_trials=1,
    conditions=conditions,
    trial=trial,
    report=report,
    claims=[Claim(item.where, item.says, partial(_verdict, name)) for name, item in ITEMS.items()],
)
