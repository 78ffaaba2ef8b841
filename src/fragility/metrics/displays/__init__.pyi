from .confidence import ConfidenceDisplay
from .net_benefit import NetBenefitDisplay
from .operating import OperatingPointsDisplay
from .ranking_error import RankingErrorDisplay
from .reliability import ReliabilityDisplay
from .risk_coverage import RiskCoverageDisplay

__all__ = [
    "ConfidenceDisplay",
    "NetBenefitDisplay",
    "OperatingPointsDisplay",
    "RankingErrorDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
]
