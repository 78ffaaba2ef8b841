"""Findings about models on the same cases: whose tail is lighter, and what cases cannot tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import isnan
from typing import TYPE_CHECKING

from scipy.special import ndtri

from ..._typing import Interval
from ...index.inference import PairedDifference
from .. import words
from ..parts import Comparison, PairedFigures
from ..words import shortened as short
from .basis import Sentences, corrected, joined

if TYPE_CHECKING:
    from ..report import Report

#: A smaller difference of AUCs is not a reason to choose a model,
_EQUAL_AUC = 0.005
#: nor is a smaller share of the pairs that the better model ranks wrongly.
_EQUAL_SHARE = 0.1
#: Models that differ in scale alone may differ by this share after calibration: by their maps.
_LEAST = 0.02
#: A model is only less sure if calibration leaves less than this share of its lead,
_LEFT = 0.5
#: and less than this share of the other model's index, which would be a lighter tail.
_SAME_TAIL = 0.05
#: Differences are told of so many pairs; of more, who differs.
_DETAILED = 3

#: The test of two models that a sentence is about.
_Test = Callable[[Comparison], PairedDifference]


def lighter_tail(report: Report) -> Sentences:
    """Whose tail is lighter after calibration, beyond chance."""
    pairs = _in_order(
        (pair for pair in report.comparisons if tails_differ(pair, report)),
        lambda pair: _last(pair).index,
    )
    if not pairs:
        return
    equal = all(_equally_calibrated(pair, report) for pair in pairs)

    def detail(pair: Comparison) -> str:
        test = _last(pair).index
        return f"{_indices(test)}, {_change(test, report)}{'' if equal else _errors_left(pair)}"

    lead = "At equal calibration" if equal else "After calibration"
    yield f"{lead} {_grouped(pairs, 'has a lighter tail', detail)}.", _names(pairs)


def tails_differ(pair: Comparison, report: Report) -> bool:
    """Whether two tails differ after calibration, beyond chance and beyond what maps may do."""
    test = pair.calibrated
    if test is None or not _certain(test, report):
        return False
    return abs(test.index.difference) >= _LEAST * max(test.index.a, test.index.b)


def _tell_apart(pair: Comparison, report: Report) -> bool:
    """Whether tails differ after calibration, or before it if there is none after."""
    return _certain(pair.raw, report) if pair.calibrated is None else tails_differ(pair, report)


def less_sure(report: Report) -> Sentences:
    """Models that are less sure of everything: a lower index that calibration takes away."""
    pairs = _in_order(
        (pair for pair in report.comparisons if _is_less_sure(pair, report)),
        lambda pair: pair.raw.index,
    )
    if not pairs:
        return

    def detail(pair: Comparison) -> str:
        left = "nothing of that"
        if not _last(pair).is_rounding:
            left = _change(_last(pair).index, report)
        return f"{_indices(pair.raw.index)} before calibration; after it {left}"

    what = "is less sure of everything, not safer,"
    yield f"{_grouped(pairs, what, detail)}.", _names(pairs)


def _is_less_sure(pair: Comparison, report: Report) -> bool:
    """Whether one model has smaller scores and, for that reason alone, a lower index.

    Its index is certainly lower and its scores are closer together before calibration. After it
    its tail is not lighter beyond chance, and an interval, widened for the number of pairs
    (Bonferroni), leaves less than half of its lead and less than a twentieth of the other's index.
    """
    if pair.calibrated is None or not _certain(pair.raw, report):
        return False
    (lower,) = _in_order([pair], lambda pair: pair.raw.index)
    index, ratio, after = lower.raw.index, lower.raw.ratio, _last(lower)
    # The index over the ratio is the separation of the classes.
    if not index.a / ratio.a < index.b / ratio.b:
        return False
    if tails_differ(pair, report) and after.index.difference < 0.0:
        return False
    if after.is_rounding:
        return True
    tail = 0.5 * (1.0 - report.confidence)
    widened = float(ndtri(tail / len(report.comparisons)) / ndtri(tail))
    most_left = -after.index.difference + widened * 0.5 * _width(after.index.interval)
    return most_left < min(-_LEFT * index.difference, _SAME_TAIL * after.index.b)


def same_auc(report: Report) -> Sentences:
    """Models that AUC cannot tell apart although their tails differ."""
    figures = {model.name: model.raw.figures["auc"] for model in report.models}

    def nearly_equal(pair: Comparison) -> bool:
        a, b = figures[pair.a], figures[pair.b]
        (low, high), (other_low, other_high) = (auc.bounds or (auc.value,) * 2 for auc in (a, b))
        gap = max(high - other_low, other_high - low)  # the most that the bounds allow
        return gap < _EQUAL_AUC and gap <= _EQUAL_SHARE * (1.0 - max(a.value, b.value))

    pairs = _in_order(
        (p for p in report.comparisons if nearly_equal(p) and _tell_apart(p, report)),
        lambda pair: _last(pair).index,
    )
    if pairs:
        told = [
            f"{short(pair.a)} ({words.number(figures[pair.a].value)}) from {short(pair.b)} "
            f"({words.number(figures[pair.b].value)})"
            for pair in pairs
        ]
        yield f"AUC hardly tells {joined(told)}, although their tails differ.", _names(pairs)


def cannot_tell(report: Report) -> Sentences:
    """Models whose tails these cases do not tell apart, all in one sentence."""
    pairs = _in_order(
        (pair for pair in report.comparisons if _is_open(pair, report)),
        lambda pair: _last(pair).index,
    )
    if not pairs:
        return
    calibrated = all(pair.calibrated is not None for pair in pairs)
    equal = calibrated and all(_equally_calibrated(pair, report) for pair in pairs)
    when = ", at equal calibration" if equal else ", after calibration" if calibrated else ""

    def detail(pair: Comparison) -> str:
        test = _last(pair)
        if test.is_rounding:
            return "equal but for rounding"
        own, n_tests = test.index, test.n_tests["fragility_index"]
        told = _change(own, report)
        if _certain(test, report):
            told += f", less than the {100 * _LEAST:g} % that maps may make"
        else:
            told += corrected(own.interval, own.p_value, test.p_value, n_tests)
        if calibrated and not equal:
            told += _errors_left(pair)
        if calibrated and _certain(pair.raw, report):
            lighter = pair.a if pair.raw.index.difference < 0.0 else pair.b
            told += f"; before calibration {short(lighter)} has the lighter one"
        return told

    named = _names(pairs)
    told = f"tails apart{when}: {_grouped(pairs, '', detail, 'from')}"
    if 2 * len(pairs) == len(named) * (len(named) - 1):  # none of them from any other
        most = min(pairs, key=lambda pair: (_last(pair).index.difference, pair.a, pair.b))
        told = f"the tails of {joined([short(name) for name in named])} apart{when} "
        differ = f"{short(most.a)} and {short(most.b)} differ most: " if len(pairs) > 1 else ""
        told += f"({differ}{detail(most)})"
    yield f"{words.count(report.n_samples)} cases cannot tell {told}.", named


def _is_open(pair: Comparison, report: Report) -> bool:
    """Whether neither a difference of two tails is certain nor that there is nearly none."""
    known = _tell_apart(pair, report) or _is_less_sure(pair, report)
    return not (known or isnan(_last(pair).p_value))


def more_right_answers(report: Report) -> Sentences:
    """Answers of which one model gets more right, beyond chance."""
    pairs = _in_order(
        (
            pair
            for pair in (report.comparisons if report.answers else ())
            if pair.raw.adjusted["accuracy"] < 1.0 - report.confidence
        ),
        lambda pair: pair.raw.tests["accuracy"],
        sign=-1.0,
    )
    if not pairs:
        return
    declined = any(model.answers is not None and model.answers.declined for model in report.models)
    given = " of the answers given" if declined else ""

    def detail(pair: Comparison) -> str:
        test = pair.raw.tests["accuracy"]
        rates = f"{words.percent(test.a)} against {words.percent(test.b)}{given}"
        return f"{rates}, {_change(test, report)}"

    yield f"{_grouped(pairs, 'is right more often', detail)}.", _names(pairs)


def _in_order(pairs: Iterable[Comparison], test_of: _Test, sign: float = 1.0) -> list[Comparison]:
    """Pairs with the model of the lower figure first (sign -1: higher), equal ones by name.

    So no sentence depends on the order in which the models were given.
    """

    def key(pair: Comparison) -> tuple[float, str, float, str]:
        test = test_of(pair)
        return sign * test.a, pair.a, sign * test.b, pair.b

    return sorted((min(pair, _turned(pair), key=key) for pair in pairs), key=key)


def _turned(pair: Comparison) -> Comparison:
    """The same two models, the second first; without their costs."""

    def test(found: PairedDifference) -> PairedDifference:
        low, high = found.interval
        return replace(
            found,
            a=found.b,
            b=found.a,
            difference=0.0 - found.difference,
            interval=Interval(0.0 - high, 0.0 - low),
        )

    def tests(found: PairedFigures) -> PairedFigures:
        return replace(found, tests={name: test(part) for name, part in found.tests.items()})

    after = pair.calibrated
    return Comparison(pair.b, pair.a, tests(pair.raw), None if after is None else tests(after))


def _grouped(
    pairs: Sequence[Comparison],
    is_what: str,
    detail: Callable[[Comparison], str],
    than: str = "than",
) -> str:
    """Every pair in one sentence: a is less than b (…) and c (…); b than c (…).

    Many pairs are told without details.
    """
    told: dict[str, list[str]] = {}
    for pair in pairs:
        details = f" ({detail(pair)})" if len(pairs) <= _DETAILED else ""
        told.setdefault(pair.a, []).append(f"{short(pair.b)}{details}")
    leads = [is_what and f"{is_what} ", *[""] * len(told)]
    return "; ".join(
        f"{short(name)} {lead}{than} {joined(others)}"
        for lead, (name, others) in zip(leads, told.items(), strict=False)
    )


def _names(pairs: Sequence[Comparison]) -> list[str]:
    return list(dict.fromkeys(name for pair in pairs for name in (pair.a, pair.b)))


def _last(pair: Comparison) -> PairedFigures:
    """The test after calibration, or that before if there is none."""
    return pair.raw if pair.calibrated is None else pair.calibrated


def _certain(test: PairedFigures, report: Report) -> bool:
    """Whether a difference is neither chance nor rounding."""
    return test.p_value < 1.0 - report.confidence and not test.is_rounding


def _equally_calibrated(pair: Comparison, report: Report) -> bool:
    """Whether the calibration errors that are left do not clearly differ."""
    return not _last(pair).tests["calibration_error"].p_value < 1.0 - report.confidence


def _errors_left(pair: Comparison) -> str:
    left = _last(pair).tests["calibration_error"]
    return f"; calibration errors {words.number(left.a)} and {words.number(left.b)}"


def _indices(test: PairedDifference) -> str:
    return f"Fragility Index {words.number(test.a)} against {words.number(test.b)}"


def _change(test: PairedDifference, report: Report) -> str:
    """Difference and interval in words."""
    decimals = words.decimals_for(test.interval)
    change, low, high = (
        words.signed(value, decimals) for value in (test.difference, *test.interval)
    )
    return f"difference {change}, {words.level(report.confidence)} {low} to {high}"


def _width(interval: Interval) -> float:
    return interval.high - interval.low
