"""Robust satisficing, each loss with each ambiguity and penalty: the literal optimum, attained."""

import warnings
from itertools import product

import numpy as np
import pytest

from fragility import SatisficingClassifier

from .program_cells import AMBIGUITIES, FLIPS, LOSSES, PENALTIES, Cell, satisficing, target_of

pytestmark = pytest.mark.outside

TABLE = [Cell(*choices) for choices in product(LOSSES, AMBIGUITIES, PENALTIES, [2, 3])]
#: As on a chess board: docs/support.md is tested on all of it.
HALF = [cell for i, cell in enumerate(TABLE) if (i + i // 2) % 2 == 0]
VARIANTS = [
    Cell(loss, ambiguity, penalty, n_classes, fit_intercept=fit_intercept, weighted=True)
    for loss, n_classes in product(LOSSES, [2, 3])
    for ambiguity, penalty, fit_intercept in (
        ("kl", "l1", False),
        ("w1", "l1", True),
        ("w2 labels", None, False),
        ("winf labels", "l2", True),
    )
]
#: On these data no intercept does better than equal scores.
NEVER_BETTER_THAN_ZERO = {("hinge", 3), ("max_logistic", 3)}


@pytest.mark.parametrize("cell", HALF + VARIANTS, ids=str)
def test_least_fragility(cell):
    reference, target = satisficing(cell), target_of(cell)
    model = cell.fitted(SatisficingClassifier, target=target)
    judged = cell.judged(model.coef_, model.intercept_)
    k = model.fragility_
    assert abs(k - reference.k) <= cell.accuracy * reference.k
    assert k == pytest.approx(judged.fragility(target), rel=1e-7)
    assert judged.supremum(k) <= target + 1e-8 * max(1.0, target)
    if not cell.fit_intercept:
        assert not model.intercept_.any()


@pytest.mark.parametrize("cell", [cell for cell in HALF if cell.ambiguity in FLIPS], ids=str)
def test_labels_matter_in_the_table(cell):
    """The cells would prove nothing of label costs if no label ever moved."""
    reference = satisficing(cell)
    assert reference.k > 1.001 * satisficing(cell.without_labels).k
    judged = cell.judged(reference.coef, reference.intercept)
    # Some move, or would as soon as k were smaller: the optimum may lie in that corner.
    assert judged.gains.max() > reference.k * cell.label_cost * (1 - 1e-6)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize(
    ("loss", "n_classes"),
    [(loss, n) for loss, n in product(LOSSES, [2, 3]) if (loss, n) not in NEVER_BETTER_THAN_ZERO],
)
class TestTargetsMetWithoutFeatures:
    """A model that bets on the common class is still fragile where labels move."""

    def fitted(self, cell, target):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # it may say that the target is trivial
            model = cell.fitted(SatisficingClassifier, target=target)
        judged = cell.judged(model.coef_, model.intercept_)
        assert judged.supremum(model.fragility_) <= target + 1e-8
        return model

    def least_of_every_label(self, cell):
        """min_b max_y ℓ(b, y), at equal scores."""
        coef = np.zeros((1 if cell.n_classes == 2 else cell.n_classes, 3))
        return cell.judged(coef, np.zeros(len(coef))).losses[0]

    def test_but_not_with_every_label(self, loss, penalty, n_classes):
        cell = Cell(loss, "w2 labels", penalty, n_classes)
        target = (target_of(cell, slack=1.0) + self.least_of_every_label(cell)) / 2
        model = self.fitted(cell, target)
        k = satisficing(cell, target).k
        assert model.fragility_ == pytest.approx(k, rel=cell.accuracy)
        assert model.fragility_ > 1e-3

    def test_with_every_label(self, loss, penalty, n_classes):
        cell = Cell(loss, "w2 labels", penalty, n_classes)
        model = self.fitted(cell, 1.001 * self.least_of_every_label(cell))
        assert model.fragility_ == 0.0
        assert not model.coef_.any()
