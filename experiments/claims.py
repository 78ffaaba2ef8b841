"""What the paper says, and what our own results say about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from pandas import DataFrame

Holds = Literal["holds", "holds partly", "does not hold"]


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds in our results, and the number that says so."""

    holds: Holds
    because: str

    def __post_init__(self) -> None:
        """Refuse a verdict that is none, or one without a reason."""
        if self.holds not in get_args(Holds):
            raise ValueError(f"A verdict is one of {get_args(Holds)}, not {self.holds!r}.")
        if not self.because.strip():
            raise ValueError("A verdict needs its reason: give the number in `because`.")


@dataclass(frozen=True)
class Claim:
    """One statement of the paper, in our words, and the rule that judges it.

    Parameters
    ----------
    where : str
        Where the paper says it, such as ``"5.2"`` or ``"Table 2"``.
    says : str
        One sentence in our own words.
    rule : callable
        Takes the results (every row of ``results.csv``), returns a `Verdict`; None where these
        results cannot say, as when a quick run leaves out what the claim is about.
    """

    where: str
    says: str
    rule: Callable[[DataFrame], Verdict | None]


def share(held: int, of: int, because: str) -> Verdict:
    """Verdict of a claim about all of several cases; partly if it is right in half of them."""
    return _judged(held, of, 1.0, 0.5, because)


def gained(better: int, worse: int, of: int, because: str, holds: bool | None = None) -> Verdict:
    """Verdict of a claim that something is better in several cells.

    Parameters
    ----------
    better, worse : int
        Cells in which the interval of the gain lies above, or below, zero. The others tell nothing.
    of : int
        All cells.
    because : str
    holds : bool, optional
        Whether that is what is claimed; by default, better in all cells.

    Returns
    -------
    Verdict
        What does not hold holds partly if more cells are better than worse.
    """
    if of <= 0 or better + worse > of:
        raise ValueError(f"Of {of} cells {better} cannot be better and {worse} worse.")
    if better == of if holds is None else holds:
        return Verdict("holds", because)
    return Verdict("holds partly" if better > worse else "does not hold", because)


def mostly(held: int, of: int, because: str) -> Verdict:
    """Verdict of a claim about many cases: nine tenths of them hold; partly if a half does."""
    return _judged(held, of, 0.9, 0.5, because)


def _judged(held: int, of: int, all_from: float, part_from: float, because: str) -> Verdict:
    if of <= 0:
        raise ValueError("A claim about no case can be neither right nor wrong.")
    part = held / of
    holds: Holds = (
        "holds" if part >= all_from else "holds partly" if part >= part_from else "does not hold"
    )
    return Verdict(holds, because)
