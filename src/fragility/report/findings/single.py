"""Findings about one model: its scores, its confidence, its pairs of classes."""

from __future__ import annotations

from math import inf, isinf, isnan
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betainc

from .. import words
from ..parts import ConfidentCases, ModelReport
from ..text import level
from ..words import shortened as short
from .basis import of_each_model, possessive

if TYPE_CHECKING:
    from ..report import Report

#: Overconfidence of less than this is not worth a sentence.
_WORTH_SAYING = 0.01
#: A pair of classes stands out if its index is more than this many times the median.
_STANDS_OUT = 2.0
#: Indices that differ by no more than this, relative to their size, are equal but for rounding.
_ROUNDING = 1e-12


@of_each_model
def no_separation(report: Report, model: ModelReport) -> str | None:
    """Scores that are the same for every case, or not higher for the positives."""
    name, found = short(model.name), model.raw.figures
    if len(report.labels) > 2:
        return None
    if isnan(found["ratio"].value):
        return f"{name} gives every case the same score: its Fragility Index of 0 says nothing."
    if found["fragility_index"].value < inf:
        return None
    if report.answers:
        return (
            f"{name} is no surer of its right answers than of its wrong ones on average: its "
            "Fragility Index is infinite. Is the confidence the probability that an answer is "
            "right?"
        )
    (negative,) = (label for label in report.labels if label != report.positive)
    return (
        f"{name} scores the positives no higher than the negatives on average: its Fragility Index "
        f"is infinite. Here the positive class is {short(report.positive)}; are the scores those "
        f"of {short(negative)}?"
    )


@of_each_model
def infinite_pairs(report: Report, model: ModelReport) -> str | None:
    """Pairs of classes without separation."""
    infinite = np.argwhere(np.isinf(model.raw.pairs))
    if len(report.labels) == 2 or not len(infinite):
        return None
    total = int(np.count_nonzero(~np.isnan(model.raw.pairs)))
    pairs = [_scored_as(report, i, j) for i, j in infinite]
    more = f" and {len(pairs) - 3} more" if len(pairs) > 3 else ""
    return (
        f"{short(model.name)} does not tell some classes apart: {len(pairs)} of {total} pairs have "
        f"an infinite index ({'; '.join(pairs[:3])}{more})."
    )


@of_each_model
def overconfident(report: Report, model: ModelReport) -> str | None:
    """Confident predictions that are right less often than the confidence says."""
    confident = model.raw.confident
    if not is_overconfident(confident, report.confidence):
        return None
    cases = "case" if confident.n == 1 else f"{words.count(confident.n)} cases"
    return (
        f"{short(model.name)} is overconfident: in the {cases} above "
        f"{100 * report.confident:g} % confidence it claims "
        f"{words.percent(confident.confidence)} and is right in {words.percent(confident.right)}."
    )


def is_overconfident(cases: ConfidentCases, confidence: float) -> bool:
    """Whether confident cases are right less often than they claim, by more than chance."""
    excess = cases.confidence - cases.right
    return excess > _WORTH_SAYING and _chance_of_mistakes(cases) < 0.5 * (1.0 - confidence)


@of_each_model
def fragile_pair(report: Report, model: ModelReport) -> str | None:
    """The pair of classes that a model mixes up most confidently."""
    pairs = np.where(np.isfinite(model.raw.pairs), model.raw.pairs, np.nan)
    if len(report.labels) == 2 or np.isnan(pairs).all():
        return None
    worst, median = float(np.nanmax(pairs)), float(np.nanmedian(pairs))
    least = worst * (1.0 - _ROUNDING)  # equal pairs must not depend on the order of the cases
    if not least > _STANDS_OUT * median:
        return None
    i, j = np.argwhere(pairs >= least)[0]
    return (
        f"{possessive(model.name)} most confident mistakes are {_scored_as(report, i, j)}: index "
        f"{words.number(worst)}, where the median pair has {words.number(median)}."
    )


@of_each_model
def perfect_ranking(report: Report, model: ModelReport) -> str | None:
    """An index of zero does not prove that a model makes no mistakes."""
    found = model.raw.figures
    if found["fragility_index"].value != 0.0 or isnan(found["ratio"].value):
        return None
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
        limit = f"; they allow up to {words.number(high)} ({level(report)})"
        if isinf(high):
            limit = "; so few cases allow any other"
    return f"{short(model.name)} {ranks}, so its Fragility Index is 0 here{limit}."


@of_each_model
def too_few_cases(report: Report, model: ModelReport) -> str | None:
    """Data that do not bound the index from above."""
    found = model.raw.figures["fragility_index"]
    if found.interval is None or found.interval.high < inf or found.value in (0.0, inf):
        return None
    support = report.support_of(model)
    least = min(n for n in support if n > 0)
    smallest = short(report.labels[support.index(least)])
    rare = f"Class {smallest} has {words.count(least)} cases."
    if report.answers:
        rare = f"There are {words.count(least)} {smallest} answers."
    return (
        f"The data are too few to bound the Fragility Index of {short(model.name)} from above: its "
        f"{level(report)} is {words.interval(found.interval)}. {rare}"
    )


def _scored_as(report: Report, i: int, j: int) -> str:
    return f"true {short(report.labels[j])} scored as {short(report.labels[i])}"


def _chance_of_mistakes(cases: ConfidentCases) -> float:
    """Probability of at least this many mistakes, if the model is right as often as it says.

    Binomial with the mean confidence, also between whole numbers. Where confidences differ, this
    many mistakes are less likely still (Hoeffding 1956).
    """
    mistakes = cases.effective * (1.0 - cases.right)
    rest = cases.effective - mistakes + 1.0
    return float(betainc(mistakes, rest, 1.0 - cases.confidence)) if mistakes > 0.0 else 1.0
