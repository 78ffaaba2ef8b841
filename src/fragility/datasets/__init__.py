"""Data to try things on: heart failure from its official source, generators, and label noise."""

from .generators import flip_labels, make_calibrated_logistic, make_gaussian_clusters
from .heart import load_heart

__all__ = [
    "flip_labels",
    "load_heart",
    "make_calibrated_logistic",
    "make_gaussian_clusters",
]
