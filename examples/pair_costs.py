"""Does it pay to train with the costs of confusions? Costs on test data, with and without.

Each row: mean cost of a test case where errors cost between 1 and 20, of a linear model trained
without costs, and the change with `pair_cost`, with a 95 % interval over splits and cost matrices.
"argmax" decides for the highest score; "least cost" for the least expected cost after calibration,
by the same matrix; "policy" is `DeferralClassifier`, which has some cases reviewed at a cost of 1.
Takes two to three minutes:

    python examples/pair_costs.py [repetitions]
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from scipy.stats import t as student
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fragility import DeferralClassifier, SatisficingClassifier, pair_cost_of
from fragility.losses import CrossEntropy, Hinge

LOSSES = {"cross-entropy": CrossEntropy, "hinge": Hinge}
DECISIONS = ("argmax", "least cost", "policy")


def data_sets():
    """Data of scikit-learn, some of it with few features, and drawn classes that overlap."""
    drawn = {"n_samples": 900, "n_features": 8, "n_informative": 4, "random_state": 0}
    digits, number = load_digits(return_X_y=True)
    few = number < 5
    patients, sick = load_breast_cancer(return_X_y=True)
    return {
        "breast cancer": (patients[:, :5], sick, 200),
        "wine": (*load_wine(return_X_y=True), 60),
        "digits 0 to 4": (digits[few][:, 16:40], number[few], 200),
        "drawn, 2 classes": (*make_classification(class_sep=0.6, **drawn), 300),
        "drawn, 4 classes": (*make_classification(n_classes=4, class_sep=1.0, **drawn), 300),
    }


def cost_matrix(n_classes, rng):
    """Errors cost between 1 and 20, right decisions nothing."""
    costs = np.exp(rng.uniform(0.0, np.log(20.0), size=(n_classes, n_classes)))
    return np.round(costs, 1) * (1.0 - np.eye(n_classes))


def costs_on_test_data(loss, costs, train, test, seed):
    """Mean cost of a test case for each kind of decision."""
    (X, y), (X_new, y_new) = train, test
    model = make_pipeline(StandardScaler(), SatisficingClassifier(loss, slack=0.1))
    careful = DeferralClassifier(model, error_cost=costs, review_cost=1.0, random_state=seed)
    decided = careful.fit(X, y).decide(X_new)
    alone = costs[y_new, decided.label]
    argmax = costs[y_new, careful.predict_proba(X_new).argmax(axis=1)]
    return argmax.mean(), alone.mean(), np.where(decided.automate, alone, 1.0).mean()


def compared(X, y, n_train, kind, repetitions):
    """Test costs of training without costs and with them, one row for each repetition."""
    rows = []
    for seed in range(repetitions):
        costs = cost_matrix(np.unique(y).size, np.random.default_rng(seed))
        split = train_test_split(X, y, train_size=n_train, stratify=y, random_state=seed)
        train, test = (split[0], split[2]), (split[1], split[3])
        losses = kind(), kind(pair_cost=pair_cost_of(costs))
        rows.append([costs_on_test_data(loss, costs, train, test, seed) for loss in losses])
    return np.array(rows)


def main(repetitions: int = 20) -> None:
    warnings.simplefilter("ignore")  # small folds of easy data: targets that are met by anything
    print(f"{'data':18} {'loss':14}" + "".join(f" {name:>24}" for name in DECISIONS))
    for name, (X, y, n_train) in data_sets().items():
        for loss, kind in LOSSES.items():
            found = compared(X, y, n_train, kind, repetitions)
            change = found[:, 1] - found[:, 0]
            half = student.ppf(0.975, repetitions - 1) * change.std(axis=0, ddof=1)
            cells = zip(
                found[:, 0].mean(axis=0), change.mean(axis=0), half / repetitions**0.5, strict=True
            )
            words = [f"{before:7.3f} {more:+.3f} ± {sure:.3f}" for before, more, sure in cells]
            print(f"{name:18} {loss:14}" + "".join(f" {word:>24}" for word in words))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
