"""Influence of each case on the index: paired tests, standard errors, worst cases.

The cases come once more, class by class, after the index of every pair is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import exp, inf
from typing import NamedTuple

import numpy as np

from .._typing import Floats, Indices
from ..index.certified import CertifiedIndex
from ..index.influence import LEAST_REST
from ..index.root import SampleEquation, solve
from .index import KnownIndex, PairSums, pair_scale
from .spread import nine_digits

#: Up to this share -ln(1 - x) comes from four terms of its series.
_SMALL_SHARE = 1e-3


class Tilt(NamedTuple):
    """Exponential tilt of the scores of a class in one column: how much more each counts.

    A pair of index zero has an infinite tilt `s`, which moves nothing: all weight goes to the
    values from `pivot` on. A pair of infinite index has no tilt: the worst case is the data.
    """

    column: int
    sign: float
    s: float
    pivot: float
    log_moment: float

    def lift(self, value: Floats) -> Floats:
        """Share of each case in the worst case over its share in the data, by its signed score."""
        if self.s == inf:
            return np.where(value >= self.pivot, exp(-self.log_moment), 0.0)
        return np.asarray(np.exp(self.s * (value - self.pivot) - self.log_moment))


class Side(NamedTuple):
    """One class in a pair: how to tilt its scores, and how the index moves with a tilt."""

    tilt: Tilt
    mean: float
    mean_residual: float
    found: CertifiedIndex
    share: float
    scale: float

    def tilted(self, scores: Floats) -> Tilted:
        """Cases of these scores."""
        value = self.tilt.sign * scores
        return Tilted(self, self.tilt.lift(value), value)


class Tilted(NamedTuple):
    """Cases in a pair: how many times its share each has in the worst case, and its value."""

    side: Side
    lift: Floats
    value: Floats


def sides_of(known: KnownIndex, n_classes: int) -> list[list[Side]]:
    """By class, the sides of its pairs."""
    sides: list[list[Side]] = [[] for _ in range(n_classes)]
    for pair, found in zip(known.pairs, known.found, strict=True):
        column, groups = 0 if known.is_binary else pair.positive, known.groups(pair)
        s = 1.0 / found.fragility if found.fragility > known.source.least_index else inf
        equation = SampleEquation(groups, 0.0)
        scale = pair_scale(equation, s) if 0.0 < s < inf else 0.0
        codes = pair.negatives[0], pair.positive
        for code, group, sign in zip(codes, groups, (1.0, -1.0), strict=True):
            if s == inf:
                pivot, log_moment = known.source.top(column, code, sign)
            elif equation.is_steep(s):
                pivot, log_moment = group.pivot, group.log_moment(s).value
            else:  # as the scale was found, so that the moment is known already
                pivot, log_moment = group.mean, group.centred_log_moment(s).value
            tilt = Tilt(column, sign, s, pivot, log_moment)
            sides[code].append(
                Side(tilt, group.mean, group.mean_residual, found, known.share, scale)
            )
    return sides


class ScoreInfluence:
    """Of scores as they are."""

    def __init__(self, known: KnownIndex, n_classes: int) -> None:
        self.known = known
        self.sides = sides_of(known, n_classes)

    def tilted(self, code: int, columns: Floats) -> Iterator[Tilted]:
        return (side.tilted(columns[side.tilt.column]) for side in self.sides[code])


class TableInfluence:
    """Of calibrated scores of two classes, which depend on the place of the score in a table.

    Parameters
    ----------
    known : KnownIndex
        Of the calibrated scores.
    scores, shares : ndarray of shape (n_maps, B), (2, n_maps, B)
        Calibrated score of each value under each map, and how much of a class's cases is under it.
    places : callable
        Place in the table of each of some scores.
    """

    def __init__(
        self,
        known: KnownIndex,
        scores: Floats,
        shares: Floats,
        places: Callable[[Floats], Indices],
    ) -> None:
        self.known, self._places = known, places
        self._tables: list[list[Tilted]] = [[], []]
        for code, sides in enumerate(sides_of(known, 2)):
            for side, *parts in (side.tilted(scores) for side in sides):
                means = (np.einsum("fb,fb->b", shares[code], part) for part in parts)
                self._tables[code].append(Tilted(side, *means))

    def tilted(self, code: int, columns: Floats) -> Iterator[Tilted]:
        places = self._places(columns[0])
        for side, lift, value in self._tables[code]:
            yield Tilted(side, lift.take(places), value.take(places))


def case_influences(tilted: Sequence[Tilted], shares: Floats, *, left_out: bool) -> Floats:
    """Movement of index and ratio, (2, n), with a case that has a share of its class's weight.

    To first order, or if the case is left out, as `fragility.index.influence` has it.
    """
    index, ratio = found = np.zeros((2, shares.size))
    rest = np.maximum(1.0 - shares, LEAST_REST)
    own = _minus_log_of_rest(shares) if left_out else shares
    for side, lift, value in tilted:
        if not 0.0 < side.tilt.s < inf:
            continue
        if left_out:
            excess = _minus_log_of_rest(lift * shares)
            excess -= own
            excess *= rest
        else:
            excess = (lift - 1.0) * shares
        excess *= side.share * side.scale
        index += excess
        # Of FI / separation, where the separation falls with the values.
        deviation = value - side.mean
        deviation -= side.mean_residual
        deviation *= shares
        deviation *= side.share * side.found.fragility / side.found.separation
        excess += deviation
        excess /= side.found.separation
        ratio += excess
    return found


def _minus_log_of_rest(shares: Floats) -> Floats:
    """-ln(1 - x) of shares of a weight, up to what influence functions can tell."""
    if shares.max(initial=0.0) > _SMALL_SHARE:
        return np.asarray(-np.log(np.maximum(1.0 - shares, LEAST_REST)))
    series = shares * 0.25
    for term in (1.0 / 3.0, 0.5, 1.0):
        series += term
        series *= shares
    return series


class _Mistaken(NamedTuple):
    """One class in a pair with a pseudo-mistake: number of the pair, tilt, weight of the class."""

    pair: int
    tilt: Tilt
    weight: float


class PairReading:
    """Sums that intervals of several classes need, filled as cases come.

    Parameters
    ----------
    influence : ScoreInfluence
    weight : ndarray of shape (C,)
        Of each class.
    """

    def __init__(self, influence: ScoreInfluence, weight: Floats) -> None:
        known = influence.known
        self._weight, self._in_parts = weight, False
        n_classes, n_pairs = weight.size, len(known.pairs)
        self.sums = PairSums(np.zeros(n_classes), np.zeros((n_classes, n_pairs, n_pairs)))
        groups = [known.groups_with_mistakes(pair) for pair in known.pairs]
        roots = [solve(part, 0.0) for part in groups]
        self._mistaken: list[list[_Mistaken]] = [[] for _ in range(n_classes)]
        if min(roots, default=0.0) <= 0.0:
            return  # the upper limit is infinite, whatever the cases say
        for place, (pair, part, s) in enumerate(zip(known.pairs, groups, roots, strict=True)):
            if s * known.source.least_index > 1.0:
                continue
            codes = pair.negatives[0], pair.positive
            for code, group, sign in zip(codes, part, (1.0, -1.0), strict=True):
                tilt = Tilt(pair.positive, sign, s, group.pivot, group.log_moment(s).value)
                whole = weight[code] * (1.0 + 1.0 / known.effective_size(code))
                self._mistaken[code].append(_Mistaken(place, tilt, whole))

    def add(
        self, code: int, columns: Floats, tilted: Sequence[Tilted], weights: Floats | None
    ) -> None:
        """Add cases of a class, with how they are tilted."""
        shares = np.broadcast_to(1.0 if weights is None else weights, columns.shape[1:])
        first_order, _ = case_influences(tilted, shares / self._weight[code], left_out=False)
        self.sums.squares[code] += float(first_order @ first_order)
        members = self._mistaken[code]
        excesses = np.empty((len(members), columns.shape[1]))
        for row, (_, tilt, weight) in zip(excesses, members, strict=True):
            np.subtract(tilt.lift(tilt.sign * columns[tilt.column]), 1.0, out=row)
            row *= (1.0 if weights is None else weights) / weight
        places = [member.pair for member in members]
        self.sums.products[code][np.ix_(places, places)] += excesses @ excesses.T

    def merge(self, other: PairReading) -> None:
        """Add the sums of other cases."""
        for own, more in zip(self.sums, other.sums, strict=True):
            own += more
        self._in_parts = True

    def finish(self) -> PairSums:
        """The sums over all cases."""
        if self._in_parts:
            for part in self.sums:
                part[...] = np.vectorize(nine_digits, otypes=[np.float64])(part)
        return self.sums
