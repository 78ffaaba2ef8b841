"""The table of cases: parts of it, and standard errors against loops over cases."""

from __future__ import annotations

from dataclasses import replace
from math import isnan

import numpy as np
import pytest

from fragility.cases.cases import Cases

from ..reference import spread as reference


def drawn(seed, n=60, *, weighted=False, clustered=False, n_classes=2):
    rng = np.random.default_rng([seed, n, n_classes])
    y = np.r_[np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)]
    p = rng.dirichlet(np.ones(n_classes), n)
    return Cases(
        y,
        {"a": p[:, 1] if n_classes == 2 else p},
        labels=tuple(range(n_classes)),
        weight=rng.lognormal(0, 1, n) if weighted else None,
        cluster=np.unique(rng.integers(0, n // 4, n), return_inverse=True)[1]
        if clustered
        else None,
        groups={"site": rng.integers(0, 3, n)},
    ), rng


def centred(cases, values):
    return (values - cases.mass @ values / cases.mass.sum()) / cases.mass.sum()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weighted", [False, True])
class TestSpread:
    def test_of_one_sample_and_by_class(self, seed, weighted):
        cases, rng = drawn(seed, weighted=weighted, n_classes=3)
        influence = centred(cases, rng.standard_normal(cases.n))
        expected = reference.standard_error(influence, cases.unit)
        assert cases.spread(influence).error == pytest.approx(expected, rel=1e-12)
        expected = reference.standard_error(influence, cases.unit, cases.y.tolist())
        assert cases.spread(influence, cases.y).error == pytest.approx(expected, rel=1e-12)

    def test_of_clusters(self, seed, weighted):
        cases, rng = drawn(seed, weighted=weighted, clustered=True)
        influence = centred(cases, rng.standard_normal(cases.n))
        expected = reference.standard_error(influence, cases.unit, clusters=cases.cluster.tolist())
        assert cases.spread(influence).error == pytest.approx(expected, rel=1e-12)

    def test_of_a_sample_by_cells(self, seed, weighted):
        cases, rng = drawn(seed, weighted=weighted)
        count, cell = 1 + 5 * rng.random(cases.n), rng.integers(0, 25, cases.n)
        cases = replace(cases, count=count, cell=np.unique(cell, return_inverse=True)[1])
        influence = centred(cases, rng.standard_normal(cases.n))
        expected = reference.standard_error_of_sample(influence, cases.unit, count, cell.tolist())
        assert cases.spread(influence).error == pytest.approx(expected, rel=1e-12)

    def test_does_not_depend_on_the_unit_of_the_figure(self, seed, weighted):
        cases, rng = drawn(seed, weighted=weighted)
        influence = centred(cases, rng.standard_normal(cases.n))
        one, tiny = cases.spread(influence), cases.spread(1e-200 * influence)
        assert tiny.error == pytest.approx(1e-200 * one.error, rel=1e-12)
        assert tiny.freedom == pytest.approx(one.freedom, rel=1e-12)


def test_cases_that_are_all_in_the_table_leave_nothing_open():
    """Rows with a count and no cell, such as bins, are as sure as the cases themselves."""
    cases, rng = drawn(1, 30)
    count = rng.integers(1, 4, cases.n)
    binned = replace(cases, count=count.astype(float))
    repeated = cases.take(np.repeat(np.arange(cases.n), count))
    values = rng.standard_normal(cases.n)
    of_bins = binned.spread(centred(binned, values)).error
    of_rows = repeated.spread(centred(repeated, np.repeat(values, count))).error
    assert of_bins == pytest.approx(of_rows, rel=1e-12)


def test_the_error_of_a_part_of_a_sample_sees_the_rows_outside():
    """How many cases of a cell are in the part is uncertain, which its own rows do not show."""
    cases, rng = drawn(2, 400)
    cells = rng.integers(0, 20, cases.n)
    sample = replace(cases, count=np.full(cases.n, 8.0), cell=cells)
    rows = np.flatnonzero(rng.random(cases.n) < 0.3)
    subset = sample.take(rows)
    influence = rng.standard_normal(rows.size)
    padded = np.zeros(cases.n)
    padded[rows] = influence
    among = np.zeros(cases.n, dtype=bool)
    among[rows] = True
    assert subset.spread(influence) == sample.spread(padded, among=among)
    # Rows of a cell that all have one value tell their mean, but not their number.
    total = np.ones(rows.size)
    alone = replace(subset, whole=None, cell=np.unique(subset.cell, return_inverse=True)[1])
    assert subset.spread(total).error > 1.5 * alone.spread(total).error


def test_a_part_of_a_part_remembers_the_whole_sample():
    cases, rng = drawn(3, 100)
    sample = replace(cases, count=np.full(100, 2.0), cell=rng.integers(0, 5, 100))
    twice = sample.take(np.arange(50, 100)).take(np.array([True, False] * 25))
    assert twice.whole[0] is sample
    np.testing.assert_array_equal(twice.whole[1], np.arange(50, 100, 2))
    np.testing.assert_array_equal(twice.rows, np.arange(50, 100, 2))


def test_a_group_of_a_sample_stands_for_the_rows_of_its_own_strata():
    cases, _ = drawn(4, 40)
    strata = {"site": (np.arange(1.0, 41.0), np.arange(40) // 4)}
    sample = replace(cases, count=np.full(40, 3.0), cell=np.zeros(40, dtype=int), strata=strata)
    group = sample.group("site", 1)
    rows = np.flatnonzero(cases.groups["site"] == 1)
    np.testing.assert_array_equal(group.count, rows + 1.0)
    np.testing.assert_array_equal(group.mass, rows + 1.0)
    assert group.whole is None


def test_too_few_cases_have_no_standard_error():
    cases, _ = drawn(5, 2)
    assert isnan(cases.spread(np.array([1.0, -1.0]), cases.y).error)
    assert cases.spread(np.array([1.0, -1.0])).freedom == 1.0


def test_answers_have_a_truth_for_each_model():
    right = {"a": np.array([True, False]), "b": np.array([False, False])}
    p = {"a": np.array([0.5, 0.6]), "b": np.array([0.1, 0.2])}
    cases = Cases(right, p, ("wrong", "right"))
    assert cases.answers
    assert cases.truth("a").tolist() == [1, 0]
    assert cases.take(np.array([1])).truth("b").tolist() == [0]


def test_degrees_of_freedom_are_few_where_few_cases_are_most_of_the_error():
    """Satterthwaite: twice the squared sum of squares over their squared deviations."""
    cases, rng = drawn(6, 80)
    influence = centred(cases, np.r_[50.0, rng.standard_normal(79)])
    squares = [(w * i) ** 2 for w, i in zip(cases.unit, influence, strict=True)]
    total = sum(squares)
    excess = sum(s * s for s in squares) - total**2 / 80
    assert cases.spread(influence).freedom == pytest.approx(2 * total**2 / excess, rel=1e-9)
    assert cases.spread(influence).freedom < 3.0
    by_class = 0.0
    for code in (0, 1):
        of_class = [s for s, y in zip(squares, cases.y, strict=True) if y == code]
        by_class += sum(s * s for s in of_class) - sum(of_class) ** 2 / len(of_class)
    freedom = cases.spread(influence, cases.y).freedom
    assert freedom == pytest.approx(2 * total**2 / by_class, rel=1e-9)
    # Equal squares do not make few cases many.
    assert cases.spread(np.where(np.arange(80) % 2, 1.0, -1.0)).freedom == 79.0
