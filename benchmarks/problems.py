"""What `training.py` measures: data sets, and robust models to train on them."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from peers import Conic, conic

from fragility import KL, SatisficingClassifier, Wasserstein

__all__ = ["ALPHA", "HINGE", "PENALISED", "RATIO", "SLACK", "TOL", "UNPENALISED", "Fit", "Problem"]

ALPHA = 1e-3
RATIO = 1.1
SLACK = 0.1
TOL = 1e-6
#: Deviation of the scores by number of classes: 12 to 14 % of the labels are noise.
SCALE = {2: 4.0, 4: 5.5, 10: 9.0}


@dataclass(frozen=True)
class Problem:
    """Correlated standard normal features, labels drawn from a softmax of linear scores."""

    n: int
    d: int
    n_classes: int = 2

    @property
    def name(self) -> str:
        classes = "" if self.n_classes == 2 else f", {self.n_classes} classes"
        return f"n = {self.n:,}, d = {self.d}{classes}"

    @property
    def conic_is_affordable(self) -> bool:
        return self.d == 20 and self.n <= (2_000 if self.n_classes == 2 else 500)

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng([self.n, self.d, self.n_classes])
        X = rng.standard_normal((self.n, self.d))
        for j in range(1, self.d):  # in place: the memory section counts every copy
            X[:, j] *= 0.75**0.5
            X[:, j] += 0.5 * X[:, j - 1]
        if self.n_classes == 2:
            scores = X @ rng.standard_normal(self.d)
            scores *= SCALE[2] / scores.std()
            return X, (rng.random(self.n) < 1 / (1 + np.exp(-scores))).astype(np.int64)
        scores = X @ rng.standard_normal((self.d, self.n_classes))
        scores *= SCALE[self.n_classes] / scores.std()
        # The largest score plus Gumbel noise is a draw from the softmax.
        return X, np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)


@dataclass(frozen=True)
class Fit:
    """A robust model to train."""

    name: str
    ambiguity: KL | Wasserstein
    loss: str = "cross_entropy"
    penalty: str | None = "l2"

    def run(self, X, y) -> SatisficingClassifier:
        target = {"target_ratio": RATIO} if self.penalty else {"slack": SLACK}
        return SatisficingClassifier(
            self.loss, self.ambiguity, penalty=self.penalty, alpha=ALPHA, tol=TOL, **target
        ).fit(X, y)

    def asked(self, problem: Problem) -> float | None:
        """Most LogisticRegression fits it may cost."""
        if self.loss != "cross_entropy" or (problem.n_classes > 2 and problem.n < 2_000):
            return None
        norm = getattr(self.ambiguity, "norm", None)
        if problem.n_classes > 2:
            return {None: 9.0, 1: 25.0, 2: 25.0, inf: 50.0}[norm]
        return {None: 5.0, 1: 15.0, 2: 9.0, inf: 15.0}[norm] * (2 if problem.n >= 100_000 else 1)

    def reference(self, X, y, target: float, limit: float) -> Conic:
        """The same program, solved by cvxpy and Clarabel."""
        alpha = ALPHA if self.penalty else 0.0
        return conic(X, y, getattr(self.ambiguity, "norm", None), target, alpha, limit)


AMBIGUITIES = {
    "KL": KL(),
    "W ℓ2": Wasserstein(norm=2),
    "W ℓ1": Wasserstein(norm=1),
    "W ℓ∞": Wasserstein(norm=inf),
}
PENALISED = [Fit(name, ambiguity) for name, ambiguity in AMBIGUITIES.items()]
UNPENALISED = [Fit(f"{f.name}, no penalty", f.ambiguity, penalty=None) for f in PENALISED]
HINGE = [Fit(f"{f.name}, smoothed hinge", f.ambiguity, loss="smoothed_hinge") for f in PENALISED]
