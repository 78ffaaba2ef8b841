"""Whether a pipeline from a file can predict: arrays of the right kinds and shapes, all finite.

skops ensures that a file holds only objects of known types; what their attributes hold is up to
the file. Here every step that `train_pipeline` writes is checked by itself and against the
step before it, and then tried out. Nothing is computed from an attribute before it is checked:
scikit-learn does not expect that, say, the levels of an encoder and its number of outputs differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import is_dataclass, replace
from inspect import signature
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from ..exceptions import ModelFileError
from ..linear_model.base import LinearClassifier
from ..linear_model.out_of_fold import TargetOrigin
from .plain_values import (
    LARGEST,
    are_categories,
    are_indices,
    are_levels,
    are_names,
    is_count,
    is_level,
    is_number,
)
from .reader import ColumnReader
from .trial import check_trial


def check_pipeline(pipeline: Any) -> None:
    """Refuse all but a fitted Pipeline whose probabilities can be computed.

    Numbers of processes and folders to write to, as a file has them, are ignored.
    """
    if type(pipeline) is not Pipeline:
        raise ModelFileError(f"it holds a {type(pipeline).__name__}, not a Pipeline")
    for attributes in _all_attributes(pipeline):
        attributes.update({name: None for name in ("memory", "n_jobs") if name in attributes})
    _check_own(pipeline)
    width = _check_steps(pipeline, None, until=-1)
    classifier = pipeline.steps[-1][1]
    classes = getattr(classifier, "classes_", None)
    if not (hasattr(classifier, "predict_proba") and isinstance(classes, np.ndarray)):
        raise ModelFileError(
            f"the last step of its Pipeline, {type(classifier).__name__}, is not a fitted "
            "classifier with probabilities"
        )
    check_is_fitted(classifier)
    _require(
        are_categories(classes)
        and classes.size >= 2
        and all(map(is_level, classes.tolist()))
        and classes.tolist() == sorted(classes.tolist()),
        classifier,
        "must have two different classes at least, in order",
    )
    if isinstance(classifier, LinearClassifier):
        _check_linear(classifier, classes.size, width)
    pipeline.get_params()  # of all steps: none is missing
    check_trial(pipeline)


def _all_attributes(root: Any) -> Iterator[dict[str, Any]]:
    """Attributes of an object and of all that are in it, at any depth."""
    waiting, seen = [root], set()
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, (str, type)):
            continue
        seen.add(id(thing))
        if isinstance(thing, np.ndarray):
            waiting.extend(thing.tolist() if thing.dtype == object else ())
        elif isinstance(thing, (list, tuple, set)):
            waiting.extend(thing)
        elif isinstance(thing, dict):
            waiting.extend(thing.values())
        elif hasattr(thing, "__dict__"):
            yield vars(thing)
            waiting.extend(vars(thing).values())


def _check_step(step: Any, width: int | None) -> int | None:
    """Check a transformer for inputs of a width, if that is known; the width of its outputs."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return width
    check = _CHECKS.get(type(step))
    if check is None:
        if not hasattr(step, "transform"):
            raise ModelFileError(
                f"a step of its Pipeline, {type(step).__name__}, is not a transformer"
            )
        return None  # the caller trusts it
    _check_own(step)
    if type(step) is not Pipeline:
        _check_inputs(step, width)
    return check(step, width)


def _check_own(step: Any) -> None:
    """No parameter is missing or of a wrong kind, and the methods are those of the class."""
    parameters = signature(type(step)).parameters.keys()
    _require(parameters <= vars(step).keys(), step, "must have all of its parameters")
    # The class of a linear classifier holds the defaults of its parameters.
    hidden = any(hasattr(type(step), name) for name in vars(step).keys() - parameters)
    _require(not hidden, step, "must have no attributes in the place of its methods")
    if hasattr(step, "_parameter_constraints"):
        step._validate_params()


def _check_inputs(step: Any, width: int | None) -> None:
    """There are as many as expected, and each has a name if any has."""
    known = is_count(step.n_features_in_) and width in (None, step.n_features_in_)
    _require(known, step, f"must take {'some' if width is None else width} inputs")
    names = getattr(step, "feature_names_in_", None)
    if names is not None:
        fits = isinstance(names, np.ndarray) and names.shape == (step.n_features_in_,)
        fits = fits and are_names(names.tolist())
        _require(fits, step, "must have a name for each of its inputs")


def _check_steps(step: Pipeline, width: int | None, until: int | None = None) -> int | None:
    _check_entries(step, step.steps, 2)
    for _, inner in step.steps[:until]:
        width = _check_step(inner, width)
    return width


def _check_entries(step: Any, entries: Any, length: int) -> None:
    """Steps and parts have names, and no two the same."""
    _require(
        isinstance(entries, list)
        and len(entries) > 0
        and all(isinstance(entry, tuple) and len(entry) == length for entry in entries)
        and are_names([entry[0] for entry in entries]),
        step,
        "must have steps of different names",
    )


def _check_reader(step: ColumnReader, _: int | None) -> int:
    names = [*step.numeric, *step.categorical]
    _require(
        all(isinstance(columns, (list, tuple)) for columns in (step.numeric, step.categorical))
        and are_names(names)
        and len(names) == step.n_features_in_
        and list(step.feature_names_in_) == names,
        step,
        "must have different names of columns",
    )
    _require(isinstance(step.keep_missing, bool), step, "must have a keep_missing of True or False")
    _require(
        isinstance(step.levels_, dict)
        and list(step.levels_) == list(step.categorical)
        and all(
            isinstance(levels, list) and levels and are_levels(levels)
            for levels in step.levels_.values()
        ),
        step,
        "must have different levels for each of its categorical columns",
    )
    return len(names)


def _check_scaler(step: StandardScaler, _: int | None) -> int:
    width: int = step.n_features_in_
    if step.with_mean or step.mean_ is not None:
        _check_numbers(step, "mean_", (width,))
    if step.with_std:
        _check_numbers(step, "scale_", (width,), positive=True)
    return width


def _check_imputer(step: SimpleImputer, _: int | None) -> int | None:
    width: int = step.n_features_in_
    found = step.statistics_
    fits = isinstance(found, np.ndarray) and found.shape == (width,)
    _require(
        fits and all(map(is_level, found.tolist())),
        step,
        f"must have a value to fill in, finite if a number, for each of {width} columns",
    )
    return None if step.add_indicator else width


def _check_encoder(step: OneHotEncoder, _: int | None) -> int:
    """Levels, and how they are grouped and dropped: else outputs would lie beyond the last one."""
    columns = step.categories_
    _require(
        isinstance(columns, list)
        and len(columns) == step.n_features_in_
        and all(are_categories(levels) for levels in columns),
        step,
        f"must have different levels for each of {step.n_features_in_} columns",
    )
    none = [None] * len(columns)
    grouped = step._infrequent_enabled
    rare = step._infrequent_indices if grouped else none
    groups = step._default_to_infrequent_mappings if grouped else none
    dropped = none if step._drop_idx_after_grouping is None else step._drop_idx_after_grouping
    widths = []
    for levels, few, group, drop in zip(columns, rare, groups, dropped, strict=True):
        width = levels.size
        if few is not None:
            fits = are_indices(few, levels.size) and few.size > 0
            width -= few.size - 1
            fits = fits and are_indices(group, width) and group.size == levels.size
            _require(fits, step, "must group levels that it has")
        if drop is not None:
            _require(is_count(drop, 0) and drop < width, step, "must drop levels that it has")
            width -= 1
        widths.append(width)
    outputs = list(step._n_features_outs)
    fits = all(is_count(output, 0) for output in outputs) and outputs == widths
    _require(fits, step, f"must have {widths} outputs")
    return sum(widths)


def _check_columns(step: ColumnTransformer, _: int | None) -> int | None:
    """Every part, for the columns that it takes."""
    weights = step.transformer_weights
    fits = weights is None or (isinstance(weights, dict) and all(map(is_number, weights.values())))
    _require(fits, step, "must have finite weights")
    _check_entries(step, step.transformers, 3)
    _check_entries(step, step.transformers_, 3)
    taken = step._transformer_to_input_indices
    columns = [column for part in taken.values() for column in part]
    _require(
        all(is_count(column, 0) for column in columns)
        and set(columns) == set(range(min(step.n_features_in_, len(columns) + 1))),
        step,
        "must have a use for each of its columns",
    )
    total: int | None = 0
    for name, part, _columns in step.transformers_:
        if isinstance(part, str) and part == "drop":
            continue
        width = _check_step(part, len(taken[name]))
        total = None if total is None or width is None else total + width
    return total


_CHECKS: dict[type, Callable[[Any, int | None], int | None]] = {
    ColumnReader: _check_reader,
    ColumnTransformer: _check_columns,
    OneHotEncoder: _check_encoder,
    Pipeline: _check_steps,
    SimpleImputer: _check_imputer,
    StandardScaler: _check_scaler,
}


def _check_linear(classifier: LinearClassifier, n_classes: int, width: int | None) -> None:
    n_scores = 1 if n_classes == 2 else n_classes
    _check_own(classifier)
    _check_inputs(classifier, width)
    _check_numbers(classifier, "coef_", (n_scores, classifier.n_features_in_))
    _check_numbers(classifier, "intercept_", (n_scores,))
    priced = getattr(classifier, "priced_intercept_", None)
    _require(isinstance(priced, bool), classifier, "must say whether its intercept is priced")
    origin = getattr(classifier, "target_origin_", None)
    known = origin is None or type(origin) is TargetOrigin
    _require(known, classifier, "must have the origin of a target in target_origin_")
    for name, value in vars(classifier).items():
        if name.endswith("_") and isinstance(value, float):
            _require(value == value, classifier, f"must have a number in {name}")
        if is_dataclass(value) and not isinstance(value, type):
            replace(value)  # which checks what it is made of


def _check_numbers(step: Any, name: str, shape: tuple[int, ...], *, positive: bool = False) -> None:
    values = getattr(step, name)
    fits = isinstance(values, np.ndarray) and values.dtype.kind == "f" and values.shape == shape
    if fits and values.size:
        fits = bool(np.abs(values).max() <= LARGEST)
        fits = fits and not (positive and values.min() < 1.0 / LARGEST)
    _require(
        fits,
        step,
        f"must have {' × '.join(map(str, shape))} floats in {name}, "
        f"{f'from {1 / LARGEST:g}' if positive else 'finite and'} up to {LARGEST:g} in size",
    )


def _require(holds: bool, step: Any, words: str) -> None:
    if not holds:
        raise ModelFileError(f"its {type(step).__name__} {words}, and does not")
