"""Training on data wherever they are: the estimators of the library, by sums over rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf, nan
from typing import Any, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._labels import listed
from .._models import LinearModel, class_factors
from .._names import did_you_mean
from .._typing import Floats
from ..ambiguity import KL, Ambiguity, Wasserstein, as_ambiguity
from ..certificates.summed import LossSums, certificate_of_sums
from ..exceptions import FitInterrupted, TargetError
from ..linear_model import ERMClassifier, SatisficingClassifier
from ..linear_model.base import LinearClassifier, check_feature_sizes
from ..linear_model.training import Training
from ..losses import Loss, as_loss
from ..programs.objective import Evaluation, Objective, Penalty
from ..programs.row_sums import Request, SummedPoint
from ..programs.rows import TrainingRows, or_one
from ..programs.satisficing import Outcome, Solution
from ..solvers.erm import shortest_by_products, trivial_model
from ..solvers.newton import minimise
from ..solvers.passes import LowestLoss
from ..solvers.searching import result
from ..sources.opening import open_source
from ..sources.source import Source
from .joint_search import JointSearch, Reached, Start
from .passes import Passes
from .survey import Survey, TrainingColumns, check_classes

#: Numbers in the sample that is solved in memory first: 8 MB.
_SAMPLE = 1 << 20
#: Rows of each class in it at least.
_LEAST_SAMPLE = 200
#: Parameters at most: a reading holds two tables of their square for each thread.
_MOST_PARAMETERS = 3_000
#: Ridge of the start where the sample has no lowest loss, for features of deviation one.
_RIDGE = 1e-3

E = TypeVar("E", bound=LinearClassifier)


def fit(
    estimator: E,
    data: Any,
    *,
    label: str,
    features: Sequence[str] | None = None,
    weight: str | None = None,
) -> E:
    """Fit an estimator to data wherever they are: larger than memory, or on a cluster.

    The rows are never held together. A first reading finds classes, means, deviations and a
    sample, which is solved in memory; the next ones sum value, gradient and Hessian of the lowest
    loss and of the least fragile model together; the last one is the certificate. On ordinary data
    that is four readings. The model is that of ``estimator.fit``.

    Parameters
    ----------
    estimator : SatisficingClassifier or ERMClassifier
        With a smooth program: cross-entropy (or another smooth loss), no penalty or "l2", `KL` or
        `Wasserstein` without a label cost. Others are refused with the reason. ``verbose=1`` says
        what each reading found, and how long the rest will take.
    data : mapping of str to array, table, path, dataset, query or DataFrame
        As in `fragility.distributed.sketch`: Parquet files, a folder or a pattern of them, Arrow,
        polars, DuckDB, Dask, Spark, Ray.
    label : str
        Column of the classes: text, booleans or whole numbers.
    features : sequence of str, optional
        Columns of numbers; by default all but the label and the weight.
    weight : str, optional
        Column of weights.

    Returns
    -------
    estimator
        The same, fitted, with `n_passes_`, the number of readings. Its certificate holds no single
        samples. With ``target="out_of_fold"`` (the default) the loss of folds comes from quadratic
        models of theirs, and the folds are others than in memory.

    Raises
    ------
    PartitionError
        If a part cannot be read, a value is missing or is not a number; it names the part, and its
        file where that is known.
    NotImplementedError
        If the program is not one of those above, or the data make it so.
    FitInterrupted
        If it was interrupted from the keyboard. It says what was reached; the estimator holds that
        model, if one meets the target.

    Examples
    --------
    >>> import numpy as np
    >>> from fragility import SatisficingClassifier
    >>> from fragility.distributed import fit
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(1000, 2))
    >>> sick = rng.random(1000) < 1 / (1 + np.exp(-x[:, 0]))
    >>> data = {"x": x[:, 0], "z": x[:, 1], "sick": sick}
    >>> model = fit(SatisficingClassifier(slack=0.1), data, label="sick")
    >>> round(model.fragility_, 3), model.n_passes_
    (0.743, 1)
    """
    why = why_not(estimator)
    if why:
        raise NotImplementedError(why)
    source = open_source(data)
    columns = _columns(source, label, features, weight)
    return fit_columns(estimator, source, columns)


def fit_columns(
    estimator: E,
    source: Source,
    columns: TrainingColumns,
    say: Callable[[str], None] | None = None,
) -> E:
    """The same for columns that are known to be there, which may make inputs of their own.

    `say` is told of each reading; by default the estimator prints it if it is verbose.
    """
    if say is None and estimator.verbose:
        say = estimator._say
    training = _Training(estimator, Passes(source, columns, say))
    with np.errstate(over="ignore", under="ignore"):
        training.run()
    return estimator


def why_not(estimator: Any) -> str:
    """Why an estimator is not fitted to data out of memory; nothing if it is."""
    if type(estimator) not in (SatisficingClassifier, ERMClassifier):
        return (
            "fit takes a SatisficingClassifier or an ERMClassifier of this library; got "
            f"{type(estimator).__name__}."
        )
    estimator._check_parameters()
    loss, penalty = as_loss(estimator.loss), estimator._checked_penalty()
    if penalty.lasso > 0.0:
        return _corners("penalty='l1'", "penalty='l2' or none")
    if not (loss.is_smooth(2) or loss.is_smooth(3)) or not loss.bends:
        return _corners(repr(loss), "loss='cross_entropy'")
    if isinstance(estimator, ERMClassifier):
        return ""
    ambiguity = as_ambiguity(estimator.ambiguity)
    if type(ambiguity) not in (KL, Wasserstein) or ambiguity.solved_as(loss) is not ambiguity:
        return (
            f"Data out of memory are fitted under KL() and Wasserstein(); got {ambiguity!r}. "
            "Fit a sample in memory."
        )
    if ambiguity.moves_labels:
        return _corners("a finite label_cost", "label_cost=inf")
    if estimator.radius is not None:
        return _corners("a ball (radius)", "radius=None")
    if estimator.solver not in ("auto", "newton"):
        return f"solver={estimator.solver!r} needs the rows in memory; give solver='auto'."
    return ""


def _corners(what: str, instead: str) -> str:
    return (
        f"Data out of memory are fitted by smooth programs, and {what} has corners. Give "
        f"{instead}, or fit a sample in memory."
    )


def _columns(
    source: Source, label: str, features: Sequence[str] | None, weight: str | None
) -> TrainingColumns:
    others = [label] if weight is None else [label, weight]
    if isinstance(features, str):
        raise ValueError(f"features must be a list of columns, such as [{features!r}].")
    names = [n for n in source.column_names if n not in others] if features is None else [*features]
    asked = [*others, *names]
    missing = [name for name in asked if name not in source.column_names]
    if missing:
        hint = did_you_mean(missing, source.column_names, cutoff=0.5)
        raise ValueError(
            f"{source.name} has no column {listed(missing)}. The columns are "
            f"{listed(source.column_names, most=20)}.{hint}"
        )
    twice = {name for name in asked if asked.count(name) > 1}
    if twice:
        raise ValueError(f"Column {listed(sorted(twice))} is named for two things.")
    if not names:
        raise ValueError("There is no feature: the data have the label and the weight alone.")
    return TrainingColumns(label, tuple(names), weight)


class _Training:
    """One fit: what is known of the data, and the searches on them."""

    def __init__(self, estimator: Any, passes: Passes) -> None:
        self.estimator, self.passes = estimator, passes

    def run(self) -> None:
        """Fit the estimator."""
        columns, estimator = self.passes.columns, self.estimator
        survey = self.passes.survey(_SAMPLE // (columns.n_features + 1), _LEAST_SAMPLE)
        self.classes = check_classes(columns, survey)
        assert survey is not None
        self._adopt_columns(survey)
        if self.passes.say is not None:
            self.passes.say(
                f"pass 1: {survey.n_rows:,} rows in {self.passes.seconds:.1f} s: classes "
                f"{listed(self.classes, most=5)}, {columns.n_features} features"
            )
        loss = as_loss(estimator.loss)
        if not loss.is_smooth(len(self.classes)):
            raise NotImplementedError(
                _corners(f"{loss!r} of {len(self.classes)} classes", "loss='cross_entropy'")
            )
        held = [survey.classes[name] for name in self.classes]
        if all(own.count == own.keys.size for own in held):
            # All rows are in the sample: nothing is left to read.
            X, codes, weights = self._sample(survey, plain=True)
            estimator.fit(X, np.array(self.classes)[codes], weights)
            self._adopt_columns(survey)
            estimator.n_passes_ = self.passes.count
            return
        self._prepare(survey, loss)
        if isinstance(estimator, ERMClassifier):
            self._fit_lowest()
        else:
            self._fit_least()

    def _adopt_columns(self, survey: Survey) -> None:
        columns, estimator = self.passes.columns, self.estimator
        check_feature_sizes(survey.largest, columns.inputs)
        estimator.n_features_in_ = columns.n_features
        estimator.feature_names_in_ = np.array(columns.inputs, dtype=object)

    def _sample(self, survey: Survey, plain: bool = False) -> tuple[Any, Any, Any]:
        """Rows of the sample, their labels and weights: of each class what all its rows have."""
        held = [survey.classes[name] for name in self.classes]
        X = np.concatenate([own.X for own in held])
        for own in held:
            own.X = own.X[:0]  # not twice in memory
        codes = np.repeat(np.arange(len(held)), [own.keys.size for own in held])
        weights = [own.weights for own in held]
        if not plain:
            weights = [own.weights * (own.weight / own.weights.sum()) for own in held]
        return X, codes, np.concatenate(weights)

    def _prepare(self, survey: Survey, loss: Loss) -> None:
        """Coordinates, weights of classes, and the solution of the sample."""
        estimator, columns = self.estimator, self.passes.columns
        held = [survey.classes[name] for name in self.classes]
        totals = np.array([own.weight for own in held])
        labels = np.array(self.classes)
        self.factors = np.ones(totals.size)
        if estimator.class_weight is not None:
            places = np.arange(totals.size)
            self.factors = class_factors(estimator.class_weight, labels, places, totals)
        weights = self.factors * totals
        if not (weights > 0.0).all():
            raise ValueError(
                "Every class needs a row of positive weight; these classes have none: "
                f"{listed(labels[weights <= 0.0])}. Leave their rows out, or give them weight."
            )
        shares = weights / weights.sum()
        intercept = estimator._checked_intercept()
        free, priced = intercept is True, intercept == "priced"
        mean = shares @ np.array([own.mean for own in held])
        inside = [own.squares / own.weight + (own.mean - mean) ** 2 for own in held]
        deviation = np.sqrt(shares @ np.array(inside))
        centre = mean if free else np.zeros_like(mean)
        scale = or_one(np.sqrt(deviation**2 + (mean - centre) ** 2), np.abs(centre))
        if priced:
            centre, scale = np.append(centre, 0.0), np.append(scale, 1.0)
        rows = TrainingRows(
            np.zeros((shares.size, scale.size)),
            np.arange(shares.size),
            shares,
            shares.size,
            centre,
            scale,
            free,
            None,
            priced,
        )
        penalty = estimator._checked_penalty()
        loss.check_classes(shares.size)
        #: Without rows, but for one of zeros for each class.
        self.objective = Objective(rows, loss, penalty.ridge)
        if self.objective.size > _MOST_PARAMETERS:
            raise NotImplementedError(
                f"{columns.n_features} features and {self.objective.n_outputs} scores are "
                f"{self.objective.size} parameters; up to {_MOST_PARAMETERS} are supported on data "
                "out of memory. Select features."
            )
        self.given: Ambiguity = KL()  # which a plain lowest loss does not need
        if isinstance(estimator, SatisficingClassifier):
            self.given = self._ambiguity(as_ambiguity(estimator.ambiguity), deviation)
        self.ambiguity = self.given.with_constant() if priced else self.given
        self.start = self._solved(survey)

    def _ambiguity(self, given: Ambiguity, deviation: Floats) -> Ambiguity:
        """The distance, with the weights of `from_noise` by the deviations of all rows."""
        n_features = self.passes.columns.n_features
        if isinstance(given, Wasserstein) and given.noise is not None:
            # Two rows that are as far apart have the deviations of all rows.
            two = np.stack([-deviation, deviation])
            given = given.fitted_to(two, None, self.passes.columns.inputs)
        given.fixed(n_features)  # which refuses other numbers of weights
        return given

    def _solved(self, survey: Survey) -> Start:
        """The sample, solved in memory, in the coordinates of all rows."""
        estimator, rows = self.estimator, self.objective.rows
        X, codes, weights = self._sample(survey)
        weights = weights * self.factors[codes]
        if rows.priced:
            X = np.column_stack([X, np.ones(len(X))])
        X -= rows.centre
        X *= 1.0 / rows.scale
        few = replace(rows, X=X, y=codes, weights=weights / weights.sum())
        objective = replace(self.objective, rows=few)
        search = {"solver": "auto", "tol": 1e-6, "max_iter": estimator.max_iter, "say": None}
        training = Training(None, objective, self.given, self.ambiguity, search)
        start = np.zeros(objective.size)
        references = result(training.references(start))
        minimum = references.minimum
        lowest = minimum.point.parameters
        settled = minimum.converged and not minimum.separable
        if not settled:
            even = replace(few, scale=np.ones_like(rows.scale))
            ridged = replace(objective, rows=even, alpha=_RIDGE)
            lowest = minimise(ridged.at, start, tol=1e-6, max_iter=100).point.parameters

        def solve(wanted: dict[str, Any]) -> tuple[Floats, float] | None:
            if not settled:
                return None
            try:
                _, solution = result(training.solve(references, **wanted))
            except TargetError:
                return None
            k = solution.fragility
            if solution.outcome not in (Outcome.SOLVED, Outcome.UNSETTLED) or not k or k == inf:
                return None
            return solution.parameters - lowest, 1.0 / k

        def losses(parameters: Floats) -> tuple[Floats, Floats]:
            return objective.at(parameters).losses, few.weights

        return Start(lowest, solve, losses)

    @property
    def _wanted(self) -> dict[str, Any]:
        """The ways to give a target; none of them is given if it comes out of folds."""
        own = self.estimator
        target = None if isinstance(own.target, str) else own.target
        return {"target": target, "target_ratio": own.target_ratio, "slack": own.slack}

    def _sums(self, requests: list[Request]) -> Any:
        return self.passes.sums(requests, self.objective, self.classes, self.factors)

    def _say(self, found: str, more: int) -> None:
        passes = self.passes
        if passes.say is None:
            return
        left = f"; about {more} more, {more * passes.seconds:.0f} s" if more else ""
        passes.say(
            f"pass {passes.count}: {passes.n_rows:,} rows in {passes.seconds:.1f} s: {found}{left}"
        )

    def _search(self, ambiguity: Ambiguity | None, wanted: dict[str, Any]) -> JointSearch:
        estimator = self.estimator
        return JointSearch(
            self.objective,
            ambiguity,
            wanted,
            self.start,
            self._trivial(ambiguity),
            self._sums,
            tol=estimator.tol,
            max_iter=estimator.max_iter,
            say=self._say,
        )

    def _trivial(self, ambiguity: Ambiguity | None) -> Evaluation | LowestLoss:
        """The best model without features that may shift, or the search for it."""
        objective = self.objective
        width = objective.rows.X.shape[1]
        fixed = np.zeros(width, dtype=bool) if ambiguity is None else ambiguity.fixed(width)
        nothing = np.zeros(width, dtype=bool)
        start = result(trivial_model(objective, nothing, max_iter=self.estimator.max_iter))
        if not fixed.any():
            return start
        free = objective.per_parameter(fixed.astype(float), 1.0) > 0.0
        return LowestLoss(objective, start.parameters, free)

    def _fit_lowest(self) -> None:
        """The lowest loss alone."""
        search = self._search(None, {})
        try:
            point = search.lowest_loss()
        except KeyboardInterrupt as error:
            known = search.lowest.point
            self._interrupted(known is not None and self._adopt_lowest(search, known), error)
        if search.lowest.separates:
            raise NotImplementedError(
                "The classes can be told apart without a mistake, so the mean loss has no minimum, "
                'only the infimum 0. Give penalty="l2" for a model that is defined.'
            )
        self._adopt_lowest(search, point)
        if search.lowest.gap > 1e-8 * abs(point.value):
            warnings.warn(
                f"The loss did not settle in {self.passes.count} passes: it may be above its "
                f"minimum by {search.lowest.gap:.1e}. Scale the features or give a penalty.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _adopt_lowest(self, search: JointSearch, point: SummedPoint) -> str:
        estimator, parameters = self.estimator, self._shortest(search, point.parameters)
        linear = self._linear(parameters)
        estimator.coef_, estimator.intercept_ = linear.coef, linear.intercept
        estimator.classes_, estimator.priced_intercept_ = linear.classes, linear.priced
        estimator.loss_, estimator.n_iter_ = point.value, self.passes.count
        estimator.n_passes_ = self.passes.count
        return f"a loss of {point.value:.6g}"

    def _shortest(self, search: JointSearch, parameters: Floats) -> Floats:
        """Of equally good models the shortest."""
        objective, curvature = self.objective, search.lowest.curvature
        parameters = objective.centred(parameters)
        if objective.is_penalised or curvature is None or not curvature.singular:
            return parameters
        size = objective.size // objective.n_outputs
        assert search.products is not None
        blocks = search.products.reshape(objective.n_outputs, size, objective.n_outputs, size)
        gram: Floats = np.einsum("iaib->ab", blocks)
        return shortest_by_products(objective, parameters, gram)

    def _linear(self, parameters: Floats) -> LinearModel:
        table = self.objective.in_user_units(parameters)
        return LinearModel(*table, np.array(self.classes), self.objective.rows.priced)

    def _fit_least(self) -> None:
        """The least fragile model, with its certificate."""
        estimator, search = self.estimator, self._search(self.ambiguity, self._wanted)
        try:
            reached = search.least_fragile()
        except KeyboardInterrupt as error:
            known = search.reached
            self._interrupted("" if known is None else self._adopt_least(search, known), error)
        if reached is None:
            reached = self._without_search(search)
        self._adopt_least(search, reached)
        target, solution = reached.target, self._solution
        estimator._warn(target, solution)

    def _without_search(self, search: JointSearch) -> Reached:
        """The trivial model, where it is all that is needed or can be learned."""
        target = search._target()
        if target is None or search.least is not None:
            raise NotImplementedError(
                f"No model was found in {self.passes.count} passes: the steps lead nowhere. "
                "Scale the features, give a penalty, or fit a sample in memory."
            )
        trivial = search.references.trivial
        (sums,) = self._sums([Request(trivial.parameters, 0)])
        point = SummedPoint(self.objective, trivial.parameters, sums)
        return Reached(target, point.parameters, point.value, nan, 0.0, nan, point)

    def _adopt_least(self, search: JointSearch, reached: Reached) -> str:
        estimator, target = self.estimator, reached.target
        searched = not np.isnan(reached.slope)
        outcome = Outcome.SOLVED
        if not searched:
            unlearned = target.tight and not target.learnable
            outcome = Outcome.NOTHING_LEARNED if unlearned else Outcome.TRIVIAL
        elif reached.gap > max(estimator.tol, 1e-6) and not target.tight:
            outcome = Outcome.UNSETTLED
        parameters = reached.parameters
        if searched and self.ambiguity.reweights:
            parameters = self._shortest(search, parameters)
        linear = self._linear(self.objective.centred(parameters))
        penalty = Penalty(self.objective.alpha).of(linear.inside)
        sums = reached.point.sums
        fragility = reached.fragility if self.ambiguity.reweights and searched else None
        if outcome is Outcome.NOTHING_LEARNED:
            fragility = self.given.unlearned
        certificate = certificate_of_sums(
            linear,
            LossSums(self.passes.n_rows, reached.loss - penalty, sums.largest, sums.spread),
            loss=self.objective.loss,
            ambiguity=self.given,
            target=target.value,
            penalty=penalty,
            fragility=fragility,
            critical_distance=1.0 / reached.slope if searched else nan,
        )
        estimator.coef_, estimator.intercept_ = linear.coef, linear.intercept
        estimator.classes_, estimator.priced_intercept_ = linear.classes, linear.priced
        estimator.certificate_, estimator.ambiguity_ = certificate, self.given
        estimator.fragility_, estimator.target_ = certificate.fragility, target.value
        estimator.target_origin_ = search.origin
        estimator.erm_loss_, estimator.trivial_loss_ = target.erm_loss, target.trivial_loss
        estimator.n_iter_ = estimator.n_passes_ = self.passes.count
        estimator.solver_ = "newton" if searched else "none"
        self._solution = Solution(parameters, outcome, self.passes.count, "newton", reached.gap)
        return f"fragility {certificate.fragility:.6g}, at most {reached.gap:.1e} above its minimum"

    def _interrupted(self, reached: str | bool, error: KeyboardInterrupt) -> None:
        where = f"Interrupted in pass {self.passes.count}"
        if not reached:
            raise FitInterrupted(
                f"{where}, before any model was known to meet the target."
            ) from error
        raise FitInterrupted(
            f"{where}; the estimator holds the model that was reached: {reached}."
        ) from error
