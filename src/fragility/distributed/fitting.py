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
from .._models import LinearModel, class_weighted
from .._typing import Floats
from ..ambiguity import Ambiguity, as_ambiguity
from ..certificates.summed import LossSums, certificate_of_sums
from ..exceptions import FitInterrupted
from ..linear_model import ERMClassifier
from ..linear_model.base import LinearClassifier, check_feature_sizes
from ..losses import as_loss
from ..programs.objective import Evaluation, Penalty
from ..programs.row_sums import Request, SummedPoint
from ..programs.satisficing import Outcome, Solution
from ..programs.targets import Target
from ..solvers.erm import shortest_by_products, trivial_model
from ..solvers.passes import LowestLoss
from ..solvers.searching import result
from ..sources.opening import open_source
from ..sources.source import Source
from .joint_search import JointSearch
from .mixtures import Reached
from .passes import Passes
from .problem import known_distance, problem_of, sample_of
from .requests import columns_of, why_not, with_corners
from .survey import ClassSurvey, TrainingColumns, check_classes

#: Numbers in the sample that is solved in memory first: 8 MB.
_SAMPLE = 1 << 20
#: Rows of each class in it at least.
_LEAST_SAMPLE = 200

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
    columns = columns_of(source, label, features, weight)
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
    try:
        with np.errstate(over="ignore", under="ignore"):
            training.run()
    except KeyboardInterrupt as error:
        raise training.interrupted() from error
    training.warn()
    return estimator


class _Training:
    """One fit: what is known of the data, and the searches on them."""

    def __init__(self, estimator: Any, passes: Passes) -> None:
        self.estimator, self.passes = estimator, passes
        self._search: JointSearch | None = None
        self._ended: tuple[Target, Solution] | None = None

    def run(self) -> None:
        """Fit the estimator."""
        columns, estimator = self.passes.columns, self.estimator
        survey = self.passes.survey(_SAMPLE // (columns.n_features + 1), _LEAST_SAMPLE)
        classes = check_classes(columns, survey)
        assert survey is not None
        check_feature_sizes(survey.largest, columns.inputs)
        held = [survey.classes[name] for name in classes]
        if self.passes.say is not None:
            self.passes.say(
                f"pass 1: {survey.n_rows:,} rows in {self.passes.seconds:.1f} s: classes "
                f"{listed(classes, most=5)}, {columns.n_features} features"
            )
        loss = as_loss(estimator.loss)
        if not loss.is_smooth(len(classes)):
            raise NotImplementedError(
                with_corners(f"{loss!r} of {len(classes)} classes", "loss='cross_entropy'")
            )
        if all(own.count == own.keys.size for own in held):
            self._fit_at_once(classes, held)
        else:
            self.problem = problem_of(estimator, columns, classes, held)
            if isinstance(estimator, ERMClassifier):
                self._fit_lowest()
            else:
                self._fit_least()
        estimator.n_passes_ = self.passes.count
        self._adopt_columns()

    def warn(self) -> None:
        """Warn of what was found, where the user called."""
        if self._ended is not None:
            self.estimator._warn(*self._ended)
        lowest = None if self._search is None else self._search.lowest
        if lowest is None or lowest.point is None or lowest.separates:
            return
        if lowest.gap > 1e-8 * abs(lowest.point.value):
            warnings.warn(
                f"The lowest loss, {lowest.point.value:.6g}, did not settle in "
                f"{self.passes.count} passes: it may be above its minimum by {lowest.gap:.1e}. "
                "Scale the features, or give a penalty.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def interrupted(self) -> FitInterrupted:
        """What to say when the keyboard ended it; the estimator gets what was reached."""
        where, search = f"Interrupted in pass {self.passes.count}", self._search
        reached = ""
        if search is not None and isinstance(self.estimator, ERMClassifier):
            reached = "" if search.lowest.point is None else self._adopt_lowest(search.lowest.point)
        elif search is not None and search.reached is not None:
            reached = self._adopt_least(search.reached)
        if not reached:
            return FitInterrupted(f"{where}, before a model was known that could be used.")
        self.estimator.n_passes_ = self.passes.count
        self._adopt_columns()
        return FitInterrupted(
            f"{where}; the estimator holds the model that was reached: {reached}."
        )

    def _adopt_columns(self) -> None:
        columns, estimator = self.passes.columns, self.estimator
        estimator.n_features_in_ = columns.n_features
        estimator.feature_names_in_ = np.array(columns.inputs, dtype=object)

    def _fit_at_once(self, classes: list[Any], held: list[ClassSurvey]) -> None:
        """All rows are in the sample: nothing is left to read."""
        estimator, columns = self.estimator, self.passes.columns
        X, codes, weights = sample_of(held, plain=True)
        labels = np.array(classes)
        if isinstance(estimator, ERMClassifier):
            estimator.fit(X, labels[codes], weights)
            return
        given = estimator.ambiguity
        own = weights
        if estimator.class_weight is not None:
            own = class_weighted(estimator.class_weight, labels, codes, weights)
        # Arrays have no names, by which measurement errors may be given.
        estimator.ambiguity = known_distance(as_ambiguity(given), X, own, columns)
        try:
            estimator.fit(X, labels[codes], weights)
        finally:
            estimator.ambiguity = given

    @property
    def _wanted(self) -> dict[str, Any]:
        """The ways to give a target; none of them is given if it comes out of folds."""
        own = self.estimator
        target = None if isinstance(own.target, str) else own.target
        return {"target": target, "target_ratio": own.target_ratio, "slack": own.slack}

    def _sums(self, requests: list[Request]) -> Any:
        problem = self.problem
        return self.passes.sums(requests, problem.objective, problem.classes, problem.factors)

    def _say(self, found: str, more: int) -> None:
        passes = self.passes
        if passes.say is None:
            return
        left = f"; about {more} more, {more * passes.seconds:.0f} s" if more else ""
        passes.say(
            f"pass {passes.count}: {passes.n_rows:,} rows in {passes.seconds:.1f} s: {found}{left}"
        )

    def _begin(self, ambiguity: Ambiguity | None, wanted: dict[str, Any]) -> JointSearch:
        estimator, problem = self.estimator, self.problem
        self._search = JointSearch(
            problem.objective,
            ambiguity,
            wanted,
            problem.start,
            self._trivial(ambiguity),
            self._sums,
            shorten=self._shortest,
            tol=estimator.tol,
            max_iter=estimator.max_iter,
            say=self._say,
        )
        return self._search

    def _trivial(self, ambiguity: Ambiguity | None) -> Evaluation | LowestLoss:
        """The best model without features that may shift, or the search for it."""
        objective = self.problem.objective
        width = objective.rows.X.shape[1]
        nothing = np.zeros(width, dtype=bool)
        fixed = nothing if ambiguity is None else ambiguity.fixed(width)
        start = result(trivial_model(objective, nothing, max_iter=self.estimator.max_iter))
        if not fixed.any():
            return start
        free = objective.per_parameter(fixed.astype(float), 1.0) > 0.0
        return LowestLoss(objective, start.parameters, free)

    def _shortest(self, parameters: Floats, hessian: Floats) -> Floats:
        """Of equally good models the shortest: along directions that second derivatives lack."""
        objective = self.problem.objective
        size = objective.size // objective.n_outputs
        blocks = hessian.reshape(objective.n_outputs, size, objective.n_outputs, size)
        gram: Floats = np.einsum("iaib->ab", blocks)
        return shortest_by_products(objective, objective.centred(parameters), gram)

    def _fit_lowest(self) -> None:
        """The lowest loss alone."""
        search = self._begin(None, {})
        point = search.lowest_loss()
        if search.lowest.separates:
            raise NotImplementedError(
                "The classes can be told apart without a mistake, so the mean loss has no minimum, "
                'only the infimum 0. Give penalty="l2" for a model that is defined.'
            )
        self._adopt_lowest(point)

    def _adopt_lowest(self, point: SummedPoint) -> str:
        estimator, linear = self.estimator, self._linear(point.parameters)
        estimator.coef_, estimator.intercept_ = linear.coef, linear.intercept
        estimator.classes_, estimator.priced_intercept_ = linear.classes, linear.priced
        estimator.loss_, estimator.n_iter_ = point.value, self.passes.count
        return f"a loss of {point.value:.6g}"

    def _linear(self, parameters: Floats) -> LinearModel:
        objective = self.problem.objective
        table = objective.in_user_units(objective.centred(parameters))
        return LinearModel(*table, np.array(self.problem.classes), objective.rows.priced)

    def _fit_least(self) -> None:
        """The least fragile model, with its certificate."""
        problem = self.problem
        width = problem.objective.rows.X.shape[1]
        moves = problem.ambiguity.reweights or not problem.ambiguity.fixed(width).all()
        search = self._begin(problem.ambiguity, self._wanted)
        reached = None
        if moves:
            reached = search.least_fragile()
        else:
            search.settle_trivial()
        if reached is None:
            reached = self._without_search(search)
        self._adopt_least(reached)

    def _without_search(self, search: JointSearch) -> Reached:
        """The trivial model, where it is all that is needed or can be learned."""
        target = search.target
        if target is None or search.least is not None:
            raise NotImplementedError(
                f"No model was found that meets the target in {self.passes.count} passes. Scale "
                "the features, give a penalty or more steps (max_iter), or fit a sample in memory."
            )
        parameters = search.references.trivial.parameters
        (sums,) = self._sums([Request(parameters, 0)])
        point = SummedPoint(self.problem.objective, parameters, sums)
        if point.value > target.value:  # by rounding: it was to be the trivial loss
            target = replace(target, value=point.value)
        ends = sums.largest, sums.spread
        return Reached(target, parameters, point.value, nan, 0.0, nan, *ends)

    def _adopt_least(self, reached: Reached) -> str:
        estimator, problem, search = self.estimator, self.problem, self._search
        assert search is not None
        target, searched = reached.target, not np.isnan(reached.slope)
        outcome = Outcome.SOLVED
        if not searched:
            unlearned = target.tight and not target.learnable
            outcome = Outcome.NOTHING_LEARNED if unlearned else Outcome.TRIVIAL
        elif reached.gap > max(estimator.tol, 1e-6) and not target.tight:
            outcome = Outcome.UNSETTLED
        linear = self._linear(reached.parameters)
        penalty = Penalty(problem.objective.alpha).of(linear.inside)
        fragility = reached.fragility if problem.ambiguity.reweights and searched else None
        if outcome is Outcome.NOTHING_LEARNED:
            fragility = problem.given.unlearned
        critical = nan
        if searched and 0.0 < reached.slope < inf:
            critical = 1.0 / reached.slope
        certificate = certificate_of_sums(
            linear,
            LossSums(self.passes.n_rows, reached.loss - penalty, reached.largest, reached.spread),
            loss=problem.objective.loss,
            ambiguity=problem.given,
            target=target.value,
            penalty=penalty,
            fragility=fragility,
            critical_distance=critical,
        )
        estimator.coef_, estimator.intercept_ = linear.coef, linear.intercept
        estimator.classes_, estimator.priced_intercept_ = linear.classes, linear.priced
        estimator.certificate_, estimator.ambiguity_ = certificate, problem.given
        estimator.fragility_, estimator.target_ = certificate.fragility, target.value
        estimator.target_origin_ = search.origin
        estimator.erm_loss_, estimator.trivial_loss_ = target.erm_loss, target.trivial_loss
        estimator.n_iter_ = self.passes.count
        estimator.solver_ = "newton" if searched else "none"
        solution = Solution(
            reached.parameters, outcome, self.passes.count, estimator.solver_, reached.gap
        )
        self._ended = target, solution
        return f"fragility {certificate.fragility:.6g}, at most {reached.gap:.1e} above its minimum"
