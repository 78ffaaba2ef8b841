from .adversary import AdversaryDisplay
from .confidence import ConfidenceDisplay
from .credit import KSDisplay, PopulationStabilityDisplay
from .net_benefit import NetBenefitDisplay
from .operating import OperatingPointsDisplay
from .pairwise import PairwiseFragilityDisplay
from .ranking_error import RankingErrorDisplay
from .reliability import ReliabilityDisplay
from .risk_coverage import RiskCoverageDisplay

__all__ = [
    "AdversaryDisplay",
    "ConfidenceDisplay",
    "KSDisplay",
    "NetBenefitDisplay",
    "OperatingPointsDisplay",
    "PairwiseFragilityDisplay",
    "PopulationStabilityDisplay",
    "RankingErrorDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
]
