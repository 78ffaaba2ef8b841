"""Frames of pandas and polars and tables of Arrow: the same values are the same model."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fragility.exceptions import TableError, UnseenValuesWarning
from fragility.pipelines import ColumnReader, load_model, predict_frame, save_model, train_pipeline

from .patient_table import patients

ORDER = ["I", "II", "III"]
LIBRARIES = {
    "pandas": pd.DataFrame,
    "polars": lambda data: pl.DataFrame(data, strict=False),
    "Arrow": pa.table,
}


def columns(**changes):
    """The table of patients as lists of plain values, None where a value is missing."""
    return {name: values.tolist() for name, values in patients().items()} | changes


def with_gaps():
    data = columns()
    for name, rows in (("dose", (3, 9)), ("stage", (4, 5, 6)), ("smoker", (7,))):
        for row in rows:
            data[name][row] = None
    return data


def frames(data):
    return {name: make(data) for name, make in LIBRARIES.items()}


def same_values(frame):
    return {
        name: np.asarray(frame[name]).tolist()
        for name in getattr(frame, "column_names", frame.columns)
    }


def check_same(found, **options):
    """The same model and predictions from all three, to the last bit."""
    made = {name: train_pipeline(frame, "ill", **options) for name, frame in found.items()}
    expected = made["pandas"]
    for one in made.values():
        for name in ("coef_", "intercept_", "classes_"):
            wanted, given = (getattr(t.pipeline[-1], name) for t in (expected, one))
            np.testing.assert_array_equal(given, wanted)
            assert given.dtype == wanted.dtype
        assert one.pipeline[0].levels_ == expected.pipeline[0].levels_
        assert one.summary == expected.summary
        for frame in found.values():
            predicted = predict_frame(one.pipeline, frame, threshold=0.8)
            assert type(predicted) is type(frame)
            assert same_values(predicted) == same_values(
                predict_frame(expected.pipeline, found["pandas"], threshold=0.8)
            )
    return expected


def test_kinds_of_columns():
    trained = check_same(frames(columns()))
    assert trained.summary.categorical == {"stage": 3, "smoker": 2}


@pytest.mark.parametrize("options", [{"impute": True}, {"drop_missing": True, "impute": True}])
def test_missing_values(options):
    trained = check_same(frames(with_gaps()), **options)
    assert trained.summary.imputed == {"dose": 2, "stage": 3, "smoker": 1}


def test_rows_are_dropped():
    found = frames(with_gaps())
    models = [train_pipeline(frame, "ill", drop_missing=True) for frame in found.values()]
    assert [model.summary.n_dropped for model in models] == [6, 6, 6]
    for model in models:
        np.testing.assert_array_equal(model.pipeline[-1].coef_, models[0].pipeline[-1].coef_)


def test_not_a_number_is_missing_in_every_library():
    data = columns()
    data["dose"][4] = float("nan")
    for frame in frames(data).values():
        with pytest.raises(TableError, match=r"'dose' in 1 of 120 rows \(first: 4\)"):
            train_pipeline(frame, "ill")


@pytest.mark.parametrize("ordered", [True, False])
def test_categories(ordered):
    data = columns()
    stage, ill = data["stage"], data["ill"]
    index = pa.array([ORDER.index(value) for value in stage], pa.int8())
    found = {
        "pandas": pd.DataFrame(data).assign(
            stage=pd.Categorical(stage, ORDER, ordered=ordered),
            ill=pd.Categorical(ill, ["yes", "no"], ordered=ordered),
        ),
        "polars": pl.DataFrame(data).with_columns(
            pl.Series("stage", stage, pl.Enum(ORDER) if ordered else pl.Categorical),
            pl.Series("ill", ill, pl.Enum(["yes", "no"]) if ordered else pl.Categorical),
        ),
        "Arrow": pa.table(
            data
            | {
                "stage": pa.DictionaryArray.from_arrays(index, ORDER, ordered=ordered),
                "ill": pa.array(ill).dictionary_encode(),
            }
        ),
    }
    trained = check_same(found)
    assert trained.pipeline[0].levels_["stage"] == ORDER
    assert trained.pipeline.classes_.tolist() == ["no", "yes"]


def test_text_that_was_made_a_category_may_look_like_numbers():
    codes = [str(i % 30) for i in range(120)]
    found = {
        "pandas": pd.DataFrame(columns()).assign(ward=pd.Categorical(codes)),
        "polars": pl.DataFrame(columns()).with_columns(pl.Series("ward", codes, pl.Categorical)),
        "Arrow": pa.table(columns(ward=pa.array(codes).dictionary_encode())),
    }
    assert check_same(found, penalty="l2").summary.categorical["ward"] == 30
    for frame in frames(columns(ward=codes)).values():
        with pytest.raises(TableError, match="30 different numbers as text, such as '0'"):
            train_pipeline(frame, "ill")


def test_decimals_and_weights():
    data = columns()
    dose = [Decimal(str(value)) for value in data["dose"]]
    found = frames(data | {"dose": dose, "w": [i % 4 for i in range(120)]})
    trained = check_same(found, weight="w")
    assert trained.summary.numeric == ("age", "dose")


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([0, 1], [0, 1]),
        ([2.0, 5.0], [2, 5]),
        ([True, False], [False, True]),
        (["b", "a"], ["a", "b"]),
    ],
)
def test_labels(labels, classes):
    ill = [labels[value == "yes"] for value in columns()["ill"]]
    trained = check_same(frames(columns(ill=ill)))
    assert trained.pipeline.classes_.tolist() == classes
    assert type(trained.pipeline.classes_.tolist()[0]) is type(classes[0])


DATES = {
    "moments": [datetime(2020, 1, 1) + timedelta(hours=i) for i in range(120)],
    "days": [date(2020, 1, 1) + timedelta(days=i) for i in range(120)],
    "spans": [timedelta(hours=i) for i in range(120)],
    "text": [f"{date(2020, 1, 1) + timedelta(days=i)}" for i in range(120)],
}


@pytest.mark.parametrize("kind", DATES)
def test_dates_are_refused_with_the_same_sentence(kind):
    said = set()
    for frame in frames(columns(extra=DATES[kind])).values():
        with pytest.raises(TableError, match="'extra' holds dates or times") as error:
            train_pipeline(frame, "ill")
        said.add(str(error.value))
    assert len(said) == 1


def test_other_sentences_are_the_same_too():
    data = columns()
    model = train_pipeline(pd.DataFrame(data), "ill").pipeline

    def train(**changes):
        return lambda make: train_pipeline(make(columns(**changes)), "ill")

    def predict(**changes):
        return lambda make: predict_frame(model, make(columns(**changes)))

    cases = {
        "such as 'x0', 'x1', 'x2'": train(extra=[f"x{i}" for i in range(120)]),
        r"no number is in 1 of 120 rows \(first: 7": train(
            extra=["none" if i == 7 else str(i) for i in range(120)]
        ),
        "infinite values in 120 of 120": train(dose=[float("inf")] * 120),
        r"list \(120\)": train(extra=[[1], [2]] * 60),
        "'ill' holds dates": train(ill=DATES["days"]),
        "one class only": train(ill=[1] * 120),
        "must hold numbers, as in training; it holds dates or times, such as '2020-01-01'": predict(
            dose=DATES["days"]
        ),
        "no number is in 120 of 120 rows .*such as 'old'": predict(age=["old"] * 120),
        "'stage' in 120 of 120 rows": predict(stage=[None] * 120),
        "Did you mean 'age' for 'agee'": lambda make: train_pipeline(
            make(data), "ill", features=["agee"]
        ),
        "no rows": lambda make: predict_frame(model, make({n: v[:0] for n, v in data.items()})),
    }
    for words, call in cases.items():
        said = set()
        for make in LIBRARIES.values():
            with pytest.raises(TableError, match=words) as error:
                call(make)
            said.add(str(error.value))
        assert len(said) == 1, said


def test_a_file_and_values_of_another_type(tmp_path):
    """Trained on polars, saved, and asked with Arrow: text and other numbers."""
    pipeline = train_pipeline(pl.DataFrame(columns()), "ill").pipeline
    save_model(pipeline, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    data = columns()
    other = data | {"age": list(map(str, data["age"])), "smoker": list(map(int, data["smoker"]))}
    expected = predict_frame(pipeline, pd.DataFrame(data))["probability_yes"].tolist()
    for frame in frames(other).values():
        found = predict_frame(loaded, frame)
        assert np.asarray(found["probability_yes"]).tolist() == expected
        with pytest.warns(UnseenValuesWarning, match="120 of 120 rows have values not seen"):
            predict_frame(loaded, frames(columns(stage=["IV"] * 120))["polars"])


def test_a_truth_value_and_its_numbers_are_one_level():
    reader = ColumnReader(categorical=["a"]).fit(pl.DataFrame({"a": [True, False]}))
    for spelled in (["1", "0"], [1, 0], [1.0, 0.0], ["TRUE", "false"], [True, False]):
        read = reader.transform(pa.table({"a": spelled}))
        assert read["a"].tolist() == [True, False]


def test_frames_that_are_refused():
    with pytest.raises(TableError, match=r"got polars\.LazyFrame\. Collect it first"):
        train_pipeline(pl.DataFrame(columns()).lazy(), "ill")
    twice = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(TableError, match="Several columns have the same name: 'a'"):
        train_pipeline(twice, "a")
