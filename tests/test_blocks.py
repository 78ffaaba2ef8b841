"""Blocks of one size, wherever parts end."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from fragility.report import blocks
from fragility.report.answer_reading import OutcomeBatch
from fragility.report.rereading import CaseRows
from fragility.scores.answers import Answers
from fragility.scores.cases import Cases


def cases(start, stop):
    rows = np.arange(start, stop)
    groups = np.stack([rows % 2, rows % 3], axis=1)
    return CaseRows(Cases(rows % 2, {"m": rows / 100}, rows + 1.0, groups), rows, rows // 4)


def answers(start, stop):
    rows = np.arange(start, stop)
    own = {
        "a": Answers(rows % 2 == 0, rows / 100, rows % 5 == 0),
        "b": Answers(rows % 3 == 0, rows / 200),
    }
    return OutcomeBatch(own, rows, rows + 1.0, None, None, rows // 4)


def flat(part):
    """All arrays in a block, by place."""
    if isinstance(part, np.ndarray) or part is None:
        return [part]
    inner = part.values() if isinstance(part, dict) else part
    return [array for piece in inner for array in flat(piece)]


@pytest.mark.parametrize("make", [cases, answers])
@pytest.mark.parametrize("ends", [[0, 50], [0, 1, 2, 3, 50], [0, 9, 10, 20, 21, 50], [0, 7, 7, 50]])
def test_the_same_blocks(monkeypatch, make, ends):
    monkeypatch.setattr(blocks, "BLOCK", 10)
    parts = [make(a, b) for a, b in pairwise(ends)]
    found = list(blocks.even_blocks(parts, type(parts[0]).joined))
    assert [part.rows.tolist() for part in found] == [
        list(range(k, k + 10)) for k in range(0, 50, 10)
    ]
    for k, part in enumerate(found):
        for one, two in zip(flat(part), flat(make(10 * k, 10 * k + 10)), strict=True):
            assert (one is None) == (two is None)
            if one is not None:
                np.testing.assert_array_equal(one, two)
                assert one.dtype == two.dtype


def test_the_last_block_may_be_smaller(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 4)
    parts = [cases(0, 3), cases(3, 6)]
    sizes = [part.rows.size for part in blocks.even_blocks(parts, CaseRows.joined)]
    assert sizes == [4, 2]
    assert not list(blocks.even_blocks([], CaseRows.joined))
