"""Baselines: reports in JSON that later models are compared with, and how they are read."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isinf, log
from typing import Any, NoReturn

from .._labels import listed
from .._names import shortened
from .._parameters import require
from ..deferral import Costs
from ..measured import FIGURES, LEAST_PROBABILITY
from ..tables.categories import same_names
from . import words
from .data import FORMAT, strict
from .report import Report

#: Figures that gates check. The index falls when scores shrink; the others do not.
HELD = ("fragility_index", "ratio", "log_loss", "auc", "cost")
#: Figures that every baseline has; costs may not have been given.
_NEEDED = HELD[:-1]
#: Figures that are infinite for a model which does not separate the classes.
_MAY_BE_INFINITE = ("fragility_index", "ratio")
#: Settings of costs that a report has, and types of labels.
_SETTINGS = set(Costs.__dataclass_fields__)
_LABELS = (str, int, float)
#: Log-loss counts a probability of 0 as a small one: no model exceeds this.
LARGEST_LOG_LOSS = -log(LEAST_PROBABILITY)
#: A report of many models, groups and worst cases is far below this many bytes.
_LARGEST = 64 * 2**20
#: Two numbers of cases are very different if one is more than this many times the other.
_VERY_DIFFERENT = 3.0


@dataclass(frozen=True)
class Baseline:
    """Content of a baseline file.

    Attributes
    ----------
    path : str
    figures : mapping of str to mapping of str to float
        Figures by model: the worse end of the bounds where a figure is known between two.
    classes : list
    positive : object
    weighted : bool
        Whether the cases had weights.
    costs : mapping, optional
        Costs of errors and reviews, as a report in JSON has them.
    estimators : mapping of str to object
        How the cost of each model was estimated.
    n_samples : int
    answers : bool
        Whether the cases were answers, right or wrong.
    """

    path: str
    figures: Mapping[str, Mapping[str, float]]
    classes: list[Any]
    positive: Any
    weighted: bool
    costs: Mapping[str, Any] | None
    estimators: Mapping[str, Any]
    n_samples: int
    answers: bool = False

    def check_comparable(self, report: Report) -> None:
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
        if costs is not None and self.costs is not None:
            for name, new in costs.items():
                if self.costs[name] != new:
                    self._refuse(name, _short(self.costs[name]), _short(new))
            for model in report.models:
                # A cost that was chosen and measured in another way is another figure.
                new = model.raw.figures["cost"].estimator
                old = self.estimators[self._own_name(model.name, report)]
                if old != new:
                    remedy = (
                        "with this version of fragility evaluate --json, or leave the costs out"
                    )
                    self._refuse("the cost's estimator", _short(old), _short(new), remedy)

    def of_model(self, name: str, report: Report) -> Mapping[str, float]:
        """Figures of the baseline for a model: by its name, or of the only model."""
        return self.figures[self._own_name(name, report)]

    def _own_name(self, name: str, report: Report) -> str:
        if name in self.figures:
            return name
        if len(self.figures) == len(report.models) == 1:  # no need to agree on a name
            return next(iter(self.figures))
        raise ValueError(
            f"The baseline {self.path} has no model {words.shortened(name)!r}; it has "
            f"{listed(map(words.shortened, self.figures))}."
        )

    def not_held(self, report: Report) -> list[str]:
        """Sentences on the parts of the baseline, or of the report, that are not compared."""
        sentences = []
        if (report.costs is None) != (self.costs is None):
            why = "the baseline was made without --error-cost"
            if report.costs is None:
                why = "give the costs of the baseline, --error-cost"
            sentences.append(f"cost per case is not held: {why}.")
        named = {model.name for model in report.models}
        if len(self.figures) > 1 or len(named) > 1:
            sentences += [
                f"model {words.shortened(name)!r} of the baseline is not in the data."
                for name in self.figures
                if name not in named
            ]
        for name, figures in self.figures.items():
            endless = [f for f, value in figures.items() if not can_fail(f, value)]
            if endless:
                titles = " and ".join(f"{FIGURES[f].title} of {figures[f]:.4g}" for f in endless)
                model = words.shortened(name)
                sentences.append(f"{titles} in the baseline of {model}: no model does worse.")
        if isinstance(self.costs, Mapping) and isinstance(self.costs["error_cost"], str):
            sentences.append("whether the costs by case are of the same column is not known.")
        if self.weighted:
            sentences.append("whether the weights are of the same column is not known.")
        return sentences

    def warning(self, report: Report) -> str:
        """A warning if the baseline or the report has far more cases; empty if not."""
        counts = sorted((self.n_samples, report.n_samples))
        if counts[1] <= _VERY_DIFFERENT * counts[0]:
            return ""
        return (
            f"the baseline has {words.count(self.n_samples)} cases and this file "
            f"{words.count(report.n_samples)}; the figures of the smaller one are far less certain."
        )

    def _refuse(
        self, what: str, old: str, new: str, remedy: str = "with the same options"
    ) -> NoReturn:
        raise ValueError(
            f"The baseline {self.path} cannot be compared: {what} there: {old}, here: {new}. Make "
            f"it anew {remedy}."
        )


def can_fail(figure: str, value: float) -> bool:
    """Whether some model is worse than this value of a figure."""
    if figure == "log_loss":
        return value < LARGEST_LOG_LOSS
    return value > 0.0 if figure == "auc" else not isinf(value)


def read_baseline(path: str) -> Baseline:
    """Read a report in JSON, as `fragility evaluate --json` prints it."""
    try:
        with open(path, "rb") as stream:
            data = stream.read(_LARGEST + 1)
        require(len(data) <= _LARGEST, f"it has more than {_LARGEST // 2**20} MiB")
        content = json.loads(
            data.decode("utf-8-sig"),
            object_pairs_hook=_without_repeats,
            parse_constant=_not_strict,
            parse_int=_integer,
        )
        return _baseline(path, content)
    except OSError as error:
        raise ValueError(f"The baseline {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ValueError(f"The baseline {path} cannot be read: it is not UTF-8 text.") from None
    except json.JSONDecodeError:
        reason = "it is not JSON"
    except RecursionError:
        reason = "it is nested too deeply"
    except ValueError as error:
        reason = str(error)
    raise ValueError(
        f"{path} is not a baseline: {shortened(reason, 200)}. Make one with `fragility evaluate "
        "... --json > baseline.json`."
    )


def _baseline(path: str, content: Any) -> Baseline:
    numbered = isinstance(content, dict) and type(content.get("format")) is int
    require(numbered, "it has no format, as a report in JSON does")
    read = content["format"]
    # The figures that gates hold are the same in the format before.
    require(read in (FORMAT - 1, FORMAT), f"it has format {read}, this version reads {FORMAT}")
    costs, n = content.get("costs"), content.get("n_samples")
    require(type(n) is int and 1 <= n < 2**63, "n_samples must be a number of cases")
    known = costs is None or (isinstance(costs, dict) and set(costs) == _SETTINGS)
    require(known, f"costs must be null, or have just {listed(sorted(_SETTINGS))}")
    models = _listed_parts(content, "models")
    names = [model.get("name") for model in models]
    require(all(isinstance(name, str) for name in names), "a model has no name")
    different = names and len(set(names)) == len(names)
    require(different, "it must hold models, each with a name of its own")
    needed = _NEEDED if costs is None else HELD
    figures: dict[str, dict[str, float]] = {}
    estimators: dict[str, Any] = {}
    for name, model in zip(names, models, strict=True):
        raw = model.get("raw")
        held: Any = raw.get("figures") if isinstance(raw, dict) else None
        require(isinstance(held, dict), f"model {words.shortened(name)!r} has no figures")
        try:
            figures[str(name)] = {figure: _held(figure, held.get(figure)) for figure in needed}
        except ValueError as error:
            raise ValueError(f"of model {words.shortened(name)!r} {error}") from None
        estimators[str(name)] = held["cost"].get("estimator") if costs is not None else None
    classes = [part.get("label") for part in _listed_parts(content, "classes")]
    several = len(classes) >= 2 and all(isinstance(c, _LABELS) for c in classes)
    require(several, "classes must hold two labels or more")
    positive, weighted = content.get("positive"), content.get("weighted")
    fits = isinstance(positive, _LABELS) == (len(classes) == 2)
    require(fits, "positive must be one of two classes, or null for several")
    require(isinstance(weighted, bool), "weighted must be true or false")
    answers = any(model.get("answers") is not None for model in models)
    return Baseline(path, figures, classes, positive, weighted, costs, estimators, n, answers)


def _listed_parts(content: dict[str, Any], name: str) -> list[dict[str, Any]]:
    parts: Any = content.get(name)
    fits = isinstance(parts, list) and all(isinstance(part, dict) for part in parts)
    require(fits, f"{name} must be a list of objects")
    return list(parts)


def _held(name: str, figure: Any) -> float:
    """Value of a figure; the worse of its bounds, if it is known between two."""
    title = FIGURES[name].title
    require(isinstance(figure, dict), f"{title} is missing ({name})")
    bounds = figure.get("bounds")
    if bounds is None:
        return _number(name, figure.get("value"))
    paired = isinstance(bounds, list) and len(bounds) == 2
    require(paired, f"the bounds of {title} must be two numbers")
    low, high = (_number(name, bound) for bound in bounds)
    require(low <= high, f"the bounds of {title} are in the wrong order")
    return high if FIGURES[name].better == "lower" else low


def _number(name: str, value: Any) -> float:
    """The value as a float, if the figure can have it."""
    title = FIGURES[name].title
    given = inf if value == "Infinity" else value
    fits = isinstance(given, (int, float)) and not isinstance(given, bool)
    require(fits, f"{title} must be a number, not {shortened(json.dumps(value), 40)}")
    try:
        number = float(given)
    except OverflowError:
        raise ValueError(f"{title} is a whole number beyond any float") from None
    largest = inf if name in _MAY_BE_INFINITE else 1.0 if name == "auc" else sys.float_info.max
    require(0.0 <= number <= largest, f"{title} cannot be {value!r}")
    return number


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        require(name not in found, f"the key {words.shortened(name)!r} is there twice")
        found[name] = value
    return found


def _integer(digits: str) -> int:
    # Python itself refuses to read longer ones.
    require(len(digits) <= 4000, f"a number in it has {len(digits):,} digits")
    return int(digits)


def _not_strict(name: str) -> Any:
    raise ValueError(f"{name} is not a number in strict JSON")


def _names(labels: list[Any]) -> str:
    """Labels for a message, long ones cut."""
    return listed([words.shortened(part) if isinstance(part, str) else part for part in labels])


def _short(value: Any) -> str:
    return "none" if value is None else str(shortened(json.dumps(value), 60))
