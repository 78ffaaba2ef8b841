"""What a certificate promises at a distance from its data, beside the loss that came."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from .._summary import Summary, SummaryRow


@dataclass(frozen=True, repr=False)
class Promise(Summary):
    r"""The loss that a certificate promises for data at some distance from its own.

    Made by `Certificate.at`.

    Attributes
    ----------
    distance : float
        The distance D, or an upper bound of it.
    loss : float
        The promised loss :math:`\tau + k D`: the penalised mean loss is no larger. Infinite where
        nothing is promised.
    worst_loss : float
        The largest penalised mean loss that there is within the distance, never above `loss`.
    guessing : float
        Loss of a model whose scores are all zero, on any data. A promise that is no lower says
        nothing.
    came : float or None
        The penalised mean loss that was measured there, if it was given.
    """

    distance: float
    loss: float
    worst_loss: float
    guessing: float
    came: float | None = None

    @property
    def vacuous(self) -> bool:
        """Whether the promise says nothing, since guessing never loses more."""
        return not self.loss < self.guessing

    @property
    def held(self) -> bool | None:
        """Whether the loss that came is within the promise; None if it was not given."""
        # Both are sums of many terms, in another order each.
        return None if self.came is None else self.came <= self.loss + 1e-9 * abs(self.loss)

    def _rows(self) -> Iterator[SummaryRow]:
        yield "distance", f"{self.distance:.6g}", "of the data from those of the certificate"
        note = f"says nothing: guessing never loses more than {self.guessing:.4g}"
        if self.loss == inf:
            note = "says nothing: nothing is promised that far"
        elif not self.vacuous:
            note = f"at most; guessing loses {self.guessing:.4g}"
        yield "promised loss", f"{self.loss:.6g}", note
        yield "worst loss", f"{self.worst_loss:.6g}", "of all data within the distance"
        if self.came is not None:
            note = "within the promise" if self.held else "above the promise"
            yield "loss that came", f"{self.came:.6g}", note
