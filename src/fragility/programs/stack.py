"""The rows of several problems: problems on the same rows are multiplied by them together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._typing import Floats
from .batched import Batched
from .gram import BLOCK, lower_triangle, weighted_grams
from .objective import Objective
from .rows import TrainingRows


class _Tables(NamedTuple):
    """Samples of each set of rows, all of the same number."""

    X: list[Any]


class Stack(Batched):
    """Rows of B problems, of which those of the same rows come one after the other.

    Fewer rows than others have are filled up with samples that are there already: these share their
    weight.

    Attributes
    ----------
    place : ndarray of shape (B,)
        Which set of rows a problem has.
    y, weights : ndarray of shape (B, n)
    """

    def __init__(self, objectives: Sequence[Objective]) -> None:
        first = objectives[0]
        self.n_outputs, self.with_one = first.n_outputs, first.rows.fit_intercept
        self.n_columns, self.n_classes = first.rows.X.shape[1], first.rows.n_classes
        sets: dict[int, TrainingRows] = {}
        for objective in objectives:
            sets.setdefault(id(objective.rows), objective.rows)
        n = max(rows.y.size for rows in sets.values())
        filled = [_filled(rows, n) for rows in sets.values()]
        order = {name: i for i, name in enumerate(sets)}
        self.tables = _Tables([X for X, _, _ in filled])
        self.place = np.array([order[id(objective.rows)] for objective in objectives])
        self.y = np.stack([filled[i][1] for i in self.place])
        self.weights = np.stack([filled[i][2] for i in self.place])
        self._known: tuple[Any, list[tuple[Any, slice]]] = (None, [])

    def scores(self, theta: Floats) -> Floats:
        """Scores (B, outputs, n) of parameters (B, p)."""
        table = theta.reshape(len(theta), self.n_outputs, -1)
        n, products = self.y.shape[1], []
        for X, part in self._sets():
            coef = table[part, :, : self.n_columns]
            coef = coef.reshape(coef.shape[0] * self.n_outputs, self.n_columns)
            products.append((X @ coef.T).T if sparse.issparse(X) else coef @ X.T)
        scores: Floats = products[0] if len(products) == 1 else np.concatenate(products)
        scores = np.ascontiguousarray(scores).reshape(len(table), self.n_outputs, n)
        if self.with_one:
            scores += table[:, :, -1:]
        return scores

    def collected(self, by_scores: Floats) -> Floats:
        """Sum over the samples of slopes by scores (B, outputs, n), as one by parameters (B, p)."""
        table = np.empty((*by_scores.shape[:2], self.n_columns + self.with_one))
        for X, part in self._sets():
            flat = by_scores[part].reshape(-1, by_scores.shape[2])
            product = (X.T @ flat.T).T if sparse.issparse(X) else flat @ X
            own = table[part, :, : self.n_columns]
            own[:] = product.reshape(own.shape)
        if self.with_one:
            table[..., -1] = by_scores.sum(axis=2)
        return table.reshape(len(by_scores), -1)

    def squares(self, form: Callable[[slice], Floats], single: bool = False) -> Floats:
        """The same for second derivatives (B, p, p).

        `form` gives for a part of the samples lower triangles (B, pairs of outputs, samples);
        `single` says that single precision will do.
        """
        n, size = self.y.shape[1], self.n_columns + self.with_one
        total: Floats | float = 0.0
        for start in range(0, n, BLOCK):
            part = slice(start, start + BLOCK)
            weights = form(part)
            grams = [
                weighted_grams(
                    X if n <= BLOCK else X[part],
                    weights[problems].reshape(-1, weights.shape[2]).T,
                    self.with_one,
                    single,
                )
                for X, problems in self._sets()
            ]
            total = total + (grams[0] if len(grams) == 1 else np.concatenate(grams))
        assert isinstance(total, np.ndarray)
        if self.n_outputs == 1:
            return total
        first, second = lower_triangle(self.n_outputs)
        total = total.reshape(-1, first.size, size, size)
        blocks = np.empty((len(total), self.n_outputs, size, self.n_outputs, size))
        for pair, (i, j) in enumerate(zip(first, second, strict=True)):
            blocks[:, i, :, j, :] = blocks[:, j, :, i, :] = total[:, pair]
        return blocks.reshape(len(total), self.n_outputs * size, -1)

    def _sets(self) -> list[tuple[Any, slice]]:
        """Samples, and the problems that have them."""
        if self._known[0] is not self.place:  # since some problems were taken
            ends = [*(np.flatnonzero(np.diff(self.place)) + 1).tolist(), len(self.place)]
            parts = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
            sets = [(self.tables.X[self.place[part.start]], part) for part in parts]
            self._known = self.place, sets
        return self._known[1]


def _filled(rows: TrainingRows, n: int) -> tuple[Any, Any, Floats]:
    """Samples, classes and weights, made n by repeating some."""
    if rows.y.size == n:
        return rows.X, rows.y, rows.weights
    which = np.resize(np.arange(rows.y.size), n)
    return rows.X[which], rows.y[which], (rows.weights / np.bincount(which))[which]
