"""Targets and penalties chosen by cross-validation: the same as by fits from scratch."""

import io
import pickle
import sys
import warnings
from math import inf

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import accuracy_score, log_loss, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fragility import (
    KL,
    SatisficingClassifier,
    SatisficingClassifierCV,
    Wasserstein,
    certify,
    neg_fragility_index_scorer,
)
from fragility.exceptions import AbsentClassWarning, TrivialTargetWarning

GRID = {"alphas": (1e-3, 1e-1, 1e-2), "slacks": (0.4, 0.05)}


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(
    [SatisficingClassifierCV(ambiguity="kl", cv=2, slacks=(0.1, 0.3), alphas=(1e-2,))]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def samples(n, d, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(0.1, 10.0, d) + 3.0
    scores = (X - 3.0) / np.geomspace(0.1, 10.0, d) @ rng.normal(size=(d, n_classes))
    return X, np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)


@pytest.fixture(scope="module")
def data():
    X, y = samples(200, 4)
    return X, np.array(["no", "yes"])[y]


def from_scratch(model, X, y, scoring, cv=5, name="slack"):
    """Scores of a double loop over fits that know nothing of each other."""
    shared = ("loss", "ambiguity", "penalty", "fit_intercept", "class_weight")
    given = {key: getattr(model, key) for key in shared}
    alphas = model.alphas if model.penalty else (0.0,)
    return np.array(
        [
            [
                cross_val_score(
                    SatisficingClassifier(**given, alpha=alpha, **{name: value}),
                    *(X, y),
                    cv=cv,
                    scoring=scoring,
                )
                for value in getattr(model, f"{name}s")
            ]
            for alpha in alphas
        ]
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "ambiguity",
    [
        KL(),
        Wasserstein(),
        Wasserstein(1),
        Wasserstein(inf),
        Wasserstein(feature_weight=[1, 2, 1, inf]),
    ],
    ids=["kl", "w2", "w1", "winf", "fixed"],
)
def test_scores_are_those_of_fits_from_scratch(ambiguity, n_classes):
    X, y = samples(300, 4, n_classes, seed=1)
    model = SatisficingClassifierCV(ambiguity=ambiguity, **GRID, scoring="neg_log_loss").fit(X, y)
    expected = from_scratch(model, X, y, "neg_log_loss")
    assert model.scores_ == pytest.approx(expected, abs=1e-4)
    assert model.scores_.shape == (3, 2, 5)
    assert model.mean_scores_ == pytest.approx(expected.mean(axis=2), abs=1e-4)
    j, i = np.unravel_index(expected.mean(axis=2).argmax(), (3, 2))
    assert (model.alpha_, model.slack_) == (GRID["alphas"][j], GRID["slacks"][i])
    assert model.best_score_ == model.mean_scores_[j, i]


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "smoothed_hinge"},
        {"loss": "smoothed_hinge", "ambiguity": "kl"},
        {"penalty": None, "alphas": (1e-4, 1e-3, 1e-2, 1e-1)},
        {"fit_intercept": False},
        {"class_weight": "balanced"},
        {"class_weight": {0: 3.0, 1: 1.0}, "ambiguity": "kl"},
    ],
    ids=str,
)
def test_other_programs(options):
    X, y = samples(240, 3, seed=2)
    model = SatisficingClassifierCV(**{**GRID, **options}, scoring="neg_log_loss").fit(X, y)
    expected = from_scratch(model, X, y, "neg_log_loss")
    assert model.scores_ == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("ambiguity", ["kl", "wasserstein"])
def test_accuracies_are_those_of_fits_from_scratch(ambiguity):
    X, y = samples(2_000, 6, 3, seed=3)
    model = SatisficingClassifierCV(ambiguity=ambiguity, **GRID).fit(X, y)
    expected = from_scratch(model, X, y, None)
    assert model.scores_ == pytest.approx(expected, abs=1 / 400 + 1e-9)  # one borderline sample
    assert (model.scores_ != expected).mean() < 0.05
    given = SatisficingClassifierCV(
        ambiguity=ambiguity, **GRID, scoring=make_scorer(accuracy_score)
    )
    assert given.fit(X, y).scores_ == pytest.approx(model.scores_, abs=1e-12)


@pytest.mark.parametrize("shape", [(60, 3), (30, 80)], ids=["separable", "wide"])
@pytest.mark.parametrize("penalty", ["l2", None])
@pytest.mark.parametrize("ambiguity", ["kl", "wasserstein"])
@pytest.mark.filterwarnings("ignore:Every single sample")
def test_separable_data(shape, penalty, ambiguity):
    X, _ = samples(*shape, seed=4)
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)
    model = SatisficingClassifierCV(
        ambiguity=ambiguity, penalty=penalty, slacks=(0.1, 0.3), cv=3, scoring="neg_log_loss"
    ).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = from_scratch(model, X, y, "neg_log_loss", cv=3)
    assert model.scores_ == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("ambiguity", ["kl", Wasserstein(1)])
def test_the_final_model_is_that_of_the_choice(data, ambiguity):
    X, y = data
    model = SatisficingClassifierCV(ambiguity=ambiguity, **GRID).fit(X, y)
    alone = SatisficingClassifier(
        ambiguity=ambiguity, penalty="l2", alpha=model.alpha_, slack=model.slack_
    ).fit(X, y)
    assert model.coef_ == pytest.approx(alone.coef_, rel=1e-9)
    for name in ("fragility_", "target_", "erm_loss_", "trivial_loss_", "n_iter_", "solver_"):
        assert getattr(model, name) == getattr(alone, name)
    assert model.certificate_.fragility == model.fragility_
    assert certify(model, X, y).attained_loss == pytest.approx(model.certificate_.attained_loss)
    assert model.predict_proba(X).tolist() == alone.predict_proba(X).tolist()


def test_fragilities_are_those_of_the_training_parts(data):
    X, y = data
    for ambiguity in (KL(), Wasserstein()):
        model = SatisficingClassifierCV(ambiguity=ambiguity, **GRID).fit(X, y)
        train, _ = next(StratifiedKFold(5).split(X, y))
        for j, alpha in enumerate(model.alphas):
            for i, slack in enumerate(model.slacks):
                alone = SatisficingClassifier(
                    ambiguity=ambiguity, penalty="l2", alpha=alpha, slack=slack
                ).fit(X[train], y[train])
                assert model.fragilities_[j, i, 0] == pytest.approx(alone.fragility_, rel=1e-3)


def test_ties_go_to_the_more_robust(data):
    X, y = data
    model = SatisficingClassifierCV(**GRID, scoring=lambda *_: 1.0).fit(X, y)
    assert (model.slack_, model.alpha_) == (0.4, 1e-1)
    worst = SatisficingClassifierCV(**GRID, scoring=lambda *_: -inf).fit(X, y)
    assert (worst.slack_, worst.alpha_, worst.best_score_) == (0.4, 1e-1, -inf)


def test_target_ratios(data):
    X, y = data
    model = SatisficingClassifierCV(
        alphas=(1e-3, 1e-2), target_ratios=(1.02, 1.05), scoring="neg_log_loss"
    ).fit(X, y)
    expected = from_scratch(model, X, y, "neg_log_loss", name="target_ratio")
    assert model.scores_ == pytest.approx(expected, abs=1e-4)
    assert model.target_ratio_ in (1.02, 1.05)
    assert not hasattr(model, "slack_")
    assert model.target_ == pytest.approx(model.target_ratio_ * model.erm_loss_)
    model.set_params(target_ratios=None, slacks=(0.1,)).fit(X, y)
    assert model.slack_ == 0.1
    assert not hasattr(model, "target_ratio_")


def test_trivial_targets_are_models_too(data):
    X, y = data
    with pytest.warns(TrivialTargetWarning):
        model = SatisficingClassifierCV(alphas=(1e-3,), target_ratios=(10.0,)).fit(X, y)
    assert model.mean_scores_[0, 0] == pytest.approx(max(np.mean(y == "yes"), np.mean(y == "no")))
    assert not model.fragilities_.any()


def test_without_a_penalty_there_are_no_strengths(data):
    X, y = data
    model = SatisficingClassifierCV(penalty=None, slacks=(0.1, 0.2)).fit(X, y)
    assert model.scores_.shape == (1, 2, 5)
    assert model.alpha_ == 0.0
    with pytest.raises(ValueError, match=r"penalty=None has no strength.*Leave alphas out"):
        SatisficingClassifierCV(penalty=None, alphas=(1e-3,)).fit(X, y)


def test_folds_without_a_target_are_told(data):
    X = np.linspace(-2.0, 2.0, 41)[:, np.newaxis]
    y = (X[:, 0] > 0.0).astype(int)
    y[20] = 1  # in the middle: only a training part that has it among others is not separable
    y[22] = 0
    model = SatisficingClassifierCV(penalty=None, target_ratios=(1.2,), cv=KFold(4, shuffle=False))
    with pytest.raises(ValueError, match=r"No penalty and target has a score in every fold.*fold"):
        model.fit(X, y)
    X, y = data

    def scorer(model, X, y):
        return np.nan if model.slack > 0.1 else 0.5

    with pytest.warns(UserWarning, match="15 of 30 fits in folds have no score: the scorer gave"):
        found = SatisficingClassifierCV(**GRID, scoring=scorer).fit(X, y)
    assert found.slack_ == 0.05
    assert np.isnan(found.mean_scores_[:, 0]).all()


def test_some_cells_without_a_target():
    X, y = samples(60, 2, seed=8)
    apart = X @ [10.0, 0.1] > 30.3
    with pytest.warns(
        UserWarning, match="fits in folds have no score, as in fold 1: .*lowest loss"
    ):
        model = SatisficingClassifierCV(
            penalty="l2",
            alphas=(0.0, 1e-2),
            target_ratios=(1.01, 1.02),
            cv=[(np.arange(60), np.arange(60)), (np.flatnonzero(apart == y), np.arange(60))],
        ).fit(X, y)
    assert np.isnan(model.scores_[0, :, 1]).all()
    assert np.isfinite(model.scores_[1]).all()
    assert model.alpha_ == 1e-2


def test_a_class_that_a_part_lacks():
    X, y = load_iris(return_X_y=True)
    ends = KFold(3)  # the classes come one after the other: each training part lacks one
    model = SatisficingClassifierCV(cv=ends, slacks=(0.1,), alphas=(1e-3, 1e-2))
    with pytest.warns(AbsentClassWarning, match="folds 0, 1, 2 lack classes.* shuffle"):
        model.fit(X, y)
    assert model.scores_.tolist() == np.zeros((2, 1, 3)).tolist()
    mixed = [(np.flatnonzero(y != k), np.arange(150)) for k in range(3)]
    with pytest.warns(AbsentClassWarning):
        model.set_params(cv=mixed, scoring="neg_log_loss").fit(X, y)
    assert model.scores_.shape == (2, 1, 3)
    assert (model.scores_ < -10.0).all()  # it said no chance, and was wrong
    model.set_params(cv=[(np.arange(150), np.flatnonzero(y != 1))]).fit(X, y)  # in the test part
    alone = SatisficingClassifier(penalty="l2", alpha=model.alpha_, slack=0.1).fit(X, y)
    shares = alone.predict_proba(X[y != 1])
    assert model.best_score_ == pytest.approx(
        -log_loss(y[y != 1], shares, labels=[0, 1, 2]), abs=1e-4
    )
    weights = {0: 1.0, 1: 2.0}
    with pytest.warns(AbsentClassWarning, match="of them 1: "):
        model.set_params(cv=mixed[1:2], scoring=None, class_weight=weights).fit(X, y)
    assert model.scores_.mean() > 0.6
    model.set_params(cv=[(np.flatnonzero(y == 0), np.arange(150)), *mixed], class_weight=None)
    with pytest.raises(ValueError, match="fold 0: its training part has samples of one class only"):
        model.fit(X, y)


@pytest.mark.parametrize("scoring", ["neg_log_loss", None])
def test_weights_are_repetitions(scoring):
    X, y = samples(120, 3, seed=6)
    weights = np.random.default_rng(7).integers(0, 4, 120)
    repeated = np.repeat(np.arange(120), weights)
    third = np.arange(120) % 3
    options = {**GRID, "scoring": scoring}
    splits = [(np.flatnonzero(third != k), np.flatnonzero(third == k)) for k in range(3)]
    weighted = SatisficingClassifierCV(**options, cv=splits)
    weighted.fit(X, y, sample_weight=weights.astype(float))
    where = third[repeated]
    splits = [(np.flatnonzero(where != k), np.flatnonzero(where == k)) for k in range(3)]
    other = SatisficingClassifierCV(**options, cv=splits).fit(X[repeated], y[repeated])
    assert weighted.scores_ == pytest.approx(other.scores_, abs=1e-4 if scoring else 1e-12)
    assert weighted.coef_ == pytest.approx(other.coef_, rel=1e-6)


def test_a_scorer_that_takes_no_weights(data):
    X, y = data
    weights = np.arange(1.0, len(y) + 1)
    plain = SatisficingClassifierCV(**GRID, scoring=lambda m, X, y: np.mean(m.predict(X) == y))
    plain.fit(X, y, sample_weight=weights)
    weighted = SatisficingClassifierCV(**GRID).fit(X, y, sample_weight=weights)
    assert np.abs(plain.scores_ - weighted.scores_).max() > 1e-3


def test_routing(data):
    X, y = data
    weights = np.arange(1.0, len(y) + 1)
    expected = SatisficingClassifierCV(**GRID).fit(X, y, sample_weight=weights)
    with config_context(enable_metadata_routing=True):
        model = SatisficingClassifierCV(**GRID).fit(X, y, sample_weight=weights)
        assert model.scores_.tolist() == expected.scores_.tolist()
        assert model.score(X, y, sample_weight=weights) == pytest.approx(
            accuracy_score(y, model.predict(X), sample_weight=weights)
        )
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=False)
        unweighted = SatisficingClassifierCV(**GRID, scoring=scorer)
        unweighted.fit(X, y, sample_weight=weights)
        assert np.abs(unweighted.scores_ - expected.scores_).max() > 1e-3
        groups = np.arange(len(y)) % 7
        grouped = SatisficingClassifierCV(**GRID, cv=GroupKFold(3).set_split_request(groups=True))
        assert grouped.fit(X, y, groups=groups).scores_.shape == (3, 2, 3)
        inner = SatisficingClassifierCV(**GRID).set_fit_request(sample_weight=True)
        inner.set_score_request(sample_weight=True)
        search = GridSearchCV(inner, {"ambiguity": [Wasserstein(1)]}, cv=2)
        assert search.fit(X, y, sample_weight=weights).best_estimator_.alpha_ in GRID["alphas"]
    with pytest.raises(ValueError, match="enable_metadata_routing=True"):
        SatisficingClassifierCV(**GRID).fit(X, y, groups=groups)


def test_scorers(data):
    X, y = data
    model = SatisficingClassifierCV(**GRID, scoring=neg_fragility_index_scorer).fit(X, y)
    assert model.scores_ == pytest.approx(
        from_scratch(model, X, y, neg_fragility_index_scorer), rel=1e-3
    )
    assert model.score(X, y) == neg_fragility_index_scorer(model, X, y)
    seen = []

    def scorer(model, X, y):
        seen.append((model.alpha, model.slack, model.fragility_, model.target_))
        return model.predict_proba(X)[:, 0].mean()

    SatisficingClassifierCV(**GRID, cv=2, scoring=scorer).fit(X, y)
    assert {entry[:2] for entry in seen} == {(a, s) for a in GRID["alphas"] for s in GRID["slacks"]}
    assert len(seen) == 12


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix])
def test_sparse(data, make):
    X, y = data
    X = np.where(np.abs(X - 3.0) > 0.5, X, 0.0)
    options = {**GRID, "scoring": "neg_log_loss"}
    model = SatisficingClassifierCV(**options).fit(make(X), y)
    assert model.scores_ == pytest.approx(
        SatisficingClassifierCV(**options).fit(X, y).scores_, abs=1e-4
    )
    accuracy = SatisficingClassifierCV(**GRID).fit(make(X), y)
    assert accuracy.scores_ == pytest.approx(
        SatisficingClassifierCV(**GRID).fit(X, y).scores_, abs=0.03
    )


def test_frames(data):
    pandas = pytest.importorskip("pandas")
    X, y = data
    frame = pandas.DataFrame(X, columns=list("abcd"))
    model = SatisficingClassifierCV(**GRID).fit(frame, pandas.Series(y))
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert model.scores_.tolist() == SatisficingClassifierCV(**GRID).fit(X, y).scores_.tolist()
    assert set(model.predict(frame)) == {"no", "yes"}
    chain = make_pipeline(StandardScaler(), SatisficingClassifierCV(**GRID))
    chain.set_output(transform="pandas").fit(frame, y)
    assert chain[-1].feature_names_in_.tolist() == ["a", "b", "c", "d"]


def test_clone_and_pickle(data):
    X, y = data
    model = SatisficingClassifierCV(ambiguity=Wasserstein(1), **GRID).fit(X, y)
    copy = clone(model)
    assert not hasattr(copy, "coef_")
    assert copy.fit(X, y).coef_.tolist() == model.coef_.tolist()
    again = pickle.loads(pickle.dumps(model))
    assert again.predict_proba(X).tolist() == model.predict_proba(X).tolist()
    assert again.scores_.tolist() == model.scores_.tolist()


def test_folds_at_the_same_time_change_nothing(data):
    X, y = data
    model = SatisficingClassifierCV(**GRID).fit(X, y)
    both = SatisficingClassifierCV(**GRID, n_jobs=2).fit(X, y)
    assert both.scores_.tolist() == model.scores_.tolist()
    assert both.coef_.tolist() == model.coef_.tolist()


def test_order_does_not_matter(data):
    X, y = data
    model = SatisficingClassifierCV(**GRID, scoring="neg_log_loss").fit(X, y)
    turned = SatisficingClassifierCV(
        alphas=GRID["alphas"][::-1], slacks=GRID["slacks"][::-1], scoring="neg_log_loss"
    ).fit(X, y)
    assert turned.scores_[::-1, ::-1].tolist() == model.scores_.tolist()
    assert (turned.alpha_, turned.slack_) == (model.alpha_, model.slack_)


def test_scores_without_a_model(data):
    X, y = data
    model = SatisficingClassifierCV(**GRID, refit=False).fit(X, y)
    assert model.best_score_ == model.mean_scores_.max()
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_progress(data, capsys, monkeypatch):
    SatisficingClassifierCV(**GRID, cv=2).fit(*data)
    assert capsys.readouterr() == ("", "")
    SatisficingClassifierCV(**GRID, cv=2, verbose=1).fit(*data)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 6
    assert lines[0].startswith("[SatisficingClassifierCV] 1/6")
    assert "s left" in lines[0]
    assert "left" not in lines[-1]

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    SatisficingClassifierCV(**GRID, cv=3, verbose=1, n_jobs=2).fit(*data)
    said = sys.stderr.getvalue()
    assert said.count("\r") == 4  # the first fold by penalty, the others at once
    assert said.rstrip().endswith("s")
    assert said.count("\n") == 1


def test_searches_that_end_early_are_told(data):
    with pytest.warns(ConvergenceWarning) as caught:
        SatisficingClassifierCV(**GRID, cv=2, max_iter=1).fit(*data)
    said = [str(warning.message) for warning in caught]
    assert said[0].startswith("12 of 12 searches in folds did not settle within max_iter=1 steps")
    assert all("folds" not in message for message in said[1:])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slacks": ()}, r"slacks must be a sequence of one number or more.*got \(\)"),
        ({"slacks": 0.1}, "slacks must be a sequence.*got 0.1"),
        ({"alphas": "1e-3"}, "alphas must be a sequence.*got '1e-3'"),
        ({"alphas": [1e-3, -1.0]}, "alpha must be zero or more; got -1.0"),
        ({"alphas": [None]}, "alphas must be a number; got None"),
        ({"slacks": [0.1, 1.5]}, "slack must lie between 0 and 1.*got 1.5"),
        ({"target_ratios": [1.1, 0.9]}, "target_ratio must be greater than 1.*got 0.9"),
        ({"penalty": "l3"}, "penalty must be one of"),
        ({"tol_cv": 0.0}, "tol must be positive"),
        ({"scoring": "nonsense"}, "nonsense"),
        ({"scoring": {"a": "accuracy"}}, "scoring must be None, the name"),
        ({"loss": "nonsense"}, "loss must be"),
        ({"cv": 1000}, "n_splits=1000"),
    ],
    ids=str,
)
def test_errors(data, options, message):
    with pytest.raises(ValueError, match=message):
        SatisficingClassifierCV(**options).fit(*data)


@pytest.mark.parametrize("given", [{"loss": "hinge"}, {"penalty": "l1"}], ids=str)
def test_fragilities_where_the_program_has_corners(given):
    X, y = samples(80, 3, seed=9)
    every = [(np.arange(80), np.arange(80))] * 2
    model = SatisficingClassifierCV(cv=every, slacks=(0.1, 0.3), alphas=(1e-2,), **given).fit(X, y)
    alone = SatisficingClassifier(**{"penalty": "l2", **given}, alpha=1e-2, slack=0.3).fit(X, y)
    assert model.fragilities_[0, 1] == pytest.approx(alone.fragility_, rel=2e-3)
