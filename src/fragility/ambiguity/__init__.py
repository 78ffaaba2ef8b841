"""How far a distribution is from the data: what a model is made robust against."""

from .base import Ambiguity
from .kl import KL
from .wasserstein import Wasserstein

__all__ = ["KL", "Ambiguity", "Wasserstein"]
