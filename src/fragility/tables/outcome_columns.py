"""Which columns say whether answers were right and how sure the models were."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .._labels import listed
from ..exceptions import TableError
from .columns import CaseColumns, parse_option
from .table import Table


class ByModel(NamedTuple):
    """Columns by model: whether it was right, how sure it was, whether it gave no answer."""

    correct: dict[str, str]
    confidence: dict[str, str]
    declined: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class OutcomeColumns(CaseColumns):
    """Columns of the outcomes and confidences of each model, and what else there may be."""

    correct: dict[str, str]
    confidence: dict[str, str]
    declined: dict[str, str]
    roles = "correct, declined, group or cluster"

    @property
    def categorical(self) -> list[str]:
        """Columns of few values that repeat."""
        return self._with_shared([*self.correct.values(), *self.declined.values()], numeric=False)

    @property
    def numeric(self) -> list[str]:
        """Columns of numbers."""
        return self._with_shared(self.confidence.values(), numeric=True)

    def check(self, table: Table) -> None:
        """Refuse columns that are not there, that are to be two things, or that lack others."""
        if not self.confidence or list(self.correct) != list(self.confidence):
            raise table.error(
                "correct and confidence must name a column for each of the same models; got "
                f"{listed(self.correct) or 'none'} and {listed(self.confidence) or 'none'}."
            )
        unknown = [model for model in self.declined if model not in self.correct]
        if unknown:
            raise table.error(
                f"declined names {listed(unknown)}; the models are {listed(self.correct)}."
            )
        super().check(table)


def parse_outcomes(
    correct: Sequence[str],
    confidence: Sequence[str],
    declined: Sequence[str] = (),
    available: Collection[str] = (),
) -> ByModel:
    """Columns of each model, from options as a person writes them.

    Parameters
    ----------
    correct, confidence, declined : sequence of str
        Each is ``NAME=column``, and the same name is the same model. A model without a name has
        that of its column of confidences. One column without a name holds for all models.
    available : collection of str, optional
        Columns there are. What is the name of one as a whole is taken as such.

    Examples
    --------
    >>> parse_outcomes(["ok"], ["p"]).confidence
    {'p': 'p'}
    >>> parse_outcomes(["a=ok_a", "b=ok_b"], ["a=p_a", "b=p_b"]).correct
    {'a': 'ok_a', 'b': 'ok_b'}
    >>> parse_outcomes(["ok"], ["asked", "measured"]).correct
    {'asked': 'ok', 'measured': 'ok'}
    """
    given = {"--correct": correct, "--confidence": confidence, "--declined": declined}
    for option in ("--correct", "--confidence"):
        if not given[option]:
            raise TableError(
                f"{option} is not given: outcomes need a column that says which answers were right "
                "(--correct) and one of the confidence in them (--confidence)."
            )
    parts = {option: [_named(text, available) for text in texts] for option, texts in given.items()}
    names = {name for found in parts.values() for name, _ in found if name is not None}
    if all(len(found) <= 1 for found in parts.values()) and len(names) <= 1:
        only = names.pop() if names else parts["--confidence"][0][1]
        parts = {option: [(only, c) for _, c in found] for option, found in parts.items()}
    parts["--confidence"] = [(c if name is None else name, c) for name, c in parts["--confidence"]]
    models = dict.fromkeys(name for name, _ in parts["--confidence"])
    for option in ("--correct", "--declined"):
        if len(parts[option]) == 1 and parts[option][0][0] is None:
            parts[option] = [(name, parts[option][0][1]) for name in models]
    for option, found in parts.items():
        unnamed = [column for name, column in found if name is None]
        if unnamed:
            raise TableError(
                f"{option} names several columns, and {listed(unnamed)} for no model; write "
                f"{option} NAME=COLUMN for each, or one column for all models."
            )
    made = ByModel(*(_by_name(option, found) for option, found in parts.items()))
    for have, of, lack, what in (
        (made.confidence, "--confidence", made.correct, "--correct"),
        (made.correct, "--correct", made.confidence, "--confidence"),
        (made.declined, "--declined", made.correct, "--correct"),
    ):
        missing = [model for model in have if model not in lack]
        if missing:
            raise TableError(
                f"Model {listed(missing)} has {of} but no {what}; write {what} "
                f"{missing[0]}=COLUMN, or give both the same name."
            )
    return made._replace(correct={model: made.correct[model] for model in made.confidence})


def _named(text: str, available: Collection[str]) -> tuple[str | None, str]:
    """Name of the model, None if there is none, and the column."""
    if text in available or "=" not in text:
        if not text.strip():
            raise TableError("An option names no column; write COLUMN or NAME=COLUMN.")
        return None, text
    name, columns = parse_option(text, available)
    if len(columns) > 1:
        raise TableError(f"{text!r} names {len(columns)} columns; an outcome has one.")
    return name, columns[0]


def _by_name(option: str, found: Sequence[tuple[str | None, str]]) -> dict[str, str]:
    made: dict[str, str] = {}
    for name, column in found:
        if str(name) in made:
            raise TableError(f"{option} is given twice for the model {name!r}; once will do.")
        made[str(name)] = column
    return made
