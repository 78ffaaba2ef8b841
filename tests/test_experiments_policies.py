"""The experiments on policies: costs of cases, clear differences, shifts, and the rules."""

from __future__ import annotations

import hashlib
import itertools
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pandas import DataFrame

from experiments import policies, policy_shift, shifts
from experiments.data import load_shift, shift
from experiments.policy_models import MODELS, TRIPLES, Triple, best_pair_cost, costs_at, out_of_fold
from fragility import best_policy, compare_costs

SHARED = Path(__file__).parents[2] / "shared" / "data"
REAL = Path(os.environ.get("FRAGILITY_DATA", SHARED))
needs_shift = pytest.mark.skipif(not (REAL / "shift" / "va.data").is_file(), reason="no files")

pytestmark = pytest.mark.usefixtures("no_network")


@pytest.fixture(scope="module")
def cases():
    rng = np.random.default_rng(0)
    logit = rng.normal(-1.0, 2.0, 600)
    y = (rng.random(600) < 1.0 / (1.0 + np.exp(-logit))).astype(int)
    return y, np.round(1.0 / (1.0 + np.exp(-1.3 * logit)), 2)


@pytest.mark.parametrize("triple", TRIPLES)
def test_the_best_pair_is_that_of_brute_force(cases, triple):
    y, p = cases[0][:60], cases[1][:60]
    ends = [*np.unique(p), np.inf]
    least = min(
        triple.paid(y, p < lower, p >= upper).mean()
        for lower, upper in itertools.combinations_with_replacement(ends, 2)
    )
    assert best_pair_cost(triple, y, p) == pytest.approx(least, rel=1e-12)
    found = best_policy(y, p, error_cost=triple.matrix, review_cost=triple.review, rule="tuned")
    assert costs_at(found, triple, y, p).mean() == pytest.approx(least, rel=1e-12)


def test_costs_are_those_of_the_decisions(cases):
    y, p = cases
    triple = Triple(2.0, 7.0, 0.5)
    found = best_policy(y, p, error_cost=triple.matrix, review_cost=triple.review)
    made = found.decide(p)
    wrong = np.where(y == 1, triple.miss, triple.alarm) * (made.label != y)
    expected = np.where(made.automate, wrong, triple.review)
    assert np.array_equal(costs_at(found, triple, y, p), expected)
    assert triple.name == "2 : 7 : 0.5"
    assert triple.unequal


def test_a_cell_has_the_error_of_compare_costs(cases):
    """Of two models at one rule here, of two rules at one model there: the same sums."""
    y, p = cases
    triple = TRIPLES[1]
    other = np.random.default_rng(1).permutation(p)
    a = policies.held_out_costs(triple, y, p, "auto", 0)
    b = policies.held_out_costs(triple, y, other, "auto", 0)
    found = compare_costs(y, p, other, error_cost=triple.matrix, review_cost=triple.review)
    assert found.difference == pytest.approx((a - b).mean(), rel=1e-12)
    error = policies.FACTOR * (a - b).std(ddof=1) / np.sqrt(y.size)
    reach = (found.interval[1] - found.interval[0]) / 2.0
    assert reach / error == pytest.approx(1.964, abs=0.002)


def _cells(differences):
    """Results of a cell each, with an error of one."""
    return DataFrame(
        [
            {
                **{"dataset": f"set {k}", "model": "logistic", "trial": 0, "part": "cell"},
                **{"costs": "1 : 5 : 0.5", "unequal": 1, "n": 1000, "error": 1.0},
                **{
                    "effective": 5.0 + k,
                    "policy": 10.0 + apart,
                    "confidence": 10.0,
                    "difference": apart,
                },
            }
            for k, apart in enumerate(differences)
        ]
    )


@pytest.mark.parametrize(
    ("differences", "dearer", "cheaper"),
    [
        ([-3.0] * 19 + [3.0], "holds", "holds"),
        ([-3.0] * 18 + [3.0] * 2, "does not hold", "holds"),
        ([-1.0] * 20, "holds", "does not hold"),
        ([1.9] * 20, "holds", "does not hold"),
    ],
)
def test_what_is_clear(differences, dearer, cheaper):
    results = _cells(differences)
    verdicts = [claim.rule(results) for claim in policies.EXPERIMENT.claims]
    assert [v.holds for v in verdicts[:2]] == [dearer, cheaper]
    assert verdicts[2:] == [None, None]


def test_small_sets_do_not_hide_large_ones():
    results = _cells([-3.0, -3.0, -1.0, -1.0, -1.0])
    results.loc[2:, "n"] = 100
    assert policies.EXPERIMENT.claims[1].rule(results).holds == "holds partly"
    table = policies.summary(policies.cells(results)).set_index("cells")["clearly_cheaper"]
    assert table["unequal costs"] == pytest.approx(0.4)
    assert table["unequal costs, 500 cases or more"] == 1.0
    assert table["unequal costs, fewer than 500 cases"] == 0.0
    tested = policies.summary(policies.cells(_cells([-3.0] * 20))).set_index("cells")
    assert tested.loc["all", "clearly_cheaper"] == 1.0
    assert tested.loc["all", "clearly_cheaper_tested"] == pytest.approx(15 / 20)


def test_the_choice_of_the_model():
    results = DataFrame(
        {
            "part": "cell", "costs": "1 : 5 : 0.5", "dataset": "a", "trial": 0,
            "model": ["logistic", "forest"], "policy": [1.0, 1.1], "confidence": [2.0, 1.5],
        }
    )  # fmt: skip
    table = policies.choices(results).set_index("costs")
    assert table.loc["all", "other_model"] == 1.0
    assert table.loc["all", "percent_lost"] == pytest.approx(10.0)


@pytest.mark.parametrize("model", MODELS)
def test_models_take_missing_values(model):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 3)), np.repeat([0, 1], 30)
    X[y == 1] += 1.0
    X[::7, 0], X[:, 2] = np.nan, np.nan
    with np.errstate(all="raise"):
        p = out_of_fold(model, X, y, 3)
    assert np.array_equal(p, out_of_fold(model, X, y, 3))
    assert ((p >= 0.0) & (p <= 1.0)).all()
    assert p[y == 1].mean() > p[y == 0].mean() + 0.1


def _shifted(differences):
    """Results of one shift each, in which the least fragile policy costs so much more."""
    rows = []
    for name, apart in zip(shifts.SHIFTS, differences, strict=False):
        row = {"shift": name, "model": "logistic", "costs": "1 : 5 : 0.5", "trial": 0}
        for where in policy_shift.WHERE:
            row |= {f"{where}_{policy}": 1.0 for policy in policy_shift.POLICIES}
            row[f"{where}_fragility"] += apart
        rows.append(row)
    return DataFrame(rows)


@pytest.mark.parametrize(
    ("differences", "after", "source"),
    [
        ([-0.02, -0.03, -0.04], "holds", "holds"),
        ([-0.2, 0.15, 0.01], "holds partly", "holds"),
        ([0.02, 0.03, 0.04], "does not hold", "does not hold"),
        ([-0.02, 0.06, 0.01], "does not hold", "holds partly"),
    ],
)
def test_verdicts_on_shifts(differences, after, source):
    results = _shifted(differences)
    verdicts = [claim.rule(results).holds for claim in policy_shift.EXPERIMENT.claims]
    assert verdicts == [after, after, source]
    table = policy_shift.differences(results)
    assert table["difference"].to_numpy() == pytest.approx(np.mean(differences))
    assert set(table["families"]) == {1}


def test_too_few_shifts_are_not_judged():
    results = _shifted([-0.02, -0.03])
    assert [claim.rule(results) for claim in policy_shift.EXPERIMENT.claims] == [None] * 3


def test_a_large_source_pays_with_cases_that_neither_trained_nor_chose():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2))
    y = (X[:, 0] + rng.normal(size=1000) > 0).astype(int)
    data = shifts.TwoParts(X, y, X[:5], y[:5], "toy")
    chooser = policy_shift._large("logistic", data, 0)
    assert chooser.y.size == policy_shift.CHOOSERS
    assert chooser._source[0].size == 1000 - 500 - policy_shift.CHOOSERS
    assert policy_shift._small("logistic", data, 0)._source is None


@needs_shift
class TestRealShifts:
    @pytest.mark.parametrize(
        ("name", "shape", "ones"),
        [
            ("cleveland", (303, 13), 139),
            ("hungarian", (294, 13), 106),
            ("switzerland", (123, 13), 115),
            ("va", (200, 13), 149),
            ("adult", (32561, 49), 7841),
            ("bank", (41188, 42), 4640),
            ("red", (1359, 11), 719),
            ("white", (3961, 11), 2613),
        ],
    )
    def test_counts(self, name, shape, ones):
        loaded = load_shift(name, data_home=REAL)
        assert loaded.data.shape == shape == (len(loaded.frame), len(loaded.feature_names))
        assert (loaded.target.sum(), set(loaded.target)) == (ones, {0, 1})
        unknown = name in ("cleveland", "hungarian", "switzerland", "va")
        assert np.isnan(loaded.data).any() == unknown
        assert loaded.DESCR

    def test_zero_is_unknown(self):
        loaded = load_shift("switzerland", data_home=REAL)
        assert np.isnan(loaded.data[:, loaded.feature_names.index("chol")]).all()

    def test_what_is_no_feature(self):
        names = load_shift("bank", data_home=REAL).feature_names
        assert "duration" not in names
        assert "y" not in names
        names = load_shift("adult", data_home=REAL).feature_names
        assert not [name for name in names if name.startswith(("fnlwgt", "income", "native"))]

    @pytest.mark.parametrize("name", shifts.SHIFTS)
    def test_parts_do_not_overlap(self, name, monkeypatch):
        monkeypatch.setenv("FRAGILITY_DATA", str(REAL))
        found = shifts.two_parts(name, 1, True)
        assert found.name == shifts.SHIFTS[name].before
        assert found.X.shape[1] == found.X_after.shape[1]
        assert min(found.y.size, found.y_after.size) > 100
        one = shifts.SHIFTS[name]
        if not one.after:
            whole = shifts._loaded(one.before, str(REAL)).target.size
            assert found.y.size + found.y_after.size <= whole
        if one.tilted:
            other = shifts.two_parts(name, 2, True)
            assert other.y.size != found.y.size or not np.array_equal(other.X, found.X)


def test_another_file_is_refused(monkeypatch, tmp_path):
    content = b"1,2\n0,1\n"
    table = replace(
        shift.SETS["va"],
        columns=("chol", "num"),
        zero_is_unknown=("chol",),
        file=replace(shift.SETS["va"].file, checksum=hashlib.sha256(content).hexdigest()),
    )
    monkeypatch.setitem(shift.SETS, "va", table)
    (tmp_path / "va.data").write_bytes(content)
    loaded = load_shift("va", data_home=tmp_path)
    assert np.array_equal(loaded.data, [[1.0], [np.nan]], equal_nan=True)
    assert loaded.target.tolist() == [1, 1]
    (tmp_path / "va.data").write_bytes(content + b"5,0\n")
    with pytest.raises(ValueError, match="SHA-256"):
        load_shift("va", data_home=tmp_path)


def test_nothing_is_downloaded(monkeypatch):
    monkeypatch.delenv("FRAGILITY_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"va\.data is not downloaded.*FRAGILITY_DATA"):
        load_shift("va")
    with pytest.raises(ValueError, match="no data set 'mars'; there are 'cleveland'"):
        load_shift("mars")
    assert shifts.two_parts("red to white", 0, True).name == "stand-in for red to white"
    with pytest.raises(FileNotFoundError):
        shifts.two_parts("red to white", 0, False)
