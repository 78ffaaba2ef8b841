"""Cholesky factors straight from LAPACK: for small matrices the usual wrappers take longer."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from .._typing import Floats


class Cholesky:
    """A = L Lᵀ of a positive definite matrix, perhaps an empty one, which may be overwritten."""

    def __init__(self, matrix: Floats) -> None:
        self.factor, failed = dpotrf(matrix, lower=1, clean=1)
        if failed or (matrix.size and not np.isfinite(self.factor[-1, -1])):
            raise LinAlgError("The matrix is not positive definite.")

    def solve(self, right: Floats) -> Floats:
        """A⁻¹ right."""
        if not right.size:
            return right
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


class BalancedStack:
    """Factors of several matrices (B, m, m), each brought to a unit diagonal first.

    `found` says which of them are positive definite; the others solve to zero.
    """

    def __init__(self, matrices: Floats, stand_in: float) -> None:
        diagonal = np.einsum("bii->bi", matrices)
        self._balance = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        balanced = matrices * self._balance[:, np.newaxis]
        balanced *= self._balance[..., np.newaxis]
        np.einsum("bii->bi", balanced)[:] += stand_in
        self._factors: list[Floats | None] = []
        for matrix in balanced:
            # A symmetric matrix is its own transpose, and LAPACK's order needs no copy.
            factor, failed = dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
            sound = not failed and np.isfinite(factor[-1, -1])
            self._factors.append(factor if sound else None)
        self.found = np.array([factor is not None for factor in self._factors])

    def solve(self, right: Floats) -> Floats:
        """Solutions (B, m)."""
        scaled = right * self._balance
        for row, factor in zip(scaled, self._factors, strict=True):
            row[:] = 0.0 if factor is None else dpotrs(factor, row, lower=1)[0]
        return scaled * self._balance
