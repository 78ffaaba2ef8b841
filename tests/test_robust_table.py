"""DRO and satisficing inside a ball, each loss with each ambiguity and penalty."""

import warnings
from itertools import product

import pytest

from fragility import DROClassifier, SatisficingClassifier

from .program_cells import FLIPS, LOSSES, PENALTIES, Cell, dro, hybrid, satisficing, target_of
from .reference import programs

pytestmark = pytest.mark.outside

RADII = {"kl": 0.02, "w1": 0.05, "w2": 0.05, "winf": 0.03, "w2 labels": 0.05}

TABLE = [Cell(*choices) for choices in product(LOSSES, RADII, PENALTIES, [2, 3])]
#: As on a chess board: docs/support.md is tested on all of it.
HALF = [cell for i, cell in enumerate(TABLE) if (i + i // 2) % 2 == 0]
VARIANTS = [
    Cell(loss, ambiguity, penalty, n_classes, fit_intercept=fit_intercept, weighted=True)
    for loss, n_classes in product(LOSSES, [2, 3])
    for ambiguity, penalty, fit_intercept in (
        ("kl", "l1", False),
        ("w1", "l1", True),
        ("w2 labels", None, False),
    )
]
# Seven kinds of shift for each loss: every third one still has all of them.
HYBRIDS = [
    Cell(loss, ambiguity, penalty, n_classes)
    for loss, n_classes in product(LOSSES, [2, 3])
    for ambiguity, penalty in (
        ("kl", None),
        ("kl", "l1"),
        ("w1", "l1"),
        ("w2", "l2"),
        ("winf", None),
        ("w2 labels", None),
        ("w2 labels", "l1"),
    )
][::3] + VARIANTS[::5]

each_hybrid = pytest.mark.parametrize("cell", HYBRIDS, ids=str)


def radius_of(cell):
    """A ball in which the best model still uses its features, and labels move if they can."""
    radius = RADII[cell.ambiguity] * (1.0 if cell.fit_intercept else 0.25)
    if cell.ambiguity in FLIPS and "hinge" in cell.loss:
        radius = 0.1
    return radius


def accuracy(cell):
    """Of a worst-case loss, relative."""
    return 1e-5 if cell.loss == "hinge" else 1e-6


@pytest.mark.parametrize("cell", HALF + VARIANTS, ids=str)
def test_least_worst_loss(cell):
    radius = radius_of(cell)
    reference = dro(cell, radius)
    model = cell.fitted(DROClassifier, radius=radius)
    judged = cell.judged(model.coef_, model.intercept_)
    assert model.worst_loss_ == pytest.approx(reference.value, rel=accuracy(cell))
    assert model.worst_loss_ == pytest.approx(judged.worst(radius), rel=1e-9)
    if not cell.fit_intercept:
        assert not model.intercept_.any()
    # At the loss that the price leaves, the model has that price for its fragility.
    assert model.target_ == pytest.approx(model.worst_loss_ - model.fragility_ * radius, rel=1e-12)
    assert judged.supremum(model.fragility_) <= model.target_ + 1e-9
    assert model.fragility_ >= judged.least_price * (1 - 1e-9)
    assert model.fragility_ == pytest.approx(judged.fragility(model.target_ + 1e-12), rel=1e-6)
    assert model.certificate_.fragility == pytest.approx(model.fragility_, rel=1e-6)


@pytest.mark.parametrize("cell", [cell for cell in HALF if cell.ambiguity in FLIPS], ids=str)
def test_labels_matter_in_the_table(cell):
    radius = radius_of(cell)
    assert dro(cell, radius).value > dro(cell.without_labels, radius).value * (1 + 1e-4)
    assert dro(cell, radius).price > 0.1


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("n_classes", [2, 3])
class TestLargeBalls:
    def worst_loss(self, cell, radius):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # it may say that no feature is used
            model = cell.fitted(DROClassifier, radius=radius)
        judged = cell.judged(model.coef_, model.intercept_)
        assert model.worst_loss_ == pytest.approx(judged.worst(radius), rel=1e-9)
        return model.worst_loss_

    def test_every_weighting(self, loss, penalty, n_classes):
        """Within ln n even all the weight may be on one sample."""
        cell = Cell(loss, "kl", penalty, n_classes)
        X, y, _ = cell.data
        expected = programs.least_largest_loss(X, y, n_classes, loss, **cell.options).value
        radius = 5.0 if n_classes == 2 else 100.0
        assert self.worst_loss(cell, radius) == pytest.approx(expected, rel=1e-5)

    def test_no_feature_is_worth_its_price(self, loss, penalty, n_classes):
        cell = Cell(loss, "w2", penalty, n_classes)
        expected = target_of(cell, slack=1.0)
        for radius in (20.0, 1e4):
            assert self.worst_loss(cell, radius) == pytest.approx(expected, rel=1e-6)


def within(cell, target, radius):
    """Satisficing inside a ball, with its k recomputed; it may say that there is no fragility."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = cell.fitted(SatisficingClassifier, target=target, radius=radius)
    judged = cell.judged(model.coef_, model.intercept_)
    own = judged.fragility(target * (1 + 1e-12), radius)
    assert model.fragility_ == pytest.approx(own, rel=1e-7, abs=1e-9 / radius)
    return model


@each_hybrid
class TestInsideABall:
    def test_no_fragility_where_the_ball_is_survived(self, cell):
        radius = radius_of(cell)
        worst = dro(cell, radius).value
        for share in (1e-4, 1e-2):
            assert within(cell, worst * (1 + share), radius).fragility_ == 0.0

    def test_some_fragility_as_soon_as_it_is_not(self, cell):
        radius = radius_of(cell)
        worst = dro(cell, radius).value
        model = within(cell, worst * (1 - 1e-4), radius)
        # What is missing, over the radius.
        assert model.fragility_ == pytest.approx(
            1e-4 * worst / radius, abs=accuracy(cell) * worst / radius
        )

    def test_between(self, cell):
        radius = radius_of(cell)
        robust = dro(cell, radius)
        target = robust.value - 0.5 * robust.price * radius
        model = within(cell, target, radius)
        reference = hybrid(cell, target, radius).k
        assert model.fragility_ == pytest.approx(
            reference, rel=cell.accuracy, abs=accuracy(cell) * robust.value / radius
        )
        assert model.fragility_ < 0.999 * satisficing(cell, target).k

    def test_a_large_ball_changes_nothing(self, cell):
        target = target_of(cell)
        for radius in (10.0, 1e4):
            model = within(cell, target, radius)
            assert model.fragility_ == pytest.approx(satisficing(cell).k, rel=cell.accuracy)

    def test_a_ball_of_the_other_side(self, cell):
        """The same crossing in the radius: smaller balls are survived, larger ones are not."""
        radius = radius_of(cell)
        target = dro(cell, radius).value
        assert within(cell, target, 0.999 * radius).fragility_ == 0.0
        assert within(cell, target, 1.001 * radius).fragility_ > 0.0
