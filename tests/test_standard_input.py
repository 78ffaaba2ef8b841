"""Standard input as a file: the same reports, nothing left behind, and words where it is none."""

from __future__ import annotations

import gc
import gzip
import io
import json
import subprocess
import sys
import tempfile

import pyarrow as pa
import pytest

from fragility.tables import open_table, write_table

from .command import ENVIRONMENT, patients, unsourced, write_csv
from .fuzzing.readers import run
from .test_tables import refused

ASKED = ("--label", "sick", "--score", "fair", "--score", "bold", "--json")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def given(monkeypatch, tmp_path):
    """Sends bytes to standard input; temporary files go to a folder that must be empty after."""
    spool = tmp_path / "spool"
    spool.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spool))

    def send(content):
        stream = io.TextIOWrapper(io.BytesIO(content)) if isinstance(content, bytes) else content
        monkeypatch.setattr(sys, "stdin", stream)

    yield send
    gc.collect()
    assert not list(spool.iterdir())


def contents(folder):
    """The same table as files of every kind."""
    data = patients(80)
    csv = write_csv(folder / "p.csv", data)
    write_table(pa.table(data), folder / "p.parquet")
    write_table(pa.table(data), folder / "p.arrow")
    rows = [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=True)]
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    plain = csv.read_bytes()
    stored = [(folder / f"p.{kind}").read_bytes() for kind in ("parquet", "arrow")]
    packed = [gzip.compress(plain), gzip.compress(text)]
    return [plain, text, json.dumps(rows).encode(), *packed, *stored]


@pytest.mark.slow
@pytest.mark.parametrize("way", [["--no-calibration"], ["--hold", "0", "--no-calibration"]])
def test_reports_are_those_of_the_file(given, tmp_path, way):
    made = contents(tmp_path)
    code, out, err = run("evaluate", tmp_path / "p.csv", *ASKED, *way)
    assert code == 0
    for content in made:
        given(content)
        again = run("evaluate", "-", *ASKED, *way)
        assert (again[0], unsourced(again[1]), again[2]) == (code, unsourced(out), err)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["compare", "cost", "gate", "report"])
def test_every_command_that_reads_predictions(given, tmp_path, command):
    path = write_csv(tmp_path / "p.csv", patients(80))
    asked = {
        "compare": ["--json"],
        "cost": ["--error-cost", "5", "--json"],
        "gate": ["--max-fi", "1", "--json"],
        "report": ["--output", tmp_path / "page.md", "--case", "id"],
    }[command]
    found = []
    for file in (path, "-"):
        given(path.read_bytes())
        code, out, err = run(command, file, *ASKED[:-1], *asked, "--no-calibration")
        found.append((code, unsourced(out), err))
        if command == "report":
            found[-1] = (*found[-1], unsourced((tmp_path / "page.md").read_text()))
    assert found[0][0] == 0
    assert found[0] == found[1]


def test_the_table_lives_as_long_as_it_is_used(given):
    given(b"y,p\n1,0.5\n0,0.25\n")
    table = open_table("-")
    assert table.name == "standard input"
    assert table.path.exists()
    for _ in range(2):
        assert table.read(["p"]).column(0).to_pylist() == [0.5, 0.25]
    path = table.path
    del table
    gc.collect()
    assert not path.exists()


def test_words(given):
    def refuse(*words):
        code, out, err = run("evaluate", "-", "--label", "y", "--score", "p")
        assert (code, out) == (2, "")
        (line,) = err.splitlines()
        assert line.startswith("Error: standard input")
        for word in words:
            assert word in line
        assert "/" not in line.replace("0/", "")

    given(b"")
    refuse("empty (0 bytes)", "CSV or JSON lines")
    given(b"y,p\n1,0.5\n0,x\n")
    refuse("'p'", "cannot be read as numbers", "'x'")
    given(b"y,q\n1,0.5\n0,0.25\n")
    refuse("no column 'p'")
    given(b'{"y": 1, "p": 0.5}\n{"y": 1,\n')
    refuse("line 2 is not JSON")
    given(b"PAR1 and no more")
    refuse("cannot be read")
    given(Terminal())
    refuse("is a terminal", "| fragility evaluate -")
    given(None)
    refuse("is closed")
    closed = io.TextIOWrapper(io.BytesIO())
    closed.close()
    given(closed)
    refuse("is closed")
    given(b"y,p\n")
    refused(lambda: open_table("-"), "standard input: the file has a header but no rows")


def test_what_breaks_off_leaves_nothing(given):
    class Broken(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, buffer):
            raise OSError(5, "Input/output error")

    given(io.TextIOWrapper(io.BufferedReader(Broken())))
    code, _, err = run("evaluate", "-", "--label", "y", "--score", "p")
    assert code == 2
    assert "Input/output error" in err


@pytest.mark.outside
def test_a_pipe_to_the_real_command(tmp_path):
    path = write_csv(tmp_path / "p.csv", patients(200))
    spool = tmp_path / "spool"
    spool.mkdir()

    def ended(content):
        return subprocess.run(
            [sys.executable, "-m", "fragility", "evaluate", "-", *ASKED, "--no-calibration"],
            input=content,
            capture_output=True,
            check=False,
            env={**ENVIRONMENT, "TMPDIR": str(spool)},
        )

    packed = ended(gzip.compress(path.read_bytes()))
    wanted = run("evaluate", path, *ASKED, "--no-calibration")
    assert packed.returncode == wanted[0]
    assert unsourced(packed.stdout.decode()) == unsourced(wanted[1])
    empty = ended(b"")
    assert empty.returncode == 2
    assert b"Error: standard input: it is empty" in empty.stderr
    assert not list(spool.iterdir())
