"""The rows of the support matrix for general transport, each cell solved and checked."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from fragility import DROClassifier, SatisficingClassifier

from .reference import moves
from .transport_rows import LOSSES, ROWS, data

HEAD = """## Transport at any cost, inside a support: `Transport`

Least fragility at costs and in supports of every kind. The fragility of each model (in every third
row the least worst-case loss of a hinge, too) is found again by a conic program in which every
sample, piece and label is written out, to 1e-5. Cells name the solver; "none known" is refused with
a sentence, never approximated. A cell that names the interior point has no support, or was proved
to be the same without it.
"""
COLUMNS = ("hinge", "hinge of three classes", "pieces", "cross_entropy")


def solved(row, column, classifier, **asked):
    """Which solver takes a cell, after its model is judged; "none known" if none does."""
    given, n_classes, pieces = LOSSES.get(column, ("cross_entropy", 2, None))
    X, y = data(row, n_classes, 1, n=8)
    try:
        model = classifier(given, row.ambiguity, **asked).fit(X, y)
    except NotImplementedError:
        return "none known"
    if pieces is not None:
        literal = {
            "label_cost": row.label_cost,
            "prices": row.feature_weight,
            "coef": model.coef_,
            "intercept": model.intercept_,
        }
        found, wanted = model.fragility_, {"target": model.target_}
        if classifier is DROClassifier:
            found, wanted = model.worst_loss_, {"radius": model.radius}
        own = moves.program(X, y, pieces, row.norm, row.kind, row.region, **literal, **wanted)
        assert found == pytest.approx(own, rel=1e-5), (row.name, column)
    assert np.isfinite(model.fragility_)
    return model.solver_.replace("_", " ")


def line(row):
    """The line of a transport, once its cells are solved."""
    words = [solved(row, column, SatisficingClassifier, slack=0.3) for column in COLUMNS]
    if row in ROWS[::3]:
        radius = 0.02 if row.kind == "norm" else 0.001
        robust = solved(row, "hinge", DROClassifier, radius=radius)
        assert (robust == "none known") == (words[0] == "none known")
    return f"| {row.name} | " + " | ".join(words) + " |"


def section() -> list[str | Callable[[], str]]:
    """The table, by lines: text, or a function that solves the cells."""
    return [
        *HEAD.splitlines(),
        "",
        "| transport | " + " | ".join(name.replace("_", "-") for name in COLUMNS) + " |",
        "|" + " --- |" * (1 + len(COLUMNS)),
        *(partial(line, row) for row in ROWS),
        "",
    ]
