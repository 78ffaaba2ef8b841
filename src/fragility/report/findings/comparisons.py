"""Two models on the same cases."""

from __future__ import annotations

from math import isnan

from ...measured import Measured
from .. import words
from ..parts import PairedFigures
from ..words import shortened as short
from .basis import Figures, Sentences, possessive

#: A difference of AUCs that nobody would choose a model by.
_EQUAL_AUC = 0.005
#: Nor is this share of the pairs that the better of them ranks wrongly.
_EQUAL_SHARE = 0.1
#: A difference is explained by what leaves less than this share of it.
_EXPLAINED = 0.5


def fewer_confident_mistakes(figures: Figures) -> Sentences:
    """A difference that calibration does not remove."""
    for pair in figures.comparisons:
        after = pair.calibrated
        if after is None or not _certain(after, figures):
            continue
        safer, riskier = (pair.a, pair.b) if after.index.difference < 0 else (pair.b, pair.a)
        yield (
            f"{short(safer)} makes fewer confident mistakes than {short(riskier)}, at "
            f"equal calibration: {_difference(after, safer == pair.a, figures)}.",
            [safer, riskier],
        )


def explained_by_scale(figures: Figures) -> Sentences:
    """A difference that is only one of smaller scores."""
    for pair in figures.comparisons:
        after = pair.calibrated
        if after is None or not _certain(pair.raw, figures):
            continue
        first_lower = pair.raw.index.difference < 0
        lower, higher = (pair.a, pair.b) if first_lower else (pair.b, pair.a)
        if not _certain(after, figures) and not isnan(after.p_value):
            left = "nothing is left of the difference"
            if not after.is_rounding:
                left = f"{_difference(after, first_lower, figures)}, which could be chance"
            remains = after.index.difference / pair.raw.index.difference
            verdict = "is explained by its smaller scores"
            if remains > _EXPLAINED:  # calibration took away the certainty, not the difference
                verdict = "is not certain to be more than one of scale"
            yield (
                f"{possessive(lower)} lower Fragility Index before calibration "
                f"({_values(pair.raw, first_lower)}) {verdict}: after the same calibration of "
                f"{short(lower)} and {short(higher)}, {left}.",
                [lower, higher],
            )
        elif _certain(after, figures) and (after.index.difference < 0) != first_lower:
            yield (
                f"{possessive(lower)} lower Fragility Index before calibration "
                f"({_values(pair.raw, first_lower)}) comes from its smaller scores alone: after "
                f"the same calibration {short(higher)} has the lower one.",
                [lower, higher],
            )


def same_auc(figures: Figures) -> Sentences:
    """Models that AUC cannot tell apart but the index can."""
    measured = {m.name: m.raw.figures["auc"] for m in figures.models}
    values = {name: auc.value for name, auc in measured.items()}
    for pair in figures.comparisons:
        (low, high), (other_low, other_high) = map(_ends, (measured[pair.a], measured[pair.b]))
        gap = max(high - other_low, other_high - low)  # the most that the bounds allow
        few = _EQUAL_SHARE * (1.0 - max(values[pair.a], values[pair.b]))
        if gap >= _EQUAL_AUC or gap > few or not _certain(pair.raw, figures):
            continue
        bolder = pair.b if pair.raw.index.difference < 0 else pair.a
        yield (
            f"AUC cannot tell {short(pair.a)} from {short(pair.b)} "
            f"({words.number(values[pair.a])} and {words.number(values[pair.b])}), but the "
            f"mistakes of {short(bolder)} are more confident: "
            f"{_difference(pair.raw, bolder == pair.a, figures)}.",
            [pair.a, pair.b],
        )


def no_difference(figures: Figures) -> Sentences:
    """Models that these data do not tell apart, all in one sentence."""
    alike = []
    for pair in figures.comparisons:
        tests = [pair.raw] + ([pair.calibrated] if pair.calibrated else [])
        if not any(isnan(test.p_value) or _certain(test, figures) for test in tests):
            alike.append((pair, tests[-1]))
    if not alike:
        return
    pairs = [
        f"{short(pair.a)} from {short(pair.b)} ({_change(test, True, figures)})"
        for pair, test in alike
    ]
    calibrated = ", at equal calibration" if alike[0][0].calibrated else ""
    names = dict.fromkeys(name for pair, _ in alike for name in (pair.a, pair.b))
    yield (
        f"In the Fragility Index {words.count(figures.n)} cases do not tell "
        f"{'; '.join(pairs)}{calibrated}.",
        list(names),
    )


def _certain(test: PairedFigures, figures: Figures) -> bool:
    """Whether a difference is neither chance nor rounding."""
    return test.p_value < figures.alpha and not test.is_rounding


def _values(test: PairedFigures, as_given: bool) -> str:
    a, b = (test.index.a, test.index.b) if as_given else (test.index.b, test.index.a)
    return f"{words.number(a)} against {words.number(b)}"


def _difference(test: PairedFigures, as_given: bool, figures: Figures) -> str:
    """Values, difference and interval, of the first against the second or the other way round."""
    return f"Fragility Index {_values(test, as_given)}, {_change(test, as_given, figures)}"


def _change(test: PairedFigures, as_given: bool, figures: Figures) -> str:
    sign = 1.0 if as_given else -1.0
    decimals = words.decimals_for(test.index.interval)
    low, high = sorted(sign * end for end in test.index.interval)
    change, low_end, high_end = (
        words.signed(value, decimals) for value in (sign * test.index.difference, low, high)
    )
    return f"difference {change}, {figures.level} {low_end} to {high_end}"


def _ends(figure: Measured) -> tuple[float, float]:
    return figure.bounds or (figure.value, figure.value)
