"""Policies of two thresholds against one threshold of the confidence, on real data.

Two parts. Cells are data sets × models × costs: what a policy costs, and what the old rule costs,
each on cases that did not choose it. Sizes are numbers of cases that choose: what the rules cost on
all other cases, above the best two thresholds in hindsight.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from pandas import DataFrame

from experiments import figures
from experiments.baselines.losses import Floats
from experiments.claims import Claim, Verdict, share
from experiments.experiment import Condition, Experiment, Report, Row
from experiments.policy_models import (
    MODELS,
    TRIPLES,
    Triple,
    best_pair_cost,
    costs_at,
    out_of_fold,
)
from experiments.real_data import SHIFT, UCI, real_data
from experiments.tables import mean_error
from fragility import best_policy
from fragility._validation import check_labelled_probabilities
from fragility.deferral.costs import Costs
from fragility.deferral.policy_search import PolicyCases
from fragility.deferral.solving import PolicySettings

DATASETS = ("heart", *UCI, *SHIFT)
#: Sets with enough other cases to pay.
LARGE = ("adult", "bank")
SIZES = (200, 500, 2_000, 10_000)
RULES = ("auto", "tuned", "expected_cost")
#: Samples of each size in a trial.
_DRAWS = 3
_QUICK_ROWS = 2_000
#: `compare_costs` takes so many standard errors of independent cases: thresholds are shared.
FACTOR = 1.2
#: A difference of so many standard errors is clear.
_CLEAR = 2.0
#: A set of so many cases can show differences of the usual size.
ENOUGH = 500
#: Cost above the best pair in % on the prototype's 48 real cells, by number of cases.
PROTOTYPE = {
    "auto": (3.6, 2.9, 1.7, 1.1),
    "tuned": (13.1, 6.2, 2.2, 1.2),
    "expected_cost": (3.7, 3.0, 2.7, 2.5),
}
_CELL = ["dataset", "model", "costs"]
_SHARES = [
    *("clearly_cheaper", "clearly_dearer"),
    *("clearly_cheaper_tested", "clearly_dearer_tested"),
]
#: With fewer cases that make a difference, `compare_costs` has no test.
_LEAST_EFFECTIVE = 10.0


def conditions(quick: bool) -> list[Condition]:
    """Every data set with every model; a small and a large set in a quick run."""
    if quick:
        return [{"dataset": name, "model": "logistic"} for name in ("diabetes", "adult")]
    return [{"dataset": name, "model": model} for name in DATASETS for model in MODELS]


def trial(condition: Condition, seed: int, quick: bool) -> Iterator[Row]:
    """Costs of one model on one data set, by predictions out of fold."""
    name, model = str(condition["dataset"]), str(condition["model"])
    data = real_data(name, quick)
    X, y = data.X, data.y
    if quick and y.size > _QUICK_ROWS:
        kept = np.random.default_rng(seed).choice(y.size, _QUICK_ROWS, replace=False)
        X, y = X[kept], y[kept]
    p = out_of_fold(model, X, y, seed)
    for triple in TRIPLES:
        yield {"dataset": data.name, "part": "cell", **_cell(triple, y, p, seed)}
    if name not in LARGE:
        return
    for n in SIZES[:2] if quick else SIZES:
        for draw in range(1 if quick else _DRAWS):
            order = np.random.default_rng([seed, draw, n]).permutation(y.size)
            for triple in TRIPLES:
                for row in _above_best(triple, y, p, order[:n], order[n:]):
                    yield {"dataset": data.name, "part": "size", "draw": draw, **row}


def _about(triple: Triple, n: int) -> Row:
    return {"costs": triple.name, "unequal": int(triple.unequal), "n": n}


def _cell(triple: Triple, y: Floats, p: Floats, seed: int) -> Row:
    """Policy against the old rule: costs of every case at thresholds that others chose."""
    policy, old = (held_out_costs(triple, y, p, rule, seed) for rule in ("auto", "confidence"))
    apart = policy - old
    fourth = float(np.sum(apart**4))
    return {
        **_about(triple, y.size),
        "policy": float(policy.mean()),
        "confidence": float(old.mean()),
        "difference": float(apart.mean()),
        "error": FACTOR * float(apart.std(ddof=1)) / sqrt(y.size),
        # Cases that the difference rests on.
        "effective": float(np.sum(apart**2)) ** 2 / fourth if fourth > 0.0 else 0.0,
    }


def held_out_costs(triple: Triple, y: Floats, p: Floats, rule: str, seed: int) -> Floats:
    """Cost of every case at policies that others chose, as in `fragility.compare_costs`."""
    data = check_labelled_probabilities(y, p, None, None, None, name="proba")
    costs = Costs(triple.matrix, triple.review).checked(2, y.size)
    settings = PolicySettings.of(rule=rule).checked(2)
    return PolicyCases.of(data, costs, None).held_out_costs(settings, seed)


def _above_best(triple: Triple, y: Floats, p: Floats, few: Any, rest: Any) -> Iterator[Row]:
    """What policies that a few cases chose cost on all others, and the best pair there."""
    best = best_pair_cost(triple, y[rest], p[rest])
    row: Row = {**_about(triple, few.size), "best": best}
    for rule in RULES:
        found = best_policy(
            y[few], p[few], error_cost=triple.matrix, review_cost=triple.review, rule=rule
        )
        row[rule] = float(costs_at(found, triple, y[rest], p[rest]).mean())
    yield row


def cells(results: DataFrame) -> DataFrame:
    """One row for each cell, means over trials; what is clear is judged in every trial."""
    part = results[results["part"] == "cell"].copy()
    far = part["difference"].abs() > _CLEAR * part["error"]
    tested = far & (part["effective"] >= _LEAST_EFFECTIVE)
    for end, chosen in (("", far), ("_tested", tested)):
        part[f"clearly_cheaper{end}"] = (chosen & (part["difference"] < 0.0)).astype(float)
        part[f"clearly_dearer{end}"] = (chosen & (part["difference"] > 0.0)).astype(float)
    measures = ["policy", "confidence", "difference", "error", *_SHARES]
    table = part.groupby([*_CELL, "unequal", "n"], sort=False)[measures].mean().reset_index()
    table["percent"] = 100.0 * table["difference"] / table["confidence"]
    return DataFrame(table)


def summary(table: DataFrame) -> DataFrame:
    """Shares of cells that are clearly cheaper and clearly dearer, of all and of some."""
    unequal, many = table["unequal"] == 1, table["n"] >= ENOUGH
    groups = {
        "all": np.ones(len(table), dtype=bool),
        "equal costs": ~unequal,
        "unequal costs": unequal,
        f"unequal costs, {ENOUGH} cases or more": unequal & many,
        f"unequal costs, fewer than {ENOUGH} cases": unequal & ~many,
        f"all, {ENOUGH} cases or more": many,
        **{f"costs {name}": table["costs"] == name for name in dict.fromkeys(table["costs"])},
    }
    rows = []
    for name, chosen in groups.items():
        part = table[chosen]
        if part.empty:
            continue
        rows.append(
            {
                "cells": name,
                "number": len(part),
                **part[_SHARES].mean(),
                "cheaper": (part["difference"] < 0.0).mean(),
                "mean_percent": part["percent"].mean(),
                "least_percent": part["percent"].min(),
                "largest_percent": part["percent"].max(),
            }
        )
    return DataFrame(rows)


def choices(results: DataFrame) -> DataFrame:
    """How often the two rules prefer different models, by costs, and what that costs."""
    part = results[results["part"] == "cell"]
    rows = []
    for (costs, *_), group in part.groupby(["costs", "dataset", "trial"], sort=False):
        if group["model"].nunique() < 2:
            continue
        by_policy, by_old = (
            group.set_index("model")[rule].idxmin() for rule in ("policy", "confidence")
        )
        paid = group.set_index("model")["policy"]
        more = 100.0 * (paid[by_old] / paid[by_policy] - 1.0) if paid[by_policy] > 0.0 else 0.0
        rows.append({"costs": costs, "other_model": by_policy != by_old, "percent_lost": more})
    if not rows:
        return DataFrame()
    found = DataFrame([*rows, *({**row, "costs": "all"} for row in rows)])
    table = found.groupby("costs", sort=False)[["other_model", "percent_lost"]].mean()
    return DataFrame(table.astype(float).reset_index())


def above_best(results: DataFrame) -> DataFrame:
    """Cost above the best pair in %, one row for each cell and number of cases."""
    part = results[results["part"] == "size"]
    means = part.groupby([*_CELL, "n"], sort=False)[["best", *RULES]].mean()
    for rule in RULES:
        means[rule] = 100.0 * (means[rule] / means["best"] - 1.0)
    return DataFrame(means.reset_index())


def sizes(results: DataFrame) -> DataFrame:
    """The same over cells, beside the prototype's numbers."""
    table = above_best(results)
    rows = []
    for n, group in table.groupby("n"):
        for rule in RULES:
            mean, error, count = mean_error(group[rule])
            rows.append(
                {
                    "n": int(n),
                    "rule": rule,
                    "cells": count,
                    "percent_above_best": mean,
                    "percent_above_best_error": error,
                    "prototype": PROTOTYPE[rule][SIZES.index(int(n))],
                    "worst_cell": group[rule].max(),
                    "worst_against_expected_cost": (group[rule] - group["expected_cost"]).max(),
                }
            )
    return DataFrame(rows)


def report(results: DataFrame) -> Report:
    """Shares of cells, each cell, the choice of the model, and the rules by number of cases."""
    table = cells(results)
    tables = {"summary": summary(table)}
    for name, found in (("choice", choices(results)), ("sizes", _sizes_of(results))):
        if not found.empty:
            tables[name] = found
    tables["cells"] = table
    drawn = {"cells": lambda: _cells_figure(table)}
    if "sizes" in tables:
        drawn["sizes"] = lambda: _sizes_figure(tables["sizes"])
    return Report(
        tables,
        drawn,
        "Costs are those of a false alarm, a miss and a review. The policy has two thresholds, "
        "chosen by `best_policy`; the old rule (`confidence`) has one threshold of the "
        "confidence. Both are chosen on the same out-of-fold predictions, and every case pays at "
        "thresholds that others chose. `difference` is policy − old rule per case, with a paired "
        f"standard error times {FACTOR:g}, as in `compare_costs`; it is clear from two such errors "
        "on, also where few cases make it; `tested` counts only differences that rest on ten cases "
        "or more, where `compare_costs` has a test. Shares are means over trials, each with other "
        "folds. Hospitals of `shift` are also part of the set heart, so cells are not independent. "
        "In the table by sizes, so many cases choose, all others pay, and the best pair is that of "
        "the payers in hindsight. The prototype's numbers are those of 48 real cells of its own.",
    )


def _sizes_of(results: DataFrame) -> DataFrame:
    return sizes(results) if (results["part"] == "size").any() else DataFrame()


def _cells_figure(table: DataFrame) -> Figure:
    """Every cell with its interval, by costs, from the largest saving on."""
    figure, axes = figures.panels(len(TRIPLES), width=13.0, height=5.0)
    for ax, triple in zip(axes.flat, TRIPLES, strict=True):
        part = table[table["costs"] == triple.name].sort_values("percent", ascending=False)
        half = 100.0 * _CLEAR * part["error"] / part["confidence"]
        places = np.arange(len(part))
        drawn = (
            ("clearly cheaper", part["clearly_cheaper"] >= 0.5, 0),
            ("clearly dearer", part["clearly_dearer"] >= 0.5, 1),
        )
        rest = np.ones(len(part), dtype=bool)
        for label, chosen, place in drawn:
            rest &= ~chosen.to_numpy()
            _bars(
                ax, part["percent"], half, places, chosen.to_numpy(), figures.colour(place), label
            )
        _bars(ax, part["percent"], half, places, rest, figures.GREY, "not clear")
        ax.axvline(0.0, color="black", linewidth=0.8)
        ax.set(title=f"costs {triple.name}", xlabel="policy − old rule, %", yticks=[])
        ax.set_xscale("symlog", linthresh=10.0, linscale=1.0)
        ax.set_xlim(-120.0, 60.0)
        ax.set_xticks([-100, -30, -10, 0, 10, 30], ["−100", "−30", "−10", "0", "10", "30"])
    axes[0, 0].set_ylabel("data set and model")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def _bars(ax: Any, x: Any, half: Any, places: Any, chosen: Any, colour: str, label: str) -> None:
    """Points with intervals; the label is there also if there are none."""
    ax.errorbar(
        x.to_numpy()[chosen],
        places[chosen],
        xerr=half.to_numpy()[chosen],
        fmt="o",
        markersize=2.5,
        linewidth=0.7,
        color=colour,
        label=label,
    )


def _sizes_figure(table: DataFrame) -> Figure:
    figure, axes = figures.panels(1, width=5.6, height=3.8)
    ax = axes[0, 0]
    for place, rule in enumerate(RULES):
        part = table[table["rule"] == rule]
        mean, error = part["percent_above_best"], part["percent_above_best_error"]
        figures.band(
            ax, part["n"], mean, mean - 2 * error, mean + 2 * error, label=rule, place=place
        )
        ax.plot(
            part["n"], part["prototype"], ":", color=figures.colour(place), linewidth=1.0, label=""
        )
    ax.set(xscale="log", yscale="log", xlabel="cases that choose", ylabel="cost above best pair, %")
    ticks = [1, 2, 5, 10, 20]
    ax.set_yticks(ticks, [str(tick) for tick in ticks])
    ax.set_title("dotted: the prototype")
    ax.legend()
    return figure


def _seldom_dearer(results: DataFrame) -> Verdict:
    table = cells(results)
    part = table["clearly_dearer"].mean()
    worst = table.loc[table["percent"].idxmax()]
    return Verdict(
        "holds" if part <= 0.05 else "does not hold",
        f"{100 * part:.1f} % of {len(table)} cells are clearly dearer, "
        f"{100 * table['clearly_cheaper'].mean():.0f} % clearly cheaper. The worst difference is "
        f"{worst['percent']:+.1f} % ({worst['dataset']}, {worst['model']}, {worst['costs']}).",
    )


def _mostly_cheaper(results: DataFrame) -> Verdict:
    table = cells(results)
    unequal = table[table["unequal"] == 1]
    many = unequal[unequal["n"] >= ENOUGH]
    part, power = unequal["clearly_cheaper"].mean(), many["clearly_cheaper"].mean()
    holds = "holds" if part > 0.5 else "holds partly" if power > 0.5 else "does not hold"
    return Verdict(
        holds,
        f"Clearly cheaper are {100 * part:.0f} % of {len(unequal)} cells with unequal costs, and "
        f"{100 * power:.0f} % of the {len(many)} with {ENOUGH} cases or more. Cheaper at all are "
        f"{100 * (unequal['difference'] < 0).mean():.0f} %. If only differences count that ten "
        f"cases or more make, {100 * unequal['clearly_cheaper_tested'].mean():.0f} % and "
        f"{100 * many['clearly_cheaper_tested'].mean():.0f} % are clearly cheaper.",
    )


def _as_prototype(results: DataFrame) -> Verdict | None:
    table = _sizes_of(results)
    if table.empty:
        return None
    auto = table[table["rule"] == "auto"]
    held = auto["percent_above_best"] <= auto["prototype"]
    said = ", ".join(
        f"{row['percent_above_best']:.1f} % ({row['prototype']} %) at n = {row['n']}"
        for row in auto.to_dict("records")
    )
    return share(int(held.sum()), len(auto), f"Cost above the best pair (prototype): {said}.")


def _never_far_behind(results: DataFrame) -> Verdict | None:
    table = _sizes_of(results)
    if table.empty:
        return None
    worst = table.groupby("rule")["worst_against_expected_cost"].max()
    return Verdict(
        "holds" if worst["auto"] <= 2.0 else "does not hold",
        f"The worst cell is {worst['auto']:.1f} points behind expected cost with `auto`, "
        f"{worst['tuned']:.0f} with `tuned`.",
    )


EXPERIMENT = Experiment(
    name="policies",
    title="policies of two thresholds against one threshold of the confidence",
    trials=5,
    quick_trials=1,
    conditions=conditions,
    trial=trial,
    report=report,
    claims=[
        Claim(
            "our addition",
            "Two thresholds are clearly dearer than one threshold of the confidence in at most 5 % "
            "of the cells.",
            _seldom_dearer,
        ),
        Claim(
            "our addition",
            "Where errors differ in cost, two thresholds are clearly cheaper in most cells.",
            _mostly_cheaper,
        ),
        Claim(
            "our addition",
            "The rule `auto` is as near to the best pair as the prototype was, at every size.",
            _as_prototype,
        ),
        Claim(
            "our addition",
            "The rule `auto` is never more than 2 points behind expected cost in any cell.",
            _never_far_behind,
        ),
    ],
)
