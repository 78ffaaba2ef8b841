"""Robust satisficing: the least fragile model whose loss is acceptable."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from math import inf

from sklearn.exceptions import ConvergenceWarning

from .._labels import listed
from .._parameters import check_radius
from ..exceptions import (
    NothingLearnedWarning,
    TightTargetWarning,
    TrivialTargetWarning,
    UntestedClassWarning,
    ZeroFragilityWarning,
)
from ..programs.satisficing import Outcome, Solution
from ..programs.targets import Target, check_target_choice
from ..solvers import choose
from ..solvers.erm import ReferenceModels
from ..solvers.searching import result
from .base import TrainingData
from .out_of_fold import TargetOrigin, out_of_fold_loss
from .training import RobustClassifier, Training


@dataclass(eq=False, repr=False)
class SatisficingClassifier(RobustClassifier):
    r"""Linear classifier of the least fragility among those whose loss is acceptable.

    The fragility is the smallest k with :math:`E_P \ell + R \le \tau + k D(P, \hat P)` for every
    distribution P: how fast the loss may exceed its target as the data shift. The user gives the
    acceptable loss :math:`\tau`, not how far the data will shift.

    Parameters
    ----------
    loss : {"cross_entropy", "hinge", "max_logistic", "smoothed_hinge"} or Loss, \
            default="cross_entropy"
        A subclass of `fragility.losses.Loss` is a smooth loss of your own, a
        `fragility.losses.LipschitzLoss` any convex one, by a bound of its slope.
    ambiguity : {"wasserstein", "kl"}, Wasserstein or KL, default="wasserstein"
        What may shift, and at which cost: features (`Wasserstein`; ``"wasserstein"`` is in ℓ2) or
        the weights of the samples (`KL`).
    target : float or "out_of_fold", optional
        Acceptable mean loss (with the penalty), as a number; or the loss that cross-validation
        finds acceptable: that of an l2-penalised model of the same loss on samples that it was not
        fitted to, at the best of 13 strengths from 1 to 1e-8, plus the penalty of the estimator's
        own lowest loss. It is kept 0.1 % of what can be learned above the lowest loss, and at 98 %
        of the trivial one at most. If none of target, target_ratio and slack is given it is this
        one; `target_origin_` says how it came about.
    target_ratio : float, optional
        The target as a multiple, above 1, of the lowest loss that any model reaches.
    slack : float, optional
        The same as the share, between 0 and 1, of what a model can learn that may be given up:
        :math:`\tau = L_{ERM} + t (L_{trivial} - L_{ERM})`, such as 0.1. Quicker than the
        out-of-fold target, and worse where models overfit.
    radius : float, optional
        Ask for no guarantee beyond this distance from the data: the fragility is then the smallest
        k with :math:`E_P \ell + R \le \tau + k D(P, \hat P)` for every P in the ball. It is zero
        where the whole ball meets the target; the model of the least worst-case loss is returned
        then.
    penalty : {None, "l1", "l2"}, default=None
        "l2" adds :math:`\alpha \sum \beta^2` to the loss, "l1" :math:`\alpha \sum |\beta|`.
    alpha : float, default=1e-3
        Strength of the penalty.
    fit_intercept : {True, "priced", False}, default=True
        True: the intercept is free, outside the penalty, and not a feature that shifts. "priced":
        it is the coefficient of a constant feature 1, inside the penalty and the norm, with
        a weight of one whatever `feature_weight` says. Scores of zero are the only trivial ones
        then. False: none.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the samples, by class.
    solver : {"auto", "newton", "interior_point", "conic"}, default="auto"
        "auto" is "newton" where all is smooth and "interior_point" where something has corners: a
        hinge, an l1 penalty, a label cost that some sample would pay, or a ball. "conic" hands the
        same program to cvxpy (extra ``conic``), as a cross-check: slow, and less accurate.
    tol : float, default=1e-6
        Accuracy of the fragility, relative.
    max_iter : int, default=1000
        Most steps of each search.
    warm_start : bool, default=False
        Start the search for the lowest loss from the last fit.
    random_state : int, Generator, RandomState or None, default=None
        Draws the five folds of the out-of-fold target; None is 0, so that the same data make the
        same model. Nothing else is random.
    verbose : int, default=0
        Print what was found on the way.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        With two classes, of the score of the second. Where several models are equally good, the
        one of least Frobenius norm if the program is smooth, else one in the middle of them: the
        same for weights and for repeated samples.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    priced_intercept_ : bool
        Whether it was fitted as the coefficient of a constant feature.
    classes_ : ndarray
    fragility_ : float
        The k of the model, in the units of X as given.
    target_ : float
    target_origin_ : TargetOrigin or None
        How an out-of-fold target came about: its loss, strength and penalty, and whether it had to
        be moved; `str` has it in words. None if the target was given otherwise.
    erm_loss_ : float
        Lowest penalised mean loss that any model reaches.
    trivial_loss_ : float
        Lowest penalised mean loss of models that use no feature that may shift.
    certificate_ : Certificate
        What the model guarantees, recomputed from the data.
    ambiguity_ : Ambiguity
        The distance that was used, with the weights that ``Wasserstein.from_noise`` has from the
        training data.
    n_iter_ : int
        Steps of all searches.
    solver_ : str
        The solver that was used; "none" where no search was needed.
    n_features_in_, feature_names_in_
        As scikit-learn has them.

    Raises
    ------
    InfeasibleTargetError
        The target is below the lowest loss that any model reaches, or below the level that
        ``Wasserstein(label_term="paper")`` raises it to.
    UndefinedTargetError
        `target_ratio` on data where that loss is zero; an out-of-fold target where no class has two
        different samples.
    TargetError
        An invalid target; it is the base of the two others, and a ValueError.

    Warns
    -----
    TrivialTargetWarning
        The target is met without any feature that may shift; that model is returned.
    TightTargetWarning
        The target is almost the lowest loss itself.
    NothingLearnedWarning
        No model is better than one without features.
    UntestedClassWarning
        A class has one sample only, which the out-of-fold loss fits to and never tests on.
    ZeroFragilityWarning
        KL: every single sample meets the target. With a radius: the whole ball does.
    ConvergenceWarning
        The search ended before the fragility, or the lowest loss, had settled.

    Notes
    -----
    When it pays. Wasserstein in ℓ2 with cross-entropy is L2 logistic regression whose strength is
    chosen by the target; what it adds is the certificate. An out-of-fold target shrinks scores more
    than tuned L2 does: calibrate before you read probabilities. KL, ``norm=1`` and label costs do
    not improve predictions on clean data of the same population. A lower index, even calibrated, is
    no evidence of a lower cost.

    In a grid search, list whole objects: ``{"ambiguity": [KL(), Wasserstein(norm=1)]}``. A target
    of 0, which a hinge can attain, is taken as 1e-9 of the trivial loss. ``solver="conic"`` has
    tolerances and step limits of its own.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from fragility import SatisficingClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), SatisficingClassifier()).fit(X, y)
    >>> round(model[-1].fragility_, 3), round(model.score(X, y), 3)
    (2.12, 0.984)
    """

    _: KW_ONLY
    target: float | str | None = None
    target_ratio: float | None = None
    slack: float | None = None
    radius: float | None = None

    def _fit_to(self, data: TrainingData) -> None:
        training = Training.of(self, data)
        references = result(training.references(self._start(training.objective)))
        minimum = references.minimum
        self._say(
            f"lowest loss {minimum.loss:.6g} after {minimum.iterations} steps, trivial "
            f"{references.trivial.value:.6g}"
        )
        search = training.run(
            references,
            target=self._absolute_target(data, references),
            target_ratio=self.target_ratio,
            slack=self.slack,
            radius=self._certificate_radius,
        )
        target, found = result(search)
        self._adopt(found, references)
        self.erm_loss_, self.trivial_loss_ = target.erm_loss, target.trivial_loss
        self._say(
            f"target {self.target_:.6g}: fragility {self.fragility_:.6g} after "
            f"{found.solution.iterations} more steps"
        )
        self._warn(target, found.solution)
        if not minimum.converged:
            warnings.warn(
                f"The lowest loss, {self.erm_loss_:.6g}, did not settle in {minimum.iterations} "
                f"steps (max_iter={self.max_iter}): the true one is lower, and so would the target "
                "be. Give a penalty or more steps, or scale the features.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _absolute_target(self, data: TrainingData, references: ReferenceModels) -> float | None:
        """The target as a number, found by cross-validation if asked; None if given otherwise."""
        self.target_origin_ = None
        if self.target is not None and not isinstance(self.target, str):
            return float(self.target)
        if self.target_ratio is not None or self.slack is not None:
            return None
        if references.trivial.value == 0.0:
            return None  # nothing to give up, as for any target relative to this loss
        found = out_of_fold_loss(self, data)
        self.target_origin_ = TargetOrigin.between(found, references)
        self._say(str(self.target_origin_))
        if found.untested:
            warnings.warn(
                f"The classes {listed(found.untested)} have one sample each: it is in every "
                "training part and in no test part, so that the out-of-fold loss, and the target, "
                "know nothing of how well they are told. Give more samples, or slack (such as "
                "0.1).",
                UntestedClassWarning,
                stacklevel=4,
            )
        return self.target_origin_.target

    @property
    def _certificate_radius(self) -> float:
        """Distance up to which the fragility holds."""
        return inf if self.radius is None else float(self.radius)

    def _check_parameters(self) -> None:
        check_target_choice(self.target, self.target_ratio, self.slack)
        if self.radius is not None:
            check_radius(self.radius)
        self._check_search(choose.SOLVERS)

    def _warn(self, target: Target, solution: Solution) -> None:
        messages: dict[Outcome, tuple[str, type[Warning]]] = {
            Outcome.TRIVIAL: (
                f"Trivial target ({target}): a model that uses no feature that may shift meets it, "
                "and is returned. Give a smaller target (slack below 1), or class_weight if a "
                "rare class is to count.",
                TrivialTargetWarning,
            ),
            Outcome.NOTHING_LEARNED: (
                f"Nothing can be learned from features that may shift ({target}): the best model "
                "without them is returned. Look for better features, a smaller alpha, or "
                "class_weight if a rare class is to count.",
                NothingLearnedWarning,
            ),
            Outcome.NO_FRAGILITY: (
                f"Every single sample meets the target ({target}), so no change of weights can "
                "break it: fragility 0. Of the many such models the one of least norm is "
                'returned. Give a smaller target, or ambiguity="wasserstein".',
                ZeroFragilityWarning,
            ),
            Outcome.UNSETTLED: (
                f"The fragility did not settle: after {solution.iterations} steps (max_iter="
                f"{self.max_iter}) it may be above its minimum by a share of {solution.gap:.1e}. "
                "The model meets its target and its certificate holds; for a better one give more "
                "steps or scale the features.",
                ConvergenceWarning,
            ),
        }
        if solution.outcome in messages:
            warnings.warn(*messages[solution.outcome], stacklevel=4)
        used = solution.outcome in (Outcome.SOLVED, Outcome.UNSETTLED)
        if used and self._certificate_radius < inf and self.fragility_ == 0.0:
            warnings.warn(
                f"The whole ball of radius {self.radius:g} meets the target ({target}): fragility "
                "0. Of the many such models the one of least worst-case loss is returned. Give a "
                "larger radius or a smaller target.",
                ZeroFragilityWarning,
                stacklevel=4,
            )
        if target.tight and solution.outcome is not Outcome.NOTHING_LEARNED:
            warnings.warn(
                f"The target leaves almost nothing to give up for robustness ({target}). Give a "
                "larger one, such as slack=0.1.",
                TightTargetWarning,
                stacklevel=4,
            )
