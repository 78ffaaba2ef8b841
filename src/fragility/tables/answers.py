"""Files of answers with a confidence, which are not predictions of classes but look like it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from .._labels import listed

_RIGHT = {"correct", "correctly", "correctness", "right", "accurate", "hit", "incorrect", "wrong"}
_VERDICTS = [
    {"correct", "incorrect"},
    {"correct", "wrong"},
    {"correct", "error"},
    {"right", "wrong"},
    {"accurate", "inaccurate"},
    {"hit", "miss"},
]
#: Words beside which "right" and the like are names of classes or of other things.
_PLAIN = {"is", "was", "answer", "answered", "prediction", "predicted", "model", "response"}
_CONFIDENCES = {"confidence", "confidences", "conf", "certainty", "msp"}
_MAXIMA = {"max", "maximum", "top", "top1"}


def says_whether_right(label: str, classes: Sequence[str], score: str) -> bool:
    """Whether a column of labels, by its name or values, says which answers were right.

    Not if the column of scores is named for that, too, as "p_correct" is.
    """
    if _words(score) & _RIGHT:
        return False
    words = _words(label)
    is_verdict = bool(words & _RIGHT) and words <= _RIGHT | _PLAIN
    return is_verdict or {name.strip().lower() for name in classes} in _VERDICTS


def is_confidence(score: str) -> bool:
    """Whether a column is named as the probability of whichever class was predicted."""
    words = _words(score)
    return bool(words & _CONFIDENCES) or bool(
        words & _MAXIMA and words & {"prob", "probability", "proba", "p", "score", "softmax"}
    )


def warning_of_answers(label: str, classes: Sequence[str], positive: str, score: str) -> str:
    """The warning about labels that say which answers were right."""
    return (
        f"column {label!r} looks like whether answers were right. It is read as two classes "
        f"({listed(classes)}) and {score!r} as the probability of {positive!r}, so that the "
        "figures say how well right and wrong answers are told apart, not how bad the confident "
        f"mistakes are. For answers that are right or wrong, give --correct {shlex.quote(label)} "
        f"--confidence {shlex.quote(score)}; for classes, give the true class and the probability "
        f"of each class; if this reading is meant, say so with --positive {shlex.quote(positive)}."
    )


def warning_of_confidence(positive: str, score: str) -> str:
    """The warning about scores that never speak against the positive class."""
    return (
        f"column {score!r} is never below one half, as the probability of whichever class was "
        f"predicted. It is read as the probability of {positive!r}, of two classes, so that every "
        f"case is predicted {positive!r}. Where the other class was predicted, give 1 - {score}; "
        "if you only know which answers were right, give --correct COLUMN --confidence "
        f"{shlex.quote(score)}; if this reading is meant, say so with --positive "
        f"{shlex.quote(positive)}."
    )


def _words(name: str) -> set[str]:
    """Words of a name: "isCorrect", "is_correct" and "Is correct" have the same."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return set(re.findall(r"[a-z0-9]+", spaced.lower()))
