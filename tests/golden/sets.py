"""Data sets of the golden bank: drawn with fixed streams, nothing read from disk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


def expit(z):
    return 1.0 / (1.0 + np.exp(-z))


def binary(seed, n, noises=(0.4, 1.2), slope=2.0, shift=0.0, sharp=1.0):
    """Labels 0/1 and one score per noise level; `sharp` > 1 makes the scores overconfident."""
    rng = np.random.default_rng([seed, n])
    logit = slope * rng.standard_normal(n) + shift
    y = (rng.random(n) < expit(logit)).astype(int)
    y[:2] = 0, 1
    scores = {
        f"m{i}": expit(sharp * (logit + v * rng.standard_normal(n))) for i, v in enumerate(noises)
    }
    return y, scores, rng


def several(seed, n, n_classes, noises=(0.5, 1.5)):
    """Labels 0..C-1 and a matrix of probabilities per noise level."""
    rng = np.random.default_rng([seed, n, n_classes])
    logit = 1.5 * rng.standard_normal((n, n_classes))
    p = np.exp(logit) / np.exp(logit).sum(1, keepdims=True)
    y = np.array([rng.choice(n_classes, p=row) for row in p])
    y[:n_classes] = np.arange(n_classes)
    scores = {}
    for i, v in enumerate(noises):
        z = logit + v * rng.standard_normal(logit.shape)
        q = np.exp(z) / np.exp(z).sum(1, keepdims=True)
        scores[f"m{i}"] = q
    return y, scores, rng


COSTS = {"error_cost": [[0, 1], [5, 0]], "review_cost": 0.3}


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and what is measured: labels, models, and everything that may come with them."""
    for n in (50, 500, 4000):
        y, s, rng = binary(1, n)
        yield f"plain {n}", {"y": y, "models": s}
        yield f"costs {n}", {"y": y, "models": s, "costs": COSTS}
        w = rng.lognormal(0.0, 1.0, n)
        yield f"weights {n}", {"y": y, "models": s, "sample_weight": w}
        cluster = rng.integers(0, max(8, n // 6), n)
        yield f"clusters {n}", {"y": y, "models": s, "cluster": cluster}
        yield (
            f"groups {n}",
            {
                "y": y,
                "models": s,
                "groups": {"g": rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])},
                "costs": COSTS,
            },
        )
    y, s, rng = binary(2, 4000, sharp=2.5)
    yield "overconfident", {"y": y, "models": s, "costs": COSTS}
    y, s, rng = binary(3, 4000, shift=-4.5)
    yield (
        "rare",
        {"y": y, "models": s, "costs": {"error_cost": [[0, 1], [50, 0]], "review_cost": 0.5}},
    )
    y, s, rng = binary(4, 3000)
    yield (
        "two digits",
        {"y": y, "models": {k: np.round(v, 2) for k, v in s.items()}, "costs": COSTS},
    )
    yield (
        "zeros and ones",
        {
            "y": y,
            "models": {k: np.where(v < 0.1, 0.0, np.where(v > 0.9, 1.0, v)) for k, v in s.items()},
        },
    )
    yield "capacity", {"y": y, "models": s, "costs": {**COSTS, "capacity": 0.2}}
    yield "reviewers err", {"y": y, "models": s, "costs": {**COSTS, "reviewer_error": 0.05}}
    yield (
        "costs by case",
        {
            "y": y,
            "models": s,
            "costs": {"error_cost": rng.lognormal(0, 1, y.size), "review_cost": 0.3},
        },
    )
    yield (
        "three models",
        {"y": y, "models": {**s, "m2": expit(rng.standard_normal(y.size))}, "costs": COSTS},
    )
    yield "one model", {"y": y, "models": {"m0": s["m0"]}, "costs": COSTS}
    yield "text labels", {"y": np.where(y == 1, "sick", "healthy"), "models": s}
    yield (
        "perfect",
        {
            "y": y,
            "models": {
                "m0": np.where(y == 1, 0.8, 0.2) + 0.1 * (rng.random(y.size) - 0.5),
                "m1": s["m1"],
            },
        },
    )
    yield "reversed", {"y": y, "models": {"m0": 1 - s["m0"], "m1": s["m1"]}}
    for c, n in ((3, 1500), (5, 3000)):
        y, s, rng = several(5, n, c)
        yield f"{c} classes", {"y": y, "models": s}
        yield (
            f"{c} classes, costs",
            {
                "y": y,
                "models": s,
                "costs": {
                    "error_cost": (1 - np.eye(c)) * (1 + np.arange(c))[:, None],
                    "review_cost": 0.4,
                },
            },
        )
        yield (
            f"{c} classes, weights",
            {"y": y, "models": s, "sample_weight": rng.lognormal(0, 1, n)},
        )
