"""One model: what its scores, its confidence, its groups and pairs of classes show."""

from __future__ import annotations

from math import inf, isinf, isnan

import numpy as np
from scipy.special import betainc

from ...measured import Measured
from .. import words
from ..parts import ConfidentCases
from ..words import shortened as short
from .basis import Figures, Sentences, label, possessive

#: Overconfidence below this share of cases is not worth a sentence.
_WORTH_SAYING = 0.01
#: A pair of classes stands out if its index is so many times the median.
_STANDS_OUT = 2.0


def no_separation(figures: Figures) -> Sentences:
    """Scores that are the same for everyone, or higher for the negatives."""
    for model in figures.models:
        found = model.raw.figures
        if isnan(found["ratio"].value) and len(figures.labels) == 2:
            yield (
                f"{short(model.name)} gives every case the same score: its Fragility Index of 0 "
                "says nothing.",
                [model.name],
            )
        elif isinf(found["fragility_index"].value) and len(figures.labels) == 2:
            places = (0, 1) if figures.positive == figures.labels[0] else (1, 0)
            positive, negative = (label(figures, place) for place in places)
            yield (
                f"{short(model.name)} scores the positives no higher than the negatives on "
                f"average: its Fragility Index is infinite. Here the positive class is {positive}; "
                f"are the scores those of {negative}?",
                [model.name],
            )


def infinite_pairs(figures: Figures) -> Sentences:
    """Pairs of classes without separation."""
    if len(figures.labels) == 2:
        return
    for model in figures.models:
        infinite = np.argwhere(np.isinf(model.raw.pairs))
        if not len(infinite):
            continue
        total = int(np.count_nonzero(~np.isnan(model.raw.pairs)))
        pairs = [f"true {label(figures, j)} scored as {label(figures, i)}" for i, j in infinite]
        more = f" and {len(pairs) - 3} more" if len(pairs) > 3 else ""
        yield (
            f"{short(model.name)} does not tell some classes apart: {len(pairs)} of {total} pairs "
            f"have an infinite index ({'; '.join(pairs[:3])}{more}).",
            [model.name],
        )


def overconfident(figures: Figures) -> Sentences:
    """Models that are right less often than they say where they are confident."""
    for model in figures.models:
        confident = model.raw.confident
        excess = confident.confidence - confident.right
        if excess > _WORTH_SAYING and _chance_of_mistakes(confident) < figures.alpha / 2.0:
            cases = "case" if confident.n == 1 else f"{words.count(confident.n)} cases"
            yield (
                f"{short(model.name)} is overconfident: in the {cases} "
                f"above 90 % confidence it claims {words.percent(confident.confidence)} and is "
                f"right in {words.percent(confident.right)}.",
                [model.name],
            )


def fragile_group(figures: Figures) -> Sentences:
    """Groups in which a model is more fragile than in all."""
    for part in figures.groups:
        if part.index is None or part.cautious is None or not part.cautious.low > part.in_all:
            continue
        yield (
            f"{short(part.model)} is more fragile in the group {short(part.group)} "
            f"({words.count(part.n)} cases): Fragility Index {words.measured(part.index)}, against "
            f"{words.number(part.in_all)} in all{part.of_these_classes}.",
            [part.model],
        )


def fragile_pair(figures: Figures) -> Sentences:
    """The pair of classes that a model mixes up most confidently."""
    for model in figures.models:
        pairs = model.raw.pairs
        known = pairs[np.isfinite(pairs)]
        if len(figures.labels) == 2 or not known.size:
            continue
        worst, median = float(known.max()), float(np.median(known))
        if worst > _STANDS_OUT * median:
            i, j = np.argwhere(pairs == worst)[0]
            yield (
                f"{possessive(model.name)} most confident mistakes are true {label(figures, j)} "
                f"scored as {label(figures, i)}: index {words.number(worst)}, where the median "
                f"pair has {words.number(median)}.",
                [model.name],
            )


def perfect_ranking(figures: Figures) -> Sentences:
    """An index of zero is no proof."""
    for model in figures.models:
        found = model.raw.figures["fragility_index"]
        if found.value == 0.0 and not isnan(model.raw.figures["ratio"].value):
            limit = "" if found.interval is None else _limit(found, figures)
            ranks = f"ranks all {words.count(figures.n)} cases correctly"
            if model.raw.figures["auc"].value < 1.0:
                ranks = f"ranks none of {words.count(figures.n)} cases wrongly, but for ties"
            yield (
                f"{short(model.name)} {ranks}, so its Fragility Index is 0 here{limit}.",
                [model.name],
            )


def too_few_cases(figures: Figures) -> Sentences:
    """Data that do not bound the index."""
    for model in figures.models:
        found = model.raw.figures["fragility_index"]
        if found.interval is None or found.interval.high < inf or found.value in (0.0, inf):
            continue
        least = int(np.argmin(np.where(np.array(figures.support) > 0, figures.support, 2**62)))
        yield (
            f"The data are too few to bound the Fragility Index of {short(model.name)} from above: "
            f"its {figures.level} is {words.interval(found.interval)}. Class "
            f"{label(figures, least)} has {words.count(figures.support[least])} cases.",
            [model.name],
        )


def _chance_of_mistakes(cases: ConfidentCases) -> float:
    """How likely a model that is right as often as it says makes so many mistakes, or more.

    Binomial with the mean confidence, also between whole numbers: where confidences differ so many
    mistakes are less likely still (Hoeffding 1956).
    """
    mistakes = cases.effective * (1.0 - cases.right)
    rest = cases.effective - mistakes + 1.0
    return float(betainc(mistakes, rest, 1.0 - cases.confidence)) if mistakes > 0.0 else 1.0


def _limit(found: Measured, figures: Figures) -> str:
    high = found.interval.high if found.interval else inf
    if isinf(high):
        return "; so few cases allow any other"
    return f"; they allow up to {words.number(high)} ({figures.level})"
