"""`worst_case`: every claim of a distribution recomputed from its rows, none above the bound."""

from math import inf, isnan

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from fragility import KL, DROClassifier, SatisficingClassifier, Wasserstein, worst_case
from fragility.certificates import certify

from .reference import adversary as reference
from .reference import worst_case as plans
from .support_matrix import AMBIGUITIES, LOSSES, Cell


def judged(model, case, X, y, weights, loss, ambiguity):
    """Loss and distance of the rows, by the definitions."""
    Z = case.X.toarray() if sparse.issparse(case.X) else case.X
    classes = model.classes_.tolist()
    codes, own = (np.array([classes.index(v) for v in labels]) for labels in (case.y, y))
    mean = reference.expected_loss(
        model.coef_, model.intercept_, Z, codes, case.weights, loss, case.constant
    )
    if isinstance(ambiguity, KL):
        shares = weights[case.source]
        return mean, reference.kullback_leibler(case.weights, shares), None
    prices = np.asarray(ambiguity.feature_weight or np.ones(X.shape[1]))
    if case.constant is not None:
        X, Z = np.c_[X, np.ones(len(X))], np.c_[Z, case.constant]
        prices = np.append(prices, 1.0)
    cost = ambiguity.norm, ambiguity.label_cost, prices
    paid = reference.coupling_cost(X, own, Z, codes, case.weights, case.source, *cost)
    least = reference.transport_distance(X, own, weights, Z, codes, case.weights, *cost)
    return mean, paid, least


@pytest.mark.parametrize("intercept", [True, "priced"])
@pytest.mark.parametrize("name", AMBIGUITIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_rows_are_what_is_said_of_them(loss, name, intercept):
    place = LOSSES.index(loss) + list(AMBIGUITIES).index(name)
    cell = Cell(loss, name, 2 + place % 2, (None, "l2", "l1")[place % 3])
    X, y = cell.data
    model = cell.fitted(SatisficingClassifier, slack=0.3, fit_intercept=intercept)
    case = worst_case(model, X, y)
    shares = np.full(len(y), 1 / len(y))
    mean, paid, least = judged(model, case, X, y, shares, loss, cell.ambiguity)
    certificate = model.certificate_
    assert case.weights.sum() == pytest.approx(1.0, abs=1e-12)
    if name != "KL":  # where weights are what shifts
        assert np.bincount(case.source, case.weights) == pytest.approx(shares, abs=1e-12)
    assert case.expected_loss == pytest.approx(mean + certificate.penalty, abs=1e-11)
    assert case.distance == pytest.approx(paid, rel=1e-9)
    assert case.distance == pytest.approx(certificate.critical_distance, rel=1e-5)
    if least is not None:
        # There may be a cheaper coupling, but none so cheap that the promise is broken.
        assert least <= paid * (1 + 1e-6)
        line = model.target_ + model.fragility_ * least
        assert case.expected_loss <= line + 1e-9
    # The certificate's line is reached, and never crossed.
    line = model.target_ + model.fragility_ * case.distance
    assert case.bound == pytest.approx(line, rel=1e-6)
    assert -1e-12 <= case.gap <= 1e-3 * (case.bound - case.loss_before) * (1 + 1e-6)
    assert case.gap == case.bound - case.expected_loss
    if loss == "hinge" and place % 2 == 0:
        assert case.gap <= 2e-6 * (case.bound - case.loss_before)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("radius", [0.01, 0.2, 3.0])
def test_the_bound_is_that_of_all_plans(seed, radius):
    rng = np.random.default_rng(seed)
    n_classes, cost = 2 + seed % 2, (inf, 0.4, 2.0)[seed % 3]
    X = rng.normal(size=(12, 2))
    y = np.arange(12) % n_classes
    weights = rng.uniform(0.2, 1.0, 12) * (np.arange(12) != 5)
    model = LogisticRegression().fit(X, y)
    ambiguity = Wasserstein(norm=(1, 2, inf)[seed % 3], label_cost=cost)
    case = worst_case(
        model, X, y, radius, loss="hinge", ambiguity=ambiguity, sample_weight=weights, tol=1e-6
    )
    shares = weights / weights.sum()
    mean, paid, _ = judged(model, case, X, y, shares, "hinge", ambiguity)
    assert paid <= radius * (1 + 1e-12)
    assert case.expected_loss == pytest.approx(mean, rel=1e-9)
    by_label = np.column_stack(
        [
            reference.linear.losses(model.coef_, model.intercept_, X, np.full(12, c), "hinge")
            for c in range(n_classes)
        ]
    )
    slope = reference.linear.dual_norms(model.coef_, ambiguity.norm).max()
    largest = plans.transported_loss(by_label, y, shares, min(cost, 1e6), slope, radius)
    assert case.bound == pytest.approx(largest, rel=1e-7)
    assert mean <= largest * (1 + 1e-7)
    assert mean >= largest - 2e-6 * radius * slope - 1e-7
    assert 5 not in case.source


def test_a_smaller_tolerance_moves_less_weight_further_and_comes_nearer():
    X, y = Cell("cross_entropy", "Wasserstein, norm 2", 2, None).data
    model = SatisficingClassifier(slack=0.3).fit(X, y)
    cases = [worst_case(model, X, y, tol=tol) for tol in (0.3, 1e-2, 1e-5)]
    assert cases[0].gap > cases[1].gap > cases[2].gap > 0.0
    moved = [case.weights[case.moved].sum() for case in cases]
    assert moved[0] > moved[1] > moved[2] > 0.0
    furthest = [case.distances.max() for case in cases]
    assert furthest[0] < furthest[1] < furthest[2]


def test_features_that_cannot_shift_stay():
    cell = Cell("hinge", "Wasserstein, fixed and weighted features", 2, None)
    X, y = cell.data
    model = cell.fitted(SatisficingClassifier, slack=0.3)
    case = worst_case(model, X, y, 0.5)
    moves = case.X - X[case.source]
    assert not moves[:, 2].any()
    assert moves[case.moved][:, [0, 1, 3]].any(axis=0).all()
    assert not moves[~case.moved].any()


def test_kl_is_the_worst_case_of_the_certificate():
    X, y = Cell("cross_entropy", "KL", 2, None).data
    model = SatisficingClassifier(ambiguity=KL(), slack=0.3).fit(X, y)
    case = worst_case(model, X, y)
    assert case.weights == pytest.approx(model.certificate_.worst_case_weights(), rel=1e-12)
    assert case.source.tolist() == list(range(len(y)))
    nearer = worst_case(model, X, y, 0.5 * case.distance)
    assert nearer.distance == pytest.approx(0.5 * case.distance, rel=1e-6)
    assert case.loss_before < nearer.expected_loss < case.expected_loss


def test_sparse_rows_are_the_dense_ones():
    cell = Cell("hinge", "Wasserstein, finite label cost", 3, None)
    X, y = cell.data
    model = cell.fitted(SatisficingClassifier, slack=0.3)
    for radius in (0.1, 2.0):  # labels only, and moves, too
        dense = worst_case(model, X, y, radius)
        thin = worst_case(model, sparse.csr_array(X), y, radius)
        assert sparse.issparse(thin.X)
        assert thin.X.toarray() == pytest.approx(dense.X, abs=1e-12)
        assert thin.expected_loss == pytest.approx(dense.expected_loss, rel=1e-12)
    assert dense.moved.any()
    assert dense.relabelled.any()


def test_weights_are_those_of_training():
    X, y = Cell("hinge", "Wasserstein, norm 2", 2, None).data
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    model = SatisficingClassifier("hinge", slack=0.3, class_weight={0: 1.0, 1: 3.0})
    model.fit(X, y, sample_weight=weights)
    case = worst_case(model, X, y, sample_weight=weights)
    own = weights * np.where(y == 1, 3.0, 1.0)
    assert np.bincount(case.source, case.weights) == pytest.approx(own / own.sum(), rel=1e-9)
    line = model.target_ + model.fragility_ * case.distance
    assert case.expected_loss == pytest.approx(line, rel=1e-6)


def test_labels_are_those_of_the_model():
    X, y = Cell("hinge", "Wasserstein, finite label cost", 2, None).data
    names = np.array(["ill", "well"])[y]
    ambiguity = Wasserstein(label_cost=0.5)
    model = SatisficingClassifier("hinge", ambiguity, slack=0.3).fit(X, names)
    case = worst_case(model, X, names)
    assert set(case.y) <= {"ill", "well"}
    assert (case.y[case.relabelled] != names[case.source[case.relabelled]]).all()
    assert case.weights[case.relabelled].sum() * 0.5 == pytest.approx(case.distance)
    assert "relabelled" in repr(case)


def test_a_model_without_a_critical_distance_needs_a_radius():
    X, y = Cell("cross_entropy", "KL", 2, None).data
    other = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="LogisticRegression has no critical distance"):
        worst_case(other, X, y)
    with pytest.raises(ValueError, match="misses its target"):
        worst_case(other, X, y, ambiguity="kl", target=0.01)
    at = certify(other, X, y, ambiguity="kl", target=0.5)
    case = worst_case(other, X, y, ambiguity="kl", target=0.5)
    assert case.expected_loss == pytest.approx(0.5 + at.fragility * case.distance, rel=1e-9)
    model = SatisficingClassifier(slack=0.3).fit(X, y)
    with pytest.raises(ValueError, match="Give radius"):
        worst_case(model, X, y, ambiguity=Wasserstein(norm=1))
    with pytest.raises(ValueError, match="radius must be"):
        worst_case(model, X, y, -1.0)
    with pytest.raises(ValueError, match="tol must be"):
        worst_case(model, X, y, tol=0.0)
    ball = DROClassifier(radius=0.1).fit(X, y)
    assert worst_case(ball, X, y).distance == pytest.approx(0.1)
    assert isnan(certify(other, X, y, target=0.5).critical_distance)


def test_frame_lists_the_rows_of_the_worst_case():
    pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.array(["a", "b"])[np.arange(40) % 2]
    X[:, 0] += 2.0 * (y == "b")
    model = SatisficingClassifier("hinge", Wasserstein(label_cost=0.5), slack=0.2).fit(X, y)
    case = worst_case(model, X, y, 0.3)
    frame = case.to_frame()
    assert case.relabelled.any()
    assert len(frame) == len(case.y)
    assert frame["weight"].sum() == pytest.approx(1.0)
    assert frame["weight"] @ frame["distance"] == pytest.approx(case.distance)
    np.testing.assert_array_equal(frame["label_before"], y[frame["source"]])
    np.testing.assert_array_equal(frame["relabelled"], frame["label"] != frame["label_before"])
    features_differ = (X[frame["source"]] != case.X).any(axis=1)
    np.testing.assert_array_equal(frame["moved"], features_differ)
