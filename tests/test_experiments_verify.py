"""Whether committed results are those of the code at hand."""

from __future__ import annotations

import dataclasses
import hashlib
import json

import pytest

from experiments import command, files, runner, verify
from experiments.experiment import find
from tests.toy_experiment import TOY


@pytest.fixture
def folder(tmp_path):
    runner.run(TOY, tmp_path / "toy", trials=2)
    return tmp_path / "toy"


def rewritten(folder, change):
    """Another text of the results, with a record that fits."""
    text = change((folder / "results.csv").read_text("utf-8"))
    (folder / "results.csv").write_text(text, "utf-8")
    record = json.loads((folder / "environment.json").read_text("utf-8"))
    record["results"] = hashlib.sha256(text.encode()).hexdigest()
    (folder / "environment.json").write_text(json.dumps(record), "utf-8")


def test_results_of_this_code(folder):
    found = verify.verify(TOY, folder, conditions=3, trials=2)
    assert (found.units, found.rows, found.differences) == (6, 12, [])
    # More conditions than there are: all of them.
    assert verify.verify(TOY, folder, conditions=99).units == 3
    assert verify.verify(TOY, folder, conditions=1).units == 1


def test_a_number_that_differs_is_told(folder):
    row = files.load(folder).iloc[0]
    old = repr(float(row["score"]))

    def scaled(factor):
        rewritten(folder, lambda text: text.replace(old, repr(float(old) * factor)))

    scaled(1.0 + 1e-8)
    assert verify.verify(TOY, folder).differences == []
    scaled(1.0 + 1e-8)  # of the first text nothing is left: no change
    (said,) = verify.verify(TOY, folder, tolerance=1e-10).differences
    assert "row 1: score was" in said
    assert "size = 10" in said


@pytest.mark.parametrize(
    ("before", "after", "alike"),
    [
        ("1.00000", "1.00001", True),  # a unit of the last digit
        ("0.123456", "0.123457", True),
        ("1.00000", "1.00002", False),
        ("0.123456", "0.12346", False),
        ("0", "3e-15", True),
        ("0", "1e-9", False),
        ("inf", "inf", True),
        ("inf", "1e300", False),
        ("nan", "1.0", False),
    ],
)
def test_numbers_are_alike_to_the_digits_that_are_kept(before, after, alike):
    assert (verify._changed({"x": before}, {"x": after}, verify.TOLERANCE) == []) == alike


def changed(trial):
    return dataclasses.replace(TOY, trial=trial)


def another_method(condition, seed, quick):
    first, second = TOY.trial(condition, seed, quick)
    return [{**first, "method": "another"}, second]


def one_row(condition, seed, quick):
    return TOY.trial(condition, seed, quick)[:1]


def one_more_column(condition, seed, quick):
    return [{**row, "more": 1} for row in TOY.trial(condition, seed, quick)]


@pytest.mark.parametrize(
    ("trial", "said"),
    [
        (another_method, "method was thirds, is another"),
        (one_row, "2 rows in the results, 1 now"),
        (one_more_column, "more was nothing, is 1"),
    ],
)
def test_rows_that_differ_are_told(folder, trial, said):
    found = verify.verify(changed(trial), folder, conditions=1)
    assert found.differences
    assert said in found.differences[0]


def test_conditions_that_results_have_not(folder):
    more = dataclasses.replace(TOY, conditions=lambda quick: [{"size": 99, "name": "n99"}])
    (said,) = verify.verify(more, folder).differences
    assert "0 rows in the results" in said


@pytest.mark.parametrize(
    ("option", "value"), [("conditions", 0), ("trials", 0), ("jobs", 0), ("tolerance", 1.0)]
)
def test_impossible_numbers(folder, option, value):
    with pytest.raises(ValueError, match=option):
        verify.verify(TOY, folder, **{option: value})


def test_the_command(tmp_path, capsys):
    runner.run(find("example1"), tmp_path / "example1")
    told = ["--results", str(tmp_path), "--jobs", "1"]
    assert command.main(["verify", "example1", *told]) == 0
    assert "example1: 1 trial run again, 2 rows" in capsys.readouterr().err
    rewritten(tmp_path / "example1", lambda text: text.replace("0.75", "0.76"))
    assert command.main(["verify", *told]) == 1
    said = capsys.readouterr().err
    assert "auc was 0.76, is 0.75" in said
    assert "medmnist: not checked, it trains networks" in said
    assert "heart: not checked, there are no results" in said


@pytest.mark.parametrize(
    ("names", "said"),
    [([], "Nothing was checked"), (["heart"], "no results"), (["x"], "no experi")],
)
def test_nothing_to_check_is_no_success(tmp_path, capsys, names, said):
    assert command.main(["verify", *names, "--results", str(tmp_path)]) == 2
    assert said in capsys.readouterr().err
