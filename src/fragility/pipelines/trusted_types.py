"""What a model file may hold, and the audit that comes before any of it is built.

skops builds nothing whose type is not trusted, by itself or by the list here. On top of it a file
may only be data: functions, methods, partial calls and the like are refused by how they would be
loaded, whatever they are called, so that no mistake in an audit elsewhere lets them through.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._labels import listed
from ..exceptions import ModelFileError

__all__ = ["OWN_TYPES", "check_schema"]

#: Types beyond those that skops trusts, by their full names: never a prefix, never a function.
OWN_TYPES = (
    "fragility.ambiguity.kl.KL",
    "fragility.ambiguity.wasserstein.Wasserstein",
    "fragility.linear_model.cross_validation.SatisficingClassifierCV",
    "fragility.linear_model.dro.DROClassifier",
    "fragility.linear_model.erm.ERMClassifier",
    "fragility.linear_model.satisficing.SatisficingClassifier",
    "fragility.losses.cross_entropy.CrossEntropy",
    "fragility.losses.hinge.Hinge",
    "fragility.losses.max_logistic.MaxLogistic",
    "fragility.losses.smoothed_hinge.SmoothedHinge",
    "fragility.pipelines.reader.ColumnReader",
    "numpy.dtype",  # what a SimpleImputer was fitted to
    "sklearn.compose._column_transformer._RemainderColsList",  # a list, up to scikit-learn 1.8
)

#: Ways of loading that make data: numbers, text, arrays, containers, and objects from attributes.
_DATA = {
    "DTypeNode",
    "DictNode",
    "JsonNode",
    "ListNode",
    "NdArrayNode",
    "ObjectNode",
    "SetNode",
    "SliceNode",
    "SparseMatrixNode",
    "TupleNode",
    "TypeNode",
}


def check_schema(schema: Any) -> None:
    """Refuse a schema of skops in which anything is more than data."""
    foreign = set()
    for node in _nodes(schema):
        loader = str(node["__loader__"])
        name = f"{node.get('__module__')}.{node.get('__class__')}"
        own = {"numpy.dtype": "DTypeNode"}.get(name, "ObjectNode")
        if loader not in _DATA or (name in OWN_TYPES and loader != own):
            foreign.add(f"{name} ({loader:.40})")
    if foreign:
        raise ModelFileError(
            f"it holds what is no data and might run code: {listed(sorted(foreign), 5)}"
        )


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
