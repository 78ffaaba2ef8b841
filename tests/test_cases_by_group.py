"""Cases in order of their groups are the same cases, and have the same sums."""

from __future__ import annotations

import numpy as np
import pytest

from fragility.scores import sums as module
from fragility.scores.cases import Cases
from fragility.scores.sums import Shape, Sums


def drawn(n: int, n_classes: int, *, weighted: bool) -> Cases:
    rng = np.random.default_rng(n_classes)
    p = rng.dirichlet(np.ones(n_classes), n)
    scores = {name: p[:, 1] if n_classes == 2 else np.roll(p, k, 0) for k, name in enumerate("ab")}
    groups = np.stack([rng.integers(0, 5, n), rng.integers(0, 3, n)], axis=1).astype(np.uint8)
    weights = rng.uniform(0.5, 2.0, n) if weighted else None
    costs = rng.uniform(1.0, 9.0, n) if weighted else None
    return Cases(rng.integers(0, n_classes, n).astype(np.uint8), scores, weights, groups, costs)


def shape_of(cases: Cases, n_classes: int) -> Shape:
    weighted = cases.weights is not None
    return Shape(n_classes, 1, tuple(cases.scores), (5, 3), weighted, weighted)


def digits(sums: Sums) -> list[np.ndarray]:
    """All that two equal states have in common."""
    found = []
    for own in sums.all:
        for bins in (own.bins, own.confidence):
            found += [] if bins is None else bins.to_arrays()
        for exact in (*own.tally.sums.values(), own.totals):
            exact.settle()
            found.append(exact.digits)
    return found


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_cases_stay_together(n_classes: int, weighted: bool) -> None:
    cases = drawn(400, n_classes, weighted=weighted)
    found = cases.by_group
    assert found.groups is not None
    assert np.all(np.diff(found.groups[:, 0].astype(int)) >= 0)

    def rows(part: Cases) -> list[tuple[float, ...]]:
        return sorted(zip(*(column.tolist() for column in part.columns), strict=True))

    assert rows(found) == rows(cases)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_sums_do_not_depend_on_order_nor_parts(
    n_classes: int, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against sums over cases one by one, which no order of groups changes."""
    cases = drawn(150, n_classes, weighted=weighted)
    single = Sums(shape_of(cases, n_classes))
    for row in range(cases.size):
        single.add(cases.take(slice(row, row + 1)))
    monkeypatch.setattr(module, "_ORDERED", 64)
    together = Sums(shape_of(cases, n_classes))
    together.add(cases)
    for own, expected in zip(digits(together), digits(single), strict=True):
        np.testing.assert_array_equal(own, expected)
