"""Confident mistakes by case: those that all models make, and those that are new."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._labels import listed
from .._typing import Floats, Integers, Mask
from ..scores.answers import Answers
from ..scores.cases import Cases
from ..scores.state import ScoreState
from .parts import NewMistake, NewMistakes, SharedMistake
from .rereading import CaseRows, PartReader, Rereading


class Made(NamedTuple):
    """Predictions of a model for some cases: classes as places in the labels."""

    predicted: NDArray[Any]
    confidence: Floats
    confidently_wrong: Mask


def made_by(state: ScoreState, cases: Cases, level: float) -> dict[str, Made]:
    """Predictions of every model, and which are wrong above a level of confidence."""
    found = {}
    for name in state.models:
        predicted, confidence = state.task.predictions(cases.scores[name])
        found[name] = Made(predicted, confidence, (predicted != cases.codes) & (confidence > level))
    return found


def made_answers(answers: Mapping[str, Answers], level: float) -> dict[str, Made]:
    """The same for answers, which all claim to be right."""
    found = {}
    for name, part in answers.items():
        wrong = part.answered & ~part.correct & (part.confidence > level)
        found[name] = Made(np.ones(wrong.size, dtype=np.uint8), part.confidence, wrong)
    return found


class SharedMistakes(PartReader):
    """Reads cases, and keeps those that every model gets confidently wrong.

    Parameters
    ----------
    state : ScoreState
    level : float
        Wrong predictions above this confidence are confident mistakes.
    n_listed : int
        Number of cases to keep: those of which the least sure model is surest.
    """

    KNOWN = ("_state",)

    def __init__(self, state: ScoreState, level: float, n_listed: int) -> None:
        self._state, self._n_listed = state.without_cases(), n_listed
        self.level = level
        #: How many there are.
        self.n = 0
        #: The surest, still without their names.
        self.cases: list[SharedMistake] = []

    def add(self, found: CaseRows) -> None:
        """Add a block of cases."""
        made = made_by(self._state, found.cases, self.level)
        self.add_made(made, found.rows, found.cases.codes, found.cases.groups)

    def add_made(
        self,
        made: Mapping[str, Made],
        rows: Integers,
        codes: NDArray[Any],
        groups: NDArray[Any] | None,
    ) -> None:
        """Add predictions for some cases, with their rows, true classes and groups."""
        wrong = np.flatnonzero(np.all([part.confidently_wrong for part in made.values()], axis=0))
        self.n += wrong.size
        if not self._n_listed or not wrong.size:
            return
        surest = np.min([part.confidence[wrong] for part in made.values()], axis=0)
        labels = self._state.labels.tolist()
        self.cases += [
            SharedMistake(
                int(rows[place]),
                "",
                labels[int(codes[place])],
                {name: labels[int(part.predicted[place])] for name, part in made.items()},
                {name: float(part.confidence[place]) for name, part in made.items()},
                self._state.group_of(groups, place),
            )
            for place in wrong[np.argsort(-surest, kind="stable")[: self._n_listed]].tolist()
        ]
        self._keep_surest()

    def merge(self, other: SharedMistakes) -> None:
        """Add what a reader of other cases was told."""
        self.n += other.n
        self.cases += other.cases
        self._keep_surest()

    def _keep_surest(self) -> None:
        self.cases.sort(key=lambda case: (-min(case.confidence.values()), case.row))
        del self.cases[self._n_listed :]

    def finish(self) -> None:
        """Nothing is handed on."""

    def named(self, names: Mapping[int, str]) -> tuple[SharedMistake, ...]:
        """The cases with their names, by row."""
        return tuple(replace(case, case=names[case.row]) for case in self.cases)


class NamedCases(Protocol):
    """Cases that can be read again and again, and have names of their own."""

    @property
    def state(self) -> ScoreState:
        """State of the same classes and models, with or without the cases."""

    @property
    def read(self) -> Rereading:
        """Gives the cases with their rows."""

    def names(self, rows: Sequence[int]) -> Mapping[int, str]:
        """Names of the cases of some rows."""

    def rows(self, names: set[str]) -> Mapping[str, int]:
        """Rows of the cases of these names; those without such a case are left out."""


def new_mistakes(
    new: NamedCases, old: NamedCases, level: float, n_listed: int
) -> tuple[NewMistakes, ...]:
    """Cases that models get confidently wrong now, and did not before; by model.

    Raises
    ------
    ValueError
        If the two do not have the same classes and models.
    """
    for what, own, others in (
        ("classes", new.state.labels.tolist(), old.state.labels.tolist()),
        ("models", list(new.state.models), list(old.state.models)),
    ):
        if own != others:
            raise ValueError(
                f"The previous predictions have other {what} ({listed(others)}) than these "
                f"({listed(own)}); give predictions of the same."
            )
    now, before = (_wrong_rows(part, level) for part in (new, old))
    names_now, names_before = (
        part.names(sorted(set().union(*(rows.tolist() for rows in found.values()))))
        for part, found in ((new, now), (old, before))
    )
    wanted = {*names_now.values(), *names_before.values()}
    made_before, made_now = (_predictions_of(part, wanted) for part in (old, new))
    if names_now and names_before and not made_before.keys() & made_now.keys():
        raise ValueError(
            f"Not one of the {len(wanted):,} confident mistakes is on a case that both the "
            "predictions and the previous ones have. Do both name their cases in the same way?"
        )
    found = []
    for model in new.state.models:
        wrong_before = {names_before[row] for row in before[model].tolist()}
        wrong_now = {names_now[row] for row in now[model].tolist()}
        fresh = [name for name in wrong_now if name in made_before and name not in wrong_before]
        mended = sum(name in made_now and name not in wrong_now for name in wrong_before)
        unknown = sum(name not in made_before for name in wrong_now)
        cases = [
            _new_mistake(new.state, model, name, made_now[name], made_before[name])
            for name in fresh
        ]
        cases.sort(key=lambda case: (-case.confidence, case.row))
        found.append(NewMistakes(model, len(fresh), mended, unknown, tuple(cases[:n_listed])))
    return tuple(found)


def _wrong_rows(cases: NamedCases, level: float) -> dict[str, Integers]:
    """By model, rows of the cases that it gets confidently wrong."""
    rows: dict[str, list[Integers]] = {name: [np.zeros(0, np.int64)] for name in cases.state.models}
    for found in cases.read():
        for name, made in made_by(cases.state, found.cases, level).items():
            rows[name].append(found.rows[made.confidently_wrong])
    return {name: np.concatenate(parts) for name, parts in rows.items()}


class _Predicted(NamedTuple):
    """A case: its row and true class; by model the class that is predicted, and how surely."""

    row: int
    true: int
    by_model: Mapping[str, tuple[int, float]]


def _predictions_of(cases: NamedCases, names: set[str]) -> dict[str, _Predicted]:
    """Predictions for the cases of these names, as far as they are read: rows may be left out."""
    rows = {row: name for name, row in cases.rows(names).items()}
    wanted = np.array(sorted(rows), dtype=np.int64)
    found = {}
    for part in cases.read() if wanted.size else ():
        own = part.take(np.flatnonzero(np.isin(part.rows, wanted)))
        made = made_by(cases.state, own.cases, 1.0)
        for place, row in enumerate(own.rows.tolist()):
            by_model = {
                name: (int(each.predicted[place]), float(each.confidence[place]))
                for name, each in made.items()
            }
            found[rows[row]] = _Predicted(row, int(own.cases.codes[place]), by_model)
    return found


def _new_mistake(
    state: ScoreState, model: str, name: str, now: _Predicted, before: _Predicted
) -> NewMistake:
    labels = state.labels.tolist()
    predicted, confidence = now.by_model[model]
    predicted_before, confidence_before = before.by_model[model]
    return NewMistake(
        now.row,
        name,
        labels[now.true],
        labels[predicted],
        confidence,
        labels[before.true],
        labels[predicted_before],
        confidence_before,
    )


@dataclass(frozen=True, eq=False)
class ArrayCases:
    """Cases in memory, with the name of each."""

    state: ScoreState
    read: Rereading
    named: Sequence[str]

    def names(self, rows: Sequence[int]) -> Mapping[int, str]:
        """Names of the cases of some rows."""
        return {row: self.named[row] for row in rows}

    def rows(self, names: set[str]) -> Mapping[str, int]:
        """Rows of the cases of these names."""
        return found_rows(names, enumerate(self.named), "cases")


def found_rows(names: set[str], numbered: Iterable[tuple[int, str]], what: str) -> dict[str, int]:
    """Rows of these names among all; a name that two rows have is refused."""
    found: dict[str, int] = {}
    for row, name in numbered:
        if name in names:
            if name in found:
                raise ValueError(
                    f"{what}: the case {name!r} occurs twice (rows {found[name]} and {row}); each "
                    "case needs a name of its own."
                )
            found[name] = row
    return found
