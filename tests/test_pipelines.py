"""From a data frame to a trained pipeline, and from there to predictions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline

from fragility import (
    KL,
    DROClassifier,
    ERMClassifier,
    SatisficingClassifier,
    Wasserstein,
    certify,
)
from fragility.exceptions import TableError, UnseenValuesWarning
from fragility.pipelines import ColumnReader, predict_frame, train_pipeline

from .patient_table import CATEGORICAL, NUMERIC, patients, rows_of
from .reference.model_inputs import inputs as literal_inputs

HEART = (
    Path(os.environ.get("FRAGILITY_DATA", Path(__file__).parents[2] / "shared" / "data"))
    / "heart"
    / "heart.csv"
)


class TestModel:
    @pytest.mark.parametrize(
        ("options", "estimator"),
        [
            ({"slack": 0.1}, SatisficingClassifier(slack=0.1)),
            (
                {"norm": 1, "label_cost": 2.0, "slack": 0.3, "penalty": "l2", "alpha": 0.01},
                SatisficingClassifier(
                    ambiguity=Wasserstein(norm=1, label_cost=2.0),
                    slack=0.3,
                    penalty="l2",
                    alpha=0.01,
                ),
            ),
            (
                {"ambiguity": "kl", "target_ratio": 1.1, "class_weight": "balanced"},
                SatisficingClassifier(ambiguity=KL(), target_ratio=1.1, class_weight="balanced"),
            ),
            (
                {"target": 0.6, "radius": 0.2, "loss": "hinge"},
                SatisficingClassifier("hinge", target=0.6, radius=0.2),
            ),
            ({"method": "dro"}, DROClassifier()),
            ({"method": "dro", "radius": 0.02}, DROClassifier(radius=0.02)),
            ({"method": "erm", "penalty": "l1"}, ERMClassifier(penalty="l1")),
            ({"method": "erm"}, ERMClassifier(penalty=None)),
        ],
    )
    def test_is_the_estimator_on_inputs_written_out(self, options, estimator):
        data = patients()
        X = np.array(literal_inputs(rows_of(data), NUMERIC, CATEGORICAL))
        trained = train_pipeline(data, "ill", **options)
        expected = estimator.fit(X, data["ill"].to_numpy(dtype=str))
        np.testing.assert_allclose(trained.pipeline[:-1].transform(data), X, atol=1e-12)
        found = trained.pipeline[-1]
        assert type(found) is type(expected)
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found.intercept_, expected.intercept_, rtol=1e-5, atol=1e-6)
        assert found.classes_.tolist() == ["no", "yes"]

    def test_gaps_are_filled_by_medians_and_most_frequent_levels(self):
        data = patients()
        data.loc[[3, 9], "dose"] = np.nan
        data.loc[[4, 5, 6], "stage"] = None
        trained = train_pipeline(data, "ill", impute=True, slack=0.1)
        X = np.array(literal_inputs(rows_of(data), NUMERIC, CATEGORICAL))
        np.testing.assert_allclose(trained.pipeline[:-1].transform(data), X, atol=1e-12)
        assert trained.summary.imputed == {"dose": 2, "stage": 3}
        np.testing.assert_allclose(
            trained.pipeline[-1].coef_,
            SatisficingClassifier(slack=0.1).fit(X, data["ill"].to_numpy(dtype=str)).coef_,
            rtol=1e-6,
        )

    def test_rows_with_gaps_are_dropped_on_demand_only(self):
        data = patients()
        gaps = data.copy()
        gaps.loc[[3, 9], "dose"] = np.nan
        gaps.loc[7, "ill"] = None
        trained = train_pipeline(gaps, "ill", drop_missing=True)
        expected = train_pipeline(data.drop([3, 7, 9]), "ill")
        assert trained.summary.n_dropped == 3
        assert trained.summary.n_samples == 117
        np.testing.assert_array_equal(trained.pipeline[-1].coef_, expected.pipeline[-1].coef_)
        both = train_pipeline(gaps, "ill", drop_missing=True, impute=True)
        assert both.summary.n_dropped == 1
        assert both.summary.imputed == {"dose": 2}

    def test_weights_are_those_of_the_estimator_and_not_a_feature(self):
        data = patients().assign(weight=np.random.default_rng(1).integers(0, 4, 120))
        trained = train_pipeline(data, "ill", weight="weight", slack=0.1)
        X = trained.pipeline[:-1].transform(data)
        expected = SatisficingClassifier(slack=0.1).fit(
            X, data["ill"].to_numpy(str), data["weight"]
        )
        np.testing.assert_array_equal(trained.pipeline[-1].coef_, expected.coef_)
        assert "weight" not in trained.summary.numeric
        figures = trained.pipeline.predict_proba(data)
        assert trained.summary.log_loss == pytest.approx(
            log_loss(data["ill"], figures, sample_weight=data["weight"])
        )
        assert trained.summary.auc == pytest.approx(
            roc_auc_score(data["ill"], figures[:, 1], sample_weight=data["weight"])
        )

    @pytest.mark.parametrize("method", ["satisficing", "dro", "erm"])
    def test_several_classes(self, method):
        X, y = load_iris(return_X_y=True, as_frame=True)
        trained = train_pipeline(X.assign(kind=y), "kind", method=method, loss="max_logistic")
        assert trained.pipeline[-1].coef_.shape == (3, 4)
        assert trained.summary.classes == ((0, 50), (1, 50), (2, 50))
        proba = trained.pipeline.predict_proba(X)
        pairs = [
            roc_auc_score(y[y.isin([i, j])] == i, proba[y.isin([i, j]), i])
            for i in range(3)
            for j in range(3)
            if i != j
        ]
        assert trained.summary.auc == pytest.approx(np.mean(pairs))
        made = predict_frame(trained.pipeline, X)
        assert list(made)[2:] == ["probability_0", "probability_1", "probability_2"]
        assert trained.summary.accuracy == np.mean(made["prediction"] == y)

    def test_many_levels_make_a_sparse_matrix_and_the_same_model(self):
        data = patients(200).drop(columns=["age", "dose"])
        data["ward"] = [f"w{i % 40}" for i in range(200)]
        trained = train_pipeline(data, "ill", penalty="l2", alpha=0.01, slack=0.1)
        sparse = trained.pipeline[:-1].transform(data)
        X = np.array(literal_inputs(rows_of(data), [], ["stage", "smoker", "ward"]))
        np.testing.assert_array_equal(sparse.toarray(), X)
        expected = SatisficingClassifier(penalty="l2", alpha=0.01, slack=0.1).fit(
            X, data["ill"].to_numpy(str)
        )
        np.testing.assert_allclose(trained.pipeline[-1].coef_, expected.coef_, atol=1e-6)

    def test_scikit_learn_can_work_with_it(self):
        data = patients()
        pipeline = train_pipeline(data, "ill").pipeline
        assert isinstance(pipeline, Pipeline)
        assert pipeline[:-1].get_feature_names_out().tolist()[:3] == ["age", "dose", "stage_I"]
        again = clone(pipeline).fit(data, data["ill"])
        np.testing.assert_array_equal(again.predict_proba(data), pipeline.predict_proba(data))
        assert cross_val_score(pipeline, data, data["ill"], cv=3).mean() > 0.6

    @pytest.mark.skipif(not HEART.is_file(), reason="no heart.csv at hand")
    def test_heart(self):
        data = pd.read_csv(HEART)
        trained = train_pipeline(data, "HeartDisease", slack=0.1)
        assert trained.summary.categorical == {
            "Sex": 2,
            "ChestPainType": 4,
            "RestingECG": 3,
            "ExerciseAngina": 2,
            "ST_Slope": 3,
        }
        X = np.array(
            literal_inputs(rows_of(data), trained.summary.numeric, trained.summary.categorical)
        )
        expected = SatisficingClassifier(slack=0.1).fit(X, data["HeartDisease"])
        np.testing.assert_allclose(trained.pipeline[-1].coef_, expected.coef_, rtol=1e-6)
        assert trained.summary.fragility == pytest.approx(expected.fragility_)
        assert trained.summary.auc > 0.92


class TestSummary:
    def test_says_what_the_certificate_does(self):
        data = patients()
        trained = train_pipeline(data, "ill", norm=1)
        X = trained.pipeline[:-1].transform(data)
        proven = certify(trained.pipeline[-1], X, data["ill"].to_numpy(str))
        summary = trained.summary
        assert summary.fragility == pytest.approx(proven.fragility)
        assert summary.target == pytest.approx(proven.target)
        assert f"{proven.violation_bound(0.1):.4g} at d = 0.1" in summary.guarantee
        assert ("fragility k", f"{proven.fragility:.6g}") in [r[:2] for r in summary.certificate]
        assert "standard deviation" in summary.units
        assert "shift of 2" in summary.units
        assert summary.erm_loss < summary.target
        assert (summary.n_features, summary.n_inputs) == (4, 7)

    def test_one_row_that_changes_its_level_moves_as_far_as_is_said(self):
        data = patients()
        pipeline = train_pipeline(data, "ill").pipeline
        one, other = data[:1].assign(stage="I"), data[:1].assign(stage="II")
        moved = pipeline[:-1].transform(other) - pipeline[:-1].transform(one)
        for norm, said in ((1, "2"), (2, "√2"), (np.inf, "1")):
            assert said in train_pipeline(data, "ill", norm=norm).summary.units.split("shift of")[1]
            assert np.linalg.norm(moved, norm, axis=1) == pytest.approx(
                {"2": 2, "√2": np.sqrt(2), "1": 1}[said]
            )

    def test_is_json_and_readable(self):
        data = patients().assign(unit="mg", row=range(120))
        summary = train_pipeline(data, "ill", ambiguity="kl").summary
        assert json.loads(json.dumps(summary.to_dict()))["classes"][1]["class"] == "yes"
        assert summary.constant == ("unit",)
        assert "row" in summary.notes[0]
        shown = repr(summary)
        for words in ("unit (one value only)", "per nat", "AUC", "KL()", "'yes'", "training data"):
            assert words in shown
        assert "none" in train_pipeline(data, "ill", method="erm").summary.guarantee

    def test_a_constant_column_is_no_longer_needed(self):
        pipeline = train_pipeline(patients().assign(unit="mg", zero=0), "ill").pipeline
        assert len(predict_frame(pipeline, patients(seed=1))) == 120


class TestPredictions:
    def test_columns_and_index(self):
        data = patients()
        pipeline = train_pipeline(data, "ill").pipeline
        data.index = [f"p{i}" for i in range(120)]
        made = predict_frame(pipeline, data, threshold=0.8)
        assert made.index.equals(data.index)
        proba = pipeline.predict_proba(data)
        np.testing.assert_array_equal(made["probability_yes"], proba[:, 1])
        np.testing.assert_array_equal(made["confidence"], proba.max(axis=1))
        np.testing.assert_array_equal(made["prediction"], pipeline.predict(data))
        np.testing.assert_array_equal(made["automate"], made["confidence"] > 0.8)
        assert "automate" not in predict_frame(pipeline, data)
        with pytest.raises(ValueError, match="threshold must lie from 0 to 1"):
            predict_frame(pipeline, data, threshold=80)

    def test_what_cannot_be_read(self):
        data = patients()
        pipeline = train_pipeline(data, "ill").pipeline
        wrong = data.astype({"age": object, "dose": object})
        wrong.loc[[3, 4], "age"] = ["old", "nan"]
        for frame, words in (
            (data.rename(columns={"age": "Age"}), "need"),
            (data.rename(columns={"age": "Age"}), "Did you mean 'Age' for 'age'"),
            (wrong, "'age' must hold numbers, as in training; no number is in 2 of 120 rows"),
            (wrong, r"\(first: 3, 4\), such as 'old', 'nan'"),
            (data.assign(dose=pd.Timestamp("2020-01-01")), "dates or times, such as '2020"),
            (data.assign(dose=np.inf), "infinite values in 120"),
            (data.assign(dose=1j), "no number is in 120 of 120 rows .*such as 1j"),
            (data.assign(stage=None), "Values are missing: 'stage' in 120 of 120"),
            (data.assign(dose=np.nan), "train with impute"),
            (data[:0], "no rows"),
        ):
            with pytest.raises(TableError, match=words):
                predict_frame(pipeline, frame)

    def test_a_column_that_came_empty_is_filled_in(self):
        data = patients()
        pipeline = train_pipeline(data, "ill", impute=True).pipeline
        usual = data.assign(dose=data["dose"].median(), stage=data["stage"].mode()[0])
        made = predict_frame(pipeline, data.assign(dose=None, stage=np.nan))
        pd.testing.assert_frame_equal(made, predict_frame(pipeline, usual))

    @pytest.mark.parametrize("impute", [False, True])
    def test_values_not_seen_in_training_are_counted(self, impute):
        data = patients()
        pipeline = train_pipeline(data, "ill", impute=impute).pipeline
        new = data.astype({"smoker": object})
        new.loc[[1, 2, 3], "stage"] = "IV"
        new.loc[7, "smoker"] = "sometimes"
        with pytest.warns(UnseenValuesWarning) as caught:
            made = predict_frame(pipeline, new)
        texts = [str(warning.message) for warning in caught]
        assert [text.split(" (first")[0] for text in texts] == [
            "Column 'stage': 3 of 120 rows have values not seen in training",
            "Column 'smoker': 1 of 120 rows have values not seen in training",
        ]
        assert "(first: 'IV')" in texts[0]
        classifier, known = pipeline[-1], pipeline[:-1].transform(data)
        known[[1, 2, 3], 2:5], known[7, 5:] = 0.0, 0.0
        np.testing.assert_array_equal(
            made["probability_yes"], classifier.predict_proba(known)[:, 1]
        )

    def test_of_pipelines_that_others_made(self):
        X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        X = X / X.std()
        model = make_pipeline(LogisticRegression(max_iter=5000)).fit(X, y)
        made = predict_frame(model, X.assign(extra=1)[X.columns[::-1].append(pd.Index(["extra"]))])
        np.testing.assert_array_equal(made["probability_1"], model.predict_proba(X)[:, 1])
        with pytest.raises(TableError, match="Columns that the model needs"):
            predict_frame(model, X.drop(columns="mean radius"))

    def test_reader_alone(self):
        mixed = pd.DataFrame({"a": pd.Series([1, "x"], dtype=object)})
        with pytest.raises(TableError, match="levels of different types"):
            ColumnReader(categorical=["a"]).fit(mixed)


@pytest.mark.outside
@pytest.mark.parametrize("library", ["narwhals", "pandas", "skops"])
def test_heavy_libraries_are_imported_late_and_asked_for_by_name(library, tmp_path):
    code = f"""
import sys
if {library!r} != "narwhals":  # which scikit-learn may need
    sys.modules[{library!r}] = None  # as if it were not installed
import polars
from sklearn.pipeline import make_pipeline
from fragility import ERMClassifier
from fragility.pipelines import save_model, train_pipeline
model = make_pipeline(ERMClassifier()).fit([[0.0], [1.0]], [0, 1])
table = polars.DataFrame({{"age": [1, 2, 3, 4], "ill": [0, 0, 1, 1]}})
sys.modules[{library!r}] = None
try:
    save_model(model, "model.skops") if {library!r} == "skops" else train_pipeline(table, "ill")
except ImportError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    (said,) = done.stdout.splitlines()
    assert library in said
    assert said.endswith('pip install "fragility[cli]"')


def test_training_itself_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train_pipeline(patients().assign(unit="mg"), "ill", impute=True)
