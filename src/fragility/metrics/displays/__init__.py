"""Pictures in scikit-learn's manner: data in attributes, `from_predictions`, `from_estimator`."""

from .confidence import ConfidenceDisplay
from .pairwise import PairwiseFragilityDisplay
from .ranking_error import RankingErrorDisplay

__all__ = ["ConfidenceDisplay", "PairwiseFragilityDisplay", "RankingErrorDisplay"]
