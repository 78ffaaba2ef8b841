"""What a linear model guarantees: recomputed from data and coefficients."""

from .certificate import Certificate, certificate_of
from .certify import certify, penalty_of
from .index_bounds import IndexBound
from .promise import Promise
from .proof import OptimalityProof, prove
from .worst_case import WorstCase, worst_case

__all__ = [
    "Certificate",
    "IndexBound",
    "OptimalityProof",
    "Promise",
    "WorstCase",
    "certificate_of",
    "certify",
    "penalty_of",
    "prove",
    "worst_case",
]
