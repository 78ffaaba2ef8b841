"""Unweighted samples that are counted side by side, against counting one by one."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from fragility.exact import whole_numbers
from fragility.scores import unit_counts
from fragility.scores.bins import MEAN_UNIT, SQUARE_UNIT, ScoreBins
from fragility.scores.layout import Tails
from fragility.scores.unit_counts import MOST, UnitCounts


def counted(parts, n_bins):
    """Totals of parts of samples, by whole numbers of any size."""
    sums = [defaultdict(int) for _ in range(3)]
    for part in parts:
        for place, *terms in zip(*(each.tolist() for each in part), strict=True):
            for own, term in zip(sums, (1, *terms), strict=True):
                own[place] += term
    return [[own[place] for place in range(n_bins)] for own in sums]


def test_totals():
    rng = np.random.default_rng(0)
    parts = []
    for n in (1, 7, 40_000, 0):
        bins, x = rng.integers(0, 5, n), rng.integers(-(2**37), 2**37, n, endpoint=True)
        parts.append((bins, x, rng.integers(0, 2**21, n, endpoint=True)))
    counts = UnitCounts(6)
    for bins, x, squares in parts:
        assert counts.has_room(bins.size)
        counts.add(bins.copy(), x.copy(), squares.copy())
    assert [part.tolist() for part in counts.totals()] == counted(parts, 6)


@pytest.mark.parametrize("sign", [1, -1])
def test_fullest_bin(sign):
    """A bin with as many samples as it may have, all as far from its centre as can be."""
    n = MOST - 1
    counts = UnitCounts(3)
    counts.add(np.full(n, 1), np.full(n, sign * 2**37), np.full(n, 2**21))
    found = [part.tolist() for part in counts.totals()]
    assert found == [[0, n, 0], [0, sign * n * 2**37, 0], [0, n * 2**21, 0]]
    assert counts.has_room(0)
    assert not counts.has_room(1)


def test_room_is_that_of_the_fullest_bin():
    counts = UnitCounts(4)
    bins = np.arange(MOST - 2) % 4
    counts.add(bins, np.zeros_like(bins), np.zeros_like(bins))
    assert counts.has_room(MOST // 2)
    assert not counts.has_room(MOST - MOST // 4)


def test_bins_hold_more_than_counts_do(monkeypatch):
    """Sums are handed on when a bin is full, and nothing is lost or counted twice."""
    monkeypatch.setattr(unit_counts, "MOST", 50_000)
    rng = np.random.default_rng(1)
    layout = Tails(6)
    bins = ScoreBins(layout, 1, 2)
    scores, codes = (
        rng.choice([0.3, 0.30001, 0.9], 300_000, p=[0.8, 0.1, 0.1]),
        np.tile([0, 1], 150_000),
    )
    for start in range(0, scores.size, 70_000):
        part = slice(start, start + 70_000)
        bins.add(scores[part], codes[part])
        if start == 140_000:  # what is read in between stays
            assert bins.table("weight").sum() == 210_000
    places = layout.places(scores)
    x = layout.distances(scores, places)
    keys = codes * layout.length + places
    terms = {
        "weight": np.ones(scores.size),
        "x": np.rint(x / MEAN_UNIT),
        "x_squares": np.rint(x * x / SQUARE_UNIT),
    }
    for name, amounts in terms.items():
        expected = [0] * (2 * layout.length)
        for key, amount in zip(keys.tolist(), amounts.tolist(), strict=True):
            expected[key] += int(amount)
        assert bins.table(name).ravel().tolist() == [float(total) for total in expected], name


@pytest.mark.parametrize("few", [0, 1, 30])
def test_extremes(few):
    """Of classes that are frequent, rare or absent."""
    rng = np.random.default_rng(few)
    bins = ScoreBins(Tails(6), 1, 4)
    seen = defaultdict(list)
    for _ in range(20):
        classes = np.concatenate([rng.integers(0, 3, 400), np.full(few, 3)])
        values = np.where(classes == 3, 0.4, 0.5) + 0.4 * (rng.random(classes.size) - 0.5)
        bins.add(values, classes)
        for code, value in zip(classes.tolist(), values.tolist(), strict=True):
            seen[code].append(value)
    for code, values in seen.items():
        found = bins.moments(0, code)
        assert (found.smallest, found.largest) == (min(values), max(values))


def test_whole_numbers():
    """The nearest ones, of two the even one, as Python rounds."""
    rng = np.random.default_rng(1)
    near = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 2.0**51, -(2.0**51), 2.0**50 + 0.5]
    terms = np.concatenate([near, rng.normal(size=200) * 2.0 ** rng.integers(-5, 48, 200)])
    expected = [round(term) for term in terms.tolist()]
    assert whole_numbers(terms).tolist() == expected
