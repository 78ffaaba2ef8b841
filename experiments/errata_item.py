"""A statement of the paper, the comparisons that test it, and the rule that judges them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from pandas import DataFrame

from experiments.claims import Holds, Verdict
from experiments.experiment import Row


class Item(NamedTuple):
    """A statement of the paper: where, what, and the comparisons that test it."""

    where: str
    says: str
    rows: Callable[[int], Iterator[Row]]
    #: Several statements in one, or one with its limits: it can hold in part. A statement about
    #: all cases cannot: one that contradicts it is enough.
    divisible: bool = False


def compared(quantity: str, relation: str, paper: float, found: float, within: float = 0.0) -> Row:
    """One comparison: `found` must stand in `relation` to `paper`, but for a rounding.

    ``=``, ``≤`` and ``≥`` forgive a difference up to `within`; ``>`` and ``<`` ask for more.
    """
    return {
        "quantity": quantity,
        "relation": relation,
        "paper": paper,
        "found": found,
        "within": within,
    }


def never(quantity: str, broken: int) -> Row:
    """A statement about all cases: none of those that were drawn breaks it."""
    return compared(quantity, "=", 0, broken)


def stands(results: DataFrame) -> DataFrame:
    """The same with a column that says which comparisons agree with the paper."""
    # Two infinite values are equal, and their difference is not a number.
    equal = results["found"] == results["paper"]
    gap = (results["found"] - results["paper"]).where(~equal, 0.0)
    relation, within = results["relation"], results["within"]
    agrees = (
        ((relation == "=") & (gap.abs() <= within))
        | ((relation == "≤") & (gap <= within))
        | ((relation == "≥") & (gap >= -within))
        | ((relation == "<") & (gap < -within))
        | ((relation == ">") & (gap > within))
    )
    return results.assign(agrees=agrees)


def verdict(item: Item, results: DataFrame) -> Verdict | None:
    """All comparisons agree; some do and the statement is divisible; or it does not hold.

    None where there is no comparison.
    """
    if results.empty:
        return None
    judged = stands(results)
    failing = judged[~judged["agrees"]]
    held, of = int(judged["agrees"].sum()), len(judged)
    holds: Holds = (
        "holds" if held == of else "holds partly" if item.divisible and held else "does not hold"
    )
    said = "; ".join(
        f"{row.quantity}: {row.found:.4g} (should be {row.relation} {row.paper:.4g})"
        for row in (judged if failing.empty else failing).itertuples()
    )
    if 0 < held < of:
        said += f"; as it says in {held} of {of} comparisons"
    if said.split()[0].isalpha() and said[1] != " ":  # a symbol such as k stays as it is
        said = said[0].upper() + said[1:]
    return Verdict(holds, f"{said}.")
