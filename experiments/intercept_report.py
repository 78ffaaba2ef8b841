"""What a free intercept changes, beside the paper's priced one: our addition to its experiments."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from pandas import DataFrame

from experiments.claims import Claim, Holds, Verdict
from experiments.comparison import GAINS
from experiments.tables import mean_interval

__all__ = ["intercept_claim", "intercept_table"]

_ROBUST = ("KL", "Wasserstein")
#: A gain that changes by no more is the same.
_SMALL = 0.01
_NAMES = {"accuracy": "accuracy", "auc": "AUC", "fragility_index": "FI"}


def intercept_table(results: DataFrame, by: Sequence[str], model: str = "method") -> DataFrame:
    """How much better than ERM each robust model is, with a priced and with a free intercept.

    A gain is positive where the model is better, also by its index; trials are paired, and those in
    which any of the four figures is infinite are left out. ``change`` is the gain with a free
    intercept less that with a priced one. `by` says where; `model` is the column of the models.
    """
    linear = results[results["method"].isin(("ERM", *_ROBUST))]
    rows = []
    for where, part in linear.groupby(list(by), sort=False):
        names = part.loc[part["method"] != "ERM", model].unique()
        for measure, sign in GAINS.items():
            wide = part.pivot(index="trial", columns=["intercept", model], values=measure)
            wide = sign * wide.replace([np.inf, -np.inf], np.nan)
            for name in names:
                gain = {i: wide[i, name] - wide[i, "ERM"] for i in ("priced", "free")}
                gain["change"] = gain["free"] - gain["priced"]
                row = {**dict(zip(by, where, strict=True)), model: name, "gain": _NAMES[measure]}
                for what, values in gain.items():
                    found = mean_interval(values[gain["change"].notna()])
                    row |= dict(zip((what, f"{what}_low", f"{what}_high"), found, strict=True))
                rows.append(row)
    return DataFrame(rows)


def intercept_claim(where: str, by: Sequence[str], model: str = "method") -> Claim:
    """A sentence of our own on what the free intercept changes."""
    return Claim(
        f"{where} (our addition)",
        "A free intercept instead of the paper's priced constant changes the gains over ERM.",
        partial(_other_gains, by=by, model=model),
    )


def _other_gains(results: DataFrame, by: Sequence[str], model: str) -> Verdict | None:
    """Clearly and by more than a hundredth in most cells; partly if in some of them."""
    table = intercept_table(results, by, model)
    table = table[np.isfinite(table["change_low"])]
    if table.empty:
        return None
    much = table["change"].abs() > _SMALL
    less, more = much & (table["change_high"] < 0.0), much & (table["change_low"] > 0.0)
    # A few huge indices move a mean by much and tell nothing: what is clear comes first.
    telling = table[less | more] if (less | more).any() else table
    first = table.loc[telling["change"].abs().idxmax()]
    place = ", ".join(f"{name} {first[name]}" for name in by)
    changed = int(less.sum() + more.sum())
    holds: Holds = "holds partly" if changed else "does not hold"
    return Verdict(
        "holds" if changed > len(table) / 2 else holds,
        f"Gains over ERM (accuracy, AUC, FI), {len(table)} in all: smaller by more than {_SMALL} "
        f"with a free intercept {less.sum()}, larger {more.sum()} (where the 95 % interval of the "
        f"paired change is beyond zero). The most: {first[model]}, {first['gain']} at {place}: "
        f"{first['priced']:+.3f} priced, {first['free']:+.3f} free.",
    )
