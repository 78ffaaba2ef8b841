"""Every kind of bad input to the real command: one clear line, exit code 2, nothing written."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.command import ENVIRONMENT, Ended, executable, fragility, patients, refused, write_csv

DATA = patients(60)


@pytest.fixture
def csv(tmp_path):
    return write_csv(tmp_path / "p.csv", DATA)


def evaluate(file, *options, label="sick", score="fair"):
    return fragility("evaluate", file, "--label", label, "--score", score, *options)


def changed(tmp_path, **columns):
    return write_csv(tmp_path / "p.csv", {**DATA, **columns})


def with_cell(name, place, value):
    column = list(DATA[name])
    column[place] = value
    return {name: column}


def test_missing_columns_suggest_the_nearest(csv):
    refused(evaluate(csv, label="sik"), "p.csv", "'sik'", "Did you mean 'sick'")
    refused(evaluate(csv, score="fare"), "'fare'", "Did you mean 'fair'")
    refused(evaluate(csv, "--weight", "wait"), "'wait'", "weight")
    refused(evaluate(csv, "--group", "sax"), "'sax'", "Did you mean 'sex'")
    refused(evaluate(csv, "--error-cost-column", "price"), "'price'")


def test_an_option_of_one_value_that_is_given_twice(csv):
    twice = "--label is given 2 times"
    refused(evaluate(csv, "--label", "sick"), twice)
    asked = ("slices", csv, "--label", "sick", "--score", "fair", "--score=bold")
    refused(fragility(*asked), "--score is given 2 times")
    assert evaluate(csv, "--full", "--full", "--group", "sex").code == 0


@pytest.mark.outside
def test_the_real_executable_refuses_the_same_way(csv):
    asked = ("evaluate", csv, "--label", "sik", "--score", "fair")
    assert executable(*asked) == fragility(*asked)


@pytest.mark.parametrize("name", ["fair", "sick", "weight", "sex"])
@pytest.mark.parametrize("blank", ["", "NA", "nan"])
def test_missing_values(tmp_path, name, blank):
    file = changed(tmp_path, **with_cell(name, 4, blank))
    ended = evaluate(file, "--weight", "weight", "--group", "sex")
    refused(ended, f"'{name}'", "5", "--drop-missing")
    assert evaluate(file, "--weight", "weight", "--group", "sex", "--drop-missing").code == 0


def test_unparsable_values(tmp_path):
    column = list(DATA["fair"])
    column[2] = column[30] = "n.a.?"
    file = changed(tmp_path, fair=column)
    refused(evaluate(file), "'fair'", "2 of 60 rows", "3, 31", "n.a.?")
    refused(evaluate(file, "--drop-missing"), "'fair'", "n.a.?")


def test_a_column_of_strings(csv):
    refused(evaluate(csv, score="sex"), "'sex'", "text")


def test_scores_outside_the_unit_interval(tmp_path):
    refused(evaluate(changed(tmp_path, **with_cell("fair", 7, 1.5))), "'fair'", "1.5", "8")
    logits = list(np.linspace(-4, 4, 60))
    refused(evaluate(changed(tmp_path, fair=logits)), "from 0 to 1", "Logits need")
    refused(evaluate(changed(tmp_path, **with_cell("fair", 7, "inf"))), "'fair'", "8")


@pytest.mark.parametrize("stream", [(), ("--hold", "0")])
def test_a_single_class(tmp_path, stream):
    refused(evaluate(changed(tmp_path, sick=["no"] * 60), *stream), "'no'", "class")


def animals(**changes):
    p = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    names = np.array(["cat", "dog", "owl"])[p.argmax(axis=1)]
    return {"animal": names.tolist(), "a": p[:, 0], "b": p[:, 1], "c": p[:, 2], **changes}


def test_labels_that_do_not_match_the_scores(tmp_path):
    file = write_csv(tmp_path / "animals.csv", animals())
    refused(evaluate(file, label="animal", score="a"), "'a'", "3", "'cat', 'dog', 'owl'")
    refused(evaluate(file, label="animal", score="m=a,b"), "2", "3")
    asked = {"label": "animal", "score": "m=a,b,c"}
    refused(evaluate(file, "--classes", "cat,dog,emu", **asked), "'owl'", "'emu'")
    refused(evaluate(file, "--classes", "cat,dog", **asked), "'m'")
    refused(evaluate(file, **asked), "--classes")
    refused(evaluate(file, "--classes", "cat,dog,owl", "--positive", "cat", **asked), "'cat'")
    file = write_csv(tmp_path / "sums.csv", animals(c=[0.0] * 60))
    refused(evaluate(file, "--classes", "cat,dog,owl", **asked), "sum to 1")


def test_a_positive_class_that_is_none(csv):
    refused(evaluate(csv, "--positive", "maybe"), "'maybe'", "'no', 'yes'")


def test_files_that_are_no_tables(tmp_path, csv):
    refused(evaluate(tmp_path / "q.csv"), "q.csv", "p.csv")
    refused(evaluate(tmp_path), "folder")
    (tmp_path / "empty.csv").touch()
    refused(evaluate(tmp_path / "empty.csv"), "empty.csv", "0 bytes")
    (tmp_path / "header.csv").write_text("sick,fair\n")
    refused(evaluate(tmp_path / "header.csv"), "no rows")
    (tmp_path / "garbage.csv").write_bytes(np.random.default_rng(0).bytes(5000))
    refused(evaluate(tmp_path / "garbage.csv"), "garbage.csv")
    (tmp_path / "garbage.parquet").write_bytes(b"PAR1" + np.random.default_rng(0).bytes(5000))
    refused(evaluate(tmp_path / "garbage.parquet"), "garbage.parquet")
    (tmp_path / "sheet.xlsx").write_bytes(b"PK\x03\x04" + bytes(100))
    refused(evaluate(tmp_path / "sheet.xlsx"), "CSV or Parquet")


@pytest.mark.parametrize("stream", [(), ("--hold", "0")])
def test_truncated_files(tmp_path, csv, stream):
    whole = gzip.compress(csv.read_bytes())
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    refused(evaluate(tmp_path / "cut.csv.gz", *stream), "cut.csv.gz", "cut off")
    pq.write_table(pa.table(DATA), tmp_path / "p.parquet")
    whole = (tmp_path / "p.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    refused(evaluate(tmp_path / "cut.parquet", *stream), "cut.parquet")
    with pa.OSFile(str(tmp_path / "p.arrow"), "wb") as sink:
        table = pa.table(DATA)
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    whole = (tmp_path / "p.arrow").read_bytes()
    (tmp_path / "cut.arrow").write_bytes(whole[: len(whole) // 2])
    refused(evaluate(tmp_path / "cut.arrow", *stream), "cut.arrow")


def test_wrong_encoding(tmp_path, csv):
    text = csv.read_text().replace("yes", "ja, natürlich".replace(",", ""))
    (tmp_path / "latin.csv").write_bytes(text.encode("latin-1"))
    refused(evaluate(tmp_path / "latin.csv"), "UTF-8")
    (tmp_path / "wide.csv").write_bytes(text.encode("utf-16"))
    refused(evaluate(tmp_path / "wide.csv"), "UTF-8")


def test_duplicate_column_names(tmp_path):
    header = ["id", "sex", "weight", "sick", "fair", "fair"]
    refused(evaluate(write_csv(tmp_path / "p.csv", DATA, header)), "'fair'", "name")


def test_a_row_that_is_too_short(tmp_path, csv):
    lines = csv.read_text().splitlines()
    lines[20] = "only,two"
    (tmp_path / "ragged.csv").write_text("\n".join(lines))
    refused(evaluate(tmp_path / "ragged.csv"), "ragged.csv", "20")


@pytest.mark.parametrize("stream", [(), ("--hold", "0")])
def test_very_many_classes(tmp_path, stream):
    n = 100_000
    columns = {"id": [f"x{k}" for k in range(n)], "p": [0.5] * n}
    file = write_csv(tmp_path / "ids.csv", columns)
    refused(evaluate(file, *stream, label="id", score="p"), "'id'", "identifier")


def test_labels_that_are_measurements(tmp_path):
    refused(evaluate(changed(tmp_path, sick=DATA["fair"])), "'sick'")


def test_bad_weights(tmp_path):
    refused(evaluate(changed(tmp_path, weight=[-1] * 60), "--weight", "weight"), "'weight'", "-1")
    refused(evaluate(changed(tmp_path, weight=[0] * 60), "--weight", "weight"), "weight", "zero")


def unwritable(tmp_path):
    """A path below a file: not even root can write there."""
    (tmp_path / "file").touch()
    yield tmp_path / "file" / "page.html", "not a folder"
    yield tmp_path / "nowhere" / "page.html", "no folder"
    (tmp_path / "page.html").mkdir()
    yield tmp_path / "page.html", "folder"


def test_unwritable_outputs(tmp_path, csv):
    for output, words in unwritable(tmp_path):
        asked = ("report", csv, "--label", "sick", "--score", "fair", "--output", output)
        refused(fragility(*asked), str(output), words)
        refused(fragility("demo", "--output", output), words)


@pytest.mark.outside
@pytest.mark.skipif(os.name != "posix", reason="needs a limit on the size of files")
def test_a_full_disk_leaves_no_half_file(tmp_path, csv):
    """A file may grow to 4 KiB and no further: the page does not fit."""
    output = tmp_path / "page.html"
    output.write_text("old")
    script = Path(sys.executable).with_name("fragility")
    asked = ["report", csv, "--label", "sick", "--score", "fair", "--output", output, "--force"]
    ended = subprocess.run(
        ["bash", "-c", 'ulimit -f 4; exec "$@"', "bash", *map(str, [script, *asked])],
        capture_output=True,
        check=False,
        env=ENVIRONMENT,
        timeout=300,
    )
    refused(
        Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode()),
        str(output),
        "could not be written",
    )
    assert output.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.csv", "page.html"]


def test_an_error_later_leaves_the_old_file(tmp_path, csv):
    output = tmp_path / "page.html"
    output.write_text("old")
    file = changed(tmp_path, **with_cell("fair", 59, "oops"))
    asked = ("report", file, "--label", "sick", "--score", "fair", "--output", output, "--force")
    refused(fragility(*asked), "oops")
    assert output.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.csv", "page.html"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--error-cost", "dear"), "neither a number nor a matrix"),
        (("--error-cost", "0,1;2"), "different lengths"),
        (("--error-cost", "0,1,2;1,0,2;1,2,0"), "(2, 2)"),
        (("--error-cost", "-3"), "-3"),
        (("--error-cost", "5", "--capacity", "20"), "capacity"),
        (("--error-cost", "5", "--reviewer-error", "2"), "reviewer_error"),
        (("--error-cost", "5", "--error-cost-column", "weight"), "not both"),
        (("--review-cost", "3"), "give --error-cost"),
        (("--confidence-level", "95"), "--confidence-level must lie between 0 and 1"),
        (("--score", "fair"), "'fair'"),
        (("--score", "=x"), "=x"),
        (("--hold", "-1"), "--hold"),
    ],
)
def test_bad_options(csv, options, words):
    ended = evaluate(csv, *options)
    assert ended.code == 2
    assert "Traceback" not in ended.err
    assert words in " ".join(ended.err.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Usage"),
        (("evaluate",), "Missing argument 'FILE'"),
        (("evaluate", "p.csv", "--score", "p"), "Missing option '--label'"),
        (("evaluate", "p.csv", "--lable", "y"), "--label"),
        (("evalute",), "No such command 'evalute'"),
        (("compare", "p.csv", "--label", "y", "--score", "p"), "Two models at least"),
        (("cost", "p.csv", "--label", "y", "--score", "p"), "Say what an error costs"),
        (("gate", "p.csv", "--label", "y", "--score", "p"), "Nothing to hold the model to"),
        (("gate", "p.csv", "--label", "y", "--score", "p", "--max-cost", "1"), "--error-cost"),
        (
            ("report", "p.csv", "--label", "y", "--score", "p", "--output", "page.pdf"),
            ".html, .md or .json",
        ),
    ],
)
def test_bad_usage(arguments, words):
    ended = fragility(*arguments)
    assert ended.code == 2
    assert ended.out == ""
    assert words in ended.err


def test_bad_baselines(csv, tmp_path):
    asked = ("gate", csv, "--label", "sick", "--score", "fair", "--baseline")
    refused(fragility(*asked, tmp_path / "none.json"), "none.json", "No such file")
    (tmp_path / "bad.json").write_text("{}")
    refused(fragility(*asked, tmp_path / "bad.json"), "not a baseline", "--save-baseline")
    (tmp_path / "bad.json").write_text("no json")
    refused(fragility(*asked, tmp_path / "bad.json"), "not a baseline")
    (tmp_path / "bad.json").write_bytes(b"\xff\xfe")
    refused(fragility(*asked, tmp_path / "bad.json"), "UTF-8")
    both = ("--label", "sick", "--score", "fair", "--score", "bold", "--no-calibration")
    assert fragility("gate", csv, *both, "--save-baseline", tmp_path / "two.json").code == 0
    other = ("gate", csv, "--label", "sick", "--score", "new=fair", "--baseline")
    refused(fragility(*other, tmp_path / "two.json"), "'new'", "'fair', 'bold'")


def test_a_fault_of_the_program_says_so(monkeypatch):
    import fragility.cli.app as app

    def broken(*_args, **_options):
        raise RuntimeError("impossible")

    said = []
    monkeypatch.setattr(app.command, "main", broken)
    monkeypatch.setattr(app, "say", said.append)
    assert app.run([]) == 3
    assert said[0].startswith("Error: this is a fault of fragility, not yours: RuntimeError")
