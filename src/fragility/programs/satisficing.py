r"""What is solved: the least fragility at a target, or the least worst-case loss in a ball.

.. math:: \min_{\theta, k \ge 0} k \quad\text{s.t.}\quad
          \sup_P \{ E_P \ell - k D(P, \hat P) \} + R(\theta) \le \tau ;
          \qquad
          \min_\theta \sup_{D(P, \hat P) \le \varepsilon} E_P \ell + R(\theta)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from .._typing import Floats
from ..ambiguity import Ambiguity
from .objective import Evaluation, Objective
from .targets import Target


class Outcome(Enum):
    """What a solution is."""

    SOLVED = "solved"
    UNSETTLED = "not settled within the steps allowed"
    TRIVIAL = "no feature that may shift is needed"
    NOTHING_LEARNED = "no feature helps"
    NO_FRAGILITY = "every single sample meets the target"
    NO_LOSS = "every loss is zero"
    NO_MINIMUM = "every loss may be as small as one likes"


@dataclass(frozen=True, eq=False)
class SatisficingProgram:
    """Data, loss and penalty; what may shift; and what loss is acceptable."""

    objective: Objective
    ambiguity: Ambiguity
    target: Target


@dataclass(frozen=True, eq=False)
class RobustProgram:
    """Data, loss and penalty; what may shift; and how far."""

    objective: Objective
    ambiguity: Ambiguity
    radius: float


class Hint(NamedTuple):
    """What is known of a solution before the search, if anything.

    `start` are parameters of a model. `curvature` comes with the `Solution` that the start is, or
    lies next to: it says that the start is nearly the solution, and need not meet the target.
    `alike` is a model that likely has the same zeros, or the same largest entries.
    """

    start: Floats | None = None
    curvature: Any = None
    alike: Floats | None = None


NO_HINT = Hint()


class Found(NamedTuple):
    """Where a search for the least fragility k ended.

    `gap` estimates how far k is above its minimum; another search may begin with `curvature`.
    """

    point: Evaluation
    k: float
    gap: float
    iterations: int
    converged: bool
    curvature: Any = None


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
    fragility : float, optional
        The solver's own value; certificates recompute it.
    curvature : object, optional
        A start for the same solver next to this solution.
    slope : float, optional
        How fast the fragility falls as the target rises, where the solver knows it.
    """

    parameters: Floats
    outcome: Outcome
    iterations: int
    solver: str
    gap: float = 0.0
    fragility: float | None = None
    curvature: Any = None
    slope: float | None = None
