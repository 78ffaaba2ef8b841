"""Models in files that are safe to open: no code runs, and no sample of the training is inside."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from copy import copy
from importlib.metadata import version
from pathlib import Path
from typing import Any

import sklearn
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from .._files import write_whole
from ..exceptions import ModelFileError, ModelVersionWarning
from ..linear_model.base import LinearClassifier
from .archives import LARGEST, Members, described, opened, packed, unpacked
from .trusted_types import trusted_names

#: Attributes of a fitted classifier that are saved. Its certificate holds a loss of every sample
#: and is left out, as is every attribute that is not named here.
_KEPT = (
    "coef_",
    "intercept_",
    "priced_intercept_",
    "classes_",
    "n_features_in_",
    "feature_names_in_",
    "ambiguity_",
    "fragility_",
    "target_",
    "target_origin_",
    "erm_loss_",
    "trivial_loss_",
    "worst_loss_",
    "loss_",
    "alpha_",
    "slack_",
    "target_ratio_",
    "best_score_",
    "n_iter_",
    "solver_",
)


def save_model(
    pipeline: Pipeline, path: str | os.PathLike[str], about: dict[str, Any] | None = None
) -> None:
    """Write a trained pipeline to a file, whole or not at all.

    The file is one of skops. It holds what predictions need: coefficients, means, medians, standard
    deviations, names of columns, levels and classes. It holds no losses, scores or weights of
    samples: the `certificate_` stays behind (`TrainingSummary` has it in words).

    Parameters
    ----------
    pipeline : Pipeline
        Fitted, its last step a linear classifier of this library. Steps of your own must be
        named to `load_model`. Those that keep samples, such as a KNNImputer, keep them in the
        file, too.
    path : path
    about : dict, optional
        What to say about the model, as JSON can: numbers, text, lists and dicts.

    Raises
    ------
    ModelFileError
        The pipeline is not one that `load_model` could read.

    Examples
    --------
    >>> import pandas as pd
    >>> from fragility.pipelines import load_model, save_model, train_pipeline
    >>> data = pd.DataFrame({"age": [31, 45, 58, 70] * 5, "ill": [False, False, True, True] * 5})
    >>> folder = getfixture("tmp_path")  # a folder of your own
    >>> save_model(train_pipeline(data, "ill").pipeline, folder / "model.skops")
    >>> load_model(folder / "model.skops").predict(data[:1]).tolist()
    [False]
    """
    target = Path(path)
    try:
        content = packed(_without_samples(pipeline), about)
        _check_same_weights(unpacked(opened(content), None), pipeline)
    except ModelFileError as error:
        raise ModelFileError(f"{target.name} was not written: {error}.") from error.__cause__
    write_whole(target, content)


def load_model(path: str | os.PathLike[str], *, trusted: Iterable[str | type] = ()) -> Pipeline:
    """A trained pipeline from a file, without running code from it.

    A file is refused unless its arrays have the right kinds and shapes, are finite, and give
    probabilities. Its folders to write to (`memory`) and its numbers of processes (`n_jobs`) are
    ignored.

    Parameters
    ----------
    path : path
        Written by `save_model`, or by skops: a fitted Pipeline whose last step is a classifier.
    trusted : iterable of types or str, default=()
        Types to allow beyond the steps that `train_pipeline` writes, such as
        ``["sklearn.impute.KNNImputer"]`` or ``[MyStep]``; functions by their full names. Their
        methods run on data from the file: name only what you know, in files of people you know.

    Returns
    -------
    Pipeline
        Its classifier has no `certificate_`.

    Raises
    ------
    ModelFileError
        The file does not hold such a pipeline, or it holds something that might run code.

    Warns
    -----
    ModelVersionWarning
        Another version of scikit-learn, or a later one of this library, wrote the file.
    """
    source = Path(path)
    names = trusted_names(trusted)
    written: dict[str, Any] = {}
    try:
        members = _members(source)
        written = described(members)
        pipeline = unpacked(members, names)
    except ModelFileError as error:
        by = "".join(f" (it was written by {other})" for other in _other_versions(written))
        raise ModelFileError(
            f"{source.name} is not a usable model: {error}{by}."
        ) from error.__cause__
    other = " and ".join(_other_versions(written))
    if other:
        warnings.warn(
            f"{source.name} was written by {other}; its predictions may differ from those it was "
            "tested with. Install these versions, or train it again.",
            ModelVersionWarning,
            stacklevel=2,
        )
    return pipeline


def read_about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What `save_model` was told about a model, and the versions it was written by.

    Parameters
    ----------
    path : path

    Returns
    -------
    dict
        With ``about`` (empty if nothing was said), ``format`` and ``versions``.
    """
    source = Path(path)
    try:
        return described(_members(source))
    except ModelFileError as error:
        raise ModelFileError(f"{source.name} is not a usable model: {error}.") from error.__cause__


def _members(source: Path) -> Members:
    with source.open("rb") as file:
        return opened(file.read(LARGEST + 1))  # a device has no end


def _without_samples(pipeline: Any) -> Pipeline:
    """A copy whose classifier keeps nothing of the samples it was trained on."""
    if not (isinstance(pipeline, Pipeline) and isinstance(pipeline[-1], LinearClassifier)):
        raise ModelFileError(
            "it must be a Pipeline whose last step is a linear classifier of fragility; got "
            f"{type(pipeline).__name__}. Write other models with skops.io.dump"
        )
    name, classifier = pipeline.steps[-1]
    if not hasattr(classifier, "coef_"):
        raise ModelFileError(f"its {type(classifier).__name__} is not fitted")
    kept = clone(classifier)
    for attribute in _KEPT:
        if hasattr(classifier, attribute):
            setattr(kept, attribute, getattr(classifier, attribute))
    saved = copy(pipeline)
    saved.steps = [*pipeline.steps[:-1], (name, kept)]
    return saved


def _check_same_weights(read: Pipeline, written: Pipeline) -> None:
    """Refuse a dict of class weights that skops cannot keep: booleans come back as True."""
    if read[-1].get_params()["class_weight"] != written[-1].get_params()["class_weight"]:
        raise ModelFileError(
            "class_weight with these classes cannot be kept in a file; give a column of weights "
            'instead, class_weight="balanced", or classes as whole numbers or text'
        )


def _other_versions(written: dict[str, Any]) -> list[str]:
    """Libraries that wrote the file in a version whose predictions may differ from ours."""
    versions = written.get("versions", {})
    own = {"scikit-learn": sklearn.__version__}
    if _release(versions.get("fragility")) > _release(version("fragility")):
        own["fragility"] = version("fragility")
    return [
        f"{library} {versions[library]}, here {here}"
        for library, here in own.items()
        if versions.get(library, here) != here
    ]


def _release(text: Any) -> tuple[int, ...]:
    """Numbers of a version, to compare; empty for text that is not a version."""
    parts = str(text).split(".")[:3]
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else ()
