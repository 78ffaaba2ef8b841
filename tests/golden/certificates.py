"""What is certified in the golden bank: given coefficients, trained models, measured shifts."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .training import (
    BOX,
    KL,
    PAIRS,
    SQUARED,
    W1,
    W2,
    WINF,
    Problem,
    data,
    problem,
    transport,
    wasserstein,
)

Case = dict[str, Any]


def certified() -> dict[str, Case]:
    """Return the certificates at given coefficients: data, loss, ambiguity, room, penalty.

    The target is `room` above the attained loss.
    """

    def case(sample: Any, loss: Any, ambiguity: Any, room: float = 0.2, **more: Any) -> Case:
        return {"data": sample, "loss": loss, "ambiguity": ambiguity, "room": room, **more}

    labels = wasserstein(2, label_cost=1.0)
    clipped = {"n": 40, "d": 3, "clip": 2.0}
    costly = {"kind": "hinge", "pair_cost": PAIRS[3]}
    weighted = wasserstein(1, feature_weight=[0.5, inf, 2.0, 1.0])
    counts = {"weights": "counts"}
    cases = [
        case(data(401), "cross_entropy", KL),
        case(data(402, classes=3, **counts), "hinge", KL),
        case(data(403), "cross_entropy", W1),
        case(data(404), "cross_entropy", W2, penalty=0.05),
        case(data(405), "hinge", WINF),
        case(data(406, classes=3), "cross_entropy", W2),
        case(data(407, classes=4), "smoothed_hinge", W1),
        case(data(408), "cross_entropy", labels),
        case(data(409, classes=3), "hinge", wasserstein(1, label_cost=0.5)),
        case(data(410), "hinge", W2, radius=0.1),
        case(data(411, **counts), "cross_entropy", KL, radius=0.05),
        case(data(412, classes=3, **counts), costly, labels),
        case(data(413), "cross_entropy", weighted),
        case(data(414), "cross_entropy", W2, room=-0.1),
        case(data(415, **clipped), "hinge", transport(SQUARED)),
        case(data(416, **clipped), "cross_entropy", transport(SQUARED, label_cost=0.7)),
        case(data(417, **clipped), "hinge", transport({"kind": "norm", "order": 1}, support=BOX)),
    ]
    return {f"certificate {i}": one for i, one in enumerate(cases)}


def coefficients(sample: dict[str, Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Draw the coefficients and intercepts that are certified on some data."""
    rng = np.random.default_rng([76, sample["seed"]])
    outputs = 1 if sample["classes"] == 2 else sample["classes"]
    return 0.5 * rng.standard_normal((outputs, sample["d"])), 0.3 * rng.standard_normal(outputs)


def proved() -> dict[str, Problem]:
    """Return the trained models that are proved to be the least fragile ones."""
    ridge = {"penalty": "l2", "alpha": 0.01}
    fits = [
        problem(data(431), "cross_entropy", W2),
        problem(data(432), "hinge", W1, **ridge),
        problem(data(433, classes=3), "hinge", W2),
        problem(data(434), "cross_entropy", KL, **ridge),
        problem(data(435, classes=3), "hinge", KL, **ridge),
        problem(data(436), "cross_entropy", wasserstein(2, label_cost=1.0)),
        problem(data(437, classes=3), "smoothed_hinge", WINF, **ridge),
        problem(data(438, weights="counts"), {"kind": "hinge", "pair_cost": PAIRS[2]}, W2),
    ]
    return {f"proof {i}": one for i, one in enumerate(fits)}


def shifted() -> dict[str, Case]:
    """Return the pairs of samples whose distance is measured.

    `moved` adds to the features, `relabelled` is a share of changed labels, `weights` draws those
    of the new sample; under KL only these change.
    """
    small = {"n": 40, "d": 3}
    weight = [0.5, 1.0, 2.0]
    cases: list[Case] = [
        {"data": data(451, **small), "ambiguity": W1, "moved": 0.3},
        {"data": data(452, **small), "ambiguity": W2, "moved": 0.3},
        {"data": data(453, **small), "ambiguity": WINF, "moved": 0.3},
        {
            "data": data(454, classes=3, **small),
            "ambiguity": wasserstein(2, label_cost=0.7),
            "moved": 0.3,
            "relabelled": 0.2,
        },
        {
            "data": data(455, **small),
            "ambiguity": wasserstein(1, label_cost=0.4, feature_weight=weight),
            "relabelled": 0.3,
            "weights": True,
        },
        {"data": data(456, **small), "ambiguity": KL, "weights": True},
        {"data": data(457, **small), "ambiguity": W2, "relabelled": 0.3},
        {"data": data(458, n=120, d=3), "ambiguity": W2, "moved": 0.3, "max_exact": 40},
    ]
    return {f"shift {i}": one for i, one in enumerate(cases)}


def new_sample(
    case: Case, X: NDArray[Any], y: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Draw the sample whose distance from another one is measured."""
    rng = np.random.default_rng([77, case["data"]["seed"]])
    new = X + case.get("moved", 0.0) * rng.standard_normal(X.shape)
    labels = y.copy()
    if "relabelled" in case:
        chosen = rng.random(y.size) < case["relabelled"]
        labels[chosen] = rng.integers(0, case["data"]["classes"], chosen.sum())
    weight = rng.integers(1, 4, y.size).astype(float) if case.get("weights") else None
    return new, labels, weight
