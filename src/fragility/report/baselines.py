"""Baselines: figures of a model with standard errors, which later models are held to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import isnan
from typing import Any, NoReturn

from scipy.special import stdtrit

from .._labels import listed
from .._names import shortened
from ..deferral.paired_costs import SHARED_THRESHOLDS
from ..measured import Measured
from ..tables.categories import same_names
from . import words
from .contrasts import AS_GIVEN, BASELINE, CALIBRATED, Contrast, group_name, unpaired_contrast
from .data import json_text, strict
from .limits import KINDS, WRONG, figure_of
from .parts import GroupFigures, ModelReport
from .report import Report

#: Figures with the part that is held: after calibration, or as given.
HELD = (
    ("cost", AS_GIVEN),
    (WRONG, AS_GIVEN),
    ("log_loss", AS_GIVEN),
    ("log_loss", CALIBRATED),
    ("fragility_index", CALIBRATED),
)
#: Figures of which there is no calibrated one.
_ONE_PART = ("cost", WRONG)
#: Figures that are held in each group.
HELD_IN_GROUPS = ("cost", "log_loss")
#: Two numbers of cases are very different if one is more than this many times the other.
_VERY_DIFFERENT = 3.0


@dataclass(frozen=True)
class BaselineModel:
    """Figures of one model, as it is, after calibration (or none), and by group.

    `groups` are by column and name; those too small are not there. `estimator` says how the cost
    was estimated.
    """

    raw: Mapping[str, Measured]
    calibrated: Mapping[str, Measured] | None
    groups: Mapping[tuple[str, str], Mapping[str, Measured]] = field(default_factory=dict)
    estimator: str | None = None

    @property
    def needs_no_map(self) -> bool:
        """Whether calibration leaves it as it is."""
        if self.calibrated is None:
            return False
        sides = self.calibrated["log_loss"], self.raw["log_loss"]
        first, second = ((side.value, side.standard_error) for side in sides)
        return first == second

    @classmethod
    def of(cls, model: ModelReport, report: Report) -> BaselineModel:
        """The figures of a model in a report."""
        raw, after = model.raw.figures, model.calibrated
        held = {
            name: figure
            for name, part in HELD
            if part == AS_GIVEN and (figure := figure_of(model, name)) is not None
        }
        if "cost" in held:
            held["cost"] = _with_error(held["cost"], report)
        return cls(
            held,
            None
            if after is None
            else {name: after.figures[name] for name, part in HELD if part == CALIBRATED},
            {
                (part.column, part.group): {
                    name: figure
                    for name in HELD_IN_GROUPS
                    if (figure := _in_group(part, name)) is not None
                }
                for part in report.groups
                if part.model == model.name and not part.too_small and part.figures
            },
            raw["cost"].estimator if "cost" in raw else None,
        )


def _in_group(part: GroupFigures, name: str) -> Measured | None:
    if name != "cost":
        return part.figures.get(name)
    return None if part.policy is None else _stretched(part.policy.cost)


def _with_error(cost: Measured, report: Report) -> Measured:
    """The cost with the standard error that its interval has."""
    if cost.interval is None or isnan(cost.interval.high):
        return cost
    quantile = float(stdtrit(max(report.n_samples - 1.0, 1.0), 0.5 + 0.5 * report.confidence))
    return _stretched(replace(cost, standard_error=(cost.interval.high - cost.value) / quantile))


def _stretched(cost: Measured) -> Measured:
    """Other cases choose other thresholds, which move the cost of many cases together."""
    error = cost.standard_error
    return replace(cost, standard_error=None if error is None else SHARED_THRESHOLDS * error)


@dataclass(frozen=True)
class Baseline:
    """What a model is held to on other cases.

    Attributes
    ----------
    models : mapping of str to BaselineModel
    classes : list
    positive : object
    weighted : bool
        Whether the cases had weights.
    costs : mapping, optional
        Costs of errors and reviews, as a report in JSON has them.
    n_samples : int
    answers : bool
        Whether the cases were answers, right or wrong.
    path : str
        File that it is from, for messages.
    """

    models: Mapping[str, BaselineModel]
    classes: list[Any]
    positive: Any
    weighted: bool
    costs: Mapping[str, Any] | None
    n_samples: int
    answers: bool = False
    path: str = ""

    @classmethod
    def of(cls, report: Report, *, without: str | None = None) -> Baseline:
        """The figures of a report, but for those of one model."""
        return cls(
            {
                model.name: BaselineModel.of(model, report)
                for model in report.models
                if model.name != without
            },
            strict(list(report.labels)),
            strict(report.positive),
            report.weighted,
            strict(report.to_dict()["costs"]),
            report.n_samples,
            report.answers,
        )

    def check_comparable(self, report: Report, models: list[ModelReport]) -> None:
        """Refuse a report with other classes, another positive class, other weights or costs."""
        if self.answers != report.answers:
            told = {False: "cases of classes", True: "answers, right or wrong"}
            self._refuse("what is measured", told[self.answers], told[report.answers])
        classes = strict(list(report.labels))
        if not same_names(self.classes, classes):
            self._refuse("the classes", *(_names(part) for part in (self.classes, classes)))
        positive = strict(report.positive)
        if positive is not None and not same_names([self.positive], [positive]):
            self._refuse("the positive class", _names([self.positive]), _names([positive]))
        if self.weighted != report.weighted:
            told = {False: "none", True: "given"}
            self._refuse("weights of the cases", told[self.weighted], told[report.weighted])
        costs = strict(report.to_dict()["costs"])
        if costs is None or self.costs is None:
            return
        for name, new in costs.items():
            if self.costs[name] != new:
                self._refuse(name, _short(self.costs[name]), _short(new))
        for model in models:
            # A cost that was chosen and measured in another way is another figure.
            here, there = model.raw.figures["cost"].estimator, self._old(model.name).estimator
            if here != there:
                self._refuse("the cost's estimator", _short(there), _short(here))

    def _old(self, name: str) -> BaselineModel:
        """Figures for a model: by its name, or of the only model."""
        if name in self.models:
            return self.models[name]
        if len(self.models) == 1:  # no need to agree on a name
            return next(iter(self.models.values()))
        raise ValueError(
            f"The baseline {self.path} has no model {words.shortened(name)!r}; it has "
            f"{listed(map(words.shortened, self.models))}."
        )

    def contrasts(
        self, report: Report, models: list[ModelReport], each_group: bool
    ) -> Iterator[Contrast]:
        """Each model beside the baseline, in all cases and, if asked for, in each group."""
        for model in models:
            old = self._old(model.name)
            new = BaselineModel.of(model, report)
            same = [side.needs_no_map for side in (new, old)]
            for figure, part in HELD:
                if all(same) and (figure, part) == ("log_loss", CALIBRATED):
                    continue  # the same test once more
                first, second = (
                    side.raw if part == AS_GIVEN else side.calibrated for side in (new, old)
                )
                if first is None or second is None or not (figure in first and figure in second):
                    continue
                named = model.name, figure, "" if figure in _ONE_PART else part
                yield unpaired_contrast(first[figure], second[figure], named, BASELINE)
            for place, figures in new.groups.items() if each_group else ():
                there = old.groups.get(place, {})
                for figure in (name for name in HELD_IN_GROUPS if name in there):
                    if figure in figures:
                        named = model.name, figure, "" if figure == "cost" else AS_GIVEN
                        own = figures[figure], there[figure]
                        yield unpaired_contrast(*own, named, BASELINE, group_name(*place))

    def not_held(
        self, report: Report, models: list[ModelReport], each_group: bool
    ) -> Iterator[str]:
        """Sentences on the parts of the baseline, or of the report, that are not compared."""
        if (report.costs is None) != (self.costs is None):
            why = "the baseline was made without --error-cost"
            if report.costs is None:
                why = "give the costs of the baseline, --error-cost"
            yield f"cost per case is not held: {why}."
        named = {model.name for model in models}
        if len(self.models) > 1:
            for name in self.models:
                if name not in named:
                    yield f"model {words.shortened(name)!r} of the baseline is not in the data."
        for model in models:
            old, title = self._old(model.name), KINDS["fragility_index"].title
            if (old.calibrated is None) or (model.calibrated is None):
                which = "the baseline" if old.calibrated is None else words.shortened(model.name)
                yield (
                    f"log-loss and {title} after calibration of {words.shortened(model.name)} are "
                    f"not held: {which} has no calibrated figures."
                )
            new = BaselineModel.of(model, report).groups if each_group else {}
            for place in [*new, *(old.groups if each_group else ())]:
                if place not in new or place not in old.groups:
                    where = "the baseline" if place not in old.groups else "the data"
                    yield f"{group_name(*place)} is not in {where}, or too small there."
        if isinstance(self.costs, Mapping) and isinstance(self.costs["error_cost"], str):
            yield "whether the costs by case are of the same column is not known."
        if isinstance(self.costs, Mapping) and isinstance(self.costs["reviewer_error"], str):
            yield "whether the reviewers are of the same column is not known."
        if self.weighted:
            yield "whether the weights are of the same column is not known."

    def warning(self, report: Report) -> str:
        """A warning if the baseline or the report has far more cases; empty if not."""
        counts = sorted((self.n_samples, report.n_samples))
        if counts[1] <= _VERY_DIFFERENT * counts[0]:
            return ""
        return (
            f"the baseline has {words.count(self.n_samples)} cases and this file "
            f"{words.count(report.n_samples)}; the figures of the smaller one are far less certain."
        )

    def _refuse(self, what: str, old: str, new: str) -> NoReturn:
        raise ValueError(
            f"The baseline {self.path} cannot be compared: {what} there: {old}, here: {new}. Make "
            "it anew with the same options."
        )


def _names(labels: list[Any]) -> str:
    """Labels for a message, long ones cut."""
    return listed([words.shortened(part) if isinstance(part, str) else part for part in labels])


def _short(value: Any) -> str:
    return "none" if value is None else str(shortened(json_text(value, None), 60))
