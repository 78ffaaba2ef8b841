"""The fuzzing of tables holds for a few files, and would say so if it did not."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from fragility.tables import rows

from .fuzzing import readers


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what a warning says is on the streams that are looked at
def test_a_few_damaged_tables():
    corpus = readers.corpus()
    assert all(map(readers.check, corpus))
    for place, data in enumerate(corpus):
        for damaged in islice(readers.mutations(data, np.random.default_rng(place)), 1):
            readers.check(damaged)


def test_the_same_seed_gives_the_same_files():
    data = readers.corpus()[0]
    first, again = (
        list(islice(readers.mutations(data, np.random.default_rng(3)), 20)) for _ in range(2)
    )
    assert first == again
    assert len(set(first)) > 15


def test_wrong_figures_are_noticed(monkeypatch):
    right = rows.numbers
    monkeypatch.setattr(rows, "numbers", lambda column: 1.0 - right(column))
    with pytest.raises(AssertionError):
        readers.check(b"y,p\n0,0.1\n1,0.8\n0,0.4\n1,0.3\n")


def test_faults_are_noticed(monkeypatch):
    def broken(column):
        raise KeyError("x")

    monkeypatch.setattr(rows, "numbers", broken)
    with pytest.raises(AssertionError, match="exit 3"):
        readers.check(b"y,p\n0,0.1\n1,0.8\n0,0.4\n1,0.3\n")
