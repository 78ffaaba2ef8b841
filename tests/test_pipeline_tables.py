"""Tables that a pipeline takes, whatever their types, and those that it refuses."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from fragility import KL
from fragility.exceptions import InfeasibleTargetError, TableError, UnseenValuesWarning
from fragility.pipelines import predict_frame, train_pipeline

from .patient_table import CATEGORICAL, patients


def refusal(frame, label="ill", **options):
    with pytest.raises(TableError) as error:
        train_pipeline(frame, label, **options)
    message = str(error.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


class TestLabels:
    @pytest.mark.parametrize(
        ("column", "classes"),
        [
            ([0, 1], [0, 1]),
            ([2.0, 5.0], [2, 5]),
            ([True, False], [False, True]),
            (pd.array([True, False], dtype="boolean"), [False, True]),
            (pd.array([3, 4], dtype="Int64"), [3, 4]),
            (pd.Categorical(["b", "a"]), ["a", "b"]),
            (pd.array(["b", "a"], dtype="string[pyarrow]"), ["a", "b"]),
            (np.array(["b", "a"], dtype=object), ["a", "b"]),
            (pd.Categorical([7, 5]), [5, 7]),
            (np.array([Decimal(7), Decimal(5)], dtype=object), [5, 7]),
        ],
    )
    def test_stay_what_they_are(self, column, classes):
        codes = (patients()["ill"] == "yes").astype(int).to_numpy()
        data = patients().assign(ill=pd.Series(column).take(codes).array)
        trained = train_pipeline(data, "ill")
        found = trained.pipeline.classes_.tolist()
        assert found == classes
        assert [type(label) for label in found] == [type(label) for label in classes]
        made = predict_frame(trained.pipeline, data)["prediction"]
        assert set(made.tolist()) == set(classes)
        assert [label for label, _ in trained.summary.classes] == classes

    def test_that_are_none_are_refused(self):
        data = patients()
        assert "one class only, 'no'" in refusal(data.assign(ill="no"))
        rare = data.assign(ill=["one", *data["ill"][1:]])
        assert "these have one: 'one'" in refusal(rare)
        assert "such as 0.5" in refusal(data.assign(ill=np.linspace(0, 59.5, 120)))
        assert "1100 classes" in refusal(patients(2200).assign(ill=np.arange(2200) // 2))
        assert "dates" in refusal(data.assign(ill=pd.Timestamp("2020-01-01")))
        mixed = data.assign(ill=pd.Series(["a", 1] * 60, dtype=object))
        assert "it holds 'int', 'str'" in refusal(mixed)
        assert "too long" in refusal(data.assign(ill=pd.Series([10**30, 1] * 60, dtype=object)))
        gaps = data.astype({"ill": object})
        gaps.loc[[4, 8], "ill"] = None
        message = refusal(gaps, impute=True)
        assert "empty in 2 of 120 rows (first: 4, 8)" in message
        assert "never filled in" in message


class TestRefusedTables:
    def test_names(self):
        data = patients()
        assert "Did you mean 'ill' for 'il'" in refusal(data, "il")
        assert "Did you mean 'dose' for 'doses'" in refusal(data, weight="doses")
        assert "Did you mean 'smoker' for 'smokers'" in refusal(data, exclude=["smokers"])
        assert "Did you mean 'age' for 'agee'" in refusal(data, features=["agee"])
        assert "'ill' is the label" in refusal(data, features=["age", "ill"])
        assert "'age' is the weight" in refusal(data, features=["age"], weight="age")
        assert "both the label and the weight" in refusal(data, weight="ill")
        assert "No feature column is left" in refusal(data, exclude=["age", "dose", *CATEGORICAL])
        assert "same name: 'age'" in refusal(pd.concat([data, data[["age"]]], axis=1))
        assert "must be text" in refusal(data.rename(columns={"age": 0}))
        assert "of pandas or polars, or a table of Arrow; got builtins.dict" in refusal(
            {"age": [1]}
        )
        assert "no rows" in refusal(data[:0])
        with pytest.raises(ValueError, match="must be a list"):
            train_pipeline(data, "ill", exclude="age")

    def test_gaps(self):
        data = patients()
        data.loc[[2, 5, 6], "dose"] = np.nan
        data.loc[7, "stage"] = None
        message = refusal(data)
        assert "'dose' in 3 of 120 rows (first: 2, 5, 6)" in message
        assert "'stage' in 1 of 120 rows (first: 7)" in message
        assert "--impute" in message
        assert "--drop-missing" in message
        assert "without a value in any row: 'dose'" in refusal(data.assign(dose=np.nan))
        alternating = patients()
        alternating.loc[::2, "dose"] = np.nan
        alternating.loc[1::2, "stage"] = None
        assert "All 120 rows miss some value" in refusal(alternating, drop_missing=True)
        weighted = patients().assign(weight=1.0)
        weighted.loc[3, "weight"] = np.nan
        assert "The weight column 'weight' is empty in 1" in refusal(weighted, weight="weight")

    @pytest.mark.parametrize(
        ("column", "words"),
        [
            (pd.date_range("2020-01-01", periods=120), "dates or times"),
            (pd.date_range("2020-01-01", periods=120).strftime("%Y-%m-%d"), "dates or times"),
            (pd.date_range("2020-01-01", periods=120).strftime("%d.%m.%y 12:30"), "dates or times"),
            (pd.to_timedelta(range(120), unit="h"), "dates or times"),
            ([f"patient {i}" for i in range(120)], "120 different values in 120 rows"),
            ([str(i) for i in range(100, 220)], "numbers as text"),
            ([*map(str, range(118)), "n/a?", "none"], "no number is in 2 of 120 rows (first: 118"),
            (pd.Series([1, "a"] * 60, dtype=object), "int (60), str (60)"),
            (pd.Series([[1], [2]] * 60, dtype=object), "list (120)"),
            ([1.0, np.inf] * 60, "infinite values in 60 of 120 rows (first: 1, 3"),
            ([1j, 2j] * 60, "complex (120)"),
            ([1e200, -1e200] * 60, "from -1e+200 to 1e+200, differ too little or too much"),
            ([1.0, 1.0 + 1e-14] * 60, "cannot be standardised"),
            ([1e-200, 2e-200] * 60, "cannot be standardised"),
            (pd.cut(range(120), 3), "Interval (120)"),
        ],
    )
    def test_columns_that_are_no_features(self, column, words):
        data = patients().assign(extra=column)
        message = refusal(data)
        assert words in message
        assert "'extra'" in message
        train_pipeline(data, "ill", exclude=["extra"])

    def test_more_categories_on_demand(self):
        data = patients().assign(ward=[f"w{i % 60}" for i in range(120)])
        assert "max_categories=60" in refusal(data)
        options = {"penalty": "l2", "max_categories": 60}
        assert train_pipeline(data, "ill", **options).summary.categorical["ward"] == 60
        codes = data.assign(ward=pd.Categorical(np.arange(120) % 30))
        assert train_pipeline(codes, "ill", penalty="l2").summary.categorical["ward"] == 30
        mixed = data.assign(ward=["1", "2", "3+"] * 40)
        assert train_pipeline(mixed, "ill").summary.categorical["ward"] == 3

    @pytest.mark.parametrize("weight", ["many", -1.0, np.inf, pd.Timestamp("2020-01-01")])
    def test_weights(self, weight):
        data = patients().assign(weight=pd.Series([weight, *[1.0] * 119], dtype=object))
        assert "'weight' must hold finite numbers of zero or more" in refusal(data, weight="weight")

    def test_all_constant_or_no_weight(self):
        data = patients()[["ill"]].assign(unit="mg", weight=0.0)
        assert "every column has one value only (unit)" in refusal(data, exclude=["weight"])
        assert "zero in every row" in refusal(patients().assign(w=0), weight="w")

    def test_parameters_that_mean_nothing(self):
        data = patients()
        for options, words in (
            ({"method": "best"}, "method must be one of"),
            ({"method": "erm", "ambiguity": "kl"}, "takes no ambiguity"),
            ({"method": "erm", "norm": 1}, "takes no ambiguity"),
            ({"method": "erm", "radius": 0.1}, "radius means nothing"),
            ({"method": "dro", "target": 0.4}, "target means nothing"),
            ({"method": "dro", "slack": 0.2}, "slack means nothing"),
            ({"ambiguity": "kl", "norm": 1}, "belong to ambiguity="),
            ({"ambiguity": KL(), "label_cost": 1.0}, "belong to ambiguity="),
            ({"max_categories": 1}, "max_categories must be"),
            ({"loss": "squared"}, "loss must be one of"),
        ):
            with pytest.raises(ValueError, match=words):
                train_pipeline(data, "ill", **options)
        with pytest.raises(InfeasibleTargetError):
            train_pipeline(data, "ill", target=0.01)


class TestTypes:
    """The same values in other types are the same table."""

    @pytest.mark.parametrize(
        "types",
        [
            {"age": "Int64", "dose": "Float64", "smoker": "boolean", "stage": "string"},
            {"age": "float32", "stage": "category", "smoker": "category"},
            {"age": object, "dose": object, "smoker": object, "stage": object},
            {
                "age": "int64[pyarrow]",
                "dose": "double[pyarrow]",
                "smoker": "bool[pyarrow]",
                "stage": "string[pyarrow]",
                "ill": "string[pyarrow]",
            },
        ],
    )
    @pytest.mark.parametrize("impute", [False, True])
    def test_do_not_matter(self, types, impute):
        plain = patients()
        other = plain.astype(types)
        expected = train_pipeline(plain, "ill", impute=impute).pipeline
        found = train_pipeline(other, "ill", impute=impute).pipeline
        np.testing.assert_allclose(found[-1].coef_, expected[-1].coef_, rtol=1e-9)
        for trained in (expected, found):
            np.testing.assert_array_equal(
                trained.predict_proba(plain), trained.predict_proba(other)
            )
        if impute:
            other = other.copy()
            other.loc[1, ["age", "smoker", "stage"]] = pd.NA
            plain = plain.astype({"age": float, "smoker": object})
            plain.loc[1, ["age", "smoker", "stage"]] = np.nan
            np.testing.assert_array_equal(
                expected.predict_proba(plain), expected.predict_proba(other)
            )

    def test_of_another_file(self):
        levels = {"stage": {"I": "1", "II": "2", "III": "3+"}}
        data = patients().replace(levels)
        pipeline = train_pipeline(data, "ill").pipeline
        some = data[data["stage"] != "3+"]
        expected = pipeline.predict_proba(some)
        for other in (
            some.astype({"stage": int}),
            some.astype({"stage": float, "age": str, "dose": str}),
            some.astype({"smoker": int}),
            some.assign(smoker=some["smoker"].map({True: "TRUE", False: "false"})),
            some.assign(age=some["age"].map(Decimal), extra=pd.Timestamp("2020-01-01")),
            some[some.columns[::-1]],
        ):
            np.testing.assert_array_equal(pipeline.predict_proba(other), expected)

    def test_truth_values_of_numpy_and_python_are_one_kind(self):
        data = patients()
        mixed = [np.bool_(v) if i % 2 else bool(v) for i, v in enumerate(data["smoker"])]
        other = data.assign(smoker=pd.Series(mixed, dtype=object))
        one, two = (train_pipeline(frame, "ill").pipeline for frame in (data, other))
        np.testing.assert_array_equal(one[-1].coef_, two[-1].coef_)
        with_numbers = pd.Series([True, 2] * 60, dtype=object)
        assert "bool (60), int (60)" in refusal(data.assign(smoker=with_numbers))

    def test_text_is_not_read_twice(self):
        data = patients().replace({"stage": {"I": "01", "II": "1", "III": "1.0"}})
        pipeline = train_pipeline(data, "ill").pipeline
        changed = data.assign(stage="001")
        with pytest.warns(UnseenValuesWarning, match="120 of 120 rows"):
            pipeline.predict(changed)

    def test_csv_and_back(self, tmp_path):
        data = patients().astype({"smoker": object})
        data.loc[3, "smoker"] = None
        data.to_csv(tmp_path / "data.csv", index=False)
        read = pd.read_csv(tmp_path / "data.csv")
        one, other = (train_pipeline(d, "ill", impute=True).pipeline for d in (data, read))
        np.testing.assert_array_equal(one.predict_proba(data), other.predict_proba(read))
