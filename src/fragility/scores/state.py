"""ScoreState: what a report needs to know of the cases, in parts that merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._labels import encode_groups, listed
from .._names import shown
from .._typing import Floats, Integers
from .._validation import (
    LabelledScores,
    check_case_costs,
    check_labelled_probabilities,
    check_labels,
    positive_index,
    score_ranges,
)
from ..grouping import CROSS
from . import HOLD
from .cases import Cases, check_agreement, check_scale, check_total, joined
from .reviews import ReviewKind, ReviewSums, checked_reviews, review_kind
from .rows import CountedCases, LowestHashes
from .sums import Shape, Sums
from .tally import Task


class ScoreState:
    r"""What models did on some cases: everything that a report is made from, in parts that merge.

    A state is a function of the cases alone: never of their order, of how they came in batches, or
    of how states were merged. Up to `hold` scores it holds the cases themselves, and every figure
    is exact. Beyond that it has exact sums in narrow bins, and figures that depend on the order
    within a bin come with bounds. Calibrated figures of two classes use scores rounded to bins, on
    every path, unless bins are too wide to tell the classes apart.

    Parameters
    ----------
    labels : sequence
        All classes, in the order of the columns of the scores.
    models : sequence of str
        Names of the models.
    groups : sequence of str, or mapping of str to sequence of str, optional
        Names of all groups of cases; or, for several columns of groups, the names in each column. A
        crossing of two columns is one more column.
    weighted : bool, default=False
        Whether the cases have weights.
    hold : float, default=2**20
        Scores (cases times columns of scores) that the state may hold. With 0 it keeps no case as
        such; a bin that holds one case still tells its score.
    pos_label : label, optional
        The positive class of two; by default the second of `labels`.

    Examples
    --------
    >>> from fragility import Report, ScoreState
    >>> monday, tuesday = (ScoreState([0, 1], ["a"]) for _ in range(2))
    >>> _ = monday.update([1, 0], {"a": [0.6, 0.1]})
    >>> _ = tuesday.update([1, 0], {"a": [0.9, 0.8]})
    >>> report = Report.from_state(monday.merge(tuesday))
    >>> round(report.models[0].raw.figures["fragility_index"].value, 6)
    0.163282
    """

    #: Whether cases are answers, right or wrong: see `AnswerState`.
    answers = False

    def __init__(
        self,
        labels: Sequence[Any] | NDArray[Any],
        models: Sequence[str],
        groups: Sequence[str] | Mapping[str, Sequence[str]] = (),
        weighted: bool = False,
        hold: float = HOLD,
        *,
        pos_label: Any = None,
    ) -> None:
        self.labels = check_labels(labels)
        self.models = _check_names(models, "models")
        self.groups = _check_groups(groups)
        self.weighted = bool(weighted)
        self.hold = _check_hold(hold)
        self.positive = positive_index(self.labels, pos_label)
        self.support = np.zeros(self.labels.size, dtype=np.int64)
        n_groups = sum(map(len, self.groups.values()))
        self.group_support = np.zeros((n_groups, self.labels.size), dtype=np.int64)
        #: Whether cases have costs of their own; None before the first.
        self.priced: bool | None = None
        #: What is known of the reviews of the cases, and sums over it; None before the first.
        self.reviewed: ReviewKind | None = None
        self.reviews = ReviewSums(self.labels.size)
        #: The cases that it holds, as they came.
        self.held: list[Cases] = []
        self._sums: Sums | None = None
        #: Of several classes, once the cases themselves are gone.
        self._drawn = LowestHashes(0)

    # What it is.

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes."""
        return self.labels.size == 2

    @property
    def complete(self) -> bool:
        """Whether it holds every case."""
        return self._sums is None

    @property
    def n_columns(self) -> int:
        """Columns of scores of all models."""
        return len(self.models) * self.shape.n_columns

    @property
    def shape(self) -> Shape:
        """What is measured."""
        return Shape(
            self.labels.size,
            self.positive,
            self.models,
            tuple(len(names) for names in self.groups.values()),
            self.weighted,
            bool(self.priced),
            self.answers,
            bool(self.reviewed) and self.is_binary,
        )

    @property
    def task(self) -> Task:
        """What the models were asked."""
        return self.shape.task

    # Adding cases.

    def update(
        self,
        y_true: ArrayLike,
        scores: Mapping[str, ArrayLike] | ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: Mapping[str, ArrayLike] | ArrayLike | None = None,
        case_costs: ArrayLike | None = None,
        *,
        reviewer_error: ArrayLike | None = None,
        human: ArrayLike | None = None,
    ) -> ScoreState:
        """Add cases; returns itself. What is refused changes nothing.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        scores : mapping of str to array-like
            Of each model probabilities of the positive class (n_samples,), or of each class
            (n_samples, n_classes). A bare array, if there is one model.
        sample_weight : array-like of shape (n_samples,), optional
            If the state is weighted.
        groups : array-like of shape (n_samples,), or mapping of str to array-like, optional
            Group of each case, in each column of groups.
        case_costs : array-like of shape (n_samples,), optional
            What an error on each case costs: in all updates, or in none.
        reviewer_error : array-like of shape (n_samples,), optional
            Probability that a reviewer of each case errs: in all updates, or in none.
        human : array-like of shape (n_samples,), optional
            The class that a human decided on each case: in all updates, or in none.
        """
        if np.size(y_true) == 0:
            return self
        if not isinstance(scores, Mapping):
            scores = dict.fromkeys(self.models[:1], scores)
        unlike = set(scores) ^ set(self.models)
        if unlike:
            raise ValueError(
                f"scores must have an entry for each of the models {listed(self.models)}; these "
                f"are missing, or are not models: {listed(sorted(map(str, unlike)))}."
            )
        if sample_weight is not None and not self.weighted:
            raise ValueError("sample_weight was given to a state made without weighted=True.")
        data = {
            name: check_labelled_probabilities(
                y_true,
                scores[name],
                labels=self.labels,
                pos_label=self.labels.tolist()[self.positive] if self.is_binary else None,
                sample_weight=sample_weight,
                name=f"scores[{name!r}]",
                weightless=True,  # a part of the cases may carry no weight, though the whole does
            )
            for name in self.models
        }
        codes = self.group_codes(groups, np.size(y_true))
        reviews = checked_reviews(reviewer_error, human, self.labels, np.size(y_true))
        return self.add_checked(data, codes, case_costs, *reviews)

    def add_checked(
        self,
        data: Mapping[str, LabelledScores],
        groups: NDArray[Any] | None,
        case_costs: ArrayLike | None,
        human: NDArray[Any] | None = None,
        reviewer_errors: Floats | None = None,
    ) -> ScoreState:
        """Add checked predictions of every model on the same cases."""
        first = data[self.models[0]]
        costs = None
        if case_costs is not None:
            costs = check_case_costs(case_costs, first.codes.size, "case_costs")
        scores = {name: clipped(part) for name, part in data.items()}
        weights = first.weights
        return self.add(Cases(first.codes, scores, weights, groups, costs, human, reviewer_errors))

    def add(self, cases: Cases) -> ScoreState:
        """Add checked cases, some of which may have no weight."""
        if cases.weights is not None:
            carrying = cases.weights > 0.0
            if not carrying.all():
                cases = cases.take(carrying)
        if not cases.size:
            return self
        check_scale(cases.weights, "sample_weight", "weights", "state")
        check_scale(cases.costs, "case_costs", "costs", "state")
        check_scale(cases.reviewer_errors, "reviewer_error", "shares", "state")
        priced, reviewed = cases.costs is not None, review_kind(cases)
        self.check_priced(priced)
        if self.reviewed not in (None, reviewed):
            raise ValueError(
                "The reviews of some cases are known in another way, or not at all: give human, or "
                "reviewer_error, in every update, or in none."
            )
        if self.weighted:
            cases = cases.weighted()
        more = np.bincount(cases.codes, minlength=self.labels.size)
        by_case = bool(reviewed) and self.is_binary
        self._check_room(replace(self.shape, priced=priced, reviewed=by_case), more, self.hold)
        self.priced, self.reviewed = priced, reviewed
        if reviewed:
            self.reviews.add(cases)
        self.support += more
        for places in self.shape.group_places(cases):
            places *= self.labels.size
            places += cases.codes
            counts = np.bincount(places, minlength=self.group_support.size)
            self.group_support += counts.reshape(self.group_support.shape)
        self._keep([cases])
        return self

    def check_priced(self, priced: bool) -> None:
        """Refuse cases with costs of their own among others, and the other way round."""
        if self.priced not in (None, priced):
            raise ValueError(
                "Some cases have costs of their own, but not all: give case_costs in every update, "
                "or in none."
            )

    def _check_room(self, shape: Shape, more: Integers, hold: float) -> None:
        """Refuse cases that are too many to count, or too many classes for sums."""
        check_total(self.support, more, "state")
        if self._sums is None and int((self.support + more).sum()) * self.n_columns > hold:
            Sums(shape)  # which says what it cannot hold

    def _keep(self, more: Sequence[Cases], sums_only: bool = False) -> None:
        """Hold more cases, or sums over all of them if they are too many to hold."""
        if self._sums is None:
            self.held += more
            if not sums_only and int(self.support.sum()) * self.n_columns <= self.hold:
                return
            more, self.held = self.held, []
            self._sums, self._drawn = Sums(self.shape), LowestHashes(self.sample_size)
        for part in more:
            self._sums.add(part)
            if self.sample_size:
                self._drawn.add(CountedCases.of(part))

    # Reading it.

    def cases(self) -> Cases:
        """All cases, if it is complete; in an order that does not depend on how they came."""
        found = joined(self.held)
        return found.take(np.argsort(found.hashes(), kind="stable"))

    def sums(self) -> Sums:
        """Sums over all cases; while cases are held, without sums by group."""
        if self._sums is not None:
            return self._sums
        found = Sums(replace(self.shape, n_groups=()))
        for part in self.held:
            found.add(part)
        return found

    @property
    def sample_size(self) -> int:
        """Distinct cases to fit a map of several classes to, if not all are held; 0 for none."""
        return 0 if self.is_binary else int(min(self.hold, HOLD)) // self.n_columns

    @property
    def fit_to_all(self) -> bool:
        """Whether maps of several classes are fitted to all cases: on every path, or on none."""
        return self.complete and int(self.support.sum()) * self.n_columns <= HOLD

    @property
    def mean_case_cost(self) -> float:
        """Mean cost of an error, of cases with costs of their own."""
        if self._sums is not None:
            cells = next(iter(self._sums.models.values())).tally.cells()
            assert cells.costs is not None
            return float(cells.costs.sum() / cells.weight.sum())
        cases = joined(self.held)
        assert cases.costs is not None
        return float(np.average(cases.costs, weights=cases.weights))

    def sample(self) -> CountedCases | None:
        """Cases to fit a calibration map of several classes to, the same on every path."""
        if not self.sample_size:
            return None
        drawn = LowestHashes(self.sample_size) if self.complete else self._drawn
        for part in self.held:
            drawn.add(CountedCases.of(part))
        return drawn.found()

    def labelled(self, name: str, cases: Cases) -> LabelledScores:
        """Scores of one model on some cases."""
        scores = cases.scores[name]
        return LabelledScores(
            scores,
            cases.codes,
            self.labels,
            self.positive,
            cases.weights,
            np.bincount(cases.codes, minlength=self.labels.size),
            score_ranges(scores),
            self.answers,
        )

    def by_group_column(self, table: NDArray[Any]) -> list[NDArray[Any]]:
        """Rows of a table by group, apart for each column of groups."""
        ends = np.cumsum([len(names) for names in self.groups.values()])
        return np.split(table, ends[:-1]) if self.groups else []

    def group_codes(self, groups: Any, n_samples: int) -> NDArray[Any] | None:
        """Place of each case's group, by column of groups."""
        if not self.groups:
            if groups is not None:
                raise ValueError("groups were given to a state made without names of groups.")
            return None
        columns = groups if isinstance(groups, Mapping) else {next(iter(self.groups)): groups}
        if set(columns) != set(self.groups) or any(part is None for part in columns.values()):
            raise ValueError(f"groups must be given for each of {listed(self.groups)}.")
        found = []
        for name, known in self.groups.items():
            names, codes = encode_groups(columns[name], n_samples)
            unknown = sorted(set(names) - set(known))
            if unknown:
                raise ValueError(
                    f"groups holds {listed(unknown)}, which the state was not told of; it knows "
                    f"{listed(known)}."
                )
            found.append(np.array([known.index(group) for group in names])[codes])
        return np.stack(found, axis=1)

    def group_of(self, groups: NDArray[Any] | None, place: int) -> str | None:
        """Group of one of some cases, in all columns; None if there is none."""
        if groups is None:
            return None
        columns = zip(self.groups.items(), groups[place].tolist(), strict=True)
        named = {column: names[code] for (column, names), code in columns}
        crossing, single = list(named)[-1], list(named)[:-1]
        # A crossing is named for all other columns.
        return named[crossing] if crossing == CROSS.join(single) else ", ".join(named.values())

    # Merging and storing.

    def merge(self, other: ScoreState) -> ScoreState:
        """Add all cases of another state; returns itself. A refused merge changes nothing.

        Cases without weights merge with weighted ones as cases of weight one.
        """
        if not isinstance(other, ScoreState):
            raise TypeError(f"A state merges with a state; got {type(other).__name__}.")
        for what, own, others in (
            ("labels", self.labels.tolist(), other.labels.tolist()),
            ("the positive class", self.positive, other.positive),
            ("whether cases are answers", self.answers, other.answers),
            ("models", self.models, other.models),
            ("groups", list(self.groups.items()), list(other.groups.items())),
        ):
            check_agreement("state", what, own, others)
        if None not in (self.priced, other.priced) and self.priced != other.priced:
            raise ValueError("One state has costs by case, the other has none.")
        if None not in (self.reviewed, other.reviewed) and self.reviewed != other.reviewed:
            raise ValueError(
                "The states know the reviews of their cases in different ways, or one does not."
            )
        if other is self:
            raise ValueError("A state was merged with itself, which would count its cases twice.")
        weighted, hold = self.weighted or other.weighted, min(self.hold, other.hold)
        priced = other.priced if self.priced is None else self.priced
        reviewed = other.reviewed if self.reviewed is None else self.reviewed
        by_case = bool(reviewed) and self.is_binary
        shape = replace(self.shape, weighted=weighted, priced=bool(priced), reviewed=by_case)
        self._check_room(shape, other.support, hold if other.complete else -1.0)
        self.weighted, self.hold, self.priced = weighted, hold, priced
        self.reviewed = reviewed
        if other.reviewed:
            self.reviews.merge(other.reviews)
        self.support += other.support
        self.group_support += other.group_support
        if self.weighted:
            self.held = [part.weighted() for part in self.held]
            self._sums = None if self._sums is None else self._sums.as_weighted()
        # It may have held more than it may hold now.
        drawn, self._drawn = self._drawn, LowestHashes(self.sample_size)
        self._drawn.merge(drawn, self.weighted)
        more = [part.weighted() if self.weighted else part for part in other.held]
        self._keep(more, sums_only=not other.complete)
        if other._sums is not None and self._sums is not None:
            self._sums.merge(other._sums)
            self._drawn.merge(other._drawn, self.weighted)
        return self

    def without_cases(self) -> ScoreState:
        """What is known beside the cases and sums over them: enough to read them once more."""
        found = copy(self)
        found.held, found._sums, found._drawn = [], None, LowestHashes(0)
        return found

    def take_sums(self, sums: Sums, sample: CountedCases | None) -> None:
        """Become a state of these sums over cases that it has counted."""
        self.held, self._sums, self._drawn = [], sums, LowestHashes(self.sample_size)
        if sample is not None:
            self._drawn.add(sample)

    def to_bytes(self) -> bytes:
        """The whole state, with version and checksum; the same bytes for the same cases."""
        from .state_bytes import sealed

        return sealed(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> ScoreState:
        """The state that `to_bytes` wrote.

        Raises
        ------
        ValueError
            If the bytes are not a state, are damaged, or come from another version.
        """
        from .state_bytes import opened

        return opened(data)

    def __repr__(self) -> str:
        held = "held" if self.complete else "in bins"
        return f"<ScoreState of {listed(self.models)}: {int(self.support.sum())} cases, {held}>"


def clipped(data: LabelledScores) -> NDArray[Any]:
    """Scores without what rounding adds beyond 0 and 1."""
    if data.ranges.min() >= 0.0 and data.ranges.max() <= 1.0:
        return data.scores
    found: NDArray[Any] = np.clip(data.scores, 0.0, 1.0)
    return found


def _check_hold(hold: Any) -> float:
    if not isinstance(hold, Real) or not float(hold) >= 0.0:
        raise ValueError(f"hold must be a number of scores, zero or more; got {shown(hold)}.")
    return float(hold)


def _check_names(names: Sequence[str], what: str) -> tuple[str, ...]:
    given = () if isinstance(names, str) else tuple(names)
    if not given or len(set(given)) < len(given) or not all(isinstance(n, str) for n in given):
        raise ValueError(f"{what} must be a list of different names; got {names!r}.")
    return given


def _check_groups(
    groups: Sequence[str] | Mapping[str, Sequence[str]],
) -> dict[str, tuple[str, ...]]:
    columns = groups if isinstance(groups, Mapping) else ({"group": groups} if len(groups) else {})
    return {str(column): _check_names(names, "groups") for column, names in columns.items()}
