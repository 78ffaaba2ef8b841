"""Overlapping clouds in the plane with quadratic features and noisy labels: data and models.

The paper gives neither centres nor spreads ("moderate overlap"); ours are those of
`make_gaussian_clusters`. Features are not scaled: the paper speaks of none. Its feature map
contains the 1, which a priced intercept stands for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from experiments.baselines import NEURAL
from experiments.baselines.losses import Floats
from experiments.experiment import Condition, Row
from experiments.merit import merits
from experiments.protocol import QUICK, SATISFICING, Settings, Split, out_of_fold_scores
from fragility import ERMClassifier, SatisficingClassifier
from fragility._random import spread_over_folds
from fragility.datasets import flip_labels, make_gaussian_clusters
from fragility.linear_model.base import TrainingData
from fragility.linear_model.grid import Cell, solve_grid
from fragility.solvers.searching import result

__all__ = [
    "ADVERSARIAL",
    "FLIPS",
    "RATIOS",
    "SIZES",
    "SMALL",
    "TEST",
    "adversarial_rows",
    "chosen_penalty",
    "draw",
    "flip_conditions",
    "linear_rows",
    "size_conditions",
]

SIZES = (50, 100, 200, 300, 400)
FLIPS = (0.0, 0.1, 0.2, 0.3)
#: Training samples where the noise varies, and test samples.
SMALL, TEST = 50, 2000
#: Targets, as multiples of the lowest loss.
RATIOS = (1.05, 1.1, 1.15)
#: Half the distance of neighbouring centres, the same for two and for four classes.
RADIUS = 1.25
#: What the paper compares with here: no boosted trees, no moved features.
ADVERSARIAL = ("Trimmed", "GCE", "SCE", "SCE as printed", "Purify", "Mixup", "Label smoothing")
_QUICK_ADVERSARIAL = ("GCE", "Label smoothing")


def size_conditions(quick: bool) -> Sequence[Condition]:
    """Training samples, clean labels."""
    return [{"n": n} for n in ((50, 200) if quick else SIZES)]


def flip_conditions(quick: bool) -> Sequence[Condition]:
    """Rates of wrong labels at 50 training samples."""
    return [{"flip": flip} for flip in ((0.0, 0.3) if quick else FLIPS)]


def draw(condition: Condition, n_classes: int, seed: int, n_folds: int) -> Split:
    """Training data with noisy labels and clean test data.

    Neighbouring classes overlap alike, however many there are. The same seed gives the same test
    data under all conditions; more noise flips more labels of the same data.
    """
    states = np.random.SeedSequence(seed).spawn(4)
    test, train, noise, folds = (np.random.default_rng(state) for state in states)
    n, flip = int(condition.get("n", SMALL)), float(condition.get("flip", 0.0))
    clouds = {"radius": RADIUS / np.sin(np.pi / n_classes), "quadratic": True}
    X_test, y_test = make_gaussian_clusters(TEST, n_classes, random_state=test, **clouds)
    X, y = make_gaussian_clusters(n, n_classes, random_state=train, **clouds)
    noisy = flip_labels(y, flip, noise, classes=np.arange(n_classes))
    return Split(X, noisy, X_test, y_test, spread_over_folds(noisy, n_folds, folds))


class _Fitted(NamedTuple):
    """A linear model with what its row of results says of it."""

    method: str
    target_ratio: float
    coef: Floats
    intercept: Floats
    fragility: float


def linear_rows(
    condition: Condition,
    n_classes: int,
    seed: int,
    quick: bool,
    ratios: Sequence[float],
    intercepts: Sequence[str],
) -> Iterator[Row]:
    """ERM, and KL and Wasserstein at each target, with the penalty that ERM chose."""
    usual = QUICK if quick else Settings()
    split = draw(condition, n_classes, seed, usual.n_folds)
    for intercept in intercepts:
        settings = replace(usual, intercept=intercept)
        penalty, alpha = chosen_penalty(split, n_classes, settings)
        for model in _fitted(split, n_classes, penalty, alpha, settings, ratios):
            scores = split.X_test @ model.coef.T + model.intercept
            yield {
                **_named(model.method, model.target_ratio, intercept),
                "penalty": penalty,
                "alpha": alpha,
                "train_fragility": model.fragility,
                "norm": float(np.linalg.norm(model.coef)),
                "trivial": int(not model.coef.any()),
                **merits(split.y_test, _probabilities(scores), np.arange(n_classes), seed),
            }


def adversarial_rows(condition: Condition, n_classes: int, seed: int, quick: bool) -> Iterator[Row]:
    """The robust baselines on the same data."""
    settings = QUICK if quick else Settings()
    split = draw(condition, n_classes, seed, settings.n_folds)
    for name in _QUICK_ADVERSARIAL if quick else ADVERSARIAL:
        model = NEURAL[name](seed).fit(split.X_train, split.y_train)
        yield {
            **_named(name, 1.0, "own"),
            "penalty": "",
            "alpha": np.nan,
            "train_fragility": np.nan,
            "norm": float(np.linalg.norm(model.coef_)),
            "trivial": 0,
            **merits(split.y_test, model.predict_proba(split.X_test), np.arange(n_classes), seed),
        }


def _named(method: str, ratio: float, intercept: str) -> Row:
    model = method if ratio == 1.0 else f"{method} {ratio:g}"
    return {"model": model, "method": method, "target_ratio": ratio, "intercept": intercept}


def chosen_penalty(split: Split, n_classes: int, settings: Settings) -> tuple[str, float]:
    """Kind and strength of the penalty of the best ERM model by cross-validated accuracy.

    Of equal ones the strongest, then l2, as on the real data.
    """
    scores = out_of_fold_scores(split, n_classes, settings)
    chosen = scores[..., 0] > 0.0 if n_classes == 2 else scores.argmax(axis=-1)
    hits = chosen == split.y_train
    right = sum(hits[..., test].mean(axis=-1) for _, test in split.parts())
    rated = [
        (round(float(right[place, strength]), 12), alpha, place)
        for place in range(len(settings.penalties))
        for strength, alpha in enumerate(settings.alphas)
    ]
    _, alpha, place = max(rated)
    return settings.penalties[place], alpha


def _fitted(
    split: Split,
    n_classes: int,
    penalty: str,
    alpha: float,
    settings: Settings,
    ratios: Sequence[float],
) -> list[_Fitted]:
    X, y = split.X_train, split.y_train
    strength, fit_intercept = settings.strength(penalty, alpha, n_classes), settings.fit_intercept
    erm = ERMClassifier("hinge", penalty, strength, fit_intercept=fit_intercept).fit(X, y)
    models = [_Fitted("ERM", 1.0, erm.coef_, erm.intercept_, np.nan)]
    targets = [{"target_ratio": ratio} for ratio in ratios]
    for name, ambiguity in SATISFICING.items():
        model = SatisficingClassifier(
            "hinge", ambiguity(settings), penalty=penalty, fit_intercept=fit_intercept
        )
        data = TrainingData(X, y, None, erm.classes_)
        with np.errstate(over="ignore", under="ignore"):
            (cells,), _ = result(solve_grid(model, data, [strength], targets))
        models += [
            _Fitted(name, ratio, cell.coef, cell.intercept, cell.fragility)
            for ratio, cell in zip(ratios, map(_solved, cells), strict=True)
        ]
    return models


def _solved(cell: Any) -> Cell:
    if not isinstance(cell, Cell):
        raise cell
    return cell


def _probabilities(scores: Floats) -> Floats:
    """Sigmoid of one score, softmax of several."""
    logits = np.column_stack([np.zeros(len(scores)), scores]) if scores.shape[1] == 1 else scores
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)
