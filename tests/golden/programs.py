"""The 400 training programs of the golden bank, drawn with fixed streams.

What they are is plain values and arrays; `tests.golden.ask` fits the estimators. The
numbers in programs.json.gz were recorded before the library was rebuilt.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

N_PROGRAMS = 400
#: Distance of every distributionally robust program.
RADIUS = 0.05

Drawn = tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None, dict[str, Any]]


def draw(i: int) -> Drawn:
    """Return features, labels and weights of program `i`, and what is to be fitted to them."""
    rng = np.random.default_rng([74, i])
    n_classes = int(rng.choice([2, 2, 2, 3, 4]))
    n = int(rng.choice([60, 150, 400, 1000]))
    d = int(rng.choice([2, 5, 15, 40]))
    what: dict[str, Any] = {
        "loss": str(rng.choice(["cross_entropy", "hinge", "smoothed_hinge"])),
        "penalty": str(rng.choice(["none", "l2", "l2", "l1"])),
        "ambiguity": str(rng.choice(["kl", "w2", "w1", "winf", "w2 label", "w1 label"])),
        "estimator": str(rng.choice(["satisficing", "satisficing", "satisficing", "dro"])),
        "target": str(rng.choice(["slack", "ratio"])),
        "weighted": bool(rng.random() < 0.3),
        "intercept": [True, True, "priced"][int(rng.integers(3))],
    }
    if n < 4 * d * n_classes and what["penalty"] == "none":
        what["penalty"] = "l2"
    y = np.r_[np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)]
    X = rng.standard_normal((n, d))
    X[:, 0] += 1.2 * y
    X[:, -1] -= 1.5 * (y == 1)
    flip = rng.random(n) < 0.1
    flip[:n_classes] = False
    y[flip] = rng.integers(0, n_classes, flip.sum())
    X *= np.exp(0.5 * rng.standard_normal(d))
    weight = rng.integers(1, 4, n).astype(float) if what["weighted"] else None
    return X, y, weight, what
