"""Outcomes in a file: whether answers were right, and how sure the models were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import Floats, Mask
from ..exceptions import TableError
from .case_batch import CaseBatch
from .case_files import CaseFile
from .group_columns import KnownGroups, parse_groups
from .outcome_columns import OutcomeColumns
from .problems import missing_values
from .reading import Kept, Reading
from .rows import floats
from .table import Table
from .truths import truths


@dataclass(frozen=True, eq=False, kw_only=True)
class OutcomeBatch(CaseBatch):
    """Rows of a file of outcomes, one after the other.

    Attributes
    ----------
    correct : dict of str to ndarray of bool, shape (n,)
        Of each model, which answers were right; False where it declined.
    confidence : dict of str to ndarray of shape (n,)
        Of each model, how sure it was, from 0 to 1; NaN where it declined.
    declined : dict of str to ndarray of bool, shape (n,), or None
        Of each model, where it gave no answer; None if it has no column for that.
    weights, error_costs : ndarray of shape (n,) or None
    groups : ndarray of shape (n, n_columns) or None
        Place of each row's group in the names of the groups, by column of groups.
    clusters : ndarray of shape (n,) or None
        Number of each row's cluster, the same in every reading of the file.
    first_row : int
        Number of the first row, as a person counts the rows below the header, from 1.
    rows : ndarray of shape (n,) or None
        Number of each row; None if none was left out here, so that they follow each other.
    fraction : float
        How much of the file has been read, from 0 to 1.
    """

    correct: dict[str, Mask]
    confidence: dict[str, Floats]
    declined: dict[str, Mask | None]

    @property
    def n_rows(self) -> int:
        """Rows here."""
        return next(iter(self.correct.values())).size


class OutcomeFile(CaseFile[OutcomeBatch]):
    r"""Which answers of models were right, and their confidence, in the columns of a table.

    Nothing is read before it is asked for. What is read is checked; what is wrong is said with
    its rows, as a `TableError`.

    Parameters
    ----------
    table : Table
        From `open_table`.
    correct : mapping of str to str
        Of each model the column that says whether its answer was right: booleans, 1 and 0, "yes"
        and "no", "correct" and "incorrect", or "C" and "I". Partial credit is refused.
    confidence : mapping of str to str
        Of each model the column of its confidence in its answer, from 0 to 1.
    declined : mapping of str to str, optional
        Of some models the column that says where it gave no answer, in the same words. There the
        other two columns do not count, and may be empty.
    weight, error_cost, cluster : str, optional
        Columns with the weight of each row, what a wrong answer to it costs, and which rows
        belong together.
    groups : sequence of str, optional
        Columns with groups of the rows; a column of numbers may be cut into ranges, as in
        ``"age:40,60"``.
    cross : bool, default=True
        Whether several columns of groups are crossed, too: one more column of their combinations.
    drop_missing : bool, default=False
        Leave out rows with a missing value in any column that is used, and count them.

    Examples
    --------
    >>> from fragility.tables import open_table
    >>> path = getfixture("tmp_path") / "answers.csv"
    >>> _ = path.write_text("score,p\nC,0.9\nI,0.8\nC,0.6\n")
    >>> file = OutcomeFile(open_table(path), correct={"m": "score"}, confidence={"m": "p"})
    >>> file.read().correct["m"]
    array([ True, False,  True])
    """

    def __init__(
        self,
        table: Table,
        *,
        correct: Mapping[str, str],
        confidence: Mapping[str, str],
        declined: Mapping[str, str] | None = None,
        weight: str | None = None,
        groups: Sequence[str] = (),
        cross: bool = True,
        error_cost: str | None = None,
        cluster: str | None = None,
        drop_missing: bool = False,
    ) -> None:
        self.columns = OutcomeColumns(
            correct=dict(correct),
            confidence=dict(confidence),
            declined={} if declined is None else dict(declined),
            weight=weight,
            groups=parse_groups(table, groups),
            error_cost=error_cost,
            cluster=cluster,
        )
        super().__init__(table, self.columns, cross=cross, drop_missing=drop_missing)

    @property
    def models(self) -> list[str]:
        """Names of the models."""
        return list(self.columns.confidence)

    def _reading(self) -> _OutcomeReading:
        groups = self._surveyed()
        return _OutcomeReading(self.table, self.columns, groups, self.drop_missing, self._clusters)


class _OutcomeReading(Reading[OutcomeBatch]):
    """One reading of a table of outcomes."""

    def __init__(
        self,
        table: Table,
        columns: OutcomeColumns,
        groups: KnownGroups,
        drop_missing: bool,
        clusters: dict[Any, int],
    ) -> None:
        super().__init__(table, columns, groups, drop_missing, clusters)
        self._outcomes = columns

    def batch(self, data: Any, fraction: float) -> OutcomeBatch | None:
        """The next rows as arrays; None if all are left out."""
        missing: Mask = np.zeros(data.num_rows, dtype=np.bool_)
        correct, confidence, declined = {}, {}, {}
        for model, column in self._outcomes.confidence.items():
            silent = None
            if model in self._outcomes.declined:
                silent, gaps = truths(self.table, data, self._outcomes.declined[model])
                missing |= gaps
            right, gaps = truths(self.table, data, self._outcomes.correct[model])
            sure = floats(self.table, data, column).astype(np.float64)
            gaps = gaps | np.isnan(sure)
            if silent is not None:
                gaps &= ~silent
                right, sure = right & ~silent, np.where(silent, np.nan, sure)
            missing |= gaps
            correct[model], confidence[model], declined[model] = right, sure, silent
        kept = self._kept(data, missing)
        if kept is None:
            return None
        return OutcomeBatch(
            correct={model: right[kept.places] for model, right in correct.items()},
            confidence={model: self._sure(model, sure, kept) for model, sure in confidence.items()},
            declined={
                model: None if silent is None else silent[kept.places]
                for model, silent in declined.items()
            },
            fraction=fraction,
            **kept.shared,
        )

    def _sure(self, model: str, sure: Floats, kept: Kept) -> Floats:
        """Confidences of rows that are used; NaN where there is no answer."""
        found = sure[kept.places].copy()
        answered = ~np.isnan(found)
        if answered.any():
            column = self._outcomes.confidence[model]
            found[answered] = self._probabilities(column, found[answered])
        return found

    def _missing_values(self) -> TableError:
        columns = self._outcomes
        return missing_values(
            self.table, columns.categorical, columns.numeric, excused=self._declined
        )

    def _declined(self, data: Any, name: str) -> Mask:
        """Rows that need no value in a column, because no model that it is for gave an answer."""
        columns = self._outcomes
        found: Mask = np.zeros(data.num_rows, dtype=np.bool_)
        users = [m for m in columns.correct if name in (columns.correct[m], columns.confidence[m])]
        if name in columns.shared:  # as a group of every row, say
            return found
        if users and all(model in columns.declined for model in users):
            found[:] = True
            for model in users:
                found &= truths(self.table, data, columns.declined[model])[0]
        return found
