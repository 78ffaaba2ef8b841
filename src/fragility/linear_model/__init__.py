"""Linear classifiers with a stated robustness, and the baseline beside them."""

from .erm import ERMClassifier
from .path import FragilityPath, fragility_path
from .path_display import FragilityPathDisplay
from .satisficing import SatisficingClassifier

__all__ = [
    "ERMClassifier",
    "FragilityPath",
    "FragilityPathDisplay",
    "SatisficingClassifier",
    "fragility_path",
]
