"""What a model file may hold, and the audit that comes before any of it is built.

A file of skops is a tree of nodes, each with a type and a way of loading it. Here a file may hold
numbers, text, arrays, containers, and objects of the types that `train_pipeline` writes, each
loaded in one way only. Calls, methods and partial functions are refused by how they would be
loaded, whatever they are called. Other types need the word of the caller, by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from .._labels import listed
from ..exceptions import ModelFileError

#: Types beyond those that skops trusts, by their full names: never a prefix, never a function.
OWN_TYPES = (
    "fragility.ambiguity.kl.KL",
    "fragility.ambiguity.noise.FeatureNoise",
    "fragility.ambiguity.wasserstein.Wasserstein",
    "fragility.linear_model.cross_validation.SatisficingClassifierCV",
    "fragility.linear_model.dro.DROClassifier",
    "fragility.linear_model.erm.ERMClassifier",
    "fragility.linear_model.out_of_fold.TargetOrigin",
    "fragility.linear_model.satisficing.SatisficingClassifier",
    "fragility.losses.cross_entropy.CrossEntropy",
    "fragility.losses.hinge.Hinge",
    "fragility.losses.max_logistic.MaxLogistic",
    "fragility.losses.smoothed_hinge.SmoothedHinge",
    "fragility.pipelines.reader.ColumnReader",
    "numpy.dtype",  # what a SimpleImputer was fitted to
    "sklearn.compose._column_transformer._RemainderColsList",  # a list, up to scikit-learn 1.8
)

#: The steps of scikit-learn that `train_pipeline` writes; skops would trust all of scikit-learn.
_STEPS = (
    "sklearn.compose._column_transformer.ColumnTransformer",
    "sklearn.impute._base.SimpleImputer",
    "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing._data.StandardScaler",
    "sklearn.preprocessing._encoders.OneHotEncoder",
)
_NUMBERS = {f"numpy.{kind.__name__}" for kind in np.sctypeDict.values()} - {"numpy.object_"}

#: Ways of loading that make data, and what each may make.
_DATA = {
    "DTypeNode": {"numpy.dtype"},
    "DictNode": {"builtins.dict"},
    "JsonNode": {"builtins.str"},
    "ListNode": {"builtins.list"},
    "NdArrayNode": {"numpy.ndarray"} | _NUMBERS,
    "ObjectNode": {*OWN_TYPES, *_STEPS} - {"numpy.dtype"},
    "SetNode": {"builtins.set"},
    "SliceNode": {"builtins.slice"},
    "TupleNode": {"builtins.tuple"},
    "TypeNode": {f"builtins.{name}" for name in ("bool", "float", "int", "str")} | _NUMBERS,
}
#: What the others may be loaded by: a function is looked up, and not called.
_BY_NAME = {*_DATA, "FunctionNode", "SparseMatrixNode"} - {"JsonNode", "DTypeNode"}
_KNOWN = set[str]().union(*_DATA.values())
#: Before it, skops looked functions up by other names than those that are checked here.
_OLDEST_PROTOCOL = 1


def trusted_names(trusted: Iterable[str | type]) -> set[str]:
    """Full names of the types that a caller trusts, given as such or by any of their names."""
    if isinstance(trusted, (str, type)) or not isinstance(trusted, Iterable):
        raise ValueError(f"trusted must be a list of types or of their names; got {trusted!r}.")
    names = set()
    for entry in trusted:
        if isinstance(entry, str):
            names |= {entry, _found(entry)}
        elif isinstance(entry, type):
            names.add(_full_name(entry))
        else:
            raise ValueError(
                "trusted must hold types or their full names, such as "
                f"'sklearn.impute.KNNImputer'; got {entry!r}."
            )
    return names


def _found(name: str) -> str:
    """Where a type that a public name leads to is at home; the name itself if it leads nowhere."""
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, TypeError, ValueError):
        return name
    return _full_name(found) if isinstance(found, type) else name


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__name__}"


def check_schema(schema: Any, trusted: set[str] | None) -> set[str]:
    """Refuse a schema of skops in which anything is more than data of known or trusted types.

    The marks by which a node refers to another one are removed: a small file could make a very
    large tree of them, or a ring.

    Parameters
    ----------
    schema : object
        As from JSON; changed in place.
    trusted : set of str, optional
        Full names of further types; by default all types of the file, for one's own.

    Returns
    -------
    set of str
        Names of the further types that are there.
    """
    running, foreign, used = set(), set(), set()
    for node in _nodes(schema):
        node.pop("__id__", None)
        loader, name = str(node["__loader__"]), f"{node.get('__module__')}.{node.get('__class__')}"
        if name in _DATA.get(loader, ()):
            continue
        if loader not in _BY_NAME or name in _KNOWN:
            running.add(f"{name:.200} ({loader:.40})")
        elif trusted is None or name in trusted:
            used.add(name)
        else:
            foreign.add(f"{name:.200}")
    if running:
        raise ModelFileError(
            f"it holds more than data, which might run code: {listed(sorted(running), 5)}"
        )
    if foreign:
        raise ModelFileError(
            f"it holds types that are not known to be safe: {listed(sorted(foreign), 5)}; if you "
            "know who wrote the file, name them in Python: "
            f"load_model(path, trusted=[{listed(sorted(foreign), 5)}])"
        )
    protocol = schema.get("protocol") if isinstance(schema, dict) else None
    if not isinstance(protocol, int) or protocol < _OLDEST_PROTOCOL:
        raise ModelFileError(
            "skops wrote it in a format that is not read here; train the model again"
        )
    return used


def array_files(schema: Any) -> Iterator[str]:
    """The member that each array of a schema is kept in, as often as it is named."""
    for node in _nodes(schema):
        if "file" in node:
            yield str(node["file"])


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """All nodes of a schema; without recursion, for a file may nest them as deep as it likes."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if "__loader__" in part:
                yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
