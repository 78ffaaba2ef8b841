"""Several classes, more cases than are held: bins of the expected loss, under one map."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import Floats, Integers, Mask
from ..calibration.table import FOLDS, MANY_CASES, SPLITS
from ..exact import ExactSums
from ..scores.cases import REVIEW_SUMS, case_amounts
from ..scores.folds import dealt
from ..scores.layout import Tails
from ..scores.tally import units_of
from .choosing import Part, Pay
from .costs import Costs
from .held_out import Outcomes
from .reviews import CaseReviews
from .several_classes import (
    DecidedRows,
    ExpectedLoss,
    SeveralClassPart,
)
from .two_thresholds import Cuts

#: Bins of the loss: finest and coarsest, and cells of classes, decisions and bins in all.
_FINEST, _COARSEST, _MOST_CELLS = 11, 4, 1 << 21
#: Unit of the probabilities in expected weights.
_UNIT = 2.0**-36


class LossBins:
    """Cases of several classes by their loss, in narrow bins: exact sums, however cases come.

    Parameters
    ----------
    loss : ExpectedLoss
    costs : Costs
    weighted, priced, reviewed : bool
        Whether cases have weights, costs of their own, and reviews of their own.
    """

    def __init__(
        self,
        loss: ExpectedLoss,
        costs: Costs,
        *,
        weighted: bool,
        priced: bool,
        reviewed: bool = False,
    ) -> None:
        self._loss, self._costs = loss, costs
        self._n_classes = n = len(loss.matrix)
        right = loss.matrix.diagonal()
        regret = float((loss.matrix - right[:, np.newaxis]).max())
        # Losses go from what wrong reviewers cost to what the dearest error does.
        self._least = -float((loss.reviewed - right).max())
        self._range = max(regret - self._least, 1e-300)
        self._layout = _affordable_layout(n)
        self._size = n * n * self._layout.length
        names = ["number"] + ["weight", "squares"] * (weighted or priced or reviewed)
        names += ["costs", "cost_squares"] * priced + list(REVIEW_SUMS) * reviewed
        #: Losses of reviews are added as shares of the dearest.
        matrix = costs.matrix(n)
        self._dearest = float((matrix - matrix.diagonal()[:, np.newaxis]).max()) or 1.0
        self._sums = {name: ExactSums((1, self._size)) for name in (*names, "expected")}

    def add(
        self,
        scores: NDArray[Any],
        codes: NDArray[Any],
        weights: Floats | None,
        costs: Floats | None,
        reviews: CaseReviews | None = None,
    ) -> None:
        """Add cases; at most `fragility.exact.MOST_TERMS`. Costs and reviews need weights."""
        p = self._loss.probabilities(scores)
        decided, loss = self._loss.decide(p)
        places = self._layout.places(np.clip((loss - self._least) / self._range, 0.0, 1.0))
        keys = (codes.astype(np.int64) * self._n_classes + decided) * self._layout.length + places
        lost = None
        if reviews is not None:
            lost = reviews.losses(self._costs.matrix(self._n_classes)) / self._dearest
        for name, terms in case_amounts(codes.size, weights, costs, lost).items():
            if name in self._sums:
                self._sums[name].add_at(keys, terms, 0)
        own = np.ones(codes.size) if weights is None else weights
        for code in range(self._n_classes):
            keys = (code * self._n_classes + decided) * self._layout.length + places
            # Rounded, so that the sums are short.
            expected = own * (np.rint(p[:, code] / _UNIT) * _UNIT)
            self._sums["expected"].add_at(keys, expected, 0)

    def merge(self, other: LossBins) -> None:
        """Add the cases of other bins of the same kind."""
        for name, sums in self._sums.items():
            sums.merge(other._sums[name])

    def rows(self) -> DecidedRows:
        """All cases: a row for each decision and bin."""
        n, length = self._n_classes, self._layout.length
        found = {name: sums.floats(0).reshape(n, -1) for name, sums in self._sums.items()}
        held = np.flatnonzero(found["number"].any(axis=0))
        found = {name: part[:, held] for name, part in found.items()}
        decided, places = np.divmod(held, length)
        weight = found.get("weight", found["number"])
        squares = found.get("squares", found["number"])
        reviews = None
        if REVIEW_SUMS[0] in found:
            scale = np.array([self._dearest, self._dearest, self._dearest**2, 1.0])
            lost = np.stack([found[name] for name in REVIEW_SUMS])
            reviews = scale[:, np.newaxis, np.newaxis] * lost
        return DecidedRows(
            self._layout.edges[places] * self._range + self._least,
            decided,
            units_of(weight, squares).astype(np.float64),
            weight,
            squares,
            found["expected"],
            found.get("costs"),
            found.get("cost_squares"),
            reviews,
        )

    def kinds(self, scores: NDArray[Any], codes: NDArray[Any]) -> Integers:
        """Kind of each case among the outcomes of the rows."""
        decided, loss = self._loss.decide(self._loss.probabilities(scores))
        places = self._layout.places(np.clip((loss - self._least) / self._range, 0.0, 1.0))
        n, length = self._n_classes, self._layout.length
        held = self._sums["number"].floats(0).reshape(n, -1).any(axis=0)
        lookup = np.cumsum(held) - 1
        found: Integers = codes * np.int64(lookup[-1] + 1) + lookup[decided * length + places]
        return found


def _affordable_layout(n_classes: int) -> Tails:
    """Bins of the loss: the finest of which all classes and decisions have room."""
    for m in range(_FINEST, _COARSEST, -1):
        if n_classes**2 * Tails(m).length <= _MOST_CELLS:
            return Tails(m)
    return Tails(_COARSEST)


@dataclass(frozen=True, eq=False)
class BinnedClasses:
    """Cases of several classes that are too many to hold: in bins of their loss under one map.

    Attributes
    ----------
    bins : LossBins
    costs : Costs
    temperature : float
        Fitted to a sample of the cases.
    seed : int
    """

    bins: LossBins
    costs: Costs
    temperature: float
    seed: int
    calibrated: bool = True

    @cached_property
    def rows(self) -> DecidedRows:
        """A row for each decision and bin."""
        return self.bins.rows()

    @cached_property
    def whole(self) -> SeveralClassPart:
        return SeveralClassPart(self.rows, self.costs, binned=True)

    @cached_property
    def outcomes(self) -> Outcomes:
        return self.rows.outcomes(self.costs)

    @property
    def decisions(self) -> Integers:
        """Class that is decided in each row before the lower cut; the upper one is the last."""
        return np.stack([self.rows.decided] * 2)

    def parts(self) -> Iterator[tuple[Part, Pay]]:
        """For each fold the cases that choose for it, and what it does with their choice."""
        units = self.rows.units.astype(np.int64)
        n_splits = 1 if int(units.sum()) > MANY_CASES else SPLITS
        for split in range(n_splits):
            folds = np.stack(
                [dealt(own, FOLDS, [code, split, self.seed]) for code, own in enumerate(units)]
            )
            for own in np.moveaxis(folds / np.maximum(units, 1)[:, np.newaxis], 1, 0):
                part = SeveralClassPart(self.rows.scaled(1.0 - own), self.costs, binned=True)
                yield part, partial(self._pay, own / n_splits, part)

    def alone(self, cuts: Cuts) -> Mask:
        """Which kinds are decided alone at cuts of the whole."""
        n_classes = self.outcomes.weight.size // self.rows.loss.size
        return np.tile(self.rows.loss <= self.whole.limit(cuts), n_classes)

    def _pay(self, shares: Floats, part: SeveralClassPart, cuts: Cuts) -> Floats:
        alone = self.rows.loss <= part.limit(cuts)
        mix = np.zeros((3, *shares.shape))
        mix[0], mix[1] = shares * alone, shares * ~alone
        return mix.reshape(3, -1)
