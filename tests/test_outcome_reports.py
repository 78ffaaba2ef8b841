"""Reports on files of outcomes: as on arrays, whatever the file, and words for the rest."""

from __future__ import annotations

import csv
import io
import json
import sys
from math import inf, isnan, nan

import numpy as np
import pandas as pd
import pytest

from fragility import Costs, Report
from fragility.report.outcome_files import report_on_outcome_file
from fragility.tables import OutcomeFile, open_table

from .command import fragility, refused, unsourced
from .fuzzing.readers import run
from .test_tables import file

SPELLED = {"C": 1.0, "I": 0.0, "": nan}


def answers(n=300, seed=0):
    """A table of two models, of which the first declined some answers."""
    rng = np.random.default_rng(seed)
    p = rng.beta(4, 2, n)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", "ok", "p", "no", "ok2", "q", "site", "age", "who", "w", "cost"])
    for k in range(n):
        silent = rng.random() < 0.1
        q = float(np.clip(p[k] + rng.normal(0, 0.2), 0, 1))
        first = ["", ""] if silent else ["C" if rng.random() < p[k] ** 1.5 else "I", float(p[k])]
        second = [int(rng.random() < p[k]), q]
        about = ["ab"[k % 2], int(rng.integers(20, 80)), k // 3, int(rng.integers(1, 4))]
        writer.writerow(
            [f"case {k}", *first, str(silent).lower(), *second, *about, 1 + float(rng.random())]
        )
    return text.getvalue()


TEXT = answers()
ROWS = list(csv.DictReader(io.StringIO(TEXT)))
MODELS = {
    "correct": {"a": "ok", "b": "ok2"},
    "confidence": {"a": "p", "b": "q"},
    "declined": {"a": "no"},
}
GIVEN = {
    "correct": {"a": [SPELLED[r["ok"]] for r in ROWS], "b": [int(r["ok2"]) for r in ROWS]},
    "confidences": {"a": [float(r["p"] or nan) for r in ROWS], "b": [float(r["q"]) for r in ROWS]},
    "declined": {"a": [r["no"] == "true" for r in ROWS], "b": [False] * len(ROWS)},
}


def column(name):
    return np.array([float(row[name]) for row in ROWS])


def same(one, two, exact=True):
    """Every figure and test of two reports."""
    for a, b in zip(one.models, two.models, strict=True):
        assert a.name == b.name
        for kind in ("raw", "calibrated"):
            first, second = getattr(a, kind), getattr(b, kind)
            assert (first is None) == (second is None)
            for name in [] if first is None else first.figures:
                x, y = first.figures[name], second.figures[name]
                tolerance = {"rel": 0, "abs": 0} if exact else {"rel": 0.02, "abs": 1e-9}
                assert x.value == pytest.approx(y.value, nan_ok=True, **tolerance), name
                if exact and x.interval is not None:
                    assert x.interval == y.interval
        if exact:
            assert [case.row - 1 for case in a.worst] == [case.row for case in b.worst]
            assert [case.case for case in a.worst] == [case.case for case in b.worst]
    for x, y in zip(one.groups, two.groups, strict=True):
        assert (x.model, x.group, x.n) == (y.model, y.group, y.n)
        if exact:
            assert x.index.value == y.index.value
    for x, y in zip(one.comparisons, two.comparisons, strict=True):
        assert (x.a, x.b) == (y.a, y.b)


def as_lines():
    """The same table as JSON lines, with numbers and booleans."""
    lines = []
    for row in ROWS:
        made = {
            "id": row["id"],
            "one": {"ok": row["ok"] or None, "p": float(row["p"]) if row["p"] else None},
            "no": row["no"] == "true",
            "two": {"ok": row["ok2"] == "1", "p": row["q"]},
            "site": row["site"],
        }
        lines.append(json.dumps(made) + "\n")
    return "".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("hold", [inf, 1 << 20, 0])
def test_the_same_as_arrays(tmp_path, hold):
    opened = OutcomeFile(open_table(file(tmp_path, TEXT)), **MODELS, groups=["site"])
    made = report_on_outcome_file(opened, n_worst=4, hold=hold, case_column="id")
    wanted = Report.from_outcomes(
        **GIVEN,
        groups=[row["site"] for row in ROWS],
        n_worst=4,
        cases=[row["id"] for row in ROWS],
    )
    same(made, wanted, exact=hold > 0)
    lines = open_table(file(tmp_path, as_lines(), "a.jsonl"))
    nested = OutcomeFile(
        lines,
        correct={"a": "one.ok", "b": "two.ok"},
        confidence={"a": "one.p", "b": "two.p"},
        declined={"a": "no"},
        groups=["site"],
    )
    again = report_on_outcome_file(nested, n_worst=4, hold=hold, case_column="id", calibrate=False)
    for a, b in zip(made.models, again.models, strict=True):
        for name, figure in a.raw.figures.items():
            x, y = figure.value, b.raw.figures[name].value
            assert x == y or (isnan(x) and isnan(y))
        assert a.worst == b.worst


@pytest.mark.slow
def test_weights_clusters_costs(tmp_path):
    opened = OutcomeFile(
        open_table(file(tmp_path, TEXT)),
        **MODELS,
        weight="w",
        cluster="who",
        error_cost="cost",
        groups=["age:40,60", "site"],
    )
    costs = Costs(None, review_cost=0.3)
    made = report_on_outcome_file(opened, costs=costs, n_worst=0)
    assert [part.policy.columns for part in made.models] == [("p", "no"), ("q",)]
    assert made.clustered
    assert made.weighted
    assert len(made.groups) == 2 * (3 + 2 + 6)
    wanted = Report.from_outcomes(
        **GIVEN,
        sample_weight=column("w"),
        cluster=[row["who"] for row in ROWS],
        costs=Costs(column("cost"), review_cost=0.3),
        n_worst=0,
    )
    for a, b in zip(made.models, wanted.models, strict=True):
        for name, figure in a.raw.figures.items():
            assert figure.value == pytest.approx(b.raw.figures[name].value, rel=1e-12), name


def test_rows_left_out_are_noted(tmp_path):
    text = TEXT.replace("\ncase 5,", "\ncase 5,,,false,1,0.5,a,30,1,1,1\ncase 5,", 1)
    opened = OutcomeFile(open_table(file(tmp_path, text)), **MODELS, drop_missing=True)
    made = report_on_outcome_file(opened, calibrate=False)
    assert any("1 row with missing values was left out" in note for note in made.notes)


class TestOptions:
    """What is said of the file is predictions of classes, or answers, and all of it."""

    @pytest.fixture
    def path(self, tmp_path):
        return file(tmp_path, TEXT, "answers.csv")

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ([], "Missing option '--label'"),
            (["--score", "p"], "Missing option '--label'"),
            (["--label", "ok2"], "Missing option '--score'"),
            (["--correct", "ok"], "Missing option '--confidence'"),
            (["--confidence", "p"], "Missing option '--correct'"),
            (["--declined", "no"], "Missing option '--correct'"),
            (["--correct", "ok2", "--confidence", "q", "--label", "ok2"], "not both"),
            (["--score", "p", "--correct", "ok"], "not both"),
            (["--correct", "ok2", "--confidence", "q", "--positive", "1"], "--positive are for"),
            (["--correct", "ok2", "--confidence", "q", "--classes", "0,1"], "--positive are for"),
        ],
    )
    @pytest.mark.parametrize("command", [["evaluate"], ["gate", "--max-fi", "1"]])
    def test_usage(self, path, command, options, words):
        ended = fragility(command[0], path, *options, *command[1:])
        assert ended.code == 2
        assert ended.out == ""
        assert words in " ".join(ended.err.split())

    def test_two_models_to_compare(self, path):
        ended = fragility("compare", path, "--correct", "ok2", "--confidence", "q")
        assert ended.code == 2
        assert "repeat --correct and --confidence" in ended.err

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--correct", "okk", "--confidence", "p"], "no column 'okk'"),
            (["--correct", "ok", "--confidence", "p"], "'ok' has missing values"),
            (["--correct", "site", "--confidence", "q"], "neither yes nor no"),
            (["--correct", "ok2", "--confidence", "age"], "must hold probabilities"),
            (["--correct", "a=ok2", "--confidence", "b=q"], "Model 'b' has --confidence"),
            (["--correct", "ok2", "--confidence", "q", "--declined", "w"], "neither yes nor no"),
        ],
    )
    @pytest.mark.parametrize("way", [[], ["--hold", "0"]])
    def test_bad_files(self, path, options, words, way):
        refused(fragility("evaluate", path, *options, *way), words)

    def test_bad_costs(self, path):
        asked = ("cost", path, "--correct", "ok2", "--confidence", "q", "--error-cost")
        refused(fragility(*asked, "0,1;2,0"), "answers are right or wrong")
        refused(fragility(*asked, "2", "--max-misses", "0.1"), "max_misses")


class TestCommand:
    """Every command on a file of outcomes, of every kind."""

    ONE = ("--correct", "ok2", "--confidence", "q")
    TWO = (
        *("--correct", "a=ok", "--confidence", "a=p", "--declined", "a=no"),
        *("--correct", "b=ok2", "--confidence", "b=q"),
    )

    @pytest.mark.slow
    def test_kinds_of_files_and_standard_input(self, tmp_path, monkeypatch):
        asked = ("--group", "site", "--json", "--no-calibration")
        path = file(tmp_path, TEXT, "answers.csv")
        wanted = run("evaluate", path, *self.TWO, *asked)
        assert wanted[0] == 0
        names = {"ok": "one.ok", "p": "one.p", "ok2": "two.ok", "q": "two.p"}
        paths = [
            f"{text[:2]}{names[text[2:]]}" if text[2:] in names and "=" in text else text
            for text in self.TWO
        ]
        lines = file(tmp_path, as_lines(), "answers.jsonl")
        again = run("evaluate", lines, *paths, *asked)
        assert [unsourced(str(part)) for part in again] == [unsourced(str(p)) for p in wanted]
        for given, options in ((path, self.TWO), (lines, paths)):
            stream = io.TextIOWrapper(io.BytesIO(given.read_bytes()))
            monkeypatch.setattr(sys, "stdin", stream)
            again = run("evaluate", "-", *options, *asked)
            assert [unsourced(str(part)) for part in again] == [unsourced(str(p)) for p in wanted]

    @pytest.mark.slow
    def test_commands(self, tmp_path):
        path = file(tmp_path, TEXT, "answers.csv")
        fast = "--no-calibration"
        code, out, _ = run("compare", path, *self.TWO, "--json", fast)
        assert code == 0
        assert [pair["a"] for pair in json.loads(out)["comparisons"]] == ["a"]
        policy = tmp_path / "policy.json"
        code, out, _ = run("cost", path, *self.ONE, "--error-cost", "3", "--policy", policy, fast)
        assert code == 0
        assert json.loads(policy.read_text())["columns"] == ["q"]
        decided = tmp_path / "decided.csv"
        assert run("decide", path, "--policy", policy, "--output", decided)[0] == 0
        page = tmp_path / "page.html"
        assert run("report", path, *self.ONE, "--output", page, "--case", "id", fast)[0] == 0
        assert "case " in page.read_text(encoding="utf-8")
        base = tmp_path / "base.json"
        assert run("gate", path, *self.ONE, fast, "--save-baseline", base)[0] == 0
        assert run("gate", path, *self.ONE, "--baseline", base)[0] == 0
        assert run("gate", path, *self.ONE, "--max-fi", "0.01")[0] == 1
        code, out, _ = run("gate", path, *self.TWO, "--against", "a", fast, "--json")
        assert {check["model"] for check in json.loads(out)["checks"]} == {"b"}
        assert code == (0 if json.loads(out)["passed"] else 1)
        assert run("gate", path, *self.TWO, "--against", "none", fast)[0] == 2
        assert run("gate", path, "--label", "ok2", "--score", "q", "--baseline", base)[0] == 2


def test_declined_cases_are_passed_on_by_decide(tmp_path):
    rng = np.random.default_rng(1)
    n = 400
    sure = np.round(rng.random(n), 3)
    declined = rng.random(n) < 0.2
    rows = [
        {"ok": bool(rng.random() < p), "p": p, "no": bool(d)}
        for p, d in zip(sure.tolist(), declined.tolist(), strict=True)
    ]
    for row in rows[:60]:
        if row["no"]:
            row["p"] = None  # nothing was claimed
    path, policy, out = (tmp_path / name for name in ("a.jsonl", "policy.json", "out.csv"))
    path.write_text("\n".join(map(json.dumps, rows)))
    answers = ("--correct", "ok", "--confidence", "p", "--declined", "no")
    ended = fragility("cost", path, *answers, "--error-cost", "3", "--policy", policy)
    assert ended.code == 0, ended.err
    ended = fragility("decide", path, "--policy", policy, "--output", out, "--reviews", "100")
    assert ended.code == 0, ended.err
    decided = pd.read_csv(out)
    upper = json.loads(policy.read_text())["decision"]["upper"]
    expected = np.where(~declined & (sure >= upper), "answer", "review")
    assert decided["decision"].tolist() == expected.tolist()
    assert set(decided["reason"][declined]) == {"no answer: passed on"}
    queue = decided["review_order"].to_numpy()
    assert sorted(queue[~np.isnan(queue)]) == list(range(1, 101))
    assert np.nanmax(queue[declined]) == declined.sum()  # they come first
