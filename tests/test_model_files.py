"""Models in files: nothing lost that predictions need, no sample inside, and no code that runs."""

from __future__ import annotations

import json
import os
import struct
import warnings
from importlib import import_module
from importlib.metadata import version
from math import inf

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fragility import (
    KL,
    DROClassifier,
    ERMClassifier,
    SatisficingClassifier,
    SatisficingClassifierCV,
    Wasserstein,
    certify,
)
from fragility.exceptions import ModelFileError, ModelVersionWarning
from fragility.losses import CrossEntropy, Hinge, MaxLogistic, SmoothedHinge
from fragility.pipelines import load_model, predict_frame, read_about, save_model, train_pipeline
from fragility.pipelines.model_files import _KEPT
from fragility.pipelines.trusted_types import OWN_TYPES

from .model_file_tools import edit, members, refusal, tampered, write
from .patient_table import patients


class TestRoundTrip:
    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize(
        "estimator",
        [
            SatisficingClassifier(slack=0.1),
            SatisficingClassifier("hinge", Wasserstein(norm=1, label_cost=0.5), slack=0.1),
            SatisficingClassifier(SmoothedHinge(0.5), KL(), penalty="l2", alpha=0.1, slack=0.1),
            SatisficingClassifier(
                MaxLogistic(), Wasserstein(inf, feature_weight=(1.0, 2.0, inf)), slack=0.3
            ),
            SatisficingClassifier(ambiguity=Wasserstein.from_noise([0.5, 0.0, 1.0]), slack=0.1),
            SatisficingClassifier(CrossEntropy(), radius=0.1, class_weight="balanced", slack=0.1),
            SatisficingClassifier(Hinge(), class_weight={0: 1.0, 1: 2.0}, slack=0.1),
            DROClassifier("hinge", KL(), penalty="l1", alpha=1e-3, radius=0.01),
            DROClassifier(MaxLogistic(), "wasserstein", radius=0.01),
            ERMClassifier(penalty="l1"),
            ERMClassifier(SmoothedHinge()),
            SatisficingClassifierCV(cv=2, slacks=(0.1, 0.2), alphas=(0.01,)),
        ],
    )
    def test_predictions_are_the_same_to_the_last_bit(self, estimator, n_classes, tmp_path):
        rng = np.random.default_rng(n_classes)
        X = rng.normal(size=(60, 3))
        y = np.argmax(X[:, :n_classes] + rng.gumbel(size=(60, n_classes)), axis=1)
        model = make_pipeline(StandardScaler(), estimator).fit(X, y)
        save_model(model, tmp_path / "model.skops")
        read = load_model(tmp_path / "model.skops")
        new = rng.normal(size=(500, 3))
        np.testing.assert_array_equal(read.predict_proba(new), model.predict_proba(new))
        np.testing.assert_array_equal(read.predict(new), model.predict(new))
        assert read[-1].get_params() == model[-1].get_params()
        assert read.classes_.dtype == model.classes_.dtype
        for name in ("ambiguity_", "fragility_", "target_", "erm_loss_", "worst_loss_", "loss_"):
            assert getattr(read[-1], name, None) == getattr(model[-1], name, None)

    @pytest.mark.parametrize("intercept", [True, "priced"])
    def test_how_a_target_came_about_and_what_the_intercept_is(self, intercept, tmp_path):
        X = np.random.default_rng(0).normal(size=(60, 3))
        y = (X[:, 0] + X[::-1, 1] > 0.0).astype(int)
        estimator = SatisficingClassifier(target="out_of_fold", fit_intercept=intercept)
        model = make_pipeline(StandardScaler(), estimator).fit(X, y)
        save_model(model, tmp_path / "model.skops")
        read = load_model(tmp_path / "model.skops")
        assert read[-1].target_origin_ == model[-1].target_origin_ is not None
        assert read[-1].priced_intercept_ is (intercept == "priced")
        inputs = model[:-1].transform(X)
        k = certify(read[-1].set_params(fit_intercept=False), inputs, y).fragility
        assert k == pytest.approx(model[-1].fragility_, rel=1e-12)

    @pytest.mark.parametrize(
        ("attribute", "value", "words"),
        [
            ("priced_intercept_", "yes", "must say whether its intercept is priced"),
            ("target_origin_", [1.0], "must have the origin of a target in target_origin_"),
        ],
    )
    def test_wrong_attributes(self, attribute, value, words, tmp_path):
        X, y = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) % 2
        model = make_pipeline(ERMClassifier()).fit(X, y)
        setattr(model[-1], attribute, value)
        skops.io.dump(model, tmp_path / "model.skops")
        with pytest.raises(ModelFileError, match=words):
            load_model(tmp_path / "model.skops")

    @pytest.mark.parametrize(
        ("name", "value", "words"),
        [("alpha", "x", "alpha must be a number"), ("clip", "no", "clip must be one of")],
    )
    def test_wrong_origins(self, name, value, words, tmp_path):
        X, y = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) % 2
        model = make_pipeline(SatisficingClassifier(target="out_of_fold")).fit(X, y)
        object.__setattr__(model[-1].target_origin_, name, value)
        with pytest.raises(ModelFileError, match=words):
            save_model(model, tmp_path / "model.skops")

    @pytest.mark.parametrize(
        "labels", [["no", "yes"], [False, True], [0, 1], ["größer", "名前 with, comma"]]
    )
    @pytest.mark.parametrize("impute", [False, True])
    def test_of_tables(self, labels, impute, tmp_path):
        data = patients().assign(code=pd.Categorical(np.arange(120) % 3))
        data["ill"] = np.where(data["ill"] == "yes", labels[1], labels[0])
        trained = train_pipeline(data, "ill", impute=impute)
        about = trained.summary.to_dict() | {"by": "us"}
        save_model(trained.pipeline, tmp_path / "model.skops", about)
        read = load_model(str(tmp_path / "model.skops"))
        pd.testing.assert_frame_equal(
            predict_frame(read, data), predict_frame(trained.pipeline, data), check_exact=True
        )
        kept = read_about(tmp_path / "model.skops")
        assert kept["about"] == json.loads(json.dumps(about))
        assert set(kept["versions"]) == {"fragility", "scikit-learn", "numpy", "skops"}

    def test_every_type_of_the_list_is_a_class(self):
        for name in OWN_TYPES:
            if name.endswith("_RemainderColsList") and sklearn_version_parts() >= (1, 7):
                continue  # on its way out
            module, _, attribute = name.rpartition(".")
            assert isinstance(getattr(import_module(module), attribute), type)

    def test_a_model_may_be_refitted(self, saved):
        data = patients(seed=1)
        again = load_model(saved).fit(data, data["ill"])
        assert again.score(data, data["ill"]) > 0.6
        assert again[-1].certificate_.n_samples == 120

    def test_pipelines_that_skops_wrote(self, tmp_path):
        X, y = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) % 2
        model = make_pipeline(StandardScaler(), ERMClassifier()).fit(X, y)
        skops.io.dump(model, tmp_path / "other.skops")
        read = load_model(tmp_path / "other.skops")
        np.testing.assert_array_equal(read.predict_proba(X), model.predict_proba(X))
        assert read_about(tmp_path / "other.skops")["about"] == {}


class TestSamplesStayOut:
    def test_nothing_of_a_sample_is_in_the_file(self, tmp_path):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(80, 3)) * 1000.0 / 7.0
        y = X[:, 0] + rng.normal(size=80) * 100.0 > 0.0
        weights = rng.random(80)
        frame = pd.DataFrame(X, columns=list("abc")).assign(y=y, w=weights)
        pipeline = train_pipeline(frame, "y", weight="w").pipeline
        inputs, classifier = pipeline[:-1].transform(frame), pipeline[-1]
        certificate = classifier.certificate_
        secrets = np.concatenate(
            [
                X.ravel(),
                inputs.ravel(),
                weights,
                certificate.losses,
                certificate.weights,
                classifier.decision_function(inputs),
                classifier.predict_proba(inputs).ravel(),
            ]
        ).tolist()
        save_model(pipeline, tmp_path / "safe.skops")
        skops.io.dump(pipeline, tmp_path / "leaking.skops")

        def held(name, values):
            everything = b"\0".join(members(tmp_path / name).values())
            return [
                value
                for value in values
                if struct.pack("<d", value) in everything or repr(value).encode() in everything
            ]

        assert held("safe.skops", secrets) == []
        assert len(held("leaking.skops", secrets)) >= 2 * 80  # the search can find them
        kept = classifier.coef_.ravel().tolist()
        assert held("safe.skops", kept) == kept
        assert not hasattr(load_model(tmp_path / "safe.skops")[-1], "certificate_")
        assert hasattr(classifier, "certificate_")  # that of the caller stays

    def test_the_size_does_not_grow_with_the_samples(self, tmp_path):
        sizes = []
        for n in (100, 3000):
            save_model(train_pipeline(patients(n), "ill").pipeline, tmp_path / "model.skops")
            sizes.append((tmp_path / "model.skops").stat().st_size)
        assert sizes[1] < sizes[0] + 200

    @pytest.mark.parametrize(
        "estimator",
        [
            SatisficingClassifier(slack=0.1),
            DROClassifier(),
            ERMClassifier(),
            SatisficingClassifierCV(cv=2),
            SatisficingClassifierCV(cv=2, target_ratios=(1.1, 1.2)),
        ],
    )
    def test_every_fitted_attribute_was_thought_of(self, estimator):
        rng = np.random.default_rng(0)
        X = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
        estimator.fit(X, X["a"] + rng.normal(size=40) > 0)
        fitted = {name for name in vars(estimator) if name.endswith("_")}
        left = {"certificate_", "scores_", "fragilities_", "mean_scores_"}
        assert fitted - set(_KEPT) <= left


class TestSaving:
    def test_whole_or_not_at_all(self, trained, saved, tmp_path, monkeypatch):
        before = saved.read_bytes()

        def fails(*_):
            raise OSError("no space left")

        with monkeypatch.context() as patched:
            patched.setattr(os, "replace", fails)
            with pytest.raises(OSError, match="no space left"):
                save_model(trained.pipeline, saved)
        assert [p.name for p in tmp_path.iterdir()] == ["model.skops"]
        assert saved.read_bytes() == before
        with pytest.raises(FileNotFoundError, match="there is no folder"):
            save_model(trained.pipeline, tmp_path / "nowhere" / "model.skops")
        plain = tmp_path / "plain"
        plain.touch()
        assert saved.stat().st_mode == plain.stat().st_mode

    @pytest.mark.parametrize(
        ("pipeline", "words"),
        [
            (ERMClassifier(), "got ERMClassifier"),
            (make_pipeline(StandardScaler(), LogisticRegression()), "skops.io.dump"),
            (make_pipeline(StandardScaler(), ERMClassifier()), "ERMClassifier is not fitted"),
        ],
    )
    def test_what_is_not_saved(self, pipeline, words, tmp_path):
        with pytest.raises(ModelFileError, match=words):
            save_model(pipeline, tmp_path / "model.skops")
        assert list(tmp_path.iterdir()) == []

    def test_what_could_not_be_read_again_is_not_written(self, trained, tmp_path):
        class Mine(Hinge):
            pass

        X, y = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) % 2 == 1
        for model, words in (
            (ERMClassifier(Mine()), "do not fit together .*Mine"),
            (ERMClassifier(class_weight={False: 1, True: 2}), "class_weight with these classes"),
        ):
            with pytest.raises(ModelFileError, match=words):
                save_model(make_pipeline(model).fit(X, y), tmp_path / "model.skops")
        with pytest.raises(ModelFileError, match="about must be what JSON can hold"):
            save_model(trained.pipeline, tmp_path / "model.skops", {"now": pd.Timestamp.now()})
        assert list(tmp_path.iterdir()) == []


class TestVersions:
    def versions(self, path, **changed):
        edit(path, lambda about: about["versions"].update(changed), "about.json")

    def test_a_later_format_is_refused(self, saved):
        edit(saved, lambda about: about.update(format=2), "about.json")
        self.versions(saved, fragility="9.1.0")
        message = refusal(saved)
        assert "fragility 9.1.0 wrote it in format 2" in message
        assert "upgrade fragility" in message

    def test_are_named_where_a_file_cannot_be_read(self, saved):
        self.versions(saved, **{"scikit-learn": "1.0.0"})
        node = {"__class__": "Gone", "__module__": "sklearn.base", "__loader__": "ObjectNode"}
        edit(saved, tampered(node))
        assert f"(it was written by scikit-learn 1.0.0, here {_sklearn_version()})" in refusal(
            saved
        )

    @pytest.mark.parametrize("about", ["[]", "{}", '{"format": "x"}', "{", '{"format": 1}'])
    def test_a_damaged_page_is_refused(self, saved, about):
        write(saved, members(saved) | {"about.json": about})
        assert "about.json is damaged" in refusal(saved)

    def test_others_are_warned_about(self, saved):
        self.versions(saved, fragility="99.0.0")
        with pytest.warns(ModelVersionWarning, match=r"fragility 99\.0\.0, here "):
            load_model(saved)
        self.versions(saved, fragility="0.0.1", **{"scikit-learn": "1.0.0"})
        with pytest.warns(ModelVersionWarning, match=r"written by scikit-learn 1\.0\.0, here "):
            load_model(saved)

    def test_an_earlier_scikit_learn_is_one_warning_and_not_one_for_each_step(self, saved):
        def older(schema):
            here, there = (json.dumps(json.dumps(v)) for v in (_sklearn_version(), "1.0"))
            assert here in json.dumps(schema)
            return json.loads(json.dumps(schema).replace(here, there))

        edit(saved, older)
        self.versions(saved, **{"scikit-learn": "1.0"})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            load_model(saved)
        assert [w.category for w in caught] == [ModelVersionWarning]
        self.versions(saved, **{"scikit-learn": _sklearn_version()})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            load_model(saved)


def sklearn_version_parts():
    return tuple(int(part) for part in _sklearn_version().split(".")[:2])


def _sklearn_version():
    return version("scikit-learn")
