"""Report: several models on the same cases, in one table, with findings in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import ArrayLike, NDArray

from .._parameters import check_confidence, check_count
from ..deferral import Costs, PolicySettings
from ..measured import CONFIDENT, MIN_CELL
from ..scores.answer_state import AnswerState
from ..scores.reviews import ReviewKind
from ..scores.state import ScoreState
from .arrays import (
    Groups,
    PreviousPredictions,
    estimator_predictions,
    given_cases,
    named_cases,
)
from .context import Context
from .exports import Exports
from .findings import check_mute, unmuted
from .from_source import FromSource
from .inputs import (
    Metric,
    as_costs,
    as_policy,
    check_extra_metrics,
    checked_settings,
)
from .measurements import Measurements
from .measuring import Builder, ExtraFigures
from .mistakes import NamedCases, new_mistakes
from .model_figures import Settings
from .parts import (
    Comparison,
    Finding,
    GroupComparison,
    GroupFigures,
    ModelReport,
    NewMistakes,
    SharedMistake,
)
from .provenance import Provenance
from .rereading import CaseNames, Rereading
from .verdict import Verdict, verdict
from .verdict_text import verdict_sentences


@dataclass(frozen=True, eq=False, repr=False)
class Report(Measurements, Exports, FromSource):
    """Several models on the same cases: figures, comparisons, findings, worst cases.

    Made by `from_predictions`, `from_outcomes`, `from_estimators`, `from_source` or `from_state`.
    ``print(report)`` shows the table and the findings; `to_html` writes a page, `to_json`,
    `to_frame` and `to_markdown` the same as data.

    Attributes
    ----------
    models : tuple of ModelReport
        Each with its figures as it is (`raw`) and after cross-fitted calibration (`calibrated`).
    comparisons : tuple of Comparison
        A paired test of every two models; p-values allow for the number of pairs (Holm).
    groups : tuple of GroupFigures
        Each model in each group: all figures, and what its policy does there.
    shared_mistakes : tuple of SharedMistake
        Cases that every one of several models gets confidently wrong, the surest: wrong labels, or
        a blind spot. As many as worst cases.
    n_shared_mistakes : int or None
        How many there are; None for one model, or if the cases cannot be read once more.
    new_mistakes : tuple of NewMistakes
        By model, what it gets confidently wrong and did not in previous predictions.
    findings : tuple of Finding
        What the figures say, in plain words; each with a code, which docs/findings.md explains.
    labels, support : tuple
        The classes and the number of cases of each (of positive weight). Answers are "wrong" and
        "right"; their numbers differ by model, so that `support` is empty: see `support_of`.
    positive : object
        The positive class of two; None for several.
    costs : Costs or None
    confidence : float
        Confidence level of all intervals.
    notes : tuple of str
        Sentences on what was left out, or is known up to bounds only, and why.
    streamed : bool
        Whether the figures come from sums, because the cases were too many to hold.
    weighted : bool
        Whether the cases have weights.
    confident : float
        A prediction above this confidence counts as confident.
    prevalence : float or None
        Share of the positive class that calibration, predictive values and net benefit were
        restated for.
    clustered : bool
        Whether intervals and tests count clusters of cases, not cases.
    min_cell : int
        Groups with fewer cases than this of any class are too small to be compared.
    reviewed : {"", "human", "errors"}
        Whether reviewers are known by their decisions, or by their errors, of each case.
    context : Context
        Title, present model, currency and volume, as they were given.
    provenance : Provenance
        Date, file, versions and seed.
    verdict : Verdict
        Which model to use, at which policy, what that saves, and what can go wrong.
    group_comparisons : tuple of GroupComparison
        Every two models in each group: log-loss, and cost at their policies.
    mute : tuple of str
        Codes of findings that are left out; a note says which of them would be there.

    Examples
    --------
    >>> import numpy as np
    >>> from fragility import Report
    >>> rng = np.random.default_rng(0)
    >>> logit = 2 * rng.normal(size=400)
    >>> sick = rng.random(400) < 1 / (1 + np.exp(-logit))
    >>> report = Report.from_predictions(
    ...     sick, {"fair": 1 / (1 + np.exp(-logit)), "bold": 1 / (1 + np.exp(-3 * logit))})
    >>> report.verdict.model
    'fair'
    >>> print(report.findings[0].text)  # doctest: +ELLIPSIS
    bold is overconfident above 90 % confidence: it claims 98.3 % and is right in 84.8 % of 289 ...
    """

    models: tuple[ModelReport, ...]
    comparisons: tuple[Comparison, ...]
    groups: tuple[GroupFigures, ...]
    shared_mistakes: tuple[SharedMistake, ...]
    n_shared_mistakes: int | None
    labels: tuple[Any, ...]
    support: tuple[int, ...]
    positive: Any
    costs: Costs | None
    confidence: float
    extra: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    streamed: bool = False
    weighted: bool = False
    confident: float = CONFIDENT
    prevalence: float | None = None
    clustered: bool = False
    min_cell: int = MIN_CELL
    new_mistakes: tuple[NewMistakes, ...] = ()
    reviewed: ReviewKind = ""
    group_comparisons: tuple[GroupComparison, ...] = ()
    mute: tuple[str, ...] = ()
    context: Context = field(default_factory=Context)
    provenance: Provenance = field(default_factory=lambda: Provenance.of(Settings()))
    verdict: Verdict = field(init=False)
    findings: tuple[Finding, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.context.check([model.name for model in self.models])
        said, notes = unmuted(self)
        object.__setattr__(self, "findings", said)
        object.__setattr__(self, "notes", notes)
        found = verdict(self)
        told = replace(found, sentences=verdict_sentences(self, found))
        object.__setattr__(self, "verdict", told)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        models: Mapping[str, ArrayLike] | ArrayLike,
        *,
        groups: Groups | None = None,
        cross_groups: bool = True,
        min_cell: int = MIN_CELL,
        costs: Costs | Mapping[str, Any] | None = None,
        human: ArrayLike | None = None,
        policy: PolicySettings | Mapping[str, Any] | None = None,
        extra_metrics: Mapping[str, Metric] | None = None,
        labels: Sequence[Any] | NDArray[Any] | None = None,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
        cases: Sequence[Any] | NDArray[Any] | None = None,
        n_worst: int = 10,
        confidence: float = 0.95,
        calibrate: bool = True,
        random_state: int = 0,
        confident: float = CONFIDENT,
        prevalence: float | None = None,
        previous: PreviousPredictions | None = None,
        context: Context | Mapping[str, Any] | None = None,
        mute: Sequence[str] = (),
    ) -> Report:
        """Report on predicted probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            The true classes.
        models : mapping of str to array-like
            Probabilities of each model: (n_samples,) of the positive class, or
            (n_samples, n_classes) in the order of `labels`. A bare array is one model.
        groups : array-like of shape (n_samples,), or mapping of str to these, optional
            Group of each case, in one column or in several by name: all figures by group. Numbers
            are cut into ranges by `fragility.in_ranges`.
        cross_groups : bool, default=True
            Whether several columns of groups are crossed, too.
        min_cell : int, default=20
            Groups with fewer cases than this of any class are shown, but not compared.
        costs : Costs or mapping, optional
            ``{"error_cost": 10.0, "review_cost": 1.0, ...}``, see `fragility.deferral.Costs`: adds
            the best policy of each model and its cost.
        human : array-like of shape (n_samples,), optional
            The class that a human decided on each case, in the place of `reviewer_error` of the
            costs: humans alone, each model alone and its policy are compared.
        policy : PolicySettings or mapping, optional
            How policies are chosen, and limits of errors that they must keep:
            ``{"max_error_rate": 0.01, ...}``, parameters of `fragility.best_policy`.
        extra_metrics : mapping of str to function, optional
            More rows of the table: functions of ``(y_true, proba)``, called with
            ``sample_weight=`` where weights are given.
        labels, pos_label, sample_weight
            As in `fragility.confident_error_rate`.
        cluster : array-like of shape (n_samples,), optional
            Cases that belong together, such as those of one patient: intervals and tests count
            clusters, not cases.
        cases : sequence of length n_samples, optional
            Name of each case; by default its row, from 0.
        n_worst : int, default=10
            Number of worst cases to list for each model. With 0 the report holds no single case.
        confidence : float, default=0.95
            Of the intervals.
        calibrate : bool, default=True
            Whether to add the figures after cross-fitted calibration, which the comparison of
            models needs.
        random_state : int, default=0
            Seed of the folds and of the draws for intervals of costs.
        confident : float, default=0.9
            A prediction above this confidence is a confident one: a round number, such as 0.8 or
            0.99.
        prevalence : float, optional
            Share of the positive class of two, between 0 and 1: restates slope, intercept and the
            other numbers of calibration, predictive values and net benefit for a place where it is
            so frequent. All else is that of the cases.
        previous : PreviousPredictions, optional
            Earlier predictions of the same models for cases that `cases` names: lists what is newly
            confidently wrong.
        context : Context or mapping, optional
            ``{"title": "Triage", "against": "old", "currency": "EUR", "volume": "50000/month"}``:
            what the report is called, the model in use today, and what its numbers mean.
        mute : sequence of str, optional
            Codes of findings that are not wanted, such as ``("FRA012",)``; a note says which of
            them are left out.

        Returns
        -------
        Report
        """
        costs, chosen_by = as_costs(costs), as_policy(policy)
        n_worst, confidence = check_count(n_worst, "n_worst", 0), check_confidence(confidence)
        mute = check_mute(mute)
        given = given_cases(
            y_true,
            models,
            groups=groups,
            cross_groups=cross_groups,
            costs=costs,
            human=human,
            extra_metrics=check_extra_metrics(extra_metrics),
            labels=labels,
            pos_label=pos_label,
            sample_weight=sample_weight,
            cluster=cluster,
            cases=cases,
            random_state=random_state,
        )
        settings = Settings(
            confidence,
            given.costs,
            calibrate,
            n_worst,
            random_state,
            chosen_by,
            confident,
            prevalence,
            check_count(min_cell, "min_cell", 0),
            mute=mute,
        )
        made = cls.from_cases(
            given.state,
            settings,
            reread=given.reread,
            extra=given.extra,
            name_cases=given.name_cases,
            clustered=given.clustered,
        ).with_context(context)
        if previous is None:
            return made
        return made.with_new_mistakes(*named_cases(given, cases, previous), n_worst)

    @classmethod
    def from_outcomes(
        cls,
        correct: Mapping[str, ArrayLike] | ArrayLike,
        confidences: Mapping[str, ArrayLike] | ArrayLike,
        *,
        declined: Mapping[str, ArrayLike] | ArrayLike | None = None,
        groups: Groups | None = None,
        cross_groups: bool = True,
        costs: Costs | Mapping[str, Any] | None = None,
        policy: PolicySettings | Mapping[str, Any] | None = None,
        sample_weight: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
        cases: Sequence[Any] | NDArray[Any] | None = None,
        n_worst: int = 10,
        confidence: float = 0.95,
        calibrate: bool = True,
        random_state: int = 0,
        confident: float = CONFIDENT,
        prevalence: float | None = None,
        min_cell: int = MIN_CELL,
        context: Context | Mapping[str, Any] | None = None,
        mute: Sequence[str] = (),
    ) -> Report:
        """Report on answers that are right or wrong, each with a confidence: no classes are needed.

        Parameters
        ----------
        correct : mapping of str to array-like of shape (n_samples,)
            Whether each answer of each model is right: booleans, or 0 and 1. A bare array, if there
            is one model, or it holds for all of them.
        confidences : mapping of str to array-like of shape (n_samples,)
            Probability that each answer is right, from 0 to 1. A bare array is one model.
        declined : the same, optional
            Cases that a model did not answer: neither right nor wrong, left out of its figures and
            counted. At a policy they cost a review. Their other values may be missing (NaN).
        costs : Costs or mapping, optional
            `error_cost` is that of a wrong answer: one number, or one for each case. A
            `reviewer_error` may be one number, or one by kind of answer (``{"wrong": 0.1, "right":
            0.02}``); reviewers of declined cases, which have no kind, err as in right ones.
        policy : PolicySettings or mapping, optional
            As in `from_predictions`, but for limits of misses and false alarms. A policy answers
            alone from a confidence on and passes all else on.
        groups, cross_groups, sample_weight, cluster, cases, n_worst, confidence, calibrate, \
random_state, confident, prevalence, min_cell, context, mute
            As in `from_predictions`; a prevalence is that of right answers.

        Returns
        -------
        Report

        Examples
        --------
        >>> from fragility import Report
        >>> report = Report.from_outcomes([1, 1, 0, 0], [0.6, 0.9, 0.1, 0.8], calibrate=False)
        >>> report.models[0].raw.figures["accuracy"].value
        0.5
        """
        from .outcome_arrays import AboutCases, report_on_arrays  # which makes reports

        n_worst, confidence = check_count(n_worst, "n_worst", 0), check_confidence(confidence)
        chosen_by = as_costs(costs), calibrate, n_worst, random_state, as_policy(policy), confident
        grouped = None if groups is None else (groups, cross_groups)
        about = AboutCases(sample_weight, grouped, cluster, cases)
        min_cell = check_count(min_cell, "min_cell", 0)
        settings = Settings(confidence, *chosen_by, prevalence, min_cell, mute=check_mute(mute))
        made = report_on_arrays(correct, confidences, declined, about, settings)
        return made.with_context(context)

    @classmethod
    def from_state(
        cls,
        state: ScoreState | Sequence[AnswerState],
        costs: Costs | Mapping[str, Any] | None = None,
        *,
        policy: PolicySettings | Mapping[str, Any] | None = None,
        confidence: float = 0.95,
        calibrate: bool = True,
        random_state: int = 0,
        confident: float = CONFIDENT,
        prevalence: float | None = None,
        min_cell: int = MIN_CELL,
        context: Context | Mapping[str, Any] | None = None,
        mute: Sequence[str] = (),
    ) -> Report:
        """Report on the cases of a state, which may have been merged from many.

        A state that holds its cases gives the same report as `from_predictions`, without the worst
        cases, which it cannot name. A state that does not hold them gives no paired tests, and for
        several classes no calibrated figures, and no intervals but of log-loss and of figures by
        confidence: these take the cases once more. Notes say so. No state knows clusters.

        Parameters
        ----------
        state : ScoreState or sequence of AnswerState
            Answers of several models to the same cases are in a state for each model.
        costs : Costs or mapping, optional
            As in `from_predictions`. If the cases have costs of their own, without `error_cost`;
            if their reviews are known by case, without `reviewer_error`.
        policy, confidence, calibrate, random_state, confident, prevalence, min_cell, context, mute
            As in `from_predictions`.

        Returns
        -------
        Report
        """
        states = [state] if isinstance(state, ScoreState) else list(state)
        if isinstance(costs, Mapping) and any(part.priced for part in states):
            costs = {"error_cost": None, **costs}
        level = check_confidence(confidence)
        chosen_by = level, as_costs(costs), calibrate, 0, random_state, as_policy(policy), confident
        min_cell = check_count(min_cell, "min_cell", 0)
        settings = Settings(*chosen_by, prevalence, min_cell, mute=check_mute(mute))
        if len(states) != 1 or states[0].answers:
            from .outcomes import report_on_states  # which makes reports

            return report_on_states(states, settings).with_context(context)
        return cls.from_cases(states[0], settings).with_context(context)

    @classmethod
    def from_cases(
        cls,
        state: ScoreState,
        settings: Settings,
        *,
        reread: Rereading | None = None,
        extra: ExtraFigures | None = None,
        name_cases: CaseNames | None = None,
        clustered: bool = False,
    ) -> Report:
        """Report on a state whose cases may be read again; the other constructors call it."""
        settings = checked_settings(settings, state)
        built = Builder(state, settings, reread, extra, name_cases, clustered=clustered).build()
        labels = state.labels.tolist()
        return cls(
            **vars(built),
            labels=tuple(labels),
            support=tuple(state.support.tolist()),
            positive=labels[state.positive] if state.is_binary else None,
            costs=settings.costs,
            confidence=settings.confidence,
            extra=tuple(next(iter(extra.values()))[0]) if extra else (),
            streamed=not state.complete,
            weighted=state.weighted,
            confident=settings.confident,
            prevalence=settings.prevalence,
            clustered=clustered,
            min_cell=settings.min_cell,
            reviewed=state.reviewed or "",
            provenance=Provenance.of(settings),
            mute=settings.mute,
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
        found = estimator_predictions(estimators, X, y)
        options.setdefault("pos_label", found.positive)
        return cls.from_predictions(y, found.probabilities, labels=found.classes, **options)

    def with_new_mistakes(self, new: NamedCases, old: NamedCases, n_listed: int) -> Report:
        """The same report with what is newly confidently wrong; other constructors call it."""
        return replace(self, new_mistakes=new_mistakes(new, old, self.confident, n_listed))

    def with_context(self, context: Context | Mapping[str, Any] | None) -> Report:
        """The same report in another context: title, present model, currency, volume."""
        found = Context.of(context)
        return self if found == self.context else replace(self, context=found)

    def with_notes(self, *notes: str) -> Report:
        """The same report with more notes."""
        return replace(self, notes=(*self.notes, *notes)) if notes else self
