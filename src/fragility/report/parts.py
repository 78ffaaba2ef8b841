"""Parts of a report: plain values, whatever they were computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite, nan
from typing import TYPE_CHECKING, Any, Literal

from .._typing import Floats
from ..calibration.choice import CalibrationChoice
from ..figures.confidence import ConfidenceShares
from ..index.inference import PairedDifference
from ..measured import Estimator, Measured
from ..metrics.displays.error_curves import ErrorCurves
from ..scores.tally import DecisionCounts
from .evidence import Evidence
from .policy_cells import PolicyCells

if TYPE_CHECKING:  # policies are imported where one is made: without costs there is none
    from ..deferral.paired_costs import PairedCosts
    from ..deferral.policy import Policy

#: Calibration may make two models equal up to rounding: a smaller relative difference is none.
_ROUNDING = 1e-7


@dataclass(frozen=True)
class ConfidentCases:
    """The cases above the level of confidence: how many, how confident, how often right.

    `effective` is their number where all weigh the same, less where few outweigh the others;
    `n_wrong` is the number of confident mistakes. After calibration they are expected numbers.
    """

    n: float
    effective: float
    confidence: float
    right: float
    n_wrong: float


@dataclass(frozen=True)
class DrawnPair:
    """The errors that a report draws: of two classes, or of the most fragile pair of several.

    `pair` is (scored as, true), places in the labels; None for two classes.
    """

    pair: tuple[int, int] | None
    fragility: float
    curves: ErrorCurves


@dataclass(frozen=True)
class ModelFigures:
    """The figures of one model, as it is or after calibration.

    Attributes
    ----------
    figures : mapping of str to Measured
    pairs : ndarray of shape (C, C)
        Index of each pair of classes.
    n_infinite_pairs : int
    confident : ConfidentCases
    decisions : DecisionCounts
        Reviews and errors at each threshold of a grid that all models share, exact.
    histogram : ConfidenceShares
        Confidence of wrong and of right predictions.
    ranking : DrawnPair, optional
        Curves of the ranking errors; None if the index of every pair of classes is infinite.
    evidence : Evidence
        Calibration, operating points, net benefit, surest cases.
    """

    figures: Mapping[str, Measured]
    pairs: Floats
    n_infinite_pairs: int
    confident: ConfidentCases
    decisions: DecisionCounts
    histogram: ConfidenceShares
    ranking: DrawnPair | None
    evidence: Evidence

    def calibrated(self, estimator: Estimator) -> ModelFigures:
        """The same figures, marked as depending on fitted calibration maps."""
        figures, evidence = (
            {
                name: replace(figure, estimator=figure.estimator or estimator)
                for name, figure in found.items()
            }
            for found in (self.figures, self.evidence.figures)
        )
        own = replace(self.evidence, figures=evidence)
        return replace(self, figures=figures, evidence=own)


@dataclass(frozen=True)
class WorstCase:
    """A case that carries much of the risk.

    Attributes
    ----------
    row : int
        Row in the data: from 0 in arrays, from 1 in files.
    case : str
        Name that the user gave it.
    true, predicted : object
        Labels.
    score : float
        Two classes: of the positive class; several: of its own class.
    confidence : float
        Confidence in the predicted class.
    lift : float
        Its weight in the worst case over its share of the data.
    group : str, optional
        In all columns of groups.
    kind : {"miss", "false alarm", "mistake", ""}
        A positive predicted negative, a negative predicted positive, a wrong class of several;
        empty if the prediction is right.
    """

    row: int
    case: str
    true: Any
    predicted: Any
    score: float
    confidence: float
    lift: float
    group: str | None
    kind: str = ""


@dataclass(frozen=True)
class SharedMistake:
    """A case that every model gets confidently wrong: a wrong label, or a blind spot.

    `row` and `case` are those of `WorstCase`; `predicted` and `confidence` are by model.
    """

    row: int
    case: str
    true: Any
    predicted: Mapping[str, Any]
    confidence: Mapping[str, float]
    group: str | None


@dataclass(frozen=True)
class NewMistake:
    """A case that a model gets confidently wrong, and did not in previous predictions.

    Its label may have changed: `previously_true` is what it was then.
    """

    row: int
    case: str
    true: Any
    predicted: Any
    confidence: float
    previously_true: Any
    previously_predicted: Any
    previous_confidence: float


@dataclass(frozen=True)
class NewMistakes:
    """How the confident mistakes of a model have changed since previous predictions.

    `n_new` cases were not confidently wrong before, `n_mended` no longer are, and `n_unknown`
    confident mistakes are on cases that the previous predictions do not have. `cases` are the
    surest of the new ones.
    """

    model: str
    n_new: int
    n_mended: int
    n_unknown: int
    cases: tuple[NewMistake, ...]


@dataclass(frozen=True)
class GroupPolicy:
    """What a policy that was chosen on all cases does in one group.

    As in `Policy`, errors and costs are those of cases that did not choose: of policies that were
    chosen in the same way on other cases. Costs of all groups of a column average to that of the
    policy.

    Attributes
    ----------
    alone : Measured
        Share of the cases that the model decides alone.
    error_rate, error_share : Measured
        Its errors, as a share of those, and of all cases of the group.
    cost : Measured
        Mean cost of a case.
    """

    alone: Measured
    error_rate: Measured
    error_share: Measured
    cost: Measured


@dataclass(frozen=True)
class GroupFigures:
    """One model in one group of cases.

    All intervals are simultaneous: with the confidence of the report those of one figure hold in
    all groups together.

    Attributes
    ----------
    model, column, group : str
    support : tuple of int
        Cases of each class.
    base_rate : Measured, optional
        Share of the positive class of two.
    figures : mapping of str to Measured
        Empty, with the `reason`, where the group has one class.
    policy : GroupPolicy, optional
    too_small : bool
        Whether any class has too few cases to compare the group with others.
    reason : str
    in_all : float
        Index of all cases between the classes that the group has.
    lacks_classes : bool
        Whether it lacks any.
    """

    model: str
    column: str
    group: str
    support: tuple[int, ...]
    base_rate: Measured | None
    figures: Mapping[str, Measured]
    policy: GroupPolicy | None
    too_small: bool
    reason: str
    in_all: float = nan
    lacks_classes: bool = False

    @property
    def n(self) -> int:
        """Cases of positive weight."""
        return sum(self.support)

    @property
    def index(self) -> Measured | None:
        """Fragility Index."""
        return self.figures.get("fragility_index")


@dataclass(frozen=True)
class AnswerCounts:
    """Answers of one model: numbers of right and wrong ones, and of cases that it declined.

    `declined_weight` is their weight, and `declined_share` its share of the weight of all cases.
    """

    right: int
    wrong: int
    declined: int
    declined_weight: float
    declined_share: float

    @property
    def n_cases(self) -> int:
        """All cases, declined ones among them."""
        return self.right + self.wrong + self.declined


@dataclass(frozen=True)
class ModelReport:
    """One model: as it is, after calibration (or why not), its worst cases, and its policy.

    `confusion` are the cases by true class and by what the policy decides, in the order of the
    labels, then reviews: sums of weights, of cases that did not choose the policy. A policy that is
    chosen anew in every fold may decide a case in parts.
    `calibration` is the map by which it was calibrated, and how others would have done.
    `cells` are the cases by what any policy does with them, for the page.
    `answers` says how many answers there are, where cases are answers.
    `dearest_share` is the share of the cost that the dearest case makes, where costs differ by
    case.
    """

    name: str
    raw: ModelFigures
    calibrated: ModelFigures | None
    why_not_calibrated: str
    worst: tuple[WorstCase, ...]
    cells: PolicyCells
    policy: Policy | None = None
    confusion: Floats | None = None
    calibration: CalibrationChoice | None = None
    answers: AnswerCounts | None = None
    dearest_share: float | None = None


@dataclass(frozen=True)
class PairedFigures:
    """Differences of two models on the same cases.

    Attributes
    ----------
    tests : mapping of str to PairedDifference
        By figure.
    adjusted : mapping of str to float
        P-values that allow for the number of tests (Holm).
    n_tests : mapping of str to int
        That number: of the index its tests of all pairs of models, before and after calibration;
        of the other figures all of their tests.
    """

    tests: Mapping[str, PairedDifference]
    adjusted: Mapping[str, float]
    n_tests: Mapping[str, int]

    @property
    def index(self) -> PairedDifference:
        """Test of the Fragility Index."""
        return self.tests["fragility_index"]

    @property
    def ratio(self) -> PairedDifference:
        """Test of the ratio."""
        return self.tests["ratio"]

    @property
    def p_value(self) -> float:
        """P-value of the Fragility Index, adjusted."""
        return self.adjusted["fragility_index"]

    @property
    def is_rounding(self) -> bool:
        """Whether the models are equal but for rounding; infinite indices tell nothing."""
        both = self.index.a + self.index.b
        return isfinite(both) and abs(self.index.difference) <= _ROUNDING * both


@dataclass(frozen=True)
class CostTest:
    """What one model costs more than another; `p_value` allows for the number of tests."""

    test: PairedCosts
    p_value: float
    n_tests: int


@dataclass(frozen=True)
class Comparison:
    """Two models on the same cases, as they are and after calibration, and what they cost."""

    a: str
    b: str
    raw: PairedFigures
    calibrated: PairedFigures | None
    cost: CostTest | None = None


#: How much a finding matters; `fragility.report.findings.registry` says what each means.
Severity = Literal["high", "medium", "low", "info"]


@dataclass(frozen=True)
class GroupComparison:
    """Two models in one group of cases: what the first has more than the second.

    All intervals are simultaneous: with the confidence of the report those of two models and one
    figure hold in all groups together (Bonferroni). They and the p-values allow for one more case
    that is as far as the farthest (of costs, in any group): few cases may lack a rare one that is
    very bad.

    Attributes
    ----------
    a, b, column, group : str
    n : int
        Cases of positive weight, those that a model declined to answer among them.
    too_small : bool
        Whether any class has too few cases to compare the group, as in `GroupFigures`.
    log_loss : PairedDifference, optional
        Of the mean log-loss, as given; None where a model has no case.
    calibrated_log_loss : PairedDifference, optional
        The same after calibration; None if the report has none.
    cost : PairedCosts, optional
        Of the mean cost of a case, each at its own policy, if there are costs.
    adjusted : mapping of str to float
        P-values of these by name, each figure's allowing for its tests of all groups and all pairs
        of models (Holm).
    """

    a: str
    b: str
    column: str
    group: str
    n: int
    too_small: bool
    log_loss: PairedDifference | None
    calibrated_log_loss: PairedDifference | None
    cost: PairedCosts | None
    adjusted: Mapping[str, float]


@dataclass(frozen=True)
class Built:
    """What a builder adds to a report."""

    models: tuple[ModelReport, ...]
    comparisons: tuple[Comparison, ...]
    groups: tuple[GroupFigures, ...]
    group_comparisons: tuple[GroupComparison, ...]
    shared_mistakes: tuple[SharedMistake, ...]
    n_shared_mistakes: int | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """What the figures say, in a sentence.

    Attributes
    ----------
    code : str
        Such as "FRA012": under it the sentence can be muted, and docs/findings.md explains it.
    rule : str
        Name of the rule.
    severity : {"high", "medium", "low", "info"}
    text : str
    models : tuple of str
        The models that it is about.
    """

    code: str
    rule: str
    severity: Severity
    text: str
    models: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.text} [{self.code}]"
