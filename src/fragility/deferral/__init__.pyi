from .classifier import DeferralClassifier
from .costs import Costs
from .curve import DeferralCurve, OperatingPoint, deferral_curve
from .decisions import Decisions
from .display import DeferralDisplay
from .threshold import BestThreshold, best_threshold

__all__ = [
    "BestThreshold",
    "Costs",
    "Decisions",
    "DeferralClassifier",
    "DeferralCurve",
    "DeferralDisplay",
    "OperatingPoint",
    "best_threshold",
    "deferral_curve",
]
