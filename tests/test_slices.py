"""Slices: held to literal loops, to every subset of small data, and to what was planted."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from itertools import combinations
from math import isnan, nan

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.special import expit, softmax

from fragility import Slice, confident_error_rate, find_slices, measure_fragility
from fragility._validation import check_labelled_probabilities
from fragility.exceptions import SkippedColumnWarning
from fragility.slices import permutation
from fragility.slices.choosing import Chooser
from fragility.slices.conditions import coded
from fragility.slices.evidence import case_evidence
from fragility.slices.finding import _Search
from fragility.slices.frames import plain_column
from fragility.slices.permutation import StratifiedCases
from tests.command import fragility, refused, write_csv
from tests.reference import slices as reference


def drawn(seed=0, n=2000, n_classes=2):
    """Columns of every kind, labels and calibrated probabilities."""
    rng = np.random.default_rng(seed)
    age = np.where(rng.random(n) < 0.1, nan, rng.integers(20, 90, n))
    columns = {
        "age": age,
        "dose": np.round(rng.lognormal(size=n), 3),
        "visits": rng.poisson(1.0, n).clip(max=4),
        "sex": rng.choice(["F", "M"], n),
        "ward": np.where(rng.random(n) < 0.1, None, rng.choice(["a", "b", "c"], n)),
        "smoker": rng.random(n) < 0.3,
    }
    if n_classes == 2:
        p = expit(2.0 * rng.normal(size=n) + columns["smoker"])
        return columns, (rng.random(n) < p).astype(int), p
    p = softmax(1.5 * rng.normal(size=(n, n_classes)), axis=1)
    return columns, (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), p


def planted(bad, seed=0, share=0.4, **options):
    """The same with labels of some cases replaced by another class."""
    columns, y, p = drawn(seed, **options)
    n_classes = 2 if p.ndim == 1 else p.shape[1]
    rng = np.random.default_rng(seed + 1000)
    wrong = bad(columns) & (rng.random(y.size) < share)
    other = (y + rng.integers(1, n_classes, y.size)) % n_classes
    return columns, np.where(wrong, other, y), p


def women(columns):
    return columns["sex"] == "F"


def old_women(columns):
    return women(columns) & (columns["age"] >= 55)


# Permutations


def small_strata(seed):
    rng = np.random.default_rng(seed)
    strata = rng.integers(0, 3, 14)
    values = np.round(rng.lognormal(size=14), 2)
    return strata, rng.integers(0, 3, 14), values, rng.random(14) < 0.4


@pytest.mark.parametrize("seed", range(6))
def test_p_values_are_those_of_every_subset(seed, monkeypatch):
    monkeypatch.setattr(permutation, "_ENOUGH", 10**9)
    strata, kinds, values, inside = small_strata(seed)
    exact = reference.exact_p_value(*(part.tolist() for part in (strata, kinds, values, inside)))
    n = 20_000
    found = StratifiedCases(strata, kinds, values).p_value(inside, np.random.default_rng(1), n)
    assert abs(found - exact) < 4.0 * np.sqrt(exact * (1.0 - exact) / n) + 2.0 / n


def test_drawing_that_ends_early_keeps_the_level(monkeypatch):
    monkeypatch.setattr(permutation, "_ENOUGH", 5)
    rng = np.random.default_rng(0)
    strata, kinds, values, _ = small_strata(3)
    cases = StratifiedCases(strata, kinds, values)
    found = []
    for _ in range(1500):
        inside = np.zeros(14, dtype=bool)
        for stratum in range(3):
            rows = np.flatnonzero(strata == stratum)
            inside[rng.choice(rows, rows.size // 2, replace=False)] = True
        found.append(cases.p_value(inside, rng, 199))
    for level in (0.05, 0.1, 0.3, 0.6):
        assert np.mean(np.array(found) <= level) < level + 3.0 * np.sqrt(level / 1500)
    assert np.mean(np.array(found) <= 0.3) > 0.15  # and it is a test


def test_the_excess_is_beyond_the_mean_of_the_stratum():
    strata, kinds, values, _ = small_strata(0)
    excess = StratifiedCases(strata, kinds, values).excess
    for k in range(14):
        own = values[(strata == strata[k]) & (kinds == kinds[k])].mean()
        assert excess[k] == pytest.approx(own - values[strata == strata[k]].mean(), abs=1e-12)


# Evidence


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_weights_and_comparisons_are_those_of_loops(n_classes, weighted):
    _, y, p = drawn(4, 150, n_classes)
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 4, y.size) if weighted else np.ones(y.size)
    data = check_labelled_probabilities(y, p, sample_weight=weight if weighted else None)
    evidence = case_evidence(data)
    weights, shares = reference.worst_case(y.tolist(), p.tolist(), weight.tolist())
    np.testing.assert_allclose(evidence.weights, weights, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(evidence.shares, shares, rtol=1e-12)
    measured = measure_fragility(y, p, sample_weight=weight if weighted else None)
    np.testing.assert_allclose(evidence.weights, measured.worst_case_weights, rtol=1e-12)
    groups = evidence.alike()
    rows = p.reshape(y.size, -1).tolist()
    literal = reference.groups_alike(rows, 5, 200)
    assert {frozenset(np.flatnonzero(groups == g).tolist()) for g in set(groups)} == literal
    for code in set(y.tolist()):
        own = y == code
        mean = evidence.weights[own].sum() / evidence.shares[own].sum()
        excess = evidence.weights[own] - mean * evidence.shares[own]
        np.testing.assert_allclose(evidence.over_classes()[own], excess, atol=1e-15)


def test_scores_that_many_cases_share_are_one_group():
    p = np.r_[np.full(60, 0.2), np.linspace(0.3, 0.9, 40)]
    y = np.tile([0, 1], 50)
    groups = case_evidence(check_labelled_probabilities(y, p)).alike()
    assert len(set(groups[:60])) == 1
    assert groups[0] not in groups[60:]
    assert min(np.bincount(groups)) >= 5


# Conditions


def columns_of_every_kind(n=300):
    rng = np.random.default_rng(5)
    gaps = rng.random(n) < 0.1
    return {
        "normal": rng.normal(size=n),
        "gaps": np.where(gaps, nan, rng.normal(1e6, 3.0, n)),
        "zeros": np.where(rng.random(n) < 0.6, 0.0, rng.lognormal(size=n)),
        "years": rng.integers(1990, 2020, n),
        "infinite": np.where(gaps, np.inf, rng.normal(size=n)),
        "few": rng.integers(0, 4, n),
        "text": rng.choice(["a", "b b", "c'"], n),
        "half": np.where(gaps, None, rng.choice(["x", "y"], n)),
        "truth": rng.random(n) < 0.5,
    }


@pytest.mark.parametrize("name", columns_of_every_kind())
@pytest.mark.parametrize("n_ranges", [2, 4, 6])
def test_conditions_say_which_cases_meet_them(name, n_ranges):
    values = columns_of_every_kind()[name]
    column = coded(plain_column(name, values), n_ranges, 20)
    assert column.conditions
    for condition in column.conditions:
        literal = reference.meets(condition.text, {name: values.tolist()})
        assert column.meets(condition).tolist() == literal
        assert 0 < sum(literal) < len(literal)
    assert len({condition.text for condition in column.conditions}) == len(column.conditions)


def test_ranges_have_about_equal_numbers_of_cases_and_short_limits():
    values = np.random.default_rng(0).normal(50.0, 10.0, 4000)
    column = coded(plain_column("age", values), 4, 20)
    counts = np.bincount(column.codes)[:4]
    assert abs(counts / 4000 - 0.25).max() < 0.045
    single = [c.text for c in column.conditions if len(c.codes) == 1]
    assert [text.partition(" ")[2] for text in single][:2] == ["under 43", "from 43 to under 50"]


def test_rare_values_are_not_conditions_and_missing_ones_are():
    values = ["a"] * 50 + ["b"] * 5 + [None] * 45
    column = coded(plain_column("x", values), 4, 10)
    assert [condition.text for condition in column.conditions] == ["x is 'a'", "x is missing"]


def test_long_integers_are_told_apart():
    values = np.repeat([2**53, 2**53 + 1, 2**62, 10**60], 25).tolist()
    for given in (values[:75], values, [*values, None]):
        column = coded(plain_column("x", given), 4, 20)
        for condition in column.conditions:
            if condition.text != "x is missing":
                literal = [f"x is {value}" == condition.text for value in given]
                assert column.meets(condition).tolist() == literal
        assert len(column.conditions) == len(set(given))


def test_of_many_values_the_most_frequent_are_searched():
    values = [f"v{k:03d}" for k in range(150) for _ in range(10 + (k >= 60))]
    column = coded(plain_column("x", values), 4, 10)
    texts = [condition.text for condition in column.conditions]
    assert texts == [f"x is 'v{k:03d}'" for k in [*range(10), *range(60, 150)]]


# Choice


def test_scores_of_conditions_are_those_of_loops():
    columns, y, p = planted(old_women, n=400)
    evidence = case_evidence(check_labelled_probabilities(y, p))
    half = np.random.default_rng(0).random(400) < 0.5
    own = evidence.take(half)
    comparisons = [
        StratifiedCases(own.classes, own.levels(), own.over_classes()),
        StratifiedCases(own.alike(), own.classes, own.weights),
    ]
    columns = {name: columns[name] for name in ("age", "sex", "visits", "ward")}
    table = [coded(plain_column(name, values), 4, 40) for name, values in columns.items()]
    chosen = Chooser(table, half, comparisons, 20).candidates(10)
    lists = {name: values.tolist() for name, values in columns.items()}
    literals = [(cases.strata.tolist(), cases.excess.tolist()) for cases in comparisons]

    def literal(text):
        met = np.array(reference.meets(text, lists))
        if min(met[half].sum(), met[~half].sum()) < 20:
            return -np.inf
        return reference.score(literals, met[half].tolist())

    best = -np.inf
    single = {c.text: literal(c.text) for column in table for c in column.conditions}
    for a, b in combinations(table, 2):
        for one in a.conditions:
            for other in b.conditions:
                text = f"{one.text} and {other.text}"
                found = literal(text)
                if found >= max(single[one.text], single[other.text]) + 0.5:
                    best = max(best, found)
    best = max(best, *single.values())
    assert chosen[0].score == pytest.approx(best, rel=1e-9)
    taken = np.zeros(400, dtype=bool)
    for candidate in chosen:
        assert candidate.score == pytest.approx(literal(candidate.text), rel=1e-9)
        left = candidate.meets() & half & ~taken  # each has a score of its own
        assert reference.score(literals, left[half].tolist()) >= 1.645
        taken |= candidate.meets()


# The whole search


@pytest.mark.parametrize(
    ("bad", "columns", "options"),
    [
        (women, {"sex"}, {}),
        (old_women, {"age", "sex"}, {"n": 3000}),
        (lambda c: np.isnan(c["age"]), {"age"}, {"n": 4000}),
        (lambda c: c["visits"] == 2, {"visits"}, {"n": 3000}),
        (women, {"sex"}, {"n_classes": 3}),
    ],
)
def test_a_planted_slice_is_the_first(bad, columns, options):
    table, y, p = planted(bad, **options)
    found = find_slices(table, y, p)
    assert set(found[0].columns) == columns
    assert found[0].p_value <= 0.05
    assert found[0].weight_share > max(found[0].share, found[0].expected_share)
    met = reference.meets(found[0].condition, {k: v.tolist() for k, v in table.items()})
    assert found[0].n == sum(met)
    assert np.mean(bad(table)[np.array(met)]) > 0.7


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_a_bad_slice_seldom_any_is_found(n_classes):
    # At a level of 0.05, more than five of 40 have a probability of 0.014.
    found = [bool(find_slices(*drawn(seed, 500, n_classes))) for seed in range(40)]
    assert sum(found) <= 5


@pytest.mark.parametrize("n_classes", [2, 3])
def test_figures_of_a_slice_are_those_of_loops(n_classes, monkeypatch):
    columns, y, p = planted(women, n=400, share=0.6, n_classes=n_classes)
    weight = np.random.default_rng(0).integers(1, 3, y.size)
    tested = np.random.default_rng(1).random(y.size) < 0.5
    monkeypatch.setattr(_Search, "_first_half", lambda self, rng: ~tested)
    found = find_slices({"sex": columns["sex"]}, y, p, sample_weight=weight, level=0.9)[0]
    weights, shares = reference.worst_case(y.tolist(), p.tolist(), weight.tolist())
    met = np.array(reference.meets(found.condition, {"sex": columns["sex"].tolist()}))
    rows = np.flatnonzero(tested)
    inside = met[rows]
    of_weight, of_share = np.array(weights)[rows], np.array(shares)[rows]
    expected = np.zeros(rows.size)
    for group in reference.groups_alike(p.reshape(y.size, -1)[rows].tolist(), 5, 200):
        own = list(group)
        expected[own] = of_share[own] * of_weight[own].sum() / of_share[own].sum()
    assert (found.n, found.n_tested) == (met.sum(), inside.sum())
    assert found.share == pytest.approx(of_share[inside].sum() / of_share.sum())
    assert found.weight_share == pytest.approx(of_weight[inside].sum() / of_weight.sum())
    assert found.expected_share == pytest.approx(expected[inside].sum() / of_weight.sum())
    assert found.lift == pytest.approx(found.weight_share / found.share)
    for part, rate in (
        (inside, found.confident_error_rate),
        (~inside, found.confident_error_rate_outside),
    ):
        own = rows[part]
        assert rate == confident_error_rate(y[own], p[own], sample_weight=weight[own])
    own = rows[inside]
    measured = measure_fragility(y[own], p[own], sample_weight=weight[own])
    assert (found.index, found.index_interval) == (measured.value, measured.interval())


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_order_of_rows_does_not_matter(n_classes):
    columns, y, p = planted(women, n=600, n_classes=n_classes)
    order = np.random.default_rng(0).permutation(y.size)
    found = find_slices(columns, y, p, level=0.5)
    again = find_slices({k: v[order] for k, v in columns.items()}, y[order], p[order], level=0.5)
    assert found
    for one, other in zip(found, again, strict=True):
        assert (one.condition, one.n, one.n_tested, one.p_value) == (
            other.condition,
            other.n,
            other.n_tested,
            other.p_value,
        )
        assert one.weight_share == pytest.approx(other.weight_share, rel=1e-9)


def test_tables_of_any_library_give_the_same():
    columns, y, p = planted(old_women, n=1500)
    frame = pd.DataFrame(columns)
    expected = find_slices(columns, y, p, level=0.5)
    assert expected
    by_category = frame.assign(sex=frame["sex"].astype("category"))
    arrow = pa.Table.from_pandas(frame)
    for table in (frame, by_category, pl.from_pandas(frame), arrow):
        assert find_slices(table, y, p, level=0.5) == expected


def test_arrays_have_names():
    _, y, p = drawn()
    X = np.random.default_rng(0).normal(size=(y.size, 3))
    wrong = (X[:, 1] > 0.5) & (np.random.default_rng(1).random(y.size) < 0.5)
    y = np.where(wrong, 1 - y, y)
    (found, *_) = find_slices(X, y, p)
    assert found.columns == ("x1",)
    (named, *_) = find_slices(X, y, p, feature_names=["a", "b", "c"])
    assert named == replace(found, columns=("b",), condition=found.condition.replace("x1", "b"))


def test_cases_without_weight_are_none_and_only_ratios_of_weights_matter():
    columns, y, p = planted(women, n=900)
    weight = np.random.default_rng(0).integers(0, 3, y.size)
    found = find_slices(columns, y, p, sample_weight=weight, level=0.5)
    held = weight > 0
    some = {name: values[held] for name, values in columns.items()}
    assert found
    assert found == find_slices(some, y[held], p[held], sample_weight=weight[held], level=0.5)
    again = find_slices(columns, y, p, sample_weight=4.0 * weight, level=0.5)
    assert [s.condition for s in again] == [s.condition for s in found]


def test_against_the_class_alone_where_a_model_is_unsure():
    rng = np.random.default_rng(0)
    ward = rng.choice(["easy", "hard"], 4000, p=[0.8, 0.2])
    p = expit(np.where(ward == "easy", 6.0, 1.0) * rng.normal(size=4000))
    y = (rng.random(4000) < p).astype(int)
    assert find_slices({"ward": ward}, y, p) == []
    assert find_slices({"ward": ward}, y, p, against="score") == []
    (found,) = find_slices({"ward": ward}, y, p, against="class")
    assert found.condition == "ward is 'hard'"
    assert found.lift > 1.1
    assert found.weight_share / found.expected_share < 1.05  # as its scores tell


def test_against_the_score_alone_where_the_class_does_not_tell():
    rng = np.random.default_rng(1)
    x, z = rng.normal(size=(2, 4000))
    p = expit(x + z - 1.0)
    y = (rng.random(4000) < p).astype(int)
    y = np.where((x < -0.7) & (rng.random(4000) < 0.1), 1 - y, y)
    (found, *_) = find_slices({"x": x}, y, p, against="score")
    assert found.condition == "x under -0.7"
    assert found.expected_share < found.weight_share
    assert find_slices({"x": x}, y, p, against="class") == []
    assert find_slices({"x": x}, y, p) == []  # both are asked for


def test_a_slice_says_what_it_is():
    found = Slice("sex is 'F'", ("sex",), 1200, 600, 0.2, 0.5, 0.25, 0.0123, 0.1, 0.02, nan, None)
    assert str(found) == (
        "sex is 'F': 1,200 cases, 20.0 % of the data if classes count alike, and 50.0 % of the "
        "worst-case weight, 2.50 times its share (its scores lead one to expect 25.0 %; p = "
        "0.012). Confident errors: 10.0 % inside, 2.0 % outside."
    )
    plain = found.to_dict()
    assert plain["lift"] == 2.5
    assert isnan(plain["index"])
    assert plain["index_interval"] is None


def test_a_slice_of_one_class_has_no_index():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1200)
    p = np.where(rng.random(1200) < 0.05, rng.random(1200), np.where(y == 1, 0.7, 0.3))
    x = np.where((y == 0) & (rng.random(1200) < 0.3), "only", "other")
    p = np.where(x == "only", 0.97, p)
    (found,) = find_slices({"x": x}, y, p)
    assert found.condition == "x is 'only'"
    assert isnan(found.index)
    assert found.index_interval is None
    assert found.confident_error_rate == 1.0


# Bad input


def test_identifiers_and_dates_are_named_in_a_warning():
    columns, y, p = drawn(n=400)
    odd = {
        **columns,
        "id": [f"p{k}" for k in range(400)],
        "day": np.datetime64("2020-01-01") + np.arange(400),
        "mixed": np.array([1, "a"] * 200, dtype=object),
        "constant": np.ones(400),
    }
    with pytest.warns(SkippedColumnWarning, match="'id' has 400 .* 'day' holds dates.* 'mixed'"):
        found = find_slices(odd, y, p, level=0.9)
    assert found == find_slices(columns, y, p, level=0.9)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"min_cases": 0}, "min_cases must be a whole number of 1 or more; got 0"),
        ({"min_cases": 101}, "needs at least 404 cases.*Got 400; give more"),
        ({"n_ranges": 1}, "n_ranges must be a whole number of 2 or more; got 1"),
        ({"n_candidates": 0}, "n_candidates must be"),
        ({"n_permutations": 10}, "n_permutations must be"),
        ({"level": 1.5}, "level must lie between 0 and 1, such as 0.05; got 1.5"),
        ({"against": "all"}, "against must be one of 'both', 'class', 'score'; got 'all'"),
        ({"confident": 2}, "confident must lie from 0 to 1"),
        ({"random_state": "x"}, "random_state must be"),
        ({"feature_names": ["a"]}, "feature_names is for arrays"),
        ({"X": np.ones((400, 2)), "feature_names": ["a"]}, "each of the 2 columns of X"),
        ({"X": np.ones((400, 2))}, "No column of X tells cases apart: all are constant"),
        ({"X": {"id": [f"p{k}" for k in range(400)]}}, "these are left out: 'id' has 400"),
        ({"X": {}}, "X has no columns"),
        ({"X": {1: np.arange(400)}}, "names of columns must be text.*: 1"),
        ({"X": np.arange(400)}, r"X has shape \(400,\); give a data frame"),
        ({"X": {"a": np.ones((400, 2))}}, r"Column 'a' has shape \(400, 2\)"),
        ({"X": {"a": np.arange(9)}}, r"X has 9 rows \(column 'a'\) but y_true has 400"),
        ({"X": pl.LazyFrame({"a": np.arange(400)})}, "Collect it first"),
        ({"X": pd.DataFrame({1: np.arange(400)})}, "names of columns must be text.*: 1"),
        ({"X": pa.table([[1], [2]], names=["a", "a"])}, "Several columns have the same name: 'a'"),
        ({"proba": np.linspace(-3, 3, 400)}, "proba must hold probabilities"),
        ({"proba": np.tile([0.2, 0.8], 200), "y_true": np.tile([0, 1], 200)}, "Index is 0"),
        ({"proba": np.tile([0.8, 0.2], 200), "y_true": np.tile([0, 1], 200)}, "is infinite"),
        ({"y_true": np.zeros(400)}, "one class"),
    ],
)
def test_bad_input_gets_a_sentence(changes, words):
    columns, y, p = drawn(n=400)
    given = {"X": {"age": columns["age"]}, "y_true": y, "proba": p, **changes}
    with pytest.raises(ValueError, match=words):
        find_slices(given.pop("X"), given.pop("y_true"), given.pop("proba"), **given)


def test_frames_without_narwhals_name_the_extra_to_install(monkeypatch):
    columns, y, p = drawn(n=400)
    monkeypatch.setitem(sys.modules, "narwhals", None)  # as if it were not installed
    with pytest.raises(ImportError, match=r'narwhals, .* pip install "fragility\[cli\]"'):
        find_slices(pl.DataFrame({"age": columns["age"]}), y, p)


# The command


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    columns, y, p = planted(old_women, n=2500)
    columns["ward"] = np.where(columns["ward"] == None, "", columns["ward"])  # noqa: E711
    table = {**columns, "weight": np.ones(2500), "sick": np.where(y, "yes", "no"), "p": p}
    return write_csv(tmp_path_factory.mktemp("slices") / "p.csv", table)


def test_the_command_says_what_the_function_finds(file):
    columns, y, p = planted(old_women, n=2500)
    asked = ("slices", file, "--label", "sick", "--score", "p", "--weight", "weight")
    ended = fragility(*asked)
    (found, *_) = expected = find_slices(columns, y, p)
    assert ended.code == 0
    assert found.condition in ended.out
    content = json.loads(fragility(*asked, "--json").out)
    assert content["searched"] == list(columns)
    told = [part["condition"] for part in content["slices"]]
    assert told == [part.condition for part in expected]
    assert content["slices"][0]["weight_share"] == pytest.approx(found.weight_share)


def test_the_command_searches_columns_that_are_named(file, tmp_path):
    asked = ("--label", "sick", "--score", "p")
    content = json.loads(fragility("slices", file, *asked, "--column", "dose", "--json").out)
    assert (content["searched"], content["slices"]) == (["dose"], [])
    assert "No slice" in fragility("slices", file, *asked, "--column", "dose").out
    lines = file.read_text().splitlines()
    cells = lines[1].split(",")
    some = tmp_path / "gap.csv"
    some.write_text("\n".join([lines[0], ",".join([*cells[:-1], ""]), *lines[2:]]) + "\n")
    ended = fragility("slices", some, *asked, "--column", "sex", "--drop-missing", "--json")
    assert json.loads(ended.out)["n"] == 2499
    assert "1 rows" in ended.err


def test_the_command_refuses_in_one_line(file):
    asked = ("slices", file, "--label", "sick", "--score", "p")
    refused(fragility(*asked, "--column", "sax"), "'sax'", "Did you mean 'sex'")
    refused(fragility(*asked, "--column", "p"), "'p'", "not searched")
    refused(fragility(*asked, "--min-cases", "0"), "min_cases")
