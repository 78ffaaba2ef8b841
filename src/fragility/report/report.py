"""Report: several models on the same cases, in one table, with findings in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._files import write_whole
from .._labels import later_category, listed
from .._parameters import check_confidence, check_count
from ..calibration import calibrated, why_not_calibrated
from ..deferral import Costs
from ..measured import FIGURES
from ..metrics.displays.estimator import named_models
from . import data as export
from . import text
from .findings import Figures, findings
from .inputs import (
    absent_classes,
    as_costs,
    check_extra_metrics,
    check_groups,
    checked_model,
    named_predictions,
    shaped_like,
)
from .measuring import (
    Metric,
    Settings,
    compared,
    extra_figures,
    group_figures,
    model_figures,
    worst_cases,
)
from .parts import Comparison, Finding, GroupFigures, ModelReport

__all__ = ["Report"]


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """What several models do on the same cases: figures, comparisons, findings, worst cases.

    Made by `from_predictions` or `from_estimators`. ``print(report)`` shows the table and the
    findings; `to_html` writes a page, `to_json`, `to_frame` and `to_markdown` the same as data.

    Attributes
    ----------
    models : tuple of ModelReport
        Each with its figures as it is (`raw`) and after cross-fitted calibration (`calibrated`).
    comparisons : tuple of Comparison
        Every two models by a paired test; p-values allow for the number of pairs (Holm).
    groups : tuple of GroupFigures
        The index of each model in each group.
    findings : tuple of Finding
        What the figures say, in plain words.
    labels, support : tuple
        The classes and the number of cases of each (of positive weight).
    positive : object
        The positive class of two; None for several.
    costs : Costs or None
    confidence : float
        Of all intervals.
    notes : tuple of str
        What was left out, or is known up to bounds only, and why.
    streamed : bool
        Whether it was measured in passes over a file.
    weighted : bool
        Whether the cases have weights.

    Examples
    --------
    >>> import numpy as np
    >>> from fragility import Report
    >>> rng = np.random.default_rng(0)
    >>> logit = 2 * rng.normal(size=400)
    >>> sick = rng.random(400) < 1 / (1 + np.exp(-logit))
    >>> report = Report.from_predictions(
    ...     sick, {"fair": 1 / (1 + np.exp(-logit)), "bold": 1 / (1 + np.exp(-3 * logit))})
    >>> print(report.findings[0].text)  # doctest: +ELLIPSIS
    fair's lower Fragility Index before calibration (0.174 against 0.293) is explained by its ...
    """

    models: tuple[ModelReport, ...]
    comparisons: tuple[Comparison, ...]
    groups: tuple[GroupFigures, ...]
    labels: tuple[Any, ...]
    support: tuple[int, ...]
    positive: Any
    costs: Costs | None
    confidence: float
    extra: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    streamed: bool = False
    weighted: bool = False
    findings: tuple[Finding, ...] = field(init=False)

    def __post_init__(self) -> None:
        figures = Figures(
            self.models,
            self.comparisons,
            self.groups,
            self.labels,
            self.support,
            self.confidence,
            self.costs,
            self.positive,
        )
        object.__setattr__(self, "findings", findings(figures))

    @property
    def n_samples(self) -> int:
        """Cases of positive weight."""
        return sum(self.support)

    @cached_property
    def titles(self) -> dict[str, str]:
        """Names and titles of the figures in the table, in its order."""
        known = {name: kind.title for name, kind in FIGURES.items()}
        if self.costs is None:
            del known["cost"]
        return {**known, **{name: name for name in self.extra}}

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        models: Mapping[str, ArrayLike] | ArrayLike,
        *,
        groups: ArrayLike | None = None,
        costs: Costs | Mapping[str, Any] | None = None,
        extra_metrics: Mapping[str, Metric] | None = None,
        labels: Sequence[Any] | NDArray[Any] | None = None,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        cases: Sequence[Any] | NDArray[Any] | None = None,
        n_worst: int = 10,
        confidence: float = 0.95,
        calibrate: bool = True,
        random_state: int = 0,
    ) -> Report:
        """Report on predicted probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            The true classes.
        models : mapping of str to array-like
            Probabilities of each model: (n_samples,) of the positive class, or
            (n_samples, n_classes) in the order of `labels`. A bare array is one model.
        groups : array-like of shape (n_samples,), optional
            Group of each case, for the index by group.
        costs : Costs or mapping, optional
            ``{"error_cost": 10.0, "review_cost": 1.0, ...}``, see `fragility.deferral.Costs`: adds
            the best threshold of each model and what it costs.
        extra_metrics : mapping of str to function, optional
            More rows of the table: functions of ``(y_true, proba)``, called with
            ``sample_weight=`` where weights are given.
        labels, pos_label, sample_weight
            As in `fragility.confident_error_rate`.
        cases : sequence of length n_samples, optional
            What to call each case; by default its place, from 0.
        n_worst : int, default=10
            Worst cases to keep of each model. With 0 the report holds no single case at all.
        confidence : float, default=0.95
            Of the intervals.
        calibrate : bool, default=True
            Whether to add the figures after cross-fitted calibration, which the comparison of
            models needs.
        random_state : int, default=0
            Seed of the folds and of the bootstrap.

        Returns
        -------
        Report
        """
        probabilities = named_predictions(models)
        costs = as_costs(costs)
        n_worst, confidence = check_count(n_worst, "n_worst", 0), check_confidence(confidence)
        extra = check_extra_metrics(extra_metrics)
        data = [
            checked_model(name, y_true, proba, labels, pos_label, sample_weight)
            for name, proba in probabilities.items()
        ]
        first = data[0]
        n = first.codes.size
        group_names = None if groups is None else check_groups(groups, n)
        if cases is not None and len(cases) != n:
            raise ValueError(f"cases has {len(cases)} entries for {n} samples; give one for each.")
        if costs is not None:
            costs.checked(first.labels.size, n)  # before the long work
        settings = Settings(confidence, costs, random_state)
        notes = absent_classes(first)
        reason = why_not_calibrated(first) if calibrate else "not asked for"
        reports, after = [], []
        for (name, proba), part in zip(probabilities.items(), data, strict=True):
            given = extra_figures(extra, y_true, proba, part.weights)
            raw, found = model_figures(part, settings, given)
            fitted = None
            if not reason:
                others = [other for other in data if other is not part]
                fitted = calibrated(part, random_state=random_state, beside=others)
            later = None
            if fitted is not None:
                shaped = shaped_like(proba, fitted)
                given = extra_figures(extra, y_true, shaped, part.weights)
                later = model_figures(fitted, settings, given)[0].calibrated("cross_fitted")
            after.append(fitted)
            worst = worst_cases(found, part, n_worst, cases, group_names)
            reports.append(ModelReport(name, raw, later, reason, worst))
        if reason and calibrate:
            notes.append(f"No figures after calibration: {reason}.")
        names = list(probabilities)
        return cls(
            models=tuple(reports),
            comparisons=tuple(compared(names, data, after, confidence)),
            groups=tuple(
                part
                for report, of_model in zip(reports, data, strict=True)
                if group_names is not None
                for part in group_figures(
                    report.name, of_model, group_names, report.raw.pairs, confidence
                )
            ),
            labels=tuple(first.labels.tolist()),
            support=tuple(first.support.tolist()),
            positive=first.labels.tolist()[first.positive] if first.is_binary else None,
            costs=costs,
            confidence=confidence,
            extra=tuple(extra),
            notes=tuple(notes),
            weighted=first.weights is not None,
        )

    @classmethod
    def from_estimators(
        cls, estimators: Mapping[str, Any] | Sequence[Any], X: Any, y: ArrayLike, **options: Any
    ) -> Report:
        """Report on fitted classifiers with `predict_proba`, on data they were not fitted to.

        Parameters
        ----------
        estimators : mapping of str to classifier, or sequence of classifiers
            A sequence is named by their classes.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        **options
            As in `from_predictions`, but for `labels`, which are the classes of the estimators.

        Returns
        -------
        Report
        """
        if not isinstance(estimators, (Mapping, list, tuple)):
            estimators = [estimators]
        named = named_models(estimators)
        classes = None
        for name, estimator in named.items():
            if not hasattr(estimator, "predict_proba"):
                raise ValueError(
                    f"{name} ({type(estimator).__name__}) has no predict_proba; wrap it in "
                    "CalibratedClassifierCV, or give probabilities of your own to "
                    "from_predictions."
                )
            own = np.asarray(estimator.classes_)
            if classes is not None and own.tolist() != classes.tolist():
                raise ValueError(
                    f"{name} knows the classes {listed(own)}, another model {listed(classes)}; "
                    "models are compared on the same classes."
                )
            classes = own
        if classes is not None:
            options.setdefault("pos_label", later_category(y, classes))
        probabilities = {name: model.predict_proba(X) for name, model in named.items()}
        return cls.from_predictions(y, probabilities, labels=classes, **options)

    def with_notes(self, *notes: str) -> Report:
        """The same report with more notes."""
        return replace(self, notes=(*self.notes, *notes)) if notes else self

    def to_dict(self) -> dict[str, Any]:
        """All of the report in plain Python values; floats may be inf and NaN."""
        return export.to_dict(self)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Strict JSON: infinity is the text "Infinity", what is undefined is null."""
        return export.to_json(self, indent)

    def to_metrics(self) -> dict[str, float]:
        """A flat dictionary of numbers, ``{"model/fragility_index": 0.17, ...}``.

        For ``mlflow.log_metrics(report.to_metrics())`` and ``wandb.log(report.to_metrics())``.
        """
        return export.to_metrics(self)

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame: a row for each model, figure, and calibration."""
        return export.to_pandas(self)

    def to_polars(self) -> Any:
        """The table as a polars DataFrame."""
        return export.to_polars(self)

    def to_arrow(self) -> Any:
        """The table as a pyarrow Table."""
        return export.to_arrow(self)

    def to_markdown(self) -> str:
        """The table, the findings and all else, for a README or a pull request."""
        return text.to_markdown(self)

    def to_html(self, path: Any = None, *, cases: bool = True) -> str:
        """The report as one HTML page that needs nothing else; with `path`, it is written there.

        On the page thresholds and costs can be changed, and all that depends on them follows.

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

        content = page(self, cases=cases)
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
        return text.to_text(self)
