"""Training problems of the golden bank beyond the 400 programs, as plain values.

A problem says how its samples are size (`samples`) and what is fitted to them, by the words that
`tests.golden.ask` understands. Nothing here calls the library.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Problem = dict[str, Any]

KL = {"kind": "kl"}


def wasserstein(norm: float = 2, **settings: Any) -> dict[str, Any]:
    """Describe a Wasserstein ambiguity."""
    return {"kind": "wasserstein", "norm": norm, **settings}


def transport(cost: Any, **settings: Any) -> dict[str, Any]:
    """Describe a general transport cost."""
    return {"kind": "transport", "cost": cost, **settings}


W1, W2, WINF = wasserstein(1), wasserstein(2), wasserstein(inf)


def data(seed: int, n: int = 80, d: int = 4, classes: int = 2, **more: Any) -> dict[str, Any]:
    """Describe a sample of labelled points; `samples` draws it."""
    return {"seed": seed, "n": n, "d": d, "classes": classes, **more}


def samples(description: dict[str, Any]) -> tuple[Any, NDArray[Any], NDArray[Any] | None]:
    """Draw features, labels (or values, if `outputs` is description) and weights, or None.

    Two features tell the classes apart, each has its own spread, and a share of the labels
    (`flips`, a tenth) is size anew. Other keys: `shares` of the classes, `gap` between their
    means, `density` of a sparse matrix, `weights`, `clip` (features stay within this distance from
    zero), `columns` that are constant or copies.
    """
    n, d, n_classes = description["n"], description["d"], description["classes"]
    rng = np.random.default_rng([75, description["seed"]])
    shares = description.get("shares", np.full(n_classes, 1.0 / n_classes))
    y = np.r_[np.arange(n_classes), rng.choice(n_classes, n - n_classes, p=shares)]
    X = rng.standard_normal((n, d))
    gap = description.get("gap", 1.0)
    X[:, 0] += 1.2 * gap * y
    X[:, -1] -= 1.5 * gap * (y == 1)
    flip = rng.random(n) < description.get("flips", 0.1)
    flip[:n_classes] = False
    y[flip] = rng.integers(0, n_classes, flip.sum())
    X *= np.exp(0.5 * rng.standard_normal(d))
    if "clip" in description:
        X = np.clip(X, -description["clip"], description["clip"])
    if description.get("columns") == "constant":
        X[:, 1] = 3.0
    elif description.get("columns") == "copies":
        X[:, 1] = X[:, 0]
    if "density" in description:
        X = csr_array(np.where(rng.random((n, d)) < description["density"], X, 0.0))
    weight = _weights(description.get("weights"), n, n_classes, rng)
    if "outputs" in description:
        slopes = rng.standard_normal((d, description["outputs"]))
        y = X @ slopes + 0.5 * rng.standard_t(3, (n, description["outputs"])) + 2.0
        y = y[:, 0] if description["outputs"] == 1 else y
    return X, y, weight


def _weights(
    kind: str | None, n: int, n_classes: int, rng: np.random.Generator
) -> NDArray[Any] | None:
    if kind is None:
        return None
    if kind == "counts":
        return rng.integers(1, 4, n).astype(float)
    if kind == "wide":
        return np.exp(2.0 * rng.standard_normal(n))
    weight = np.ones(n)
    some = rng.random(n) < 0.3
    some[:n_classes] = False
    weight[some] = {"zeros": 0.0, "tiny": 1e-9}[kind]
    return weight


def problem(
    sample: dict[str, Any],
    loss: Any = "cross_entropy",
    ambiguity: dict[str, Any] | None = None,
    estimator: str = "satisficing",
    **options: Any,
) -> Problem:
    """Describe an estimator and its data; a slack of 0.2 if no target is given."""
    has_target = bool({"target", "target_ratio", "slack"} & set(options))
    if estimator in ("satisficing", "regression") and not has_target:
        options["slack"] = 0.2
    description: Problem = {"data": sample, "estimator": estimator, "options": options}
    if estimator != "regression":
        description["loss"] = loss
    if estimator != "erm":
        description["ambiguity"] = W2 if ambiguity is None else ambiguity
    return description


MATRIX = [[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 1.5]]
ROUND = [[0.05, 0.0, 0.0], [0.0, 0.06, 0.0], [0.0, 0.0, 0.05]]
CORNERS = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0], [0, -1, 0], [0, 0, -1], [1, 1, 1]]
BOX = {"kind": "box", "lower": -2.0, "upper": 2.0}
UNEVEN_BOX = {"kind": "box", "lower": [-2.0, -2.5, -2.0], "upper": [2.0, 2.0, 3.0]}
OPEN_BOX = {"kind": "box", "lower": [-2.0, -2.0, -2.0], "upper": [2.0, inf, 2.0]}
POLYTOPE = {"kind": "polytope", "C": CORNERS, "d": [2.1] * 6 + [6.2]}
ELLIPSOID = {"kind": "ellipsoid", "centre": [0.0, 0.1, 0.0], "matrix": ROUND}
FLAT = {"kind": "ellipsoid", "centre": [0.0, 0.0], "matrix": [[0.1, 0.0], [0.0, 0.1]]}
PRODUCT = {
    "kind": "product",
    "parts": [[[0], {"kind": "box", "lower": -2.0, "upper": 2.5}], [[1, 2], FLAT]],
}
SQUARED = {"kind": "squared_norm", "norm": 2}
PAIRS = {2: [[0, 1], [4, 0]], 3: [[0, 1, 2], [1, 0, 0.5], [5, 3, 0]]}
#: A false alarm dearer than a miss, in two slopes each.
PIECES = {
    "kind": "piecewise_linear",
    "a": [[0, 1, 2], [0, -0.5, -1]],
    "b": [[0, 0.5, 0], [0, 0.5, 1]],
}


def _with_radius() -> Iterator[Problem]:
    """Radii below and above the least one at which the fragility is not zero."""
    ridge = {"penalty": "l2", "alpha": 0.01}
    yield problem(data(1), "cross_entropy", W2, radius=0.045)
    yield problem(data(2, classes=3), "cross_entropy", W2, radius=0.16, **ridge)
    yield problem(data(3), "hinge", W1, radius=0.25, **ridge)
    yield problem(data(4, classes=3), "hinge", WINF, radius=0.09)
    yield problem(data(5), "cross_entropy", KL, radius=0.011)
    yield problem(data(6), "hinge", KL, radius=0.008, **ridge)
    yield problem(data(7), "cross_entropy", wasserstein(2, label_cost=1.0), radius=0.04)
    yield problem(data(8), "cross_entropy", W2, radius=1e-4)


def _feature_weights() -> Iterator[Problem]:
    weight = [0.2, 1.0, 3.0, 0.7]
    yield problem(data(11), "cross_entropy", wasserstein(2, feature_weight=weight))
    yield problem(data(12, classes=3), "hinge", wasserstein(1, feature_weight=weight))
    yield problem(data(13), "smoothed_hinge", wasserstein(inf, feature_weight=weight), penalty="l1")
    noise = {"sigma": [0.5, 0.1, 0.0, 1.0], "floor": 0.3}
    yield problem(data(14), "cross_entropy", wasserstein(2, from_noise=noise))
    yield problem(data(15), "hinge", wasserstein(1, from_noise=noise), target_ratio=1.2)
    weight = [0.5, inf, 2.0, 1.0]
    yield problem(data(16), "cross_entropy", wasserstein(2, feature_weight=weight))
    weight = [inf, 1.0, inf, 0.3]
    yield problem(data(17), "hinge", wasserstein(1, feature_weight=weight), slack=0.3)
    yield problem(
        data(18, classes=3),
        "cross_entropy",
        wasserstein(inf, feature_weight=weight),
        penalty="l2",
        alpha=0.01,
    )
    weight = [1e-6, 1.0, 1e6, 1.0]
    yield problem(data(19), "cross_entropy", wasserstein(2, feature_weight=weight))
    yield problem(data(20), "hinge", wasserstein(2, feature_weight=[1e-3, 1e-3, 1e-3, 1e-3]))


def _label_costs() -> Iterator[Problem]:
    for seed, (loss, norm, cost, classes) in enumerate(
        [
            ("cross_entropy", 2, 0.3, 3),
            ("cross_entropy", 1, 1.0, 4),
            ("hinge", 2, 1.0, 3),
            ("hinge", inf, 3.0, 4),
            ("smoothed_hinge", 2, 0.5, 3),
            ("cross_entropy", 2, 5.0, 3),
        ]
    ):
        ambiguity = wasserstein(norm, label_cost=cost)
        yield problem(data(21 + seed, classes=classes), loss, ambiguity)


def _sparse() -> Iterator[Problem]:
    size = {"n": 150, "d": 30, "density": 0.2}
    yield problem(data(31, **size), "cross_entropy", W2, penalty="l2", alpha=0.01)
    yield problem(data(32, **size), "hinge", W1, penalty="l2", alpha=0.01)
    yield problem(data(33, **size), "cross_entropy", KL, penalty="l2", alpha=0.01)
    yield problem(
        data(34, classes=3, **size), "cross_entropy", wasserstein(2, label_cost=1.0), slack=0.3
    )
    yield problem(data(35, classes=3, **size), "smoothed_hinge", WINF, penalty="l1", alpha=0.01)


def _more_features_than_samples() -> Iterator[Problem]:
    size = {"n": 40, "d": 80}
    yield problem(data(41, **size), "cross_entropy", W2, penalty="l2", alpha=0.01)
    yield problem(data(42, **size), "hinge", W2)
    yield problem(data(43, **size), "cross_entropy", KL, penalty="l2", alpha=0.1)
    yield problem(data(44, classes=3, **size), "hinge", W1, penalty="l1", alpha=0.01)
    yield problem(data(45, classes=3, **size), "cross_entropy", W2)
    yield problem(data(46, **size), "hinge", W1, "dro", radius=0.05, penalty="l2", alpha=0.01)


def _many_samples() -> Iterator[Problem]:
    size = {"n": 10_000, "d": 6}
    yield problem(data(51, **size), "cross_entropy", W2)
    yield problem(data(52, **size), "hinge", W2, penalty="l2", alpha=0.01)
    yield problem(data(53, classes=3, **size), "cross_entropy", KL, penalty="l2", alpha=0.01)


def _sample_weights() -> Iterator[Problem]:
    yield problem(data(61, weights="zeros"), "cross_entropy", W2)
    yield problem(data(62, weights="zeros", classes=3), "hinge", W1, penalty="l2", alpha=0.01)
    yield problem(data(63, weights="tiny"), "cross_entropy", W2)
    yield problem(data(64, weights="tiny"), "cross_entropy", KL, penalty="l2", alpha=0.01)
    yield problem(data(65, weights="wide"), "hinge", W2)
    yield problem(data(66, weights="wide", classes=3), "cross_entropy", W2)
    yield problem(data(67), "cross_entropy", W2, class_weight="balanced")
    yield problem(data(68, weights="counts"), "hinge", W1, class_weight={"0": 1.0, "1": 3.0})


def _pair_costs() -> Iterator[Problem]:
    def costly(kind: str, classes: int, **more: Any) -> dict[str, Any]:
        return {"kind": kind, "pair_cost": PAIRS[classes], **more}

    yield problem(data(71), costly("cross_entropy", 2), W2)
    yield problem(data(72, classes=3), costly("cross_entropy", 3), W2)
    yield problem(data(73, classes=3), costly("cross_entropy", 3), KL, penalty="l2", alpha=0.01)
    yield problem(data(74), costly("hinge", 2), W1)
    yield problem(data(75, classes=3), costly("hinge", 3), W2, penalty="l2", alpha=0.01)
    yield problem(data(76, classes=3), costly("smoothed_hinge", 3, smoothing=0.5), WINF)
    yield problem(data(77), costly("max_logistic", 2), wasserstein(2, label_cost=1.0))
    yield problem(data(78, classes=3), costly("hinge", 3), W2, "dro", radius=0.05)


def _transport_costs() -> Iterator[Problem]:
    size = {"n": 50, "d": 3, "clip": 2.0}
    yield problem(data(81, **size), "cross_entropy", transport(SQUARED))
    yield problem(data(82, **size), "hinge", transport(SQUARED))
    yield problem(
        data(83, classes=3, **size), "hinge", transport({"kind": "squared_norm", "norm": 1})
    )
    yield problem(data(84, **size), "hinge", transport({"kind": "power", "p": 1.5, "norm": 2}))
    yield problem(data(85, **size), "hinge", transport({"kind": "power", "p": 3.0, "norm": 1}))
    yield problem(data(86, **size), PIECES, transport({"kind": "huber", "delta": 0.3, "norm": 2}))
    mahalanobis = {"kind": "mahalanobis", "matrix": MATRIX}
    yield problem(data(87, **size), "cross_entropy", transport(mahalanobis))
    yield problem(data(88, **size), "hinge", transport(mahalanobis), penalty="l2", alpha=0.01)
    yield problem(
        data(89, **size), "hinge", transport({"kind": "squared_norm", "norm": mahalanobis})
    )
    yield problem(data(90, **size), PIECES, transport({"kind": "norm", "order": inf}))
    yield problem(
        data(91, **size),
        "hinge",
        transport({"kind": "squared_norm", "norm": inf}, feature_weight=[1.0, 3.0, inf]),
    )
    yield problem(data(92, **size), "cross_entropy", transport(SQUARED, label_cost=0.7))
    yield problem(data(93, **size), "hinge", transport(SQUARED, label_cost=0.7))
    yield problem(data(94, **size), "hinge", transport(SQUARED), "dro", radius=0.05)


def _supports() -> Iterator[Problem]:
    size = {"n": 50, "d": 3, "clip": 2.0}
    norms = {order: {"kind": "norm", "order": order} for order in (1, 2, inf)}
    slack = {"slack": 0.3}
    yield problem(
        data(101, **size), "cross_entropy", transport(norms[1], support=UNEVEN_BOX), **slack
    )
    yield problem(data(102, **size), "hinge", transport(norms[1], support=BOX), **slack)
    yield problem(data(103, **size), "hinge", transport(SQUARED, support=BOX), **slack)
    yield problem(data(104, **size), PIECES, transport(norms[2], support=OPEN_BOX), **slack)
    yield problem(data(105, **size), "hinge", transport(norms[inf], support=POLYTOPE), **slack)
    yield problem(data(106, **size), "hinge", transport(SQUARED, support=POLYTOPE), **slack)
    yield problem(data(107, **size), "hinge", transport(norms[2], support=ELLIPSOID), **slack)
    yield problem(data(108, **size), PIECES, transport(SQUARED, support=ELLIPSOID), **slack)
    clipped = {**size, "clip": 1.8}
    yield problem(data(109, **clipped), "hinge", transport(norms[1], support=PRODUCT), **slack)
    yield problem(
        data(110, classes=3, **size),
        "hinge",
        transport(norms[1], support=BOX, label_cost=0.6),
        **slack,
    )


def _lipschitz_losses() -> Iterator[Problem]:
    size = {"n": 60, "d": 3}
    bounded = {"kind": "lipschitz", "of": "cross_entropy"}
    yield problem(data(121, **size), bounded, W2)
    yield problem(data(122, classes=3, **size), bounded, W2)
    yield problem(data(123, classes=3, **size), {**bounded, "operator_norm": "frobenius"}, W2)
    yield problem(data(124, classes=3, **size), {"kind": "lipschitz", "of": "hinge"}, W1)
    distance = {"kind": "lipschitz", "of": "distance to the class", "lipschitz": 1.0}
    yield problem(data(125, classes=3, **size), distance, W2)


def _regressions() -> Iterator[Problem]:
    size = {"n": 60, "d": 4, "outputs": 1}
    two = {**size, "outputs": 2}
    yield problem(data(131, **size), ambiguity=W2, estimator="regression")
    yield problem(data(132, **size), ambiguity=W1, estimator="regression", target_ratio=1.1)
    yield problem(data(133, **size), ambiguity=WINF, estimator="regression", target=2.5)
    yield problem(
        data(134, weights="counts", **size),
        ambiguity=W2,
        estimator="regression",
        penalty="l2",
        alpha=0.01,
    )
    yield problem(data(135, **two), ambiguity=W2, estimator="regression")
    yield problem(data(136, **two), ambiguity=W1, estimator="regression", slack=0.05)
    weighted = wasserstein(2, feature_weight=[1.0, inf, 0.5, 2.0])
    yield problem(data(137, **size), ambiguity=weighted, estimator="regression")
    yield problem(data(138, **size), ambiguity=W2, estimator="regression", fit_intercept=False)


def _paper_labels() -> Iterator[Problem]:
    def paper(norm: float, cost: float) -> dict[str, Any]:
        return wasserstein(norm, label_cost=cost, label_term="paper")

    yield problem(data(141), "cross_entropy", paper(2, 8.0), fit_intercept="priced")
    yield problem(data(142), "hinge", paper(2, 8.0), fit_intercept="priced")
    yield problem(data(143), "cross_entropy", paper(1, 9.0), fit_intercept=False)
    yield problem(
        data(144, classes=3),
        "cross_entropy",
        paper(2, 6.0),
        fit_intercept="priced",
        penalty="l2",
        alpha=0.01,
    )
    yield problem(data(145), "cross_entropy", paper(2, 100.0), fit_intercept="priced")


def _kl_hinges() -> Iterator[Problem]:
    yield problem(data(151), "hinge", KL)
    yield problem(data(152, classes=3), "hinge", KL)
    yield problem(data(153, classes=4), "hinge", KL, penalty="l2", alpha=0.01)
    yield problem(data(154, classes=3), "hinge", KL, penalty="l1", alpha=0.01)
    yield problem(data(155, weights="counts"), "hinge", KL, target_ratio=1.1)
    yield problem(data(156, classes=3), "smoothed_hinge", KL, penalty="l2", alpha=0.01)
    yield problem(data(157, classes=3), "max_logistic", KL, penalty="l2", alpha=0.01)
    yield problem(data(158, gap=4.0, flips=0.0), "cross_entropy", KL)


def _intercepts() -> Iterator[Problem]:
    seed = 160
    for intercept in (False, "priced"):
        for loss, ambiguity in (
            ("cross_entropy", W2),
            ("hinge", W1),
            ("cross_entropy", KL),
            ("smoothed_hinge", wasserstein(2, label_cost=1.0)),
        ):
            seed += 1
            yield problem(
                data(seed), loss, ambiguity, fit_intercept=intercept, penalty="l2", alpha=0.01
            )
    yield problem(data(169, classes=3), "cross_entropy", W2, fit_intercept="priced")
    yield problem(data(170, classes=3), "hinge", W2, fit_intercept=False)


def _targets() -> Iterator[Problem]:
    for seed, target in enumerate(
        [
            {"slack": 0.05},
            {"slack": 0.9},
            {"target_ratio": 1.01},
            {"target_ratio": 1.5},
            {"target": 0.5},
            {"target": 0.69},
            {"target": 5.0},
            {"slack": 1e-8},
        ]
    ):
        yield problem(data(171 + seed), "cross_entropy", W2, **target)
    yield problem(data(179), "hinge", W2, target=0.6)
    yield problem(data(180, gap=5.0, flips=0.0), "hinge", W2, target=0.0)
    yield problem(data(181), "cross_entropy", KL, target=0.6)
    yield problem(data(182), "hinge", W2, penalty="l1", alpha=10.0)
    yield problem(data(226), "cross_entropy", wasserstein(2, feature_weight=[inf] * 4))


def _robust() -> Iterator[Problem]:
    yield problem(data(191), "cross_entropy", W2, "dro", radius=0.01)
    yield problem(data(192, classes=3), "cross_entropy", W2, "dro", radius=0.1)
    yield problem(data(193), "hinge", W1, "dro", radius=0.1)
    yield problem(data(194), "cross_entropy", KL, "dro", radius=0.1, penalty="l2", alpha=0.01)
    yield problem(data(195, classes=3), "hinge", KL, "dro", radius=0.05, penalty="l2", alpha=0.01)
    yield problem(data(196), "cross_entropy", wasserstein(2, label_cost=1.0), "dro", radius=0.05)
    yield problem(data(197), "cross_entropy", W2, "dro", radius=10.0)


def _lowest_losses() -> Iterator[Problem]:
    yield problem(data(201), "cross_entropy", estimator="erm", penalty=None)
    yield problem(data(202, classes=3), "cross_entropy", estimator="erm", alpha=0.01)
    yield problem(data(203), "cross_entropy", estimator="erm", penalty="l1", alpha=0.01)
    yield problem(data(204), "hinge", estimator="erm", alpha=0.01)
    yield problem(data(205, classes=3), "smoothed_hinge", estimator="erm", alpha=0.01)
    yield problem(data(206), "max_logistic", estimator="erm", penalty=None)
    yield problem(data(208), "cross_entropy", estimator="erm", fit_intercept="priced")


def _other_losses() -> Iterator[Problem]:
    yield problem(data(211), "max_logistic", W2)
    yield problem(data(212, classes=3), "max_logistic", W1, penalty="l2", alpha=0.01)
    yield problem(data(213), {"kind": "smoothed_hinge", "smoothing": 0.25}, W2)
    yield problem(data(214, classes=3), {"kind": "smoothed_hinge", "smoothing": 2.0}, W2)
    yield problem(data(215, columns="constant"), "cross_entropy", W2)
    yield problem(data(216, columns="copies"), "cross_entropy", W1, penalty="l2", alpha=0.01)
    yield problem(data(217, shares=[0.99, 0.01]), "hinge", W2)
    yield problem(data(218, n=5, d=4), "cross_entropy", W2, penalty="l2", alpha=0.1)


def _refused() -> Iterator[Problem]:
    yield problem(data(221), "cross_entropy", W2, target=0.01)
    yield problem(data(222), "cross_entropy", W2, target_ratio=0.9)
    yield problem(data(223), "cross_entropy", W2, slack=1.5)
    yield problem(data(224), "cross_entropy", W2, slack=0.1, target=0.5)
    yield problem(data(225, gap=5.0, flips=0.0), "cross_entropy", W2, target_ratio=1.1)
    yield problem(data(227), "cross_entropy", wasserstein(2, feature_weight=[1.0, 2.0]))
    paper = wasserstein(2, label_cost=1.0, label_term="paper")
    yield problem(data(228), "cross_entropy", paper)
    yield problem(data(229), "cross_entropy", paper, fit_intercept="priced")
    yield problem(data(230), {"kind": "hinge", "pair_cost": PAIRS[3]}, W2)
    yield problem(data(231), "cross_entropy", W2, "dro", radius=0.0)
    yield problem(data(232), "cross_entropy", W2, radius=-1.0)
    clipped = {"n": 50, "d": 3, "clip": 2.0}
    yield problem(data(233, classes=3, **clipped), "cross_entropy", transport(SQUARED, support=BOX))
    small = {"kind": "box", "lower": -1.0, "upper": 1.0}
    yield problem(data(234, **clipped), "hinge", transport(SQUARED, support=small))
    yield problem(data(235), {"kind": "lipschitz", "of": "hinge"}, KL)
    yield problem(data(236), "cross_entropy", W2, alpha=-1.0, penalty="l2")
    yield problem(data(237, outputs=1), ambiguity=KL, estimator="regression")


#: Every kind of problem that has an answer.
PROBLEMS = {
    "radius": _with_radius,
    "feature weights": _feature_weights,
    "label costs": _label_costs,
    "sparse": _sparse,
    "more features than samples": _more_features_than_samples,
    "many samples": _many_samples,
    "sample weights": _sample_weights,
    "pair costs": _pair_costs,
    "transport costs": _transport_costs,
    "supports": _supports,
    "Lipschitz losses": _lipschitz_losses,
    "regressions": _regressions,
    "paper's label term": _paper_labels,
    "KL losses": _kl_hinges,
    "intercepts": _intercepts,
    "targets": _targets,
    "robust": _robust,
    "lowest losses": _lowest_losses,
    "other losses": _other_losses,
    "refused": _refused,
}
#: Those of them that the conic extra solves.
CONIC = ("transport costs", "supports", "Lipschitz losses", "regressions")


def problems(kind: str) -> dict[str, Problem]:
    """Return the problems of a kind by name."""
    return {f"{kind} {i}": one for i, one in enumerate(PROBLEMS[kind]())}


def unique_parts(
    *,
    loss: Any,
    penalty: str | None,
    priced: bool,
    fragility: float | None,
    ball: bool,
    full_rank: bool,
) -> list[str]:
    """Return which of "coef" and "intercept" no other solution has otherwise.

    The penalised mean of a cross-entropy is strictly convex where features are independent, and
    with an l2 penalty any loss is, in what is penalised. Where the fragility of two classes is the
    length of the coefficients (`ball`), the middle of two solutions would be less fragile than
    both. A fragility of zero has many models. Coefficients of several classes count up to a common
    change.
    """
    if fragility is not None and not 0.0 < fragility < inf:
        return []
    ridge, curved = penalty == "l2", loss == "cross_entropy"
    parts = ["coef"] if ridge or ball or (curved and full_rank) else []
    if (curved and (ridge or full_rank)) or (ridge and priced):
        parts.append("intercept")
    return parts


def unique_parts_of(problem: Problem, fragility: float | None) -> list[str]:
    """Return the unique parts of the solution of a problem."""
    options, sample = problem["options"], problem["data"]
    ambiguity = problem.get("ambiguity", {})
    moves_labels = {"label_cost", "label_term"} & set(ambiguity)
    has_fixed_feature = inf in (ambiguity.get("feature_weight") or [])
    erm = problem["estimator"] == "erm"
    loss = problem.get("loss")
    return unique_parts(
        loss=loss["kind"] if isinstance(loss, dict) else loss,
        penalty=options.get("penalty", "l2" if erm else None),
        priced=options.get("fit_intercept") == "priced",
        fragility=fragility,
        ball=(
            ambiguity.get("kind") == "wasserstein"
            and ambiguity["norm"] == 2
            and sample["classes"] == 2
            and sample.get("outputs", 1) == 1
            and not moves_labels
            and not has_fixed_feature
            and "radius" not in options
        ),
        full_rank=sample["n"] > 4 * sample["d"] and "columns" not in sample,
    )


def out_of_fold_problems() -> dict[str, Problem]:
    """Return the problems whose target is the loss out of fold."""
    fits = []
    for loss in ("cross_entropy", "hinge"):
        shift = 0 if loss == "cross_entropy" else 20
        fits += [
            problem(data(301 + shift, n=120, d=4), loss, W2),
            problem(data(302 + shift, n=500, d=8), loss, W2),
            problem(data(303 + shift, n=300, d=20, flips=0.3), loss, W2),
            problem(data(304 + shift, n=60, d=30), loss, W2, penalty="l2", alpha=0.01),
            problem(data(305 + shift, n=480, d=5, shares=[23 / 24, 1 / 24]), loss, W2),
            problem(data(306 + shift, n=400, d=6, classes=5), loss, W2),
            problem(data(307 + shift, n=300, d=12, classes=5, flips=0.3), loss, W1),
            problem(data(308 + shift, n=200, d=6, weights="counts"), loss, KL, penalty="l2"),
            problem(data(309 + shift, n=200, d=6), loss, W2, fit_intercept="priced"),
            problem(data(310 + shift, n=150, d=5, gap=4.0, flips=0.0), loss, W2),
        ]
    for one in fits:
        del one["options"]["slack"]
    return {f"out of fold {i}": one for i, one in enumerate(fits)}


def chosen_problems() -> dict[str, Problem]:
    """Return the problems whose target and penalty are chosen by cross-validation."""
    choices = [
        problem(data(351, n=150, d=5), "cross_entropy", W2, "cv"),
        problem(data(352, n=150, d=5, classes=3), "cross_entropy", W2, "cv"),
        problem(data(353, n=120, d=10, flips=0.3), "hinge", W1, "cv", scoring="accuracy"),
        problem(data(354, n=150, d=5), "cross_entropy", W2, "cv", scoring="neg_log_loss"),
        problem(
            data(355, n=150, d=5),
            "cross_entropy",
            KL,
            "cv",
            target_ratios=[1.05, 1.1, 1.3],
            alphas=[0.001, 0.01, 0.1],
            scoring="neg_log_loss",
        ),
        problem(
            data(356, n=120, d=4, weights="counts"),
            "smoothed_hinge",
            wasserstein(2, label_cost=2.0),
            "cv",
            slacks=[0.05, 0.2, 0.5],
            penalty="l1",
            alphas=[0.001, 0.01],
        ),
    ]
    return {f"chosen {i}": one for i, one in enumerate(choices)}


def path_problems() -> dict[str, Problem]:
    """Return the problems of which a path of targets is solved."""
    paths = [
        problem(data(371), "cross_entropy", W2, "path"),
        problem(data(372, classes=3), "hinge", W1, "path", slacks=[0.05, 0.2, 0.5, 0.9]),
        problem(data(373), "cross_entropy", KL, "path", penalty="l2", alpha=0.01),
        problem(data(374), "smoothed_hinge", W2, "path", targets=[0.32, 0.37, 0.42]),
    ]
    return {f"path {i}": one for i, one in enumerate(paths)}


def comparable(entry: dict[str, Any], unique: list[str], centred: bool = True) -> dict[str, Any]:
    """Return an answer with its unique coefficients and intercepts as one "solution".

    What is not unique is left out. A change of the coefficients that is common to several classes
    changes no prediction: it is taken out (`centred`).
    """
    others = {name: value for name, value in entry.items() if name not in ("coef", "intercept")}
    solution: list[float] = []
    for name in unique:
        values = np.asarray(entry[name], dtype=np.float64)
        if centred and len(entry["intercept"]) > 1:
            values = values - values.mean(axis=0)
        solution += np.ravel(values).tolist()
    return others | {"solution": solution}
