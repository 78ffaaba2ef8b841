"""What a linear model guarantees: recomputed from data and coefficients."""

from .certificate import Certificate, certificate_of
from .certify import certify, penalty_of
from .index_bounds import IndexBound
from .promise import Promise
from .regression import RegressionCertificate, certify_regression

__all__ = [
    "Certificate",
    "IndexBound",
    "Promise",
    "RegressionCertificate",
    "certificate_of",
    "certify",
    "certify_regression",
    "penalty_of",
]
