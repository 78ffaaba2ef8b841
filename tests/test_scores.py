"""Bins of scores and folds of counted cases."""

from __future__ import annotations

from bisect import bisect_right
from itertools import product
from math import comb

import numpy as np
import pytest

from fragility.ordered import distinct_places
from fragility.scores.cases import Cases
from fragility.scores.folds import dealt
from fragility.scores.layout import Tails
from fragility.scores.sums import Shape, Sums

from .reference.calibration import bin_edges


@pytest.mark.parametrize("m", [4, 5, 7, 10])
def test_bins_are_those_of_the_definition(m):
    layout = Tails(m)
    assert layout.edges.tolist() == bin_edges(m)
    assert layout.length == layout.edges.size


@pytest.mark.parametrize("m", [4, 5, 10, 13, 16])
def test_a_score_on_an_edge_lies_above_it(m):
    layout = Tails(m)
    places = np.arange(layout.length)
    np.testing.assert_array_equal(layout.places(layout.edges), places)
    before = np.nextafter(layout.edges[1:], 0.0)
    np.testing.assert_array_equal(layout.places(before), places[:-1])


def test_every_score_is_in_its_bin():
    rng = np.random.default_rng(0)
    layout = Tails(13)
    scores = np.concatenate(
        [
            rng.random(20_000),
            10.0 ** -rng.uniform(0, 330, 5_000),
            1.0 - 10.0 ** -rng.uniform(0, 17, 5_000),
            rng.integers(0, 101, 500) / 100,
            [0.0, 5e-324, 2.0**-49, 0.5, np.nextafter(0.5, 0.0), 1.0 - 2.0**-53, 1.0],
        ]
    )
    expected = np.searchsorted(layout.edges, scores, side="right") - 1
    np.testing.assert_array_equal(layout.places(scores), expected)
    assert layout.length == 15_362


@pytest.mark.parametrize("m", [4, 9, 13])
def test_widths_hold_the_distances_to_the_centres(m):
    """A power of two for each bin, as wide as the bin or less than twice that."""
    layout = Tails(m)
    last = np.append(np.nextafter(layout.edges[1:], 0.0), 1.0)
    for end in (layout.edges, last):
        assert (np.abs(end - layout.centres) <= 0.5 * layout.widths).all()
    assert (np.frexp(layout.widths)[0] == 0.5).all()
    inner = slice(1, -1)
    wide = np.diff(layout.edges, append=1.0)[inner]
    assert (layout.widths[inner] < 2.0 * wide).all()


def test_bins_below_and_above_one_half_mirror_each_other():
    layout = Tails(9)
    half = layout.length // 2
    widths = np.diff(layout.edges)
    np.testing.assert_allclose(widths[1:half], widths[half:][::-1], rtol=1e-12, atol=1e-16)


@pytest.mark.parametrize("m", [3, 17, -1])
def test_other_widths_are_refused(m):
    with pytest.raises(ValueError, match="m must be from 4 to 16; got"):
        Tails(m)


@pytest.mark.parametrize(
    "units", [[5, 0, 7], [1], [0, 0], [3], [10, 1, 1, 1], [0, 9, 0, 4, 2], list(range(40))]
)
@pytest.mark.parametrize("n_folds", [2, 3, 5])
def test_all_cases_are_dealt_into_equal_folds(units, n_folds):
    folds = dealt(np.array(units), n_folds, [3, 1])
    assert folds.shape == (n_folds, len(units))
    assert (folds >= 0).all()
    np.testing.assert_array_equal(folds.sum(axis=0), units)
    sizes = folds.sum(axis=1)
    assert sizes.max() - sizes.min() <= 1
    np.testing.assert_array_equal(sizes, np.sort(sizes)[::-1])


@pytest.mark.slow
def test_the_law_is_that_of_random_folds():
    units, n_folds, n_draws = (2, 1, 3), 3, 5_000
    sizes = (2, 2, 2)
    seen: dict[tuple[int, ...], int] = {}
    for draw in range(n_draws):
        key = tuple(dealt(np.array(units), n_folds, [7, draw]).ravel().tolist())
        seen[key] = seen.get(key, 0) + 1
    # Every table with these margins, by the number of ways to deal single cases that make it.
    ways: dict[tuple[int, ...], int] = {}
    for entries in product(range(3), repeat=9):
        table = np.reshape(entries, (3, 3))
        if tuple(table.sum(axis=0)) == units and tuple(table.sum(axis=1)) == sizes:
            count = 1
            for atom in range(3):
                left = units[atom]
                for fold in range(3):
                    count *= comb(left, table[fold, atom])
                    left -= table[fold, atom]
            ways[entries] = count
    total = sum(ways.values())
    assert set(seen) <= set(ways)
    for table, count in ways.items():
        expected = n_draws * count / total
        assert abs(seen.get(table, 0) - expected) < 5 * expected**0.5, table


def test_folds_are_the_same_in_every_run():
    folds = dealt(np.array([12, 3, 0, 8, 4]), 5, [1, 2])
    np.testing.assert_array_equal(folds, dealt(np.array([12, 3, 0, 8, 4]), 5, [1, 2]))
    assert not np.array_equal(folds, dealt(np.array([12, 3, 0, 8, 4]), 5, [1, 3]))


def test_many_cases_and_many_atoms():
    rng = np.random.default_rng(0)
    units = rng.poisson(40, 15_362) * (rng.random(15_362) < 0.5) * 1_000
    folds = dealt(units, 5, [0, 0])
    np.testing.assert_array_equal(folds.sum(axis=0), units)
    held = units > 0
    spread = (folds[:, held] - units[held] / 5) / np.sqrt(units[held] * 0.16)
    assert spread.std() == pytest.approx(1.0, abs=0.02)


def test_groups_know_the_least_and_largest_score_of_their_bins():
    rng = np.random.default_rng(3)
    p = np.round(rng.beta(0.3, 0.3, 4_000), 5)
    codes = (rng.random(p.size) < p).astype(np.uint8)
    groups = rng.integers(0, 3, (p.size, 2))
    sums = Sums(Shape(2, 1, ("model",), (3, 3), weighted=False, priced=False))
    for part in np.split(np.arange(p.size), [10, 1_500]):
        sums.add(Cases(codes[part], {"model": p[part]}, None, groups[part]))
    bins = sums.groups["model"].bins
    edges = bins.layout.edges.tolist()
    held: dict[int, list[float]] = {}
    for score in p.tolist():
        held.setdefault(bisect_right(edges, score) - 1, []).append(score)
    for place in range(len(edges)):
        scores = held.get(place, [])
        expected = min(scores, default=np.inf), max(scores, default=-np.inf)
        assert tuple(bins.ranges[:, 0, place].tolist()) == expected
    for group, code in product(range(3), range(2)):
        own = p[(groups[:, 0] == group) & (codes == code)]
        found = bins.moments(0, 2 * group + code)
        assert (found.smallest, found.largest, found.lightest) == (own.min(), own.max(), 1.0)


@pytest.mark.parametrize(
    "parts", [([], []), ([0.5], []), ([0.1, 0.5, 0.7], [0.5, 0.6]), ([0.2, 0.2], [-0.0, 0.0])]
)
def test_distinct_values_and_their_places(parts):
    values = [value for part in parts for value in part]
    distinct, places = distinct_places(*(np.array(part, dtype=float) for part in parts))
    assert distinct.tolist() == sorted(set(values))
    assert [sorted(set(values)).index(value) for value in values] == places.tolist()
