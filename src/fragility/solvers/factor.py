"""Cholesky factors straight from LAPACK: for small matrices the usual wrappers take longer."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from .._typing import Floats


class Cholesky:
    """A = L Lᵀ of a positive definite matrix, which may be overwritten."""

    def __init__(self, matrix: Floats) -> None:
        self.factor, failed = dpotrf(matrix, lower=1, clean=1)
        if failed or not np.isfinite(self.factor[-1, -1]):
            raise LinAlgError("The matrix is not positive definite.")

    def solve(self, right: Floats) -> Floats:
        """A⁻¹ right."""
        solution: Floats = dpotrs(self.factor, right, lower=1)[0]
        return solution

    def half_solve(self, right: Floats) -> Floats:
        """L⁻¹ right."""
        solution: Floats = dtrtrs(self.factor, right, lower=1)[0]
        return solution

    def other_half(self, right: Floats) -> Floats:
        """Solve Lᵀ x = right, the second half of a solution by the factor L."""
        solution: Floats = dtrtrs(self.factor, right, lower=1, trans=1)[0]
        return solution
