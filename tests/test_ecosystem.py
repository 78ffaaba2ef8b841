"""Inside scikit-learn's and fairlearn's machinery."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn
from fairlearn.metrics import MetricFrame
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fragility import (
    AbsentClassWarning,
    fragility_index,
    fragility_ratio,
    neg_fragility_index_scorer,
    neg_fragility_ratio_scorer,
)


def model():
    return make_pipeline(StandardScaler(), LogisticRegression())


def test_scorer_is_minus_the_metric():
    X, y = load_breast_cancer(return_X_y=True)
    names = np.array(["malignant", "benign"])[y]
    fitted = model().fit(X, names)
    proba = fitted.predict_proba(X)
    assert neg_fragility_index_scorer(fitted, X, names) == -fragility_index(names, proba[:, 1])
    assert neg_fragility_ratio_scorer(fitted, X, names) == -fragility_ratio(names, proba)
    weights = np.random.default_rng(0).random(y.size)
    found = neg_fragility_index_scorer(fitted, X, names, sample_weight=weights)
    assert found == -fragility_index(names, proba, sample_weight=weights)


@pytest.mark.outside
def test_cross_validate_beside_other_scores():
    X, y = load_breast_cancer(return_X_y=True)
    scores = cross_validate(
        model(),
        X,
        y,
        scoring={
            "fi": neg_fragility_index_scorer,
            "ratio": neg_fragility_ratio_scorer,
            "auc": "roc_auc",
        },
        error_score="raise",
        n_jobs=2,
    )
    assert np.isfinite(scores["test_fi"]).all()
    assert (scores["test_ratio"] <= 0).all()


def test_grid_search_by_index_alone_is_degenerate_and_by_ratio_is_not():
    """What the documentation warns of: the strongest shrinkage has the lowest index."""
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :5] + np.random.default_rng(0).normal(scale=X[:, :5].std(axis=0) * 2, size=(569, 5))
    grid = {"logisticregression__C": [1e-8, 1e-2, 1.0]}
    by_index = GridSearchCV(model(), grid, scoring=neg_fragility_index_scorer).fit(X, y)
    by_ratio = GridSearchCV(model(), grid, scoring=neg_fragility_ratio_scorer).fit(X, y)
    assert by_index.best_params_ == {"logisticregression__C": 1e-8}
    assert by_ratio.best_params_ != {"logisticregression__C": 1e-8}
    constant = DummyClassifier().fit(X, y)
    assert neg_fragility_index_scorer(constant, X, y) == 0.0
    assert np.isnan(neg_fragility_ratio_scorer(constant, X, y))


def test_folds_without_a_class():
    X, y = load_wine(return_X_y=True)  # sorted by class: plain folds lack some
    with pytest.warns(AbsentClassWarning, match="No samples"):
        scores = cross_val_score(
            model(),
            X,
            y,
            scoring=neg_fragility_index_scorer,
            cv=[(np.arange(178), np.arange(100)), (np.arange(178), np.arange(178))],
        )
    assert np.isfinite(scores).all()


def test_scorers_travel():
    restored = pickle.loads(pickle.dumps(neg_fragility_index_scorer))
    X, y = load_wine(return_X_y=True)
    fitted = model().fit(X, y)
    assert restored(fitted, X, y) == neg_fragility_index_scorer(fitted, X, y)
    assert "fragility_index" in repr(restored)


def test_metadata_routing():
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :5] / X[:, :5].std(axis=0)
    weights = np.random.default_rng(0).random(y.size)
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = pickle.loads(pickle.dumps(neg_fragility_index_scorer))
        scorer.set_score_request(sample_weight=True)
        found = cross_validate(
            LogisticRegression(max_iter=10_000).set_fit_request(sample_weight=False),
            X,
            y,
            scoring=scorer,
            cv=folds,
            params={"sample_weight": weights},
            error_score="raise",
        )["test_score"]
    for (train, test), score in zip(folds, found, strict=True):
        fitted = LogisticRegression(max_iter=10_000)
        proba = fitted.fit(X[train], y[train]).predict_proba(X[test])
        assert score == pytest.approx(
            -fragility_index(y[test], proba, sample_weight=weights[test]), rel=1e-6
        )


def test_own_scorer_from_the_function():
    X, y = load_breast_cancer(return_X_y=True)
    scorer = make_scorer(
        fragility_index, greater_is_better=False, response_method="predict_proba", target=0.1
    )
    fitted = model().fit(X, y)
    expected = -fragility_index(y, fitted.predict_proba(X), target=0.1)
    assert scorer(fitted, X, y) == expected


def test_calibrated_classifier():
    X, y = load_wine(return_X_y=True)
    fitted = CalibratedClassifierCV(model(), cv=3).fit(X, y)
    assert neg_fragility_ratio_scorer(fitted, X, y) <= 0


def test_metric_frame():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    p = np.clip(0.5 + 0.3 * (y - 0.5) + 0.2 * rng.normal(size=400), 0, 1)
    group = np.array(["a", "b"])[rng.integers(0, 2, 400)]
    weights = rng.random(400)
    frame = MetricFrame(
        metrics={"fi": fragility_index, "ratio": fragility_ratio, "auc": roc_auc_score},
        y_true=y,
        y_pred=p,
        sensitive_features=group,
        sample_params={"fi": {"sample_weight": weights}},
    )
    for name in ("a", "b"):
        rows = group == name
        expected = fragility_index(y[rows], p[rows], sample_weight=weights[rows])
        assert frame.by_group.loc[name, "fi"] == expected
        assert frame.by_group.loc[name, "ratio"] == fragility_ratio(y[rows], p[rows])
    assert frame.overall["fi"] == fragility_index(y, p, sample_weight=weights)
    gap = abs(frame.by_group.loc["a", "fi"] - frame.by_group.loc["b", "fi"])
    assert frame.difference()["fi"] == gap > 0


def test_metric_frame_names_a_group_of_one_class():
    with pytest.raises(ValueError, match="Only one class has samples"):
        MetricFrame(
            metrics=fragility_index,
            y_true=[0, 1, 0, 1, 1],
            y_pred=[0.1, 0.9, 0.2, 0.3, 0.8],
            sensitive_features=["a", "a", "a", "b", "b"],
        )
