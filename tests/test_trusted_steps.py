"""Pipelines with steps of one's own: kept in files, and read by those who name them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from fragility import ERMClassifier
from fragility.exceptions import ModelFileError
from fragility.losses import Hinge
from fragility.pipelines import load_model, save_model

from .model_file_tools import edit, refusal, text


class Doubled(StandardScaler):
    """A step of one's own."""

    def transform(self, X, copy=None):
        return 2.0 * super().transform(X, copy)


class OwnHinge(Hinge):
    """A loss of one's own."""


class TestShapes:
    """Pipelines of one's own that are made of known steps are read as they are."""

    @pytest.mark.parametrize(
        "first",
        [
            "passthrough",
            StandardScaler(with_mean=False),
            StandardScaler(with_std=False),
            StandardScaler(with_mean=False, with_std=False),
            StandardScaler().set_output(transform="pandas"),
            Pipeline([("a", "passthrough"), ("b", Pipeline([("c", StandardScaler())]))]),
            ColumnTransformer([("a", StandardScaler(), slice(0, 2))], remainder="passthrough"),
            ColumnTransformer([("a", StandardScaler(), slice("u", "v"))]),
            ColumnTransformer([("a", StandardScaler(), [True, False, True])]),
            ColumnTransformer([("a", "drop", ["u"]), ("b", "passthrough", [-1])]),
            ColumnTransformer([("a", SimpleImputer(), ["w"])], remainder=StandardScaler()),
            ColumnTransformer([("a", OneHotEncoder(), [1])], remainder="drop"),
            ColumnTransformer([("a", OneHotEncoder(drop="if_binary"), ["v"])], n_jobs=1),
            ColumnTransformer([("a", OneHotEncoder(max_categories=2, drop="first"), ["v", "t"])]),
            ColumnTransformer([("a", OneHotEncoder(min_frequency=15), ["v", "t"])]),
            ColumnTransformer([("a", SimpleImputer(strategy="constant", fill_value="x"), ["t"])]),
        ],
    )
    def test_are_kept(self, first, tmp_path):
        rng = np.random.default_rng(0)
        X = pd.DataFrame({"u": rng.normal(size=60), "v": rng.integers(3, size=60), "w": 1.0})
        if "'t'" in repr(first):
            X["t"] = pd.Series(rng.choice(["x", "y", None], size=60), dtype=object)
            first = ColumnTransformer(
                [
                    (name, Pipeline([("part", part), ("encode", OneHotEncoder())]), columns)
                    if isinstance(part, SimpleImputer)
                    else (name, part, columns)
                    for name, part, columns in first.transformers
                ]
            )
        model = make_pipeline(first, ERMClassifier(penalty="l2")).fit(X, rng.random(60) < 0.5)
        save_model(model, tmp_path / "model.skops")
        # What passes through a ColumnTransformer does so in a FunctionTransformer.
        read = load_model(tmp_path / "model.skops", trusted=[FunctionTransformer])
        np.testing.assert_array_equal(read.predict_proba(X), model.predict_proba(X))

    def test_what_would_not_be_read_is_not_written(self, tmp_path):
        X, y = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) % 2
        model = make_pipeline(StandardScaler(), ERMClassifier()).fit(X, y)
        model[-1].coef_[0, 1] = np.inf
        with pytest.raises(ModelFileError, match=r"was not written: .* 1 × 2 floats in coef_"):
            save_model(model, tmp_path / "model.skops")
        assert list(tmp_path.iterdir()) == []


class TestTrusted:
    @pytest.fixture
    def data(self):
        return np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) % 2

    @pytest.mark.parametrize(
        ("step", "names"),
        [
            (KNNImputer(), [[KNNImputer], ["sklearn.impute.KNNImputer"]]),
            (KNNImputer(), [["sklearn.impute._knn.KNNImputer"]]),
            (Doubled(), [[Doubled], ["tests.test_trusted_steps.Doubled"]]),
            (
                ColumnTransformer([("all", Doubled(), [0, 1])]),
                [(Doubled,)],
            ),
            (PCA(2), [{PCA}]),
        ],
    )
    def test_a_step_is_refused_until_it_is_named(self, data, step, names, tmp_path):
        X, y = data
        model = make_pipeline(step, ERMClassifier()).fit(X, y)
        path = tmp_path / "model.skops"
        save_model(model, path)
        message = refusal(path)
        assert "not known to be safe" in message
        asked = message.partition("load_model(path, trusted=[")[2]
        for trusted in [*names, [asked[1 : asked.index("]") - 1]]]:
            read = load_model(path, trusted=trusted)
            np.testing.assert_array_equal(read.predict_proba(X), model.predict_proba(X))
        with pytest.raises(ModelFileError, match="not known to be safe"):
            load_model(path, trusted=["sklearn.impute.KNNImputers", "x", OneHotEncoder])

    def test_losses_functions_and_other_classifiers(self, data, tmp_path):
        X, y = data
        path = tmp_path / "model.skops"
        shift = FunctionTransformer(np.linalg.norm, kw_args={"axis": 1, "keepdims": True})
        norm = "numpy.linalg.norm"
        for model, trusted in (
            (make_pipeline(ERMClassifier(OwnHinge())).fit(X, y), [OwnHinge]),
            (make_pipeline(shift, ERMClassifier()).fit(X, y), [FunctionTransformer, norm]),
        ):
            save_model(model, path)
            refusal(path)
            read = load_model(path, trusted=trusted)
            np.testing.assert_array_equal(read.predict_proba(X), model.predict_proba(X))
        model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
        skops.io.dump(model, path)
        assert "LogisticRegression" in refusal(path)
        read = load_model(path, trusted=[LogisticRegression])
        np.testing.assert_array_equal(read.predict_proba(X), model.predict_proba(X))
        model[-1].coef_[0, 0] = np.nan
        skops.io.dump(model, path)
        with pytest.raises(ModelFileError, match="not numbers from 0 to 1"):
            load_model(path, trusted=[LogisticRegression])

    @pytest.mark.parametrize("trusted", ["sklearn.impute.KNNImputer", KNNImputer, [3], 3, [None]])
    def test_what_is_no_list_of_types(self, saved, trusted):
        with pytest.raises(ValueError, match="trusted must") as error:
            load_model(saved, trusted=trusted)
        assert not isinstance(error.value, ModelFileError)

    def test_nothing_is_called_however_much_is_trusted(self, saved):
        node = {
            "__class__": "system",
            "__module__": "os",
            "__loader__": "LossNode",
            "__reduce__": {"args": text("true")},
            "content": text(None),
        }
        edit(saved, lambda schema: schema["content"]["content"].update(more=node))
        with pytest.raises(ModelFileError, match="might run code"):
            load_model(saved, trusted=["os.system", "posix.system"])
