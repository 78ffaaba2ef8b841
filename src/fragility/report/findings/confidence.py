"""Findings about the confidence of each model: its mistakes, its honesty, its order."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from scipy.special import betainc

from .. import words
from ..parts import ConfidentCases, ModelReport
from ..words import shortened as short
from .basis import Sentences, error_rate, joined, measured, named, names, ordered

if TYPE_CHECKING:
    from ..report import Report

#: Overconfidence, or a calibration error, of less than this is not worth a sentence.
_WORTH_SAYING = 0.01
#: Confidence is honest if its calibration error is at most this, with its interval.
_HONEST = 0.05


def confident_mistakes(report: Report) -> Sentences:
    """How many cases each model gets wrong above the level of confidence."""
    models = ordered(report.models, lambda model: -model.raw.confident.n_wrong)
    if not any(model.raw.confident.n_wrong for model in models):
        return
    told = []
    for model in models:
        n, errors = model.raw.confident.n_wrong, model.raw.histogram.n_wrong
        share = f" ({words.percent(n / errors)} of its {words.count(errors)} errors)" if n else ""
        told.append(f"{short(model.name)} {words.count(n) if n else 'none'}{share}")
    yield (
        f"Wrong above {100 * report.confident:g} % confidence, of "
        f"{words.count(report.n_samples)} cases: {joined(told)}.",
        names(models),
    )


def overconfident(report: Report) -> Sentences:
    """Confident predictions that are right less often than the confidence says."""
    found = overconfident_models(report)
    if not found:
        return
    told = []
    for model in found:
        confident = model.raw.confident
        cases = "one case" if confident.n == 1 else f"{words.count(confident.n)} cases"
        told.append(
            f"{'it' if len(found) == 1 else short(model.name)} claims "
            f"{words.percent(confident.confidence)} and is right in "
            f"{words.percent(confident.right)} of {cases}"
        )
    yield (
        f"{named(found)} {'is' if len(found) == 1 else 'are'} overconfident above "
        f"{100 * report.confident:g} % confidence: {joined(told)}.",
        names(found),
    )


def overconfident_models(report: Report) -> list[ModelReport]:
    """Models that are, the worst first."""

    def excess(model: ModelReport) -> float:
        return model.raw.confident.confidence - model.raw.confident.right

    alpha = 1.0 - report.confidence
    found = [
        model
        for model in report.models
        if excess(model) > _WORTH_SAYING and _chance_of_mistakes(model.raw.confident) < alpha / 2.0
    ]
    return ordered(found, lambda model: -excess(model))


def _chance_of_mistakes(cases: ConfidentCases) -> float:
    """Probability of at least this many mistakes, if the model is right as often as it says.

    Binomial with the mean confidence, also between whole numbers. Where confidences differ, this
    many mistakes are less likely still (Hoeffding 1956).
    """
    mistakes = cases.effective * (1.0 - cases.right)
    rest = cases.effective - mistakes + 1.0
    return float(betainc(mistakes, rest, 1.0 - cases.confidence)) if mistakes > 0.0 else 1.0


def dishonest_confidence(report: Report) -> Sentences:
    """Confidence that is off by more than chance gives honest scores."""
    found = _by_honesty(report, "dishonest")
    if found:
        yield (
            f"The confidence of {named(found)} is off by more than chance: calibration error "
            f"{_errors(report, found)}.",
            names(found),
        )


def honest_confidence(report: Report) -> Sentences:
    """Confidence that is shown to be nearly right."""
    found = _by_honesty(report, "honest")
    if found:
        yield (
            f"The confidence of {named(found)} is honest within {100 * _HONEST:g} points: "
            f"calibration error {_errors(report, found)}.",
            names(found),
        )


def honesty_unknown(report: Report) -> Sentences:
    """Confidence that may be honest or not, as far as these cases tell."""
    found = _by_honesty(report, "unknown")
    if found:
        yield (
            f"{words.count(report.n_samples)} cases cannot tell whether the confidence of "
            f"{named(found)} is honest: calibration error {_errors(report, found)}.",
            names(found),
        )


def _by_honesty(report: Report, kind: str) -> list[ModelReport]:
    """Models of a kind, the largest error first; overconfident ones have a sentence already.

    The lower limit of the calibration error is above 0 only if the error is larger than chance
    gives honest scores; the upper limit bounds what is left.
    """
    told = names(overconfident_models(report))
    found = []
    for model in report.models:
        limits = model.raw.figures["calibration_error"].interval
        if limits is None or model.name in told or isnan(limits.low):
            continue
        own = "honest" if limits.high <= _HONEST else "unknown"
        if limits.low > _WORTH_SAYING:
            own = "dishonest"
        if own == kind:
            found.append(model)
    return ordered(found, lambda model: -model.raw.figures["calibration_error"].value)


def _errors(report: Report, models: list[ModelReport]) -> str:
    return measured(report, [model.raw.figures["calibration_error"] for model in models])


def ranked_errors(report: Report) -> Sentences:
    """Errors that are rarer where the confidence is higher."""
    found = _by_ranking(report, ranked=True)
    if not found:
        return
    many = len(found) > 1
    told = [
        f"{f'{short(model.name)} ' if many else ''}"
        f"{words.percent(error_rate(report, model))} and "
        f"{words.percent(model.raw.evidence.figures['error_rate_surest_90'].value)}"
        for model in found
    ]
    yield (
        f"{named(found)} {'err' if many else 'errs'} less where {'they are' if many else 'it is'} "
        "surer, so reviews of the least sure help; errors among all "
        f"{'answers' if report.answers else 'cases'} and among the surest 90 %: "
        f"{'; '.join(told)}.",
        names(found),
    )


def unranked_errors(report: Report) -> Sentences:
    """Confidence that is not shown to be lower for errors."""
    found = _by_ranking(report, ranked=False)
    if not found:
        return
    many = len(found) > 1
    aurc = measured(report, [model.raw.figures["aurc"] for model in found])
    chance = joined([words.number(error_rate(report, model)) for model in found])
    yield (
        f"{words.count(report.n_samples)} cases do not show that {named(found)} "
        f"{'err' if many else 'errs'} less where {'they are' if many else 'it is'} surer, as "
        f"reviews of the least sure suppose: AURC {aurc}, where chance gives {chance}.",
        names(found),
    )


def _by_ranking(report: Report, *, ranked: bool) -> list[ModelReport]:
    """Models whose confidence is shown to rank their errors, or is not.

    Confidence that has nothing to do with errors has an AURC of the error rate. The interval of the
    AURC alone is a cautious test of that: there the AURC has twice the variance of its difference
    to the error rate.
    """
    found = []
    for model in report.models:
        limits, rate = model.raw.figures["aurc"].interval, error_rate(report, model)
        if limits is not None and rate > 0.0 and (limits.high < rate) == ranked:
            found.append(model)
    return ordered(found, lambda model: error_rate(report, model))
