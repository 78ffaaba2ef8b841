"""The scikit-learn face of the library: metrics as functions, and scorers."""

from .comparison import FragilityComparison, compare_fragility
from .functions import (
    fragility_index,
    fragility_ratio,
    loss_fragility,
    measure_fragility,
    wasserstein_fragility_index,
)
from .scorers import neg_fragility_index_scorer, neg_fragility_ratio_scorer

__all__ = [
    "FragilityComparison",
    "compare_fragility",
    "fragility_index",
    "fragility_ratio",
    "loss_fragility",
    "measure_fragility",
    "neg_fragility_index_scorer",
    "neg_fragility_ratio_scorer",
    "wasserstein_fragility_index",
]
