"""The paper's protocol for real data: split, label noise, cross-validated linear models.

What the paper leaves open is a field of `Settings`, with our choice as its default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from experiments.baselines.losses import Floats
from experiments.experiment import Row
from experiments.merit import auc
from experiments.platt import platt_map
from fragility import KL, ERMClassifier, SatisficingClassifier, Wasserstein, fragility_index
from fragility._random import spread_over_folds
from fragility._typing import Intercept
from fragility.ambiguity import Ambiguity
from fragility.datasets import flip_labels
from fragility.exceptions import TargetError
from fragility.linear_model.base import TrainingData
from fragility.linear_model.grid import Cell, solve_grid
from fragility.losses import Hinge
from fragility.programs.objective import Penalty
from fragility.solvers.erm import erm
from fragility.solvers.searching import Search, result, side_by_side

__all__ = [
    "INTERCEPTS",
    "QUICK",
    "SATISFICING",
    "SCORES",
    "LinearModel",
    "Settings",
    "Split",
    "best",
    "erm_model",
    "fitted_models",
    "out_of_fold_scores",
    "satisficing_models",
    "split_data",
]

#: Name of an intercept -> the library's `fit_intercept`. The paper's is a constant feature inside
#: norm and penalty; a free one is neither moved nor penalised.
INTERCEPTS: Mapping[str, Intercept] = {"priced": "priced", "free": True, "none": False}
#: Accuracy of the solvers within folds and of the final models, relative.
_TOL_CV, _TOL = 1e-3, 1e-6
#: Accuracy of lowest losses that a penalty is chosen by, and most steps of their searches.
_TOL_ERM, _MOST_STEPS = 1e-8, 1_000
_SCALERS: Mapping[str, Callable[[], Any]] = {"standard": StandardScaler, "range": MinMaxScaler}


@dataclass(frozen=True)
class Settings:
    """What the protocol needs to know, beyond the data.

    Attributes
    ----------
    scaling : {"standard", "range", "none"}
        Mean 0 and standard deviation 1, or from 0 to 1, on the training half. The paper says
        nothing. The price of a shift is in these units.
    penalties : sequence of {"l1", "l2"}
        Kinds of penalty to choose from.
    alphas : sequence of float
        Strengths of the penalty to choose from, as the paper has them; see `strength`. Penalty and
        strength are those of the best ERM model by cross-validated accuracy; the robust models take
        them over: "For comparability, FI-based models adopt the same loss and regularization
        settings".
    ratios : sequence of float
        Targets to choose from, as multiples of the lowest loss.
    label_cost : float
        Price of another label under Wasserstein. The paper gives none; its programs are exact for
        any that is large enough, which is the same as an infinite one.
    score : key of `SCORES`
        By which the target is chosen. The paper says cross-validation and no more. Of equal scores
        the largest target is chosen.
    probability : {"sigmoid", "platt"}
        From scores to probabilities: the sigmoid, or Platt's map, fitted to out-of-fold scores of
        the training half.
    intercept : key of `INTERCEPTS`
        The paper's is priced: its feature map contains the 1, and its models have no intercept.
    n_folds : int
    """

    scaling: str = "standard"
    penalties: Sequence[str] = ("l1", "l2")
    alphas: Sequence[float] = (1e-4, 1e-3, 1e-2, 1e-1)
    ratios: Sequence[float] = (1.05, 1.1, 1.15)
    label_cost: float = inf
    score: str = "accuracy"
    probability: str = "sigmoid"
    intercept: str = "priced"
    n_folds: int = 5

    @property
    def fit_intercept(self) -> Intercept:
        """What the library calls the intercept."""
        return INTERCEPTS[self.intercept]

    def strength(self, penalty: str, alpha: float, n_classes: int = 2) -> float:
        """The library's `alpha` for the paper's.

        The paper has a column of coefficients for each class, also of two, where the library has
        one, w. The least sum of squares of two columns whose difference is w is half that of w, so
        that its alpha is twice ours; the least sum of absolute values is that of w.
        """
        return alpha / 2.0 if penalty == "l2" and n_classes == 2 else alpha


#: Fewer candidates and folds, for a run that only shows that everything works.
QUICK = Settings(penalties=("l2",), alphas=(1e-3, 1e-1), ratios=(1.05, 1.15), n_folds=3)


@dataclass(frozen=True, eq=False)
class Split:
    """Training half with label noise, clean test half, and the fold of each training sample."""

    X_train: Floats
    y_train: NDArray[np.int64]
    X_test: Floats
    y_test: NDArray[np.int64]
    folds: NDArray[np.intp]

    def parts(self) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Training and test rows of each fold."""
        return [
            (np.flatnonzero(self.folds != fold), np.flatnonzero(self.folds == fold))
            for fold in range(int(self.folds.max()) + 1)
        ]


def split_data(
    X: Floats, y: Any, flip: float, seed: int, settings: Settings | None = None
) -> Split:
    """Halve the data at random and flip training labels.

    The same seed gives the same halves at every rate, and the labels flipped at one rate are
    flipped at every larger one. Folds are spread evenly over the (noisy) classes.
    """
    settings = settings or Settings()
    halves, noise, folds = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3))
    order = halves.permutation(len(y))
    train, test = order[: len(y) // 2], order[len(y) // 2 :]
    y_train = flip_labels(y[train], flip, noise, classes=np.unique(y))
    X_train, X_test = X[train], X[test]
    if settings.scaling != "none":
        scaler = _SCALERS[settings.scaling]().fit(X_train)
        X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
    spread = spread_over_folds(y_train, settings.n_folds, folds)
    return Split(X_train, y_train, X_test, y[test], spread)


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear model of two classes, and what it says of training samples it has not seen.

    Attributes
    ----------
    coef, intercept : ndarray of shape (1, n_features), (1,)
    out_of_fold : ndarray of shape (n_train,)
        Scores of the training samples by the same model without their fold; NaN where there is no
        such model.
    penalty, alpha, ratio
        What was chosen, the strength as the paper has it; the ratio of ERM is 1.
    fragility : float
        Of the training; NaN for ERM.
    """

    coef: Floats
    intercept: Floats
    out_of_fold: Floats
    penalty: str
    alpha: float
    ratio: float = 1.0
    fragility: float = np.nan

    @property
    def norm(self) -> float:
        """Euclidean norm of the coefficients."""
        return float(np.linalg.norm(self.coef))

    def scores(self, X: Floats) -> Floats:
        """Scores of the second class."""
        return X @ self.coef[0] + self.intercept[0]

    def proba(self, split: Split, probability: str) -> Floats:
        """Probabilities of the second class on the test half."""
        p = expit(self.scores(split.X_test))
        if probability == "sigmoid":
            return p
        found: Floats = platt_map(split.y_train, expit(self.out_of_fold))(p)
        return found

    def chosen(self) -> Row:
        """What was chosen, for a row of results."""
        return {
            "penalty": self.penalty,
            "alpha": self.alpha,
            "target_ratio": self.ratio,
            "train_fragility": self.fragility,
            "norm": self.norm,
            "trivial": int(not self.coef.any()),
        }


def out_of_fold_scores(split: Split, n_classes: int, settings: Settings) -> Floats:
    """Scores of the training samples by ERM without their fold, for every penalty and strength.

    Of shape (n_penalties, n_alphas, n_train, n_scores); two classes have one score.
    """
    kinds = [(penalty, alpha) for penalty in settings.penalties for alpha in settings.alphas]
    searches, tests = [], []
    for train, test in split.parts():
        data = TrainingData(split.X_train[train], split.y_train[train], None, np.arange(n_classes))
        for place, (penalty, alpha) in enumerate(kinds):
            strength = Penalty.named(penalty, settings.strength(penalty, alpha, n_classes))
            objective = data.objective(Hinge(), strength, settings.fit_intercept, reducible=False)
            start = np.zeros(objective.size)
            searches.append(erm(objective, start, tol=_TOL_ERM, max_iter=_MOST_STEPS))
            tests.append((place, test))
    n_scores = 1 if n_classes == 2 else n_classes
    scores = np.empty((len(kinds), split.y_train.size, n_scores))
    for (place, test), found in zip(tests, result(side_by_side(searches)), strict=True):
        coef, intercept = found.point.objective.in_user_units(found.point.parameters)
        scores[place, test] = split.X_train[test] @ coef.T + intercept
    return scores.reshape(len(settings.penalties), -1, *scores.shape[1:])


def erm_model(split: Split, settings: Settings) -> LinearModel:
    """Least penalised hinge loss; kind and strength of the penalty by cross-validated accuracy."""
    scores = out_of_fold_scores(split, 2, settings)[..., 0]
    unfitted = np.zeros((1, split.X_train.shape[1])), np.zeros(1)
    candidates = [
        LinearModel(*unfitted, scores[i, j], penalty, alpha)
        for i, penalty in enumerate(settings.penalties)
        for j, alpha in enumerate(settings.alphas)
    ]
    chosen = best(split, candidates, "accuracy")
    model = ERMClassifier(
        "hinge",
        chosen.penalty,
        settings.strength(chosen.penalty, chosen.alpha),
        fit_intercept=settings.fit_intercept,
    ).fit(split.X_train, split.y_train)
    coef = _without_rounding(model.coef_, split.X_train)
    return replace(chosen, coef=coef, intercept=model.intercept_)


def satisficing_models(
    split: Split, like: LinearModel, ambiguity: Ambiguity, settings: Settings
) -> list[LinearModel]:
    """Robust satisficing for each target, with the penalty of another model, cross-validated.

    Each part of the data is solved once for all targets, as `SatisficingClassifierCV` does.
    """
    scores = np.full((len(settings.ratios), split.y_train.size), np.nan)
    given = like, ambiguity, settings
    searches = [_cells(split, train, *given, _TOL_CV) for train, _ in split.parts()]
    every = np.arange(split.y_train.size)
    with np.errstate(over="ignore", under="ignore"):
        *of_parts, cells = result(side_by_side([*searches, _cells(split, every, *given, _TOL)]))
    for (_, test), found in zip(split.parts(), of_parts, strict=True):
        for place, cell in enumerate(found):
            if isinstance(cell, Cell):
                scores[place, test] = split.X_train[test] @ cell.coef[0] + cell.intercept[0]
    return [
        LinearModel(
            _without_rounding(cell.coef, split.X_train),
            cell.intercept,
            of_folds,
            like.penalty,
            like.alpha,
            ratio,
            cell.fragility,
        )
        for ratio, cell, of_folds in zip(settings.ratios, cells, scores, strict=True)
        if isinstance(cell, Cell)
    ]


def _without_rounding(coef: Floats, X: Floats) -> Floats:
    """Coefficients that change no score by more than the solver's accuracy are zero.

    Where a hinge loss is least for a constant model, the ranking by what rounding leaves of the
    coefficients would have an AUC and an index of its own.
    """
    return np.where(np.abs(coef) * np.ptp(X, axis=0) < _TOL, 0.0, coef)


def _cells(
    split: Split,
    rows: NDArray[np.intp],
    like: LinearModel,
    ambiguity: Ambiguity,
    settings: Settings,
    tol: float,
) -> Search[list[Cell | TargetError]]:
    model = SatisficingClassifier(
        "hinge",
        ambiguity,
        penalty=like.penalty,
        fit_intercept=settings.fit_intercept,
        tol=tol,
    )
    data = TrainingData(split.X_train[rows], split.y_train[rows], None, np.array([0, 1]))
    alpha = settings.strength(like.penalty, like.alpha)
    targets = [{"target_ratio": ratio} for ratio in settings.ratios]
    (row,), _ = yield from solve_grid(model, data, [alpha], targets)
    return row


def _accuracy(y: Any, scores: Floats) -> float:
    return float(np.mean((scores > 0.0) == (y == 1)))


#: Figures to choose by, from labels and scores of a fold; the larger the better.
SCORES: Mapping[str, Callable[[Any, Floats], float]] = {
    "accuracy": _accuracy,
    "auc": auc,
    "log loss": lambda y, scores: -float(np.mean(np.logaddexp(0.0, (1 - 2 * y) * scores))),
    "hinge loss": lambda y, scores: -float(np.mean(np.maximum(0.0, 1.0 + (1 - 2 * y) * scores))),
    # The paper's own figure; degenerate, for a constant model has index zero.
    "fragility index": lambda y, scores: -float(fragility_index(y, expit(scores))),
}


def best(split: Split, models: Sequence[LinearModel], score: str) -> LinearModel:
    """The model of the best mean score over the folds; of equal ones the most regular one.

    That is: of the largest target, then of the strongest penalty, then of the kind that comes last.
    """
    if not models:
        raise ValueError("There is no model to choose from: no target could be met.")
    parts = split.parts()
    rated = []
    for place, model in enumerate(models):
        mean = -inf  # a model that some fold has not got is not chosen from
        if np.isfinite(model.out_of_fold).all():
            by_fold = [SCORES[score](split.y_train[t], model.out_of_fold[t]) for _, t in parts]
            mean = round(float(np.mean(by_fold)), 12)  # what rounding tells apart is equal
        rated.append((mean, model.ratio, model.alpha, place))
    return models[max(rated)[-1]]


#: What the satisficing models guard against.
SATISFICING: Mapping[str, Callable[[Settings], Ambiguity]] = {
    "KL": lambda settings: KL(),
    "Wasserstein": lambda settings: Wasserstein(label_cost=settings.label_cost),
}


def fitted_models(split: Split, settings: Settings | None = None) -> dict[str, LinearModel]:
    """ERM, KL and Wasserstein, each chosen by cross-validation as the settings say."""
    settings = settings or Settings()
    models = {"ERM": erm_model(split, settings)}
    for name, ambiguity in SATISFICING.items():
        found = satisficing_models(split, models["ERM"], ambiguity(settings), settings)
        models[name] = best(split, found, settings.score)
    return models
