"""What the parts of a report say together: how many cases there are, and which figures."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, cast

from ..measured import CONFIDENT, figures_of
from .parts import ModelReport

if TYPE_CHECKING:
    from .report import Report


class Measurements:
    """Numbers of cases and names of figures of a report."""

    @property
    def _whole(self) -> Report:
        return cast("Report", self)

    @property
    def answers(self) -> bool:
        """Whether the cases are answers, right or wrong, of which every model has its own."""
        return self._whole.models[0].answers is not None

    @property
    def n_samples(self) -> int:
        """Cases of positive weight; declined ones among them."""
        first = self._whole.models[0].answers
        return sum(self._whole.support) if first is None else first.n_cases

    def support_of(self, model: ModelReport) -> tuple[int, ...]:
        """Cases of each class, in the order of the labels; of answers, those of one model."""
        own = model.answers
        return self._whole.support if own is None else (own.wrong, own.right)

    @cached_property
    def titles(self) -> dict[str, str]:
        """Names and titles of the figures in the table, in its order."""
        kinds = figures_of(self._whole.answers, self._whole.confident)
        known = {name: kind.title for name, kind in kinds.items()}
        if self._whole.confident != CONFIDENT:
            known["confident_error_rate"] = f"errors above {100 * self._whole.confident:g} %"
        if not any("cost" in model.raw.figures for model in self._whole.models):
            del known["cost"]
        return {**known, **{name: name for name in self._whole.extra}}
