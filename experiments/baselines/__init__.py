"""What robust training is compared with, as scikit-learn estimators with the paper's settings.

All but the boosted trees are one linear model, trained with Adam (`AdamClassifier`); they differ in
the loss or in what they do to the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from experiments.baselines.augmented import (
    GaussianNoiseClassifier,
    LabelSmoothingClassifier,
    MixupClassifier,
    PGDClassifier,
    PurifyClassifier,
)
from experiments.baselines.boosting import lightgbm, xgboost
from experiments.baselines.linear import AdamClassifier
from experiments.baselines.loss_based import (
    GCEClassifier,
    PrintedSCEClassifier,
    SCEClassifier,
    TrimmedClassifier,
)

__all__ = [
    "BASELINES",
    "BOOSTED",
    "NEURAL",
    "AdamClassifier",
    "GCEClassifier",
    "GaussianNoiseClassifier",
    "LabelSmoothingClassifier",
    "MixupClassifier",
    "PGDClassifier",
    "PrintedSCEClassifier",
    "PurifyClassifier",
    "SCEClassifier",
    "TrimmedClassifier",
    "lightgbm",
    "xgboost",
]

#: Name in tables and figures -> estimator, given a seed.
NEURAL: Mapping[str, Callable[[int], Any]] = {
    "Trimmed": lambda seed: TrimmedClassifier(random_state=seed),
    "GCE": lambda seed: GCEClassifier(random_state=seed),
    "SCE": lambda seed: SCEClassifier(random_state=seed),
    "SCE as printed": lambda seed: PrintedSCEClassifier(random_state=seed),
    "Purify": lambda seed: PurifyClassifier(random_state=seed),
    "Mixup": lambda seed: MixupClassifier(random_state=seed),
    "Label smoothing": lambda seed: LabelSmoothingClassifier(random_state=seed),
    "PGD": lambda seed: PGDClassifier(random_state=seed),
    "Gaussian noise": lambda seed: GaussianNoiseClassifier(random_state=seed),
}
BOOSTED: Mapping[str, Callable[[int], Any]] = {"XGBoost": xgboost, "LightGBM": lightgbm}
BASELINES: Mapping[str, Callable[[int], Any]] = {**BOOSTED, **NEURAL}
