from .companions import (
    area_under_risk_coverage,
    buffered_auc_score,
    confident_error_rate,
    equal_mass_calibration_error,
    ranking_error_cvar,
)
from .comparison import FragilityComparison, compare_fragility
from .coverage import RiskCoverageCurve, risk_coverage_curve, surest_error_rate
from .credit import (
    gini_score,
    ks_curve,
    ks_statistic,
    population_stability,
    population_stability_index,
)
from .displays import (
    ConfidenceDisplay,
    NetBenefitDisplay,
    OperatingPointsDisplay,
    RankingErrorDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
)
from .functions import (
    fragility_index,
    fragility_ratio,
    loss_fragility,
    measure_fragility,
)
from .operating import OperatingPoints, implied_threshold, net_benefit, operating_points
from .reliability import (
    ReliabilityCurve,
    calibration_intercept,
    calibration_slope,
    integrated_calibration_index,
    observed_expected_ratio,
    reliability_curve,
)
from .scorers import neg_fragility_index_scorer, neg_fragility_ratio_scorer
from .wasserstein import (
    wasserstein_fragility_index,
    wasserstein_pair_bound,
    wasserstein_pair_index,
)

__all__ = [
    "ConfidenceDisplay",
    "FragilityComparison",
    "NetBenefitDisplay",
    "OperatingPoints",
    "OperatingPointsDisplay",
    "RankingErrorDisplay",
    "ReliabilityCurve",
    "ReliabilityDisplay",
    "RiskCoverageCurve",
    "RiskCoverageDisplay",
    "area_under_risk_coverage",
    "buffered_auc_score",
    "calibration_intercept",
    "calibration_slope",
    "compare_fragility",
    "confident_error_rate",
    "equal_mass_calibration_error",
    "fragility_index",
    "fragility_ratio",
    "gini_score",
    "implied_threshold",
    "integrated_calibration_index",
    "ks_curve",
    "ks_statistic",
    "loss_fragility",
    "measure_fragility",
    "neg_fragility_index_scorer",
    "neg_fragility_ratio_scorer",
    "net_benefit",
    "observed_expected_ratio",
    "operating_points",
    "population_stability",
    "population_stability_index",
    "ranking_error_cvar",
    "reliability_curve",
    "risk_coverage_curve",
    "surest_error_rate",
    "wasserstein_fragility_index",
    "wasserstein_pair_bound",
    "wasserstein_pair_index",
]
