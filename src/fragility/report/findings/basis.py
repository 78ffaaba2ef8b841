"""What findings are made from, and the words that they share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...deferral import Costs
from .. import words
from ..parts import Comparison, GroupFigures, ModelReport

#: Sentences of a rule, each with the models that it speaks of.
Sentences = Iterator[tuple[str, Sequence[str]]]


@dataclass(frozen=True)
class Figures:
    """All that findings are made from."""

    models: Sequence[ModelReport]
    comparisons: Sequence[Comparison]
    groups: Sequence[GroupFigures]
    labels: Sequence[Any]
    support: Sequence[int]
    confidence: float
    costs: Costs | None = None
    positive: Any = None

    @property
    def n(self) -> int:
        return int(sum(self.support))

    @property
    def level(self) -> str:
        return f"{100 * self.confidence:g} % interval"

    @property
    def alpha(self) -> float:
        return 1.0 - self.confidence


def possessive(name: str) -> str:
    """Whose something is."""
    shown = words.shortened(name)
    return f"{shown}'" if shown.endswith("s") else f"{shown}'s"


def label(figures: Figures, place: int) -> str:
    """Name of the class at a place."""
    return words.shortened(figures.labels[place])
