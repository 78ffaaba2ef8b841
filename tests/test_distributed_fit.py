"""Training by sums over rows gives the models of training in memory."""

from __future__ import annotations

import warnings
from math import inf

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fragility import DROClassifier, ERMClassifier, SatisficingClassifier, SatisficingClassifierCV
from fragility.ambiguity import KL, Wasserstein
from fragility.distributed import fit, fitting
from fragility.distributed.fold_losses import out_of_fold
from fragility.exceptions import (
    FitInterrupted,
    InfeasibleTargetError,
    PartitionError,
    TrivialTargetWarning,
)
from fragility.linear_model.out_of_fold import ALPHAS
from fragility.losses import CrossEntropy
from fragility.programs.objective import Objective
from fragility.programs.row_sums import Request, RowSums, SummedPoint, TiltedPoint
from fragility.programs.rows import TrainingRows
from fragility.sources.local import of_arrays

from .reference.sums import fragility_of, losses_of

N = 6_000


@pytest.fixture(autouse=True)
def small_sample(monkeypatch):
    """A sample of some hundred rows, so that these data are out of memory."""
    monkeypatch.setattr(fitting, "_SAMPLE", 1 << 12)


def drawn(n_classes=2, d=4, seed=0, *, n=N, shift=0.0, steep=1.0, offset=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(0.5, 2.0, d)
    W = rng.normal(size=(d, n_classes)) * steep
    noise = rng.gumbel(size=(n, n_classes))
    noise[:, 0] -= shift
    return X + offset, (X @ W + noise).argmax(axis=1)


def table(X, y, weights=None):
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])} | {"y": y}
    return columns if weights is None else columns | {"w": weights}


def both(X, y, weights=None, **settings):
    """The same estimator fitted in memory and by readings."""
    alone = SatisficingClassifier(**settings).fit(X, y, weights)
    asked = {"label": "y", "weight": None if weights is None else "w"}
    read = fit(SatisficingClassifier(**settings), table(X, y, weights), **asked)
    assert read.n_passes_ > 2
    return alone, read


def close(read, alone, tol=1e-6):
    """Whether k, target and scores are the same."""
    assert read.fragility_ == pytest.approx(alone.fragility_, rel=tol)
    assert read.target_ == pytest.approx(alone.target_, rel=1e-8)
    assert read.erm_loss_ == pytest.approx(alone.erm_loss_, rel=1e-8)
    assert read.coef_ == pytest.approx(alone.coef_, abs=1e-3 * np.abs(alone.coef_).max())
    assert read.classes_.tolist() == alone.classes_.tolist()


AMBIGUITIES = [KL(), Wasserstein(norm=1), Wasserstein(norm=2), Wasserstein(norm=inf)]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("ambiguity", AMBIGUITIES, ids=repr)
@pytest.mark.parametrize(
    "settings",
    [
        {"slack": 0.1},
        {"slack": 0.3, "penalty": "l2", "alpha": 1e-2},
        {"target_ratio": 1.05, "fit_intercept": "priced"},
        {"slack": 0.2, "fit_intercept": False, "class_weight": "balanced"},
    ],
    ids=["plain", "ridge", "priced", "balanced"],
)
def test_models_of_memory(n_classes, ambiguity, settings):
    X, y = drawn(n_classes)
    alone, read = both(X, y, ambiguity=ambiguity, **settings)
    close(read, alone)
    assert read.n_passes_ <= 6
    assert read.certificate_.attained_loss <= read.target_ * (1.0 + 1e-12)
    assert read.certificate_.n_samples == N


@pytest.mark.parametrize("ambiguity", AMBIGUITIES[:3:2], ids=repr)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_weights(ambiguity, n_classes):
    X, y = drawn(n_classes)
    weights = np.random.default_rng(5).exponential(size=N)
    weights[:50] = 0.0
    close(*both(X, y, weights, ambiguity=ambiguity, slack=0.1, class_weight={0: 3.0, 1: 1.0})[::-1])


@pytest.mark.parametrize("ambiguity", AMBIGUITIES[:3:2], ids=repr)
@pytest.mark.parametrize(
    "data",
    [drawn(n=20_000, shift=5.5), drawn(offset=1e6), drawn(steep=6.0)],
    ids=["one in a hundred", "far from zero", "separable sample"],
)
def test_hard_data(ambiguity, data):
    X, y = data
    alone, read = both(X, y, ambiguity=ambiguity, slack=0.1)
    close(read, alone)


def test_the_sample_is_separable(monkeypatch):
    monkeypatch.setattr(fitting, "_SAMPLE", 1 << 8)
    monkeypatch.setattr(fitting, "_LEAST_SAMPLE", 20)
    X, y = drawn(steep=4.0)
    for ambiguity in (KL(), Wasserstein()):
        alone, read = both(X, y, ambiguity=ambiguity, slack=0.1)
        close(read, alone)


@pytest.mark.parametrize("loss", ["max_logistic", "smoothed_hinge"])
@pytest.mark.parametrize("ambiguity", AMBIGUITIES[:3:2], ids=repr)
def test_other_smooth_losses(loss, ambiguity):
    X, y = drawn()
    close(*both(X, y, ambiguity=ambiguity, loss=loss, slack=0.1)[::-1])


@pytest.mark.parametrize("norm", [1, 2, inf])
def test_features_that_cannot_shift(norm):
    X, y = drawn()
    distance = Wasserstein(norm, feature_weight=[inf, 1.0, 2.0, 0.5])
    alone, read = both(X, y, ambiguity=distance, slack=0.1)
    close(read, alone)
    assert read.trivial_loss_ == pytest.approx(alone.trivial_loss_, rel=1e-9)


def test_measurement_errors_by_name():
    X, y = drawn()
    distance = Wasserstein.from_noise({"x1": 0.5})
    frame = {name: column for name, column in table(X, y).items() if name != "y"}
    pandas = pytest.importorskip("pandas")
    alone = SatisficingClassifier(ambiguity=distance, slack=0.1).fit(pandas.DataFrame(frame), y)
    read = fit(SatisficingClassifier(ambiguity=distance, slack=0.1), table(X, y), label="y")
    close(read, alone)
    assert read.ambiguity_.feature_weight == pytest.approx(alone.ambiguity_.feature_weight)
    assert read.feature_names_in_.tolist() == alone.feature_names_in_.tolist()


@pytest.mark.parametrize("ambiguity", AMBIGUITIES[:3:2], ids=repr)
def test_columns_twice_and_constant(ambiguity):
    X, y = drawn()
    X = np.column_stack([X, X[:, 0], np.ones(N)])
    alone, read = both(X, y, ambiguity=ambiguity, slack=0.1)
    close(read, alone)
    assert read.coef_[0, 0] == pytest.approx(read.coef_[0, 4], rel=1e-4)


def test_labels_are_text():
    X, y = drawn()
    names = np.array(["no", "yes"])[y]
    alone, read = both(X, names, slack=0.1)
    close(read, alone)
    frame = pytest.importorskip("pandas").DataFrame(X, columns=read.feature_names_in_)
    assert (read.predict(frame) == alone.predict(X)).mean() > 0.999


def test_separable_data_have_a_lowest_loss_of_zero():
    X, _ = drawn()
    y = (X[:, 0] > 0.0).astype(int)
    alone, read = both(X, y, slack=0.1)
    assert read.fragility_ == pytest.approx(alone.fragility_, rel=1e-6)
    assert read.erm_loss_ == 0.0


@pytest.mark.parametrize("penalty", [None, "l2"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_lowest_loss(penalty, n_classes):
    X, y = drawn(n_classes)
    alone = ERMClassifier(penalty=penalty).fit(X, y)
    read = fit(ERMClassifier(penalty=penalty), table(X, y), label="y")
    assert read.loss_ == pytest.approx(alone.loss_, rel=1e-9)
    assert read.coef_ == pytest.approx(alone.coef_, abs=1e-4)
    assert 2 < read.n_passes_ <= 6


@pytest.mark.parametrize("ambiguity", AMBIGUITIES[:3:2], ids=repr)
def test_certificates_are_those_of_the_formulas(ambiguity):
    X, y = drawn(3, n=3_000)
    read = fit(SatisficingClassifier(ambiguity=ambiguity, slack=0.1), table(X, y), label="y")
    losses = losses_of(X, y, read.coef_, read.intercept_)
    certificate = read.certificate_
    # It may be a number just above the loss, never below.
    assert certificate.attained_loss == pytest.approx(losses.mean(), rel=1e-7)
    assert certificate.attained_loss >= losses.mean() * (1.0 - 1e-12)
    if ambiguity == KL():
        k = fragility_of(losses, np.ones(losses.size), read.target_)
        assert certificate.worst_loss(1e9) == pytest.approx(losses.max(), rel=1e-9)
    else:
        apart = [a - b for a in read.coef_ for b in read.coef_]
        k = max(np.linalg.norm(one) for one in apart)
        assert certificate.worst_loss(0.5) == pytest.approx(losses.mean() + 0.5 * k, rel=1e-7)
    assert read.fragility_ == pytest.approx(k, rel=1e-8)
    scores = X @ read.coef_.T + read.intercept_
    spread = np.ptp(scores, axis=1).max()
    assert certificate.label_flip_bound(0.1) == pytest.approx(
        losses.mean() + 0.1 * spread, rel=1e-6
    )
    alone = SatisficingClassifier(ambiguity=ambiguity, slack=0.1).fit(X, y).certificate_
    assert certificate.critical_distance == pytest.approx(alone.critical_distance, rel=1e-3)
    assert certificate.violation_bound(0.3) == pytest.approx(alone.violation_bound(0.3), rel=1e-6)
    assert certificate.at(0.2).loss == pytest.approx(alone.at(0.2).loss, rel=1e-6)
    assert "samples          3000" in repr(certificate)
    assert all(bound.vacuous for bound in certificate.index_bounds().values())
    for refused in (certificate.worst_case_weights, lambda: certificate.priced_at(0.1)):
        with pytest.raises(ValueError, match="certify"):
            refused()


def test_index_bound_of_two_classes():
    X, y = drawn()
    alone, read = both(X, y, slack=0.1)
    mine, theirs = read.certificate_.index_bound(), alone.certificate_.index_bound()
    assert (mine.bound, mine.target) == pytest.approx((theirs.bound, theirs.target), rel=1e-6)
    assert not mine.vacuous


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sums_are_those_of_finite_differences(n_classes):
    """Value, gradient, Hessian and tilt, by parts that are merged, against the formulas."""
    X, y = drawn(n_classes, 2, n=60)
    rng = np.random.default_rng(1)
    weights, s = rng.exponential(size=60), 0.7
    outputs = 1 if n_classes == 2 else n_classes
    whole = TrainingRows(X, y, weights, n_classes, np.zeros(2), np.ones(2), True)
    objective = Objective(whole, CrossEntropy())
    parameters = rng.normal(size=objective.size)

    def losses(at):
        coef, intercept = np.reshape(at, (outputs, 3))[:, :2], np.reshape(at, (outputs, 3))[:, 2]
        return losses_of(X, y, coef, intercept)

    def mean(at):
        return weights @ losses(at) / weights.sum()

    def tilted(at):
        return np.log(weights @ np.exp(s * losses(at)) / weights.sum()) / s

    def slopes(function, at):
        steps = 1e-5 * np.eye(at.size)
        return np.array([(function(at + e) - function(at - e)) / 2e-5 for e in steps])

    for inverse, function in ((None, mean), (s, tilted)):
        request, sums = Request(parameters, 2, inverse), RowSums()
        for part in (slice(0, 1), slice(1, 40), slice(40, 60)):
            rows = TrainingRows(X[part], y[part], weights[part], *whole_settings(whole))
            one = RowSums()
            one.add(Objective(rows, CrossEntropy()), request)
            sums.merge(one, request)
        point = SummedPoint(objective, parameters, sums)
        if inverse is not None:
            point = TiltedPoint(objective, parameters, sums, s)
            assert point.worst == pytest.approx(tilted(parameters), rel=1e-12)
            shares = weights * np.exp(s * losses(parameters))
            shares /= shares.sum()
            own = weights / weights.sum()
            assert point.divergence == pytest.approx(shares @ np.log(shares / own), rel=1e-9)
        assert point.value == pytest.approx(mean(parameters), rel=1e-12)
        assert point.gradient == pytest.approx(slopes(function, parameters), abs=1e-7)
        second = slopes(lambda at, f=function: slopes(f, at), parameters)
        assert point.hessian == pytest.approx(second, abs=1e-4)


def whole_settings(rows):
    return rows.n_classes, rows.centre, rows.scale, rows.fit_intercept


@pytest.mark.slow
def test_out_of_fold_losses_are_those_of_models_of_folds():
    X, y = drawn(n=10_000)
    X = StandardScaler().fit_transform(X)
    folds = np.random.default_rng(0).permutation(len(y)) % 5
    lowest = LogisticRegression(C=inf, tol=1e-10).fit(X, y)
    parameters = np.append(lowest.coef_[0], lowest.intercept_)
    settings = (2, np.zeros(4), np.ones(4), True)
    parts = []
    for fold in range(5):
        own = folds == fold
        rows = TrainingRows(X[own], y[own], np.ones(own.sum()), *settings)
        parts.append(RowSums())
        parts[-1].add(Objective(rows, CrossEntropy()), Request(parameters))
    objective = Objective(TrainingRows(X[:2], y[:2], np.ones(2), *settings), CrossEntropy())
    found = out_of_fold(objective, parameters, parts)
    losses = []
    for alpha in ALPHAS:
        total = 0.0
        for fold in range(5):
            own = folds == fold
            C = 1.0 / (2.0 * alpha * (~own).sum())
            model = LogisticRegression(C=C, tol=1e-10).fit(X[~own], y[~own])
            total += losses_of(X[own], y[own], model.coef_, model.intercept_).sum()
        losses.append(total / len(y))
    # What overfitting adds is 2e-4; of that it may miss a hundredth.
    least = losses_of(X, y, lowest.coef_, lowest.intercept_).mean()
    assert found.loss - least == pytest.approx(min(losses) - least, rel=1e-2)


@pytest.mark.parametrize("ambiguity", AMBIGUITIES[:3:2], ids=repr)
def test_the_default_target_of_many_rows_is_that_of_memory(ambiguity):
    # With so many rows it is the least slack, whatever the folds are.
    X, y = drawn(n=20_000)
    alone, read = both(X, y, ambiguity=ambiguity)
    assert read.target_origin_.clip == alone.target_origin_.clip == "lowest"
    close(read, alone)


def test_few_rows_are_fitted_at_once():
    X, y = drawn(n=300)
    read = fit(SatisficingClassifier(), table(X, y), label="y", features=["x2", "x0"])
    alone = SatisficingClassifier().fit(X[:, [2, 0]], y)
    assert read.n_passes_ == 1
    assert read.fragility_ == pytest.approx(alone.fragility_, rel=1e-9)
    assert read.feature_names_in_.tolist() == ["x2", "x0"]


def test_targets_that_cannot_be_or_need_no_feature():
    X, y = drawn()
    with pytest.raises(InfeasibleTargetError, match="lowest loss is"):
        fit(SatisficingClassifier(target=0.01), table(X, y), label="y")
    with pytest.warns(TrivialTargetWarning):
        read = fit(SatisficingClassifier(target=0.9), table(X, y), label="y")
    assert read.fragility_ == 0.0
    assert not read.coef_.any()
    for target, labels in ((0.9, y), (None, (X[:, 0] > 0.0).astype(int))):
        asked = {"target": target} if target else {"slack": 0.1}
        model = SatisficingClassifier(ambiguity=KL(), **asked)
        with pytest.raises(NotImplementedError, match="Every single row can meet the target"):
            fit(model, table(X, labels), label="y")
    with pytest.raises(NotImplementedError, match="told apart without a mistake"):
        fit(ERMClassifier(penalty=None), table(X, (X[:, 0] > 0.0).astype(int)), label="y")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (SatisficingClassifier(loss="hinge"), "corners"),
        (SatisficingClassifier(penalty="l1"), "penalty='l1'"),
        (SatisficingClassifier(ambiguity=Wasserstein(label_cost=1.0)), "label_cost"),
        (SatisficingClassifier(radius=0.1), "radius"),
        (SatisficingClassifier(solver="conic"), "solver"),
        (DROClassifier(), "got DROClassifier"),
        (SatisficingClassifierCV(), "got SatisficingClassifierCV"),
        (make_pipeline(SatisficingClassifier()), "got Pipeline"),
    ],
)
def test_other_programs_are_refused_by_name(model, said):
    with pytest.raises(NotImplementedError, match=said):
        fit(model, table(*drawn(n=50)), label="y")


def test_several_classes_of_a_loss_with_corners_are_refused():
    with pytest.raises(NotImplementedError, match="3 classes has corners"):
        fit(SatisficingClassifier(loss="max_logistic"), table(*drawn(3)), label="y")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"label": "z"}, "has no column 'z'"),
        ({"label": "y", "features": ["x0", "x9"]}, "no column 'x9'. .*Did you mean"),
        ({"label": "y", "features": "x0"}, "list of columns"),
        ({"label": "y", "features": ["x0", "y"]}, "named for two things"),
        ({"label": "y", "features": []}, "no feature"),
        ({"label": "x0"}, "more than 1,000|must be text, booleans or whole"),
    ],
)
def test_wrong_columns(asked, said):
    with pytest.raises(ValueError, match=said):
        fit(SatisficingClassifier(), table(*drawn(n=1_200)), **asked)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("x1", None, "'x1' has missing values"),
        ("x1", np.nan, "'x1' has missing values"),
        ("x1", np.inf, "'x1' has infinite values"),
        ("x1", "n/a", "'x1'"),
        ("y", None, "'y' has missing values"),
        ("w", -1.0, "the weight -1"),
        ("w", None, "'w' has missing values"),
    ],
)
def test_a_bad_part_is_named(tmp_path, column, value, said):
    X, y = drawn(n=400)
    for part in range(3):
        rows = slice(100 * part, 100 * part + 100)
        columns = {
            name: values[rows].tolist() for name, values in table(X, y, np.ones(400)).items()
        }
        if part == 1:
            columns[column][7] = value
            if isinstance(value, str):
                columns[column] = [str(one) for one in columns[column]]
        pq.write_table(pa.table(columns), tmp_path / f"part-{part}.parquet")
    with pytest.raises(PartitionError, match=said) as caught:
        fit(SatisficingClassifier(slack=0.1), tmp_path, label="y", weight="w")
    assert caught.value.file.endswith("part-1.parquet")


class Interrupting:
    """A source that is interrupted in some reading."""

    def __init__(self, data, reading):
        self.source, self.left = of_arrays(data), reading
        self.column_names, self.name = self.source.column_names, self.source.name

    def reduce(self, add, merge, columns):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return self.source.reduce(add, merge, columns)


@pytest.mark.parametrize("ambiguity", AMBIGUITIES[:3:2], ids=repr)
def test_an_interrupted_fit_says_what_it_reached(ambiguity, monkeypatch):
    X, y = drawn()
    monkeypatch.setattr(fitting, "open_source", lambda data: data)
    model = SatisficingClassifier(ambiguity=ambiguity, slack=0.1)
    with pytest.raises(FitInterrupted, match="in pass 2, before a model"):
        fit(model, Interrupting(table(X, y), 2), label="y")
    assert not hasattr(model, "coef_")
    with pytest.raises(FitInterrupted, match=r"in pass 4; the estimator holds .* fragility"):
        fit(model, Interrupting(table(X, y), 4), label="y")
    losses = losses_of(X, y, model.coef_, model.intercept_)
    assert losses.mean() <= model.target_ * (1.0 + 1e-9)
    best = SatisficingClassifier(ambiguity=ambiguity, slack=0.1).fit(X, y).fragility_
    assert (1.0 - 1e-3) * best <= model.fragility_ <= 1.1 * best
    plain = ERMClassifier()
    with pytest.raises(FitInterrupted, match="a loss of"):
        fit(plain, Interrupting(table(X, y), 3), label="y")
    best = ERMClassifier().fit(X, y)
    assert best.loss_ <= plain.loss_ <= 1.05 * best.loss_


def test_readings_are_told(capsys):
    fit(SatisficingClassifier(slack=0.1, verbose=1), table(*drawn()), label="y")
    said = capsys.readouterr().out.splitlines()
    assert "pass 1: 6,000 rows" in said[0]
    assert "about" in said[1]
    assert "more" not in said[-1]
    assert "fragility" in said[-1]


def test_the_same_rows_in_files_and_in_any_engine_of_this_machine(tmp_path):
    X, y = drawn()
    data = table(X, y)
    rows = pa.table(data)
    for part, start in enumerate(range(0, N, 1_000)):
        pq.write_table(rows.slice(start, 1_000), tmp_path / f"{part}.parquet")
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    sources = {
        "folder": tmp_path,
        "pattern": str(tmp_path / "*.parquet"),
        "table": rows,
        "polars": polars.scan_parquet(tmp_path / "*.parquet"),
        "duckdb": duckdb.read_parquet(str(tmp_path / "*.parquet")),
    }
    alone = SatisficingClassifier(slack=0.1).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for source in sources.values():
            close(fit(SatisficingClassifier(slack=0.1), source, label="y"), alone)


def test_costs_of_confusions_are_aligned_by_label():
    X, y = drawn(3)
    costs = pd.DataFrame([[0, 1, 2], [3, 0, 1], [5, 2, 0]], index=[0, 1, 2], columns=[0, 1, 2])
    losses = CrossEntropy(pair_cost=costs.iloc[::-1]), CrossEntropy(pair_cost=costs.to_numpy())
    found, expected = (fit(ERMClassifier(loss), table(X, y), label="y") for loss in losses)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    other = ERMClassifier(CrossEntropy(pair_cost=costs.rename(index={2: 4}, columns={2: 4})))
    with pytest.raises(ValueError, match="The rows of pair_cost are labelled 0, 1, 4"):
        fit(other, table(X, y), label="y")
