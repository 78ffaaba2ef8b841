"""The support matrix: each cell is solved and checked before it is written.

``python -m tests.support_matrix`` (`make support`) writes docs/support.md; test_support.py makes
the same table and compares.
"""

from __future__ import annotations

import itertools
import warnings
from math import inf
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from fragility import KL, SatisficingClassifier, Wasserstein

from .reference import linear
from .reference.pairs import bisected_index

PAGE = Path(__file__).parents[1] / "docs" / "support.md"
LOSSES = ("cross_entropy", "smoothed_hinge")
AMBIGUITIES = {
    "KL": KL(),
    "Wasserstein, norm 1": Wasserstein(norm=1),
    "Wasserstein, norm 2": Wasserstein(norm=2),
    "Wasserstein, norm inf": Wasserstein(norm=inf),
    "Wasserstein, fixed and weighted features": Wasserstein(2, feature_weight=[1, 2, inf, 0.5]),
    "Wasserstein, finite label cost": Wasserstein(label_cost=1.0),
}
ROOT = """# What is solved

Every cell below is fitted when the tests run; the model's loss, penalty and fragility are then
recomputed in plain NumPy, and the two solvers must agree to 1e-5. "refused" is an error that says
what is supported instead. Write this page again with `make support`.

Columns: number of classes, penalty, and how X is given. A loss of your own (a subclass of
`fragility.losses.Loss`) is solved wherever "newton" solves the two that are built in.
"""


def cell(loss, ambiguity, n_classes, penalty, as_given, solver) -> float | None:
    """The fragility found in a cell, or None if it is refused with a sentence."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 4)) * [1.0, 3.0, 0.5, 1.0]
    y = (X[:, :n_classes] + rng.gumbel(size=(60, n_classes))).argmax(axis=1)
    model = SatisficingClassifier(
        loss, ambiguity, slack=0.3, penalty=penalty, alpha=1e-2, solver=solver
    )
    try:
        with warnings.catch_warnings():
            if solver == "conic":  # Clarabel stalls on some exponential cones, and says so
                warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(as_given(X), y)
    except NotImplementedError as error:
        if not str(error).endswith("."):
            raise AssertionError(f"not a sentence: {error}") from error
        return None
    alpha = 1e-2 if penalty else 0.0
    weights = np.full(60, 1 / 60)
    losses = linear.losses(model.coef_, model.intercept_, X, y, loss)
    attained = weights @ losses + alpha * (model.coef_**2).sum()
    slack = 1e-8 if solver == "newton" else 1e-6
    assert attained <= model.target_ + slack
    # The fragility once more: the root of the log-moment, or the largest dual norm.
    if isinstance(ambiguity, KL):
        penalty_value = alpha * (model.coef_**2).sum()
        own = bisected_index(losses, model.target_ - penalty_value, weights)
    else:
        own = linear.dual_norms(model.coef_, ambiguity.norm, ambiguity.feature_weight).max()
    assert 0.0 < model.fragility_ < inf
    assert abs(model.fragility_ / own - 1.0) <= 1e-6
    return model.fragility_


def matrix() -> str:
    """The page."""
    ways = {"dense": np.asarray, "CSR": sparse.csr_array}
    columns = list(itertools.product((2, 3), (None, "l2"), ways))
    parts = [ROOT]
    found: dict[tuple, float | None] = {}
    for solver in ("newton", "conic"):
        head = [f"{c} classes, {p or 'no penalty'}, {way}" for c, p, way in columns]
        lines = [
            "| loss | ambiguity | " + " | ".join(head) + " |",
            "|" + " --- |" * (2 + len(head)),
        ]
        for loss, (name, ambiguity) in itertools.product(LOSSES, AMBIGUITIES.items()):
            words = []
            for column in columns:
                n_classes, penalty, way = column
                k = cell(loss, ambiguity, n_classes, penalty, ways[way], solver)
                # The second solver must find what the first one found.
                other = found.setdefault((loss, name, column), k)
                assert (k is None) == (other is None)
                assert k is None or abs(k / other - 1.0) <= 1e-5
                words.append("refused" if k is None else "solved")
            lines.append(f"| {loss} | {name} | " + " | ".join(words) + " |")
        parts.append(f'## solver="{solver}"\n\n' + "\n".join(lines) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    warnings.simplefilter("error")
    PAGE.write_text(matrix(), encoding="utf-8")
    print(f"wrote {PAGE}")
