"""Policies that are read from files: checked in every part, since others may have written them."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isfinite, nan
from pathlib import Path
from typing import Any

from .._labels import listed
from .._names import shown
from .._parameters import require
from .._strict_json import strict_json
from .._typing import Interval
from ..measured import Measured
from .costs import Costs
from .decision_rules import LossLimit, TwoThresholds
from .guarantees import Guarantee
from .paired_costs import PairedCosts
from .policy import AGAINST, KIND, NUMBERS, VERSION, Policy
from .reviewers import Reviewers
from .settings import RULES, RiskLimits

#: A file of a policy is far below this many bytes.
_LARGEST = 16 * 2**20
_COSTS = ("error_cost", "review_cost", "capacity", "reviewer_error")
#: What null is at either end: thresholds may be infinite, of several classes losses, too.
_OF_BOTH = {"cost_interval": (nan, nan), "fragility_interval": (inf, inf)}
_OF_TWO = {**_OF_BOTH, "lower_interval": (inf, inf), "upper_interval": (inf, inf)}
_OF_SEVERAL = {**_OF_BOTH, "lower_interval": (-inf, inf), "upper_interval": (nan, nan)}


def load_policy(path: str | Path) -> Policy:
    """Read a policy from a file that `fragility cost --policy` wrote, or `Policy.to_json`."""
    try:
        with open(path, "rb") as stream:
            data = stream.read(_LARGEST + 1)
    except OSError as error:
        raise ValueError(f"The policy {path} cannot be read: {error.strerror}.") from None
    try:
        require(len(data) <= _LARGEST, f"it has more than {_LARGEST // 2**20} MiB")
        return read_policy(strict_json(data))
    except ValueError as error:
        reason = str(error).rstrip(".")
    raise ValueError(
        f"{path} is not a policy that can be used: {reason}. Make one with `fragility cost ... "
        "--policy policy.json`."
    )


def read_policy(content: Mapping[str, Any]) -> Policy:
    """The policy that `Policy.to_dict` wrote.

    Raises
    ------
    ValueError
        If it is not a policy, is damaged, or comes from another version.
    """
    require(isinstance(content, Mapping) and content.get("format") == KIND, "it is not a policy")
    version = content.get("version")
    require(version == VERSION, f"it has version {shown(version)}, this one reads {VERSION}")
    labels = _list(content, "classes")
    require(
        _are_classes(labels) and len(set(labels)) == len(labels) >= 2,
        "classes must be two different ones or more, all text, all booleans or all whole numbers",
    )
    of_two = len(labels) == 2
    positive = 1
    if of_two:
        given = content.get("positive")
        require(given in labels, f"positive must be one of {listed(labels)}; got {shown(given)}")
        positive = labels.index(given)
    columns = _list(content, "columns")
    fits = all(isinstance(name, str) for name in columns)
    require(fits and len(columns) in (0, 1, len(labels)), "columns must name those of the scores")
    found = _object(content, "decision")
    costs = _object(content, "costs")
    require(set(costs) == set(_COSTS), f"costs must have just {listed(_COSTS)}")
    error_cost = _error_cost(costs["error_cost"], len(labels))
    reviewer_error = _reviewer_error(costs["reviewer_error"], len(labels))
    numbers = {name: _number(content, name, nan) for name in NUMBERS}
    if content.get("fragility") is None:
        numbers["fragility"] = inf
    n_samples, within = content.get("n_samples"), content.get("within_capacity")
    require(type(n_samples) is int and n_samples > 0, "n_samples must be a number of cases")
    require(isinstance(within, bool), "within_capacity must be true or false")
    rule, criterion = content.get("rule"), content.get("criterion")
    require(rule in RULES, f"rule must be one of {listed(RULES)}; got {shown(rule)}")
    require(criterion in ("cost", "fragility"), f"criterion is {shown(criterion)}")
    confidence = _number(content, "confidence", nan)
    require(0.0 < confidence < 1.0, "confidence must lie between 0 and 1")
    answers = content.get("answers", False)
    require(isinstance(answers, bool), "answers must be true or false")
    decision = _two_thresholds(found) if of_two else _loss_limit(found)
    if answers:
        fits = of_two and positive == 1 and found.get("lower") == 0.0
        require(
            fits,
            "a policy of answers has two classes, the second of them positive, and a "
            "lower threshold of 0",
        )
    notes = _list(content, "notes")
    require(all(isinstance(note, str) for note in notes), "notes must be sentences")
    return Policy(
        decision=decision,
        labels=tuple(labels),
        positive=positive,
        costs=Costs(error_cost, costs["review_cost"], costs["capacity"], reviewer_error).checked(
            len(labels), None
        ),
        **numbers,  # type: ignore[arg-type]
        **_intervals(content, of_two),  # type: ignore[arg-type]
        guarantees=tuple(_guarantee(part) for part in _list(content, "guarantees")),
        rule=str(rule),
        criterion=str(criterion),
        n_samples=int(n_samples or 0),
        confidence=confidence,
        within_capacity=bool(within),
        notes=tuple(notes),
        columns=tuple(columns),
        answers=answers,
        reviewers=_reviewers(content["reviewers"], labels) if "reviewers" in content else None,
        **{name: _test(content, name) for name in AGAINST},  # type: ignore[arg-type]
    )


def _two_thresholds(found: Mapping[str, Any]) -> TwoThresholds:
    lower, upper, suggestion = (
        _number(found, name, inf) for name in ("lower", "upper", "suggestion")
    )
    slope, intercept = (_number(found, name, nan) for name in ("slope", "intercept"))
    ordered = 0.0 <= lower <= suggestion <= upper
    require(ordered, f"lower must be from 0 to upper; they are {lower:g} and {upper:g}")
    require(isfinite(slope + intercept), "slope and intercept must be numbers")
    return TwoThresholds(lower, upper, suggestion, slope, intercept)


def _loss_limit(found: Mapping[str, Any]) -> LossLimit:
    temperature = _number(found, "temperature", nan)
    require(temperature > 0.0, "temperature must be positive")
    by_confidence = found.get("by_confidence")
    require(isinstance(by_confidence, bool), "by_confidence must be true or false")
    return LossLimit(_number(found, "limit", inf), temperature, bool(by_confidence))


def _guarantee(part: Any) -> Guarantee:
    known = isinstance(part, dict) and set(part) == {"name", "limit", "level", "kept", "reason"}
    require(known, "a guarantee must have name, limit, level, kept and reason")
    names = {*RiskLimits.__dataclass_fields__} - {"level"}
    require(
        isinstance(part["name"], str) and part["name"] in names, "a guarantee has an unknown name"
    )
    require(
        isinstance(part["kept"], bool) and isinstance(part["reason"], str), "a guarantee is odd"
    )
    limit, level = _number(part, "limit", nan), _number(part, "level", nan)
    require(0.0 < limit < 1.0 and 0.0 < level < 1.0, "a guarantee has no share as its limit")
    return Guarantee(part["name"], limit, level, part["kept"], part["reason"])


def _list(content: Mapping[str, Any], name: str) -> list[Any]:
    found = content.get(name)
    require(isinstance(found, list), f"{name} must be a list")
    return list(found or [])


def _object(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = content.get(name)
    require(isinstance(found, dict), f"{name} must be an object")
    return dict(found or {})


def _number(content: Mapping[str, Any], name: str, absent: float) -> float:
    require(name in content, f"{name} is missing")
    value = content[name]
    if value is None:
        return absent
    require(_is_number(value), f"{name} must be a number or null; got {shown(value)}")
    return float(value)


def _is_number(value: Any) -> bool:
    """Whether it is a finite number, and no integer beyond all of these."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return isfinite(value)
    except OverflowError:
        return False


def _are_classes(labels: list[Any]) -> bool:
    if any(all(isinstance(label, kind) for label in labels) for kind in (str, bool)):
        return True
    return all(_is_number(label) and float(label).is_integer() for label in labels)


def _error_cost(given: Any, n_classes: int) -> Any:
    fits = _is_number(given) or _is_square(given, n_classes)
    require(fits, "error_cost must be a number or a matrix of the classes")
    return given


def _reviewer_error(given: Any, n_classes: int) -> Any:
    rates = given if isinstance(given, list) else []
    by_class = len(rates) == n_classes and all(map(_is_number, rates))
    fits = _is_number(given) or by_class or _is_square(given, n_classes)
    require(fits, "reviewer_error must be a number, or numbers or a matrix of the classes")
    return given


def _is_square(given: Any, n_classes: int) -> bool:
    """Whether it is a matrix of numbers, with a row and a column for each class."""
    rows = given if isinstance(given, list) else []
    return len(rows) == n_classes and all(
        isinstance(row, list) and len(row) == n_classes and all(map(_is_number, row))
        for row in rows
    )


def _reviewers(content: Any, labels: list[Any]) -> Reviewers:
    """Humans, model and policy compared, of `Reviewers.to_dict`."""
    require(isinstance(content, dict), "reviewers must be an object")
    human, model, policy = (
        _measured(_object(content, name)) for name in ("human", "model", "policy")
    )
    rates = _list(content, "error_rates")
    fits = len(rates) == len(labels) and all(isinstance(part, dict) for part in rates)
    require(fits, "error_rates must have an object for each class")
    confidence = _number(content, "confidence", nan)
    require(0.0 < confidence < 1.0, "the confidence of reviewers must lie between 0 and 1")
    against_human, against_model = (
        _test(content, name) for name in ("against_human", "against_model")
    )
    return Reviewers(
        human,
        model,
        policy,
        _measured(_object(content, "error_rate")),
        tuple(map(_measured, rates)),
        tuple(labels),
        confidence,
        against_human,
        against_model,
    )


def _measured(content: Mapping[str, Any]) -> Measured:
    ends = content.get("interval")
    interval = None if ends is None else _ends(content, "interval")
    error = content.get("standard_error")
    require(error is None or _is_number(error), "standard_error must be a number or null")
    return Measured(_number(content, "value", nan), interval, standard_error=error)


def _test(content: Mapping[str, Any], name: str) -> PairedCosts | None:
    if content.get(name) is None:
        return None
    content = _object(content, name)
    a, b, difference, p_value, effective = (
        _number(content, name, nan) for name in ("a", "b", "difference", "p_value", "effective")
    )
    too_few = content.get("too_few")
    require(isinstance(too_few, bool), "too_few must be true or false")
    interval = _ends(content, "interval")
    return PairedCosts(a, b, difference, interval, p_value, effective, bool(too_few))


def _ends(content: Mapping[str, Any], name: str) -> Interval:
    ends = _list(content, name)
    require(len(ends) == 2, f"{name} must have two ends")
    return Interval(*(_number({name: end}, name, nan) for end in ends))


def _intervals(content: Mapping[str, Any], of_two: bool) -> dict[str, Interval]:
    found = {}
    for name, absent in (_OF_TWO if of_two else _OF_SEVERAL).items():
        ends = _list(content, name)
        require(len(ends) == 2, f"{name} must have two ends")
        pairs = zip(ends, absent, strict=True)
        found[name] = Interval(*(_number({name: end}, name, null) for end, null in pairs))
    return found
