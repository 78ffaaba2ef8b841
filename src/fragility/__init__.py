"""Measure, train against and decide with the tail risk of confident mistakes."""

from importlib.metadata import version

from .ambiguity import KL, Wasserstein
from .certificates import Certificate, certify
from .deferral import (
    BestThreshold,
    Costs,
    Decisions,
    DeferralClassifier,
    DeferralCurve,
    DeferralDisplay,
    best_threshold,
    deferral_curve,
)
from .exceptions import AbsentClassWarning
from .index.attribution import AttributedSample
from .index.fragility import Fragility
from .index.inference import Interval, PairedDifference
from .index.sketch import FragilitySketch, SketchFragility
from .linear_model import (
    DROClassifier,
    ERMClassifier,
    FragilityPath,
    FragilityPathDisplay,
    SatisficingClassifier,
    SatisficingClassifierCV,
    fragility_path,
)
from .metrics import (
    ConfidenceDisplay,
    FragilityComparison,
    PairwiseFragilityDisplay,
    RankingErrorDisplay,
    area_under_risk_coverage,
    buffered_auc_score,
    compare_fragility,
    confident_error_rate,
    equal_mass_calibration_error,
    fragility_index,
    fragility_ratio,
    loss_fragility,
    measure_fragility,
    neg_fragility_index_scorer,
    neg_fragility_ratio_scorer,
    ranking_error_cvar,
    wasserstein_fragility_index,
)
from .report import Report

__version__ = version("fragility")

__all__ = [
    "KL",
    "AbsentClassWarning",
    "AttributedSample",
    "BestThreshold",
    "Certificate",
    "ConfidenceDisplay",
    "Costs",
    "DROClassifier",
    "Decisions",
    "DeferralClassifier",
    "DeferralCurve",
    "DeferralDisplay",
    "ERMClassifier",
    "Fragility",
    "FragilityComparison",
    "FragilityPath",
    "FragilityPathDisplay",
    "FragilitySketch",
    "Interval",
    "PairedDifference",
    "PairwiseFragilityDisplay",
    "RankingErrorDisplay",
    "Report",
    "SatisficingClassifier",
    "SatisficingClassifierCV",
    "SketchFragility",
    "Wasserstein",
    "area_under_risk_coverage",
    "best_threshold",
    "buffered_auc_score",
    "certify",
    "compare_fragility",
    "confident_error_rate",
    "deferral_curve",
    "equal_mass_calibration_error",
    "fragility_index",
    "fragility_path",
    "fragility_ratio",
    "loss_fragility",
    "measure_fragility",
    "neg_fragility_index_scorer",
    "neg_fragility_ratio_scorer",
    "ranking_error_cvar",
    "wasserstein_fragility_index",
]
