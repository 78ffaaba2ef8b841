"""What `training.py` measures: data sets, and robust models to train on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np
from peers import Conic, conic

from fragility import KL, DROClassifier, SatisficingClassifier, Wasserstein

__all__ = [
    "ALPHA",
    "BALLS",
    "HINGE",
    "HINGE_BY_SLACK",
    "KNOWN_KINDS",
    "LASSO",
    "MAX_LOGISTIC",
    "PENALISED",
    "RATIO",
    "SLACK",
    "SMOOTHED_HINGE",
    "TOL",
    "UNPENALISED",
    "UNSEEN_KINDS",
    "Fit",
    "OtherProblem",
    "Problem",
    "WrongLabels",
]

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
class OtherProblem(Problem):
    """Two classes of other kinds of data: no constant of a solver was chosen on the last two.

    The kinds, each with its own seed: ``factors`` (five factors behind all features), ``unscaled``
    (columns of sizes and offsets orders apart), ``imbalanced`` (about 3 % in the second class),
    ``noisy`` (scores of deviation one), ``nearly separable`` (scores of deviation 30),
    ``independent`` (no correlation), ``binary`` (rare and frequent indicators); ``heavy tails``
    (Student's t, 5 % of the labels flipped) and ``mixture`` (three clusters, scores bent by a
    product).
    """

    kind: str = "factors"
    seed: int = 0

    @property
    def name(self) -> str:
        again = f", seed {self.seed}" if self.seed else ""
        return f"{super().name}, {self.kind}{again}"

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng([*self.kind.encode(), self.n, self.d, self.seed])
        X, scores = getattr(self, f"_{self.kind.replace(' ', '_')}")(rng)
        y = rng.random(self.n) < 1 / (1 + np.exp(-scores))
        if self.kind == "heavy tails":
            y ^= rng.random(self.n) < 0.05
        return X, y.astype(np.int64)

    def _linear(self, X, rng: np.random.Generator, deviation: float):
        scores = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.standard_normal(self.d)
        return X, deviation / scores.std() * scores

    def _normal(self, rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal((self.n, self.d))

    def _factors(self, rng: np.random.Generator):
        common = rng.standard_normal((self.n, 5)) @ rng.standard_normal((5, self.d))
        return self._linear(common + 0.5 * self._normal(rng), rng, 3.0)

    def _unscaled(self, rng: np.random.Generator):
        sizes, offsets = 10.0 ** rng.uniform(-2, 2, self.d), 3.0 * rng.standard_normal(self.d)
        return self._linear(sizes * (self._normal(rng) + offsets), rng, 3.0)

    def _imbalanced(self, rng: np.random.Generator):
        X, scores = self._linear(self._normal(rng), rng, 1.5)
        return X, scores - 4.2

    def _noisy(self, rng: np.random.Generator):
        return self._linear(self._normal(rng), rng, 1.0)

    def _nearly_separable(self, rng: np.random.Generator):
        return self._linear(self._normal(rng), rng, 30.0)

    def _independent(self, rng: np.random.Generator):
        return self._linear(self._normal(rng), rng, 4.0)

    def _binary(self, rng: np.random.Generator):
        shares = rng.uniform(0.02, 0.5, self.d)
        return self._linear((rng.random((self.n, self.d)) < shares).astype(float), rng, 2.0)

    def _heavy_tails(self, rng: np.random.Generator):
        return self._linear(rng.standard_t(3.0, (self.n, self.d)), rng, 4.0)

    def _mixture(self, rng: np.random.Generator):
        centres = rng.standard_normal((3, self.d))
        X = centres[rng.integers(0, 3, self.n)] + self._normal(rng)
        X, scores = self._linear(X, rng, 3.0)
        return X, scores + 1.5 * X[:, 0] * X[:, 1]


@dataclass(frozen=True)
class WrongLabels(Problem):
    """Several classes, most of what can be learned hidden by labels drawn anew.

    The lowest hinge loss is about .94 of that of a trivial model. Uniform features: no constant was
    chosen on these data.
    """

    @property
    def name(self) -> str:
        return f"{super().name}, wrong labels"

    @property
    def conic_is_affordable(self) -> bool:
        return False

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng([7, self.n, self.d, self.n_classes])
        X = rng.uniform(-1.0, 1.0, (self.n, self.d))
        scores = X @ rng.standard_normal((self.d, self.n_classes))
        scores *= SCALE[self.n_classes] / scores.std()
        y = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
        anew = rng.random(self.n) < {4: 0.38, 10: 0.22}[self.n_classes]
        return X, np.where(anew, rng.integers(0, self.n_classes, self.n), y)


#: Kinds that constants may have been chosen on, and kinds that were looked at last.
KNOWN_KINDS = (
    "factors",
    "unscaled",
    "imbalanced",
    "noisy",
    "nearly separable",
    "independent",
    "binary",
)
UNSEEN_KINDS = ("heavy tails", "mixture")


@dataclass(frozen=True)
class Fit:
    """A robust model to train: satisficing, or the least worst loss within a radius."""

    name: str
    ambiguity: KL | Wasserstein
    loss: str = "cross_entropy"
    penalty: str | None = "l2"
    radius: float | None = None
    slack: float | None = None

    @property
    def norm(self) -> float | None:
        return getattr(self.ambiguity, "norm", None)

    @property
    def label_cost(self) -> float:
        return getattr(self.ambiguity, "label_cost", inf)

    def run(self, X, y) -> SatisficingClassifier | DROClassifier:
        options = {"penalty": self.penalty, "alpha": ALPHA, "tol": TOL}
        if self.radius is not None:
            return DROClassifier(self.loss, self.ambiguity, radius=self.radius, **options).fit(X, y)
        target = {"target_ratio": RATIO} if self.penalty else {"slack": SLACK}
        if self.slack is not None:
            target = {"slack": self.slack}
        return SatisficingClassifier(self.loss, self.ambiguity, **target, **options).fit(X, y)

    def minimised(self, model) -> float:
        return model.fragility_ if self.radius is None else model.worst_loss_

    def asked(self, problem: Problem) -> float | None:
        """Most fits of the other model that it may cost: see the sections of `training.py`."""
        binary, large = problem.n_classes == 2, 2 if problem.n >= 100_000 else 1
        if self.radius is not None or self.penalty == "l1" or (not binary and problem.n < 2_000):
            return None
        if self.label_cost < inf:
            return 5.0 if binary and self.loss == "cross_entropy" else None
        if self.loss == "hinge":
            one = {None: 10.0, 2: 12.0}.get(self.norm)
            return 60.0 if not binary else None if one is None else one * large
        if self.loss != "cross_entropy":
            return None
        if binary and problem.n < problem.d:
            return 60.0 if self.norm in (1, inf) else None
        if not binary:
            return {None: 9.0, 1: 25.0, 2: 25.0, inf: 50.0}[self.norm]
        return {None: 4.0, 1: 15.0, 2: 9.0, inf: 15.0}[self.norm] * large

    def reference(self, X, y, target: float, limit: float) -> Conic:
        """The same program, solved by cvxpy and Clarabel."""
        return conic(
            X,
            y,
            loss=self.loss,
            norm=self.norm,
            label_cost=self.label_cost,
            target=target,
            radius=self.radius,
            penalty=self.penalty,
            alpha=ALPHA,
            limit=limit,
        )

    def with_labels_at(self, shares: dict[str, float], X, y) -> list[Fit]:
        """The same with labels that move, at shares of the highest price that any would pay.

        Binary cross-entropy: another label adds the margin to the loss of a sample, and pays if
        that is above k times its price; k is that of the model whose labels do not move.
        """
        model = self.run(X, y)
        margins = model.decision_function(X) * np.where(y == 1, 1.0, -1.0)
        highest = float(margins.max()) / model.fragility_
        return [
            replace(
                self,
                name=f"{self.name}, {name}",
                ambiguity=replace(self.ambiguity, label_cost=share * highest),
            )
            for name, share in shares.items()
        ]


AMBIGUITIES = {
    "KL": KL(),
    "W ℓ2": Wasserstein(norm=2),
    "W ℓ1": Wasserstein(norm=1),
    "W ℓ∞": Wasserstein(norm=inf),
}
PENALISED = [Fit(name, ambiguity) for name, ambiguity in AMBIGUITIES.items()]
UNPENALISED = [replace(f, name=f"{f.name}, no penalty", penalty=None) for f in PENALISED]
LASSO = [replace(f, name=f"{f.name}, ℓ1 penalty", penalty="l1") for f in PENALISED]


def _of_loss(name: str) -> list[Fit]:
    shown = name.replace("_", " ")
    return [replace(f, name=f"{f.name}, {shown}", loss=name) for f in PENALISED]


HINGE, SMOOTHED_HINGE, MAX_LOGISTIC = map(_of_loss, ("hinge", "smoothed_hinge", "max_logistic"))
#: Where little can be learned a tenth more than the lowest loss is more than a trivial model has.
HINGE_BY_SLACK = [replace(fit, name=f"{fit.name}, slack {SLACK:g}", slack=SLACK) for fit in HINGE]
#: ℓ∞ moves every feature at once: the same radius is a far larger ball.
BALLS = [
    replace(f, name=f"{f.name}, radius {r:g}", radius=r)
    for f, r in zip(PENALISED, (0.1, 0.1, 0.1, 0.02), strict=True)
]
