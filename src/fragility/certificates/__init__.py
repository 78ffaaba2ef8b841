"""What a linear model guarantees: recomputed from data and coefficients."""

from .certificate import Certificate, certificate_of
from .certify import certify, penalty_of
from .index_bounds import IndexBound
from .promise import Promise

__all__ = ["Certificate", "IndexBound", "Promise", "certificate_of", "certify", "penalty_of"]
