"""Bad input is answered with what was given, what is allowed and what to do."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

from fragility import (
    AbsentClassWarning,
    fragility_index,
    measure_fragility,
    wasserstein_fragility_index,
)

Y = [0, 0, 1, 1]
P = [0.1, 0.8, 0.6, 0.9]
VALUE = fragility_index(Y, P)
THREE = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6], [0.5, 0.4, 0.1]]


@pytest.mark.parametrize(
    ("y", "p", "options", "message"),
    [
        ([], [], {}, "y_score is empty"),
        ([0, 1], [0.1, 0.2, 0.3], {}, "y_true has 2 samples but y_score has 3"),
        ([1, 1], [0.1, 0.2], {}, "Only one class has samples .*: 1"),
        (["x", "x"], [0.1, 0.2], {}, "Only one class has samples .*: 'x'"),
        (Y, [0.1, np.nan, 0.2, 0.3], {}, r"NaN or infinite values in 1 of 4 rows \(first: 1\)"),
        (Y, [0.1, np.inf, 0.2, -np.inf], {}, r"in 2 of 4 rows \(first: 1, 3\)"),
        (Y, [0.1, None, 0.2, 0.3], {}, "NaN or infinite values in 1 of 4 rows"),
        (Y, ["a", "b", "c", "d"], {}, "y_score must hold numbers, but it holds text"),
        (Y, ["0.1", "0.2", "0.3", "0.4"], {}, "holds text"),
        (Y, np.array([0.1, "0.2", 0.3, 0.4], object), {}, "holds text"),
        (Y, [1j] * 4, {}, "y_score must hold real numbers"),
        (Y, csr_array((4, 2)), {}, "y_score is a sparse matrix"),
        (Y, np.ones((4, 2, 2)), {}, r"y_score has shape \(4, 2, 2\)"),
        (Y, 0.5, {}, r"y_score has shape \(\)"),
        (np.eye(4), P, {}, r"y_true has shape \(4, 4\); .*argmax"),
        (csr_array((4, 1)), P, {}, "y_true is a sparse matrix"),
        ([0.1, 0.2, 0.7, 0.9], Y, {}, "not class labels, such as 0.1; .* swapped"),
        ([0, np.nan, 1, 1], P, {}, r"1 missing labels \(first rows: 1\)"),
        (["a", None, "b", "b"], P, {}, "1 missing labels"),
        (["a", 1, "b", "b"], P, {}, "mixes labels that cannot be ordered"),
        ([[0], [1]], [0.1, 0.2, 0.3], {}, "2 samples but y_score has 3"),
        ([{}, {}, {}, {}], P, {}, "objects that are not labels"),
        (np.array(Y, "M8[s]"), P, {}, "text, booleans or integers"),
        ([0, 1, 2, 0], P, {}, r"one column but there are 3 classes .* \(n_samples, 3\)"),
        (Y, THREE, {}, "3 columns but y_true holds 2 classes .* labels="),
        ([0, 1, 2, 0], THREE, {"labels": [0, 1]}, "labels does not name: 2"),
        ([0, 1, 2, 0], THREE, {"labels": [0, 1, 2, 3]}, "3 columns but labels names 4"),
        ([0, 1, 2, 0], THREE, {"labels": [0, 1, 1]}, "duplicates"),
        (Y, P, {"labels": [0]}, "at least two classes"),
        (Y, P, {"pos_label": 7}, "pos_label=7 is not one of the classes"),
        ([0, 1, 2, 0], THREE, {"pos_label": 1}, "applies to two classes, but there are 3"),
        (Y, P, {"target": np.nan}, "target must be finite"),
        (Y, P, {"target": "low"}, "target must be a number; got 'low'"),
        (Y, P, {"target": "0.1"}, "target must be a number; got '0.1'"),
        (Y, P, {"multi_class": "ova"}, "multi_class must be one of 'ovo', 'ovr'; got 'ova'"),
        (Y, P, {"average": "micro"}, "average must be one of 'macro', None; got 'micro'"),
        (Y, P, {"sample_weight": [1, 2]}, "one weight for each of 4 samples"),
        (Y, P, {"sample_weight": [1, -1, 1, 1]}, "1 negative values"),
        (Y, P, {"sample_weight": [1, np.nan, 1, 1]}, "sample_weight has NaN"),
        (Y, P, {"sample_weight": [0] * 4}, "zero for every sample"),
        (Y, P, {"pair_cost": [1, 1]}, r"give \(2, 2\)"),
        (Y, P, {"pair_cost": [[0, -1], [1, 0]]}, "zero or more"),
        (Y, P, {"pair_cost": np.zeros((2, 2))}, "zero for every pair"),
        (Y, P, {"pair_cost": np.ones((2, 2))}, "zero on the diagonal"),
        (Y, P, {"pair_cost": np.ones((2, 2)), "multi_class": "ovr"}, 'multi_class="ovo"'),
        (Y, P, {"pair_cost": np.ones((2, 2)), "average": None}, 'average="macro"'),
    ],
)
def test_errors(y, p, options, message):
    with pytest.raises(ValueError, match=message):
        fragility_index(y, p, **options)


def test_masked_entries():
    with pytest.raises(ValueError, match="y_score has masked entries"):
        fragility_index(Y, np.ma.array(P, mask=[0, 1, 0, 0]))
    with pytest.raises(ValueError, match="y_true has masked entries"):
        fragility_index(np.ma.array(Y, mask=[0, 1, 0, 0]), P)
    assert fragility_index(np.ma.array(Y), np.ma.array(P)) == VALUE


def test_absent_classes_are_named_and_left_out():
    codes = np.array([0, 1, 1, 0])
    scores = np.array([[0.7, 0.2, 0.1], [0.4, 0.3, 0.3], [0.1, 0.3, 0.6], [0.2, 0.4, 0.4]])
    with pytest.warns(AbsentClassWarning, match="of 2: the pairs") as caught:
        found = fragility_index(codes, scores, labels=[0, 1, 2])
    assert caught[0].filename == __file__
    with pytest.warns(AbsentClassWarning) as caught:
        result = measure_fragility(codes, scores, labels=[0, 1, 2])
    assert caught[0].filename == __file__
    expected = [fragility_index(codes == i, scores[:, i]) for i in (0, 1)]
    assert found == result.value == pytest.approx(np.mean(expected))
    assert np.isnan(result.pairs[2]).all()
    assert np.isnan(result.pairs[:, 2]).all()
    assert result.support.tolist() == [2, 2, 0]
    with (
        pytest.warns(AbsentClassWarning),
        pytest.raises(ValueError, match="zero for every pair of classes that have samples"),
    ):
        fragility_index(
            codes, scores, labels=[0, 1, 2], pair_cost=[[0, 0, 1], [0, 0, 1], [1, 1, 0]]
        )


BINARY_LABELS = {
    "bool": np.array(Y, bool),
    "list of bool": [bool(v) for v in Y],
    "int8": np.array(Y, np.int8),
    "uint64": np.array(Y, np.uint64) + np.uint64(2**63),
    "minus one": np.array([-1, -1, 1, 1]),
    "far apart": np.array([-(2**62), -(2**62), 2**62, 2**62]),
    "float": np.array(Y, float),
    "float32": np.array(Y, np.float32),
    "text": np.array(["no", "no", "yes", "yes"]),
    "bytes": np.array([b"no", b"no", b"yes", b"yes"]),
    "list of text": ["no", "no", "yes", "yes"],
    "object": np.array(["no", "no", "yes", "yes"], object),
    "object of int": np.array(Y, object),
    "long integers": np.array([0, 0, 10**30, 10**30], object),
    "StringDType": np.array(["no", "no", "yes", "yes"], np.dtypes.StringDType()),
    "pandas": pd.Series(Y, index=[9, 8, 7, 6]),
    "pandas text": pd.Series(["no", "no", "yes", "yes"]),
    "pandas category": pd.Series(["no", "no", "yes", "yes"], dtype="category"),
    "pandas nullable": pd.Series(Y, dtype="Int64"),
    "pandas boolean": pd.Series(Y, dtype="boolean"),
    "pandas arrow": pd.Series(["no", "no", "yes", "yes"], dtype=pd.ArrowDtype(pa.string())),
    "pandas frame": pd.DataFrame({"y": Y}),
    "polars": pl.Series(Y),
    "polars text": pl.Series(["no", "no", "yes", "yes"]),
    "polars categorical": pl.Series(["no", "no", "yes", "yes"], dtype=pl.Categorical),
    "arrow": pa.array(Y),
    "arrow text": pa.chunked_array([["no", "no"], ["yes", "yes"]]),
    "arrow dictionary": pa.array(["no", "no", "yes", "yes"]).dictionary_encode(),
}


@pytest.mark.parametrize("kind", BINARY_LABELS)
def test_label_kinds(kind):
    assert fragility_index(BINARY_LABELS[kind], P) == VALUE


@pytest.mark.parametrize(
    "missing",
    [
        pd.Series([0, None, 1, 1], dtype="Int64"),
        pd.Series(["a", None, "b", "b"]),
        pd.Series(["a", None, "b", "b"], dtype="category"),
        pl.Series([0, None, 1, 1]),
        pl.Series(["a", None, "b", "b"]),
        pa.array(["a", None, "b", "b"]),
    ],
    ids=["Int64", "text", "category", "polars int", "polars text", "arrow text"],
)
def test_missing_labels(missing):
    with pytest.raises(ValueError, match=r"1 missing labels \(first rows: 1\)"):
        fragility_index(missing, P)


@pytest.mark.parametrize(
    "scores",
    [
        pd.Series(P, index=[5, 4, 3, 2]),
        pd.Series(P, dtype="Float64"),
        pd.DataFrame({"p": P}),
        pl.Series(P),
        pl.DataFrame({"p": P}),
        pa.array(P),
        pa.chunked_array([P[:1], P[1:]]),
        np.array(P, object),
        tuple(P),
    ],
    ids=lambda value: f"{type(value).__module__}.{type(value).__name__}",
)
def test_score_kinds(scores):
    assert fragility_index(Y, scores) == VALUE


def test_missing_scores_in_frames():
    for scores in (
        pd.Series([0.1, None, 0.6, 0.9]),
        pd.Series([0.1, None, 0.6, 0.9], dtype="Float64"),
        pl.Series([0.1, None, 0.6, 0.9]),
        pa.array([0.1, None, 0.6, 0.9]),
    ):
        with pytest.raises(ValueError, match=r"y_score (has NaN|must hold numbers)"):
            fragility_index(Y, scores)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_in_another_order_are_refused(frame):
    y = ["cat", "dog", "owl", "cat"]
    columns = {name: [row[i] for row in THREE] for i, name in enumerate(["cat", "dog", "owl"])}
    expected = fragility_index(y, THREE, average=None)
    np.testing.assert_array_equal(fragility_index(y, frame(columns), average=None), expected)
    turned = frame({name: columns[name] for name in ("owl", "cat", "dog")})
    with pytest.raises(ValueError, match="reorder the columns or pass labels="):
        fragility_index(y, turned)
    found = fragility_index(y, turned, labels=["owl", "cat", "dog"], average=None)
    np.testing.assert_array_equal(found, expected[np.ix_([2, 0, 1], [2, 0, 1])])


def test_positive_class():
    p = np.array(P)
    both = np.column_stack([1 - p, p])
    text = np.array(["sick", "sick", "well", "well"])
    assert fragility_index(text, P) == VALUE  # the second in sorted order
    assert fragility_index(text, 1 - p, pos_label="sick") == pytest.approx(VALUE)
    assert fragility_index(text, both) == VALUE
    assert fragility_index(text, both, pos_label="sick") == pytest.approx(VALUE)
    assert fragility_index(text, both[:, ::-1], labels=["well", "sick"]) == pytest.approx(VALUE)
    assert fragility_index(text, 1 - p, labels=["well", "sick"]) == pytest.approx(VALUE)
    assert fragility_index(np.array(Y, bool), P, labels=[0, 1]) == VALUE


@pytest.mark.parametrize("n_classes", [300, 70_000])
def test_many_classes(n_classes):
    """Labels beyond one byte, and too many columns for them."""
    y = np.arange(n_classes)
    with pytest.raises(ValueError, match=r"2 columns but y_true holds \d+ classes .* more"):
        fragility_index(y, np.ones((n_classes, 2)))


def test_three_hundred_classes():
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(300), 2)
    scores = rng.random((600, 300))
    scores[np.arange(600), codes] += 0.3
    found = fragility_index(codes * 3, scores, average=None, multi_class="ovr")
    for i in (0, 7, 299):
        assert found[i] == fragility_index(codes == i, scores[:, i])


def test_long_text_labels_with_a_late_class():
    y = np.array(["a"] * 1500 + ["b"] * 1500 + ["c"])
    with pytest.raises(ValueError, match="there are 3 classes"):
        fragility_index(y, np.linspace(0, 1, 3001))


@pytest.mark.parametrize("kind", ["int", "bool", "float", "text", "object"])
def test_long_labels(kind):
    y = np.arange(200_000) % 3 == 1
    p = np.where(y, 0.7, 0.2) + 0.3 * np.sin(np.arange(200_000))
    kinds = {
        "int": y.astype(int) * 2 - 1,
        "bool": y,
        "float": y.astype(float),
        "text": np.where(y, "yes", "no"),
        "object": np.where(y, "yes", "no").astype(object),
    }
    assert fragility_index(kinds[kind], p) == fragility_index(y.astype(int), p)


def test_late_third_value_and_late_missing_value():
    y = np.arange(300_000) % 2
    p = np.linspace(0, 1, y.size)
    y[-1] = 7
    with pytest.raises(ValueError, match="there are 3 classes"):
        fragility_index(y, p)
    z = y.astype(float)
    z[-1] = np.nan
    with pytest.raises(ValueError, match="1 missing labels"):
        fragility_index(z, p)
    z[-1] = 0.5
    with pytest.raises(ValueError, match=r"such as 0\.5"):
        fragility_index(z, p)


def test_columns_named_by_numbers():
    y = [2.0, 0.0, 1.0, 0.0]
    frame = pd.DataFrame(THREE, columns=[2.0, 0.0, 1.0])
    with pytest.raises(ValueError, match=r"labels=\[2\.0, 0\.0, 1\.0\]"):
        fragility_index(y, frame)
    assert fragility_index(y, frame, labels=[2.0, 0.0, 1.0]) == fragility_index(
        y, frame[[0.0, 1.0, 2.0]]
    )


def test_warning_for_code_without_a_module():
    code = "fragility_index([0, 1, 1, 0], scores, labels=[0, 1, 2])"
    with pytest.warns(AbsentClassWarning):
        exec(code, {"fragility_index": fragility_index, "scores": THREE})


def test_wasserstein_errors():
    with pytest.raises(ValueError, match=r"logits has shape \(3, 3\); give one column"):
        wasserstein_fragility_index([0, 1, 2], np.eye(3), weight_norm=1.0)
    with pytest.raises(ValueError, match="logits is one column but there are 3 classes"):
        wasserstein_fragility_index([0, 1, 2], [0.1, 0.2, 0.3], weight_norm=1.0)
    with pytest.raises(ValueError, match="logits has NaN"):
        wasserstein_fragility_index(Y, [0.1, np.nan, 0.2, 0.3], weight_norm=1.0)
    for norm in (0.0, -1.0):
        with pytest.raises(ValueError, match="weight_norm must be a positive number"):
            wasserstein_fragility_index(Y, P, weight_norm=norm)
    with pytest.raises(ValueError, match="weight_norm must be finite"):
        wasserstein_fragility_index(Y, P, weight_norm=np.inf)


def test_input_is_not_changed():
    y, p = np.array(Y * 20_000), np.array(P * 20_000)
    weights, pair = np.full(80_000, 2.0), 1.0 - np.eye(2)
    copies = [v.copy() for v in (y, p, weights, pair)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        measure_fragility(y, p, sample_weight=weights, pair_cost=pair)
    for value, copy in zip((y, p, weights, pair), copies, strict=True):
        np.testing.assert_array_equal(value, copy)


@pytest.mark.parametrize("dtype", [int, bool, float, np.int8, "U1"])
def test_long_sorted_labels(dtype):
    """The second class begins after the first look."""
    y = np.repeat([0, 1], [200_000, 200_000]).astype(dtype)
    p = np.linspace(0, 1, y.size) + 0.5 * np.sin(np.arange(y.size))
    order = np.random.default_rng(0).permutation(y.size)
    assert fragility_index(y, p) == pytest.approx(fragility_index(y[order], p[order]), rel=1e-13)


def test_integers_that_floats_would_merge_are_refused():
    from fragility import fragility_index

    y, steps = [1, 0, 1, 1, 0, 1], np.array([4, 1, 4, 4, 4, 1])
    assert fragility_index(y, 10**15 + steps) == pytest.approx(fragility_index(y, steps), rel=1e-12)
    with pytest.raises(ValueError, match="subtract a common number"):
        fragility_index(y, 10**18 + steps)
    assert fragility_index(y, 2**60 * steps) > 0  # these are floats
