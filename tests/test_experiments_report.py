"""Tables, figures, verdicts and the page: from the results alone, the same every time."""

from __future__ import annotations

import json
import math
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from pandas import DataFrame

from experiments import command, figures, files, reporting, runner, tables
from experiments import experiment as registry
from experiments.claims import Verdict, gained, mostly, share
from experiments.experiment import NAMES, find
from tests import toy_experiment
from tests.test_experiments_runner import contents, ended, toy_command

ROOT = Path(__file__).parent.parent
COMMITTED = ROOT / "experiments" / "results"


@pytest.fixture
def toy(monkeypatch, tmp_path):
    """The command and the reports know the toy alone; its results are in a folder."""
    for module in (registry, reporting, command):
        monkeypatch.setattr(module, "NAMES", ("toy",))
    monkeypatch.setitem(__import__("sys").modules, "experiments.toy", toy_experiment)
    runner.run(toy_experiment.TOY, tmp_path / "toy")
    return tmp_path


def test_reported_twice_is_the_same_byte_for_byte(toy, tmp_path_factory):
    """Also in another process, with another hash seed and other settings of Matplotlib."""
    reporting.report(toy)
    first = contents(toy)
    assert {Path(name).suffix for name in first} == {".csv", ".json", ".md", ".svg", ".html"}
    reporting.report(toy)
    assert contents(toy) == first
    other = tmp_path_factory.mktemp("other")
    (other / "toy").mkdir()
    for name in ("results.csv", "environment.json"):
        shutil.copy(toy / "toy" / name, other / "toy" / name)
    (other / "matplotlibrc").write_text("lines.linewidth: 9\nsvg.fonttype: none\nfont.size: 30\n")
    changed = {"PYTHONHASHSEED": "77", "MATPLOTLIBRC": str(other / "matplotlibrc")}
    code, output = ended(toy_command("report", "--results", other, **changed))
    assert code == 0, output
    (other / "matplotlibrc").unlink()
    assert contents(other) == first


def test_pictures_have_no_date_and_no_version(toy):
    reporting.report(toy)
    picture = (toy / "toy" / "scores.svg").read_text()
    assert "dc:date" not in picture
    assert "Matplotlib v" not in picture
    assert "http://" not in picture.replace("http://www.w3.org", "").replace(
        "http://purl.org", ""
    ).replace("http://creativecommons.org", "")


def test_the_page_shows_verdicts_first_and_escapes(toy):
    reporting.report(toy)
    page = (toy / "index.html").read_text()
    assert page.index("It &lt;runs&gt;.") < page.index('<section id="toy">')
    assert "48 rows." in page
    assert "Not judged" in page
    assert "<p>A toy.</p>" in page
    assert "<p>Of &lt;two&gt; &amp; <code>coded</code> paragraphs.</p>" in page
    assert 'src="toy/scores.svg"' in page
    assert "<script" not in page
    assert "http" not in page
    claims = (toy / "toy" / "table_claims.md").read_text()
    assert "| 1 | It <runs>. | holds | 48 rows. |" in claims


def test_what_is_no_longer_reported_goes(toy):
    (toy / "toy" / "table_old.csv").write_text("old")
    (toy / "toy" / "old.svg").write_text("old")
    (toy / "toy" / "notes.txt").write_text("mine")
    reporting.report(toy)
    assert not (toy / "toy" / "table_old.csv").exists()
    assert not (toy / "toy" / "old.svg").exists()
    assert (toy / "toy" / "notes.txt").exists()


def test_altered_results_are_refused(toy):
    path = toy / "toy" / "results.csv"
    path.write_text(path.read_text().replace("thirds", "halves", 1))
    with pytest.raises(ValueError, match=r"results\.csv is not what environment\.json"):
        reporting.report(toy)


def test_results_of_another_version_are_refused(toy):
    path = toy / "toy" / "environment.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "format": 7}))
    with pytest.raises(ValueError, match=r"has format 7, this version reads 1\. Run the exp"):
        reporting.report(toy)
    path.write_text(json.dumps({**record, "experiment": "other"}))
    with pytest.raises(ValueError, match="holds results of other, not of toy"):
        reporting.report(toy)
    for broken in ("", "[]", '{"format": 1}'):
        path.write_text(broken)
        with pytest.raises(ValueError, match="is not a record of a run"):
            reporting.report(toy)
    path.unlink()
    with pytest.raises(ValueError, match=r"has results but no environment\.json"):
        reporting.report(toy)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "hart"], "There is no experiment 'hart'. Did you mean 'heart'?"),
        (["run", "zzz"], "There is no experiment 'zzz'. There are: example1,"),
        (["run", "../example1"], "There is no experiment '../example1'. Did you mean 'example1'?"),
        (["report", "hart"], "Did you mean 'heart'?"),
        (["run"], "Missing argument 'NAME...'"),
        (["run", "example1", "--trials", "0"], "The number of trials is at least 1; got 0."),
        (["run", "example1", "--trials", "-2"], "The number of trials is at least 1; got -2."),
        (["run", "example1", "--trials", "many"], "'many' is not a valid integer"),
        (["run", "example1", "--trials", "1.5"], "'1.5' is not a valid integer"),
        (["run", "example1", "--jobs", "0"], "The number of jobs is at least 1; got 0."),
        (["report"], "There are no results in"),
        (["report", "example1"], "There are no results of example1 in"),
        (["show"], "No such command 'show'"),
    ],
)
def test_what_a_user_gets_wrong_is_said(arguments, said, tmp_path, capsys):
    folder = ["--results", str(tmp_path)] if arguments[0] in ("run", "report") else []
    assert command.main([*arguments, *folder]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []


def test_a_failing_trial_ends_the_command_with_one(toy, capsys, monkeypatch):
    monkeypatch.setenv(toy_experiment.FAULT, "raise")
    assert command.main(["run", "toy", "--results", str(toy / "new"), "--jobs", "1"]) == 1
    assert "ZeroDivisionError: the toy is broken" in capsys.readouterr().err


def test_the_command_from_beginning_to_end(toy, capsys):
    assert command.main(["list", "--results", str(toy)]) == 0
    assert "toy         8       8 trials  a toy" in capsys.readouterr().out
    assert command.main(["run", "toy", "--quick", "--results", str(toy / "q"), "--jobs", "1"]) == 0
    said = capsys.readouterr()
    assert "toy: 0 of 6" in said.err
    assert "all done, 6 now; " in said.err
    assert "Quick run: 2 trials of 3 conditions" in said.out
    assert "HOLDS (1): It <runs>. 12 rows." in said.out
    assert "verdicts mean nothing" in (toy / "q" / "index.html").read_text()
    assert command.main(["list", "--results", str(toy / "q")]) == 0
    assert "2 trials, quick" in capsys.readouterr().out


def test_progress_tells_what_remains(capsys, monkeypatch):
    clock = iter([0.0, 10.0, 20.0, 30.0, 600.0])
    monkeypatch.setattr(command.time, "monotonic", lambda: next(clock))
    progress = command._Lines("toy")
    for done in (50, 51, 60, 61, 100):
        progress(done, 100)
    assert capsys.readouterr().err.splitlines() == [
        "toy: 50 of 100",
        "toy: 60 of 100, about 80 s left",  # ten in twenty seconds, forty to go
        "toy: 100 of 100",
    ]


def test_means_and_intervals():
    rng = np.random.default_rng(0)
    values = rng.normal(size=30)
    from scipy import stats

    expected = stats.t.interval(0.95, 29, values.mean(), stats.sem(values))
    assert tables.mean_interval(values) == pytest.approx((values.mean(), *expected))
    assert tables.mean_interval([2.0, math.inf, 4.0, math.nan])[0] == 3.0
    assert all(math.isnan(value) for value in tables.mean_interval([math.inf]))
    results = DataFrame(
        {
            "m": ["b", "b", "a", "a"],
            "trial": [0, 1, 0, 1],
            "x": [1.0, 3.0, 5.0, math.inf],
            "y": [1.0, 1.0, 2.0, 4.0],
        }
    )
    found = tables.summarise(results, ["m"], ["x", "y"])
    assert found["m"].tolist() == ["b", "a"]
    assert found["x"].tolist() == [2.0, 5.0]
    assert found["x_infinite"].tolist() == [0, 1]
    assert "y_infinite" not in found
    assert found["y"].tolist() == [1.0, 3.0]


def test_tables_as_text():
    table = DataFrame(
        {
            "name": ["a|b", "c\nd"],
            "fi": [0.12345678, math.inf],
            "fi_low": [0.1, math.nan],
            "fi_high": [0.2, math.nan],
            "n": [3, 4],
            "small": [0.0001234, -0.0],
        }
    )
    assert tables.markdown(table).splitlines() == [
        "| name | fi | n | small |",
        "| --- | ---: | ---: | ---: |",
        "| a\\|b | 0.123 (0.100 to 0.200) | 3 | 0.00012 |",
        "| c d | ∞ | 4 | -0.000 |",
    ]
    assert tables.csv_table(table).splitlines()[1] == "a|b,0.123457,0.1,0.2,3,0.0001234"


def test_csv_reads_back_the_same(tmp_path):
    rows = [
        {"name": "NA", "x": 0.1 + 0.2, "n": 3, "y": -0.0, "mixed": 1},
        {"name": 'a "b", c', "x": 5e-324, "n": -4, "y": math.inf, "mixed": 1.5},
        {"name": "", "x": math.nan, "n": 5, "y": 1.7976931348623157e308, "extra": "only here"},
    ]
    files.save(
        tmp_path,
        rows,
        experiment="toy",
        quick=False,
        trials=1,
        conditions=1,
        units=1,
        code=[{"a": "b"}],
    )
    found = files.load(tmp_path)
    assert found["name"].tolist() == ["NA", 'a "b", c', ""]
    assert found["x"].tolist()[:2] == [0.1 + 0.2, 5e-324]
    assert math.isnan(found["x"][2])
    assert found["n"].tolist() == [3, -4, 5]
    assert [math.copysign(1, value) for value in found["y"]] == [-1, 1, 1]
    assert found["y"].tolist()[1:] == [math.inf, 1.7976931348623157e308]
    assert found["mixed"].tolist()[:2] == [1.0, 1.5]
    assert math.isnan(found["mixed"][2])
    assert found["extra"].tolist() == ["", "", "only here"]


def test_verdicts():
    assert share(3, 3, "x").holds == "holds"
    assert share(2, 3, "x").holds == share(1, 2, "x").holds == "holds partly"
    assert share(1, 3, "x").holds == share(0, 3, "x").holds == "does not hold"
    assert gained(3, 0, 3, "x").holds == "holds"
    assert gained(2, 0, 3, "x").holds == gained(2, 1, 3, "x").holds == "holds partly"
    assert gained(1, 1, 3, "x").holds == gained(0, 0, 3, "x").holds == "does not hold"
    assert gained(2, 1, 3, "x", holds=True).holds == "holds"
    assert gained(3, 0, 3, "x", holds=False).holds == "holds partly"
    for impossible in ((0, 0, 0), (2, 2, 3)):
        with pytest.raises(ValueError, match="cannot be better"):
            gained(*impossible, "x")
    assert mostly(9, 10, "x").holds == "holds"
    assert mostly(8, 10, "x").holds == mostly(5, 10, "x").holds == "holds partly"
    assert mostly(4, 10, "x").holds == "does not hold"
    with pytest.raises(ValueError, match="no case"):
        share(0, 0, "x")
    with pytest.raises(ValueError, match="one of"):
        Verdict("maybe", "x")
    with pytest.raises(ValueError, match="reason"):
        Verdict("holds", " ")


def test_figures_of_pyplot_are_closed():
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    assert figures.svg(lambda: plt.figure()).startswith("<?xml")
    assert plt.get_fignums() == before


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_is_one(name):
    experiment = find(name)
    assert experiment.name == name
    assert experiment.title
    assert experiment.quick_trials <= experiment.trials
    for quick in (False, True):
        conditions = experiment.conditions(quick)
        assert len(conditions) > 0
        assert all("trial" not in condition for condition in conditions)
    assert len(experiment.conditions(True)) <= len(experiment.conditions(False))
    function = getattr(experiment.trial, "func", experiment.trial)
    assert function.__module__.startswith("experiments.")
    assert pickle.loads(pickle.dumps(experiment.trial))  # workers get it so
    assert find(name) is experiment
    assert all(claim.where and claim.says.endswith(".") for claim in experiment.claims)


def _as_constrained(package):
    from importlib.metadata import version

    pinned = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text().split() if "==" in line
    )
    return version(package) == pinned[package]


@pytest.mark.skipif(
    not all(map(_as_constrained, ("matplotlib", "numpy", "pandas", "scipy"))),
    reason="figures are the same under the versions of constraints.txt only",
)
@pytest.mark.skipif(not COMMITTED.is_dir(), reason="no results are committed")
def test_committed_results_make_the_committed_pages_and_pictures(tmp_path):
    committed = contents(COMMITTED)
    for name in committed:
        if Path(name).name in ("results.csv", "environment.json"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(committed[name])
    reporting.report(tmp_path)
    assert contents(tmp_path) == committed
