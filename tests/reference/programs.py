"""The training programs from their definitions, solved as cone programs by Clarabel.

Two classes have one row of coefficients, that of the second class; more have one row each. R is
alpha times the sum of the squares of all coefficients, or of their absolute values. The intercept
is in no norm and not in R. A loss is a function of gaps g_c = u_c - u_y to the wrong classes (n
rows, C - 1 columns).

A shift costs D; sup_P E_P ℓ - k D is, with a the weights of the samples,

    KL            k ln Σ a_n exp(ℓ_n / k)
    Wasserstein   Σ a_n max_y {ℓ(u_n, y) - k γ 1(y ≠ y_n)}   if ‖β_i - β_j‖_* <= k, else infinite
"""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np


class _Cvxpy:
    """Imported with the first program: most tests that could solve one need none."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # pytest looks at what modules hold
            raise AttributeError(name)
        import cvxpy

        return getattr(cvxpy, name)


cp = _Cvxpy()

DUAL = {1: "inf", 2: 2, np.inf: 1}


class Reference(NamedTuple):
    """A solved program; `value` is the least k, the least loss or the least sum of squares.

    `price` is the price λ of a shift within a ball.
    """

    value: float
    coef: np.ndarray
    intercept: np.ndarray
    status: str
    price: float = np.nan

    @property
    def k(self):
        return self.value


def cross_entropy(gaps):
    """log(Σ_c exp(u_c) / exp(u_y)), with exp(0) for the true class itself."""
    n, wrong = gaps.shape
    if wrong == 1:
        return cp.logistic(gaps[:, 0])
    return cp.log_sum_exp(cp.hstack([np.zeros((n, 1)), gaps]), axis=1)


def smoothed_hinge(gaps, smoothing=1.0):
    """The maximum over shares a of wrong classes of Σ a_c z_c - γ/2 Σ a_c², z = 1 + g.

    With a price t >= 0 for the constraint Σ a_c <= 1 each share is chosen by itself,
    max_a a (z - t) - γ/2 a² = (z - t)₊² / 2γ, so the loss is min_t t + Σ_c (z_c - t)₊² / 2γ:
    t is one more variable of the program.
    """
    n, wrong = gaps.shape
    price = cp.Variable((n, 1), nonneg=True)
    beyond = cp.pos(1 + gaps - price @ np.ones((1, wrong)))
    return price[:, 0] + cp.sum(cp.square(beyond), axis=1) / (2 * smoothing)


def hinge(gaps):
    """max(0, max_c 1 + g_c)."""
    return cp.pos(1 + cp.max(gaps, axis=1))


def max_logistic(gaps):
    """max_c ln(1 + exp(g_c)); the logarithm grows with the gap, and so the largest decides."""
    return cp.logistic(cp.max(gaps, axis=1))


LOSSES = {
    "cross_entropy": cross_entropy,
    "smoothed_hinge": smoothed_hinge,
    "hinge": hinge,
    "max_logistic": max_logistic,
}


def costly_cross_entropy(gaps, costs):
    """ln(1 + Σ_c cost exp(g_c)), with exp(g + ln cost) for each term of the sum."""
    return cross_entropy(gaps + np.log(costs))


def costly_smoothed_hinge(gaps, costs, smoothing=1.0):
    """As without costs, with z = cost (1 + g)."""
    price = cp.Variable((gaps.shape[0], 1), nonneg=True)
    short = cp.multiply(costs, 1 + gaps)
    beyond = cp.pos(short - price @ np.ones((1, gaps.shape[1])))
    return price[:, 0] + cp.sum(cp.square(beyond), axis=1) / (2 * smoothing)


def costly_hinge(gaps, costs):
    """max(0, max_c cost (1 + g_c))."""
    return cp.pos(cp.max(cp.multiply(costs, 1 + gaps), axis=1))


def costly_max_logistic(gaps, costs):
    """max_c cost ln(1 + exp(g_c))."""
    return cp.max(cp.multiply(costs, cp.logistic(gaps)), axis=1)


COSTLY = {
    "cross_entropy": costly_cross_entropy,
    "smoothed_hinge": costly_smoothed_hinge,
    "hinge": costly_hinge,
    "max_logistic": costly_max_logistic,
}


class Model(NamedTuple):
    """Variables of a linear model and what follows from them.

    `relabelled` are the losses at each of the labels that a sample does not have; `slopes` is the
    largest slope of the loss of each class in the gap to each other one.
    """

    coef: Any
    intercept: Any
    losses: Any
    relabelled: list
    penalty: Any
    mean_loss: Any
    shares: np.ndarray
    gauge: list
    slopes: np.ndarray


def linear_model(
    X,
    y,
    n_classes,
    loss,
    *,
    alpha=0.0,
    penalty_kind="l2",
    fit_intercept=True,
    weights=None,
    n_rows=None,
    pair_cost=None,
):
    """`loss` is a name or a function of gaps; `n_rows=2` gives two classes a row each.

    `pair_cost` has the cost of each class taken for each other one: true × taken for.
    """
    X, y = np.asarray(X, float), np.asarray(y)
    n, d = X.shape
    n_rows = n_rows or (1 if n_classes == 2 else n_classes)
    shares = np.full(n, 1 / n) if weights is None else np.asarray(weights, float) / np.sum(weights)
    coef, intercept = cp.Variable((n_rows, d)), cp.Variable((1, n_rows))
    scores = X @ coef.T + np.ones((n, 1)) @ intercept
    of_gaps = LOSSES[loss] if isinstance(loss, str) else loss
    slopes = np.ones((n_classes, n_classes))
    if pair_cost is not None:
        table = np.asarray(pair_cost, float)
        slopes = slopes if loss == "cross_entropy" else table

        def of_labels(labels):
            others = [[c for c in range(n_classes) if c != label] for label in labels]
            gaps = gaps_to_others(scores, labels, n_classes)
            return COSTLY[loss](gaps, np.take_along_axis(table[labels], np.array(others), axis=1))
    else:

        def of_labels(labels):
            return of_gaps(gaps_to_others(scores, labels, n_classes))

    losses, *relabelled = [of_labels((y + step) % n_classes) for step in range(n_classes)]
    gauge = [] if fit_intercept else [intercept == 0]
    if n_rows > 1:
        # The same vector on every row changes no gap. A sum of squares is least where the rows sum
        # to zero; one of absolute values is least at their medians, which it finds by itself.
        gauge.append(cp.sum(intercept) == 0)
        if not (alpha and penalty_kind == "l1"):
            gauge.append(cp.sum(coef, axis=0) == 0)
    size = {"l1": cp.sum(cp.abs(coef)), "l2": cp.sum_squares(coef)}[penalty_kind]
    penalty = alpha * size if alpha else cp.Constant(0.0)
    mean_loss = shares @ losses
    return Model(coef, intercept, losses, relabelled, penalty, mean_loss, shares, gauge, slopes)


def gaps_to_others(scores, labels, n_classes):
    """u_c - u_y to the classes c other than the label y."""
    if scores.shape[1] == 1:
        return cp.multiply(np.where(labels == 1, -1.0, 1.0)[:, None], scores)
    others = np.array([[c for c in range(n_classes) if c != label] for label in labels])
    one_hot = np.eye(n_classes)
    columns = [
        cp.sum(cp.multiply(one_hot[column] - one_hot[labels], scores), axis=1, keepdims=True)
        for column in others.T
    ]
    return cp.hstack(columns)


# Shorter steps save exponential cones that stall; only then are the tolerances let go.
ATTEMPTS = [
    {"max_step_fraction": step, "tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol}
    for tol in (1e-11, 1e-10, 1e-9, 1e-8)
    for step in (0.99, 0.9, 0.8)
]


def solved(objective, constraints, model, price=None):
    problem = cp.Problem(cp.Minimize(objective), constraints + model.gauge)
    for settings in ATTEMPTS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "may be inaccurate": then the next attempt
                problem.solve(solver=cp.CLARABEL, **settings)
        except cp.SolverError:
            continue
        if problem.status in ("optimal", "infeasible", "unbounded"):
            break
    if problem.status != "optimal":
        raise RuntimeError(f"the reference was not solved: {problem.status}")
    status = f"optimal to {settings['tol_gap_rel']:g}, steps {settings['max_step_fraction']}"
    return Reference(
        float(problem.value),
        model.coef.value,
        model.intercept.value[0],
        status,
        np.nan if price is None else float(price.value),
    )


def erm(X, y, n_classes, loss, **options):
    """min mean ℓ + R."""
    model = linear_model(X, y, n_classes, loss, **options)
    return solved(model.mean_loss + model.penalty, [], model)


def within_reach(model, k, norm, feature_weight=None, steepness=1.0):
    """steepness ‖(β_i - β_j) / feature_weight‖_* <= k for each pair of classes.

    Times the slope of each class taken for each other one; all classes are labels.
    """
    coef, n_rows = model.coef, model.coef.shape[0]
    mobility = 1 / np.asarray(np.ones(coef.shape[1]) if feature_weight is None else feature_weight)
    sizes = {
        (i, j): cp.norm(cp.multiply(mobility, coef[0] if n_rows == 1 else coef[i] - coef[j]), dual)
        for (i, j) in combinations(range(len(model.slopes)), 2)
        for dual in [DUAL[norm]]
    }
    steepest = {(i, j): max(model.slopes[i, j], model.slopes[j, i]) for i, j in sizes}
    return [steepness * steepest[pair] * size <= k for pair, size in sizes.items()]


def mean_of_worst_labels(model, k, label_cost):
    """Σ a_n max_y {ℓ(u_n, y) - k γ 1(y ≠ y_n)}, every label in turn."""
    if np.isinf(label_cost):
        return model.mean_loss
    flipped = [losses - label_cost * k for losses in model.relabelled]
    return model.shares @ cp.maximum(model.losses, *flipped)


def wasserstein(
    X,
    y,
    n_classes,
    loss,
    target,
    *,
    norm=2,
    label_cost=np.inf,
    feature_weight=None,
    steepness=1.0,
    **options,
):
    """min k s.t. Σ a_n max_y {...} + R <= target and ‖β_i - β_j‖_* <= k."""
    model = linear_model(X, y, n_classes, loss, **options)
    k = cp.Variable()
    constraints = within_reach(model, k, norm, feature_weight, steepness)
    worst = mean_of_worst_labels(model, k, label_cost)
    return solved(k, [*constraints, worst + model.penalty <= target], model)


def kl(X, y, n_classes, loss, target, **options):
    """min k s.t. k ln Σ a_n exp(ℓ_n / k) + R <= target.

    Divided by k and raised to the exponent: Σ a_n k exp((ℓ_n + R - target) / k) <= k.
    """
    model = linear_model(X, y, n_classes, loss, **options)
    n = model.shares.size
    k, losses, moments = cp.Variable(nonneg=True), cp.Variable(n), cp.Variable(n)
    penalty = cp.Variable()
    constraints = [
        model.penalty <= penalty,
        model.losses <= losses,
        cp.constraints.ExpCone(losses + penalty - target, k * np.ones(n), moments),
        model.shares @ moments <= k,
    ]
    return solved(k, constraints, model)


def log_moment(model, k):
    """A bound s >= k ln Σ a_n exp(ℓ_n / k), that is Σ a_n k exp((ℓ_n - s) / k) <= k."""
    n = model.shares.size
    bound, losses, moments = cp.Variable(), cp.Variable(n), cp.Variable(n)
    constraints = [
        model.losses <= losses,
        cp.constraints.ExpCone(losses - bound, k * np.ones(n), moments),
        model.shares @ moments <= k,
    ]
    return bound, constraints


def supremum(model, k, norm, label_cost):
    """sup_P E_P ℓ - k D and what it needs; `norm` is None for KL."""
    if norm is None:
        return log_moment(model, k)
    return mean_of_worst_labels(model, k, label_cost), within_reach(model, k, norm)


def dro(X, y, n_classes, loss, radius, *, norm=None, label_cost=np.inf, **options):
    """min λ radius + sup_P {E_P ℓ - λ D} + R over the model and λ >= 0; `norm=None` is KL."""
    model = linear_model(X, y, n_classes, loss, **options)
    price = cp.Variable(nonneg=True)
    worst, constraints = supremum(model, price, norm, label_cost)
    return solved(price * radius + worst + model.penalty, constraints, model, price)


def hybrid(X, y, n_classes, loss, target, radius, *, norm=None, label_cost=np.inf, **options):
    """min k >= 0 s.t. λ radius + sup_P {E_P ℓ - (k + λ) D} + R <= target for some λ >= 0.

    Let D be the value of `dro` at the radius and λ its price. Where target >= D, k is zero; down to
    target = D - λ radius it is (D - target) / radius; below it is the k without a radius.
    """
    model = linear_model(X, y, n_classes, loss, **options)
    k, price = cp.Variable(nonneg=True), cp.Variable(nonneg=True)
    worst, constraints = supremum(model, k + price, norm, label_cost)
    met = price * radius + worst + model.penalty <= target
    return solved(k, [*constraints, met], model, price)


def least_norm_meeting(X, y, n_classes, loss, target, **options):
    """min Σ coef² s.t. ℓ_n + R <= target for every sample that has a weight."""
    model = linear_model(X, y, n_classes, loss, **options)
    counted = np.flatnonzero(model.shares > 0)
    constraints = [model.losses[counted] + model.penalty <= target]
    return solved(cp.sum_squares(model.coef), constraints, model)


def least_largest_loss(X, y, n_classes, loss, **options):
    """min max_n ℓ_n + R over the samples that have a weight."""
    model = linear_model(X, y, n_classes, loss, **options)
    counted = np.flatnonzero(model.shares > 0)
    return solved(cp.max(model.losses[counted]) + model.penalty, [], model)
