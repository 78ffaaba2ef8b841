"""What a report can be turned into: data, tables, text, a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from .._files import write_whole
from . import data, text

if TYPE_CHECKING:
    from .report import Report


class Exports:
    """A report as data, tables, text and a page."""

    @property
    def _report(self) -> Report:
        return cast("Report", self)

    def to_dict(self) -> dict[str, Any]:
        """The whole report in plain Python values; floats may be inf and NaN."""
        return data.to_dict(self._report)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Strict JSON: infinity is the text "Infinity", an undefined number is null."""
        return data.json_text(self.to_dict(), indent)

    def to_metrics(self) -> dict[str, float]:
        """A flat dictionary of numbers, ``{"model/fragility_index": 0.17, ...}``.

        For ``mlflow.log_metrics(report.to_metrics())`` and ``wandb.log(report.to_metrics())``.
        """
        return data.to_metrics(self._report)

    def to_frame(self, table: str = "figures") -> Any:
        """A table as a pandas DataFrame: by default a row for each model, calibration and figure.

        Parameters
        ----------
        table : str, default="figures"
            "figures"; "evidence", single numbers of calibration, surest cases, credit and net
            benefit; "reliability", "operating", "decision_curve" and "risk_coverage", a row for
            each point; "confusion", the cases by truth and decision of the policy; "groups", a row
            for each model, group and figure; "comparisons" and "group_comparisons", one for each
            two models and figure, and group; "reviewers", what humans alone, each model alone and
            its policy cost, and errors of the humans.

        Returns
        -------
        pandas.DataFrame
        """
        return data.to_table(self._report, table, "pandas", "DataFrame")

    def to_polars(self, table: str = "figures") -> Any:
        """The same as `to_frame` as a polars DataFrame."""
        return data.to_table(self._report, table, "polars", "DataFrame")

    def to_arrow(self, table: str = "figures") -> Any:
        """The same as `to_frame` as a pyarrow Table."""
        return data.to_table(self._report, table, "pyarrow", "table")

    def to_text(self, *, full: bool = False) -> str:
        """Tables and findings for a terminal, as ``print(report)`` shows them.

        Parameters
        ----------
        full : bool, default=False
            Whether to add reliability, operating points, surest cases, and what policies decide.

        Returns
        -------
        str
        """
        return text.to_text(self._report, full=full)

    def to_markdown(self, *, full: bool = False) -> str:
        """The report in Markdown, for a README or a pull request; `full` as in `to_text`."""
        return text.to_markdown(self._report, full=full)

    def to_html(self, path: Any = None, *, cases: bool = True) -> str:
        """The report as one HTML page that needs no other file; with `path`, it is written there.

        A reader of the page can change thresholds and costs; charts and tables follow.

        Parameters
        ----------
        path : path, optional
        cases : bool, default=True
            Whether the page lists the worst cases. Without them it holds figures and counts only,
            no single case: for data of patients. A report made with ``n_worst=0`` has none.

        Returns
        -------
        str
            The page.
        """
        from .page import page  # the templating library is an extra

        content = page(self._report, cases=cases)
        if path is not None:
            write_whole(path, content.encode())
        return content

    def _repr_html_(self) -> str | None:
        from .page import framed

        try:
            return framed(self.to_html())
        except ImportError:  # notebooks then show the text
            return None

    def __repr__(self) -> str:
        return text.to_text(self._report)
