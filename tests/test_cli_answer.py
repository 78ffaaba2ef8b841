"""The short answer of the command: verdict, rows, currency, volume, costs in words, cards."""

from __future__ import annotations

import hashlib
import json
import re
import shlex

import numpy as np
import pytest
from scipy.special import expit

from .command import fragility


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(0)
    n = 700
    logit = 1.6 * rng.normal(size=n) - 0.5
    y = np.where(rng.random(n) < expit(logit), "yes", "no")
    found = tmp_path_factory.mktemp("answer") / "cases.csv"
    columns = [
        expit(logit),
        expit(logit + rng.normal(size=n)),
        expit(logit + 1.5 * rng.normal(size=n)),
    ]
    site = rng.choice(["north", "south"], n)
    lines = ["sick,a,b,c,site"]
    lines += [",".join([y[i], *(f"{p[i]:.6f}" for p in columns), site[i]]) for i in range(n)]
    found.write_text("\n".join(lines) + "\n")
    return found


WORDS = ("--miss-cost", "8", "--false-alarm-cost", "1", "--review-cost", "0.4")
ALL = ("--score", "a", "--score", "b", "--score", "c")


def rows_of(out):
    """Rows of the table: lines between the heading and the next empty one."""
    lines = out.splitlines()
    start = max(k for k, line in enumerate(lines) if line.startswith("•")) + 3
    return [line for line in lines[start:] if line and not line.startswith(("Next", "•", "Note"))]


@pytest.mark.parametrize(
    "more",
    [(), WORDS, (*WORDS, "--group", "site"), ("--group", "site"), (*WORDS, "--against", "b")],
)
@pytest.mark.parametrize("scores", [("--score", "a"), ALL])
def test_at_most_eight_rows_and_five_sentences(path, scores, more):
    ended = fragility("evaluate", path, "--label", "sick", *scores, *more)
    assert ended.code == 0
    sentences = [line for line in ended.out.splitlines() if line.startswith("•")]
    assert 1 <= len(sentences) <= 5
    assert 4 <= len(rows_of(ended.out)) <= 8
    assert "Fragility Index" in ended.out or "--group" in more  # and if it is, not alone
    assert "log-loss" in ended.out
    assert len(ended.out.splitlines()) <= 22


def test_the_next_command_can_be_typed(path, tmp_path):
    ended = fragility("evaluate", path, "--label", "sick", "--score", "a")
    following = shlex.split(ended.out.splitlines()[-1].removeprefix("Next: fragility "))
    assert "--miss-cost" in following
    again = fragility(*following, cwd=tmp_path)
    assert again.code == 0
    page = shlex.split(again.out.splitlines()[-1].removeprefix("Next: fragility "))
    assert fragility(*page, cwd=tmp_path).code == 0
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")


def test_nothing_is_said_that_cannot_be_typed(path, tmp_path):
    asked = ("evaluate", path, "--label", "sick", "--score", "a", *WORDS)
    recorded = fragility(*asked, "--record", tmp_path / "h.jsonl", "--date", "2026-01-01")
    following = shlex.split(recorded.out.splitlines()[-1].removeprefix("Next: fragility "))
    assert "--record" not in following
    assert "--date" not in following
    assert fragility(*following, cwd=tmp_path).code == 0
    (tmp_path / "fragility.toml").write_text('[evaluate]\nlabel = "sick"\nscore = ["a"]\n')
    assert "Next:" not in fragility("evaluate", path, cwd=tmp_path).out


def test_the_order_of_scores_changes_nothing(path):
    told = []
    for order in ("abc", "cab", "bca"):
        scores = [part for name in order for part in ("--score", name)]
        ended = fragility("evaluate", path, "--label", "sick", *scores, *WORDS)
        told.append([line for line in ended.out.splitlines() if line.startswith("•")])
    assert told[0] == told[1] == told[2]


def test_full_has_everything(path):
    short = fragility("evaluate", path, "--label", "sick", *ALL, *WORDS, "--group", "site")
    full = fragility("evaluate", path, "--label", "sick", *ALL, *WORDS, "--group", "site", "--full")
    for title in ("By group", "Reliability of a", "Operating points", "calibration map"):
        assert title in full.out
        assert title not in short.out


@pytest.mark.parametrize("positive", ["yes", "no"])
def test_costs_in_words_are_the_matrix(path, positive):
    """Classes are in the order of the alphabet: no, yes."""
    matrix = "0,1;8,0" if positive == "yes" else "0,8;1,0"
    scores = ("--label", "sick", "--score", "a", "--positive", positive, "--json")
    if positive == "no":
        text = path.read_text().splitlines()
        turned = path.with_name("turned.csv")
        rows = [line.split(",") for line in text[1:]]
        turned.write_text(
            "\n".join(
                [text[0], *(",".join([r[0], f"{1 - float(r[1]):.6f}", *r[2:]]) for r in rows)]
            )
        )
        path = turned
    words = fragility("evaluate", path, *scores, *WORDS)
    by_matrix = fragility("evaluate", path, *scores, "--error-cost", matrix, "--review-cost", "0.4")
    first, second = (json.loads(ended.out) for ended in (words, by_matrix))
    assert first["costs"] == second["costs"]
    assert first["verdict"] == second["verdict"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--miss-cost", "3"), "go together: give --false-alarm-cost, too"),
        (("--miss-cost", "3", "--false-alarm-cost", "1", "--error-cost", "2"), "not both"),
        (("--miss-cost", "-3", "--false-alarm-cost", "1"), "zero or more"),
        (("--against", "nothing"), "nothing"),
        (("--volume", "lots"), "such as 50000/month"),
        (("--currency", "x" * 20), "currency must be short"),
    ],
)
def test_bad_options(path, options, message):
    ended = fragility("evaluate", path, "--label", "sick", "--score", "a", *options)
    assert ended.code == 2
    assert message in ended.err


def test_currency_volume_title_and_paper_trail(path, tmp_path):
    options = ("--title", "Triage <b>", "--currency", "€", "--volume", "50000/month")
    ended = fragility("evaluate", path, "--label", "sick", "--score", "a", *WORDS, *options)
    assert ended.out.startswith("Triage <b>: 700 cases")
    assert re.search(r"€[\d,]+ a month for 50,000 cases", ended.out)
    page, text, data = (tmp_path / f"report.{kind}" for kind in ("html", "md", "json"))
    for output in (page, text, data):
        made = fragility(
            "report", path, "--label", "sick", "--score", "a", *WORDS, *options, "--output", output
        )
        assert made.code == 0, made.err
    content = json.loads(data.read_text())
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    assert content["provenance"]["sha256"] == sha256
    assert content["provenance"]["source"] == "cases.csv"
    assert content["title"] == "Triage <b>"
    assert content["context"]["volume"] == {"n": 50000.0, "per": "month"}
    for output in (page, text):
        shown = output.read_text().replace("\N{NO-BREAK SPACE}", " ")
        assert sha256 in shown
        assert "Seed of folds and draws: 0." in shown
        assert content["verdict"]["sentences"][0][:30] in shown
    assert "<h1>Triage &lt;b&gt;</h1>" in page.read_text()


def test_model_cards(path, tmp_path):
    card = tmp_path / "card.md"
    options = ("--label", "sick", *ALL, *WORDS, "--group", "site", "--output", card)
    made = fragility("report", path, *options, "--model-card", "--model", "b")
    assert made.code == 0, made.err
    text = card.read_text()
    assert text.startswith("# Model card: b\n")
    unfilled = re.findall(r"- \*\*TO FILL IN:\*\* \S", text)
    assert len(unfilled) >= 8
    for section in ("Intended use", "Evaluation data", "Decisions", "Figures", "Paper trail"):
        assert f"\n## {section}" in text
    assert "| north |" in text
    data = fragility("evaluate", path, "--label", "sick", *ALL, *WORDS, "--json")
    model = json.loads(data.out)["models"][1]
    assert f"| AUC | {model['raw']['figures']['auc']['value']:.3f}" in text
    assert "all 1 models" not in text
    bad = fragility("report", path, *options, "--model-card", "--model", "z", "--force")
    assert bad.code == 2
    assert "There is no model 'z'" in bad.err
    page = fragility(
        *("report", path, "--label", "sick", "--score", "a", "--output", tmp_path / "x.html"),
        "--model-card",
    )
    assert page.code == 2
    assert "must end in .md" in page.err


def test_answers_and_several_classes(tmp_path):
    rng = np.random.default_rng(1)
    n = 300
    right = rng.random(n) < 0.7
    sure = np.clip(0.4 + 0.4 * right + 0.15 * rng.normal(size=n), 0, 1)
    answers = tmp_path / "answers.csv"
    answers.write_text(
        "ok,sure\n" + "\n".join(f"{int(r)},{s:.4f}" for r, s in zip(right, sure, strict=True))
    )
    ended = fragility("evaluate", answers, "--correct", "ok", "--confidence", "sure")
    assert ended.code == 0
    assert "--error-cost 10 --review-cost 1" in ended.out.splitlines()[-1]
    refused = fragility("evaluate", answers, "--correct", "ok", "--confidence", "sure", *WORDS)
    assert refused.code == 2
    assert "--miss-cost is for classes" in refused.err
    proba = rng.dirichlet(np.ones(3), n)
    true = [rng.choice(list("xyz"), p=row) for row in proba]
    several = tmp_path / "several.csv"
    several.write_text(
        "y,x,yy,z\n"
        + "\n".join(
            f"{t}," + ",".join(f"{v:.5f}" for v in row) for t, row in zip(true, proba, strict=True)
        )
    )
    scores = ("--score", "m=x,yy,z", "--classes", "x,y,z")
    ended = fragility("evaluate", several, "--label", "y", *scores, *WORDS)
    assert ended.code == 2
    assert "are for two classes; the file has 3" in ended.err
