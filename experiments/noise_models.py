"""Models for features that are measured worse in use than in training."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from experiments.baselines.boosting import lightgbm
from experiments.baselines.losses import Floats
from experiments.platt import platt_map
from experiments.protocol import Split
from fragility import SatisficingClassifier, Wasserstein

__all__ = ["INFORMED", "MODELS", "STRENGTHS", "Fitted", "TrainingHalf", "noisy"]

#: Strengths of L2 to choose from, weak to strong, as scikit-learn has them (C).
STRENGTHS = tuple((10.0 ** np.arange(1.0, -3.5, -0.5)).tolist())
#: Noisy copies of each training row.
_COPIES = 5


@dataclass(frozen=True)
class Fitted:
    """A model of two classes, and what it says of training rows that it has not seen.

    Attributes
    ----------
    proba : callable
        Probability of class 1 of new rows.
    out_of_fold : ndarray of shape (n_train,)
        The same of the training rows, as they are, by the model without their fold.
    chosen : float
        The chosen strength of L2, or the slack of the target; NaN where there is none.
    """

    proba: Callable[[Floats], Floats]
    out_of_fold: Floats
    chosen: float = np.nan


def noisy(X: Floats, sigma: Floats, rng: np.random.Generator) -> Floats:
    """Rows with Gaussian errors of a known deviation for each feature."""
    return X + sigma * rng.normal(size=X.shape)


@dataclass(frozen=True, eq=False)
class TrainingHalf:
    """Clean training rows, and every model of them."""

    split: Split
    seed: int

    @cached_property
    def l2(self) -> Fitted:
        """L2 logistic regression of the strength with the least log-loss out of fold."""
        return self._tuned_l2(np.zeros(self.split.X_train.shape[1]), 0)

    def noisy_copies(self, sigma: Floats) -> Fitted:
        """The same where noisy copies train, and noisy copies of held-out rows judge."""
        return self._tuned_l2(sigma, _COPIES)

    def _tuned_l2(self, sigma: Floats, copies: int) -> Fitted:
        split, rng = self.split, np.random.default_rng(self.seed)

        def seen(rows: Any) -> tuple[Floats, Any]:
            X, y = split.X_train[rows], split.y_train[rows]
            if copies == 0:
                return X, y
            return noisy(np.tile(X, (copies, 1)), sigma, rng), np.tile(y, copies)

        loss = np.zeros(len(STRENGTHS))
        unseen = np.empty((len(STRENGTHS), split.y_train.size))
        for train, test in split.parts():
            X_judge, y_judge = seen(test)
            for i, scores in enumerate(_l2_path(*seen(train), STRENGTHS, copies)):
                loss[i] += _mean_loss(y_judge, scores(X_judge)) * test.size
                unseen[i, test] = expit(scores(split.X_train[test]))
        best = int(loss.argmin())
        (scores,) = _l2_path(*seen(slice(None)), STRENGTHS[best : best + 1], copies)
        return Fitted(lambda X: expit(scores(X)), unseen[best], STRENGTHS[best])

    def satisficing(self, ambiguity: Wasserstein, **wanted: Any) -> Fitted:
        """Robust satisficing: nothing is tuned; a target by cross-validation is each fold's own."""
        split, unseen = self.split, np.empty(self.split.y_train.size)
        for train, test in split.parts():
            part = SatisficingClassifier(ambiguity=ambiguity, **wanted)
            part.fit(split.X_train[train], split.y_train[train])
            unseen[test] = part.predict_proba(split.X_train[test])[:, 1]
        model = SatisficingClassifier(ambiguity=ambiguity, **wanted)
        model.fit(split.X_train, split.y_train)
        learnt = model.trivial_loss_ - model.erm_loss_
        slack = (model.target_ - model.erm_loss_) / learnt if learnt > 0.0 else np.nan
        return Fitted(lambda X: model.predict_proba(X)[:, 1], unseen, slack)

    @cached_property
    def boosting(self) -> Fitted:
        """LightGBM after Platt's map."""
        split, unseen = self.split, np.empty(self.split.y_train.size)
        for train, test in split.parts():
            part = lightgbm(self.seed).fit(split.X_train[train], split.y_train[train])
            unseen[test] = _second(part, split.X_train[test])
        model = lightgbm(self.seed).fit(split.X_train, split.y_train)
        platt = platt_map(split.y_train, unseen)
        return Fitted(lambda X: platt(_second(model, X)), platt(unseen))


def _l2_path(
    X: Floats, y: Any, strengths: Sequence[float], copies: int
) -> Iterator[Callable[[Floats], Floats]]:
    """Scores of the models of a row of strengths; the intercept is free."""
    model = LogisticRegression(solver="newton-cholesky", warm_start=True, max_iter=200)
    # All copies of a row weigh as much as the row: a strength means the same with them.
    weights = np.full(y.size, 1.0 / max(copies, 1))
    for strength in strengths:
        model.set_params(C=strength).fit(X, y, weights)
        coef, intercept = model.coef_[0].copy(), float(model.intercept_[0])
        yield lambda rows, coef=coef, intercept=intercept: rows @ coef + intercept


def _mean_loss(y: Any, scores: Floats) -> float:
    return float(np.logaddexp(0.0, (1 - 2 * y) * scores).mean())


def _second(model: Any, X: Floats) -> Floats:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LightGBM's, of names of features that nobody gave
        p: Floats = model.predict_proba(X)[:, 1]
        return p


#: In the order of the tables: by the known deviation of the noise of each feature.
MODELS: Mapping[str, Callable[[TrainingHalf, Floats], Fitted]] = {
    "L2": lambda half, sigma: half.l2,
    "noisy copies": lambda half, sigma: half.noisy_copies(sigma),
    "boosting": lambda half, sigma: half.boosting,
    "Wasserstein": lambda half, sigma: half.satisficing(Wasserstein(), slack=0.1),
    "from_noise, slack 0.1": lambda half, sigma: half.satisficing(
        Wasserstein.from_noise(sigma), slack=0.1
    ),
    "from_noise, out of fold": lambda half, sigma: half.satisficing(
        Wasserstein.from_noise(sigma), target="out_of_fold"
    ),
}
#: Models that know the noise.
INFORMED = ("noisy copies", "from_noise, slack 0.1", "from_noise, out of fold")
