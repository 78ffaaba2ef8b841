"""What a policy looks at: two thresholds of a score, or a limit of the expected loss."""

from __future__ import annotations

from dataclasses import dataclass

from scipy.special import expit

from .._typing import Floats
from ..calibration.fitting import log_odds
from ..calibration.two_classes import Platt
from .costs import Costs
from .several_classes import ExpectedLoss


@dataclass(frozen=True)
class TwoThresholds:
    """Negative if the score is below `lower`, positive if it is `upper` or more, else review.

    Attributes
    ----------
    lower, upper : float
        Equal: no review. Infinite: never positive (`upper`), always negative (both).
    suggestion : float
        From this score on, a reviewed case is suggested as positive.
    slope, intercept : float
        Of the calibration of the log-odds of the score; 1 and 0 for none.
    """

    lower: float
    upper: float
    suggestion: float
    slope: float = 1.0
    intercept: float = 0.0

    @staticmethod
    def line(found: Platt | None) -> tuple[float, float]:
        """Slope and intercept of a map."""
        if found is None:
            return 1.0, 0.0
        slope = found.slope / found.scale
        return slope, found.intercept - slope * found.centre

    def calibrated(self, scores: Floats) -> Floats:
        """Probability of the positive class."""
        found: Floats = expit(self.slope * log_odds(scores) + self.intercept)
        return found


@dataclass(frozen=True)
class LossLimit:
    """The cheapest class by calibrated probabilities, if its expected loss is not above `limit`.

    Attributes
    ----------
    limit : float
    temperature : float
    by_confidence : bool
        Whether the loss is one minus the confidence, whatever errors cost.
    """

    limit: float
    temperature: float
    by_confidence: bool = False

    def loss(self, costs: Costs, n_classes: int) -> ExpectedLoss:
        """Losses by these costs."""
        rule = "confidence" if self.by_confidence else "auto"
        return ExpectedLoss.of(costs, n_classes, self.temperature, rule)
