"""Inputs at the edge, and what was decided about each."""

import warnings
from math import inf, log

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from fragility import (
    KL,
    ERMClassifier,
    SatisficingClassifier,
    Wasserstein,
    certify,
    fragility_path,
)
from fragility.exceptions import (
    InfeasibleTargetError,
    NothingLearnedWarning,
    SeparableDataWarning,
    TargetError,
    TightTargetWarning,
    TrivialTargetWarning,
    UndefinedTargetError,
    ZeroFragilityWarning,
)
from fragility.losses import CrossEntropy, Loss, SmoothedHinge
from fragility.programs.objective import Objective
from fragility.programs.rows import training_rows
from fragility.solvers import corners
from fragility.solvers.searching import result

EACH = [KL(), Wasserstein(norm=1), Wasserstein(norm=2), Wasserstein(norm=inf)]
each_ambiguity = pytest.mark.parametrize("ambiguity", EACH, ids=["kl", "w1", "w2", "winf"])
each_transport = pytest.mark.parametrize("ambiguity", EACH[1:], ids=["w1", "w2", "winf"])
each_class_count = pytest.mark.parametrize("n_classes", [2, 3])


def noisy(n=200, d=4, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X @ rng.normal(size=(d, n_classes)) + 1.5 * rng.gumbel(size=(n, n_classes))).argmax(axis=1)
    return X, y


def separable(n=60, d=3, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, d)) + 8.0 * np.eye(n_classes, d)[y], y


@each_ambiguity
class TestBadInput:
    @pytest.mark.parametrize("bad", [np.nan, inf])
    def test_missing_and_infinite(self, ambiguity, bad):
        X, y = noisy()
        X[3, 1] = bad
        with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
            SatisficingClassifier(ambiguity=ambiguity, slack=0.1).fit(X, y)

    def test_one_class(self, ambiguity):
        X, _ = noisy()
        with pytest.raises(ValueError, match="at least 2 classes in the data, but the data contai"):
            SatisficingClassifier(ambiguity=ambiguity, slack=0.1).fit(X, np.ones(len(X)))

    def test_no_samples(self, ambiguity):
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            SatisficingClassifier(ambiguity=ambiguity, slack=0.1).fit(np.empty((0, 3)), [])

    def test_a_class_without_weight(self, ambiguity):
        X, y = noisy()
        message = r"Every class needs a sample of positive weight; these classes have none: 1\."
        with pytest.raises(ValueError, match=message):
            SatisficingClassifier(ambiguity=ambiguity, slack=0.1).fit(X, y, sample_weight=1.0 - y)


class TestUnits:
    @each_transport
    def test_columns_in_millions(self, ambiguity):
        """Cells of 1e6 and of 1 are one problem when prices follow the units."""
        X, y = noisy()
        units = np.array([1e6, 1.0, 1e-6, 1.0])
        plain = SatisficingClassifier(ambiguity=ambiguity, slack=0.1).fit(X, y)
        priced = Wasserstein(ambiguity.norm, feature_weight=1.0 / units)
        scaled = SatisficingClassifier(ambiguity=priced, slack=0.1).fit(
            X * units + [1e6, 1e3, 0, 0], y
        )
        assert scaled.fragility_ == pytest.approx(plain.fragility_, rel=1e-7)
        assert scaled.coef_ * units == pytest.approx(plain.coef_, rel=1e-4, abs=1e-6)

    def test_columns_in_millions_kl(self):
        X, y = noisy()
        plain = SatisficingClassifier(ambiguity="kl", slack=0.1).fit(X, y)
        scaled = SatisficingClassifier(ambiguity="kl", slack=0.1).fit(X * 1e6 + 1e6, y)
        assert scaled.fragility_ == pytest.approx(plain.fragility_, rel=1e-9)
        assert scaled.coef_ * 1e6 == pytest.approx(plain.coef_, rel=1e-6)


class TestSeparable:
    @each_transport
    @each_class_count
    def test_slack_stays_defined(self, ambiguity, n_classes):
        X, y = separable(n_classes=n_classes)
        model = SatisficingClassifier(ambiguity=ambiguity, slack=0.1).fit(X, y)
        assert model.erm_loss_ == 0.0
        assert model.trivial_loss_ == pytest.approx(log(n_classes))
        assert model.target_ == pytest.approx(0.1 * log(n_classes))
        assert model.certificate_.headroom == pytest.approx(0.0, abs=1e-9)
        assert 0.0 < model.fragility_ < inf
        assert model.score(X, y) == 1.0

    @each_ambiguity
    def test_a_multiple_of_zero_is_refused(self, ambiguity):
        X, y = separable()
        message = r"target_ratio=1\.1 times a lowest loss of 0 .* Give slack .* or a penalty"
        with pytest.raises(UndefinedTargetError, match=message):
            SatisficingClassifier(ambiguity=ambiguity, target_ratio=1.1).fit(X, y)
        penalised = SatisficingClassifier(
            ambiguity=ambiguity, target_ratio=1.1, penalty="l2", alpha=1e-2
        ).fit(X, y)
        assert penalised.erm_loss_ > 0.0

    @each_class_count
    def test_kl_is_the_shortest_model_of_no_fragility(self, n_classes):
        X, y = separable(n_classes=n_classes)
        with pytest.warns(ZeroFragilityWarning, match=r"target 0\.\d+, lowest loss 0, trivial"):
            model = SatisficingClassifier(ambiguity="kl", slack=0.1).fit(X, y)
        assert model.fragility_ == 0.0
        losses = model.certificate_.losses
        assert losses.max() <= model.target_
        assert losses.max() == pytest.approx(model.target_, rel=1e-4)
        weights = model.certificate_.worst_case_weights()
        assert weights @ losses == pytest.approx(losses.max())

    def test_erm_says_that_there_is_no_minimum(self):
        X, y = separable()
        with pytest.warns(SeparableDataWarning, match='penalty="l2"'):
            model = ERMClassifier(penalty=None).fit(X, y)
        assert np.isfinite(model.coef_).all()
        assert 0.0 < model.loss_ <= 1e-6
        assert model.score(X, y) == 1.0

    def test_a_hinge_attains_its_zero(self):
        X, y = separable()
        model = ERMClassifier("smoothed_hinge", penalty=None).fit(X, y)
        margins = np.where(y == 1, 1, -1) * model.decision_function(X)
        assert model.loss_ <= 1e-6
        assert margins.min() == pytest.approx(1.0, abs=2e-2)  # no longer than it must be

    def test_an_absolute_target_of_zero(self):
        X, y = separable()
        with pytest.raises(InfeasibleTargetError):
            SatisficingClassifier(target=0.0).fit(X, y)


class TestFewSamples:
    @each_ambiguity
    @each_class_count
    @pytest.mark.filterwarnings("ignore::fragility.exceptions.ZeroFragilityWarning")
    def test_fewer_than_features(self, ambiguity, n_classes):
        X, y = noisy(n=12, d=40, n_classes=n_classes, seed=4)
        model = SatisficingClassifier(ambiguity=ambiguity, slack=0.1).fit(X, y)
        assert model.certificate_.headroom >= -1e-9
        assert model.score(X, y) > 0.9
        # Shortest: nothing of it is invisible to the samples.
        if ambiguity in (KL(), Wasserstein(norm=2)):
            centred = X - X.mean(axis=0) if ambiguity != KL() else X
            basis = np.linalg.svd(np.vstack([centred, X]), full_matrices=False)[2][: 12 + 1]
            seen = model.coef_ @ basis.T @ basis
            assert seen == pytest.approx(model.coef_, abs=1e-4 * np.abs(model.coef_).max())

    @each_ambiguity
    def test_one_positive(self, ambiguity):
        X, y = noisy(n=100)
        y = np.zeros(100, dtype=int)
        y[17] = 1
        X[17] = X.mean(axis=0)  # in the middle: cannot be told apart
        model = SatisficingClassifier(ambiguity=ambiguity, slack=0.1).fit(X, y)
        assert model.certificate_.headroom >= -1e-12
        assert 0.0 < model.fragility_ < inf


class TestImbalance:
    @each_ambiguity
    @pytest.mark.parametrize("loss", ["cross_entropy", "smoothed_hinge"])
    def test_ninety_nine_to_one(self, ambiguity, loss):
        X, y = noisy(n=2000, seed=2)
        keep = np.flatnonzero(y == 0)
        rare = np.flatnonzero(y == 1)[: keep.size // 99]
        X, y = X[np.r_[keep, rare]], y[np.r_[keep, rare]]
        model = SatisficingClassifier(loss, ambiguity, slack=0.1).fit(X, y)
        assert model.certificate_.headroom >= -1e-10
        assert 0.0 < model.fragility_ < inf
        balanced = SatisficingClassifier(loss, ambiguity, class_weight="balanced", slack=0.1).fit(
            X, y
        )
        assert balanced.trivial_loss_ == pytest.approx(log(2) if loss == "cross_entropy" else 0.5)
        assert balanced.predict(X)[y == 1].mean() > 0.5

    @each_ambiguity
    def test_weights_of_ten_millions_to_one(self, ambiguity):
        X, y = noisy()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = SatisficingClassifier(
                ambiguity=ambiguity, class_weight={0: 1e3, 1: 1e-4}, slack=0.1
            ).fit(X, y)
        assert (model.predict(X) == 0).all()
        assert model.certificate_.headroom >= -1e-12


class TestColumns:
    @each_ambiguity
    @each_class_count
    def test_the_same_column_twice(self, ambiguity, n_classes):
        X, y = noisy(n_classes=n_classes)
        model = SatisficingClassifier(ambiguity=ambiguity, slack=0.1).fit(np.c_[X, X[:, 0]], y)
        assert model.coef_[:, 0] == pytest.approx(model.coef_[:, -1], rel=1e-4, abs=1e-5)

    @each_ambiguity
    def test_a_column_that_never_changes(self, ambiguity):
        X, y = noisy()
        model = SatisficingClassifier(ambiguity=ambiguity, slack=0.1).fit(
            np.c_[X, np.full(len(X), 7.0)], y
        )
        without = SatisficingClassifier(ambiguity=ambiguity, slack=0.1).fit(X, y)
        assert model.coef_[0, -1] == pytest.approx(0.0, abs=1e-8)
        assert model.fragility_ == pytest.approx(without.fragility_, rel=1e-7)


class TestTargets:
    @each_ambiguity
    def test_impossible(self, ambiguity):
        X, y = noisy()
        lowest = SatisficingClassifier(ambiguity=ambiguity, slack=0.1).fit(X, y).erm_loss_
        message = rf"target=0\.1 cannot be reached: the lowest loss is {lowest:.6g}, a trivial"
        with pytest.raises(InfeasibleTargetError, match=message) as caught:
            SatisficingClassifier(ambiguity=ambiguity, target=0.1).fit(X, y)
        assert isinstance(caught.value, ValueError)

    @each_transport
    @pytest.mark.parametrize("wanted", [{"target": 0.8}, {"target_ratio": 5.0}])
    def test_trivial(self, ambiguity, wanted):
        X, y = noisy()
        shares = np.bincount(y) / len(y)
        with pytest.warns(TrivialTargetWarning, match=r"trivial loss 0\.6\d+.*slack below 1"):
            model = SatisficingClassifier(ambiguity=ambiguity, **wanted).fit(X, y)
        assert (model.coef_ == 0.0).all()
        assert model.fragility_ == 0.0
        assert model.trivial_loss_ == pytest.approx(-shares @ np.log(shares), rel=1e-12)
        assert model.predict_proba(X[:1])[0] == pytest.approx(shares, rel=1e-6)
        assert model.n_iter_ >= 1

    def test_trivial_without_intercept(self):
        X, y = noisy(n_classes=3)
        with pytest.warns(TrivialTargetWarning):
            model = SatisficingClassifier(target=1.2, fit_intercept=False).fit(X, y)
        assert model.trivial_loss_ == pytest.approx(log(3), rel=1e-14)

    def test_trivial_under_kl_is_no_special_case(self):
        X, y = noisy(n=400)
        rare = np.flatnonzero(y == 1)[30:]
        X, y = np.delete(X, rare, axis=0), np.delete(y, rare)
        model = SatisficingClassifier(ambiguity="kl", target_ratio=1.5).fit(X, y)
        assert log(2) > model.target_ > model.trivial_loss_
        assert (model.coef_ != 0.0).all()
        assert 0.0 < model.fragility_ < inf

    @each_ambiguity
    def test_tight(self, ambiguity):
        X, y = noisy()
        with pytest.warns(TightTargetWarning, match=r"almost nothing .* slack=0\.1"):
            model = SatisficingClassifier(ambiguity=ambiguity, slack=1e-7).fit(X, y)
        reference = LogisticRegression(C=inf, tol=1e-10).fit(X, y)
        assert model.coef_ == pytest.approx(reference.coef_, abs=5e-3)

    @each_ambiguity
    @pytest.mark.parametrize("labels", [[0, 0, 1], [0, 1], [0, 1, 2]])
    def test_nothing_to_learn(self, ambiguity, labels):
        X = np.repeat(noisy(n=50)[0], len(labels), axis=0)
        y = np.tile(labels, 50)
        with pytest.warns(NothingLearnedWarning, match="Nothing can be learned"):
            model = SatisficingClassifier(ambiguity=ambiguity, slack=0.1).fit(X, y)
        assert (model.coef_ == 0.0).all()
        assert model.fragility_ == (inf if ambiguity == KL() else 0.0)

    @pytest.mark.parametrize(
        ("wanted", "message"),
        [
            (
                {"target": 0.5, "target_ratio": 1.1},
                "one of .*; got target=0.5 and target_ratio=1.1",
            ),
            ({"target": 0.6, "slack": 0.9}, "Give one of target, target_ratio and slack; got"),
            ({"target_ratio": 1.0}, r"must be greater than 1, such as 1\.1; got 1\.0"),
            ({"target_ratio": 0.9}, "must be greater than 1"),
            ({"slack": 0.0}, "slack must lie between 0 and 1"),
            ({"slack": 1.0}, "slack must lie between 0 and 1"),
            ({"slack": "much"}, "slack must be a number; got 'much'"),
            ({"target": np.nan}, "target must be finite"),
        ],
    )
    def test_senseless(self, wanted, message):
        X, y = noisy()
        with pytest.raises(TargetError, match=message) as caught:
            SatisficingClassifier(**wanted).fit(X, y)
        assert isinstance(caught.value, ValueError)


class TestRefusals:
    @pytest.mark.parametrize(
        ("given", "kind", "message"),
        [
            ({"loss": "hinge2"}, ValueError, "loss must be one of 'cross_entropy'"),
            ({"ambiguity": "tv"}, ValueError, "ambiguity must be one of 'kl', 'wasserstein'"),
            ({"penalty": "l3"}, ValueError, "penalty must be one of 'l1', 'l2', None; got 'l3'"),
            ({"alpha": -1.0}, ValueError, "alpha must be zero or more"),
            ({"solver": "magic"}, ValueError, "'auto', 'newton', 'interior_point', 'conic'"),
            ({"tol": 0.0}, ValueError, "tol must be positive"),
            ({"max_iter": 0}, ValueError, "max_iter must be a whole number of 1 or more"),
            (
                {"ambiguity": Wasserstein(feature_weight=[1.0, 2.0])},
                ValueError,
                "feature_weight has 2 entries; X has 4 features",
            ),
        ],
    )
    def test_sentences(self, given, kind, message):
        X, y = noisy()
        with pytest.raises(kind, match=message):
            SatisficingClassifier(**given).fit(X, y)

    @pytest.mark.parametrize("norm", [3, "2", None, -1, True])
    def test_norms(self, norm):
        with pytest.raises(ValueError, match="norm must be one of 1, 2, inf"):
            Wasserstein(norm=norm)

    @pytest.mark.parametrize("cost", [0.0, -1.0, np.nan, "free", None, True])
    def test_label_costs(self, cost):
        with pytest.raises(ValueError, match="label_cost must be a positive number or inf"):
            Wasserstein(label_cost=cost)

    @pytest.mark.parametrize("weight", [[1.0, 0.0], [1.0, -1.0], [[1.0]], 2.0, [np.nan]])
    def test_feature_weights(self, weight):
        with pytest.raises(ValueError, match="feature_weight must be one positive number for each"):
            Wasserstein(feature_weight=weight)

    def test_conic_without_cvxpy(self, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "cvxpy", None)
        X, y = noisy()
        with pytest.raises(ImportError, match=r'pip install "fragility\[conic\]"'):
            SatisficingClassifier(solver="conic", slack=0.1).fit(X, y)

    def test_too_few_steps_are_said(self):
        X, y = noisy()
        with pytest.warns(ConvergenceWarning, match="max_iter=1"):
            SatisficingClassifier(ambiguity="kl", max_iter=1, slack=0.1).fit(X, y)


class TestPath:
    @each_ambiguity
    @each_class_count
    def test_nodes_are_fits(self, ambiguity, n_classes):
        X, y = noisy(n_classes=n_classes)
        path = fragility_path(X, y, ambiguity=ambiguity, slacks=[0.5, 0.05, 0.2])
        assert path.slack == pytest.approx([0.05, 0.2, 0.5])
        assert (np.diff(path.fragility) < 0).all()
        for i, slack in enumerate((0.05, 0.2, 0.5)):
            model = SatisficingClassifier(ambiguity=ambiguity, slack=slack).fit(X, y)
            assert path.target[i] == pytest.approx(model.target_, rel=1e-9)
            assert path.fragility[i] == pytest.approx(model.fragility_, rel=1e-6)
            assert path.coef[i] == pytest.approx(model.coef_, abs=2e-3 * np.abs(path.coef[i]).max())
            assert path.loss[i] == pytest.approx(model.certificate_.attained_loss, rel=1e-4)
        assert path.outcome == ["solved"] * 3

    def test_convex_in_the_target(self):
        X, y = noisy(n_classes=3)
        path = fragility_path(X, y)
        slopes = np.diff(path.fragility) / np.diff(path.target)
        assert (slopes < 0).all()
        assert (np.diff(slopes) > -1e-6).all()

    def test_absolute_targets(self):
        X, y = noisy()
        lowest = fragility_path(X, y, slacks=[0.5]).erm_loss
        path = fragility_path(X, y, targets=[lowest + 0.02, lowest + 0.01])
        assert path.target == pytest.approx([lowest + 0.01, lowest + 0.02])
        with pytest.raises(InfeasibleTargetError):
            fragility_path(X, y, targets=[lowest - 0.01])

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"slacks": [0.1], "targets": [0.5]}, "Give slacks or targets, not both"),
            ({"slacks": []}, "slacks must be a sequence of one number or more"),
            ({"slacks": [0.1, 1.5]}, "slack must lie between 0 and 1"),
        ],
    )
    def test_senseless(self, given, message):
        X, y = noisy()
        with pytest.raises(ValueError, match=message):
            fragility_path(X, y, **given)

    def test_progress_is_printed(self, capsys):
        X, y = noisy()
        fragility_path(X, y, slacks=[0.1, 0.2], verbose=1)
        assert capsys.readouterr().out.count("fragility_path] ") == 2


def test_certificate_of_the_fitted_is_certify():
    X, y = noisy(n_classes=3)
    for ambiguity in EACH:
        model = SatisficingClassifier(ambiguity=ambiguity, penalty="l2", slack=0.1).fit(X, y)
        again = certify(model, X, y)
        assert again.fragility == model.fragility_ == model.certificate_.fragility
        assert again.target == model.target_
        assert again.attained_loss == pytest.approx(model.certificate_.attained_loss, rel=1e-14)
        assert f"{model.fragility_:.6g}" in repr(model.certificate_)


def test_certify_counts_class_weights():
    X, y = noisy(n_classes=3)
    weights = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    for class_weight in ("balanced", {0: 1e7, 1: 1.0, 2: 1.0}):
        model = SatisficingClassifier(class_weight=class_weight, slack=0.1).fit(
            X, y, sample_weight=weights
        )
        again = certify(model, X, y, sample_weight=weights)
        assert again.attained_loss == pytest.approx(model.certificate_.attained_loss, rel=1e-12)
        assert again.fragility == model.fragility_
    erm = ERMClassifier("smoothed_hinge", alpha=0.1).fit(X, y)
    own = certify(erm, X, y, target=0.9)
    assert own.loss == SmoothedHinge()
    assert own.attained_loss == pytest.approx(erm.loss_, rel=1e-12)


def test_a_loss_that_is_steeper_than_it_says():
    class Tenfold(Loss):
        plain = CrossEntropy()

        def value(self, scores, y):
            return 10.0 * self.plain.value(scores, y)

        def gradient(self, scores, y):
            return 10.0 * self.plain.gradient(scores, y)

        def curvature(self, scores, y):
            return 10.0 * self.plain.curvature(scores, y)

    class Honest(Tenfold):
        steepness = 10.0

    X, y = noisy()
    with pytest.raises(ValueError, match="steepness 1, but a slope of"):
        SatisficingClassifier(Tenfold(), slack=0.1).fit(X, y)
    plain = SatisficingClassifier(slack=0.1).fit(X, y)
    honest = SatisficingClassifier(Honest(), slack=0.1).fit(X, y)
    assert honest.fragility_ == pytest.approx(10.0 * plain.fragility_, rel=1e-6)


def test_an_unsettled_minimum_is_said():
    X, y = noisy(n=300, d=10)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SatisficingClassifier(max_iter=2, target_ratio=1.5).fit(X, y)
        fragility_path(X, y, slacks=[0.3], max_iter=2)
    said = [str(one.message) for one in caught if one.category is ConvergenceWarning]
    assert any("The lowest loss, 0." in message for message in said)
    assert any("nor was the lowest loss found" in message for message in said)


def test_no_feature_needed_under_kl_keeps_the_intercept():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), (np.arange(200) >= 20).astype(int)
    with pytest.warns(ZeroFragilityWarning):
        model = SatisficingClassifier(ambiguity="kl", target=0.9).fit(X, y)
    assert not model.coef_.any()
    assert model.score(X, y) == 0.9
    assert model.certificate_.losses.max() <= 0.9


@pytest.mark.parametrize("loss", [CrossEntropy(), SmoothedHinge()], ids=str)
def test_the_shortest_model_does_not_depend_on_how_far_out_its_search_starts(loss):
    """From far out a length is known to a share of the first one only."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = (rng.normal(size=(60, 3)) + 4.0 * np.sign(y - 0.5)[:, np.newaxis]) * [1.0, 1e3, 1e6]
    objective = Objective(training_rows(X, y, 2), loss)
    start, weights = np.array([5.0, 5.0, 5.0, 0.0]), objective.length_weights
    lengths = []
    for factor in (1.0, 1e4):
        search = corners.shortest_meeting(objective, 0.3, factor * start, tol=1e-6, max_iter=1000)
        found = result(search)
        assert found.converged
        assert objective.at(found.parameters).losses.max() <= 0.3 * (1.0 + 1e-7)
        lengths.append(float(weights @ found.parameters**2))
    assert lengths[1] == pytest.approx(lengths[0], rel=1e-6)


def test_sparse_is_not_densified(monkeypatch):
    rng = np.random.default_rng(0)
    X = sparse.csr_array(sparse.random(300, 40, density=0.1, random_state=rng))
    y = (X @ rng.normal(size=40) + 0.3 * rng.logistic(size=300) > 0).astype(int)

    def refuse(self, *args, **kwargs):
        assert self.shape[0] != 300, "the data were made dense"
        return original(self, *args, **kwargs)

    original = sparse.csr_array.toarray
    monkeypatch.setattr(sparse.csr_array, "toarray", refuse)
    for ambiguity in EACH:
        SatisficingClassifier(ambiguity=ambiguity, slack=0.4).fit(X, y)
