"""The only door for user input: labels, scores, weights and targets, checked and encoded.

Nothing large is copied: labels become one byte per sample (for up to 256 classes) and scores stay
in the caller's array and dtype.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isfinite, isnan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._labelled_tables import in_class_order
from ._labels import encode_labels, in_rows, later_category, listed, places_among, plain_array
from ._typing import Floats, Integers, Labels
from .exceptions import AbsentClassWarning

#: Up to this whole numbers are floats.
_EXACT_INTEGERS = 2**53
#: How far rounding may push a probability out of [0, 1].
PROBABILITY_ROUNDING = 1e-6
#: How far the probabilities of a sample may be from summing to one.
SUM_TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class LabelledScores:
    """Validated predictions: what every measurement starts from.

    Attributes
    ----------
    scores : ndarray of shape (n,) or (n, C)
        Finite; (n,) when there are two classes, then the scores of class `positive`.
    codes : ndarray of shape (n,)
        Index of each sample's class in `labels`.
    labels : ndarray of shape (C,)
    positive : int
        Index of the positive class (binary).
    weights : ndarray of shape (n,) or None
        Sample weights, if any was given.
    support : ndarray of shape (C,)
        Samples of positive weight per class.
    ranges : ndarray of shape (2, 1) or (2, C)
        Smallest and largest score of each column.
    answers : bool
        Whether the positive class of two is "right", which a model always claims to be.
    """

    scores: NDArray[Any]
    codes: NDArray[Any]
    labels: NDArray[Any]
    positive: int
    weights: Floats | None
    support: Integers
    ranges: Floats
    answers: bool = False

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes, hence one problem."""
        return self.labels.size == 2

    def with_scores(self, scores: Floats) -> LabelledScores:
        """The same samples with other scores, of the same shape."""
        return replace(self, scores=scores, ranges=score_ranges(scores))

    def take(self, rows: NDArray[Any]) -> LabelledScores:
        """Some of the samples, by a mask or by their places; at least one."""
        weights = None if self.weights is None else self.weights[rows]
        scores, codes = self.scores[rows], self.codes[rows]
        support = _support(codes, self.labels.size, weights)
        return replace(
            self,
            scores=scores,
            codes=codes,
            weights=weights,
            support=support,
            ranges=score_ranges(scores),
        )

    def own_score(self, sample: int) -> float:
        """Score of a sample's own class (two classes: of the positive class)."""
        score = self.scores[sample]
        return float(score if self.scores.ndim == 1 else score[self.codes[sample]])

    def copy(self) -> LabelledScores:
        """The same predictions in arrays that nobody else can change."""
        weights = None if self.weights is None else self.weights.copy()
        return replace(self, scores=self.scores.copy(), codes=self.codes.copy(), weights=weights)


def score_ranges(scores: NDArray[Any]) -> Floats:
    """Smallest and largest score of each column, or of the only one."""
    columns = scores.reshape(len(scores), -1)
    return np.stack([columns.min(axis=0), columns.max(axis=0)]).astype(np.float64)


def check_labelled_scores(
    y_true: ArrayLike,
    y_score: ArrayLike,
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    *,
    name: str = "y_score",
    presence: bool = True,
    weightless: bool = False,
) -> LabelledScores:
    """Validate predictions; see `LabelledScores`.

    `name` is what the caller calls the scores; `presence`: whether two classes must have samples,
    and absent ones are warned about; `weightless`: whether all weights may be zero.
    """
    scores = _check_scores(y_score, name)
    classes, codes = encode_labels(y_true)
    n = codes.size
    if scores.shape[0] != n:
        raise ValueError(
            f"y_true has {n} samples but {name} has {scores.shape[0]}; "
            "give one score (or one row of scores) per label."
        )
    if labels is not None:
        classes, codes = _in_label_order(labels, classes, codes)
    elif pos_label is None:
        pos_label = later_category(y_true, classes)
    if classes.size == 1 and not presence:
        raise ValueError(
            f"y_true holds one class only, {listed(classes)}, and {name} cannot tell what the "
            "other classes are: name all of them with labels=."
        )
    positive = positive_index(classes, pos_label)
    if classes.size > 1:
        scores = _match_columns(y_score, scores, classes, positive, labels is not None, name)
    ranges = _finite_ranges(scores, name)
    weights = None if sample_weight is None else check_weights(sample_weight, n, weightless)
    support = _support(codes, classes.size, weights)
    if presence:
        check_presence(classes, support)
    return LabelledScores(scores, codes, classes, positive, weights, support, ranges)


def check_labelled_probabilities(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    *,
    name: str = "y_proba",
    **options: Any,
) -> LabelledScores:
    """Validate predicted probabilities; a single class will do if `labels` names the others.

    The options are those of `check_labelled_scores`.
    """
    options = {"name": name, "presence": False, **options}
    data = check_labelled_scores(y_true, y_proba, labels, pos_label, sample_weight, **options)
    remedy = "Give predict_proba(X), or logits through softmax (one column: the logistic function)."
    low, high = float(data.ranges.min()), float(data.ranges.max())
    if low < -PROBABILITY_ROUNDING or high > 1.0 + PROBABILITY_ROUNDING:
        raise ValueError(
            f"{name} must hold probabilities, from 0 to 1, but goes from {low!r} to {high!r}. "
            + remedy
        )
    columns = check_values(y_proba, name)
    if columns.ndim == 2 and columns.shape[1] > 1:
        sums = columns.sum(axis=1, dtype=np.float64)
        wrong = np.flatnonzero(~(np.abs(sums - 1.0) <= SUM_TOLERANCE))
        if wrong.size:
            raise ValueError(
                f"The rows of {name} must sum to 1 (within {SUM_TOLERANCE:g}), but {wrong.size} "
                f"of {sums.size} do not: row {wrong[0]} sums to {sums[wrong[0]]:g}. {remedy}"
            )
    return data


def _check_scores(y_score: ArrayLike, name: str) -> NDArray[Any]:
    scores = check_values(y_score, name)
    if scores.ndim == 2 and scores.shape[1] == 1:
        scores = scores[:, 0]
    if scores.ndim not in (1, 2):
        raise ValueError(
            f"{name} has shape {scores.shape}; give (n_samples,) scores of the positive class or "
            "(n_samples, n_classes)."
        )
    if scores.shape[0] == 0:
        raise ValueError(f"{name} is empty: give at least one sample of each class.")
    return scores


def check_values(values: ArrayLike, name: str) -> NDArray[Any]:
    """Array of real numbers from any array-like, its dtype kept."""
    array = plain_array(values, name)
    objects = array.flat if array.dtype.kind == "O" else ()
    if array.dtype.kind in "UST" or any(isinstance(v, str) for v in objects):
        raise ValueError(f"{name} must hold numbers, but it holds text; convert it first.")
    if array.dtype.kind == "O":  # numbers among missing values, or decimals
        with long_integers_refused(name):
            try:
                array = array.astype(np.float64)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"{name} must hold numbers, but it has dtype {array.dtype} and {error}. "
                    "Drop or fill missing values first."
                ) from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers; got dtype {array.dtype}.")
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
        largest = max(abs(int(array.min())), abs(int(array.max())))
        if largest > _EXACT_INTEGERS and np.any(array.astype(np.float64).astype(object) != array):
            raise ValueError(
                f"{name} holds whole numbers up to {largest:.3g}, which floating point rounds from "
                "9e15 on; subtract a common number from them first."
            )
    return array


@contextmanager
def long_integers_refused(name: str) -> Iterator[None]:
    """Integers that no float holds as a sentence about `name`."""
    try:
        yield
    except OverflowError:
        raise ValueError(
            f"{name} must hold numbers that floating point holds, up to 1.8e308, but one of its "
            "integers is longer. Scale or drop it."
        ) from None


def _finite_ranges(scores: NDArray[Any], name: str) -> Floats:
    columns = scores if scores.ndim == 2 else scores[:, np.newaxis]
    # A minimum or maximum is NaN where any entry is: no separate pass is needed.
    ranges = np.array(_column_extremes(columns), dtype=np.float64)
    if not np.isfinite(ranges).all():
        where = in_rows(~np.isfinite(columns).all(axis=1))
        raise ValueError(
            f"{name} has NaN or infinite values in {where}; only finite ones can be measured. Drop "
            "those rows or repair the model that made them."
        )
    return ranges


def _column_extremes(columns: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    # Reducing short rows is slow: take many rows as one long row first, block by block so that
    # the second reduction finds the data in cache.
    n, k = columns.shape
    if k == 1:
        return columns[:, 0].min(keepdims=True), columns[:, 0].max(keepdims=True)
    together = max(1, 512 // k)
    block = together * max(1, 32_768 // (together * k))
    lows, highs = [], []
    for start in range(0, n, block):
        part = columns[start : start + block]
        whole = len(part) // together * together
        if part.flags.c_contiguous and whole:
            wide = part[:whole].reshape(-1, together * k)
            lows.append(wide.min(axis=0).reshape(together, k).min(axis=0))
            highs.append(wide.max(axis=0).reshape(together, k).max(axis=0))
            part = part[whole:]
        if len(part):
            lows.append(part.min(axis=0))
            highs.append(part.max(axis=0))
    return np.min(lows, axis=0), np.max(highs, axis=0)


def check_weights(sample_weight: ArrayLike, n: int, weightless: bool = False) -> Floats:
    """Weights of `n` samples: finite, not negative; all zero only where `weightless` allows it."""
    weights = check_values(sample_weight, "sample_weight").astype(np.float64, copy=False)
    if weights.shape == (n, 1):
        weights = weights[:, 0]
    if weights.shape != (n,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}; give one weight for each of {n} samples."
        )
    low, high = float(weights.min()), float(weights.max())
    if isnan(low) or not isfinite(high):
        raise ValueError("sample_weight has NaN or infinite values; give finite weights.")
    if low < 0.0:
        raise ValueError(
            f"sample_weight has {int((weights < 0).sum())} negative values (smallest {low:g}); "
            "weights must be zero or more."
        )
    if high == 0.0 and not weightless:
        raise ValueError("sample_weight is zero for every sample; at least one must count.")
    return weights


def check_nonnegative(values: NDArray[Any], name: str) -> Floats:
    """An array of finite numbers of zero or more."""
    numbers: Floats = values.astype(np.float64)
    wrong = np.argwhere(~(np.isfinite(numbers) & (numbers >= 0.0)))
    if wrong.size:
        place = tuple(wrong[0].tolist())
        raise ValueError(
            f"{name} must hold finite numbers of zero or more; entry {list(place)} is "
            f"{float(numbers[place])!r}."
        )
    return numbers


def check_case_costs(costs: ArrayLike, n: int, name: str) -> Floats:
    """What an error on each of `n` cases costs."""
    given = check_values(costs, name)
    if given.shape != (n,):
        raise ValueError(
            f"{name} has shape {given.shape}; give one number for each of the {n} cases."
        )
    return check_nonnegative(given, name)


def check_labels(labels: Iterable[Any]) -> NDArray[Any]:
    """Classes, at least two, each once."""
    given = np.asarray(labels)
    if given.ndim != 1 or given.size < 2:
        raise ValueError(f"labels must list at least two classes; got {labels!r}.")
    if len(set(given.tolist())) < given.size:
        raise ValueError(f"labels has duplicates: {listed(given)}.")
    fractions = (isinstance(v, float) and not v.is_integer() for v in given.tolist())
    if any(fractions) or None in given.tolist():
        raise ValueError(
            f"labels must be text, booleans or whole numbers; got {listed(given)}. Leave out "
            "missing values."
        )
    return given


def _in_label_order(
    labels: Iterable[Any], classes: NDArray[Any], codes: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    given = check_labels(labels)
    table, unknown = places_among(classes, given)
    if unknown:
        raise ValueError(
            f"y_true has classes that labels does not name: {listed(unknown)}; "
            f"labels are {listed(given)}."
        )
    if not np.array_equal(table, np.arange(table.size)):
        codes = table.astype(np.min_scalar_type(given.size))[codes]
    return given, codes


def _support(codes: NDArray[Any], n_classes: int, weights: Floats | None) -> Integers:
    if weights is not None and (weights == 0.0).any():
        codes = codes[weights > 0.0]
    if n_classes == 2:
        ones = int(np.count_nonzero(codes.view(np.bool_)))  # codes are single bytes, 0 or 1
        return np.array([codes.size - ones, ones])
    support = np.zeros(n_classes, dtype=np.int64)
    for start in range(0, codes.size, 65_536):
        support += np.bincount(codes[start : start + 65_536], minlength=n_classes)
    return support


def check_presence(classes: NDArray[Any], support: Integers) -> None:
    """At least two classes have samples; the others are named in a warning."""
    present = support > 0
    if present.sum() < 2:
        one = f"Only one class has samples (of positive weight): {listed(classes[present])}."
        told = one if present.any() else "No class has samples (of positive weight)."
        raise ValueError(
            f"{told} FI compares the scores of two classes; give samples of at least two."
        )
    if not present.all():
        warnings.warn(
            f"No samples (of positive weight) of {listed(classes[~present])}: the pairs with these "
            "classes are undefined and left out of the average.",
            AbsentClassWarning,
            stacklevel=_depth_of_caller(),
        )


def _depth_of_caller() -> int:
    """Stack level of the first frame outside the library, for `check_presence` to warn at."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(
        "fragility."
    ):
        frame, depth = frame.f_back, depth + 1
    return depth


def positive_index(classes: NDArray[Any], pos_label: Any) -> int:
    """Place of the positive class of two."""
    if pos_label is None:
        return 1
    if classes.size > 2:
        raise ValueError(
            f"pos_label={pos_label!r} applies to two classes, but there are {classes.size}: "
            f"{listed(classes)}."
        )
    try:
        return int(classes.tolist().index(pos_label))
    except ValueError:
        raise ValueError(
            f"pos_label={pos_label!r} is not one of the classes, {listed(classes)}."
        ) from None


def _match_columns(
    given: Any,
    scores: NDArray[Any],
    classes: NDArray[Any],
    positive: int,
    named: bool,
    name: str,
) -> NDArray[Any]:
    """Scores with one column per class, or the positive column for two classes."""
    if scores.ndim == 1:
        if classes.size > 2:
            raise ValueError(
                f"{name} is one column but there are {classes.size} classes ({listed(classes)}); "
                f"give an array of shape (n_samples, {classes.size})."
            )
        return scores
    if scores.shape[1] != classes.size:
        where = "labels names" if named else "y_true holds"
        hint = "" if named else " If a class has no sample here, name all classes with labels=."
        raise ValueError(
            f"{name} has {scores.shape[1]} columns but {where} {classes.size} classes "
            f"({listed(classes)}); give one column per class, in that order.{hint}"
        )
    names = column_names(given)
    found, expected = [str(n) for n in names], [str(c) for c in classes.tolist()]
    if found != expected and sorted(found) == sorted(expected):
        raise ValueError(
            f"The columns of {name} are named {listed(names)} but the classes are in the order "
            f"{listed(classes)}; reorder the columns or pass labels={list(names)}."
        )
    return scores[:, positive] if classes.size == 2 else scores


def column_names(frame: Any) -> list[Any]:
    """Names of the columns of a data frame or table; none of an array."""
    names = getattr(frame, "column_names", None) or getattr(frame, "columns", None)
    return [] if names is None or callable(names) else list(names)


def check_pair_cost(given: ArrayLike, classes: NDArray[Any] | None = None) -> Floats:
    """Return the costs of the confusions, true × decided class, with zeros on the diagonal.

    A DataFrame is read by its labels; without `classes` they are its own, sorted.
    """
    costs = check_values(in_class_order(given, classes, "pair_cost"), "pair_cost")
    n_classes = None if classes is None else classes.size
    count = len(costs) if n_classes is None and costs.ndim else n_classes
    if costs.shape != (count, count) or costs.size < 4:
        shape = (
            "one row and one column for each class" if n_classes is None else f"{(count, count)}"
        )
        raise ValueError(
            f"pair_cost has shape {costs.shape}; give {shape}, entry [i, j] the cost of true i "
            "taken for j."
        )
    costs = check_nonnegative(costs, "pair_cost")
    if costs.diagonal().any():
        raise ValueError(
            "pair_cost must be zero on the diagonal, as a class taken for itself is no confusion; "
            "fragility.pair_cost_of turns the costs of decisions into what errors cost beyond that."
        )
    if not costs.any():
        raise ValueError("pair_cost is zero for every pair; at least one must count.")
    return costs


def check_index_weights(
    pair_cost: ArrayLike | None,
    classes: NDArray[Any],
    multi_class: str,
    average: str | None = "macro",
) -> Floats | None:
    """Weights of the class pairs in an index: entry [i, j] weighs true j scored as i.

    The one place where costs, true × decided, are turned into weights, scored × true.
    """
    if pair_cost is None:
        return None
    if multi_class != "ovo" or average is None:
        raise ValueError(
            'pair_cost weighs pairs of classes in a mean: use it with multi_class="ovo" and '
            f'average="macro"; got multi_class={multi_class!r}, average={average!r}.'
        )
    costs = check_pair_cost(pair_cost, classes)
    with np.errstate(under="ignore"):
        weights: Floats = costs.T / costs.max()
    return weights
