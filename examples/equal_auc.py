"""Two models with equal AUC and different fragility, on data that comes with scikit-learn.

Run with ``make auc``. Ten measurements of 569 tumours, probabilities of malignancy by ten-fold
cross-validation: AUC and accuracy cannot tell a forest from a boosted model, the Fragility Index
can.
"""

from __future__ import annotations

from textwrap import fill

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from fragility import Fragility, compare_fragility, measure_fragility

MODELS = {
    "random forest": RandomForestClassifier(300, min_samples_leaf=8, random_state=0),
    "gradient boosting": HistGradientBoostingClassifier(random_state=0),
}
FOLDS = StratifiedKFold(10, shuffle=True, random_state=0)
CONFIDENT = 0.9
SURE = f"  at {CONFIDENT:.0%} confidence or more"
SCALED = "after Platt scaling: FI"


def cross_fitted(model, X, y):
    """Probability of the positive class for each sample, from a model that did not see it."""
    return cross_val_predict(model, X, y, cv=FOLDS, method="predict_proba")[:, 1]


def platt_scaled(p, y):
    """The same scores after cross-fitted logistic calibration: no model may hide behind scale."""
    clipped = np.clip(p, 1e-9, 1 - 1e-9)
    log_odds = np.log(clipped / (1 - clipped))
    return cross_fitted(LogisticRegression(C=1e6), log_odds[:, np.newaxis], y)


def describe(p, y) -> dict[str, float | str]:
    wrong = (p > 0.5) != y
    confident = np.maximum(p, 1 - p) >= CONFIDENT
    raw, scaled = measure_fragility(y, p), measure_fragility(y, platt_scaled(p, y))
    return {
        "AUC": roc_auc_score(y, p),
        "accuracy": accuracy_score(y, p > 0.5),
        "log-loss": log_loss(y, p),
        "Brier score": brier_score_loss(y, p),
        "mistakes": int(wrong.sum()),
        SURE: int((wrong & confident).sum()),
        "Fragility Index": raw.value,
        "  95% interval": "{:.3f} to {:.3f}".format(*raw.interval()),
        "  relative to separation": raw.ratio,
        SCALED: scaled.value,
        "  95% interval ": "{:.3f} to {:.3f}".format(*scaled.interval()),
        "  relative to separation ": scaled.ratio,
    }


def print_table(columns: dict[str, dict[str, float | str]]) -> None:
    print(f"{'':34}" + "".join(f"{name:>20}" for name in columns))
    for row in next(iter(columns.values())):
        cells = [column[row] for column in columns.values()]
        shown = [f"{c:.3f}" if isinstance(c, float) else str(c) for c in cells]
        print(f"{row:34}" + "".join(f"{cell:>20}" for cell in shown))


def print_attribution(result: Fragility, n: int) -> None:
    print(f"{'tumour':>10}{'truth':>14}{'P(malignant)':>16}{'times its share of the risk':>30}")
    for s in result.attribution(n):
        truth = "malignant" if s.label else "benign"
        print(f"{s.index:>10}{truth:>14}{s.score:>16.3f}{s.lift:>30.1f}")


def predictions():
    """Labels, and the probabilities of each model."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:, 10:20], 1 - y  # the ten standard errors; malignant is positive
    return y, {name: cross_fitted(model, X, y) for name, model in MODELS.items()}


def main() -> None:
    y, scores = predictions()
    columns = {name: describe(p, y) for name, p in scores.items()}

    print("Malignant or benign? 569 tumours, 10 measurements, 10-fold cross-validated models.\n")
    print_table(columns)
    safer, riskier = sorted(columns, key=lambda name: columns[name]["Fragility Index"])
    low, high = columns[safer], columns[riskier]
    index, scaled = (high[row] / low[row] for row in ("Fragility Index", SCALED))
    models = scores[riskier], scores[safer]
    raw_test = compare_fragility(y, *models)
    scaled_test = compare_fragility(y, *(platt_scaled(p, y) for p in models))
    summary = (
        f"AUC differs by {abs(high['AUC'] - low['AUC']):.4f} and accuracy by "
        f"{abs(high['accuracy'] - low['accuracy']):.4f}: equal models, it seems. But the {riskier} "
        f"model was confident in {high[SURE]} of its {high['mistakes']} mistakes, the {safer} in "
        f"{low[SURE]} of {low['mistakes']}. The Fragility Index sees it: {index:.2f} times as "
        f"high (difference {raw_test.difference:.3f}, 95% interval "
        "{:.3f} to {:.3f}, p = {:.1g}). ".format(*raw_test.interval, raw_test.p_value)
        + f"Calibrated alike, {scaled:.2f} times (p = {scaled_test.p_value:.1g}): "
        + ("what is left could be chance, " if scaled_test.p_value > 0.05 else "")
        + "the rest was overconfidence, which calibration mends."
    )
    print("\n" + fill(summary, 90))
    print(f"\nThe cases that carry the risk of the {riskier} model:\n")
    print_attribution(measure_fragility(y, scores[riskier]), 5)


if __name__ == "__main__":
    main()
