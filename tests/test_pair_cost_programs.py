"""Training with costs of pairs of classes, against the same programs lowered to cones by hand."""

from itertools import product
from math import inf

import numpy as np
import pytest

from fragility import KL, DROClassifier, ERMClassifier, SatisficingClassifier, Wasserstein
from fragility.losses import CrossEntropy, Hinge, MaxLogistic, SmoothedHinge
from fragility.solvers.interior_program import InteriorProgram
from fragility.solvers.norm_cones import Shape, norm_cone

from .reference import programs
from .reference.linear import Judged

pytestmark = pytest.mark.outside

LOSSES = {
    "cross_entropy": CrossEntropy,
    "hinge": Hinge,
    "max_logistic": MaxLogistic,
    "smoothed_hinge": SmoothedHinge,
}
#: Norm of the transport, None for KL, and cost of a label.
AMBIGUITIES = [(None, inf), (1, inf), (2, inf), (inf, inf), (1, 0.4), (2, 0.4), (inf, 0.4)]
CELLS = [
    (i, loss, norm, label_cost, n_classes)
    for i, (loss, (norm, label_cost), n_classes) in enumerate(product(LOSSES, AMBIGUITIES, (2, 3)))
]
each_cell = pytest.mark.parametrize(
    ("seed", "loss", "norm", "label_cost", "n_classes"), CELLS, ids=str
)


def problem(n_classes, seed, n=50):
    """Overlapping classes, columns of different spread, and costs from a fifth to five or so."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 3.0, 0.5] + [0.5, -1.0, 2.0]
    logits = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(size=(3, n_classes))
    y = (logits + 1.2 * rng.gumbel(size=(n, n_classes))).argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    costs = np.exp(rng.normal(size=(n_classes, n_classes))) * (1.0 - np.eye(n_classes))
    return X, y, costs, rng.integers(1, 4, n).astype(float)


def ambiguity_of(norm, label_cost):
    return KL() if norm is None else Wasserstein(norm, label_cost)


def options_of(seed):
    """Penalty and intercept in turn; of the literal program, and of a classifier."""
    penalty = (None, "l2", "l1")[seed % 3]
    own = {"penalty": penalty, "alpha": 1e-2, "fit_intercept": seed % 5 != 0}
    literal = {"alpha": 1e-2 if penalty else 0.0, "penalty_kind": penalty or "l2"}
    return own, {**literal, "fit_intercept": own["fit_intercept"]}


@each_cell
def test_least_fragility(seed, loss, norm, label_cost, n_classes):
    X, y, costs, weights = problem(n_classes, seed)
    own, literal = options_of(seed)
    literal |= {"pair_cost": costs, "weights": weights}
    lowest = programs.erm(X, y, n_classes, loss, **literal).value
    nothing = np.zeros((y.size, 1))
    trivial = programs.erm(nothing, y, n_classes, loss, **literal).value
    target = lowest + 0.3 * (trivial - lowest)
    given = (X, y, n_classes, loss, target)
    if norm is None:
        best = programs.kl(*given, **literal)
    else:
        best = programs.wasserstein(*given, norm=norm, label_cost=label_cost, **literal)
    kind = LOSSES[loss](pair_cost=costs)
    model = SatisficingClassifier(kind, ambiguity_of(norm, label_cost), target=target, **own)
    model.fit(X, y, sample_weight=weights)
    assert model.fragility_ == pytest.approx(best.k, rel=1e-5)
    assert model.erm_loss_ == pytest.approx(lowest, rel=1e-6)
    judged = Judged(
        model.coef_,
        model.intercept_,
        X,
        y,
        loss,
        norm=norm,
        label_cost=label_cost,
        weights=weights,
        alpha=literal["alpha"],
        penalty_kind=literal["penalty_kind"],
        pair_cost=costs,
    )
    assert judged.supremum(model.fragility_) <= target + 1e-8 * max(1.0, target)
    assert judged.plain_fragility(target) == pytest.approx(model.fragility_, rel=1e-6)


@pytest.mark.parametrize(("seed", "loss", "norm", "label_cost", "n_classes"), CELLS[1::3], ids=str)
def test_least_worst_loss(seed, loss, norm, label_cost, n_classes):
    X, y, costs, weights = problem(n_classes, 100 + seed)
    own, literal = options_of(seed + 1)
    literal |= {"pair_cost": costs, "weights": weights}
    radius = 0.02
    best = programs.dro(X, y, n_classes, loss, radius, norm=norm, label_cost=label_cost, **literal)
    kind = LOSSES[loss](pair_cost=costs)
    model = DROClassifier(kind, ambiguity_of(norm, label_cost), radius=radius, **own)
    model.fit(X, y, sample_weight=weights)
    assert model.worst_loss_ == pytest.approx(best.value, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_costs_of_a_thousand_and_of_a_thousandth(loss):
    """Conditioning: the lowest loss, and the least norm near it."""
    n_classes = 3
    X, y, costs, _ = problem(n_classes, 7)
    costs = np.where(costs > 0, np.clip(costs**6, 1e-3, 1e3), 0.0)
    literal = {"pair_cost": costs, "alpha": 1e-3}
    lowest = programs.erm(X, y, n_classes, loss, **literal).value
    kind = LOSSES[loss](pair_cost=costs)
    parameters = {"penalty": "l2", "alpha": 1e-3}
    assert ERMClassifier(kind, **parameters).fit(X, y).loss_ == pytest.approx(lowest, rel=1e-6)
    model = SatisficingClassifier(kind, slack=0.3, **parameters).fit(X, y)
    best = programs.wasserstein(X, y, n_classes, loss, model.target_, **literal)
    assert model.fragility_ == pytest.approx(best.k, rel=1e-5)


@pytest.mark.parametrize("loss", ["hinge", "max_logistic", "cross_entropy"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_that_move_where_no_feature_is_needed(loss, n_classes):
    """With costs the constant of the least loss under every label is not zero."""
    X, y, costs, _ = problem(n_classes, 3)
    kind = LOSSES[loss](pair_cost=costs)
    everything = np.tile(np.arange(n_classes), 2)
    constant = programs.least_largest_loss(
        np.zeros((everything.size, 1)), everything, n_classes, loss, pair_cost=costs
    )
    zeros = kind.of_zero_scores(n_classes)
    target = 0.5 * (constant.value + zeros.max())
    assert constant.value < 0.99 * zeros.max()
    model = SatisficingClassifier(kind, Wasserstein(label_cost=0.5), target=target)
    with pytest.warns(UserWarning, match="target"):
        model.fit(X, y)
    assert model.fragility_ == 0.0
    assert not model.coef_.any()


@pytest.mark.parametrize("norm", [1, 2, inf])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_hard_margins(norm, n_classes, scale):
    """Separable data at a target of zero: every gap is at most minus one, whatever it costs."""
    rng = np.random.default_rng(n_classes)
    y = np.arange(30) % n_classes
    X = 4.0 * np.eye(3)[y] + 0.5 * rng.normal(size=(30, 3))
    costs = scale * np.exp(rng.normal(size=(n_classes, n_classes))) * (1.0 - np.eye(n_classes))
    model = SatisficingClassifier(Hinge(pair_cost=costs), Wasserstein(norm), target=0.0)
    model.fit(X, y)
    best = programs.wasserstein(X, y, n_classes, "hinge", 0.0, norm=norm, pair_cost=costs)
    assert model.fragility_ == pytest.approx(best.k, rel=1e-5)


@pytest.mark.parametrize("loss", ["max_logistic", "smoothed_hinge"])
@pytest.mark.parametrize("seed", [1, 8])
def test_separable_classes_whose_labels_move(loss, seed):
    """Where the lowest loss is far out every label pays at the start of the search."""
    rng, n_classes = np.random.default_rng(seed), 3 + seed % 2
    y = np.arange(40) % n_classes
    X = (1.0 + 3.0 * rng.random()) * np.eye(4)[y] + 0.4 * rng.normal(size=(40, 4))
    costs = np.exp(rng.normal(size=(n_classes, n_classes))) * (1.0 - np.eye(n_classes))
    norm, kind = (1, 2, inf)[seed % 3], LOSSES[loss](pair_cost=costs)
    model = SatisficingClassifier(kind, Wasserstein(norm, 0.5), slack=0.03).fit(X, y)
    given = {"norm": norm, "label_cost": 0.5, "pair_cost": costs}
    best = programs.wasserstein(X, y, n_classes, loss, model.target_, **given)
    assert model.fragility_ == pytest.approx(best.k, rel=1e-5)


def test_programs_of_other_weights_of_pairs_are_not_solved_together():
    kinds = []
    for weights in ((), (1.0, 0.5, 0.25), (1.0, 0.5, 0.2)):
        cone = norm_cone(2, 3, 2, weights)
        shape = Shape(cone, np.arange(6), np.ones(6))
        kinds.append(InteriorProgram(np.zeros(6), 1e-6, 10, shape=shape).kind)
    assert len(set(kinds)) == 3
