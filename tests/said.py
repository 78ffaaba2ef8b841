"""What reports say, and models to say it of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fragility import Report
from tests.confident_models import logistic


def patients(n=600, seed=0, spread=2.0):
    """Truth and a calibrated log-odds."""
    rng = np.random.default_rng(seed)
    logit = spread * rng.normal(size=n)
    return rng.random(n) < logistic(logit), logit, rng


SICK, LOGIT, _rng = patients(900)
NOISY = LOGIT + 2 * _rng.normal(size=LOGIT.size)  # knows less, and says so after calibration


def fair_and(name, other, **options):
    """A fair model and another."""
    return Report.from_predictions(SICK, {"fair": logistic(LOGIT), name: other}, **options)


def rules(report):
    """Rules that speak, in order."""
    return [finding.rule for finding in report.findings]


def text(report, rule):
    """The only sentence of a rule."""
    (found,) = [finding.text for finding in report.findings if finding.rule == rule]
    return found


def with_figures(report, *figures):
    """The same report with other figures of its models, before calibration."""
    models = tuple(
        replace(model, raw=replace(model.raw, figures={**model.raw.figures, **own}))
        for model, own in zip(report.models, figures, strict=True)
    )
    return replace(report, models=models)
