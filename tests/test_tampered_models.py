"""Models whose contents have been changed: refused in one line, or they predict."""

from __future__ import annotations

import io
import pickle
import zipfile
from itertools import islice

import numpy as np
import pytest
import skops.io
from joblib import parallel_config
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from fragility import ERMClassifier
from fragility.pipelines import load_model, save_model

from .fuzzing import model_files
from .model_file_tools import edit, members, refusal, text, write
from .patient_table import patients


def part(pipeline, *names):
    """A step of a pipeline by the names that lead to it."""
    for name in names:
        pipeline = (
            pipeline.named_transformers_[name]
            if isinstance(pipeline, ColumnTransformer)
            else pipeline.named_steps[name]
        )
    return pipeline


SCALER, ENCODER = ("columns", "numeric", "scale"), ("columns", "categorical", "encode")
NUMBERS, LEVELS = ("columns", "numeric", "impute"), ("columns", "categorical", "impute")


@pytest.fixture(scope="module")
def whole(trained, tmp_path_factory):
    """The bytes of a model file, and its pipeline as a pickle."""
    path = tmp_path_factory.mktemp("whole") / "model.skops"
    save_model(trained.pipeline, path)
    return path.read_bytes(), pickle.dumps(load_model(path))


@pytest.fixture
def saved(whole, tmp_path):
    """A model file."""
    path = tmp_path / "model.skops"
    path.write_bytes(whole[0])
    return path


@pytest.fixture
def changed(whole, saved):
    """Change an attribute of a step, or a whole step, and write the file without any check."""

    def change(names, attribute, value):
        pipeline = pickle.loads(whole[1])
        step = part(pipeline, *names)
        present = getattr(step, attribute, None)
        setattr(step, attribute, value(present) if callable(value) else value)
        skops.io.dump(pipeline, saved)
        return saved

    return change


def one(place, value):
    """Replace one entry of an array."""

    def change(array):
        array = array.copy()
        array[place] = value
        return array

    return change


class TestArrays:
    @pytest.mark.parametrize(
        "value",
        [
            one((0, 2), np.nan),
            one((0, 2), np.inf),
            one((0, 2), 1e308),
            lambda a: a[:, :-1],
            lambda a: a.ravel(),
            lambda a: np.vstack([a, a]),
            lambda a: a.astype(complex),
            lambda a: a.astype(str),
            lambda a: a.astype(object),
            lambda a: a.astype(int),
            lambda a: a.tolist(),
            np.zeros((1, 0)),
            np.float64(1.0),
            None,
            "x",
        ],
    )
    def test_coefficients(self, changed, value):
        words = refusal(changed(["classifier"], "coef_", value))
        assert "its SatisficingClassifier must have 1 × 7 floats in coef_" in words

    def test_a_missing_parameter_is_not_replaced_by_its_default(self, whole, saved):
        pipeline = pickle.loads(whole[1])
        del part(pipeline, "classifier").alpha
        skops.io.dump(pipeline, saved)
        assert "its SatisficingClassifier must have all of its parameters" in refusal(saved)

    @pytest.mark.parametrize(
        ("names", "attribute", "values"),
        [
            (["classifier"], "intercept_", [one(0, np.nan), np.zeros(2), 0.0, None]),
            (["classifier"], "n_features_in_", [6, 8, -1, 7.0, "7", None, True]),
            (SCALER, "mean_", [one(1, np.nan), one(1, np.inf), np.zeros(3), np.zeros((2, 1)), 0.0]),
            (SCALER, "scale_", [one(0, 0.0), one(0, -1.0), one(0, 1e-300), np.ones(1), "x"]),
            (NUMBERS, "statistics_", [one(0, np.nan), np.zeros(3), np.array(["a", "b"])]),
            (LEVELS, "statistics_", [one(0, None), one(0, [1]), np.array(["III"]), 3]),
            (
                ENCODER,
                "categories_",
                [
                    lambda found: found[:1],
                    lambda found: [found[0][:2], found[1]],
                    lambda found: [found[0][:0], found[1]],
                    lambda found: [np.array(["I", "I", "II"], dtype=object), found[1]],
                    lambda found: [np.array(["I", "III", "II"]), found[1]],
                    lambda found: [np.array([1, [2], 3], dtype=object), found[1]],
                    lambda found: [list(levels) for levels in found],
                    None,
                ],
            ),
            (ENCODER, "_n_features_outs", [[2, 3], [1, 1], [3], [3, 10**12], [-3, 8], None]),
            (ENCODER, "_infrequent_enabled", [True]),
            (ENCODER, "_drop_idx_after_grouping", [np.array([7, 0], dtype=object)]),
            (["columns"], "transformer_weights", [{"numeric": np.nan}, {"numeric": 1e200}]),
            (["columns"], "n_features_in_", [3, 10**10, None]),
            (["columns"], "_transformer_to_input_indices", [{}, {"numeric": [9]}, {"x": [0.5]}]),
            (["read"], "levels_", [{}, {"stage": ["I"]}, {"stage": ["I", "I"], "smoker": [True]}]),
            (["read"], "numeric", [["age"], ["age", "age"], "age", ["age", 3], None]),
            (["read"], "keep_missing", ["yes", None]),
        ],
    )
    def test_of_every_step(self, changed, names, attribute, values):
        for value in values:
            refusal(changed(names, attribute, value))

    @pytest.mark.parametrize(
        "classes",
        [
            np.array(["no", "no"]),
            np.array(["yes", "no"]),
            np.array(["no"]),
            np.array([], dtype=str),
            np.array([["no", "yes"]]),
            np.array([0.0, np.nan]),
            np.array([0.0, np.inf]),
            np.array([0j, 1j]),
            np.array([None, "no"], dtype=object),
            np.array([True, 1], dtype=object),
            np.array(["yes", "no"], dtype=object),
        ],
    )
    def test_classes(self, changed, classes):
        words = refusal(changed(["classifier"], "classes_", classes))
        assert "two different classes at least, in order" in words

    def test_columns_without_end_and_without_names(self, tmp_path):
        X, y = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) % 2
        first = ColumnTransformer([("some", StandardScaler(), [0])])
        model = make_pipeline(first, ERMClassifier()).fit(X, y)
        model[0].n_features_in_ = 10**10
        skops.io.dump(model, tmp_path / "model.skops")
        assert "a use for each of its columns" in refusal(tmp_path / "model.skops")

    def test_a_third_class_without_scores(self, changed):
        words = refusal(changed(["classifier"], "classes_", np.array(["a", "b", "c"])))
        assert "3 × 7 floats in coef_" in words

    def test_methods_are_those_of_the_class(self, changed):
        refusal(changed(["classifier"], "predict", str))

    def test_an_array_that_is_named_often_is_not_read_often(self, saved, monkeypatch):
        array = {
            "__class__": "ndarray",
            "__module__": "numpy",
            "__loader__": "NdArrayNode",
            "type": "numpy",
            "file": "big.npy",
        }
        more = {
            "__class__": "list",
            "__module__": "builtins",
            "__loader__": "ListNode",
            "content": [array] * 100,
        }
        write(saved, members(saved) | {"big.npy": model_files._npy(np.zeros(10_000))})
        edit(saved, lambda schema: schema["content"]["content"].update(more=more))
        monkeypatch.setattr("fragility.pipelines.archives.LARGEST", 2_000_000)
        assert "its arrays unpack to more than" in refusal(saved)

    def test_a_ring_or_a_tree_of_references_is_none(self, saved):
        """Of forty nodes that each name the next one twice, skops would visit a million million."""
        kind = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
        node = text("x")
        for number in range(1, 40):
            again = kind | {"__id__": number}
            node = kind | {"content": [node | {"__id__": number}, again]}
        edit(saved, lambda schema: schema["content"]["content"].update(more=node))
        assert "do not fit together" in refusal(saved)


class TestSteps:
    @pytest.mark.parametrize(
        ("place", "step", "words"),
        [
            (1, "passthrough", "must take 4 inputs"),
            (1, StandardScaler().fit(np.zeros((3, 4))), "must take 4 inputs"),
            (1, StandardScaler(), "do not fit together"),
            (0, StandardScaler().fit(np.eye(4)), "do not fit together"),
            (1, PCA(2).fit(np.eye(4)), "trusted=['sklearn.decomposition._pca.PCA']"),
            (1, ERMClassifier(), "ERMClassifier, is not a transformer"),
            (2, StandardScaler().fit(np.eye(7)), "is not a fitted classifier"),
            (2, ERMClassifier().fit(np.eye(3), [0, 1, 2]), "must take 7 inputs"),
        ],
    )
    def test_replaced(self, changed, place, step, words):
        def replaced(steps):
            return [*steps[:place], (steps[place][0], step), *steps[place + 1 :]]

        assert words in refusal(changed([], "steps", replaced))

    def test_left_out_or_named_twice(self, changed):
        for value in (
            lambda steps: steps[:2],
            lambda steps: steps[:1] + steps[2:],
            lambda steps: [("a", step) for _, step in steps],
            lambda steps: [(3, step) for _, step in steps],
            [],
        ):
            refusal(changed([], "steps", value))

    def test_folders_and_processes_are_forgotten_at_any_depth(self, saved, tmp_path):
        pipeline = load_model(saved)
        columns = pipeline.named_steps["columns"]
        folder = str(tmp_path / "cache")
        pipeline.memory = columns.named_transformers_["numeric"].memory = folder
        columns.transformers[0][1].memory = folder
        columns.n_jobs = 7
        skops.io.dump(pipeline, saved)
        read = load_model(saved)
        assert all(
            value is None
            for name, value in read.get_params().items()
            if name.rpartition("__")[2] in ("memory", "n_jobs")
        )
        columns = read.named_steps["columns"]
        assert columns.n_jobs is None
        assert columns.named_transformers_["numeric"].memory is None
        assert columns.transformers[0][1].memory is None
        read.predict_proba(patients())
        assert sorted(path.name for path in tmp_path.iterdir()) == ["model.skops"]

    def test_also_in_steps_that_are_trusted(self, tmp_path):
        X, y = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) % 2
        inner = Pipeline([("scale", StandardScaler())], memory=str(tmp_path / "cache"))
        union = FeatureUnion([("one", inner), ("two", StandardScaler())])
        union.fit(X)
        union.n_jobs = 2
        model = Pipeline([("both", union), ("last", ERMClassifier())])
        with parallel_config("threading"):
            model[-1].fit(union.transform(X), y)
            expected = model.predict_proba(X)
        save_model(model, tmp_path / "model.skops")
        read = load_model(tmp_path / "model.skops", trusted=[FeatureUnion])
        assert read[0].n_jobs is None
        assert read[0].transformer_list[0][1].memory is None
        np.testing.assert_array_equal(read.predict_proba(X), expected)
        assert union.n_jobs == 2  # that of the caller stays


def test_whatever_is_changed_a_file_is_refused_or_predicts():
    accepted = 0
    for number, data in enumerate(model_files.corpus()):
        assert model_files.check(data)
        rng = np.random.default_rng(number)
        for changed in islice(model_files.mutations(data, rng), 30):
            accepted += model_files.check(changed)
    assert 5 < accepted < 60  # both happen


def test_the_check_of_mutated_files_can_fail(monkeypatch):
    data = model_files.corpus()[3]
    contents = io.BytesIO(data)
    with zipfile.ZipFile(contents) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    wrong = {
        name: model_files._npy(np.load(io.BytesIO(content)) * np.nan)
        if name.endswith(".npy") and np.load(io.BytesIO(content)).dtype.kind == "f"
        else content
        for name, content in found.items()
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in wrong.items():
            archive.writestr(name, content)
    assert not model_files.check(file.getvalue())
    monkeypatch.setattr("fragility.pipelines.archives.check_pipeline", lambda pipeline: None)
    with pytest.raises(AssertionError):
        model_files.check(file.getvalue())
