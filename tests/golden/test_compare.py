"""The comparison of nested values finds every difference, and small changes of a bank."""

from copy import deepcopy
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest

from .compare import EXACT, Tolerance, differences, plain, read_bank, relative_above_one, write_bank

FOLDER = Path(__file__).parent


def test_equal_values_have_no_differences():
    value = {"a": [1, 2.5, None, True, "text"], "b": {"c": nan, "d": -inf}}
    assert differences(value, deepcopy(value)) == []
    assert differences(plain(value), plain(value)) == []


def test_every_difference_is_listed_with_its_path():
    expected = {"a": [1.0, 2.0], "b": {"c": "x", "gone": 1}, "d": True}
    actual = {"a": [1.5, 2.5], "b": {"c": "y", "new": 1}, "d": 1}
    assert differences(expected, actual) == [
        "a[0]: expected 1.0, got 1.5, 0.5 apart",
        "a[1]: expected 2.0, got 2.5, 0.5 apart",
        "b.c: expected 'x', got 'y'",
        "b.gone: missing, expected 1",
        "b.new: not expected, got 1",
        "d: expected True, got 1",
    ]


@pytest.mark.parametrize(
    ("expected", "actual"),
    [(1.0, nan), (nan, 1.0), (inf, -inf), (inf, 1.0), (1.0, None), (1.0, "x"), ([1.0], [1.0, 2.0])],
)
def test_what_no_tolerance_allows(expected, actual):
    assert len(differences(expected, actual, Tolerance(1e9, 1e9))) == 1
    assert len(differences(plain(expected), plain(actual), Tolerance(1e9, 1e9))) == 1


def test_tolerances_are_relative_with_a_floor():
    assert differences(100.0, 100.0 + 1e-5, Tolerance(1e-6)) == []
    assert differences(100.0, 100.0 + 1e-3, Tolerance(1e-6))
    assert differences(0.0, 1e-10, Tolerance(1e-6, 1e-9)) == []
    assert differences(0.0, 1e-8, Tolerance(1e-6, 1e-9))
    assert differences(1e-3, 1.0009e-3, relative_above_one(1e-6)) == []
    assert differences(1e3, 1e3 + 0.9e-3, relative_above_one(1e-6)) == []


def test_the_innermost_key_with_a_tolerance_decides():
    tolerance = {"outer": Tolerance(0.1), "inner": Tolerance(0.01), "": EXACT}
    expected = {"outer": {"a": [1.0], "inner": [1.0]}, "other": 1.0}
    actual = {"outer": {"a": [1.05], "inner": [1.05]}, "other": 1.05}
    paths = [line.partition(":")[0] for line in differences(expected, actual, tolerance)]
    assert paths == ["outer.inner[0]", "other"]


def test_lists_are_compared_by_norm():
    tolerance = Tolerance(1e-4, by_norm=True)
    assert differences([[1.0, 1e-9]], [[1.0, 1e-5]], tolerance) == []
    assert len(differences([[1.0, 0.0]], [[1.0, 1e-3]], tolerance)) == 1
    assert len(differences([1.0, "inf"], [1.0, "-inf"], tolerance)) == 1


def test_a_bank_is_read_as_it_was_written_and_its_bytes_repeat(tmp_path):
    content = {"b": [np.float64(0.1), np.int64(3), nan], "a": np.array([[1.0, inf]])}
    for name in ("first", "second"):
        write_bank(tmp_path / name, content)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    assert read_bank(tmp_path / "first") == {"b": [0.1, 3, "nan"], "a": [[1.0, "inf"]]}


def places_of_numbers(value, path=()):
    """Paths of every number in nested values, as keys and places."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from places_of_numbers(one, (*path, key))
    elif isinstance(value, list):
        for i, one in enumerate(value):
            yield from places_of_numbers(one, (*path, i))
    elif isinstance(value, float):
        yield path


@pytest.mark.parametrize("bank", sorted(FOLDER.glob("*.json.gz")), ids=lambda path: path.name)
def test_one_changed_number_of_a_bank_is_one_difference(bank):
    recorded = read_bank(bank)
    changed = deepcopy(recorded)
    places = list(places_of_numbers(recorded))
    *outer, last = places[len(places) // 2]
    inner = changed
    for key in outer:
        inner = inner[key]
    inner[last] = inner[last] * (1.0 + 1e-5) + 1e-5
    lines = differences(recorded, changed, Tolerance(1e-6, 1e-9))
    assert len(lines) == 1
    assert str(last) in lines[0]
