"""What a report is about beyond its cases: a title, the present model, currency and volume."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import isfinite, isnan
from typing import Any

from .._labels import listed
from .._names import shown
from ..measured import Measured
from . import words

#: Costs are told for so many cases.
CASES = 1000
#: Currencies whose sign stands before the number.
_SIGNS = "$€£¥₹₩₺₽₿"


@dataclass(frozen=True)
class Volume:
    """So many cases in so much time, such as 50,000 a month."""

    n: float
    per: str

    @classmethod
    def of(cls, given: Any) -> Volume:
        """From text such as "50000/month", or a volume itself."""
        if isinstance(given, Volume):
            return given
        number = r"(\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)"
        found = re.fullmatch(rf"\s*{number}\s*/\s*([^\W\d_]+)\s*", str(given))
        if found is None:
            raise ValueError(
                f"volume must be a number of cases in some time, such as 50000/month; got "
                f"{shown(given)}."
            )
        n = float(found[1].replace(",", ""))
        if not 0.0 < n < 1e15:
            raise ValueError(
                f"volume must be more than no cases, and no more than anyone counts; got "
                f"{shown(given)}."
            )
        return cls(n, found[2])

    def __str__(self) -> str:
        return f"{self.count} cases a {self.per}"

    @property
    def count(self) -> str:
        """The number, as people write it."""
        return words.count(self.n) if self.n.is_integer() else f"{self.n:,g}"


@dataclass(frozen=True)
class Context:
    """What people call a report, and what its numbers mean to them.

    Attributes
    ----------
    title : str, default=""
    against : str, optional
        The model in use today: where the cases cannot tell it from the best one, it stays.
    currency : str, default=""
        Of the costs, such as "EUR" or "€".
    volume : Volume or str, optional
        How many cases come, such as "50000/month": adds what the verdict costs in that time.
    """

    title: str = ""
    against: str | None = None
    currency: str = ""
    volume: Volume | None = None

    @classmethod
    def of(cls, given: Context | Mapping[str, Any] | None) -> Context:
        """From a mapping; None is none."""
        if given is None:
            return cls()
        if not isinstance(given, Context):
            known = [field.name for field in fields(cls)]
            if not isinstance(given, Mapping) or set(given) - set(known):
                raise ValueError(
                    f"context must be a mapping with some of {listed(known)}; got {shown(given)}."
                )
            given = cls(**given)
        for name in ("title", "currency"):
            if not isinstance(getattr(given, name), str):
                raise ValueError(f"{name} must be text; got {shown(getattr(given, name))}.")
        given = replace(given, currency=given.currency.strip())
        if len(given.currency) > 10:
            raise ValueError(f"currency must be short, such as EUR; got {shown(given.currency)}.")
        return given if given.volume is None else replace(given, volume=Volume.of(given.volume))

    def check(self, models: Sequence[str]) -> None:
        """Refuse a present model that is not there."""
        if self.against is not None and self.against not in models:
            raise ValueError(
                f"against must be one of the models {listed(models)}; got {shown(self.against)}."
            )

    def cost(self, cost: Measured) -> str:
        """What 1,000 cases cost, with the interval if there is one; the cost is that of a case."""
        told, ends = self.money(CASES * cost.value), cost.interval
        if ends is None or isnan(ends.low):
            return told
        return f"{told} ({self.money(CASES * ends.low)} to {self.money(CASES * ends.high)})"

    def money(self, amount: float) -> str:
        """An amount in this currency, rounded as people do."""
        text = _rounded(amount)
        if not self.currency:
            return text
        if self.currency in _SIGNS:
            sign = "−" if text.startswith("−") else ""
            return f"{sign}{self.currency}{text.removeprefix('−')}"
        return f"{text} {words.shortened(self.currency)}"


def _rounded(amount: float) -> str:
    """Three digits, or four of whole numbers; never 0 for something."""
    if not isfinite(amount) or amount == 0.0:
        return words.number(amount, 0)
    size = abs(amount)
    text = f"{float(f'{amount:.4g}'):,.0f}" if size >= 100.0 else f"{amount:.3g}"
    if size < 1e-3 or size >= 1e15:
        text = f"{amount:.2e}"
    return text.replace("-", "−")
