"""The command as a newcomer uses it: what it prints, writes and returns."""

from __future__ import annotations

import gzip
import io
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from fragility import Report, compare_fragility, measure_fragility
from tests.command import executable, fragility, patients, unsourced, write_csv
from tests.confident_models import classes_drawn

DATA = patients()
SICK = np.array(DATA["sick"])
BOTH = ("--label", "sick", "--score", "fair", "--score", "bold")


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("files") / "predictions.csv", DATA)


def strict(text):
    def refuse(constant):
        raise AssertionError(f"{constant} is not strict JSON")

    return json.loads(text, parse_constant=refuse)


def index_of(content, name, version="raw"):
    (model,) = [model for model in content["models"] if model["name"] == name]
    return model[version]["figures"]["fragility_index"]["value"]


@pytest.mark.outside
def test_evaluate_prints_a_table_and_findings(csv):
    ended = executable("evaluate", csv, *BOTH, "--full")
    assert ended.code == 0
    assert ended.err == ""
    expected = measure_fragility(SICK, DATA["fair"])
    low, high = expected.interval()
    assert f"{expected.value:.3f} ({low:.3f} to {high:.3f})" in ended.out
    assert "fair is less sure of everything, not safer, than bold" in " ".join(ended.out.split())
    for title in ("ratio", "AUC", "log-loss", "Brier score", "Fragility Index, calibrated"):
        assert any(line.startswith(title) for line in ended.out.splitlines())


def test_evaluate_as_json_is_strict_and_keeps_words_off_stdout(csv):
    ended = fragility("evaluate", csv, *BOTH, "--json", "--group", "sex", "--worst", "0")
    content = strict(ended.out)
    assert index_of(content, "fair") == measure_fragility(SICK, DATA["fair"]).value
    assert "log-loss" in ended.err
    assert {part["group"] for part in content["groups"]} == {"f", "m"}
    report = Report.from_predictions(
        SICK, {"fair": DATA["fair"], "bold": DATA["bold"]}, groups={"sex": DATA["sex"]}, n_worst=0
    )
    assert strict(unsourced(ended.out)) == strict(unsourced(report.to_json()))


def test_infinity_is_text_in_json(tmp_path):
    file = write_csv(tmp_path / "p.csv", {"y": [0, 0, 1, 1], "p": [0.9, 0.8, 0.1, 0.2]})
    content = strict(fragility("evaluate", file, "--label", "y", "--score", "p", "--json").out)
    assert index_of(content, "p") == "Infinity"
    assert content["models"][0]["raw"]["figures"]["fragility_index"]["interval"][1] == "Infinity"


def test_weights_positive_class_and_names(csv):
    arguments = ("--label", "sick", "--score", "my model=fair", "--weight", "weight")
    content = strict(fragility("evaluate", csv, *arguments, "--json").out)
    expected = measure_fragility(SICK, DATA["fair"], sample_weight=DATA["weight"])
    assert index_of(content, "my model") == expected.value
    turned = {**DATA, "fair": [1 - p for p in DATA["fair"]]}
    file = write_csv(csv.parent / "turned.csv", turned)
    content = strict(fragility("evaluate", file, *arguments, "--positive", "no", "--json").out)
    assert index_of(content, "my model") == pytest.approx(expected.value, rel=1e-12)
    assert content["positive"] == "no"


@pytest.mark.parametrize("form", ["csv.gz", "parquet", "arrow", "feather"])
def test_every_format_gives_the_same(csv, tmp_path, form):
    file, table = tmp_path / f"predictions.{form}", pa.table(DATA)
    if form == "csv.gz":
        file.write_bytes(gzip.compress(csv.read_bytes()))
    elif form == "parquet":
        pq.write_table(table, file)
    elif form == "arrow":
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    else:
        pa.feather.write_feather(table, file)
    arguments = (*BOTH, "--json", "--no-calibration")
    expected, found = (fragility("evaluate", path, *arguments).out for path in (csv, file))
    assert strict(unsourced(found)) == strict(unsourced(expected))


def animals(n=300, seed=1):
    codes, p = classes_drawn(np.random.default_rng(seed), n)
    columns = {f"p_{name}": p[:, k].tolist() for k, name in enumerate(("cat", "dog", "owl"))}
    return {"animal": np.array(["cat", "dog", "owl"])[codes].tolist(), **columns}, p


def test_several_classes(tmp_path):
    data, p = animals()
    file = write_csv(tmp_path / "animals.csv", data)
    expected = measure_fragility(data["animal"], p)
    asked = ("--label", "animal", "--score", "net=p_owl,p_cat,p_dog", "--classes", "owl,cat,dog")
    content = strict(fragility("evaluate", file, *asked, "--json").out)
    assert index_of(content, "net") == pytest.approx(expected.value, rel=1e-12)
    assert [part["label"] for part in content["classes"]] == ["owl", "cat", "dog"]


def test_missing_values_can_be_left_out(tmp_path):
    broken = {name: list(column) for name, column in DATA.items()}
    broken["fair"][3], broken["sick"][10] = "", "NA"
    file = write_csv(tmp_path / "gaps.csv", broken)
    asked = ("--label", "sick", "--score", "fair", "--json", "--drop-missing")
    content = strict(fragility("evaluate", file, *asked).out)
    kept = np.ones(SICK.size, dtype=bool)
    kept[[3, 10]] = False
    expected = measure_fragility(SICK[kept], np.array(DATA["fair"])[kept])
    assert index_of(content, "fair") == expected.value
    assert any(note.startswith("2 rows with missing values") for note in content["notes"])


@pytest.mark.slow
@pytest.mark.parametrize("costs", ["number", "column"])
def test_figures_beyond_hold_agree_with_those_in_memory(csv, costs):
    price = ("--error-cost", "10") if costs == "number" else ("--error-cost-column", "weight")
    asked = (*BOTH, "--json", "--group", "sex", *price, "--capacity", "0.4")
    memory = strict(fragility("evaluate", csv, *asked, "--in-memory").out)
    stream = strict(fragility("evaluate", csv, *asked, "--hold", "0").out)
    for one, other in zip(memory["models"], stream["models"], strict=True):
        for version in ("raw", "calibrated"):
            for name, figure in one[version]["figures"].items():
                found = other[version]["figures"][name]
                assert found["estimator"] == figure["estimator"]
                if found["exact"]:
                    close = pytest.approx(figure["value"], rel=1e-9, abs=1e-12)
                    assert found["value"] == close, name
                else:
                    assert version == "raw"
                    assert found["bounds"][0] <= figure["value"] <= found["bounds"][1]
        for name in ("decision", "cost", "error_rate", "automation_rate", "fragility", "notes"):
            assert one["policy"][name] == other["policy"][name]
    for one, other in zip(memory["groups"], stream["groups"], strict=True):
        assert one["group"] == other["group"]
        values = [part["figures"]["fragility_index"]["value"] for part in (one, other)]
        assert values[0] == pytest.approx(values[1], rel=1e-9)
    tests = [part["comparisons"][0]["raw"]["fragility_index"] for part in (memory, stream)]
    assert tests[0]["p_value"] == pytest.approx(tests[1]["p_value"], rel=1e-6)
    tests = [part["comparisons"][0]["cost"] for part in (memory, stream)]
    assert tests[0]["difference"] == pytest.approx(tests[1]["difference"], rel=1e-9)
    assert any("sums in narrow bins" in note for note in stream["notes"])
    assert not any("narrow bins" in note for note in memory["notes"])


def test_compare(csv):
    ended = fragility("compare", csv, *BOTH)
    expected = compare_fragility(SICK, DATA["fair"], DATA["bold"])
    assert ended.code == 0
    assert f"{expected.a:.3f}, {expected.b:.3f}" in ended.out
    content = strict(fragility("compare", csv, *BOTH, "--json").out)
    found = content["comparisons"][0]["raw"]["fragility_index"]
    assert found["difference"] == expected.difference
    assert found["interval"] == list(expected.interval)


@pytest.mark.parametrize(
    ("name", "start"), [("page.html", "<!DOCTYPE html>"), ("p.md", "# Fragility"), ("p.json", "{")]
)
def test_report_writes_a_file(csv, tmp_path, name, start):
    output = tmp_path / name
    ended = fragility("report", csv, *BOTH, "--output", output, "--case", "id", "--worst", "3")
    assert ended.code == 0
    assert ended.out == ""
    text = output.read_text(encoding="utf-8")
    assert text.lstrip().startswith(start)
    worst = measure_fragility(SICK, DATA["fair"]).attribution(3)
    for case in worst:
        assert f"case {case.index}" in text
    assert f"Wrote {output}" in ended.err
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_report_without_cases(csv, tmp_path):
    output = tmp_path / "page.html"
    ended = fragility("report", csv, *BOTH, "--output", output, "--case", "id", "--worst", "0")
    assert "figures only" in ended.err
    assert "case 1" not in output.read_text()


def test_cost_by_number_matrix_and_column(csv):
    asked = ("cost", csv, "--label", "sick", "--score", "bold", "--json", "--no-calibration")
    one = strict(fragility(*asked, "--error-cost", "10").out)["models"][0]["policy"]
    same = strict(fragility(*asked, "--error-cost", "0,10;10,0").out)["models"][0]["policy"]
    assert one["decision"] == same["decision"]
    assert one["cost"] == same["cost"]
    file = write_csv(csv.parent / "costs.csv", {**DATA, "cost": [10] * len(SICK)})
    asked = ("cost", file, *asked[2:])
    by_case = strict(fragility(*asked, "--error-cost-column", "cost").out)["models"][0]["policy"]
    assert by_case["cost"] == pytest.approx(one["cost"], rel=1e-12)
    shown = fragility("cost", csv, "--label", "sick", "--score", "bold", "--error-cost", "10").out
    sentences = [line for line in shown.splitlines() if line.startswith("• ")]
    assert sentences[0].startswith("• bold: decide no below ")
    assert "per 1,000 cases" in sentences[0]
    assert sentences[1].startswith("• It saves ")
    assert "cost without review" in shown


@pytest.mark.parametrize(
    ("limits", "code", "words"),
    [
        (["--max-fi", "0.9"], 0, "Gate passed."),
        (["--max-fi", "0.1"], 1, "Fragility Index of fair is"),
        (["--max-fi", "0.17", "--upper-limit"], 1, "above the limit of 0.170"),
        (["--min-auc", "0.99"], 1, "AUC of fair is"),
        (["--max-log-loss", "0.1"], 1, "log-loss of fair is"),
        (["--max-ratio", "0.1"], 1, "ratio of fair is"),
        (["--max-cost", "0.2", "--error-cost", "10"], 1, "cost per case of fair is"),
        (["--max-cost", "5", "--error-cost", "10"], 0, "Gate passed."),
    ],
)
def test_gate(csv, limits, code, words):
    ended = fragility("gate", csv, "--label", "sick", "--score", "fair", *limits)
    assert ended.code == code, ended
    assert words in ended.err


def test_gate_shows_the_index_with_its_companions_and_warns_of_shrinking(csv):
    asked = ("gate", csv, "--label", "sick", "--score", "fair", "--max-fi", "0.9")
    told = fragility(*asked).err
    found = measure_fragility(SICK, DATA["fair"])
    assert f"fair: Fragility Index {found.value:.3f}, ratio {found.ratio:.3f}, AUC 0." in told
    assert "Warning: scores that are shrunk pass --max-fi" in told
    assert "Warning" not in fragility(*asked, "--max-log-loss", "1").err


def test_gate_against_a_baseline(csv, tmp_path):
    asked = ("--label", "sick", "--score")
    old = tmp_path / "old.json"
    saved = fragility("gate", csv, *asked, "fair", "--save-baseline", old)
    assert saved.code == 0, saved
    assert "Nothing was held" in saved.err
    same = fragility("gate", csv, *asked, "fair", "--baseline", old)
    assert same.code == 0, same
    bolder = [p**9 / (p**9 + (1 - p) ** 9) for p in DATA["fair"]]
    file = write_csv(tmp_path / "bolder.csv", {"sick": DATA["sick"], "p": bolder})
    worse = fragility("gate", file, *asked, "p", "--baseline", old, "--json")
    assert worse.code == 1
    content = strict(worse.out)
    assert content["passed"] is False
    failed = {check["figure"] for check in content["checks"] if not check["passed"]}
    assert failed == {"log_loss"}  # calibration mends it
    enough = fragility("gate", file, *asked, "p", "--baseline", old, "--tolerance", "0.9")
    assert enough.code == 0


def test_no_gate_is_passed_by_shrinking(csv, tmp_path):
    asked = ("--label", "sick", "--score", "p")
    old = tmp_path / "old.json"
    file = write_csv(tmp_path / "old.csv", {"sick": DATA["sick"], "p": DATA["fair"]})
    assert fragility("gate", file, *asked, "--save-baseline", old).code == 0
    shrunk = [0.5 + 0.1 * (p - 0.5) for p in DATA["fair"]]
    file = write_csv(tmp_path / "new.csv", {"sick": DATA["sick"], "p": shrunk})
    ended = fragility("gate", file, *asked, "--baseline", old)
    assert ended.code == 1
    assert "log-loss (as given) of p is" in ended.err
    constant = write_csv(tmp_path / "same.csv", {"sick": DATA["sick"], "p": [0.4] * len(SICK)})
    ended = fragility("gate", constant, *asked, "--max-fi", "0.5")
    assert ended.code == 1
    assert "gives every case the same score" in ended.err


def test_warnings_of_the_library_are_told_in_a_line(csv):
    ended = fragility("slices", csv, "--label", "sick", "--score", "fair")
    assert ended.code == 0, ended
    (warned,) = ended.err.splitlines()
    assert warned.startswith("Warning: ")
    assert "'id' has " in warned


@pytest.mark.slow
def test_demo_writes_its_report(tmp_path):
    ended = fragility("demo", cwd=tmp_path)
    assert ended.code == 0, ended
    assert ended.err.startswith("569 tumours")
    assert len((ended.out + ended.err).splitlines()) <= 25
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    shown = readme.split("```\n• ")[1].split("```")[0]
    for sentence in shown.split("• "):
        assert " ".join(sentence.split()).removesuffix(" ...") in ended.out
    assert (tmp_path / "fragility-demo.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.outside
def test_help_and_version():
    ended = fragility("--help")
    assert ended.code == 0
    for name in ("evaluate", "compare", "report", "cost", "gate", "demo"):
        assert f"\n  {name} " in ended.out
    assert executable("--version").out.startswith("fragility, version ")
    assert "evaluate predictions.csv --label" in fragility("evaluate", "--help").out


@pytest.mark.outside
def test_a_closed_pipe_is_no_error(csv):
    import subprocess
    import sys

    command = f"{sys.executable} -m fragility evaluate {csv} {' '.join(BOTH)} | head -1"
    ended = subprocess.run(command, shell=True, capture_output=True, check=False, timeout=300)
    assert ended.stderr == b""
    assert b"500 cases" in ended.stdout


@pytest.mark.outside
def test_without_the_extra_the_command_names_it(tmp_path):
    (tmp_path / "click.py").write_text("raise ImportError('No click here', name='click')")
    ended = executable("--help", PYTHONPATH=str(tmp_path))
    assert ended.code == 2
    assert 'pip install "fragility[cli]"' in ended.err


def test_help_shows_examples_on_lines_of_their_own():
    for name in ("evaluate", "compare", "report", "cost", "gate"):
        lines = fragility(name, "--help").out.splitlines()
        assert any(line.startswith(f"  fragility {name} ") for line in lines), name
        assert not any("\\b" in line for line in lines)


def test_two_columns_of_two_classes_beyond_hold(tmp_path):
    columns = {**DATA, "no": [1 - p for p in DATA["bold"]]}
    file = write_csv(tmp_path / "p.csv", columns)
    for positive, own in (("yes", "bold"), ("no", "no")):
        asked = (
            "evaluate",
            file,
            "--label",
            "sick",
            "--positive",
            positive,
            "--json",
            "--hold",
            "0",
        )
        both = strict(fragility(*asked, "--classes", "no,yes", "--score", "m=no,bold").out)
        one = strict(fragility(*asked, "--score", f"m={own}").out)
        assert both["models"] == one["models"]


def test_a_class_without_cases_is_a_note_beyond_hold_too(tmp_path):
    y = ["a", "b", "a", "b", "a", "b"]
    p = [0.6, 0.2, 0.7, 0.3, 0.5, 0.3]
    q = [0.3, 0.7, 0.2, 0.6, 0.4, 0.4]
    r = [0.1, 0.1, 0.1, 0.1, 0.1, 0.3]
    file = write_csv(tmp_path / "p.csv", {"y": y, "p": p, "q": q, "r": r})
    asked = ("evaluate", file, "--label", "y", "--score", "m=p,q,r", "--classes", "a,b,c")
    for way in (("--hold", "0"), ("--in-memory",)):
        ended = fragility(*asked, *way, "--no-calibration")
        assert ended.err == ""
        assert "Note: No case of 'c': the pairs with these classes are left out." in ended.out
        assert "not asked for" not in ended.out


def test_beyond_hold_the_worst_cases_are_those_in_memory(csv, tmp_path):
    asked = ("report", csv, "--label", "sick", "--score", "fair", "--group", "sex", "--case", "id")
    shown = []
    for way in ("--in-memory", "--hold=0"):
        output = tmp_path / f"{way}.json"
        ended = fragility(*asked, "--output", output, way, "--worst", "4")
        assert ended.code == 0, ended
        assert "figures and worst cases" in ended.err
        shown.append(strict(output.read_text())["models"][0]["worst_cases"])
    assert len(shown[0]) == len(shown[1]) == 4
    for one, other in zip(*shown, strict=True):
        assert other.pop("lift") == pytest.approx(one.pop("lift"), rel=1e-6)
        assert other == one
    none = fragility(*asked, "--output", tmp_path / "r.md", "--hold", "0", "--worst", 0)
    assert "figures only" in none.err
    wrong = ("report", csv, "--label", "sick", "--score", "fair", "--output", tmp_path / "r.md")
    assert fragility(*wrong, "--hold", "0", "--case", "name").code == 2


def test_the_same_predictions_pass_their_baseline_read_either_way(tmp_path):
    # Scores so close to 1 that they share a bin: beyond `hold` the AUC has bounds.
    close = [1 - k * 1e-13 for k in (1, 2, 3, 4, 5, 6)]
    y = [1, 0, 1, 1, 0, 0]
    file = write_csv(tmp_path / "p.csv", {"y": y, "p": [repr(p) for p in close]})
    asked = (file, "--label", "y", "--score", "p")
    passes, rows = ("--hold", "0"), ("--in-memory",)
    for way, other in ((rows, passes), (passes, rows), (("--stream",), rows)):
        baseline = tmp_path / "old.json"
        assert fragility("gate", *asked, *way, "--save-baseline", baseline).code == 0
        ended = fragility("gate", *asked, *other, "--baseline", baseline)
        assert ended.code == 0, ended.err


def test_a_gate_shows_digits_and_limits_that_explain_it(csv):
    value = measure_fragility(SICK, DATA["fair"])
    asked = ("gate", csv, "--label", "sick", "--score", "fair", "--max-fi")
    ended = fragility(*asked, f"{value.value - 1e-5:.8f}")
    assert ended.code == 1
    shown, limit = ended.err.removesuffix(".\n").split(" is ")[1].split(", above the limit of ")
    assert float(shown) > float(limit)
    ended = fragility(*asked, value.value + 1e-5, "--upper-limit")
    assert "Fragility Index (upper limit) of fair" in ended.err
    assert ended.code == 1


def test_names_that_no_terminal_should_see(csv):
    asked = ("evaluate", csv, "--label", "sick", "--score", "\x1b[2J\u202em=fair")
    ended = fragility(*asked)
    assert "\\x1b[2J\\u202em" in ended.out
    assert "\x1b" not in ended.out
    assert strict(fragility(*asked, "--json").out)["models"][0]["name"] == "\x1b[2J\u202em"


@pytest.mark.outside
def test_output_in_an_encoding_without_these_signs(csv):
    asked = ("gate", csv, "--label", "sick", "--score", "größer=fair", "--max-fi", "0.9")
    ended = executable(*asked, PYTHONIOENCODING="cp1252")
    assert ended.code == 0, ended
    content = strict(executable(*asked, "--json", PYTHONIOENCODING="ascii").out)
    assert content["report"]["models"][0]["name"] == "größer"


@pytest.mark.parametrize(
    "rows",
    [
        [["", "a", "größer"], ["Fragility Index", "0.1 (0 to 1)", "–"], ["AUC", "", "0.25"]],
        [["模型", "ｗｉｄｅ", "é"], ["a", "很长的名字", "x"]],
        [["[bold]", ":smile:"], ["\\[/]", "[red]x"]],
        [["only"], ["a longer one"]],
        [["no rows", "at all"]],
        [["two\nlines", "a\ttab"], ["x", "y"]],
    ],
)
def test_a_pipe_gets_the_lines_that_a_terminal_shows(monkeypatch, rows):
    """Rich draws for a terminal, and for what has lines of its own; all else is padded here."""
    from fragility.cli import console

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    shown = []
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr("sys.stdout", stream)
        console.show_table(rows[0], rows[1:])
        console.show_lines([" ".join(" ".join(cells).split()) for cells in rows])
        shown.append(re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()))
    assert shown[0].strip()
    assert shown[1] == shown[0]


def test_many_models_on_a_narrow_terminal_are_put_below_each_other(monkeypatch, capsys):
    from fragility.cli import console

    monkeypatch.setattr(console, "_WIDE", 60)
    names = ["first", "second", "third"]
    row = ["Fragility Index", *["0.123 (0.100 to 0.150)"] * 3]
    console.show_models(["", *names], [row])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[::3]] == [["first"], ["second"], ["third"]]
    assert all(line.endswith("0.123 (0.100 to 0.150)") for line in lines[1::3])
    monkeypatch.setattr(console, "_WIDE", 70)
    console.show_models(["", *names], [row])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[::3]] == [["first", "second"], ["third"]]
