"""General transport: what it is without a support, what is refused, and how it is shown."""

from math import inf

import numpy as np
import pytest
from sklearn.base import clone

from fragility import DROClassifier, SatisficingClassifier
from fragility.ambiguity import (
    Box,
    Ellipsoid,
    Huber,
    Mahalanobis,
    Norm,
    Polytope,
    Power,
    Product,
    SquaredNorm,
    Transport,
    TransportCost,
    Wasserstein,
)
from fragility.certificates import certify
from fragility.losses import Hinge, PiecewiseLinear

from .reference import moves
from .transport_rows import BOX, HIGH, ROWS, data, drawn


@pytest.mark.parametrize("label_cost", [inf, 0.5])
def test_only_labels_that_occur_make_a_norm_steep(label_cost):
    """Costs of pairs between classes without samples do not count, unless labels move."""
    rng = np.random.default_rng(0)
    model, X = drawn(3, rng), rng.normal(size=(5, 3))
    loss = Hinge(pair_cost=[[0, 1, 1], [9, 0, 9], [9, 9, 0]])
    given = {"target": 20.0, "loss": loss}
    turned, euclidean = (
        certify(model, X, np.zeros(5, int), ambiguity=ambiguity, **given).fragility
        for ambiguity in (
            Transport(Mahalanobis(np.eye(3)), None, label_cost),
            Wasserstein(2, label_cost),
        )
    )
    assert turned == pytest.approx(euclidean, rel=1e-12)


def test_a_norm_without_a_support_is_wasserstein():
    X, y = data(ROWS[0], 3, 0, n=60)
    for order, weight in ((1, None), (2, (1, 2, inf)), (inf, None)):
        for loss in ("hinge", "cross_entropy", "smoothed_hinge"):
            one, two = (
                SatisficingClassifier(loss, ambiguity, slack=0.2).fit(X, y)
                for ambiguity in (
                    Transport(Norm(order), feature_weight=weight),
                    Wasserstein(order, feature_weight=weight),
                )
            )
            assert (one.coef_ == two.coef_).all()
            assert one.fragility_ == two.fragility_
            assert (
                one.certificate_.index_bounds() == two.certificate_.index_bounds()
                if hasattr(one.certificate_, "index_bounds")
                else True
            )


@pytest.mark.slow
def test_a_wide_support_changes_nothing_and_is_not_solved_for(capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    for n_classes in (2, 3):
        y = (X[:, :n_classes] + 0.8 * rng.gumbel(size=(200, n_classes))).argmax(axis=1)
        for order in (1, 2, inf):
            for label_cost in (inf, 0.5):
                support = Box(X.min(axis=0), X.max(axis=0))
                ambiguity = Transport(order, support, label_cost)
                model = SatisficingClassifier("hinge", ambiguity, slack=0.3, verbose=1).fit(X, y)
                assert "fits inside the support" in capsys.readouterr().out
                free = Wasserstein(order, label_cost)
                wide = SatisficingClassifier("hinge", free, slack=0.3).fit(X, y)
                assert model.fragility_ == pytest.approx(wide.fragility_, rel=1e-6)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Power(0.5), "not convex"),
        (lambda: Power(1), r"take Norm\(2\)"),
        (lambda: Huber(0), "delta must be positive"),
        (lambda: Norm(3), "order must be one of"),
        (lambda: SquaredNorm(3), "order must be one of"),
        (lambda: Mahalanobis([[1, 0], [0, -1]]), "positive definite"),
        (lambda: Mahalanobis([[1, 1], [0, 1]]), "symmetric"),
        (lambda: Box(1, 0), "The box is empty"),
        (lambda: Box([0, 2], [1, 1]), "lower end of feature 1 is 2"),
        (lambda: Polytope([[1.0], [-1.0]], [0, -1]), "The polytope is empty"),
        (lambda: Polytope([[1.0, 0.0]], [1, 2]), "one row for each entry"),
        (lambda: Ellipsoid([0, 0], np.zeros((2, 2))), "positive definite"),
        (lambda: Product([([0], Box(0, 1)), ([0], Box(0, 1))]), "each in one part only"),
        (lambda: Transport("l2"), "cost must be Norm"),
        (lambda: Transport(2, support=lambda x: x), "all of them convex"),
        (lambda: Transport(2, label_cost=-1), "label_cost"),
        (lambda: Transport(2, feature_weight=[0, 1]), "feature_weight must be"),
        (lambda: PiecewiseLinear([[1], [-1]], [[0], [0]]), "falls for ever"),
        (lambda: PiecewiseLinear([[0, 1], [0, -1]], [[-1, 1], [0, 1]]), "falls to -1"),
        (lambda: PiecewiseLinear(np.ones((3, 2, 3)), np.ones((3, 2))), "sum to zero"),
        (lambda: PiecewiseLinear([[0, 1]], [[0, 1]]), "must have the shape"),
    ],
)
def test_ill_posed_parts_are_refused_by_name(make, said):
    with pytest.raises(ValueError, match=said):
        make()


class Dented(TransportCost):
    """√|e|: zero for no move, but not convex."""

    def value(self, moves):
        return np.sqrt(np.abs(moves)).sum(axis=1)

    def conjugate(self, slopes):
        return np.full(len(slopes), inf)

    move = cone = None


@pytest.mark.parametrize(
    ("loss", "ambiguity", "n_classes", "error", "said"),
    [
        ("hinge", Transport(2, Box(-1, 1)), 2, ValueError, "leaves out .* of 40 samples"),
        ("hinge", Transport(2, Box([-9] * 2, 9)), 2, ValueError, "is for 2 features; X has 3"),
        ("hinge", Transport(Mahalanobis(np.eye(2))), 2, ValueError, "for 2 features; X has 3"),
        ("hinge", Transport(Dented()), 2, ValueError, "is not convex"),
        ("cross_entropy", Transport(1, Box(-9, 9)), 3, NotImplementedError, "with 3 classes"),
        ("cross_entropy", Transport(SquaredNorm()), 3, NotImplementedError, "with 3 classes"),
        ("cross_entropy", Transport(2, Box(-9, 9)), 2, NotImplementedError, "No exact program"),
        ("smoothed_hinge", Transport(1, Box(-9, 9)), 2, NotImplementedError, "No exact program"),
        ("hinge", Transport(2, feature_weight=[inf] * 3), 2, ValueError, "nothing can shift"),
        ("hinge", Transport(2, feature_weight=[1, 2]), 2, ValueError, "X has 3"),
    ],
)
@pytest.mark.parametrize("estimator", [SatisficingClassifier, DROClassifier])
def test_what_cannot_be_solved_is_refused_by_name(
    loss, ambiguity, n_classes, error, said, estimator
):
    X, y = data(ROWS[0], n_classes, 0, n=40)
    with pytest.raises(error, match=said):
        estimator(loss, ambiguity).fit(X, y)


def test_parts_are_compared_cloned_and_shown():
    ambiguity = Transport(SquaredNorm(Mahalanobis(np.eye(3))), Box(np.zeros(3), 1))
    assert ambiguity == Transport(SquaredNorm(Mahalanobis(np.eye(3))), Box(np.zeros(3), 1))
    assert hash(ambiguity) == hash(
        Transport(SquaredNorm(Mahalanobis(np.eye(3))), Box(np.zeros(3), 1))
    )
    assert clone(SatisficingClassifier(Hinge(), ambiguity)).ambiguity == ambiguity
    assert repr(ambiguity) == (
        "Transport(SquaredNorm(norm=Mahalanobis(3 x 3)), support=Box([0, 0, 0], 1))"
    )


def test_the_box_of_the_reference_is_the_box_of_the_rows():
    assert moves.inside(np.array([np.zeros(3), HIGH + 0.1]), BOX).tolist() == [True, False]
