"""--record and `fragility history` on the real command: counts by hand, the alarm, damage."""

from __future__ import annotations

import csv
import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import numpy as np
import pytest

from fragility import __version__, error_alarm
from fragility.report.records import append_record, check_appendable, read_history

from .command import fragility, patients, refused, write_csv
from .fuzzing import histories

ASKED = ("--label", "sick", "--score", "fair", "--score", "bold")
DATA = patients(400)
COSTS = ("--error-cost", "0,1;5,0", "--review-cost", "0.3")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("history")
    write_csv(made / "p.csv", DATA)
    return made


@pytest.fixture(scope="module")
def policy(folder):
    """A policy of the bold model, in a file."""
    asked = ("--label", "sick", "--score", "bold")
    made = fragility("cost", "p.csv", *asked, *COSTS, "--policy", "policy.json", cwd=folder)
    assert made.code == 0
    return json.loads((folder / "policy.json").read_text())


@pytest.fixture(scope="module")
def recorded(folder):
    """The line that a gate adds."""
    ended = fragility(
        "gate", "p.csv", *ASKED, "--max-fi", "0.2", "--record", "gate.jsonl", cwd=folder
    )
    assert ended.code == 1
    assert "Added a line to gate.jsonl" in ended.err
    (line,) = (folder / "gate.jsonl").read_text().splitlines()
    return json.loads(line, parse_constant=pytest.fail)


def read_lines(path):
    return path.read_text().splitlines()


def confident(model, level=0.9, data=DATA):
    """Cases above a level of confidence, and the wrong ones among them, by hand."""
    n = wrong = 0
    for label, p in zip(data["sick"], data[model], strict=True):
        if max(p, 1 - p) > level:
            n += 1
            wrong += (label == "yes") != (p > 0.5)
    return n, wrong


def test_a_line_says_what_was_measured(folder, recorded):
    assert recorded["format"] == "fragility history"
    assert recorded["version"] == 1
    assert recorded["fragility_version"] == __version__
    assert recorded["file"] == "p.csv"
    data = (folder / "p.csv").read_bytes()
    assert recorded["sha256"] == hashlib.sha256(data).hexdigest()
    date = datetime.fromisoformat(recorded["date"])
    assert abs((datetime.now(UTC) - date).total_seconds()) < 600
    report = json.loads(fragility("evaluate", "p.csv", *ASKED, "--json", cwd=folder).out)
    for model, measured in zip(recorded["models"], report["models"], strict=True):
        assert model["n"] == 400
        assert (model["decided_alone"], model["errors"]) == confident(model["name"])
        assert model["rule"] == {"kind": "confident", "level": 0.9}
        assert model["counts"] == "exact"
        for name in ("fragility_index", "ratio", "auc", "log_loss"):
            for part in ("value", "interval"):
                assert model["figures"][name][part] == measured["raw"]["figures"][name][part]
    assert {model["name"]: model["passed"] for model in recorded["models"]} == {
        "fair": True,
        "bold": False,
    }


def test_evaluate_records_too_at_its_own_level(folder):
    ended = fragility(
        "evaluate", "p.csv", *ASKED, "--confident", "0.8", "--no-calibration", "--hold", "0",
        "--record", "evaluate.jsonl", "--date", "2026-05-04T10:30+02:00", cwd=folder,
    )  # fmt: skip
    assert ended.code == 0
    (line,) = (folder / "evaluate.jsonl").read_text().splitlines()
    found = json.loads(line)
    assert found["date"] == "2026-05-04T08:30:00Z"
    for model in found["models"]:
        assert model["passed"] is None
        assert (model["decided_alone"], model["errors"]) == confident(model["name"], 0.8)


def test_a_policy_is_counted_as_decide_decides(folder, policy):
    new = patients(600, seed=9)
    write_csv(folder / "new.csv", new)
    ended = fragility(
        "decide", "new.csv", "--policy", "policy.json", "--output", "decided.csv", cwd=folder
    )
    assert ended.code == 0
    with open(folder / "decided.csv", newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    alone = [row for row in rows if row["decision"] != "review"]
    wrong = [row for row in alone if row["decision"] != row["sick"]]
    assert 0 < len(wrong) < len(alone) < len(rows)
    for more in ((), ("--hold", "0")):
        ended = fragility(
            "evaluate", "new.csv", *ASKED, "--no-calibration", "--record", "policy.jsonl",
            "--policy", "policy.json", *more, cwd=folder,
        )  # fmt: skip
        assert ended.code == 0, ended.err
    sha256 = hashlib.sha256((folder / "policy.json").read_bytes()).hexdigest()
    for line in (folder / "policy.jsonl").read_text().splitlines():
        fair, bold = json.loads(line)["models"]
        assert (bold["decided_alone"], bold["errors"]) == (len(alone), len(wrong))
        assert bold["rule"] == {"kind": "policy", "sha256": sha256}
        assert fair["rule"]["kind"] == "confident"
        assert (fair["decided_alone"], fair["errors"]) == confident("fair", data=new)


def test_a_policy_of_something_else_is_refused(folder, policy):
    record = ("--record", "other.jsonl", "--policy", "policy.json")
    asked = ("evaluate", "p.csv", "--label", "sick", "--no-calibration")
    refused(fragility(*asked, "--score", "fair", *record, cwd=folder), "scores in 'bold'")
    ended = fragility(*asked, "--score", "bold", "--positive", "no", *record, cwd=folder)
    refused(ended, "say --positive yes")
    ended = fragility(
        "evaluate", "p.csv", "--label", "sex", "--score", "bold", "--no-calibration", *record,
        cwd=folder,
    )  # fmt: skip
    refused(ended, "classes 'no', 'yes'", "has 'f', 'm'")
    assert not (folder / "other.jsonl").exists()


def test_policies_that_a_file_chooses_are_expected_numbers(folder):
    ended = fragility("evaluate", "p.csv", *ASKED, *COSTS, "--no-calibration", "--json",
                      "--record", "chosen.jsonl", cwd=folder)  # fmt: skip
    report = json.loads(ended.out)
    (line,) = (folder / "chosen.jsonl").read_text().splitlines()
    for model, measured in zip(json.loads(line)["models"], report["models"], strict=True):
        policy = measured["policy"]
        assert model["decided_alone"] == pytest.approx(400 * policy["automation_rate"])
        assert model["errors"] == pytest.approx(model["decided_alone"] * policy["error_rate"])
        assert (model["counts"], model["rule"]["kind"]) == ("expected", "chosen")
        assert model["rule"]["costs"] == report["costs"]
        assert model["figures"]["cost"]["value"] == policy["cost"]
    found = fragility("history", "chosen.jsonl", cwd=folder)
    assert found.code == 0
    assert "record with --policy" in found.out


def effective(weights):
    return np.sum(weights) ** 2 / np.sum(np.square(weights))


def test_weighted_cases_are_effective_numbers(folder):
    fragility("evaluate", "p.csv", *ASKED, *COSTS, "--no-calibration", "--weight", "weight",
              "--record", "weights.jsonl", cwd=folder)  # fmt: skip
    (line,) = (folder / "weights.jsonl").read_text().splitlines()
    for model in json.loads(line)["models"]:
        p, w = np.array(DATA[model["name"]]), np.array(DATA["weight"], dtype=float)
        sure = np.maximum(p, 1 - p) > 0.9
        wrong = (np.array(DATA["sick"]) == "yes") != (p > 0.5)
        n = effective(w[sure])
        assert model["decided_alone"] == pytest.approx(n)
        assert model["errors"] == pytest.approx(n * w[sure & wrong].sum() / w[sure].sum())
        assert model["counts"] == "effective"
    assert "effective ones" in fragility("history", "weights.jsonl", cwd=folder).out


def test_a_policy_counts_weights_and_clusters(folder, policy):
    asked = ("evaluate", "p.csv", "--label", "sick", "--score", "bold", "--no-calibration")
    asked += ("--record", "uneven.jsonl", "--policy", "policy.json")
    assert fragility(*asked, "--weight", "weight", cwd=folder).code == 0
    assert fragility(*asked, "--cluster", "weight", cwd=folder).code == 0
    weighted, clustered = (
        json.loads(text)["models"][0] for text in read_lines(folder / "uneven.jsonl")
    )
    p, w = np.array(DATA["bold"]), np.array(DATA["weight"], dtype=float)
    lower, upper = policy["decision"]["lower"], policy["decision"]["upper"]
    upper = np.inf if upper is None else upper
    alone = (p < lower) | (p >= upper)
    wrong = alone & ((np.array(DATA["sick"]) == "yes") != (p >= upper))
    n = effective(w[alone])
    assert weighted["decided_alone"] == pytest.approx(n)
    assert weighted["errors"] == pytest.approx(n * w[wrong].sum() / w[alone].sum())
    assert clustered["decided_alone"] == pytest.approx(3)  # three weights, so three clusters
    assert clustered["errors"] == pytest.approx(3 * wrong.sum() / alone.sum())


def test_answers_are_recorded(folder, policy):
    rng = np.random.default_rng(4)
    sure = rng.uniform(0.5, 1.0, 200)
    right = rng.random(200) < sure
    declined = rng.random(200) < 0.1
    write_csv(
        folder / "answers.csv",
        {"ok": right.astype(int), "sure": sure, "none": declined.astype(int)},
    )
    asked = ("--correct", "m=ok", "--confidence", "m=sure", "--declined", "m=none")
    made = fragility("cost", "answers.csv", *asked, "--error-cost", "4", "--policy", "answers.json",
                     cwd=folder)  # fmt: skip
    assert made.code == 0, made.err
    upper = json.loads((folder / "answers.json").read_text())["decision"]["upper"]
    record = ("--record", "answers.jsonl", "--no-calibration")
    for more in ((), ("--policy", "answers.json")):
        ended = fragility("evaluate", "answers.csv", *asked, *record, *more, cwd=folder)
        assert ended.code == 0, ended.err
    lines = [json.loads(text)["models"][0] for text in read_lines(folder / "answers.jsonl")]
    for model, level, reached in ((lines[0], 0.9, sure > 0.9), (lines[1], upper, sure >= upper)):
        assert level is not None
        alone = reached & ~declined
        assert model["n"] == 200
        assert (model["decided_alone"], model["errors"]) == (
            alone.sum(),
            (alone & ~right).sum(),
        )
    ended = fragility("evaluate", "answers.csv", *asked, *record, "--policy", "policy.json",
                      cwd=folder)  # fmt: skip
    refused(ended, "is for predictions of classes")


def line(date, decided, errors, *, name="m", sha256=None, rule=None, **model):
    """A line as --record writes it."""
    return {
        "format": "fragility history",
        "version": 1,
        "date": date,
        "file": "week.csv",
        "sha256": sha256 or hashlib.sha256(f"{date}{name}".encode()).hexdigest(),
        "fragility_version": "0",
        "confidence": 0.95,
        "models": [
            {
                "name": name,
                "n": 1000,
                "decided_alone": decided,
                "errors": errors,
                "counts": "exact",
                "rule": rule or {"kind": "confident", "level": 0.9},
                "figures": {
                    "fragility_index": {"value": 0.123, "interval": [0.1, 0.2]},
                    "ratio": {"value": 0.456, "interval": None},
                    "log_loss": {"value": 0.789, "interval": [0.7, 0.8]},
                    "cost": {"value": "Infinity", "interval": None},
                },
                "passed": True,
                **model,
            }
        ],
    }


def history(folder, lines, *arguments, name="own.jsonl"):
    text = "\n".join(part if isinstance(part, str) else json.dumps(part) for part in lines)
    (folder / name).write_text(text + "\n", encoding="utf-8")
    return fragility("history", name, *arguments, cwd=folder)


DECIDED, ERRORS = [500, 510, 495, 505, 500, 480], [9, 11, 8, 16, 31, 10]
WEEKS = [
    line(f"2026-01-{5 + 2 * k:02d}T00:00:00Z", n, e)
    for k, (n, e) in enumerate(zip(DECIDED, ERRORS, strict=True))
]


def test_the_alarm_is_that_of_the_numbers(folder):
    ended = history(folder, WEEKS, "--max-error-rate", "0.02")
    assert ended.code == 1
    rows = ended.out.splitlines()[1:7]
    assert [row.split()[:3] for row in rows] == [
        [f"2026-01-{5 + 2 * k:02d}", "1,000", str(n)] for k, n in enumerate(DECIDED)
    ]
    assert ["ALARM" in row for row in rows] == [False] * 4 + [True] * 2
    assert all(word in rows[0] for word in ("9: 1.8 %", "∞", "0.123", "0.456", "0.789", "passed"))
    assert "ALARM for m since 2026-01-13: 85 of 2,990 cases decided alone were wrong (2.8 %)" in (
        ended.out
    )
    found = error_alarm(ERRORS, DECIDED, 0.02)
    content = json.loads(history(folder, WEEKS, "--max-error-rate", "0.02", "--json").out)
    (model,) = content["models"]
    assert content["alarm"] is True
    assert model["first_alarm"] == "2026-01-13T00:00:00Z"
    assert [part["evidence"] for part in model["records"]] == found.evidence.tolist()
    assert [part["lower_limit"] for part in model["records"]] == found.lower.tolist()
    assert model["records"][0]["error_rate"]["value"] == 9 / 500


def test_the_first_record_is_the_reference(folder):
    ended = history(folder, WEEKS)
    assert ended.code == int(error_alarm(ERRORS, DECIDED).alarm) == 0
    assert "76 of 2,490 cases decided alone since the first record were wrong" in ended.out
    content = json.loads(history(folder, WEEKS, "--json").out)["models"][0]
    assert content["max_error_rate"] == error_alarm(ERRORS, DECIDED).max_error_rate
    assert content["from_first"] is True
    bad = [*WEEKS, line("2026-02-01", 500, 60)]
    assert history(folder, bad).code == 1
    assert history(folder, bad, "--since", "2026-02-01").code == 0
    ended = history(folder, WEEKS[:1])
    assert ended.code == 0
    assert "there are no cases decided alone since the first record" in ended.out


def test_records_are_put_in_order(folder):
    ended = history(folder, [*WEEKS[3:], *WEEKS[:3]], "--max-error-rate", "0.02")
    straight = history(folder, WEEKS, "--max-error-rate", "0.02")
    assert ended.out == straight.out
    assert "not in order of date" in ended.err
    assert straight.err == ""


def test_one_file_counts_once(folder):
    again = {**WEEKS[4], "date": "2026-01-14T00:00:00Z"}
    ended = history(folder, [*WEEKS, again], "--max-error-rate", "0.02")
    assert "same file as that of 2026-01-13" in ended.out
    assert "85 of 2,990" in ended.out
    assert [row.split()[-1] for row in ended.out.splitlines()[5:8]] == ["ALARM", "before", "ALARM"]


def test_each_model_has_its_history(folder):
    lines = [*WEEKS, line("2026-01-06", 100, 1, name="[red]x[/red]"), line("2026-01-07", 90, 80)]
    ended = history(folder, lines, "--max-error-rate", "0.05")
    assert ended.code == 1
    assert "No alarm for [red]x[/red]: 1 of 100" in ended.out
    assert "ALARM for m" in ended.out
    only = history(folder, lines, "--max-error-rate", "0.05", "--model", "[red]x[/red]")
    assert only.code == 0
    assert "ALARM" not in only.out
    refused(history(folder, lines, "--model", "y"), "no model 'y'", "'m', '[red]x[/red]'")


def test_another_rule_is_no_reference(folder):
    other = line("2026-02-01", 400, 8, rule={"kind": "policy", "sha256": "ab" * 32})
    refused(
        history(folder, [*WEEKS, other]),
        "since 2026-02-01",
        "the policy abababababab…",
        "confidence above 90",
        "--max-error-rate",
        "--since",
    )
    ended = history(folder, [*WEEKS, other], "--max-error-rate", "0.2")
    assert ended.code == 0
    assert "by another rule" in ended.out


def broken(**change):
    return {**WEEKS[0], **change}


def broken_model(**change):
    return broken(models=[{**WEEKS[0]["models"][0], **change}])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("{", "it is not JSON, or cut off"),
        (json.dumps(WEEKS[0])[:-30], "it is not JSON, or cut off"),
        ("sick,fair", "it is not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[1]", "no record of a history"),
        ('{"format": 4}', "no record of a history"),
        (json.dumps(WEEKS[0]).replace("0.123", "NaN"), "NaN is not a number in strict JSON"),
        (broken(version=2), "the version is 2, this one reads 1"),
        (broken(date="yesterday"), "'yesterday' is not a date in ISO 8601"),
        (broken(date="0001-01-01T00:00+14:00"), "is not a date in ISO 8601"),
        (broken(date=5), "date must be text"),
        (broken(sha256="ab"), "64 hexadecimal digits"),
        (broken(models=[]), "models must be a list"),
        (broken(models=WEEKS[0]["models"] * 2), "two models have the same name"),
        (broken(models=[3]), "a model must be an object"),
        (broken_model(n=-1), "n must be a number of cases, zero or more; got -1"),
        (broken_model(n=10**400), "got an integer of"),
        (broken_model(n=True), "n must be a number of cases"),
        (broken_model(decided_alone=2000), "must not fall; got 9, 2000 and 1000"),
        (broken_model(errors=501), "must not fall; got 501, 500 and 1000"),
        (broken_model(errors="9"), "errors must be a number of cases"),
        (broken_model(counts="some"), "counts must be one of"),
        (broken_model(rule={}), "rule must have a kind"),
        (broken_model(figures=[]), "figures must be an object"),
        (broken_model(figures={"auc": 1}), "'auc' must be an object"),
        (broken_model(figures={"auc": {"value": "x"}}), "'auc' must be a number; got 'x'"),
        (broken_model(figures={"auc": {"value": 1, "interval": [1]}}), "two ends"),
        (broken_model(passed=1), "passed must be true, false or null"),
        (broken_model(name=None), "name must be text; got None"),
    ],
)
def test_damaged_lines_are_refused_and_nothing_is_added(tmp_path, wrong, words):
    path = tmp_path / "own.jsonl"
    text = wrong if isinstance(wrong, str) else json.dumps(wrong)
    path.write_text(f"{json.dumps(WEEKS[0])}\n{text}\n")
    before = path.read_bytes()
    for asked in (read_history, check_appendable):
        with pytest.raises(ValueError, match=r"own\.jsonl is not a history .* in line 2, ") as told:
            asked(path)
        assert words in str(told.value)
    assert path.read_bytes() == before


def test_damage_is_said_by_the_command(folder):
    ended = history(folder, [WEEKS[0], json.dumps(WEEKS[1])[:-30]])
    refused(ended, "own.jsonl is not a history that can be used: in line 2", "cut off")
    (folder / "own.jsonl").write_bytes(b"\xff\n")
    refused(fragility("history", "own.jsonl", cwd=folder), "in line 1", "not UTF-8")


def test_records_that_promise_no_rate(folder):
    nobody, everyone = line("2026-01-01", 0, 0), line("2026-01-01", 5, 5)
    refused(history(folder, [nobody, *WEEKS]), "m: ", "no cases decided alone", "--max-error-rate")
    refused(history(folder, [everyone, *WEEKS]), "nothing can be worse", "--max-error-rate")
    for rate in ("0", "1", "-0.1", "nan"):
        refused(history(folder, WEEKS, "--max-error-rate", rate), "--max-error-rate must be")
    refused(history(folder, WEEKS, "--since", "2027-01-01"), "no record since 2027-01-01")
    ended = history(folder, WEEKS, "--since", "soon")
    assert ended.code == 2
    assert "'soon' is not a date" in ended.err
    (folder / "empty.jsonl").write_text("\n")
    refused(fragility("history", "empty.jsonl", cwd=folder), "has no records")
    refused(fragility("history", "absent.jsonl", cwd=folder), "cannot be read: No such file")


def test_only_histories_are_added_to(folder):
    asked = ("gate", "p.csv", *ASKED, "--max-fi", "9")
    before = (folder / "p.csv").read_bytes()
    refused(fragility(*asked, "--record", "p.csv", cwd=folder), "p.csv is not a history")
    assert (folder / "p.csv").read_bytes() == before
    refused(fragility(*asked, "--record", ".", cwd=folder), "must be a file")
    refused(fragility(*asked, "--record", "no/h.jsonl", cwd=folder), "no folder 'no'")
    (folder / "cut.jsonl").write_text(json.dumps(WEEKS[0]))
    refused(fragility(*asked, "--record", "cut.jsonl", cwd=folder), "no line end")
    (folder / "new.jsonl").touch()
    assert fragility(*asked, "--record", "new.jsonl", cwd=folder).code == 0
    assert fragility(*asked, "--record", "new.jsonl", cwd=folder).code == 0
    assert len(read_history(folder / "new.jsonl")) == 2
    for option, value in (("--date", "2026-01-01"), ("--policy", "policy.json")):
        ended = fragility(*asked, option, value, cwd=folder)
        assert ended.code == 2
        assert f"{option} is for --record" in ended.err
    ended = fragility(*asked, "--record", "new.jsonl", "--date", "today", cwd=folder)
    assert ended.code == 2
    assert "'today' is not a date" in ended.err
    assert len(read_history(folder / "new.jsonl")) == 2


def test_lines_of_parallel_jobs_do_not_mix(tmp_path):
    path = tmp_path / "parallel.jsonl"
    lines = [line(f"2026-01-01T00:00:{k:02d}Z", k, 0, name="ä\u2028" * 2000) for k in range(60)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda part: append_record(path, part), lines))
    found = read_history(path)
    assert sorted(record.models[0].alone.decided for record in found) == list(range(60))
    assert path.read_bytes().isascii()


def test_a_full_disk_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "write", lambda _descriptor, data: len(data) - 5)
    with pytest.raises(OSError, match="take its last line out"):
        append_record(tmp_path / "full.jsonl", WEEKS[0])


def test_mutated_histories_give_the_alarm_of_their_numbers_or_none():
    """A little of ``python -m tests.fuzzing histories``."""
    rng = np.random.default_rng(5)
    accepted = 0
    for data in histories.corpus():
        assert histories.check(data)
        mutated = histories.mutations(data, rng)
        accepted += sum(histories.check(next(mutated)) for _ in range(40))
    assert 16 < accepted < 64
