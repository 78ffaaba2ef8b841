"""Folds of a cross-validation: models are fitted on a training part, scored on a test part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from inspect import Parameter, signature
from math import nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._labels import listed
from .._sklearn import check_method_params
from .._typing import Floats, Indices
from ..exceptions import TargetError
from ..solvers.searching import Search
from .base import TrainingData
from .grid import Cell, Trace, solve_grid
from .satisficing import SatisficingClassifier


class FoldScores(NamedTuple):
    """Score and fragility for every penalty and target, and what went wrong, if anything."""

    scores: Floats
    fragilities: Floats
    problems: list[str]
    unsettled: int
    absent: list[Any]


@dataclass(frozen=True, eq=False)
class Folds:
    """The data of all folds, and what is done with each.

    Attributes
    ----------
    model : SatisficingClassifier
        All parameters but the penalty's strength and the target are taken from it.
    data : TrainingData
        Validated, with the weights as given, before `class_weight`.
    alphas, targets : sequences
        In the order they are solved in.
    scorer : callable, optional
        As scikit-learn has them; None is accuracy, for which none of its checks are needed.
    score_params : dict
        What the scorer is given; what has a value for each sample is cut to the fold.
    """

    model: SatisficingClassifier
    data: TrainingData
    alphas: Sequence[float]
    targets: Sequence[dict[str, Any]]
    scorer: Callable[..., float] | None
    score_params: dict[str, Any]

    def run(
        self,
        train: Indices,
        test: Indices,
        lead: Trace | None = None,
        tick: Callable[[], None] = lambda: None,
    ) -> Search[tuple[FoldScores, Trace | None]]:
        """Fit and score one fold; `lead` is the trace of another."""
        shape = len(self.alphas), len(self.targets)
        found = FoldScores(np.full(shape, nan), np.full(shape, nan), [], 0, [])
        part = self._training_part(train)
        present = part.classes
        found.absent.extend(np.setdiff1d(self.data.classes, present).tolist())
        if present.size < 2:
            why = f"its training part has samples of one class only: {listed(present)}"
            return found._replace(problems=[why] * (shape[0] * shape[1])), None
        model = copy(self.model)
        if isinstance(model.class_weight, dict):  # weights of absent classes would be refused
            known = set(present.tolist())
            named = {c: w for c, w in model.class_weight.items() if c in known}
            model.class_weight = named or None
        weighted = model._class_weighted(part)
        search = solve_grid(model, weighted, self.alphas, self.targets, lead, tick)
        cells, trace = yield from search
        score = self._scored(test, present)
        unsettled = 0
        for j, row in enumerate(cells):
            for i, cell in enumerate(row):
                if isinstance(cell, TargetError):
                    found.problems.append(str(cell))
                    continue
                unsettled += not cell.settled
                found.fragilities[j, i] = cell.fragility
                found.scores[j, i] = score(cell, {"alpha": self.alphas[j], **self.targets[i]})
        return found._replace(unsettled=unsettled), trace if trace.ends else None

    def _training_part(self, train: Indices) -> TrainingData:
        """Samples of positive weight, their classes numbered anew: some may be absent."""
        data, weights = self.data, self.data.weights
        if weights is not None:
            train = train[weights[train] > 0.0]
            weights = weights[train]
        present, codes = np.unique(data.codes[train], return_inverse=True)
        return TrainingData(data.X[train], codes, weights, data.classes[present])

    def _scored(
        self, test: Indices, present: NDArray[Any]
    ) -> Callable[[Cell, dict[str, Any]], float]:
        """Score of a model, given its cell and parameters, on the test part."""
        data = self.data
        X, codes = data.X[test], data.codes[test]
        positions = np.searchsorted(data.classes, present)
        given = check_method_params(data.X, self.score_params, test)
        if self.scorer is None:
            weights = given.get("sample_weight")

            def accuracy(cell: Cell, _: dict[str, Any]) -> float:
                scores = X @ cell.coef.T + cell.intercept
                best = scores.argmax(axis=1) if len(cell.coef) > 1 else (scores[:, 0] > 0.0) * 1
                return float(np.average(positions[best] == codes, weights=weights))

            return accuracy
        y = data.classes[codes]
        scorer = _knowing(self.scorer, data.classes, np.unique(codes).size)
        fitted = clone(self.model)
        fitted.classes_, fitted.n_features_in_ = data.classes, X.shape[1]

        def scored(cell: Cell, parameters: dict[str, Any]) -> float:
            fitted.set_params(**parameters)
            fitted.coef_, fitted.intercept_ = _of_all_classes(cell, positions, data.classes.size)
            fitted.fragility_, fitted.target_ = cell.fragility, cell.target.value
            fitted.erm_loss_ = cell.target.erm_loss
            fitted.trivial_loss_ = cell.target.trivial_loss
            return float(scorer(fitted, X, y, **given))

        return scored


def takes_weights(scorer: Callable[..., float]) -> bool:
    """Whether a scorer can be given `sample_weight`."""
    function = getattr(scorer, "_score_func", scorer)
    return any(
        parameter.name == "sample_weight" or parameter.kind is Parameter.VAR_KEYWORD
        for parameter in signature(function).parameters.values()
    )


def _knowing(scorer: Any, classes: NDArray[Any], n_tested: int) -> Callable[..., float]:
    """The scorer, given all classes where a test part lacks one, if it takes `labels`."""
    function = getattr(scorer, "_score_func", None)
    takes_labels = function is not None and "labels" in signature(function).parameters
    if n_tested == classes.size or not takes_labels or "labels" in scorer._kwargs:
        return scorer  # type: ignore[no-any-return]
    told = copy(scorer)
    told._kwargs = {**scorer._kwargs, "labels": classes}
    return told  # type: ignore[no-any-return]


def _of_all_classes(cell: Cell, positions: Indices, n_classes: int) -> tuple[Floats, Floats]:
    """Coefficients with rows for classes that the training part lacked; these never win."""
    if positions.size == n_classes:
        return cell.coef, cell.intercept
    rows, offsets = cell.coef, cell.intercept
    if positions.size == 2:
        rows, offsets = np.vstack([np.zeros_like(rows), rows]), np.append(0.0, offsets)
    coef = np.zeros((n_classes, rows.shape[1]))
    intercept = np.full(n_classes, -np.inf)
    coef[positions], intercept[positions] = rows, offsets
    return coef, intercept
