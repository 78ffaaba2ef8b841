"""How many cases a model decided alone, and how many of them were wrong.

By a policy that is given, counted case by case; else by what a report knows: its own policy, which
these cases have chosen, or the level of confidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite, isnan
from typing import Any, Literal

import numpy as np

from .._labels import listed
from .._typing import Integers, Mask
from ..deferral.policy import Policy
from ..tables import CaseFile, OutcomeFile, PredictionFile
from . import words
from .parts import ModelReport
from .report import Report


@dataclass(frozen=True)
class DecidedAlone:
    """Cases that a model decided alone, and its errors among them.

    Attributes
    ----------
    decided, errors : float
    counts : {"exact", "effective", "expected"}
        Numbers of cases; of weighted or clustered cases numbers of independent ones that tell as
        much; of policies that other folds have chosen expected numbers.
    rule : mapping
        What decides alone, in plain values.
    """

    decided: float
    errors: float
    counts: Literal["exact", "effective", "expected"]
    rule: Mapping[str, Any]


def by_report(report: Report, model: ModelReport) -> DecidedAlone:
    """At the policy of the report, or above the level of confidence if there is none.

    Of weighted or clustered cases the report does not know how many independent ones a policy
    decides, so that the level of confidence is taken.
    """
    uneven = report.weighted or report.clustered
    if model.policy is not None and not uneven:
        decided = _whole(model.policy.automation_rate * n_cases(report, model))
        rate = model.policy.error_rate  # undefined if other folds' policies decide nothing alone
        errors = 0.0 if isnan(rate) else rate * decided
        rule = {"kind": "chosen", "costs": report.to_dict()["costs"]}
        return DecidedAlone(decided, min(errors, decided), "expected", rule)
    rule = {"kind": "confident", "level": report.confident}
    sure = model.raw.confident
    wrong = 1.0 - sure.right if sure.n else 0.0
    if uneven:
        return DecidedAlone(sure.effective, sure.effective * wrong, "effective", rule)
    return DecidedAlone(int(sure.n), round(sure.n * wrong), "exact", rule)


def _whole(n: float) -> float:
    """A share times a number of cases, without its rounding."""
    nearest = round(n)
    return nearest if abs(n - nearest) < 1e-9 * max(n, 1.0) else n


def n_cases(report: Report, model: ModelReport) -> int:
    """Cases of a model, of answers with those that it declined."""
    return report.n_samples if model.answers is None else model.answers.n_cases


def by_policy(
    policy: Policy, source: str, sha256: str, file: CaseFile[Any]
) -> tuple[str, DecidedAlone]:
    """The model that a policy is for, and what it decides alone by it; the file is read.

    `source` is what messages call the policy.
    """
    model = _model_of(policy, source, file)
    _check_classes(policy, source, file)
    number, weight, squares, wrong_weight = 0, 0.0, 0.0, 0.0
    clusters: set[int] = set()
    for automate, wrong, weights, own in _decisions(policy, model, file):
        kept = automate if weights is None else automate & (weights > 0.0)
        each = np.ones(kept.size) if weights is None else weights
        number += int(np.count_nonzero(kept))
        weight += float(each[kept].sum())
        squares += float((each[kept] ** 2).sum())
        wrong_weight += float(each[kept & wrong].sum())
        if own is not None:
            clusters.update(own[kept].tolist())
    rule = {"kind": "policy", "sha256": sha256}
    if file.columns.weight is None and file.columns.cluster is None:  # type: ignore[attr-defined]
        return model, DecidedAlone(number, int(wrong_weight), "exact", rule)
    effective = weight * (weight / squares) if number else 0.0
    if not isfinite(effective):
        raise ValueError("The weights are too large to count cases by; divide them by the largest.")
    if clusters:  # as if cases of a cluster were all alike
        effective *= len(clusters) / number
    wrong_share = wrong_weight / weight if number else 0.0
    return model, DecidedAlone(effective, effective * wrong_share, "effective", rule)


def _decisions(
    policy: Policy, model: str, file: CaseFile[Any]
) -> Iterator[tuple[Mask, Mask, Any, Integers | None]]:
    """By part of the file: decided alone, decided wrongly, weights, clusters."""
    for batch in file.batches():
        if isinstance(file, OutcomeFile):
            made = policy.decide_scores(batch.confidence[model])
            wrong = ~batch.correct[model]
        else:
            scores = np.clip(batch.scores[model].astype(np.float64), 0.0, 1.0)
            made = policy.decide_scores(scores)
            names = np.array(file.classes)  # type: ignore[attr-defined]
            wrong = made.label.astype(str) != names[batch.codes]
        yield made.automate, wrong, batch.weights, batch.clusters


def _model_of(policy: Policy, source: str, file: CaseFile[Any]) -> str:
    """The model of the file with the columns of the policy."""
    if policy.answers != isinstance(file, OutcomeFile):
        kinds = {True: "answers that are right or wrong", False: "predictions of classes"}
        raise ValueError(
            f"The policy {source} is for {kinds[policy.answers]}, the file has "
            f"{kinds[not policy.answers]}."
        )
    columns: dict[str, list[str]] = {}
    if isinstance(file, OutcomeFile):
        declined = file.columns.declined
        for name, column in file.columns.confidence.items():
            columns[name] = [column, *([declined[name]] if name in declined else [])]
    elif isinstance(file, PredictionFile):
        columns = file.score_columns
    found = [name for name, own in columns.items() if tuple(own) == policy.columns]
    if not policy.columns and len(columns) == 1:  # made in Python, it knows no columns
        found = list(columns)
    if len(found) != 1:
        told = listed(policy.columns) if policy.columns else "columns that it does not name"
        given = "; ".join(
            f"{words.shortened(name)}: {listed(own)}" for name, own in columns.items()
        )
        raise ValueError(
            f"The policy {source} is for scores in {told}, and not for just one model of the file "
            f"({given}). Give the model that it was made for."
        )
    return found[0]


def _check_classes(policy: Policy, source: str, file: CaseFile[Any]) -> None:
    if not isinstance(file, PredictionFile):
        return
    classes, own = file.classes, [str(label) for label in policy.labels]
    # Of two classes the order does not matter: the scores are those of the positive one.
    same = sorted(classes) == sorted(own) if len(own) == 2 else classes == own
    if not same:
        raise ValueError(
            f"The policy {source} is for the classes {listed(own)}, the file has {listed(classes)}."
        )
    if len(own) == 2 and file.positive != own[policy.positive]:
        raise ValueError(
            f"The policy {source} is for scores of {own[policy.positive]!r}, those of the file are "
            f"of {file.positive!r}: give --positive {own[policy.positive]}."
        )
