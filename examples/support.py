"""A support that binds: cross-entropy on the whole plane, and inside the range of the data.

Run with ``python examples/support.py``; needs ``fragility[conic]``.
With a norm as the cost the worst case of cross-entropy lies at infinity: the loss grows by the same
slope for ever. Inside a box it cannot go there. So the box changes both the least fragility and the
model that has it, which for a hinge it mostly does not.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from fragility import SatisficingClassifier
from fragility.ambiguity import Box, Norm, Transport

#: Mean texture and mean concave points.
FEATURES = [1, 7]
SLACK = 0.3


def data() -> tuple[np.ndarray, np.ndarray]:
    """Every fourth patient."""
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X[::4, FEATURES]), y[::4]


def fragilities(X: np.ndarray, y: np.ndarray, loss: str) -> tuple[float, float]:
    """Return the least fragility on the plane, and inside the range of the data."""
    on_plane, in_box = (
        SatisficingClassifier(loss, Transport(Norm(1), support), slack=SLACK).fit(X, y).fragility_
        for support in (None, Box(X.min(axis=0), X.max(axis=0)))
    )
    return on_plane, in_box


def main() -> None:
    X, y = data()
    print(f"{len(y)} patients, two features, ℓ1 transport, the same target for both")
    print(f"{'loss':<14} {'whole plane':>12} {'inside':>8}")
    for loss in ("cross_entropy", "hinge"):
        on_plane, in_box = fragilities(X, y, loss)
        print(f"{loss.replace('_', '-'):<14} {on_plane:12.4f} {in_box:8.4f}")


if __name__ == "__main__":
    main()
