"""How a policy is chosen: by which costs, and which errors are limited."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from .._parameters import check_choice, check_confidence, check_number, check_share

Rule = Literal["auto", "tuned", "expected_cost", "confidence"]
RULES: tuple[Rule, ...] = ("auto", "tuned", "expected_cost", "confidence")
Criterion = Literal["cost", "fragility"]
#: Parameters of `fragility.best_policy` that `PolicySettings` is made from.
POLICY_PARAMETERS = (
    *("max_error_share", "max_error_rate", "max_misses", "max_false_alarms", "guarantee"),
    *("rule", "criterion", "slack"),
)
#: Level at which a limit is kept if none is said.
LEVEL = 0.95
#: What each limit is of.
LIMIT_WORDS = {
    "max_error_share": "errors of the model, of all cases",
    "max_error_rate": "errors, of the cases decided alone",
    "max_misses": "positives decided negative, of all positives",
    "max_false_alarms": "negatives decided positive, of all negatives",
}


@dataclass(frozen=True)
class RiskLimits:
    """Largest shares of errors, each kept with probability `level` altogether; None for no limit.

    Attributes
    ----------
    max_error_share : float, optional
        Errors that nobody looked at, as a share of all cases.
    max_error_rate : float, optional
        The same as a share of the cases that the model decides alone.
    max_misses, max_false_alarms : float, optional
        Positives that are decided negative, as a share of the positives; negatives that are decided
        positive, as a share of the negatives. Two classes only.
    level : float, optional
        Probability with which all limits hold together, 0.95 by default.
    """

    max_error_share: float | None = None
    max_error_rate: float | None = None
    max_misses: float | None = None
    max_false_alarms: float | None = None
    level: float | None = None

    @property
    def given(self) -> dict[str, float]:
        """The limits that are given, by name."""
        found = {name: getattr(self, name) for name in LIMIT_WORDS}
        return {name: limit for name, limit in found.items() if limit is not None}

    @property
    def delta(self) -> float:
        """Probability with which each limit may be broken: they share it."""
        return (1.0 - (LEVEL if self.level is None else self.level)) / max(len(self.given), 1)

    def checked(self, n_classes: int, *, answers: bool = False) -> RiskLimits:
        """The same as numbers; refuses limits that say nothing or cannot be kept."""
        if not self.given:
            if self.level is not None:
                raise ValueError(
                    f"guarantee={self.level!r} has no limit to guarantee; give max_error_share, "
                    "max_error_rate, max_misses or max_false_alarms."
                )
            return self
        level = check_confidence(LEVEL if self.level is None else self.level, "guarantee")
        limits = {}
        for name, given in self.given.items():
            limit = check_number(given, name)
            if not 0.0 < limit < 1.0:
                raise ValueError(
                    f"{name} must be a share above 0 and below 1; got {given!r}. No number of "
                    "cases proves that there are no errors, and every policy has a share below 1."
                )
            if (n_classes > 2 or answers) and name in ("max_misses", "max_false_alarms"):
                asked = f"of {n_classes}"
                if answers:
                    asked = "answers are right or wrong, and none is decided to be wrong; there"
                raise ValueError(
                    f"{name} is for two classes; {asked} use max_error_share or max_error_rate."
                )
            limits[name] = limit
        return RiskLimits(**limits, level=level)


@dataclass(frozen=True)
class PolicySettings:
    """How a policy is chosen.

    Attributes
    ----------
    rule : {"auto", "tuned", "expected_cost", "confidence"}, default="auto"
        By which costs: observed ones ("tuned"), expected ones by calibrated probabilities
        ("expected_cost"), or both ("auto"). "confidence" has one threshold of the confidence.
    criterion : {"cost", "fragility"}, default="cost"
        The cheapest policy, or the least fragile of those that cost little more.
    slack : float, default=0.1
        How much more, as a share of what full review costs beyond the cheapest policy.
    limits : RiskLimits
        Errors that are limited in the population.
    """

    rule: Rule = "auto"
    criterion: Criterion = "cost"
    slack: float = 0.1
    limits: RiskLimits = field(default_factory=RiskLimits)

    @classmethod
    def of(
        cls,
        *,
        rule: Any = "auto",
        criterion: Any = "cost",
        slack: float = 0.1,
        guarantee: float | None = None,
        **limits: float | None,
    ) -> PolicySettings:
        """Settings from the parameters of `fragility.best_policy`."""
        return cls(rule, criterion, slack, RiskLimits(**limits, level=guarantee))

    def checked(self, n_classes: int, *, answers: bool = False) -> PolicySettings:
        """The same, if they make sense for so many classes, or for answers."""
        check_choice(self.rule, RULES, "rule")
        check_choice(self.criterion, ("cost", "fragility"), "criterion")
        slack = check_share(self.slack, "slack")
        limits = self.limits.checked(n_classes, answers=answers)
        if self.rule == "confidence" and (limits.given or self.criterion == "fragility"):
            raise ValueError(
                'rule="confidence" is the plain threshold of the confidence, for comparison: it '
                "takes neither limits nor the criterion 'fragility'."
            )
        return PolicySettings(self.rule, self.criterion, slack, limits)
