"""The pair of classes whose ranking errors are drawn."""

from __future__ import annotations

from typing import Any

from ..._labels import listed
from ..._validation import LabelledScores
from ...index.errors import Pair
from .figure import shortened

#: What the ranking error of two classes is, for an axis.
BINARY_ERROR = "ranking error ε = p(x⁻) − p(x⁺)"


def chosen_pair(data: LabelledScores, pair: tuple[Any, Any] | None) -> Pair:
    """The pair (scored as, true), or the only one that two classes have."""
    if pair is None:
        if not data.is_binary:
            raise ValueError(
                f"There are {data.labels.size} classes ({listed(data.labels)}): choose two with "
                "pair=(scored_as, true)."
            )
        return Pair(data.positive, (1 - data.positive,))
    names = data.labels.tolist()
    if isinstance(pair, str) or len(pair) != 2 or pair[0] == pair[1]:
        raise ValueError(f"pair must be two different labels, (scored_as, true); got {pair!r}.")
    unknown = [label for label in pair if label not in names]
    if unknown:
        raise ValueError(
            f"pair names {listed(unknown)}, but the classes are {listed(data.labels)}."
        )
    scored_as, true = (names.index(label) for label in pair)
    for index in (scored_as, true):
        if data.support[index] == 0:
            raise ValueError(f"pair names {names[index]!r}, which has no samples.")
    if data.is_binary:  # one problem, whichever way it is named
        return Pair(data.positive, (1 - data.positive,))
    return Pair(scored_as, (true,))


def error_name(data: LabelledScores, pair: Pair) -> str:
    """What the ranking error of a pair is, for an axis."""
    if data.is_binary:
        return BINARY_ERROR
    scored_as, true = data.labels[pair.positive], data.labels[pair.negatives[0]]
    scored_as, true = shortened(scored_as), shortened(true)
    return f"ranking error ε: score as {scored_as}\nof a true {true} − of a true {scored_as}"
