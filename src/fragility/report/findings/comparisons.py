"""Findings about two models on the same cases."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from .. import words
from ..parts import Comparison, PairedFigures
from ..text import level
from ..words import shortened as short
from .basis import Sentences, corrected, possessive

if TYPE_CHECKING:
    from ..report import Report

#: A smaller difference of AUCs is not a reason to choose a model,
_EQUAL_AUC = 0.005
#: nor is a smaller share of the pairs that the better model ranks wrongly.
_EQUAL_SHARE = 0.1
#: Smaller scores explain a difference if calibration leaves less than this share of it.
_EXPLAINED = 0.5


def fewer_confident_mistakes(report: Report) -> Sentences:
    """A difference that calibration does not remove."""
    for pair in report.comparisons:
        after = pair.calibrated
        if after is None or not _certain(after, report):
            continue
        safer, riskier = _lower_first(pair, after)
        yield (
            f"{short(safer)} makes fewer confident mistakes than {short(riskier)}, "
            f"{_calibration(after, safer == pair.a, report)}: "
            f"{_difference(after, safer == pair.a, report)}.",
            [safer, riskier],
        )


def more_right_answers(report: Report) -> Sentences:
    """Answers of which one model gets more right, beyond chance."""
    for pair in report.comparisons if report.answers else ():
        test = pair.raw.tests["accuracy"]
        if not pair.raw.adjusted["accuracy"] < 1.0 - report.confidence:
            continue
        better, other = (pair.a, pair.b) if test.difference > 0.0 else (pair.b, pair.a)
        most, least = max(test.a, test.b), min(test.a, test.b)
        low, high = sorted(abs(end) for end in test.interval)
        yield (
            f"{short(better)} is right more often than {short(other)}: in {words.percent(most)} of "
            f"its answers against {words.percent(least)}, a difference of "
            f"{words.number(abs(test.difference))} ({level(report)} {words.number(low)} to "
            f"{words.number(high)}).",
            [better, other],
        )


def explained_by_scale(report: Report) -> Sentences:
    """A difference that comes from smaller scores alone."""
    for pair in report.comparisons:
        after = pair.calibrated
        if after is None or not _certain(pair.raw, report):
            continue
        lower, higher = _lower_first(pair, pair.raw)
        first_lower = lower == pair.a
        before = (
            f"{possessive(lower)} lower Fragility Index before calibration "
            f"({_values(pair.raw, first_lower)})"
        )
        if not _certain(after, report) and not isnan(after.p_value):
            left = "nothing is left of the difference"
            if not after.is_rounding:
                left = (
                    f"{_difference(after, first_lower, report)}, which could be chance"
                    f"{_corrected(after)}"
                )
            remains = after.index.difference / pair.raw.index.difference
            verdict = "is explained by its smaller scores"
            if remains > _EXPLAINED:  # calibration took away the certainty, not the difference
                verdict = "is not certain to be more than one of scale"
            yield (
                f"{before} {verdict}: {_calibration(after, first_lower, report, pair)}, {left}.",
                [lower, higher],
            )
        elif _certain(after, report) and _lower_first(pair, after) != (lower, higher):
            yield (
                f"{before} comes from its smaller scores alone: "
                f"{_calibration(after, first_lower, report)}, {short(higher)} has the lower one.",
                [lower, higher],
            )


def same_auc(report: Report) -> Sentences:
    """Models that AUC cannot tell apart but the index can."""
    figures = {model.name: model.raw.figures["auc"] for model in report.models}
    for pair in report.comparisons:
        a, b = figures[pair.a], figures[pair.b]
        (low, high), (other_low, other_high) = (auc.bounds or (auc.value,) * 2 for auc in (a, b))
        gap = max(high - other_low, other_high - low)  # the most that the bounds allow
        few = _EQUAL_SHARE * (1.0 - max(a.value, b.value))
        if gap >= _EQUAL_AUC or gap > few or not _certain(pair.raw, report):
            continue
        _, bolder = _lower_first(pair, pair.raw)
        alike = not pair.raw.tests["auc"].p_value < 1.0 - report.confidence
        yield (
            f"AUC {'cannot tell' if alike else 'hardly tells'} {short(pair.a)} from "
            f"{short(pair.b)} ({words.number(a.value)} and "
            f"{words.number(b.value)}), but the mistakes of {short(bolder)} are more confident: "
            f"{_difference(pair.raw, bolder == pair.a, report)}.",
            [pair.a, pair.b],
        )


def no_difference(report: Report) -> Sentences:
    """Models that these data do not tell apart, all in one sentence."""
    alike = []
    for pair in report.comparisons:
        tests = [pair.raw] + ([pair.calibrated] if pair.calibrated else [])
        if not any(isnan(test.p_value) or _certain(test, report) for test in tests):
            alike.append((pair, tests[-1]))
    if not alike:
        return
    calibrated = alike[0][0].calibrated is not None
    equal = all(_equally_calibrated(test, report) for _, test in alike)
    pairs = [
        f"{short(pair.a)} from {short(pair.b)} ({_change(test, True, report)}{_corrected(test)}"
        + (f"; {_calibration(test, True, report)})" if calibrated and not equal else ")")
        for pair, test in alike
    ]
    names = dict.fromkeys(name for pair, _ in alike for name in (pair.a, pair.b))
    yield (
        f"In the Fragility Index {words.count(report.n_samples)} cases do not tell "
        f"{'; '.join(pairs)}{', at equal calibration' if calibrated and equal else ''}.",
        list(names),
    )


def _equally_calibrated(test: PairedFigures, report: Report) -> bool:
    """Whether the calibration errors that are left do not clearly differ."""
    return not test.tests["calibration_error"].p_value < 1.0 - report.confidence


def _calibration(
    test: PairedFigures, as_given: bool, report: Report, pair: Comparison | None = None
) -> str:
    """Whether models are compared at equal calibration, or what is left of their errors.

    With their names, if the pair is given.
    """
    of_both = ""
    if pair is not None:
        names = (pair.a, pair.b) if as_given else (pair.b, pair.a)
        of_both = f" of {short(names[0])} and {short(names[1])}"
    if _equally_calibrated(test, report):
        return f"at equal calibration{of_both}"
    left = test.tests["calibration_error"]
    a, b = (left.a, left.b) if as_given else (left.b, left.a)
    return f"after calibration{of_both} (still unequal: {words.number(a)}, {words.number(b)})"


def _corrected(test: PairedFigures) -> str:
    """Why the index counts as equal although the interval of the difference leaves zero out."""
    n_tests = test.n_tests["fragility_index"]
    return corrected(test.index.interval, test.index.p_value, test.p_value, n_tests)


def _certain(test: PairedFigures, report: Report) -> bool:
    """Whether a difference is neither chance nor rounding."""
    return test.p_value < 1.0 - report.confidence and not test.is_rounding


def _lower_first(pair: Comparison, test: PairedFigures) -> tuple[str, str]:
    """Names of the model with the lower index, and of the other."""
    return (pair.a, pair.b) if test.index.difference < 0 else (pair.b, pair.a)


def _values(test: PairedFigures, as_given: bool) -> str:
    a, b = (test.index.a, test.index.b) if as_given else (test.index.b, test.index.a)
    return f"{words.number(a)} against {words.number(b)}"


def _difference(test: PairedFigures, as_given: bool, report: Report) -> str:
    """Values, difference and interval, of the first against the second or the other way round."""
    return f"Fragility Index {_values(test, as_given)}, {_change(test, as_given, report)}"


def _change(test: PairedFigures, as_given: bool, report: Report) -> str:
    sign = 1.0 if as_given else -1.0
    decimals = words.decimals_for(test.index.interval)
    low, high = sorted(sign * end for end in test.index.interval)
    change, low_end, high_end = (
        words.signed(value, decimals) for value in (sign * test.index.difference, low, high)
    )
    return f"difference {change}, {level(report)} {low_end} to {high_end}"
