"""`fragility cost --policy` and `fragility decide`, as a person uses them."""

from __future__ import annotations

import csv
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from fragility import Policy
from fragility.report.context import Context
from tests.command import executable, fragility, patients, write_csv
from tests.confident_models import classes_drawn

DATA = patients()
COSTS = ("--error-cost", "0,1;8,0", "--review-cost", "0.5")
ASKED = ("--label", "sick", "--score", "bold", *COSTS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Predictions with labels, the policy made from them, and new cases without labels."""
    found = tmp_path_factory.mktemp("policies")
    file = write_csv(found / "predictions.csv", DATA)
    made = fragility("cost", file, *ASKED, "--policy", found / "policy.json")
    assert made.code == 0, made.err
    new = {"name": [f"case {k}" for k in range(60)], "bold": DATA["bold"][:60]}
    write_csv(found / "new.csv", new)
    return found


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.outside
def test_cost_prints_three_lines_and_writes_the_policy(folder):
    ended = executable("cost", folder / "predictions.csv", *ASKED, "--max-misses", "0.2")
    policy = Policy.from_dict(json.loads((folder / "policy.json").read_text()))
    lines = [line for line in ended.out.splitlines() if line.startswith("• ")]
    assert len(lines) == 3
    assert f"decide no below {100 * policy.lower:.4g} %" in lines[0]
    assert f"at {Context().money(1000 * policy.cost)} (95 % interval" in lines[0]
    assert lines[2].startswith("• Guaranteed with 95 % probability: positives decided negative")
    assert policy.columns == ("bold",)
    assert policy.labels == ("no", "yes")


@pytest.mark.outside
def test_decide_writes_decision_reason_and_queue(folder):
    out = folder / "decided.csv"
    asked = ("decide", folder / "new.csv", "--policy", folder / "policy.json", "--output", out)
    ended = executable(*asked, "--reviews", "5")
    assert ended.code == 0, ended.err
    assert ended.out == ""
    policy = Policy.from_dict(json.loads((folder / "policy.json").read_text()))
    made = rows(out)
    assert [row["name"] for row in made] == [f"case {k}" for k in range(60)]
    for row in made:
        score = float(row["bold"])
        expected = "review"
        if score < policy.lower:
            expected = "no"
        elif score >= policy.upper:
            expected = "yes"
        assert row["decision"] == expected
        assert row["reason"].endswith(": review") == (expected == "review")
    expected = policy.decide([float(row["bold"]) for row in made])
    assert [row["suggestion"] for row in made] == expected.label.tolist()
    waiting = [row for row in made if row["decision"] == "review"]
    queue = sorted(
        (row for row in made if row["review_order"]), key=lambda r: int(r["review_order"])
    )
    assert len(waiting) > 5
    assert [int(row["review_order"]) for row in queue] == [1, 2, 3, 4, 5]
    savings = [float(row["expected_saving"]) for row in queue]
    assert savings == sorted((float(r["expected_saving"]) for r in waiting), reverse=True)[:5]
    assert f"{len(waiting):,} for review" in ended.err
    assert f"{len(waiting) - 5} cases for review are beyond the 5 in the queue" in ended.err
    again = executable(*asked, "--reviews", "5")
    assert again.code == 0  # what it wrote may be replaced
    assert rows(out) == made


def test_expected_savings_are_those_of_the_calibrated_probability(folder):
    out = folder / "savings.csv"
    fragility("decide", folder / "new.csv", "--policy", folder / "policy.json", "--output", out)
    decision = json.loads((folder / "policy.json").read_text())["decision"]
    for row in rows(out):
        score = float(row["bold"])
        odds = decision["slope"] * np.log(score / (1 - score)) + decision["intercept"]
        p = 1 / (1 + np.exp(-odds))
        assert float(row["expected_saving"]) == pytest.approx(min(8 * p, 1 - p) - 0.5)
        assert "review_order" not in row


def test_other_kinds_of_files(folder):
    out = folder / "decided.parquet"
    fragility("decide", folder / "new.csv", "--policy", folder / "policy.json", "--output", out)
    assert pq.read_table(out).column_names[-4:] == [
        *("decision", "suggestion", "reason", "expected_saving")
    ]


def test_several_classes(tmp_path):
    codes, proba = classes_drawn(np.random.default_rng(0), 600)
    columns = {f"p{k}": proba[:, k] for k in range(3)}
    file = write_csv(tmp_path / "p.csv", {"y": codes, **columns})
    policy, out = tmp_path / "policy.json", tmp_path / "out.csv"
    made = fragility(
        *("cost", file, "--label", "y", "--score", "m=p0,p1,p2", "--classes", "0,1,2"),
        *("--error-cost", "5", "--max-error-rate", "0.2", "--policy", policy),
    )
    assert made.code == 0, made.err
    ended = fragility("decide", file, "--policy", policy, "--output", out)
    assert ended.code == 0, ended.err
    found = Policy.from_dict(json.loads(policy.read_text()))
    expected = found.decide(
        np.array([[float(row[f"p{k}"]) for k in range(3)] for row in rows(out)])
    )
    names = [row["decision"] for row in rows(out)]
    assert names == np.where(expected.automate, expected.label, "review").tolist()
    assert 0 < names.count("review") < 600


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p: p | {"version": 2}, "it has version 2, this one reads 1"),
        (lambda p: p | {"format": "report"}, "it is not a policy"),
        (lambda p: p | {"classes": ["no"]}, "classes must be"),
        (lambda p: p | {"positive": "maybe"}, "positive must be one of 'no', 'yes'"),
        (lambda p: p | {"columns": []}, "does not say which columns hold the scores"),
        (lambda p: p | {"columns": ["bald"]}, "there is no column 'bald'"),
        (lambda p: p | {"decision": {**p["decision"], "lower": 2.0}}, "lower must be"),
        (lambda p: {k: v for k, v in p.items() if k != "costs"}, "costs must be an object"),
    ],
)
def test_a_bad_policy_is_refused(folder, tmp_path, change, words):
    content = json.loads((folder / "policy.json").read_text())
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(change(content)))
    out = tmp_path / "out.csv"
    ended = fragility("decide", folder / "new.csv", "--policy", bad, "--output", out)
    assert ended.code == 2
    assert words in ended.err
    assert len(ended.err.splitlines()) == 1
    assert not out.exists()


@pytest.mark.outside
def test_a_policy_that_is_not_json_or_not_there(folder, tmp_path):
    for policy, words in (
        (folder / "new.csv", "it is not JSON"),
        (tmp_path / "none.json", "No such file"),
    ):
        asked = ("decide", folder / "new.csv", "--policy", policy, "--output", tmp_path / "o.csv")
        ended = executable(*asked)
        assert ended.code == 2
        assert words in ended.err


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (["0.5", ""], "has missing values in 1 of 2 rows"),
        (["0.5", "1.5"], "must hold probabilities"),
        (["0.5", "high"], "cannot be read as numbers"),
    ],
)
def test_new_cases_with_bad_scores_are_refused(folder, tmp_path, column, words):
    file = tmp_path / "messy.csv"
    file.write_text("bold,note\n" + "".join(f"{value},x\n" for value in column))
    out = tmp_path / "out.csv"
    ended = fragility("decide", file, "--policy", folder / "policy.json", "--output", out)
    assert ended.code == 2
    assert words in ended.err
    assert not out.exists()


def test_columns_of_the_input_are_never_overwritten(folder, tmp_path):
    file = write_csv(tmp_path / "again.csv", {"bold": [0.5], "decision": ["mine"]})
    out = tmp_path / "out.csv"
    ended = fragility("decide", file, "--policy", folder / "policy.json", "--output", out)
    assert ended.code == 2
    assert "columns of these names already: 'decision'" in ended.err


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--score", "fair", "--policy", "p.json"), "give one --score"),
        (("--policy", "p.txt"), "must end in .json"),
        (("--guarantee", "0.9"), "no limit to guarantee"),
        (("--max-misses", "0"), "max_misses must be a share above 0"),
        (("--rule", "best"), "is not one of"),
        (("--rule", "confidence", "--max-misses", "0.1"), "takes neither limits"),
    ],
)
def test_what_cost_refuses(folder, more, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = fragility("cost", folder / "predictions.csv", *ASKED, *more)
    assert ended.code == 2
    assert words in ended.err


def test_limits_need_costs(folder):
    file = folder / "predictions.csv"
    ended = fragility("evaluate", file, "--label", "sick", "--score", "bold", "--max-misses", "0.1")
    assert ended.code == 2
    assert "give --error-cost" in ended.err
