"""`Report.from_source`: the arguments of a report on rows wherever they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._parameters import check_confidence, check_count
from .._typing import Labels
from ..deferral import Costs, PolicySettings
from ..measured import CONFIDENT, MIN_CELL
from ..scores import HOLD
from .context import Context
from .findings import check_mute
from .inputs import as_costs, as_policy
from .model_figures import Settings

if TYPE_CHECKING:
    from .report import Report


class FromSource:
    """Makes reports on rows that an engine may hold."""

    @classmethod
    def from_source(
        cls,
        data: Any,
        *,
        label: str,
        scores: str | Sequence[str] | Mapping[str, str | Sequence[str]],
        groups: str | Sequence[str] | None = None,
        cross_groups: bool = True,
        min_cell: int = MIN_CELL,
        costs: Costs | Mapping[str, Any] | None = None,
        error_cost: str | None = None,
        human: str | None = None,
        reviewer_error: str | None = None,
        policy: PolicySettings | Mapping[str, Any] | None = None,
        labels: Labels = None,
        pos_label: Any = None,
        weight: str | None = None,
        drop_missing: bool = False,
        hold: float = HOLD,
        confidence: float = 0.95,
        calibrate: bool = True,
        random_state: int = 0,
        confident: float = CONFIDENT,
        prevalence: float | None = None,
        context: Context | Mapping[str, Any] | None = None,
        mute: Sequence[str] = (),
    ) -> Report:
        """Report on predictions wherever they are: files, queries, frames of Dask or Spark.

        Every part of the data fills a state where it lies, and states are merged; what takes the
        cases once more is read where they lie, too. The report is the same for the same rows,
        however they are spread, and agrees with `from_predictions` on them: up to `hold` scores to
        the last digits, beyond that up to its bounds. Single cases are not listed, and there are no
        clusters: parts have no order that all engines keep.

        Parameters
        ----------
        data : mapping of str to array, table, path, dataset, query or DataFrame
            As in `fragility.distributed.sketch`.
        label : str
            Column of the true labels: text, booleans or whole numbers.
        scores : str, sequence of str, or mapping of str to str or sequence of str
            Columns of scores, each a model; or by model its column, or one for each class.
        groups : str or sequence of str, optional
            Columns of groups; a column of numbers may be cut into ranges, as in ``"age:40,60"``.
        costs : Costs or mapping, optional
            As in `from_predictions`, with numbers or a matrix for `error_cost`.
        error_cost, human, reviewer_error, weight : str, optional
            Columns with what an error on each row costs, the class that a human decided, the
            probability that a reviewer errs, and the weight.
        labels, pos_label
            All classes, in the order of the score columns; the positive one of two. By default the
            label column is read first.
        drop_missing : bool, default=False
            Leave out rows with a missing value in a column that is used, and count them.
        hold : float, default=2**20
            Scores (rows times columns) that are held in memory, where the report is made. More are
            measured from exact sums.
        cross_groups, min_cell, policy, confidence, calibrate, random_state, confident, prevalence,\
 context, mute
            As in `from_predictions`.

        Returns
        -------
        Report

        Raises
        ------
        PartitionError
            If a part of the data cannot be read or used; it names the part.

        Examples
        --------
        >>> from fragility import Report
        >>> data = {"sick": [1, 0, 1, 0], "p": [0.6, 0.1, 0.9, 0.8]}
        >>> report = Report.from_source(data, label="sick", scores="p", calibrate=False)
        >>> round(report.models[0].raw.figures["fragility_index"].value, 6)
        0.163282
        """
        from .sources import SourceColumns, report_on_source  # which makes reports

        if error_cost is not None and (costs is None or isinstance(costs, Mapping)):
            costs = {"error_cost": None, **(costs or {})}
        settings = Settings(
            check_confidence(confidence),
            as_costs(costs),
            calibrate,
            0,
            random_state,
            as_policy(policy),
            confident,
            prevalence,
            check_count(min_cell, "min_cell", 0),
            mute=check_mute(mute),
        )
        columns = SourceColumns(
            label=label,
            scores=scores,
            groups=groups,
            cross_groups=cross_groups,
            labels=labels,
            pos_label=pos_label,
            weight=weight,
            error_cost=error_cost,
            human=human,
            reviewer_error=reviewer_error,
            drop_missing=drop_missing,
        )
        return report_on_source(data, columns, settings, hold).with_context(context)
