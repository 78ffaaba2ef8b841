"""Data of the experiments: from their official sources, checked and cached, or drawn."""

from .generators import flip_labels, make_calibrated_logistic, make_gaussian_clusters
from .heart import load_heart
from .medmnist import load_medmnist
from .uci import load_uci

__all__ = [
    "flip_labels",
    "load_heart",
    "load_medmnist",
    "load_uci",
    "make_calibrated_logistic",
    "make_gaussian_clusters",
]
