"""Decisions at the thresholds on offer: those of sums are those counted case by case."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from fragility import Report, ScoreState
from fragility.scores.tally import decision_counts, threshold_grid

from .reference import deferral


def next_to(rng, grid, n):
    """Probabilities whose confidence is at a threshold, or a few roundings beside it."""
    base = rng.choice(grid[1:], n)
    base = np.where(rng.random(n) < 0.5, base, 1.0 - base)
    for _ in range(3):
        base = np.nextafter(base, rng.choice([0.0, 1.0, 0.5], n))
    return np.clip(base, 0.0, 1.0)


SCORES = {
    "next to thresholds": next_to,
    "rounded": lambda rng, grid, n: np.round(rng.random(n), 3),
    "saturated": lambda rng, grid, n: rng.choice([0.0, 1e-20, 0.5, 1.0, 1 - 1e-16], n),
    "next to one": lambda rng, grid, n: 1 - 10.0 ** -rng.uniform(0, 18, n),
    "any": lambda rng, grid, n: rng.random(n),
}


def counted(codes, scores, weights=None, positive=None, n_classes=2, hold=0, sizes=(100,)):
    """Decisions of a state that holds no case, or all."""
    state = ScoreState(range(n_classes), ["m"], (), weights is not None, hold, pos_label=positive)
    starts = np.cumsum([0, *sizes])
    for rows in np.split(np.arange(codes.size), starts[(starts > 0) & (starts < codes.size)]):
        state.update(codes[rows], scores[rows], None if weights is None else weights[rows])
    assert state.complete == (hold > 0)
    (model,) = Report.from_state(state, calibrate=False).models
    cells = state.sums().models["m"].tally.cells()
    place = (1 if positive is None else positive) if n_classes == 2 else None
    direct = decision_counts(cells, threshold_grid(n_classes), place, whole=weights is None)
    return model.raw.decisions, direct


def same(found, expected, grid):
    assert found.thresholds.tolist() == grid.tolist()
    for name, amounts in expected.items():
        assert getattr(found, name).tolist() == amounts, name


def rest(x: float) -> float:
    """One minus a probability; below one half, that is above it, however it is rounded."""
    return max(1.0 - x, np.nextafter(0.5, 1.0)) if x < 0.5 else 1.0 - x


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("positive", [0, 1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("wide", [False, True])
def test_decisions_are_counted_case_by_case(monkeypatch, kind, positive, weighted, wide):
    """Where bins are wide, several thresholds cut one."""
    if wide:
        monkeypatch.setattr("fragility.scores.sums._FINEST", 4)
    rng = np.random.default_rng(5)
    grid = threshold_grid(2)
    p = SCORES[kind](rng, grid, 350)
    codes = rng.integers(0, 2, 350)
    weights = rng.integers(0, 5, 350).astype(float) if weighted else None
    rows = [[rest(x), x] if positive else [x, rest(x)] for x in p.tolist()]
    expected = deferral.decisions(codes.tolist(), rows, grid.tolist(), weights, positive)
    for hold in (0, np.inf):
        for found in counted(codes, p, weights, positive, hold=hold, sizes=(100, 1, 200)):
            same(found, expected, grid)


def test_decisions_where_thresholds_are_edges_of_bins():
    """The confidence 1 - p is rounded, perhaps to a threshold that is in the next bin."""
    grid = threshold_grid(2)
    edges = grid[(grid * 2**13) % 1 == 0]
    assert {0.5, 0.625, 0.75, 0.875} <= set(edges.tolist())
    both = np.concatenate([grid[1:], 1.0 - grid[1:]])
    shifts = np.arange(-4, 5) * 2.0**-55
    near = np.clip((both[:, np.newaxis] + shifts).ravel(), 0.0, 1.0)
    steps = [np.nextafter(both, end) for end in (0.0, 1.0)]
    near = np.concatenate([near, *steps])
    codes = np.arange(near.size) % 2
    rows = [[rest(x), x] for x in near.tolist()]
    expected = deferral.decisions(codes.tolist(), rows, grid.tolist(), None, 1)
    for found in counted(codes, near):
        same(found, expected, grid)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [3, 22])
def test_decisions_on_several_classes(n_classes):
    rng = np.random.default_rng(6)
    grid = threshold_grid(n_classes)
    codes = np.r_[np.arange(n_classes), rng.integers(0, n_classes, 300 - n_classes)]
    p = rng.dirichlet(np.full(n_classes, 0.2), 300)
    top = np.clip(next_to(rng, grid, 300), 0.5, 1.0)
    winner = np.where(rng.random(300) < 0.6, codes, (codes + 1) % n_classes)
    p[np.arange(300), winner] = 0.0
    p *= ((1 - top) / p.sum(axis=1))[:, None]
    p[np.arange(300), winner] = top
    expected = deferral.decisions(codes.tolist(), p.tolist(), grid.tolist())
    for found in counted(codes, p, n_classes=n_classes):
        assert found.reviewed.tolist() == expected["reviewed"]
        assert found.errors.tolist() == expected["errors"]
        assert found.false_negatives is None


@pytest.mark.parametrize("n_classes", [2, 3, 4, 10, 20, 21, 100, 5000])
def test_the_grid_is_round_and_fine_towards_one(n_classes):
    grid = threshold_grid(n_classes).tolist()
    assert grid[0] == 0.0
    assert grid[-1] == 1.0
    assert len(grid) <= 250
    assert all(a < b for a, b in pairwise(grid))
    assert all(len(repr(value)) <= 6 for value in grid)
    steps = [b - a for a, b in pairwise(grid[1:])]
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(steps))
    assert 1 / n_classes <= grid[1] <= 1 / n_classes + 0.01
    assert {0.5, 0.9, 0.95, 0.99, 0.999, 0.9999} <= set(grid)
    assert grid == [float(threshold) for threshold in deferral.offered(n_classes)]
