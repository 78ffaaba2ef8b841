"""A support that binds: cross-entropy on the whole plane, and inside the range of the data.

Run with ``python examples/support.py``; needs ``fragility[conic]``. `pictures.py` draws it.
With a norm as the cost the worst case of cross-entropy lies at infinity: the loss grows by the same
slope for ever. Inside a box it cannot go there. So the box changes both the least fragility and the
model that has it, which for a hinge it mostly does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from fragility import SatisficingClassifier
from fragility.ambiguity import Box, Norm, Transport

__all__ = ["Bound", "bound", "data"]

#: Mean texture and mean concave points.
FEATURES = [1, 7]
SLACK = 0.3


@dataclass(frozen=True)
class Bound:
    """Two models of one target, and where the worst case of the second goes."""

    free: SatisficingClassifier
    boxed: SatisficingClassifier
    box: Box


def data() -> tuple[np.ndarray, np.ndarray]:
    """Every fourth patient, so that one can tell them apart in a picture."""
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X[::4, FEATURES]), y[::4]


def bound(X, y, loss: str = "cross_entropy") -> Bound:
    """Least fragile models on the plane and inside the range of the data."""
    box = Box(X.min(axis=0), X.max(axis=0))
    free, boxed = (
        SatisficingClassifier(loss, Transport(Norm(1), support), slack=SLACK).fit(X, y)
        for support in (None, box)
    )
    return Bound(free, boxed, box)


def main() -> None:
    X, y = data()
    print(f"{len(y)} patients, two features, ℓ1 transport, the same target for both")
    print(f"{'loss':<14} {'whole plane':>12} {'inside':>8}")
    for loss in ("cross_entropy", "hinge"):
        found = bound(X, y, loss)
        name = loss.replace("_", "-")
        print(f"{name:<14} {found.free.fragility_:12.4f} {found.boxed.fragility_:8.4f}")


if __name__ == "__main__":
    main()
