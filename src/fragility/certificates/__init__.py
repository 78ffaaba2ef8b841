"""What a linear model guarantees: recomputed from data and coefficients."""

from .certificate import Certificate, certificate_of
from .certify import certify, penalty_of
from .index_bounds import IndexBound
from .promise import Promise
from .proof import OptimalityProof, prove
from .regression import RegressionCertificate, certify_regression
from .worst_case import WorstCase, worst_case

__all__ = [
    "Certificate",
    "IndexBound",
    "OptimalityProof",
    "Promise",
    "RegressionCertificate",
    "WorstCase",
    "certificate_of",
    "certify",
    "certify_regression",
    "penalty_of",
    "prove",
    "worst_case",
]
