from .classifier import DeferralClassifier
from .compare import CostComparison, compare_costs
from .confusion import PolicyConfusion, PolicyConfusionDisplay, policy_confusion
from .costs import Costs, pair_cost_of
from .curve import DeferralCurve, OperatingPoint, deferral_curve
from .decision_rules import LossLimit, TwoThresholds
from .decisions import Decisions
from .display import DeferralDisplay
from .guarantees import Guarantee
from .policy import Policy
from .policy_files import read_policy
from .policy_search import best_policy
from .reviewers import Reviewers
from .settings import PolicySettings, RiskLimits

__all__ = [
    "CostComparison",
    "Costs",
    "Decisions",
    "DeferralClassifier",
    "DeferralCurve",
    "DeferralDisplay",
    "Guarantee",
    "LossLimit",
    "OperatingPoint",
    "Policy",
    "PolicyConfusion",
    "PolicyConfusionDisplay",
    "PolicySettings",
    "Reviewers",
    "RiskLimits",
    "TwoThresholds",
    "best_policy",
    "compare_costs",
    "deferral_curve",
    "pair_cost_of",
    "policy_confusion",
    "read_policy",
]
