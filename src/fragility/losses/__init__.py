"""Convex losses of linear scores: value, gradient and curvature, one file per loss."""

from .base import Loss
from .cross_entropy import CrossEntropy
from .smoothed_hinge import SmoothedHinge

__all__ = ["CrossEntropy", "Loss", "SmoothedHinge"]
