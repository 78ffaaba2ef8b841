r"""The acceptable loss by cross-validation: what a tuned penalised model loses on new samples.

The loss of the data that a model was fitted to says little where it overfits. Here l2-penalised
models are fitted to the training parts of folds, and the lowest loss on their test parts is the
target: :math:`\tau = L_{out\,of\,fold} + R`, with R the penalty of the estimator's own lowest loss.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from .._labels import listed
from .._random import random_generator, spread_over_folds
from .._typing import Floats, Indices
from ..exceptions import UndefinedTargetError
from ..losses import LipschitzLoss, as_loss
from ..programs.rows import distinct_rows
from ..programs.targets import OUT_OF_FOLD
from ..solvers.erm import ReferenceModels, RiskMinimum, erm
from ..solvers.searching import Search, result, side_by_side
from .base import TrainingData
from .training import Training

if TYPE_CHECKING:
    from .satisficing import SatisficingClassifier

N_FOLDS = 5
#: From strong to weak, for features of deviation one. There is little to choose between two
#: neighbours down to 1e-4, where most data have their best. The weaker ones are for samples that
#: classes separate and features that are nearly alike, where the loss may fall again far below;
#: each starts at the model before it, and costs little.
ALPHAS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
#: Features that order the samples before folds are drawn: more would cost time, and hardly two
#: samples are equal in all of these.
_ORDERING = 8
#: How near to its minimum each loss is brought, relatively: losses on test parts hardly move.
_TOL = 1e-8
#: Least share of what can be learned that a target gives up, and its largest share of the trivial
#: loss: nearer to either end there is nothing to solve.
_LEAST_SLACK, _MOST_TRIVIAL = 1e-3, 0.98


class OutOfFold(NamedTuple):
    """Lowest mean loss on test parts and its strength; classes that no test part has."""

    loss: float
    alpha: float
    untested: list[Any]


@dataclass(frozen=True)
class TargetOrigin:
    """How a target came about that was found by cross-validation.

    Attributes
    ----------
    target : float
    out_of_fold_loss : float
        Mean loss of the tuned model on test parts, without its penalty.
    alpha : float
        Strength of its l2 penalty on features of deviation one: the best of a fixed row, from 1 to
        1e-8. If it is an end of the row, the text says so.
    penalty : float
        The estimator's own penalty at its lowest loss, which the target includes.
    erm_loss, trivial_loss : float
        The losses between which it lies.
    clip : str
        "lowest" or "trivial" if it had to be moved away from that loss, else "".
    """

    target: float
    out_of_fold_loss: float
    alpha: float
    penalty: float
    erm_loss: float
    trivial_loss: float
    clip: str

    @classmethod
    def between(cls, found: OutOfFold, references: ReferenceModels) -> TargetOrigin:
        """The target that a loss on test parts makes, between two models."""
        minimum, trivial = references.minimum, references.trivial.value
        penalty = 0.0 if minimum.separable else minimum.point.penalty
        asked = found.loss + penalty
        lowest = minimum.loss + _LEAST_SLACK * (trivial - minimum.loss)
        # The lower end comes last: where hardly anything can be learned the upper one is below it.
        target = max(min(asked, _MOST_TRIVIAL * trivial), lowest)
        clip = "" if target == asked else "lowest" if target == lowest else "trivial"
        return cls(target, found.loss, found.alpha, penalty, minimum.loss, trivial, clip)

    def __str__(self) -> str:
        moved = {
            "": "",
            "lowest": f", raised to {_LEAST_SLACK:.1%} of what can be learned above the lowest",
            "trivial": f", lowered to {_MOST_TRIVIAL:.0%} of the trivial one",
        }
        end = {ALPHAS[0]: ", the strongest tried", ALPHAS[-1]: ", the weakest tried"}
        own = f" plus a penalty of {self.penalty:.4g}" if self.penalty else ""
        return (
            f"target {self.target:.4g}: out-of-fold loss of L2 with alpha {self.alpha:g}"
            f"{end.get(self.alpha, '')} ({self.out_of_fold_loss:.4g}){own}{moved[self.clip]}; "
            f"lowest {self.erm_loss:.4g}, trivial {self.trivial_loss:.4g}"
        )


def out_of_fold_loss(model: SatisficingClassifier, data: TrainingData) -> OutOfFold:
    """Lowest mean loss of l2-penalised models on samples that they were not fitted to.

    `data` have their final weights. Equal samples count as one of their summed weight, so that they
    are in one fold, and folds are drawn in an order that samples alone decide: weights or repeated
    samples, in any order and any units, make the same target.
    """
    loss = as_loss(model.loss)
    if isinstance(loss, LipschitzLoss):
        if loss.known is None:
            raise UndefinedTargetError(
                f'target="{OUT_OF_FOLD}" tunes models of smooth losses, and {loss!r} is known by '
                "its tangents only. Give slack (such as 0.1) or an absolute target."
            )
        loss = loss.known
    X, codes, weights = _in_order(*distinct_rows(data.X, data.codes, data.weights))
    scaler = StandardScaler(with_mean=False, copy=X is data.X)  # the data of users stay as they are
    X = scaler.fit_transform(X, sample_weight=weights)
    folds, untested = _folds(codes, data, model.random_state)
    # KL neither weighs features nor keeps any fixed: all that counts here is the lowest loss.
    plain = clone(model).set_params(loss=loss, ambiguity="kl", penalty="l2")
    sums = np.zeros(len(ALPHAS))
    tests = [folds == fold for fold in np.unique(folds[folds >= 0])]
    parts = [TrainingData(X[~test], codes[~test], weights[~test], data.classes) for test in tests]
    found = result(side_by_side(_models(plain, part) for part in parts))
    for test, models in zip(tests, found, strict=True):
        for j, (coef, intercept) in enumerate(models):
            scores: Floats = X[test] @ coef.T + intercept
            scores = scores[:, 0] if len(coef) == 1 else scores
            sums[j] += weights[test] @ loss.value(scores, codes[test])
    means = sums / weights[folds >= 0].sum()
    best = int(np.argmin(means))
    return OutOfFold(float(means[best]), ALPHAS[best], untested)


def _in_order(X: Any, codes: Indices, weights: Floats) -> tuple[Any, Indices, Floats]:
    """Distinct samples by class and first features, whose order does not depend on their units.

    What these do not tell apart stays in the order that it has.
    """
    few = X[:, :_ORDERING]
    columns = few.toarray() if issparse(few) else few
    order = np.lexsort((*columns.T[::-1], codes))
    return X[order], codes[order], weights[order]


def _models(
    plain: SatisficingClassifier, part: TrainingData
) -> Search[list[tuple[Floats, Floats]]]:
    """Coefficients and intercepts of the lowest loss for each strength, strong to weak."""
    found: RiskMinimum | None = None
    template = Training.of(plain, part).objective
    objectives = [replace(template, alpha=alpha) for alpha in ALPHAS]
    limits: Any = {"tol": _TOL, "max_iter": plain.max_iter}
    start, models = np.zeros(template.size), []
    if not template.is_smooth:
        minima = yield from side_by_side(erm(one, start, **limits) for one in objectives)
        return [one.point.objective.in_user_units(one.point.parameters) for one in minima]
    for objective in objectives:
        curvature = None
        if found is not None:
            start, curvature = found.point.parameters, found.curvature
            if curvature is not None:
                curvature = curvature.ridged(objective.ridge - found.point.objective.ridge)
        found = yield from erm(objective, start, curvature=curvature, **limits)
        models.append(objective.in_user_units(found.point.parameters))
    return models


def _folds(codes: Indices, data: TrainingData, random_state: Any) -> tuple[Indices, list[Any]]:
    """Fold of each sample, and classes of one sample: it is trained on always (-1), tested never.

    A class of fewer samples than folds is tested in some of them.
    """
    rng = random_generator(0 if random_state is None else random_state)
    folds = spread_over_folds(codes, N_FOLDS, rng)
    counts = np.bincount(codes, minlength=data.classes.size)
    folds[counts[codes] == 1] = -1
    if (folds < 0).all():
        raise UndefinedTargetError(
            f'target="{OUT_OF_FOLD}" needs two different samples of a class, to fit to one and '
            f"test on the other; the classes {listed(data.classes)} have one each. Give slack "
            "(such as 0.1) or an absolute target."
        )
    return folds, data.classes[counts == 1].tolist()
