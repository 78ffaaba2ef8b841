"""`--human`, `--reviewer-error` by class and `--reviewer-error-column`, as a person uses them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fragility import Policy, best_policy
from tests.command import executable, fragility, write_csv

MATRIX = [[0.0, 1.0], [5.0, 0.0]]
ASKED = ("--label", "sick", "--score", "p", "--error-cost", "0,1;5,0", "--review-cost", "0.3")
ASKED += ("--no-calibration",)


def table(n=400):
    rng = np.random.default_rng(4)
    logit = rng.normal(-0.5, 1.5, n)
    sick = rng.random(n) < 1 / (1 + np.exp(-logit))
    p = 1 / (1 + np.exp(-(logit + rng.normal(0, 0.7, n))))
    wrong = rng.random(n) < np.where(sick, 0.12, 0.03)
    names = np.array(["no", "yes"])
    return {
        "sick": names[sick.astype(int)].tolist(),
        "p": p.tolist(),
        "doctor": names[(sick ^ wrong).astype(int)].tolist(),
        "risk": np.where(sick, 0.12, 0.03).tolist(),
    }


DATA = table()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("reviewers") / "cases.csv", DATA)


def arrays():
    return np.array(DATA["sick"]), np.array(DATA["p"])


def test_cost_compares_humans_model_and_policy(file):
    y, p = arrays()
    costs = {"error_cost": MATRIX, "review_cost": 0.3}
    expected = best_policy(y, p, **costs, human=np.array(DATA["doctor"])).reviewers
    asked = ("cost", file, *ASKED, "--human", "doctor")
    ended = fragility(*asked)
    assert ended.code == 0, ended.err
    assert (
        f"Humans alone: {expected.human.value:.4g} per case (wrong in "
        f"{100 * expected.error_rate.value:.1f} %), the model alone: {expected.model.value:.4g}"
    ) in " ".join(ended.out.split())
    assert "errors of humans, yes" in ended.out
    assert "against the model alone" in ended.out
    for more in (("--hold", "0"), ("--in-memory",)):
        found = json.loads(fragility(*asked, *more, "--json").out)
        assert found["costs"]["reviewer_error"] == "measured from human decisions"
        made = found["models"][0]["policy"]["reviewers"]
        assert made["human"]["value"] == pytest.approx(expected.human.value, rel=1e-9)
        assert made["human"]["interval"] == pytest.approx(expected.human.interval, rel=1e-9)
        assert made["against_human"]["difference"] == pytest.approx(
            made["policy"]["value"] - made["human"]["value"], abs=1e-11
        )


def test_errors_by_class_and_by_case(file):
    y, p = arrays()
    costs = {"error_cost": MATRIX, "review_cost": 0.3}
    expected = best_policy(y, p, **costs, reviewer_error={"no": 0.03, "yes": 0.12})
    for options in (("--reviewer-error", "yes=0.12, no=0.03"), ("--reviewer-error-column", "risk")):
        ended = fragility("cost", file, *ASKED, *options, "--json")
        assert ended.code == 0, ended.err
        found = json.loads(ended.out)["models"][0]["policy"]
        assert found["cost"] == pytest.approx(expected.cost, rel=1e-9)
        assert found["costs"]["reviewer_error"] == pytest.approx([0.03, 0.12])
        assert "reviewers" not in found
    plain = fragility("cost", file, *ASKED, "--reviewer-error", "0.05", "--json")
    assert json.loads(plain.out)["costs"]["reviewer_error"] == 0.05


def test_evaluate_report_and_gate(file, tmp_path):
    asked = (file, *ASKED, "--human", "doctor")
    ended = fragility("evaluate", *asked)
    y, p = arrays()
    costs = {"error_cost": MATRIX, "review_cost": 0.3, "human": np.array(DATA["doctor"])}
    expected = best_policy(y, p, **costs).reviewers
    human, model = (f"{1000 * part.value:.0f}" for part in (expected.human, expected.model))
    told = " ".join(ended.out.split())
    assert f"Humans alone cost {human} per 1,000 and are wrong in " in told
    assert f"; p alone costs {model}." in told
    out = tmp_path / "page.md"
    assert fragility("report", *asked, "--output", out).code == 0
    assert "against humans alone" in out.read_text()
    baseline = tmp_path / "old.json"
    assert fragility("gate", *asked, "--save-baseline", baseline).code == 0
    ended = fragility("gate", *asked, "--baseline", baseline)
    assert ended.code == 0, ended.err
    assert "whether the reviewers are of the same column is not known" in " ".join(
        ended.err.split()
    )
    other = fragility("gate", file, *ASKED, "--reviewer-error", "0.1", "--baseline", baseline)
    assert other.code == 2
    assert "reviewer_error" in other.err


@pytest.mark.outside
def test_a_policy_of_humans_is_saved_and_decides(file, tmp_path):
    saved, out = tmp_path / "policy.json", tmp_path / "decided.csv"
    ended = executable("cost", file, *ASKED, "--human", "doctor", "--policy", saved)
    assert ended.code == 0, ended.err
    policy = Policy.from_dict(json.loads(saved.read_text()))
    assert policy.reviewers.error_rate.value > 0.0
    assert np.shape(policy.costs.reviewer_error) == (2,)
    assert executable("decide", file, "--policy", saved, "--output", out).code == 0


def changed(tmp_path, name, values):
    return write_csv(tmp_path / "changed.csv", {**DATA, name: values})


def test_missing_and_unknown_decisions(tmp_path):
    gaps = ["" if k % 3 == 0 else v for k, v in enumerate(DATA["doctor"])]
    file = changed(tmp_path, "doctor", gaps)
    ended = fragility("cost", file, *ASKED, "--human", "doctor")
    told = " ".join(ended.err.split())
    assert ended.code == 2
    assert "column 'doctor' has missing values" in told
    assert "--drop-missing" in told
    assert "--reviewer-error" in told
    ended = fragility("cost", file, *ASKED, "--human", "doctor", "--drop-missing", "--json")
    assert ended.code == 0, ended.err
    kept = np.array([k for k in range(len(gaps)) if k % 3])
    y, p = (part[kept] for part in arrays())
    costs = {"error_cost": MATRIX, "review_cost": 0.3}
    expected = best_policy(y, p, **costs, human=np.array(DATA["doctor"])[kept])
    assert json.loads(ended.out)["models"][0]["policy"]["cost"] == pytest.approx(expected.cost)
    odd = changed(tmp_path, "doctor", ["maybe", *DATA["doctor"][1:]])
    ended = fragility("cost", odd, *ASKED, "--human", "doctor")
    assert ended.code == 2
    assert "decisions of humans that are not among the classes" in " ".join(ended.err.split())
    far = changed(tmp_path, "risk", [1.5, *DATA["risk"][1:]])
    ended = fragility("cost", far, *ASKED, "--reviewer-error-column", "risk")
    assert ended.code == 2
    assert "how probably a reviewer errs, from 0 to 1" in " ".join(ended.err.split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--human", "doctor", "--reviewer-error", "0.1"), "--reviewer-error or --human, not both"),
        (("--human", "doctor", "--reviewer-error-column", "risk"), "not both"),
        (("--human", "sick"), "who would never err"),
        (("--human", "nobody"), "nobody"),
        (("--reviewer-error", "often"), "neither a share"),
        (("--reviewer-error", "no=x,yes=0.1"), "neither a share"),
        (("--reviewer-error", "no=0.1,no=0.2"), "names a class twice"),
        (("--reviewer-error", "no=0.1"), "are not classes: 'yes'"),
        (("--reviewer-error", "no=0.1,ja=0.2"), "are not classes: 'ja', 'yes'"),
        (("--reviewer-error", "no=0.1,yes=3"), "must be a share"),
    ],
)
def test_bad_options(file, options, words):
    ended = fragility("cost", file, *ASKED, *options)
    assert ended.code == 2
    assert words in " ".join(ended.err.split())


def test_reviewers_need_costs_of_errors(file):
    asked = (file, "--label", "sick", "--score", "p")
    ended = fragility("evaluate", *asked, "--human", "doctor")
    assert ended.code == 2
    assert "give --error-cost, or --miss-cost and --false-alarm-cost, too" in " ".join(
        ended.err.split()
    )
    column = ("--error-cost-column", "risk", "--human", "doctor")
    ended = fragility("cost", *asked, *column)
    assert ended.code == 2
    assert "both by case" in " ".join(ended.err.split())
