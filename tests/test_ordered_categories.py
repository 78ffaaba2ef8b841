"""Ordered categories: of two classes the later one is positive, in arrays and in files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import fragility
from fragility import FragilitySketch, Report, fragility_index, measure_fragility
from fragility.metrics import neg_fragility_index_scorer
from fragility.tables import PredictionFile, TableError, open_table
from tests.command import fragility as command
from tests.command import refused

ORDER = ["none", "low", "mid", "high"]
N = 60
RNG = np.random.default_rng(5)
IS_HIGH = RNG.random(N) < 0.4
P_HIGH = np.clip(0.3 * IS_HIGH + 0.7 * RNG.random(N), 0.01, 0.99)
LEVELS = np.where(IS_HIGH, "high", "low").tolist()
WANTED = fragility_index(IS_HIGH.astype(int), P_HIGH)
REVERSED = fragility_index(1 - IS_HIGH.astype(int), P_HIGH)


def categorical(values=LEVELS, order=ORDER, ordered=True):
    return pd.Categorical(values, categories=order, ordered=ordered)


def dictionary(values=LEVELS, order=ORDER, ordered=True):
    indices = pa.array([order.index(value) for value in values], pa.int8())
    return pa.DictionaryArray.from_arrays(indices, pa.array(order), ordered=ordered)


KINDS = {
    "pandas Series": lambda: pd.Series(categorical(), index=np.arange(N)[::-1]),
    "pandas Categorical": categorical,
    "pandas index": lambda: pd.CategoricalIndex(categorical()),
    "pandas column": lambda: pd.DataFrame({"y": categorical()}),
    "pandas of Arrow": lambda: pd.Series(dictionary(), dtype=pd.ArrowDtype(dictionary().type)),
    "polars Enum": lambda: pl.Series(LEVELS, dtype=pl.Enum(ORDER)),
    "polars column": lambda: pl.DataFrame({"y": pl.Series(LEVELS, dtype=pl.Enum(ORDER))}),
    "Arrow": dictionary,
    "Arrow column": lambda: pa.table({"y": dictionary()}),
    "Arrow chunks": lambda: pa.chunked_array([dictionary(LEVELS[:20]), dictionary(LEVELS[20:])]),
}
UNORDERED = {
    "pandas": lambda: pd.Series(categorical(ordered=False)),
    "polars": lambda: pl.Series(LEVELS, dtype=pl.Categorical),
    "Arrow": lambda: dictionary(ordered=False),
    "text": lambda: LEVELS,
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_later_category_is_positive(kind):
    y = KINDS[kind]()
    assert WANTED != REVERSED
    assert fragility_index(y, P_HIGH) == WANTED
    assert measure_fragility(y, P_HIGH).labels.tolist() == ["high", "low"]


@pytest.mark.parametrize("kind", UNORDERED)
def test_categories_without_order_go_by_alphabet(kind):
    assert fragility_index(UNORDERED[kind](), P_HIGH) == REVERSED


def test_what_the_user_says_comes_first():
    y = pd.Series(categorical())
    assert fragility_index(y, P_HIGH, pos_label="low") == REVERSED
    assert fragility_index(y, P_HIGH, labels=["high", "low"]) == REVERSED
    assert fragility_index(y, P_HIGH, labels=["low", "high"]) == WANTED


@pytest.mark.parametrize("ordered", [True, False])
def test_columns_stay_in_the_order_of_the_alphabet_as_in_scikit_learn(ordered):
    y = pd.Series(categorical(ordered=ordered))
    columns = np.column_stack([P_HIGH, 1 - P_HIGH])  # high, low
    assert fragility_index(y, columns) == pytest.approx(WANTED, rel=1e-12)
    report = Report.from_predictions(y, columns)
    assert report.positive == ("high" if ordered else "low")
    assert report.to_metrics()["model/log_loss"] == pytest.approx(log_loss(LEVELS, columns))
    with pytest.raises(ValueError, match="reorder the columns or pass labels"):
        fragility_index(y, pd.DataFrame(columns[:, ::-1], columns=["low", "high"]))


def test_several_classes_stay_in_the_order_of_the_alphabet():
    levels = np.array(ORDER)[RNG.integers(0, 4, 200)]
    scores = RNG.dirichlet(np.ones(4), 200)
    y = pd.Series(categorical(levels))
    assert fragility_index(y, scores) == fragility_index(levels, scores)
    assert measure_fragility(y, scores).labels.tolist() == sorted(ORDER)


def test_numbers_and_truth_values_keep_their_order_too():
    y = pd.Series(pd.Categorical(np.where(IS_HIGH, 1, 2), categories=[2, 1], ordered=True))
    assert fragility_index(y, P_HIGH) == WANTED
    y = pd.Series(pd.Categorical(~IS_HIGH, categories=[True, False], ordered=True))
    assert fragility_index(y, P_HIGH) == WANTED


def test_chunks_that_contradict_each_other_are_refused():
    y = pa.chunked_array([dictionary(LEVELS[:30]), dictionary(LEVELS[30:], order=ORDER[::-1])])
    with pytest.raises(ValueError, match=r"'high', 'low' in both orders.*pos_label"):
        fragility_index(y, P_HIGH)
    assert fragility_index(y, P_HIGH, pos_label="high") == WANTED


def test_other_measurements_follow():
    y = pd.Series(categorical())
    costs = {"error_cost": 10.0}
    for measured in (
        lambda y: fragility.fragility_ratio(y, P_HIGH),
        lambda y: fragility.best_policy(y, P_HIGH, **costs).upper,
        lambda y: fragility.deferral_curve(y, P_HIGH, **costs).cost,
        lambda y: fragility.compare_fragility(y, P_HIGH, P_HIGH**2).difference,
    ):
        assert np.array_equal(measured(y), measured(IS_HIGH.astype(int)))
    # The logits of a linear model are those of the second class in sorted order.
    logits = -np.log(P_HIGH / (1 - P_HIGH))
    linear = fragility.wasserstein_fragility_index(y, logits, weight_norm=1.0)
    assert linear == fragility.wasserstein_fragility_index(LEVELS, logits, weight_norm=1.0)
    assert np.isfinite(linear)
    report = Report.from_predictions(y, P_HIGH)
    assert report.positive == "high"
    by_code = Report.from_predictions(IS_HIGH.astype(int), P_HIGH)
    assert report.to_metrics() == pytest.approx(by_code.to_metrics(), nan_ok=True)


def test_a_sketch_keeps_the_order_of_its_first_batch():
    y = pd.Series(categorical())
    sketch = FragilitySketch()
    for part in (slice(0, 30), slice(30, N)):
        sketch.update(y[part], P_HIGH[part])
    again = FragilitySketch.from_bytes(sketch.to_bytes())
    parts = [
        FragilitySketch().update(y[part], P_HIGH[part]) for part in (slice(0, 30), slice(30, N))
    ]
    for state in (sketch, again, parts[0] + parts[1], FragilitySketch().merge(sketch)):
        assert state.fragility().value == pytest.approx(WANTED, rel=1e-6)
    with pytest.raises(ValueError, match="the positive class"):
        sketch.merge(FragilitySketch().update(LEVELS, P_HIGH))


def test_estimators_and_their_columns():
    X, y = P_HIGH[:, np.newaxis], pd.Series(categorical())
    model = LogisticRegression().fit(X, LEVELS)
    assert model.classes_.tolist() == ["high", "low"]
    proba = model.predict_proba(X)
    wanted = fragility_index(IS_HIGH.astype(int), proba[:, 0])
    assert fragility_index(y, proba) == pytest.approx(wanted, rel=1e-12)
    assert -neg_fragility_index_scorer(model, X, y) == pytest.approx(wanted, rel=1e-9)
    assert Report.from_estimators([model], X, y).positive == "high"
    assert Report.from_estimators([model], X, y, pos_label="low").positive == "low"
    assert Report.from_estimators([model], X, LEVELS).positive == "low"


def write(path, table):
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".arrows":
        with pa.ipc.new_stream(str(path), table.schema) as stream:
            stream.write_table(table, max_chunksize=7)
    else:
        with pa.ipc.new_file(str(path), table.schema) as stream:
            stream.write_table(table)
    return path


FRAMES = {
    "pandas.parquet": lambda p: pd.DataFrame({"y": categorical(), "p": P_HIGH}).to_parquet(p),
    "rowgroups.parquet": lambda p: pd.DataFrame({"y": categorical(), "p": P_HIGH}).to_parquet(
        p, row_group_size=7
    ),
    "pandas.feather": lambda p: pd.DataFrame({"y": categorical(), "p": P_HIGH}).to_feather(p),
    "polars.parquet": lambda p: pl.DataFrame(
        {"y": pl.Series(LEVELS, dtype=pl.Enum(ORDER)), "p": P_HIGH}
    ).write_parquet(p),
    "polars.arrow": lambda p: pl.DataFrame(
        {"y": pl.Series(LEVELS, dtype=pl.Enum(ORDER)), "p": P_HIGH}
    ).write_ipc(p),
    "stream.arrows": lambda p: write(p, pa.table({"y": dictionary(), "p": P_HIGH})),
}


@pytest.mark.parametrize("name", FRAMES)
def test_files_keep_the_order(tmp_path, name):
    path = tmp_path / name
    FRAMES[name](path)
    file = PredictionFile(open_table(path), label="y", models={"p": ["p"]})
    assert (file.classes, file.positive) == (["high", "low"], "high")
    read = PredictionFile(open_table(path), label="y", models={"p": ["p"]})
    assert read.read().codes.tolist() == [1 - int(high) for high in IS_HIGH]
    assert read.positive == "high"


def test_the_command_keeps_the_order(tmp_path):
    path = tmp_path / "o.parquet"
    FRAMES["pandas.parquet"](path)
    asked = ("evaluate", path, "--label", "y", "--score", "p", "--json")
    for options in ((), ("--hold", "0")):
        ended = command(*asked, *options)
        assert ended.code == 0
        assert '"positive": "high"' in ended.out
    for options in (("--positive", "low"), ("--classes", "high,low")):
        # The scores are those of high: told so, since the positive class is low then.
        assert "gives the class high higher scores than low" in command(*asked, *options).err


def test_a_file_without_order_goes_by_alphabet(tmp_path):
    table = pa.table({"y": dictionary(ordered=False), "p": P_HIGH})
    file = PredictionFile(
        open_table(write(tmp_path / "u.parquet", table)), label="y", models={"p": ["p"]}
    )
    assert file.positive == "low"


def test_columns_of_a_file_are_found_by_name(tmp_path):
    table = pa.table({"y": dictionary(), "p_low": 1 - P_HIGH, "p_high": P_HIGH})
    path = write(tmp_path / "c.parquet", table)
    file = PredictionFile(open_table(path), label="y", models={"m": ["p_low", "p_high"]})
    assert file.positive == "high"
    assert np.array_equal(file.read().scores["m"][:, 0], P_HIGH)


def test_an_order_that_the_file_does_not_hold_is_asked_for(tmp_path):
    """Without dictionary pages the categories come back in the order of the rows."""
    path = tmp_path / "n.parquet"
    pq.write_table(pa.table({"y": dictionary(), "p": P_HIGH}), path, use_dictionary=False)
    asked = {"label": "y", "models": {"p": ["p"]}}
    with pytest.raises(TableError, match=r"n.parquet: column 'y'.*order.*--positive"):
        _ = PredictionFile(open_table(path), **asked).positive
    assert PredictionFile(open_table(path), **asked, positive="high").positive == "high"
    assert PredictionFile(open_table(path), **asked, classes=["low", "high"]).positive == "high"
    asked = ("evaluate", path, "--label", "y", "--score", "p")
    refused(command(*asked), "--positive")
    assert command(*asked, "--positive", "high").code == 0


def test_parts_of_a_file_that_contradict_each_other(tmp_path):
    parts = [
        pa.table({"y": dictionary(LEVELS[:30]), "p": P_HIGH[:30]}),
        pa.table({"y": dictionary(LEVELS[30:], order=ORDER[::-1]), "p": P_HIGH[30:]}),
    ]
    path = tmp_path / "two.arrows"
    with pa.ipc.new_stream(str(path), parts[0].schema) as stream:
        for part in parts:
            stream.write_table(part)
    for action in ("classes", "read"):
        file = PredictionFile(open_table(path), label="y", models={"p": ["p"]})
        with pytest.raises(TableError, match=r"in both orders.*--positive"):
            _ = file.classes if action == "classes" else file.read()
