"""Any number of trials and jobs: it runs, or a sentence says why not."""

from __future__ import annotations

import dataclasses
import json
import sqlite3

import numpy as np
import pytest

from experiments import command, files, ova, runner
from experiments.experiment import find
from experiments.journal import FILE
from tests.toy_experiment import TOY


def test_every_drawing_of_a_part_has_its_index():
    """Also one of so few errors that none is above zero, whose index no scale would change."""
    from fragility import loss_fragility

    seeds = [runner.seed_of("ova", trial) for trial in range(200)]
    for quick, count in ((True, 200), (False, 3)):
        for seed in seeds[:count]:
            row = next(ova.trial({"part": "conflict", "case": "b"}, seed, quick))
            assert row["first"] == pytest.approx(0.0554, rel=1e-9)
            assert 0.0 < row["ova"] < 0.06
    # The errors themselves: the first seed whose drawing was without risk, and its neighbour.
    for trial in (29, 30):
        rng = np.random.default_rng(runner.seed_of("ova", trial))
        errors = ova.errors_of(rng, 0.0554, ova.QUICK_SAMPLES)
        assert errors.size == ova.QUICK_SAMPLES
        assert errors.max() > 0.0 > errors.mean()
        assert loss_fragility(errors, target=0.0) == pytest.approx(0.0554, rel=1e-9)


def test_what_is_not_random_may_be_asked_for_more_than_once(tmp_path):
    from experiments import reporting

    for name, trials in (("example1", 3), ("ova", 1)):
        runner.run(find(name), tmp_path / name, quick=True, trials=trials)
    one, _ = reporting.report(tmp_path)
    assert len(one.report.tables["models"]) == 2
    assert [verdict.holds for _, verdict in one.verdicts] == ["holds"]


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("trials", 0, "trials is at least 1; got 0"),
        ("trials", -3, "trials is at least 1; got -3"),
        ("trials", 10**12, "at most 333333 trials of each.*fewer --trials; got 1000000000000"),
        ("jobs", 0, "jobs is at least 1; got 0"),
        ("jobs", -1, "jobs is at least 1; got -1"),
        ("jobs", 10**6, r"jobs is at most \d+.*got 1000000"),
    ],
)
def test_impossible_numbers(tmp_path, option, value, said):
    with pytest.raises(ValueError, match=said):
        runner.run(TOY, tmp_path / "toy", **{option: value})
    assert not (tmp_path / "toy").exists()


@pytest.mark.parametrize(
    ("conditions", "said"),
    [([], "has no conditions"), ([{"a": 1}, {"a": 1}], "same condition twice")],
)
def test_impossible_conditions(tmp_path, conditions, said):
    with pytest.raises(ValueError, match=said):
        runner.run(dataclasses.replace(TOY, conditions=lambda quick: conditions), tmp_path)


def test_fewer_trials_of_some_conditions(tmp_path):
    """Unless their number is asked for; and each condition has its turn before any has two."""
    fewer = dataclasses.replace(TOY, most_trials=lambda c: 2 if c["size"] == 20 else 99)
    runner.run(fewer, tmp_path / "a")
    found = files.load(tmp_path / "a").groupby("size")["trial"].nunique()
    assert found[20] == 2
    assert (found.drop(20) == TOY.trials).all()
    assert files.record_of(tmp_path / "a").conditions == len(found)
    database = sqlite3.connect(tmp_path / "a" / FILE)
    keys = database.execute("SELECT unit FROM units ORDER BY rowid").fetchall()
    database.close()
    units = [json.loads(key)[1] for (key,) in keys]
    assert units == sorted(units)
    with pytest.raises(ValueError, match=r"results of 3 conditions, which 1 do not replace"):
        runner.run(
            dataclasses.replace(TOY, conditions=lambda quick: TOY.conditions(quick)[:1]),
            tmp_path / "a",
        )
    runner.run(TOY, tmp_path / "a")  # more work may replace less
    with pytest.raises(ValueError, match=r"results of 24 units, which 18 do not replace"):
        runner.run(fewer, tmp_path / "a")
    runner.run(fewer, tmp_path / "b", trials=3)
    assert (files.load(tmp_path / "b").groupby("size")["trial"].nunique() == 3).all()


def test_seeds_are_those_of_the_name_and_the_trial():
    from zlib import crc32

    seeds = {runner.seed_of(name, trial) for name in ("heart", "uci") for trial in range(100)}
    assert len(seeds) == 200
    expected = np.random.SeedSequence([crc32(b"heart"), 7]).generate_state(1)[0]
    assert runner.seed_of("heart", 7) == expected


def test_the_command_says_so(tmp_path, capsys):
    arguments = ["run", "example1", "--results", str(tmp_path)]
    for more in (["--trials", "0"], ["--trials", "1" + "0" * 400], ["--trials", "many"]):
        assert command.main([*arguments, *more]) == 2
        assert "rror: " in capsys.readouterr().err
    assert not (tmp_path / "example1").exists()
