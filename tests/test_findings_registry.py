"""Findings as a whole: codes and docs, muting, the order of models, the command, real data."""

from __future__ import annotations

import json
import os
import re
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from fragility import Report, ScoreState
from fragility.report.findings import RULES, check_mute
from tests.confident_models import classes_drawn, logistic
from tests.said import LOGIT, NOISY, SICK, rules, text

from .command import fragility, refused, write_csv

ROOT = Path(__file__).parents[1]
SHARED = Path(__file__).parents[2] / "shared" / "data"
REAL = Path(os.environ.get("FRAGILITY_DATA", SHARED))
MODELS = {
    "fair": logistic(LOGIT),
    "noisy": logistic(NOISY),
    "bold": logistic(3 * LOGIT),
    "timid": logistic(0.3 * LOGIT),
}
CODES = [rule.code for rule in RULES]


def test_codes_are_stable_and_told_apart():
    assert [f"FRA{number:03d}" for number in range(1, len(RULES) + 1)] == CODES
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert {rule.severity for rule in RULES} == {"high", "medium", "low", "info"}


def test_the_docs_have_an_entry_for_every_code_and_no_other():
    docs = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    heads = re.findall(r"^### (FRA\d+) `(\w+)` \((\w+)\)$", docs, re.M)
    assert heads == [(rule.code, rule.name, rule.severity) for rule in RULES]
    assert set(re.findall(r"FRA\d+", docs)) == set(CODES)
    entries = re.split(r"^### .*$", docs, flags=re.M)[1:]
    for rule, entry in zip(RULES, entries, strict=True):
        for part in ("**Says**", "**Rule**", "**Do**"):
            assert entry.count(part) == 1, (rule.code, part)


def test_thresholds_in_the_docs_are_those_of_the_code():
    from fragility.report.findings import comparisons, confidence, scores

    docs = " ".join((ROOT / "docs" / "findings.md").read_text(encoding="utf-8").split())
    for words in (
        f"AUC is at most {scores.FAR_BELOW:g}",
        f"more than {scores._STANDS_OUT:g} times the median",
        f"at least {100 * comparisons._LEAST:g} % of the larger index",
        f"less than {100 * comparisons._LEFT:g} % of the lead",
        f"less than {100 * comparisons._SAME_TAIL:g} % of the other model's calibrated index",
        f"less than {comparisons._EQUAL_AUC:g} and at most {100 * comparisons._EQUAL_SHARE:g} %",
        f"by more than {100 * confidence._WORTH_SAYING:g} point",
        f"lower limit is above {confidence._WORTH_SAYING:g}",
        f"upper limit is at most {confidence._HONEST:g}",
    ):
        assert words in docs


def test_every_rule_has_a_test_where_it_speaks_and_one_where_it_does_not():
    files = ("test_report_findings.py", "test_findings_compared.py")
    source = "".join((ROOT / "tests" / name).read_text(encoding="utf-8") for name in files)
    for rule in RULES:
        assert f"def test_{rule.name}" in source
        assert f"def test_not_{rule.name}" in source


def test_a_finding_has_a_code_a_rule_a_severity():
    report = Report.from_predictions(SICK, {"m": MODELS["bold"]})
    finding = next(finding for finding in report.findings if finding.rule == "overconfident")
    assert (finding.code, finding.severity, finding.models) == ("FRA014", "high", ("m",))
    assert str(finding) == f"{finding.text} [FRA014]"
    assert report.findings[0] == finding  # what is severe comes first
    assert str(finding) in str(report)
    assert f"{finding.text} \\[FRA014\\]" in report.to_markdown()
    assert 'data-code="FRA014"' in report.to_html()
    assert {"code": "FRA014", "rule": "overconfident", "severity": "high"}.items() <= next(
        part for part in json.loads(report.to_json())["findings"] if part["code"] == "FRA014"
    ).items()


@pytest.mark.slow
def test_the_order_of_the_models_changes_no_sentence():
    groups = np.where(np.arange(SICK.size) % 3 == 0, "old", "young")
    options = {"groups": groups, "costs": {"error_cost": 3.0, "review_cost": 0.5}, "n_worst": 0}
    said = {
        Report.from_predictions(SICK, {name: MODELS[name] for name in order}, **options).findings
        for order in list(permutations(MODELS))[::9]
    }
    (found,) = said
    by_code = [finding.code for finding in found if finding.rule != "who_decides"]
    assert len(by_code) == len(set(by_code))  # one finding for a fact
    assert len(found) - len(by_code) == len(MODELS)


def test_the_order_of_models_changes_no_sentence_of_answers_or_classes():
    rng = np.random.default_rng(3)
    right = {
        name: rng.random(300) < rate for name, rate in zip("abc", (0.5, 0.7, 0.9), strict=True)
    }
    sure = {name: 0.4 * own + 0.6 * rng.random(300) for name, own in right.items()}
    codes, p = classes_drawn(rng, 400)
    several = {
        "sharp": p**2 / (p**2).sum(axis=1, keepdims=True),
        "even": p,
        "mixed": p[:, [1, 0, 2]],
    }
    for make, names in (
        (lambda order: Report.from_outcomes(right, {name: sure[name] for name in order}), "abc"),
        (
            lambda order: Report.from_predictions(codes, {name: several[name] for name in order}),
            tuple(several),
        ),
    ):
        assert make(names).findings == make(names[::-1]).findings


def test_muted_findings_are_counted_in_a_note():
    full = Report.from_predictions(SICK, MODELS, n_worst=0)
    mute = ("FRA014", "FRA006", "FRA024")
    report = Report.from_predictions(SICK, MODELS, n_worst=0, mute=mute)
    assert report.findings == tuple(f for f in full.findings if f.code not in mute)
    assert len(report.findings) == len(full.findings) - 2  # the last one has nothing to say
    assert report.notes == (
        *full.notes,
        "Muted findings: 2 (FRA006, FRA014; see docs/findings.md).",
    )
    assert report.with_notes("more").notes.count(report.notes[-1]) == 1
    assert Report.from_predictions(SICK, MODELS, n_worst=0, mute=("FRA024",)).notes == full.notes


def test_every_way_to_a_report_can_mute():
    state = ScoreState([False, True], ["bold"])
    state.update(SICK, {"bold": MODELS["bold"]})

    class Fitted:
        classes_ = np.array([False, True])

        def predict_proba(self, X):
            return np.stack([1 - X, X], axis=1)

    right = np.arange(100) % 3 > 0
    for make in (
        lambda mute: Report.from_state(state, mute=mute),
        lambda mute: Report.from_predictions(SICK, MODELS["bold"], mute=mute),
        lambda mute: Report.from_outcomes(right, np.full(100, 0.95) - 0.001 * ~right, mute=mute),
        lambda mute: Report.from_estimators({"m": Fitted()}, MODELS["bold"], SICK, mute=mute),
    ):
        assert "overconfident" in rules(make(()))
        muted = make(["FRA014"])
        assert "overconfident" not in rules(muted)
        assert any("FRA014" in note for note in muted.notes)
        with pytest.raises(ValueError, match="FRA999"):
            make(["FRA999"])


@pytest.mark.parametrize(
    ("mute", "words"),
    [
        (("FRA999", "x"), "mute has 'FRA999', 'x'; the codes are FRA002, FRA003, "),
        ("FRA012", r"mute must be a sequence of codes, such as \('FRA012',\); got 'FRA012'\."),
        (("FRA001",), "FRA001 cannot be muted: scores are plainly those of another class"),
    ],
)
def test_codes_that_cannot_be_muted(mute, words):
    with pytest.raises(ValueError, match=words):
        check_mute(mute)


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    columns = {"sick": np.where(SICK, "yes", "no"), "right": SICK.astype(int)}
    turned = {f"not_{name}": 1 - p for name, p in MODELS.items()}
    path = tmp_path_factory.mktemp("findings") / "p.csv"
    return write_csv(path, {**columns, **MODELS, **turned})


COMMANDS = {
    "evaluate": (),
    "compare": (),
    "report": ("--output", "page.md"),
    "cost": ("--error-cost", "10"),
    "gate": ("--min-auc", "0.1"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_reversed_scores_stop_every_command(csv, tmp_path, command):
    asked = (command, csv, *COMMANDS[command], "--label", "sick")
    ended = fragility(*asked, "--score", "not_fair", "--score", "not_bold", cwd=tmp_path)
    refused(
        ended, "not_bold and not_fair give the class no higher scores than yes", "say --positive no"
    )
    ended = fragility(*asked, "--score", "fair", "--score", "not_bold", cwd=tmp_path)
    refused(ended, "not_bold gives the class no higher", "give its probability of yes, as the")
    assert not (tmp_path / "page.md").exists()


def test_what_the_sentence_says_helps(csv):
    asked = ("evaluate", csv, "--label", "sick", "--score", "not_fair")
    refused(fragility(*asked), "say --positive no (pos_label in Python)")
    assert fragility(*asked, "--positive", "no").code == 0


def test_confidence_of_being_wrong_stops_the_command_beyond_hold_too(csv):
    asked = ("evaluate", csv, "--correct", "right", "--confidence", "not_fair")
    refused(fragility(*asked), "if its confidence is that of being wrong, give one minus it.")
    asked = ("evaluate", csv, "--label", "sick", "--score", "not_fair", "--hold", "0")
    refused(fragility(*asked), "say --positive no")


@pytest.mark.parametrize("command", ["evaluate", "compare", "report"])
def test_the_command_mutes(csv, tmp_path, command):
    asked = (
        command,
        csv,
        *COMMANDS[command],
        "--label",
        "sick",
        "--score",
        "fair",
        "--score",
        "timid",
        *(["--full"] if command == "evaluate" else []),
    )
    for options, there in (((), True), (("--mute", "FRA006", "--mute", "FRA024"), False)):
        ended = fragility(*asked, *options, cwd=tmp_path)
        assert ended.code == 0, ended
        written = (tmp_path / "page.md").read_text() if command == "report" else ""
        said = " ".join((ended.out + ended.err + written).replace("\\", "").split())
        assert ("is less sure of everything" in said) == there
        assert ("Muted findings: 1 (FRA006;" in said) != there
    refused(
        fragility(*asked, "--mute", "FRA6", cwd=tmp_path), "mute has 'FRA6'; the codes are FRA002"
    )


def test_compare_says_what_compares(csv):
    ended = fragility(
        "compare", csv, "--label", "sick", "--score", "fair", "--score", "bold", "--json"
    )
    codes = [finding["code"] for finding in json.loads(ended.out)["findings"]]
    assert codes == ["FRA006", "FRA012"]


def test_breast_cancer():
    """On real data the sentences hold the numbers that NumPy counts."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = load_breast_cancer(return_X_y=True)
    found = {
        name: cross_val_predict(
            make_pipeline(StandardScaler(), model), X[:, 10:20], y, method="predict_proba"
        )[:, 1]
        for name, model in (("linear", LogisticRegression()), ("bayes", GaussianNB()))
    }
    check_numbers(Report.from_predictions(y, found), y, found)
    reversed_ = Report.from_predictions(y, found, pos_label=0)
    assert rules(reversed_) == ["reversed_scores"]


def check_numbers(report, y, models):
    wrong = {name: (p > 0.5) != (y == 1) for name, p in models.items()}
    sure = {name: wrong[name] & (np.maximum(p, 1 - p) > 0.9) for name, p in models.items()}
    said = text(report, "confident_mistakes")
    for name in models:
        n, errors = sure[name].sum(), wrong[name].sum()
        assert f"{name} {n} ({100 * n / errors:.1f} % of its {errors} errors)" in said
    over = [finding.models for finding in report.findings if finding.rule == "overconfident"]
    for name, p in models.items():
        above = np.maximum(p, 1 - p) > 0.9
        claimed = np.maximum(p, 1 - p)[above].mean()
        gap = claimed - (1 - wrong[name][above].mean())
        assert not (over and name in over[0]) or gap > 0.01
    both = np.logical_and.reduce(list(sure.values())).sum()
    assert f"Both models get {both} cases wrong" in text(report, "shared_mistakes")
    codes = [finding.code for finding in report.findings]
    assert len(codes) == len(set(codes))


@pytest.mark.skipif(not (REAL / "heart").is_dir(), reason="needs the heart-failure data")
def test_heart_failure():
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from fragility.datasets import load_heart

    X, y = load_heart(data_home=REAL, return_X_y=True)
    found = {
        name: cross_val_predict(
            make_pipeline(StandardScaler(), model), X, y, method="predict_proba"
        )[:, 1]
        for name, model in (("linear", LogisticRegression()), ("bayes", GaussianNB()))
    }
    check_numbers(Report.from_predictions(y, found), y, found)
