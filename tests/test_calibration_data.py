"""On real data the chosen calibration is never clearly worse than Platt's."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.data import load_shift, load_uci
from fragility import Report

SHARED = Path(__file__).parents[2] / "shared" / "data"
REAL = Path(os.environ.get("FRAGILITY_DATA", SHARED))


def of_files(load, folder):
    """A loader of files that may be absent."""

    def found(name):
        if not (REAL / folder).is_dir():
            pytest.skip(f"no files in {folder}")
        made = load(name, data_home=REAL)
        return np.nan_to_num(made.data), made.target

    return found


def of_scikit_learn(load):
    return lambda name: load(return_X_y=True)


SETS = {
    "tumours": of_scikit_learn(load_breast_cancer),
    "wine": of_scikit_learn(load_wine),
    "digits": of_scikit_learn(load_digits),
    "german": of_files(load_uci, "uci"),
    "ionosphere": of_files(load_uci, "uci"),
    "diabetes": of_files(load_uci, "uci"),
    "red": of_files(load_shift, "shift"),
    "white": of_files(load_shift, "shift"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_no_choice_is_clearly_worse_than_the_standard_one(name):
    X, y = SETS[name](name)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    models = {}
    for title, model in (("logistic", LogisticRegression(max_iter=1_000)), ("Bayes", GaussianNB())):
        pipe = make_pipeline(StandardScaler(), model)
        p = cross_val_predict(pipe, X, y, cv=folds, method="predict_proba")
        models[title] = p[:, 1] if p.shape[1] == 2 else p
    reports = [Report.from_predictions(y, {title: p}, n_worst=0) for title, p in models.items()]
    for report in [*reports, Report.from_predictions(y, models, n_worst=0)]:
        for model in report.models:
            choice = model.calibration
            standard = "platt" if len(report.labels) == 2 else "temperature"
            gap = choice.losses[choice.method] - choice.losses[standard]
            assert gap <= choice.errors[standard] + 1e-12, (model.name, choice)
