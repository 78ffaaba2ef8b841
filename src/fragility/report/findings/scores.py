"""Findings about what scores tell apart: classes at all, pairs of them, and with how many cases."""

from __future__ import annotations

from math import inf, isinf, isnan
from typing import TYPE_CHECKING

import numpy as np

from .. import words
from ..parts import ModelReport
from ..words import shortened as short
from .basis import Sentences, joined, measured, named, names, ordered, possessive

if TYPE_CHECKING:
    from ..report import Report

#: An AUC of no more than this, with an interval below one half, is that of scores upside down.
FAR_BELOW = 0.4
#: A pair of classes stands out if its index is more than this many times the median.
_STANDS_OUT = 2.0
#: Indices that differ by no more than this, relative to their size, are equal but for rounding.
_ROUNDING = 1e-12


def reversed_scores(report: Report) -> Sentences:
    """Scores that are plainly those of another class, or confidence that is that of being wrong."""
    found = [model for model in report.models if _is_reversed(model)]
    if not found:
        return
    found = ordered(found, lambda model: model.raw.figures["auc"].value)
    told = f"AUC {measured(report, [model.raw.figures['auc'] for model in found])}"
    one = len(found) == 1
    its, gives = ("its", "gives") if one else ("their", "give")
    if report.answers:
        text = (
            f"{named(found)} {'is' if one else 'are'} surer of {its} wrong answers than of {its} "
            f"right ones, {told}: if {its} confidence is that of being wrong, give one minus it."
        )
    elif len(report.labels) > 2:
        order = ", ".join(short(label) for label in report.labels)
        text = (
            f"{named(found)} {gives} the true class lower scores than other classes, {told}: say "
            f"in which order the columns of {its} scores are, which is not {order} (--classes, "
            "labels in Python)."
        )
    else:
        (negative,) = (short(label) for label in report.labels if label != report.positive)
        positive = short(report.positive)
        text = (
            f"{named(found)} {gives} the class {negative} higher scores than {positive}, {told}: "
        )
        if len(found) == len(report.models):
            text += (
                f"if they are the probability of {negative}, say --positive {negative} (pos_label "
                f"in Python), else give those of {positive}."
            )
        else:
            text += f"give {its} probability of {positive}, as the other models do."
    yield text, names(found)


def _is_reversed(model: ModelReport) -> bool:
    auc = model.raw.figures["auc"]
    return auc.value <= FAR_BELOW and auc.interval is not None and auc.interval.high < 0.5


def no_separation(report: Report) -> Sentences:
    """Scores that are the same for every case, or not higher for the positives."""
    if len(report.labels) > 2:
        return
    models = ordered(report.models, lambda model: model.raw.figures["auc"].value)
    constant = [model for model in models if isnan(model.raw.figures["ratio"].value)]
    infinite = [model for model in models if model.raw.figures["fragility_index"].value == inf]
    told = []
    if constant:
        gives, its = ("gives", "its") if len(constant) == 1 else ("give", "their")
        told.append(
            f"{named(constant)} {gives} every case the same score: {its} Fragility Index of 0 says "
            "nothing."
        )
    one = len(infinite) == 1
    its = "its" if one else "their"
    if infinite and report.answers:
        told.append(
            f"{named(infinite)} {'is' if one else 'are'} no surer of {its} right answers than of "
            f"{its} wrong ones on average: {its} Fragility Index is infinite. Is the confidence "
            "the probability that an answer is right?"
        )
    elif infinite:
        (negative,) = (label for label in report.labels if label != report.positive)
        told.append(
            f"{named(infinite)} {'scores' if one else 'score'} the positives no higher than the "
            f"negatives on average: {its} Fragility Index is infinite. Here the positive class is "
            f"{short(report.positive)}; are the scores those of {short(negative)}?"
        )
    if told:
        yield " ".join(told), names([*constant, *infinite])


def infinite_pairs(report: Report) -> Sentences:
    """Pairs of classes without separation."""
    if len(report.labels) == 2:
        return
    found = [model for model in report.models if np.isinf(model.raw.pairs).any()]
    found = ordered(found, lambda model: -int(np.isinf(model.raw.pairs).sum()))
    told = []
    for model in found:
        total = int(np.count_nonzero(~np.isnan(model.raw.pairs)))
        pairs = [_scored_as(report, i, j) for i, j in np.argwhere(np.isinf(model.raw.pairs))]
        more = f" and {len(pairs) - 3} more" if len(pairs) > 3 else ""
        told.append(
            f"{short(model.name)} does not tell some classes apart: {len(pairs)} of {total} pairs "
            f"have an infinite index ({'; '.join(pairs[:3])}{more})."
        )
    if told:
        yield " ".join(told), names(found)


def fragile_pair(report: Report) -> Sentences:
    """The pair of classes that a model mixes up most confidently."""
    if len(report.labels) == 2:
        return
    found = {}
    for model in report.models:
        pairs = np.where(np.isfinite(model.raw.pairs), model.raw.pairs, np.nan)
        if np.isnan(pairs).all():
            continue
        worst, median = float(np.nanmax(pairs)), float(np.nanmedian(pairs))
        least = worst * (1.0 - _ROUNDING)  # equal pairs must not depend on the order of the cases
        if not least > _STANDS_OUT * median:
            continue
        i, j = np.argwhere(pairs >= least)[0]
        found[model.name] = (
            worst,
            (
                f"{possessive(model.name)} most confident mistakes are {_scored_as(report, i, j)} "
                f"(index {words.number(worst)}, where the median pair has {words.number(median)})"
            ),
        )
    if found:
        order = sorted(found, key=lambda name: (-found[name][0], name))
        yield f"{joined([found[name][1] for name in order])}.", order


def perfect_ranking(report: Report) -> Sentences:
    """An index of zero does not prove that a model makes no mistakes."""
    found = [
        model
        for model in report.models
        if model.raw.figures["fragility_index"].value == 0.0
        and not isnan(model.raw.figures["ratio"].value)
    ]
    found = ordered(found, lambda model: -model.raw.figures["auc"].value)
    told = [_perfect(report, model) for model in found]
    if told:
        yield " ".join(told), names(found)


def _perfect(report: Report, model: ModelReport) -> str:
    found = model.raw.figures
    n = words.count(sum(report.support_of(model)))
    ranks = f"ranks all {n} cases correctly"
    if found["auc"].value < 1.0:
        ranks = f"ranks none of {n} cases wrongly, but for ties"
    if report.answers:
        than = "than" if found["auc"].value == 1.0 else "than, or as sure as,"
        ranks = f"is surer of every right answer {than} of any wrong one, among {n}"
    limit = ""
    if found["fragility_index"].interval is not None:
        high = found["fragility_index"].interval.high
        limit = f"; they allow up to {words.number(high)} ({words.level(report.confidence)})"
        if isinf(high):
            limit = "; so few cases allow any other"
    return f"{short(model.name)} {ranks}, so its Fragility Index is 0 here{limit}."


def too_few_cases(report: Report) -> Sentences:
    """Data that do not bound the index from above."""
    found = [
        model
        for model in report.models
        if model.raw.figures["fragility_index"].interval is not None
        and model.raw.figures["fragility_index"].interval.high == inf
        and model.raw.figures["fragility_index"].value not in (0.0, inf)
    ]
    if not found:
        return
    found = ordered(found, lambda model: -model.raw.figures["fragility_index"].value)
    rare = []
    for model in found:
        support = report.support_of(model)
        least = min(n for n in support if n > 0)
        smallest = short(report.labels[support.index(least)])
        rare.append(f"Class {smallest} has {words.count(least)} cases.")
        if report.answers:
            rare[-1] = f"{short(model.name)} has {words.count(least)} {smallest} answers."
    told = measured(report, [model.raw.figures["fragility_index"] for model in found])
    yield (
        f"The data are too few to bound the Fragility Index of {named(found)} from above: {told}. "
        f"{' '.join(dict.fromkeys(rare))}",
        names(found),
    )


def _scored_as(report: Report, i: int, j: int) -> str:
    return f"true {short(report.labels[j])} scored as {short(report.labels[i])}"
