"""The least fragility for a row of targets."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from math import nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from .._typing import Floats, Indices, Intercept
from ..ambiguity import Ambiguity
from ..losses import Loss
from ..programs.satisficing import NO_HINT, Hint, Outcome
from ..solvers.searching import result
from .satisficing import SatisficingClassifier
from .search import checked_list
from .training import Training

_DEFAULT_SLACKS = (0.01, 0.02, 0.05, *np.round(np.arange(0.1, 0.96, 0.05), 2).tolist())


@dataclass(frozen=True, eq=False)
class FragilityPath:
    """The least fragile models for a row of targets, each solved to the end.

    Attributes
    ----------
    target : ndarray of shape (n_targets,)
        Increasing.
    fragility : ndarray of shape (n_targets,)
        The least k of each target, recomputed from data and coefficients; it falls.
    loss : ndarray of shape (n_targets,)
        Penalised mean loss of each model.
    coef : ndarray of shape (n_targets, 1 or n_classes, n_features)
    intercept : ndarray of shape (n_targets, 1 or n_classes)
    outcome : list of str
        What each solution is: "solved", or what is special about it.
    n_iter : ndarray of shape (n_targets,)
        Steps that each took, from the solution before it.
    erm_loss, trivial_loss : float
        Lowest loss of all models, and of models that use no feature that may shift.
    ambiguity : Ambiguity
    classes : ndarray
    feature_names : list of str or None
    """

    target: Floats
    fragility: Floats
    loss: Floats
    coef: Floats
    intercept: Floats
    outcome: list[str]
    n_iter: Indices
    erm_loss: float
    trivial_loss: float
    ambiguity: Ambiguity = field(repr=False)
    classes: NDArray[Any] = field(repr=False)
    feature_names: list[str] | None = field(default=None, repr=False)

    @property
    def slack(self) -> Floats:
        """Share of what can be learned that each target gives up."""
        learnable = self.trivial_loss - self.erm_loss
        return (self.target - self.erm_loss) / (learnable if learnable > 0.0 else nan)

    def plot(self, ax: Any = None) -> Any:
        """Draw it, as `FragilityPathDisplay.from_path` does."""
        from .path_display import FragilityPathDisplay

        return FragilityPathDisplay.from_path(self, ax=ax)


def fragility_path(
    X: Any,
    y: ArrayLike,
    *,
    loss: str | Loss = "cross_entropy",
    ambiguity: str | Ambiguity = "wasserstein",
    slacks: ArrayLike | None = None,
    targets: ArrayLike | None = None,
    penalty: str | None = None,
    alpha: float = 1e-3,
    fit_intercept: Intercept = True,
    class_weight: Any = None,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    verbose: int = 0,
) -> FragilityPath:
    """Least fragility, loss and coefficients for a row of targets.

    Each target is solved as `SatisficingClassifier` solves it, starting from the solution before.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    loss, ambiguity, penalty, alpha, fit_intercept, class_weight, tol, max_iter
        As in `SatisficingClassifier`.
    slacks : array-like, optional
        Shares, between 0 and 1, of what can be learned that may be given up; 21 of them by default.
    targets : array-like, optional
        Absolute targets instead.
    sample_weight : array-like of shape (n_samples,), optional
    verbose : int, default=0
        Print a line for each target.

    Returns
    -------
    FragilityPath

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from fragility import fragility_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = fragility_path(X[:, :5], y, slacks=[0.1, 0.5])
    >>> path.fragility.round(3).tolist()  # ten and fifty per cent of what can be learned
    [3.268, 0.003]
    """
    if slacks is not None and targets is not None:
        raise ValueError("Give slacks or targets, not both.")
    name = "slacks" if targets is None else "targets"
    given = _DEFAULT_SLACKS if slacks is None else slacks
    nodes = np.unique(checked_list(given if targets is None else targets, name))
    model = SatisficingClassifier(
        loss,
        ambiguity,
        penalty=penalty,
        alpha=alpha,
        fit_intercept=fit_intercept,
        class_weight=class_weight,
        tol=tol,
        max_iter=max_iter,
    )
    for node in nodes.tolist():
        model.set_params(**{name[:-1]: node})._check_parameters()
    models, hint = [], NO_HINT
    with np.errstate(over="ignore", under="ignore"):
        data = model._class_weighted(model._validated(X, y, sample_weight))
        training = Training.of(model, data)
        references = result(training.references(np.zeros(training.objective.size)))
        for i, node in enumerate(nodes.tolist(), start=1):
            wanted = {"target": None, "target_ratio": None, "slack": None, name[:-1]: node}
            _, found = result(training.run(references, hint=hint, **wanted))
            hint = Hint(found.solution.parameters)
            models.append(found)
            if verbose:
                print(
                    f"[fragility_path] {i}/{nodes.size}: target {found.certificate.target:.6g}, "
                    f"fragility {found.certificate.fragility:.6g}"
                )
    unsettled = sum(found.solution.outcome is Outcome.UNSETTLED for found in models)
    if unsettled or not references.minimum.converged:
        warnings.warn(
            f"{unsettled} of {nodes.size} targets were not solved to the end"
            + ("" if references.minimum.converged else ", nor was the lowest loss found")
            + f" (max_iter={max_iter}). Give more steps; `outcome` says which.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return FragilityPath(
        target=np.array([found.certificate.target for found in models]),
        fragility=np.array([found.certificate.fragility for found in models]),
        loss=np.array([found.certificate.attained_loss for found in models]),
        coef=np.stack([found.linear.coef for found in models]),
        intercept=np.stack([found.linear.intercept for found in models]),
        outcome=[found.solution.outcome.value for found in models],
        n_iter=np.array([found.solution.iterations for found in models]),
        erm_loss=references.minimum.loss,
        trivial_loss=references.trivial.value,
        ambiguity=training.given,
        classes=data.classes,
        feature_names=list(getattr(model, "feature_names_in_", [])) or None,
    )
