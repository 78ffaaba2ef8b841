"""Decisions at a grid of thresholds: streamed ones are those counted case by case."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from fragility.deferral.decision_counts import DecisionTally, threshold_grid
from fragility.streaming import Batch, measure_batches
from fragility.streaming import batches as batches_module

from .reference import page


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


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("positive", [0, 1])
@pytest.mark.parametrize("weighted", [False, True])
def test_streamed_decisions_are_counted_case_by_case(monkeypatch, kind, positive, weighted):
    monkeypatch.setattr(batches_module, "BLOCK_ROWS", 100)
    rng = np.random.default_rng(5)
    # Thresholds closer than any bin, too.
    grid = np.union1d(threshold_grid(2), [0.7, 0.7 + 1e-12, 0.7 + 2e-12, 1 - 1e-13, 1 - 1e-15])
    p = SCORES[kind](rng, grid, 350)
    codes = rng.integers(0, 2, 350)
    weights = rng.integers(0, 5, 350).astype(float) if weighted else None
    batch = Batch(codes, {"m": p}, weights)
    measured = measure_batches(
        lambda: [batch], labels=[0, 1], models=["m"], pos_label=positive, thresholds=grid
    )
    rows = [[1 - x, x] if positive else [x, 1 - x] for x in p.tolist()]
    expected = page.decisions(codes.tolist(), rows, grid.tolist(), weights, positive)
    for name, amounts in expected.items():
        assert getattr(measured.models["m"].decisions, name).tolist() == amounts, name


def test_streamed_decisions_where_thresholds_are_edges_of_bins():
    """The confidence 1 - p is rounded, perhaps to a threshold that is in the next bin."""
    edges = [(k / 2**16) ** 4 for k in range(2_000, 12_000, 151)]
    grid = np.unique([1.0 - edge for edge in edges] + [1.0])
    shifts = np.arange(-4, 5) * 2.0**-55
    near = np.concatenate([edge + shifts for edge in edges] + [np.array(edges) * (1 - 1e-7)])
    codes = np.arange(near.size) % 2
    batch = Batch(codes, {"m": near})
    measured = measure_batches(lambda: [batch], labels=[0, 1], models=["m"], thresholds=grid)
    rows = [[1 - x, x] for x in near.tolist()]
    expected = page.decisions(codes.tolist(), rows, grid.tolist(), None, 1)
    for name, amounts in expected.items():
        assert getattr(measured.models["m"].decisions, name).tolist() == amounts, name


@pytest.mark.parametrize("wide", [False, True])
def test_streamed_decisions_on_several_classes(monkeypatch, wide):
    """Where memory allows wide bins only, several thresholds cut one."""
    n_classes = 3
    monkeypatch.setattr(batches_module, "BLOCK_ROWS", 100)
    if wide:
        monkeypatch.setattr("fragility.streaming.fine_bins._STATE_BYTES", 0)
    rng = np.random.default_rng(6)
    grid = threshold_grid(n_classes)
    codes = np.r_[np.arange(n_classes), rng.integers(0, n_classes, 300 - n_classes)]
    p = rng.dirichlet(np.full(n_classes, 0.2), 300)
    top = np.clip(next_to(rng, grid, 300), 0.5, 1.0)
    p[np.arange(300), codes] = 0.0
    p *= ((1 - top) / p.sum(axis=1))[:, None]
    p[np.arange(300), np.where(rng.random(300) < 0.6, codes, (codes + 1) % n_classes)] = top
    batch = Batch(codes, {"m": p})
    measured = measure_batches(
        lambda: [batch], labels=range(n_classes), models=["m"], thresholds=grid
    )
    expected = page.decisions(codes.tolist(), p.tolist(), grid.tolist())
    decided = measured.models["m"].decisions
    assert decided.reviewed.tolist() == expected["reviewed"]
    assert decided.errors.tolist() == expected["errors"]
    assert decided.false_negatives is None


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


@pytest.mark.parametrize("thresholds", [[0.5], [0.5, 0.5, 1.0], [0.9, 0.5, 1.0], []])
def test_thresholds_that_are_none(thresholds):
    with pytest.raises(ValueError, match="ascending"):
        DecisionTally(np.array(thresholds))
