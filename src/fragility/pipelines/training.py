"""From a data frame to a trained pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Literal

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from .._parameters import check_choice, check_count, check_intercept
from .._typing import Floats, Intercept
from ..ambiguity import Ambiguity, Wasserstein, as_ambiguity
from ..ambiguity.noise import NOISE_FLOOR
from ..distributed.requests import why_not
from ..exceptions import TableError
from ..linear_model import DROClassifier, ERMClassifier, SatisficingClassifier
from ..linear_model.base import LinearClassifier
from ..losses import Loss, as_loss
from ..sources.opening import open_source
from .frames import check_frame, read_columns
from .kinds import ColumnKinds, sort_columns
from .labels import read_labels, read_weights
from .noise import check_noise, noise_of_inputs
from .out_of_memory import prepare, train_prepared
from .reader import ColumnReader
from .selection import feature_names, rows_to_use
from .summary import TrainingSummary, guarantee_of, training_figures, units_of

Method = Literal["satisficing", "dro", "erm"]

_RADIUS = 0.1


@dataclass(frozen=True, eq=False)
class TrainedPipeline:
    """A fitted scikit-learn Pipeline, and what its training found."""

    pipeline: Pipeline
    summary: TrainingSummary


def train_pipeline(
    frame: Any,
    label: str,
    *,
    ambiguity: str | Ambiguity = "wasserstein",
    norm: float = 2,
    label_cost: float = inf,
    noise: Mapping[str, float] | None = None,
    noise_floor: float = NOISE_FLOOR,
    loss: str | Loss = "cross_entropy",
    target: float | str | None = None,
    target_ratio: float | None = None,
    slack: float | None = None,
    radius: float | None = None,
    penalty: str | None = None,
    alpha: float = 1e-3,
    fit_intercept: Intercept = True,
    class_weight: Any = None,
    method: Method = "satisficing",
    features: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    weight: str | None = None,
    impute: bool = False,
    drop_missing: bool = False,
    max_categories: int | None = None,
) -> TrainedPipeline:
    r"""Train a linear classifier on the columns of a data frame.

    Numeric columns are standardised, each row counted once; text, booleans and categories become
    one 0/1 input per level, not standardised. So Wasserstein distances, and the fragility, are in
    standard deviations; a row that changes its level moves two inputs by one. Columns with one
    value only are left out.

    Parameters
    ----------
    frame : pandas.DataFrame, polars.DataFrame or pyarrow.Table
    label : str
        Column of the classes: whole numbers, booleans or text.
    ambiguity : {"wasserstein", "kl"} or Ambiguity, default="wasserstein"
    norm, label_cost
        Of ``ambiguity="wasserstein"``.
    noise : mapping of str to float, optional
        Standard deviations of the measurement errors that new data will have, by numeric column
        and in its units; 0, and columns that are not named: measured exactly. A unit of distance
        is then what `Wasserstein.from_noise` makes of it, no longer a standard deviation.
    noise_floor : float, default=0.3
        Share of its standard deviation that any input may drift by, where `noise` is given.
    loss, penalty, alpha, fit_intercept, class_weight
        As in `fragility.SatisficingClassifier`.
    target, target_ratio, slack
        The acceptable loss of ``method="satisficing"``, by default ``target="out_of_fold"``.
    radius : float, optional
        Limit of the guarantee for ``method="satisficing"``, by default none; the distance to guard
        against for ``method="dro"``, by default 0.1.
    method : {"satisficing", "dro", "erm"}, default="satisficing"
        `SatisficingClassifier`, `DROClassifier` or `ERMClassifier`.
    features : iterable of str, optional
        Columns to use; by default all but the label, the weight and `exclude`.
    exclude : iterable of str, default=()
    weight : str, optional
        Column of sample weights.
    impute : bool, default=False
        Fill in missing numbers by the median, missing levels by the most frequent one, here and in
        prediction.
    drop_missing : bool, default=False
        Leave out rows without a label or weight and, unless `impute`, those with any gap.
    max_categories : int, optional
        Most levels of a categorical column; more are refused as an identifier. By default 50 or a
        tenth of the rows, whichever is more.

    Returns
    -------
    TrainedPipeline
        With `pipeline`, whose `predict` and `predict_proba` take data frames with these columns,
        and `summary`.

    Raises
    ------
    TableError
        The table cannot be used as it is; the message says what to do.

    Examples
    --------
    >>> import pandas as pd
    >>> from fragility.pipelines import train_pipeline
    >>> data = pd.DataFrame({"age": [31, 45, 58, 70] * 5, "ill": ["no", "no", "yes", "yes"] * 5})
    >>> trained = train_pipeline(data, "ill")
    >>> trained.pipeline.predict(pd.DataFrame({"age": [40, 60]})).tolist()
    ['no', 'yes']
    """
    if max_categories is not None:
        check_count(max_categories, "max_categories", 2)
    plan = _plan(
        ambiguity=ambiguity,
        norm=norm,
        label_cost=label_cost,
        noise=noise,
        noise_floor=noise_floor,
        method=method,
        wanted={"target": target, "target_ratio": target_ratio, "slack": slack, "radius": radius},
        loss=loss,
        penalty=penalty,
        alpha=alpha,
        class_weight=class_weight,
        fit_intercept=fit_intercept,
    )
    classifier, shift = plan.classifier, plan.shift
    table = check_frame(frame)
    names = feature_names(table.columns, label, weight, features, exclude)
    others = [label] if weight is None else [label, weight]
    whole = read_columns(table, [*names, *others])
    rows = rows_to_use(whole, label, weight, impute=impute, drop_missing=drop_missing)
    used = {name: column.take(rows) for name, column in whole.items()}
    columns = sort_columns([used[name] for name in names], max_categories)
    if not columns.numeric + columns.categorical:
        raise TableError(
            f"No feature is left: every column has one value only ({', '.join(columns.constant)})."
        )
    unused = [] if noise is None else check_noise(noise, names, columns)
    y = read_labels(used[label])
    weights = None if weight is None else read_weights(used[weight])
    preparation = _preparation(columns, impute)
    inputs = preparation.fit_transform(table.filter(rows.tolist()).to_native())
    if noise is not None:  # the classifier sees standardised columns, and so must their errors be
        plan.adopt_noise(noise_of_inputs(noise, columns, preparation, inputs.shape[1]))
    classifier.fit(inputs, y, sample_weight=weights)
    reader = preparation.named_steps["read"]
    classes, counts = np.unique(y, return_counts=True)
    gaps = {n: int(used[n].missing.sum()) for n in (*columns.numeric, *columns.categorical)}
    figures = training_figures(y, classifier.classes_, classifier.predict_proba(inputs), weights)
    summary = _summary(
        classifier,
        columns,
        {name: len(levels) for name, levels in reader.levels_.items()},
        dict(zip(classes.tolist(), counts.tolist(), strict=True)),
        shift,
        method,
        n_dropped=rows.size - y.size,
        imputed={name: count for name, count in gaps.items() if count},
        noise={} if noise is None else {n: float(noise[n]) for n in columns.numeric if n in noise},
        notes=(*columns.notes, *unused),
        **figures,
    )
    return TrainedPipeline(Pipeline([*preparation.steps, ("classifier", classifier)]), summary)


def train_out_of_memory(
    data: Any,
    label: str,
    *,
    features: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    weight: str | None = None,
    max_categories: int | None = None,
    say: Callable[[str], None] | None = None,
    **settings: Any,
) -> TrainedPipeline:
    """Train the same pipeline on Parquet files that need not fit into memory.

    The rows are read some seven times: once for the columns, a few times by
    `fragility.distributed.fit`, once for the figures of the summary, which has no AUC.

    Parameters
    ----------
    data : path, table or DataFrame
        As in `fragility.distributed.fit`: files, a folder or a pattern of them, say.
    label, features, exclude, weight, max_categories
        As in `train_pipeline`. Without `max_categories` a text column has at most 50 levels.
    say : callable, optional
        Told what each reading found.
    **settings
        Other parameters of `train_pipeline`. Programs with corners, ``method="dro"``, and `impute`
        and `drop_missing` are refused.

    Returns
    -------
    TrainedPipeline

    Raises
    ------
    PartitionError
        If rows cannot be used; it names their file.
    """
    for name in ("impute", "drop_missing"):
        if settings.pop(name, False):
            raise TableError(
                f"{name} needs the rows in memory. Fill gaps in, or leave those rows out, before."
            )
    if max_categories is not None:
        check_count(max_categories, "max_categories", 2)
    plan = _plan(**settings)
    why = why_not(plan.classifier)
    if why:
        raise NotImplementedError(why)
    source = open_source(data)
    names = feature_names(source.column_names, label, weight, features, exclude)
    prepared = prepare(
        source, label, names, weight, max_categories, lambda kinds: _preparation(kinds, False)
    )
    kinds, noise, unused = prepared.kinds, plan.noise, []
    if noise is not None:
        unused = check_noise(noise, names, kinds)
        sigma = noise_of_inputs(noise, kinds, prepared.steps, prepared.columns.n_features)
        plan.adopt_noise(sigma)
    counts, figures = train_prepared(plan.classifier, source, prepared, say)
    summary = _summary(
        plan.classifier,
        kinds,
        {name: len(levels) for name, levels in prepared.columns.levels},
        counts,
        plan.shift,
        plan.method,
        noise={} if noise is None else {n: float(noise[n]) for n in kinds.numeric if n in noise},
        notes=tuple(unused),
        **figures,
    )
    steps = [*prepared.steps.steps, ("classifier", plan.classifier)]
    return TrainedPipeline(Pipeline(steps), summary)


def _summary(
    classifier: Any,
    columns: ColumnKinds,
    levels: dict[str, int],
    counts: dict[Any, int],
    shift: Ambiguity,
    method: str,
    *,
    n_dropped: int = 0,
    imputed: dict[str, int] | None = None,
    **rest: Any,
) -> TrainingSummary:
    """What was found, of a fitted classifier and the rows that it was fitted to."""
    certificate = getattr(classifier, "certificate_", None)
    plain = method == "erm"
    return TrainingSummary(
        n_samples=sum(counts.values()),
        n_dropped=n_dropped,
        n_features=len(columns.numeric) + len(columns.categorical),
        n_inputs=classifier.n_features_in_,
        numeric=columns.numeric,
        categorical=levels,
        constant=columns.constant,
        imputed=imputed or {},
        classes=tuple(counts.items()),
        method=method,
        loss=repr(as_loss(classifier.loss)),
        ambiguity=None if plain else repr(shift),
        target=getattr(classifier, "target_", None),
        target_origin=str(getattr(classifier, "target_origin_", None) or ""),
        erm_loss=getattr(classifier, "erm_loss_", getattr(classifier, "loss_", None)),
        fragility=getattr(classifier, "fragility_", None),
        units="" if plain else units_of(shift, bool(levels), classifier.fit_intercept),
        guarantee=guarantee_of(certificate),
        certificate=() if certificate is None else tuple(certificate._rows()),
        **rest,
    )


@dataclass(frozen=True, eq=False)
class _Plan:
    """The classifier that settings ask for, and the distance in the units of users."""

    classifier: LinearClassifier
    shift: Ambiguity
    method: str
    noise: Mapping[str, float] | None
    noise_floor: float
    norm: float
    label_cost: float

    def adopt_noise(self, sigma: Floats) -> None:
        """Set the measurement errors of inputs, which are standardised."""
        rest = {"norm": self.norm, "label_cost": self.label_cost}
        distance = Wasserstein.from_noise(sigma, self.noise_floor, **rest)
        self.classifier.set_params(ambiguity=distance)


def _plan(
    *,
    wanted: dict[str, Any] | None = None,
    ambiguity: str | Ambiguity = "wasserstein",
    norm: float = 2,
    label_cost: float = inf,
    noise: Mapping[str, float] | None = None,
    noise_floor: float = NOISE_FLOOR,
    method: str = "satisficing",
    fit_intercept: Intercept = True,
    **shared: Any,
) -> _Plan:
    """Settings, checked before any work."""
    check_choice(method, ("satisficing", "dro", "erm"), "method")
    names = ("target", "target_ratio", "slack", "radius")
    if wanted is None:
        wanted = {name: shared.pop(name, None) for name in names}
    shift = _ambiguity(ambiguity, norm, label_cost, method, noise, noise_floor)
    shared = {"penalty": None, **shared, "fit_intercept": check_intercept(fit_intercept)}
    classifier = _classifier(method, shift, wanted, shared)
    return _Plan(classifier, shift, method, noise, noise_floor, norm, label_cost)


def _ambiguity(
    given: str | Ambiguity,
    norm: float,
    label_cost: float,
    method: str,
    noise: Mapping[str, float] | None,
    noise_floor: float,
) -> Ambiguity:
    """The distance; parameters that would mean nothing are an error."""
    if noise is None and noise_floor != NOISE_FLOOR:
        raise ValueError(
            f"noise_floor={noise_floor!r} means nothing without noise; give the measurement errors "
            "of columns, such as noise={'blood_pressure': 5}."
        )
    if isinstance(given, str) and given == "wasserstein":
        shift: Ambiguity = Wasserstein(norm=norm, label_cost=label_cost)
        if noise is not None:
            if not isinstance(noise, Mapping) or not noise:
                raise ValueError(
                    "noise must be a dictionary of columns and the deviations of their measurement "
                    f"errors, such as {{'blood_pressure': 5}}; got {noise!r}."
                )
            shift = Wasserstein.from_noise(noise, noise_floor, norm=norm, label_cost=label_cost)
    else:
        shift = as_ambiguity(given)
        if norm != 2 or label_cost != inf or noise is not None:
            raise ValueError(
                'norm, label_cost and noise belong to ambiguity="wasserstein"; got '
                f"ambiguity={given!r}."
            )
        if getattr(shift, "noise", None) is not None:
            raise ValueError(
                f"{shift!r} is in the units of inputs, which are standardised here; give the "
                "measurement errors of columns in their own units as noise instead."
            )
    if method == "erm" and shift != Wasserstein():
        raise ValueError(
            'method="erm" minimises the loss of the data as they are: it takes no ambiguity, norm, '
            "label_cost or noise."
        )
    return shift


def _classifier(
    method: str, shift: Ambiguity, wanted: dict[str, Any], shared: dict[str, Any]
) -> LinearClassifier:
    if method == "satisficing":
        return SatisficingClassifier(ambiguity=shift, **wanted, **shared)
    allowed = {"radius"} if method == "dro" else set()
    unused = [name for name in wanted if name not in allowed and wanted[name] is not None]
    if unused:
        raise ValueError(f'{", ".join(unused)} means nothing to method="{method}"; leave it out.')
    if method == "dro":
        radius = _RADIUS if wanted["radius"] is None else wanted["radius"]
        return DROClassifier(ambiguity=shift, radius=radius, **shared)
    return ERMClassifier(**shared)


def _preparation(columns: ColumnKinds, impute: bool) -> Pipeline:
    """Columns by name to inputs: numbers standardised, levels one-hot."""
    numbers: list[tuple[str, Any]] = [("scale", StandardScaler())]
    levels: list[tuple[str, Any]] = [("encode", OneHotEncoder(handle_unknown="ignore"))]
    if impute:
        numbers.insert(0, ("impute", SimpleImputer(strategy="median")))
        levels.insert(0, ("impute", SimpleImputer(strategy="most_frequent")))
    numeric, categorical = list(columns.numeric), list(columns.categorical)
    parts = [
        ("numeric", Pipeline(numbers), numeric),
        ("categorical", Pipeline(levels), categorical),
    ]
    parts = [part for part in parts if part[-1]]
    # Inputs are a sparse matrix where most of them are zero.
    return Pipeline(
        [
            ("read", ColumnReader(numeric, categorical, keep_missing=impute)),
            ("columns", ColumnTransformer(parts, verbose_feature_names_out=False)),
        ]
    )
