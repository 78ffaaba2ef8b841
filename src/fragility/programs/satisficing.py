r"""What is solved: the smallest fragility at which a model meets a target.

.. math:: \min_{\theta, k \ge 0} k \quad\text{s.t.}\quad
          \sup_P \{ E_P \ell - k D(P, \hat P) \} + R(\theta) \le \tau
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..ambiguity import Ambiguity
from ..moments import Floats
from .objective import Objective
from .targets import Target

__all__ = ["Outcome", "SatisficingProgram", "Solution"]


class Outcome(Enum):
    """What a solution is."""

    SOLVED = "solved"
    UNSETTLED = "not settled within the steps allowed"
    TRIVIAL = "no feature that may shift is needed"
    NOTHING_LEARNED = "no feature helps"
    NO_FRAGILITY = "every single sample meets the target"


@dataclass(frozen=True, eq=False)
class SatisficingProgram:
    """Data, loss and penalty; what may shift; and what loss is acceptable."""

    objective: Objective
    ambiguity: Ambiguity
    target: Target


@dataclass(frozen=True, eq=False)
class Solution:
    """Parameters of the model, in the coordinates of the objective, and how they were found.

    Attributes
    ----------
    parameters : ndarray
    outcome : Outcome
    iterations : int
    solver : str
    gap : float
        Estimate of how far the fragility is above its minimum, relatively.
    """

    parameters: Floats
    outcome: Outcome
    iterations: int
    solver: str
    gap: float = 0.0
