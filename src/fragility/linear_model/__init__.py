"""Linear models with a stated robustness, and the baseline beside them."""

from .cross_validation import SatisficingClassifierCV
from .dro import DROClassifier
from .erm import ERMClassifier
from .path import FragilityPath, fragility_path
from .path_display import FragilityPathDisplay
from .regression import SatisficingRegressor
from .satisficing import SatisficingClassifier

__all__ = [
    "DROClassifier",
    "ERMClassifier",
    "FragilityPath",
    "FragilityPathDisplay",
    "SatisficingClassifier",
    "SatisficingClassifierCV",
    "SatisficingRegressor",
    "fragility_path",
]
