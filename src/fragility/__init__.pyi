from . import (
    ambiguity as ambiguity,
)
from . import (
    calibration as calibration,
)
from . import (
    certificates as certificates,
)
from . import (
    datasets as datasets,
)
from . import (
    deferral as deferral,
)
from . import (
    distributed as distributed,
)
from . import (
    exceptions as exceptions,
)
from . import (
    index as index,
)
from . import (
    linear_model as linear_model,
)
from . import (
    losses as losses,
)
from . import (
    metrics as metrics,
)
from . import (
    report as report,
)
from . import (
    scores as scores,
)
from . import (
    tables as tables,
)
from . import (
    torch as torch,
)
from ._typing import Interval
from ._version import __version__ as __version__
from .ambiguity import KL, Transport, Wasserstein
from .certificates import (
    Certificate,
    OptimalityProof,
    WorstCase,
    certify,
    prove,
    worst_case,
)
from .deferral import (
    CostComparison,
    Costs,
    Decisions,
    DeferralClassifier,
    DeferralCurve,
    DeferralDisplay,
    Policy,
    PolicyConfusion,
    PolicyConfusionDisplay,
    Reviewers,
    best_policy,
    compare_costs,
    deferral_curve,
    pair_cost_of,
    policy_confusion,
)
from .exceptions import AbsentClassWarning
from .figures.sketch import SketchFragility
from .figures.sketch_comparison import SketchComparison, compare_sketches
from .grouping import GroupColumn, in_ranges
from .index.attribution import AttributedSample
from .index.fragility import Fragility
from .index.inference import PairedDifference
from .linear_model import (
    DROClassifier,
    ERMClassifier,
    FragilityPath,
    FragilityPathDisplay,
    SatisficingClassifier,
    SatisficingClassifierCV,
    SatisficingRegressor,
    fragility_path,
)
from .metrics import (
    ConfidenceDisplay,
    FragilityComparison,
    NetBenefitDisplay,
    OperatingPoints,
    OperatingPointsDisplay,
    RankingErrorDisplay,
    ReliabilityCurve,
    ReliabilityDisplay,
    RiskCoverageCurve,
    RiskCoverageDisplay,
    area_under_risk_coverage,
    buffered_auc_score,
    calibration_intercept,
    calibration_slope,
    compare_fragility,
    confident_error_rate,
    equal_mass_calibration_error,
    fragility_index,
    fragility_ratio,
    gini_score,
    implied_threshold,
    integrated_calibration_index,
    ks_statistic,
    loss_fragility,
    measure_fragility,
    neg_fragility_index_scorer,
    neg_fragility_ratio_scorer,
    net_benefit,
    observed_expected_ratio,
    operating_points,
    population_stability_index,
    ranking_error_cvar,
    reliability_curve,
    risk_coverage_curve,
    surest_error_rate,
    wasserstein_fragility_index,
    wasserstein_pair_bound,
    wasserstein_pair_index,
)
from .monitoring import ErrorAlarm, error_alarm
from .planning import EvaluationPlan, plan_evaluation
from .report import PreviousPredictions, Report
from .scores.answer_state import AnswerState
from .scores.sketch import FragilitySketch
from .scores.state import ScoreState
from .slices import Slice, find_slices
from .transport import ShiftDistance, shift_distance

__all__ = [
    "KL",
    "AbsentClassWarning",
    "AnswerState",
    "AttributedSample",
    "Certificate",
    "ConfidenceDisplay",
    "CostComparison",
    "Costs",
    "DROClassifier",
    "Decisions",
    "DeferralClassifier",
    "DeferralCurve",
    "DeferralDisplay",
    "ERMClassifier",
    "ErrorAlarm",
    "EvaluationPlan",
    "Fragility",
    "FragilityComparison",
    "FragilityPath",
    "FragilityPathDisplay",
    "FragilitySketch",
    "GroupColumn",
    "Interval",
    "NetBenefitDisplay",
    "OperatingPoints",
    "OperatingPointsDisplay",
    "OptimalityProof",
    "PairedDifference",
    "Policy",
    "PolicyConfusion",
    "PolicyConfusionDisplay",
    "PreviousPredictions",
    "RankingErrorDisplay",
    "ReliabilityCurve",
    "ReliabilityDisplay",
    "Report",
    "Reviewers",
    "RiskCoverageCurve",
    "RiskCoverageDisplay",
    "SatisficingClassifier",
    "SatisficingClassifierCV",
    "SatisficingRegressor",
    "ScoreState",
    "ShiftDistance",
    "SketchComparison",
    "SketchFragility",
    "Slice",
    "Transport",
    "Wasserstein",
    "WorstCase",
    "area_under_risk_coverage",
    "best_policy",
    "buffered_auc_score",
    "calibration_intercept",
    "calibration_slope",
    "certify",
    "compare_costs",
    "compare_fragility",
    "compare_sketches",
    "confident_error_rate",
    "deferral_curve",
    "equal_mass_calibration_error",
    "error_alarm",
    "find_slices",
    "fragility_index",
    "fragility_path",
    "fragility_ratio",
    "gini_score",
    "implied_threshold",
    "in_ranges",
    "integrated_calibration_index",
    "ks_statistic",
    "loss_fragility",
    "measure_fragility",
    "neg_fragility_index_scorer",
    "neg_fragility_ratio_scorer",
    "net_benefit",
    "observed_expected_ratio",
    "operating_points",
    "pair_cost_of",
    "plan_evaluation",
    "policy_confusion",
    "population_stability_index",
    "prove",
    "ranking_error_cvar",
    "reliability_curve",
    "risk_coverage_curve",
    "shift_distance",
    "surest_error_rate",
    "wasserstein_fragility_index",
    "wasserstein_pair_bound",
    "wasserstein_pair_index",
    "worst_case",
]
