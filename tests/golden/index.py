"""The 60 cases of the index bank: labels, scores of two models, and what is asked of them.

Cases are drawn with fixed streams; nothing here calls the library.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Case = dict[str, Any]
Arrays = dict[str, Any]

#: Costs of pairs of classes: true class by decided class.
PAIR_COSTS = [[0, 1, 2], [3, 0, 0], [1, 5, 0]]


def _cases() -> dict[str, Case]:
    """Return the cases by name: how arrays are drawn, and options of every question."""

    def binary(seed: int, n: int, **more: Any) -> Case:
        return {"seed": seed, "n": n, "classes": 2, **more}

    def several(seed: int, n: int, classes: int = 3, **more: Any) -> Case:
        return {"seed": seed, "n": n, "classes": classes, **more}

    ratings = {"multi_class": "ovr"}
    far = {"scores": "far"}
    return {
        "plain 6": binary(1, 6),
        "plain 20": binary(2, 20),
        "plain 100": binary(3, 100),
        "plain 1000": binary(4, 1000),
        "plain 20000": binary(5, 20_000),
        "rare positives": binary(6, 400, prevalence=0.02),
        "rare mistakes": binary(7, 200, slope=6.0),
        "weak scores": binary(8, 200, slope=0.3),
        "counts": binary(9, 100, weights="counts"),
        "weights over twelve decades": binary(10, 200, weights="wide"),
        "weights 1e-6": binary(11, 200, weights="tiny"),
        "weights of zero": binary(12, 100, weights="zeros"),
        "one heavy sample": binary(13, 100, weights="heavy"),
        "one decimal": binary(14, 300, decimals=1),
        "two decimals and weights": binary(15, 300, decimals=2, weights="counts"),
        "zeros and ones": binary(16, 300, decimals=0),
        "constant": binary(17, 50, scores="constant"),
        "constant of one class": binary(18, 50, scores="constant positives"),
        "separated": binary(19, 100, scores="separated"),
        "touching": binary(20, 100, scores="touching"),
        "reversed": binary(21, 100, scores="reversed"),
        "equal means": binary(22, 6, scores="equal means"),
        "target above": binary(23, 200, options={"target": 0.1}),
        "target below": binary(24, 200, options={"target": -0.1}),
        "target out of reach": binary(25, 200, options={"target": -0.9}),
        "target of every error": binary(26, 200, options={"target": 1.0}),
        "target and weights": binary(27, 200, weights="counts", options={"target": 0.05}),
        "float32": binary(28, 300, dtype="float32"),
        "float32 and ties": binary(29, 300, dtype="float32", decimals=2),
        "float16": binary(30, 100, dtype="float16"),
        "text labels": binary(31, 100, labels="text"),
        "positive label": binary(
            32, 100, labels="text", scores="reversed", options={"pos_label": "healthy"}
        ),
        "truth values": binary(33, 100, labels="bool"),
        "log-odds": binary(34, 200, scores="log-odds"),
        "tiny scores": binary(35, 200, scores="tiny"),
        "huge scores": binary(36, 200, scores="huge"),
        "far 6": binary(37, 6, y=[1, 0, 1, 1, 0, 1], scores="far six"),
        "far 30": binary(38, 30, **far),
        "far 100 and weights": binary(39, 100, weights="counts", **far),
        "far and reversed": binary(40, 30, scores="far reversed"),
        "one of each": binary(41, 2),
        "one positive": binary(42, 30, prevalence=0.0),
        "clusters": binary(43, 200, clusters=40),
        "clusters and weights": binary(44, 200, clusters=25, weights="counts"),
        "two clusters": binary(45, 100, clusters=2),
        "three classes": several(51, 150),
        "five classes": several(52, 600, 5),
        "three classes, one against the rest": several(53, 150, options=ratings),
        "three classes, weights": several(54, 150, weights="counts"),
        "three classes, pair costs": several(55, 150, options={"pair_cost": PAIR_COSTS}),
        "three classes, ties": several(56, 150, decimals=1),
        "three classes, target": several(57, 150, options={"target": 0.05}),
        "three classes, text": several(58, 150, labels="text"),
        "three classes, float32": several(59, 150, dtype="float32"),
        "three classes, separated": several(60, 60, sharp=60.0),
        "three classes, bad pair": several(61, 90, scores="bad pair"),
        "absent class": several(62, 100, labels="absent", options={"labels": [0, 1, 2]}),
        "three classes, clusters": several(63, 150, clusters=30),
        "three classes, rest and weights": several(64, 150, weights="wide", options=ratings),
        "four classes, rest and target": several(
            65, 200, 4, options={"multi_class": "ovr", "target": 0.02}
        ),
    }


CASES = _cases()


def arrays(case: Case) -> Arrays:
    """Draw labels, scores of two models, log-odds, weights and clusters of a case."""
    rng = np.random.default_rng([78, case["seed"]])
    binary = case["classes"] == 2
    scored = _binary(case, rng) if binary else _several(case, rng)
    y, scores, other, logits = scored
    if "decimals" in case:
        scores, other = (np.round(s, case["decimals"]) for s in (scores, other))
    if "dtype" in case:
        scores, other = (s.astype(case["dtype"]) for s in (scores, other))
    data: Arrays = {"codes": y, "y": _labelled(case, y), "scores": scores, "other": other}
    data["logits"] = logits
    data["weights"] = _weights(case.get("weights"), y, rng)
    clusters = case.get("clusters")
    data["clusters"] = None if clusters is None else rng.integers(0, clusters, y.size)
    return data


def _binary(case: Case, rng: np.random.Generator) -> tuple[NDArray[Any], ...]:
    n, slope = case["n"], case.get("slope", 1.5)
    y = (rng.random(n) < case.get("prevalence", 0.4)).astype(int)
    y[:2] = 0, 1
    y = np.array(case.get("y", y))
    logits = slope * (2 * y - 1) + 1.5 * rng.standard_normal(n)
    other = logits + 0.8 * rng.standard_normal(n)
    scores, second = (1.0 / (1.0 + np.exp(-z)) for z in (logits, other))
    return y, _special(case.get("scores"), y, scores, logits), second, logits


def _special(
    kind: str | None, y: NDArray[Any], scores: NDArray[Any], logits: NDArray[Any]
) -> NDArray[Any]:
    """Return the scores of a kind that breaks a careless formula."""
    steps = np.round(4.0 * scores)
    kinds: dict[str | None, Any] = {
        None: scores,
        "constant": np.full(y.size, 0.3),
        "constant positives": np.where(y == 1, 0.6, scores),
        "separated": np.where(y == 1, 0.6 + 0.4 * scores, 0.4 * scores),
        "touching": np.where(y == 1, 0.5 + 0.4 * steps / 4.0, 0.5 - 0.4 * steps / 4.0),
        "reversed": 1.0 - scores,
        "equal means": np.where(y == 1, 0.5, np.where(np.arange(y.size) % 2, 0.25, 0.75)),
        "log-odds": logits,
        "tiny": 1e-9 * scores,
        "huge": 1e9 * scores,
        "far": 1e15 + steps,
        "far six": 1e15 + np.resize([4.0, 1, 4, 4, 4, 1], y.size),
        "far reversed": 1e15 - steps,
    }
    return np.asarray(kinds[kind])


def _several(case: Case, rng: np.random.Generator) -> tuple[NDArray[Any], ...]:
    n, classes = case["n"], case["classes"]
    y = np.r_[np.arange(classes), rng.integers(0, classes, n - classes)]
    if case.get("labels") == "absent":
        y[y == 2] = 1
    logits = case.get("sharp", 1.5) * np.eye(classes)[y] + rng.standard_normal((n, classes))
    if case.get("scores") == "bad pair":  # the second class is taken for the first
        logits[y == 1] = logits[y == 1][:, [1, 0, *range(2, classes)]]
    other = logits + 0.8 * rng.standard_normal((n, classes))
    scores, second = (np.exp(z) / np.exp(z).sum(axis=1, keepdims=True) for z in (logits, other))
    return y, scores, second, logits


def _labelled(case: Case, y: NDArray[Any]) -> NDArray[Any]:
    names = np.array(["healthy", "sick"] if case["classes"] == 2 else ["cat", "dog", "owl"])
    if case.get("labels") == "text":
        return names[y]
    return y.astype(bool) if case.get("labels") == "bool" else y


def _weights(kind: str | None, y: NDArray[Any], rng: np.random.Generator) -> NDArray[Any] | None:
    if kind is None:
        return None
    weights: NDArray[Any] = np.ones(y.size)
    if kind == "counts":
        weights = rng.integers(1, 4, y.size).astype(float)
    elif kind == "wide":
        weights = 10.0 ** rng.uniform(-6.0, 6.0, y.size)
    elif kind == "tiny":
        weights[rng.random(y.size) < 0.5] = 1e-6
    elif kind == "heavy":
        weights[1] = 1e4
    else:
        weights[rng.random(y.size) < 0.4] = 0.0
        weights[:2] = 1.0
    return weights
