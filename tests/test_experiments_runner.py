"""A run that is killed, torn or refused, and one that is not: the same results."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor

from experiments import files, runner
from experiments.journal import FILE, Journal, JournalError, Unit
from tests.toy_experiment import CODE, FAULT, HOLD, LOG, TOY, trial

ROOT = Path(__file__).parent.parent
UNITS = 24


def toy_command(*arguments, **environment):
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return subprocess.Popen(
        [sys.executable, "-m", "tests.toy_experiment", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def ended(process, seconds=120):
    output, _ = process.communicate(timeout=seconds)
    return process.returncode, output


def finished_units(folder):
    return len(journal_units(folder / "toy"))


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith("journal")
    }


@pytest.fixture(scope="module", autouse=True)
def same_code():
    """The toy's commands and this process are the same code, whoever edits a file meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "running_code", lambda: CODE)
        yield


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    code, output = ended(toy_command("run", "toy", "--jobs", 1, "--results", folder))
    assert code == 0, output
    return folder


@pytest.fixture
def held():
    """Begin a run that finishes so many units and no more; none outlives the test."""
    begun = []

    def begin(folder, units, **environment):
        hold = f"{units} {folder.parent / f'begun-{len(begun)}'}"
        goal = len(recovered_units(folder / "toy")) + units
        arguments = ("run", "toy", "--jobs", 2, "--results", folder)
        begun.append(toy_command(*arguments, **{HOLD: hold}, **environment))
        while finished_units(folder) < goal:
            assert begun[-1].poll() is None, ended(begun[-1])
            time.sleep(0.01)
        return begun[-1]

    yield begin
    for process in begun:
        with process, suppress(ProcessLookupError):  # its group may be gone
            os.killpg(process.pid, signal.SIGKILL)


def test_killed_twice_and_resumed_is_uninterrupted(uninterrupted, held, tmp_path):
    """SIGKILL with trials in hand, once to the command alone, once to its workers, too."""
    log, folder = tmp_path / "log", tmp_path / "results"
    begun = 0
    for send, units in ((os.kill, 5), (os.killpg, 7)):
        live = held(folder, units, **{LOG: str(log)})
        send(live.pid, signal.SIGKILL)
        assert live.wait() == -signal.SIGKILL
        begun += units
        # Workers of a killed command end by themselves; what they still do is written nowhere.
        assert len(recovered_units(folder / "toy")) == begun
        assert not (folder / "toy" / "results.csv").exists()
    kept = recovered_units(folder / "toy")
    code, output = ended(
        toy_command("run", "toy", "--jobs", 2, "--results", folder, **{LOG: str(log)})
    )
    assert code == 0, output
    assert f"{UNITS - begun} now and {begun} before" in output
    assert journal_units(folder / "toy")[: len(kept)] == kept
    assert contents(folder) == contents(uninterrupted)
    assert len(log.read_text().splitlines()) == UNITS  # nothing lost, nothing repeated


def test_no_other_run_touches_the_journal_of_a_live_one(held, tmp_path):
    """Neither goes on with it nor forgets it; once it is killed, the next run may."""
    folder = tmp_path / "results" / "toy"
    live = held(tmp_path / "results", 4)
    before = journal_units(folder)
    for options in ({}, {"restart": True}, {"extend": True}, {"restart": True, "extend": True}):
        with pytest.raises(JournalError, match=r"Another run writes to .*journal\.sqlite\. Wait"):
            runner.run(TOY, folder, **options)
    code, output = ended(
        toy_command("run", "toy", "--jobs", 1, "--restart", "--results", folder.parent)
    )
    assert code == 2
    assert "Error: Another run writes to" in output
    assert "Traceback" not in output
    assert journal_units(folder) == before
    assert live.poll() is None
    os.kill(live.pid, signal.SIGKILL)
    live.wait()
    assert runner.run(TOY, folder, restart=True).ran == UNITS


def test_a_commit_that_was_cut_off_is_undone(uninterrupted, held, tmp_path):
    """Copies of a live journal, taken at any time, hold whole units and go on."""
    live = held(tmp_path / "results", 3)
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        for file in (tmp_path / "results" / "toy").glob("journal*"):
            (folder / file.name).write_bytes(file.read_bytes())
    os.killpg(live.pid, signal.SIGKILL)
    live.wait()
    for number in range(5):
        outcome = runner.run(TOY, tmp_path / str(number))
        assert (outcome.kept, outcome.kept + outcome.ran) == (3, UNITS)
        for name in ("results.csv", "environment.json"):
            found = (tmp_path / str(number) / name).read_bytes()
            assert found == (uninterrupted / "toy" / name).read_bytes()


def test_an_altered_or_cut_journal_is_refused(uninterrupted, tmp_path):
    """What cannot be seen as altered are bytes that nobody reads, and the results are the same."""
    whole = (uninterrupted / "toy" / FILE).read_bytes()
    expected = (uninterrupted / "toy" / "results.csv").read_bytes()
    chance = random.Random(2)
    places = [chance.randrange(len(whole)) for _ in range(100)]
    texts = [place for place in range(len(whole)) if whole[place : place + 5] == b"score"]
    refused = 0
    for number, place in enumerate([0, 20, *texts, *places]):
        other = chance.choice([b for b in b'019ax"}' if b != whole[place]])
        (tmp_path / FILE).write_bytes(whole[:place] + bytes([other]) + whole[place + 1 :])
        with suppress(JournalError):
            runner.run(TOY, tmp_path)
            assert number > len(texts)
            assert (tmp_path / "results.csv").read_bytes() == expected
            (tmp_path / "results.csv").unlink()
            continue
        refused += 1
    assert refused > len(texts)
    for cut in (50, 4096, len(whole) // 2, len(whole) - 1):
        (tmp_path / FILE).write_bytes(whole[:cut])
        with pytest.raises(JournalError, match=r"altered.*--restart"):
            runner.run(TOY, tmp_path)
    outcome = runner.run(TOY, tmp_path, restart=True)
    assert (outcome.kept, outcome.ran) == (0, UNITS)


def test_units_without_a_code_are_refused(uninterrupted, tmp_path):
    (tmp_path / FILE).write_bytes((uninterrupted / "toy" / FILE).read_bytes())
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("DELETE FROM signatures")
    database.close()
    with pytest.raises(JournalError, match=r"altered \(no code has a part in it"):
        runner.run(TOY, tmp_path)


def test_other_code_other_settings_other_format(tmp_path, monkeypatch):
    runner.run(TOY, tmp_path, trials=2)
    (tmp_path / "results.csv").unlink()
    with pytest.raises(JournalError, match="quick was False and is True"):
        runner.run(TOY, tmp_path, quick=True)
    now = runner.running_code()
    monkeypatch.setattr(runner, "running_code", lambda: {**now, "numpy": "9.9"})
    with pytest.raises(JournalError, match=rf"numpy was {np.__version__} and is 9\.9.*--restart"):
        runner.run(TOY, tmp_path)
    outcome = runner.run(TOY, tmp_path, trust_journal=True)
    assert (outcome.kept, outcome.ran) == (6, UNITS - 6)
    code = json.loads((tmp_path / "environment.json").read_text())["code"]
    assert [one["numpy"] for one in code] == [np.__version__, "9.9"]
    with pytest.raises(JournalError, match="begun by other code"):  # still, with either
        runner.run(TOY, tmp_path)
    monkeypatch.setattr("experiments.journal.FORMAT", 99)
    with pytest.raises(JournalError, match=r"format 2, this version reads 99"):
        runner.run(TOY, tmp_path, trust_journal=True)


def test_two_runs_at_once_are_refused(tmp_path):
    journal = Journal(tmp_path / FILE, {"experiment": "toy"}, {})
    for options in ({}, {"restart": True}, {"extend": True}):
        with journal, pytest.raises(JournalError, match="Another run"):
            runner.run(TOY, tmp_path, **options)
    runner.run(TOY, tmp_path)


def test_a_full_disk_leaves_no_half_unit(tmp_path):
    with Journal(tmp_path / "j", {}, {}) as journal:
        journal.add(Unit({"a": 0}, 0), [{"b": 1}])
        journal._database.execute("PRAGMA max_page_count = 1")  # no more than there are
        with pytest.raises(OSError, match=r"could not be written \(database or disk is full"):
            journal.add(Unit({"a": 1}, 0), [{"b": "x" * 100_000}])
        journal._database.execute("PRAGMA max_page_count = 100000")
        journal.add(Unit({"a": 1}, 0), [{"b": 2}])
    with Journal(tmp_path / "j", {}, {}) as journal:
        journal.read()
        assert list(journal.done.values()) == [[{"b": 1}], [{"b": 2}]]


@pytest.fixture
def new_workers():
    """Workers are kept for the next run in the same process, with the environment they had."""
    get_reusable_executor().shutdown()
    yield
    get_reusable_executor().shutdown()


@pytest.mark.usefixtures("new_workers")
@pytest.mark.parametrize(
    ("fault", "said", "jobs"),
    [
        ("raise", "ZeroDivisionError: the toy is broken", 1),
        ("raise", "ZeroDivisionError: the toy is broken", 2),
        ("no rows", "returned no row", 1),
        ("bad row", "'score' must be text or a number, not list", 1),
    ],
)
def test_a_trial_that_fails_is_named_and_the_rest_kept(
    uninterrupted, tmp_path, monkeypatch, fault, said, jobs
):
    monkeypatch.setenv(FAULT, fault)
    with pytest.raises(runner.TrialError, match=said) as failed:
        runner.run(TOY, tmp_path, jobs=jobs)
    assert "trial 3 of size = 20, name = n20" in str(failed.value)
    assert "kept" in str(failed.value)
    assert not (tmp_path / "results.csv").exists()
    monkeypatch.delenv(FAULT)
    outcome = runner.run(TOY, tmp_path, jobs=1)
    assert outcome.kept > 0
    assert (tmp_path / "results.csv").read_bytes() == (
        uninterrupted / "toy" / "results.csv"
    ).read_bytes()


def test_data_that_are_not_there_are_asked_for_without_a_traceback(tmp_path):
    code, output = ended(
        toy_command("run", "toy", "--jobs", 1, "--results", tmp_path, **{FAULT: "no data"})
    )
    assert code == 1
    assert "failed:\nPut toy.csv into the toy folder.\n" in output
    assert "Traceback" not in output


def test_a_worker_that_dies_is_reported_and_nothing_hangs(uninterrupted, tmp_path):
    code, output = ended(
        toy_command("run", "toy", "--jobs", 2, "--results", tmp_path, **{FAULT: "die"})
    )
    assert code == 1
    assert "A worker of toy died" in output
    assert "run the same command again" in output
    assert "Traceback" not in output
    kept = finished_units(tmp_path)
    code, output = ended(toy_command("run", "toy", "--jobs", 2, "--results", tmp_path))
    assert code == 0, output
    assert f"{UNITS - kept} now" in output
    assert contents(tmp_path) == contents(uninterrupted)


def test_more_trials_continue_and_fewer_are_refused(uninterrupted, tmp_path):
    assert runner.run(TOY, tmp_path, trials=3).ran == 9
    three = files.load(tmp_path)
    outcome = runner.run(TOY, tmp_path)
    assert (outcome.kept, outcome.ran) == (9, UNITS - 9)
    assert (tmp_path / "results.csv").read_bytes() == (
        uninterrupted / "toy" / "results.csv"
    ).read_bytes()
    eight = files.load(tmp_path)
    assert eight[eight["trial"] < 3].reset_index(drop=True).equals(three)
    with pytest.raises(ValueError, match=r"results of 8 trials, which 3 do not replace.*--results"):
        runner.run(TOY, tmp_path, trials=3)
    with pytest.raises(ValueError, match="a full run, which a quick one does not replace"):
        runner.run(TOY, tmp_path, quick=True)
    assert files.load(tmp_path).equals(eight)


def test_results_without_a_journal_are_extended(uninterrupted, tmp_path, monkeypatch):
    """What they have is kept letter by letter, whatever code ran it; what they lack is run."""
    now = runner.running_code()
    old = [{**now, "numpy": "1.0"}, {**now, "numpy": "1.1"}]
    for trials, code in zip((2, 3), old, strict=True):
        with monkeypatch.context() as earlier:
            earlier.setattr(runner, "running_code", lambda code=code: code)
            runner.run(TOY, tmp_path, trials=trials, trust_journal=True)
    (tmp_path / FILE).unlink()
    log = tmp_path / "log"
    monkeypatch.setenv(LOG, str(log))
    outcome = runner.run(TOY, tmp_path, trials=5, extend=True)
    assert (outcome.kept, outcome.ran) == (9, 6)
    assert len(log.read_text().splitlines()) == 6
    assert files.record_of(tmp_path).code == [*old, now]
    assert runner.run(TOY, tmp_path, extend=True).kept == 15  # its journal goes on, too
    expected = (uninterrupted / "toy" / "results.csv").read_bytes()
    assert (tmp_path / "results.csv").read_bytes() == expected
    assert files.record_of(tmp_path).code == [*old, now]
    assert len(journal_units(tmp_path)) == UNITS


def test_the_command_extends(uninterrupted, tmp_path):
    """Where there is nothing yet, it runs all."""
    arguments = ("run", "toy", "--jobs", 1, "--results", tmp_path, "--extend")
    code, output = ended(toy_command(*arguments, "--trials", 2))
    assert code == 0, output
    (tmp_path / "toy" / FILE).unlink()
    code, output = ended(toy_command(*arguments))
    assert code == 0, output
    assert "18 now and 6 before" in output
    assert contents(tmp_path) == contents(uninterrupted)


def test_conditions_of_different_names_and_empty_cells_are_extended(tmp_path):
    mixed = dataclasses.replace(
        TOY, trial=_mixed, conditions=lambda quick: [{"b": 0.1}, {"a": "x, y"}, {"a": "z"}]
    )
    runner.run(mixed, tmp_path / "whole", trials=3)
    runner.run(mixed, tmp_path / "part", trials=2)
    (tmp_path / "part" / FILE).unlink()
    assert runner.run(mixed, tmp_path / "part", trials=3, extend=True).kept == 6
    assert contents(tmp_path / "part") == contents(tmp_path / "whole")


def _mixed(condition, seed, quick):
    return [{"none": "", "score": seed / 3.0}, {"none": "", "lines": "1\n2", "score": np.inf}]


def test_results_that_cannot_be_extended(tmp_path):
    runner.run(TOY, tmp_path, quick=True)
    before = contents(tmp_path)
    (tmp_path / FILE).unlink()

    def refused(said, quick=True, **changes):
        with pytest.raises(ValueError, match=said):
            runner.run(dataclasses.replace(TOY, **changes), tmp_path, quick=quick, extend=True)
        assert contents(tmp_path) == before
        assert not journal_units(tmp_path)

    def of(*sizes, **more):
        return lambda quick: [{"size": size, "name": f"n{size}", **more} for size in sizes]

    refused(r"of a quick run of toy, which this run cannot extend.*--results", quick=False)
    refused("results of a quick run of toy, which", name="other")
    refused(r"not asked for now \(size = 30, name = n30, trial = 0\)", conditions=of(10, 20, 40))
    same = [{"size": 10}, {"size": "10"}, {"size": 20}]
    refused("the same as text", conditions=lambda quick: same)
    # A name less, and what were different conditions would be one.
    deep = [*of(10, 20, depth=1)(True), *of(10, 20, depth=2)(True)]
    runner.run(dataclasses.replace(TOY, conditions=lambda quick: deep), tmp_path, quick=True)
    (tmp_path / FILE).unlink()
    before = contents(tmp_path)
    refused(r"fall together as size, name, trial", conditions=of(10, 20, 30, 40))


def test_a_journal_does_not_replace_results_that_are_extended(tmp_path, monkeypatch):
    """One that was begun anew beside them has other figures of the same trials."""
    runner.run(dataclasses.replace(TOY, trial=_mixed), tmp_path / "other", trials=1)
    runner.run(TOY, tmp_path, trials=2)
    (tmp_path / "other" / FILE).replace(tmp_path / FILE)
    before = contents(tmp_path)
    with pytest.raises(JournalError, match=r"other figures of trial 0 of size = 10.*--restart"):
        runner.run(TOY, tmp_path, trials=3, extend=True)
    assert contents(tmp_path) == before
    assert runner.run(TOY, tmp_path, trials=3, extend=True, restart=True).kept == 6
    # Nor are trials taken that a third code ran, unless the journal is trusted.
    now = runner.running_code()
    monkeypatch.setattr(runner, "running_code", lambda: {**now, "numpy": "9.9"})
    (tmp_path / "results.csv").unlink()
    with pytest.raises(JournalError, match="begun by other code"):
        runner.run(TOY, tmp_path, trials=4, extend=True)
    assert runner.run(TOY, tmp_path, trials=4, extend=True, trust_journal=True).kept == 9


def test_results_are_what_the_trials_return(uninterrupted):
    """In order, to the last bit; numbers of NumPy as plain ones."""
    results = files.load(uninterrupted / "toy")
    expected = [
        (condition["size"], condition["name"], number, *row.values())
        for condition in TOY.conditions(False)
        for number in range(8)
        for row in trial(condition, runner.seed_of("toy", number), False)
    ]
    assert list(results) == ["size", "name", "trial", "method", "score", "count", "index"]
    for found, row in zip(results.itertuples(index=False), expected, strict=True):
        for cell, value in zip(found, row, strict=True):
            assert cell == value or (cell != cell and value != value)
    text = (uninterrupted / "toy" / "results.csv").read_text()
    assert '"ünïcode, quoted",nan,1,' in text
    assert ",inf\n" in text


def test_workers_have_one_thread_and_warnings_are_counted(tmp_path):
    loud = dataclasses.replace(TOY, trial=_threads)
    for jobs in (1, 2):
        outcome = runner.run(loud, tmp_path / str(jobs), jobs=jobs, trials=2)
        assert set(files.load(tmp_path / str(jobs))["threads"]) == {1}
        assert outcome.warned == {"UserWarning: how loud": 6}


def _threads(condition, seed, quick):
    import warnings

    import threadpoolctl

    warnings.warn("how  loud", UserWarning, stacklevel=1)
    return [{"threads": max(p["num_threads"] for p in threadpoolctl.threadpool_info())}]


def test_code_that_ran_nothing_has_no_part(tmp_path, monkeypatch):
    runner.run(TOY, tmp_path, trials=2)
    now = runner.running_code()
    monkeypatch.setattr(runner, "running_code", lambda: {**now, "numpy": "9.9"})
    before = (tmp_path / FILE).read_bytes()
    runner.run(TOY, tmp_path, trials=2, trust_journal=True)
    assert (tmp_path / FILE).read_bytes() == before
    assert files.record_of(tmp_path).code == [now]


def test_code_that_finished_nothing_stands_in_nobodys_way(tmp_path, monkeypatch):
    only = dataclasses.replace(
        TOY, conditions=lambda quick: [{"size": 20}], trial=_never_done, trials=1
    )
    with pytest.raises(runner.TrialError):
        runner.run(only, tmp_path)
    now = runner.running_code()
    monkeypatch.setattr(runner, "running_code", lambda: {**now, "numpy": "9.9"})
    runner.run(dataclasses.replace(only, trial=trial), tmp_path)
    assert [one["numpy"] for one in files.record_of(tmp_path).code] == ["9.9"]


def _never_done(condition, seed, quick):
    raise ZeroDivisionError("mended later")


def in_commit(folder):
    """Whether there is an undo log that holds: its first bytes are zero once a commit is whole."""
    undo = folder / f"{FILE}-journal"
    return undo.is_file() and any(undo.read_bytes()[:8])


def journal_units(folder):
    """Units in a journal, also in one that is locked by a live run; none during a commit.

    A commit may begin while the units are read: they count once its undo log is void after that,
    too, for until then a kill takes the last of them back.
    """
    if not (folder / FILE).is_file() or in_commit(folder):
        return []
    database = sqlite3.connect(f"file:{folder / FILE}?immutable=1", uri=True)
    try:
        units = database.execute("SELECT unit FROM units ORDER BY rowid").fetchall()
        return [] if in_commit(folder) else units
    except sqlite3.DatabaseError:  # in the middle of a commit
        return []
    finally:
        database.close()


def recovered_units(folder):
    """Units in a journal that no run holds, as whoever opens it next finds them.

    SQLite takes back a commit that a kill cut off. It does so in a copy: the run that goes on has
    to do it, too.
    """
    if not (folder / FILE).is_file():
        return []
    with tempfile.TemporaryDirectory() as copy:
        for file in folder.glob(f"{FILE}*"):
            shutil.copy(file, copy)
        with closing(sqlite3.connect(Path(copy, FILE))) as database:
            return database.execute("SELECT unit FROM units ORDER BY rowid").fetchall()
