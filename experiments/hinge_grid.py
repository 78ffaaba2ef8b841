"""Many small hinge models at a time: all folds, penalties and strengths of a cross-validation.

Each problem is small, so that Python's overhead would be most of its time. One interior-point
method (Mehrotra's) moves all of them together; the library's solvers are the reference of its test.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["hinge_grid"]

Floats = NDArray[np.float64]
_STAY = 0.995  # share of the way to the border
_GAP = 1e-6
_MOST_STEPS = 100
_BOLD_STEPS = 30  # corrected steps can go in circles; plain ones that aim at the centre do not
_CAUTION = 0.3
_STAND_IN = 1e-14  # curvature, relative, where columns say the same


def hinge_grid(
    X: Floats,
    codes: NDArray[Any],
    n_classes: int,
    parts: Sequence[NDArray[np.intp]],
    penalties: Sequence[str],
    alphas: ArrayLike,
    fit_intercept: bool | Literal["priced"] = True,
) -> Floats:
    """Weights of least mean hinge loss (Crammer and Singer's) plus penalty, on parts of the data.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    codes : ndarray of shape (n,)
        Classes 0, 1, ...; each occurs in each part.
    n_classes : int
    parts : sequence of ndarray
        Rows to train on; their numbers differ by few.
    penalties : sequence of {"l1", "l2"}
        alpha times the sum of the absolute values, or of the squares; of the intercept only if it
        is priced.
    alphas : array-like of shape (n_alphas,) or (n_penalties, n_alphas)
        The same for every penalty, or of each.
    fit_intercept : {True, "priced", False}, default=True

    Returns
    -------
    ndarray of shape (n_penalties, n_alphas, n_parts, n_scores, d + 1)
        The last column is the intercept, 0 if none is fitted; `n_scores` is 1 for two classes. The
        objectives are within 1e-6 of the lowest.
    """
    rows, shares = _padded(parts)
    with_ones = np.column_stack([X, np.ones(len(X))])
    n_scores = 1 if n_classes == 2 else n_classes
    margins = _margins(with_ones[rows], codes[rows], n_classes)
    table = np.broadcast_to(alphas, (len(penalties), np.shape(alphas)[-1]))
    kinds = [(kind, float(a)) for kind, row in zip(penalties, table, strict=True) for a in row]
    free = np.zeros((n_scores, X.shape[1] + 1), bool)
    free[:, -1] = fit_intercept != "priced"
    moving = np.ones(free.size, bool)
    if not fit_intercept:
        moving[free.ravel()] = False
    elif n_scores > 1 and fit_intercept != "priced":
        moving[-1] = False  # the same number added to all intercepts changes nothing: one is 0
    found = np.zeros((len(kinds), len(parts), free.size))
    found[..., moving] = _Problems(
        margins[..., moving], shares, kinds, free.ravel()[moving], *_basis(free, moving)
    ).solve()
    return found.reshape(*table.shape, len(parts), n_scores, X.shape[1] + 1)


def _basis(free: NDArray[np.bool_], moving: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.bool_]]:
    """An orthogonal basis of the weights, and which of its members do nothing to the margins.

    Those are the means of a feature's weights over the classes, where there are several.
    """
    n_scores, n_columns = free.shape
    turn = np.eye(free.size).reshape(n_scores, n_columns, n_scores, n_columns)
    idle = np.zeros(free.shape, bool)
    if n_scores > 1:
        helmert = np.vstack([np.ones(n_scores), np.eye(n_scores)[:-1]])
        helmert = np.linalg.qr(helmert.T)[0].T
        penalised = np.flatnonzero(~free[0])
        for column in penalised:
            turn[:, column, :, column] = helmert
        idle[0, penalised] = True
    turn = turn.reshape(free.size, free.size)[np.ix_(moving, moving)]
    return turn, idle.ravel()[moving]


def _padded(parts: Sequence[NDArray[np.intp]]) -> tuple[NDArray[np.intp], Floats]:
    """Parts of one length: a sample may be there several times, and shares its weight then."""
    longest = max(len(part) for part in parts)
    rows = np.array([np.resize(part, longest) for part in parts])
    shares = np.empty(rows.shape)
    for share, row, part in zip(shares, rows, parts, strict=True):
        share[:] = 1.0 / (len(part) * np.bincount(row)[row])
    return rows, shares


def _margins(X: Floats, codes: NDArray[Any], n_classes: int) -> Floats:
    """Margins over each other class as functions of the weights: (parts, n, others, weights)."""
    if n_classes == 2:
        return (np.where(codes == 1, 1.0, -1.0)[..., None] * X)[:, :, None, :]
    own = np.eye(n_classes)[codes]
    others = np.array([np.delete(np.arange(n_classes), c) for c in range(n_classes)])[codes]
    difference = own[:, :, None, :] - np.eye(n_classes)[others]
    full = difference[..., None] * X[:, :, None, None, :]
    return full.reshape(*full.shape[:3], -1)


#: Each positive variable with its price: halves of weights, losses of samples, slacks of margins.
_PAIRS = (
    ("plus", "plus_price"),
    ("minus", "minus_price"),
    ("loss", "loss_price"),
    ("slack", "price"),
)
_POSITIVE = tuple(name for pair in _PAIRS for name in pair)
_Values = dict[str, Floats]


class _Problems:
    """All problems: minimise shares @ loss + penalty, with loss >= 0 and margin + loss >= 1.

    Axes: kind of penalty, part of the data, then samples, other classes, or weights. A weight with
    an l1 penalty is the difference of two positive halves. Directions are in the given basis: what
    does nothing to the margins must do nothing exactly, or rounding drives it away.
    """

    def __init__(
        self,
        margins: Floats,
        shares: Floats,
        kinds: Sequence[tuple[str, float]],
        free: NDArray[np.bool_],
        basis: Floats,
        idle: NDArray[np.bool_],
    ) -> None:
        directions = margins.reshape(1, margins.shape[0], -1, margins.shape[-1]) @ basis.T
        self.directions = np.where(idle, 0.0, directions)
        self.sizes = np.maximum(1.0, np.abs(margins).max(axis=(1, 2)))
        self.basis = basis
        self.shares = np.broadcast_to(shares, (len(kinds), *shares.shape))
        self.margins = (len(kinds), *margins.shape[:-1])
        shape = (len(kinds), margins.shape[0], free.size)
        alphas = np.array([alpha for _, alpha in kinds])[:, None, None]
        is_l1 = np.array([kind == "l1" for kind, _ in kinds])[:, None, None]
        self.alphas = np.broadcast_to(alphas, shape)
        self.halved = np.broadcast_to(is_l1 & ~free, shape)
        self.curvature = np.broadcast_to(np.where(is_l1 | free, 0.0, 2.0 * alphas), shape)

    def solve(self) -> Floats:
        """Weights of all problems."""
        now = self._start()
        for step in range(_MOST_STEPS):
            gap = self._gap(now)
            imbalance = np.where(self.halved, 0.0, self._imbalance(now)) / self.sizes
            done = np.maximum(gap, np.abs(imbalance).max(axis=-1)) <= _GAP
            if done.all():
                return now["weights"]
            # What is solved stays: nearer to its end its numbers would get worse, not better.
            after = self._after_a_step(now, gap, bold=step < _BOLD_STEPS)
            now = {n: np.where(_like(done, value), value, after[n]) for n, value in now.items()}
        raise RuntimeError(f"Hinge models were not found in {_MOST_STEPS} steps.")

    def _start(self) -> _Values:
        half = np.where(self.halved, 1.0, 0.0)
        share = self.shares / (self.margins[-1] + 1.0)
        return {
            "weights": np.zeros(half.shape),
            "plus": half.copy(),
            "minus": half.copy(),
            "plus_price": half * self.alphas,
            "minus_price": half * self.alphas,
            "loss": np.full(share.shape, 2.0),
            "loss_price": share.copy(),
            "slack": np.ones(self.margins),
            "price": np.broadcast_to(share[..., None], self.margins).copy(),
        }

    def _gap(self, now: _Values) -> Floats:
        """Duality gap of each problem."""
        return np.asarray(sum(_total(now[value] * now[price]) for value, price in _PAIRS))

    def _imbalance(self, now: _Values) -> Floats:
        return self._force(now["price"]) - self.curvature * now["weights"]

    def _force(self, prices: Floats) -> Floats:
        """Sum over margins of price times direction."""
        flat = prices.reshape(*prices.shape[:2], 1, -1)
        return np.asarray(np.matmul(flat, self.directions)[:, :, 0] @ self.basis)

    def _rise(self, weights: Floats) -> Floats:
        """What weights do to the margins."""
        turned = weights @ self.basis.T
        return np.matmul(self.directions, turned[..., None]).reshape(self.margins)

    def _curvature_of_losses(self, ratio: Floats, of_losses: Floats) -> Floats:
        """Gram matrices of the directions, weighted by margins, less what losses take up."""
        depth = ratio.sum(axis=-1) + of_losses
        if self.margins[-1] == 1:  # both in one, and nothing cancels
            roots = np.sqrt(ratio[..., 0] * of_losses / depth)
            rooted = self.directions * roots[..., None]
            return np.matmul(np.swapaxes(rooted, -1, -2), rooted)
        scaled = self.directions * ratio.reshape(*ratio.shape[:2], -1, 1)
        of_samples = scaled.reshape(*self.margins, -1).sum(axis=3)
        matrix = np.matmul(np.swapaxes(scaled, -1, -2), self.directions)
        matrix -= np.matmul(np.swapaxes(of_samples / depth[..., None], -1, -2), of_samples)
        return np.asarray(matrix)

    def _after_a_step(self, now: _Values, gap: Floats, bold: bool) -> _Values:
        """Mehrotra's step: straight at the solution, then corrected and back to the centre."""
        find = self._directions(now)
        aims = {value: -now[value] * now[price] for value, price in _PAIRS}
        guess = find(aims) if bold else {name: 0.0 for pair in _PAIRS for name in pair}
        left = np.clip(self._gap(_moved(now, guess)) / gap, 0.0, 1.0) ** 3 if bold else _CAUTION
        count = (
            2 * self.halved.sum(axis=-1)
            + self.shares[0, 0].size
            + self.margins[2] * self.margins[3]
        )
        centre = left * gap / count
        for value, price in _PAIRS:
            there = now[value] > 0.0
            aims[value] += np.where(there, _like(centre, there) - guess[value] * guess[price], 0.0)
        moves = find(aims)
        return _moved(now, moves)

    def _directions(self, now: _Values) -> Any:
        """From aims (by how much each product of a pair should change) to moves, to first order."""
        plus, minus, plus_price, minus_price = (
            np.where(self.halved, now[name], 1.0)
            for name in ("plus", "minus", "plus_price", "minus_price")
        )
        loss, slack, price = now["loss"], now["slack"], now["price"]
        force = self._force(price)
        open_plus = np.where(self.halved, self.alphas - force - now["plus_price"], 0.0)
        open_minus = np.where(self.halved, self.alphas + force - now["minus_price"], 0.0)
        open_loss = self.shares - price.sum(axis=-1) - now["loss_price"]
        open_margin = self._rise(now["weights"]) + loss[..., None] - 1.0 - slack
        give = plus / plus_price + minus / minus_price
        stiff = np.where(self.halved, 1.0 / give, self.curvature)
        ratio, of_losses = price / slack, now["loss_price"] / loss
        depth = ratio.sum(axis=-1) + of_losses
        matrix = self._curvature_of_losses(ratio, of_losses)
        matrix += np.matmul(self.basis * stiff[..., None, :], self.basis.T)
        scale = 1.0 / np.sqrt(np.diagonal(matrix, axis1=-2, axis2=-1))
        matrix *= scale[..., None, :] * scale[..., :, None]
        own = np.arange(matrix.shape[-1])
        matrix[..., own, own] += _STAND_IN

        def find(aims: _Values) -> _Values:
            eager = (aims["plus"] - plus * open_plus) / plus_price
            eager -= (aims["minus"] - minus * open_minus) / minus_price
            pull = np.where(self.halved, eager / give, force - self.curvature * now["weights"])
            push = aims["slack"] / slack - ratio * open_margin
            of_loss = push.sum(axis=-1) + aims["loss"] / loss - open_loss
            right = pull + self._force(push - ratio * (of_loss / depth)[..., None])
            turned = np.linalg.solve(matrix, (scale * (right @ self.basis.T))[..., None])[..., 0]
            weights = (scale * turned) @ self.basis
            rise = self._rise(weights)
            more = (of_loss - (ratio * rise).sum(axis=-1)) / depth
            prices = push - ratio * (rise + more[..., None])
            pulled = self._force(prices)
            up, down = open_plus - pulled, open_minus + pulled
            halves = {
                "plus": (aims["plus"] - plus * up) / plus_price,
                "minus": (aims["minus"] - minus * down) / minus_price,
                "plus_price": up,
                "minus_price": down,
            }
            return {
                **{name: np.where(self.halved, move, 0.0) for name, move in halves.items()},
                "weights": weights,
                "loss": more,
                "loss_price": (aims["loss"] - now["loss_price"] * more) / loss,
                "slack": rise + more[..., None] + open_margin,
                "price": prices,
            }

        return find


def _moved(now: _Values, moves: _Values) -> _Values:
    """As far as everything stays positive; one length, for an l2 penalty ties prices to weights."""
    fastest = np.max(
        [_total(-moves[n] / np.where(now[n] > 0.0, now[n], 1.0), np.max) for n in _POSITIVE], axis=0
    )
    far = np.minimum(1.0, _STAY / np.maximum(fastest, 1e-300))
    return {name: value + _like(far, value) * moves[name] for name, value in now.items()}


def _total(values: Floats, how: Any = np.sum) -> Floats:
    """Over all axes but those of the problems."""
    return np.asarray(how(values.reshape(*values.shape[:2], -1), axis=-1))


def _like(of_problems: Floats, values: Any) -> Floats:
    return of_problems.reshape(*of_problems.shape, *(1,) * (values.ndim - 2))
