from .companions import (
    area_under_risk_coverage,
    buffered_auc_score,
    confident_error_rate,
    equal_mass_calibration_error,
    ranking_error_cvar,
)
from .comparison import FragilityComparison, compare_fragility
from .displays import ConfidenceDisplay, PairwiseFragilityDisplay, RankingErrorDisplay
from .functions import (
    fragility_index,
    fragility_ratio,
    loss_fragility,
    measure_fragility,
    wasserstein_fragility_index,
)
from .scorers import neg_fragility_index_scorer, neg_fragility_ratio_scorer

__all__ = [
    "ConfidenceDisplay",
    "FragilityComparison",
    "PairwiseFragilityDisplay",
    "RankingErrorDisplay",
    "area_under_risk_coverage",
    "buffered_auc_score",
    "compare_fragility",
    "confident_error_rate",
    "equal_mass_calibration_error",
    "fragility_index",
    "fragility_ratio",
    "loss_fragility",
    "measure_fragility",
    "neg_fragility_index_scorer",
    "neg_fragility_ratio_scorer",
    "ranking_error_cvar",
    "wasserstein_fragility_index",
]
