"""What is known of the least fragility: its slope, and that no model has less."""

import warnings
from math import isnan

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from fragility import KL, DROClassifier, SatisficingClassifier, Wasserstein
from fragility.certificates import prove
from fragility.linear_model.training import Training
from fragility.solvers.multipliers import multipliers_of
from fragility.solvers.searching import result

from .reference import linear
from .support_matrix import ALPHA, AMBIGUITIES, LOSSES, Cell

#: Every loss and every ambiguity; classes and penalties take turns.
CELLS = [
    Cell(loss, name, 2 + (i + j) % 2, (None, "l2", "l1")[(i + 2 * j) % 3])
    for i, loss in enumerate(LOSSES)
    for j, name in enumerate(AMBIGUITIES)
]


def training_of(cell, **parameters):
    X, y = cell.data
    model = SatisficingClassifier(
        cell.loss, cell.ambiguity, penalty=cell.penalty, alpha=ALPHA, slack=0.3, **parameters
    )
    model._check_parameters()
    training = Training.of(model, model._class_weighted(model._validated(X, y, None)))
    references = result(training.references(np.zeros(training.objective.size)))
    return training, references


def solved(training, references, **wanted):
    wanted = {"target": None, "target_ratio": None, "slack": None} | wanted
    target, solution = result(training.solve(references, **wanted))
    return target.value, solution


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_critical_distance_is_the_slope_of_the_least_fragility(cell):
    model = cell.fitted(SatisficingClassifier, slack=0.3, tol=1e-10)
    step, k = 1e-5 * model.target_, []
    for sign in (-1, 1):
        other = cell.fitted(SatisficingClassifier, target=model.target_ + sign * step, tol=1e-10)
        k.append(cell.judged(other).plain_fragility(other.target_))
    assert model.certificate_.critical_distance == pytest.approx(2 * step / (k[0] - k[1]), rel=1e-4)
    X, y = cell.data
    proof = prove(model, X, y)
    assert proof.critical_distance == pytest.approx(model.certificate_.critical_distance, rel=1e-5)
    assert -1e-9 <= proof.gap <= 1e-8


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", [name for name in AMBIGUITIES if name != "KL"][:4])
def test_bounds_of_pairs_that_differ_are_proved(loss, name):
    cell = Cell(loss, name, 3, None, pair_cost=True)
    model = cell.fitted(SatisficingClassifier, slack=0.3)
    assert -1e-9 <= prove(model, *cell.data).gap <= 1e-6


@pytest.mark.parametrize("cell", CELLS[::5], ids=str)
def test_the_least_worst_loss_at_the_critical_distance_proves_it_too(cell):
    model = cell.fitted(SatisficingClassifier, slack=0.3)
    radius = model.certificate_.critical_distance
    ball = cell.fitted(DROClassifier, radius=radius, tol=1e-9)
    worst = cell.judged(ball).worst(radius)
    assert (worst - model.target_) / radius == pytest.approx(model.fragility_, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS[::2], ids=str)
def test_no_plane_proves_too_much(cell):
    """Wherever planes touch the loss, what they prove holds for the least fragile model."""
    training, references = training_of(cell)
    target, solution = solved(training, references, slack=0.3)
    objective, ambiguity = training.objective, training.ambiguity
    best = multipliers_of(objective, ambiguity, solution.parameters, target)
    rng, proved = np.random.default_rng(0), 0
    inside = references.minimum.point.parameters
    for size in (1e-6, 1e-4, 1e-2, 0.3):
        change = 1.0 + size * rng.normal(size=objective.size)
        there = objective.centred(change * solution.parameters)
        for share in (1.0, 0.5, 0.1):  # a model that meets the target
            point = share * there + (1.0 - share) * inside
            if objective.at(point).value < target:
                break
        found = multipliers_of(objective, ambiguity, point, target)
        if not isnan(found.lower):
            assert found.lower <= best.fragility * (1.0 + 1e-9)
            proved += 1
    assert proved


def test_corners_decide_the_slope():
    """A hinge on 60 samples: which side of a corner a sample is on is no matter of taste."""
    cell = Cell("hinge", "Wasserstein, norm 2", 2, None)
    X, y = cell.data
    model = cell.fitted(SatisficingClassifier, slack=0.3, tol=1e-10)
    margins = np.where(y == 1, 1.0, -1.0) * model.decision_function(X)
    far = model.certificate_.critical_distance
    # -<w, gradient> / k, with the samples at the corner counted or left out
    slopes = [
        margins[margins <= 1.0 + edge].sum() / len(y) / model.fragility_ for edge in (1e-6, -1e-6)
    ]
    assert np.count_nonzero(np.abs(margins - 1.0) < 1e-6) >= 2
    free = model.intercept_[0] * np.array(
        [np.where(y == 1, 1.0, -1.0)[margins <= 1.0 + edge].sum() for edge in (1e-6, -1e-6)]
    )
    slopes = np.array(slopes) - free / len(y) / model.fragility_
    assert np.abs(slopes / far - 1.0).min() > 1e-3
    step = 1e-5 * model.target_
    k = [
        cell.fitted(SatisficingClassifier, target=model.target_ + s * step, tol=1e-10).fragility_
        for s in (-1, 1)
    ]
    assert far == pytest.approx(2 * step / (k[0] - k[1]), rel=1e-4)


def test_moves_balance_the_slopes():
    cell = Cell("cross_entropy", "Wasserstein, fixed and weighted features", 2, "l2")
    X, y = cell.data
    training, references = training_of(cell, tol=1e-10)
    target, solution = solved(training, references, slack=0.3)
    found = multipliers_of(training.objective, training.ambiguity, solution.parameters, target)
    (move,) = found.moves
    coef, intercept = training.objective.in_user_units(solution.parameters)
    shares = np.full(len(y), 1 / len(y))
    slopes, _ = linear.slopes(coef, intercept, X, y, cell.loss, shares, ALPHA)
    assert found.critical_distance == move.distance
    # What the samples travel together is what the slopes lack.
    assert move.distance * move.direction == pytest.approx(-slopes[0], abs=1e-7)
    assert (move.first, move.second) == (1, 0)
    assert np.linalg.norm(move.direction[[0, 1, 3]] * [1.0, 2.0, 0.5]) == pytest.approx(1.0)
    assert move.direction[2] == 0.0
    assert move.direction @ coef[0] == pytest.approx(found.fragility, rel=1e-7)


def test_moves_of_several_classes_balance_the_slopes():
    cell = Cell("cross_entropy", "Wasserstein, norm 2", 3, None)
    X, y = cell.data
    training, references = training_of(cell, tol=1e-10)
    target, solution = solved(training, references, slack=0.3)
    found = multipliers_of(training.objective, training.ambiguity, solution.parameters, target)
    coef, intercept = training.objective.in_user_units(solution.parameters)
    slopes, _ = linear.slopes(coef, intercept, X, y, cell.loss, np.full(len(y), 1 / len(y)))
    total = np.zeros_like(slopes)
    for move in found.moves:
        total[move.first] += move.distance * move.direction
        total[move.second] -= move.distance * move.direction
        towards = coef[move.first] - coef[move.second]
        if move.distance > 1e-6:  # a pair that is moved is the steepest, along its steepest way
            assert move.direction @ towards == pytest.approx(found.fragility, rel=1e-6)
    assert total == pytest.approx(-slopes, abs=1e-6)
    assert sum(m.distance for m in found.moves) == pytest.approx(found.critical_distance)


def test_flipped_labels_spend_the_distance():
    cell = Cell("hinge", "Wasserstein, finite label cost", 2, None)
    training, references = training_of(cell)
    target, solution = solved(training, references, slack=0.3)
    found = multipliers_of(training.objective, training.ambiguity, solution.parameters, target)
    moved = sum(move.distance for move in found.moves)
    assert found.critical_distance == pytest.approx(moved + 0.5 * found.flipped, rel=1e-9)
    codes = training.objective.rows.y
    other = 1.0 - found.shares[np.arange(codes.size), codes]
    assert found.flipped == pytest.approx(found.weights @ other, rel=1e-12)
    assert found.flipped > 0.0


def test_weights_and_sparse_samples():
    X, y = Cell("hinge", "KL", 2, None).data
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    for loss, ambiguity in (("hinge", Wasserstein(norm=1)), ("max_logistic", KL())):
        model = SatisficingClassifier(loss, ambiguity, slack=0.3, class_weight="balanced")
        model.fit(sparse.csr_array(X), y, sample_weight=weights)
        assert prove(model, X, y, sample_weight=weights).proved
        assert prove(model, sparse.csr_array(X), y, sample_weight=weights).proved
        assert not prove(model, X, y).proved  # of other weights


def test_more_features_than_samples():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 80)), np.arange(30) % 2
    for loss in ("hinge", "cross_entropy"):
        model = SatisficingClassifier(loss, slack=0.3).fit(X, y)
        assert prove(model, X, y).proved


def test_a_model_that_is_not_the_least_fragile_is_not_proved():
    X, y = Cell("hinge", "Wasserstein, norm 2", 2, None).data
    model = SatisficingClassifier(slack=0.3).fit(X, y)
    proof = prove(model, X, y)
    assert "least fragile one" in repr(proof)
    model.coef_ = model.coef_ * [[1.2, 1.0, 1.0, 1.0]]
    worse = prove(model, X, y)
    assert not worse.proved
    assert worse.lower <= proof.upper * (1.0 + 1e-9)
    assert "another linear model" in repr(worse) or "nothing is known" in repr(worse)


def test_where_there_is_nothing_to_prove():
    X, y = Cell("hinge", "KL", 2, None).data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trivial = SatisficingClassifier(target=0.9).fit(X, y)
        fearless = SatisficingClassifier(ambiguity=KL(), target=5.0).fit(X, y)
    for model in (trivial, fearless):
        assert model.fragility_ == 0.0
        assert isnan(model.certificate_.critical_distance)
        assert prove(model, X, y).proved
        assert "critical" not in repr(model.certificate_)
    free = SatisficingClassifier(slack=0.3).fit(X, y)
    radius = 0.9 * free.certificate_.critical_distance
    ball = SatisficingClassifier(slack=0.3, radius=radius).fit(X, y)
    assert 0.0 < ball.fragility_ < free.fragility_
    assert ball.certificate_.critical_distance == pytest.approx(radius)
    wide = SatisficingClassifier(slack=0.3, radius=2.0 * radius).fit(X, y)
    far = free.certificate_.critical_distance
    assert wide.certificate_.critical_distance == pytest.approx(far, rel=1e-9)
    with pytest.raises(ValueError, match="beyond radius="):
        prove(ball, X, y)
    robust = DROClassifier(radius=0.05).fit(X, y)
    assert robust.certificate_.critical_distance == 0.05
    assert prove(robust, X, y).critical_distance == pytest.approx(0.05, rel=1e-4)
    with pytest.raises(ValueError, match="LogisticRegression was not trained for a target"):
        prove(LogisticRegression().fit(X, y), X, y)
