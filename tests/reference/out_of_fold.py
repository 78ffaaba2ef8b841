"""The out-of-fold target, by one fit of scikit-learn for each fold and strength."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

#: Strengths to choose from, strong to weak.
STRENGTHS = [1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8]


def standardised(X, weights, intercept):
    """Columns over their weighted deviations; a priced intercept is one more column, of ones."""
    columns = []
    for j in range(X.shape[1]):
        mean = sum(w * x for w, x in zip(weights, X[:, j], strict=True)) / sum(weights)
        squares = sum(w * (x - mean) ** 2 for w, x in zip(weights, X[:, j], strict=True))
        columns.append(X[:, j] / np.sqrt(squares / sum(weights)))
    if intercept == "priced":
        columns.append(np.ones(len(X)))
    return np.column_stack(columns)


def log_losses(X, y, weights, fold_of, alphas, intercept):
    """Weighted mean log-loss over the test parts, for each strength."""
    Z, means = standardised(X, weights, intercept), []
    for alpha in alphas:
        total = 0.0
        for fold in set(fold_of):
            train = fold_of != fold
            model = LogisticRegression(
                C=1.0 / (2.0 * alpha * weights[train].sum()),
                fit_intercept=intercept is True,
                solver="newton-cholesky",
                tol=1e-10,
                max_iter=10_000,
            ).fit(Z[train], y[train], sample_weight=weights[train])
            for z, label, weight in zip(Z[~train], y[~train], weights[~train], strict=True):
                shares = model.predict_proba(z[None])[0]
                total -= weight * np.log(shares[list(model.classes_).index(label)])
        means.append(total / weights.sum())
    return means


def hinge_losses(X, y, fold_of, alphas):
    """Mean hinge loss over the test parts, for each strength; labels -1 and 1, no intercept."""
    Z, means = standardised(X, np.ones(len(y)), False), []
    for alpha in alphas:
        total = 0.0
        for fold in set(fold_of):
            train = fold_of != fold
            model = LinearSVC(
                loss="hinge",
                C=1.0 / (2.0 * alpha * train.sum()),
                fit_intercept=False,
                random_state=0,
                tol=1e-9,
                max_iter=1_000_000,
            ).fit(Z[train], y[train])
            margins = y[~train] * model.decision_function(Z[~train])
            total += sum(max(0.0, 1.0 - margin) for margin in margins)
        means.append(total / len(y))
    return means


def target(loss, penalty, lowest, trivial):
    """The loss plus the penalty, between the two ends; the lower one counts more."""
    wanted = loss + penalty
    if wanted > 0.98 * trivial:
        wanted = 0.98 * trivial
    if wanted < lowest + 0.001 * (trivial - lowest):
        wanted = lowest + 0.001 * (trivial - lowest)
    return wanted
