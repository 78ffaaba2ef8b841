"""The distribution that a certificate guards against: samples as an adversary would shift them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import rel_entr

from .._optional import data_frame
from .._parameters import check_positive
from .._summary import Summary, SummaryRow, percent
from .._typing import Floats, Indices, Mask
from ..ambiguity import Ambiguity, Transport, Wasserstein
from ..losses import Loss
from .adversary import reweighted, shifted
from .atoms import Atoms, Attack
from .certificate import Certificate
from .certify import Question, question_of


@dataclass(frozen=True, eq=False, repr=False)
class WorstCase(Summary):
    r"""Samples as an adversary shifts them: a distribution P near the data.

    Made by `fragility.worst_case`. A sample may be in several rows: a share of it moves, another
    gets another label, the rest stays.

    Attributes
    ----------
    X : {ndarray, sparse array} of shape (m, n_features)
        Where the shares of the samples are.
    y : ndarray of shape (m,)
        Their labels.
    weights : ndarray of shape (m,)
        Their weights, summing to one.
    source : ndarray of shape (m,)
        The sample that each row comes from.
    distances : ndarray of shape (m,)
        What it cost to bring each row where it is; zero under KL, where weights shift.
    weights_before : ndarray of shape (n_samples,)
        Weights of the samples as they are, summing to one.
    constant : ndarray of shape (m,) or None
        The constant feature of a priced intercept, which may move, too; None if there is none.
    loss_before : float
        Penalised mean loss of the data.
    expected_loss : float
        Penalised mean loss under P, recomputed from these rows.
    distance : float
        How far P is from the data: by the way each row came, or the divergence of the weights.
    bound : float
        The largest penalised mean loss within the distance that was asked for.
    ambiguity : Ambiguity
        What the distance is.
    """

    X: Any
    y: NDArray[Any]
    weights: Floats
    source: Indices
    distances: Floats
    weights_before: Floats
    constant: Floats | None
    loss_before: float
    expected_loss: float
    distance: float
    bound: float
    ambiguity: Ambiguity
    _own: NDArray[Any]

    @property
    def gap(self) -> float:
        """By how much the expected loss is below the bound."""
        return self.bound - self.expected_loss

    @property
    def relabelled(self) -> Mask:
        """Rows that have another label than the sample they come from."""
        changed: Mask = self.y != self._own
        return changed

    @property
    def moved(self) -> Mask:
        """Rows whose features are not those of the sample they come from."""
        cost = self.ambiguity.label_cost if self.ambiguity.moves_labels else 0.0
        moved: Mask = self.distances > np.where(self.relabelled, cost, 0.0)
        return moved

    def to_frame(self) -> Any:
        """Return the shifted samples as a pandas DataFrame, a row for each row of `X`.

        Returns
        -------
        pandas.DataFrame
            With columns source, weight, distance, label, label_before, moved and relabelled, where
            `label_before` is the label of the sample that the row comes from. The features of the
            rows are in `X`.
        """
        return data_frame(
            {
                "source": self.source,
                "weight": self.weights,
                "distance": self.distances,
                "label": self.y,
                "label_before": self._own,
                "moved": self.moved,
                "relabelled": self.relabelled,
            }
        )

    def _rows(self) -> Iterator[SummaryRow]:
        yield "distance", f"{self.distance:.6g}", f"from the data, in {self.ambiguity!r}"
        yield "loss before", f"{self.loss_before:.6g}", "penalised mean loss of the data"
        yield "expected loss", f"{self.expected_loss:.6g}", "the same of the worst case"
        note = "attained" if self.gap <= 1e-9 * abs(self.bound) else f"{self.gap:.1e} above it"
        yield "bound", f"{self.bound:.6g}", f"largest within that distance: {note}"
        if self.ambiguity.reweights:
            effective = 1.0 / float(self.weights @ self.weights)
            yield "weights", f"{effective:.4g}", "samples would be left of them, effectively"
            return
        moved, other = self.moved, self.relabelled
        share = float(self.weights[moved].sum())
        note = "features stay" if not moved.any() else f"{self.distances[moved].max():.4g} at most"
        yield "moved", percent(share), f"of the weight, by a distance of {note}" if share else note
        if self.ambiguity.moves_labels:
            share = float(self.weights[other].sum())
            yield "relabelled", percent(share), "of the weight"


def worst_case(
    model: Any,
    X: Any,
    y: ArrayLike,
    radius: float | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    target: float | None = None,
    loss: str | Loss | None = None,
    ambiguity: str | Ambiguity | None = None,
    penalty: float | None = None,
    tol: float = 1e-3,
) -> WorstCase:
    r"""The data as an adversary would shift them, within a distance.

    Under `KL` the weights of the samples change. Under `Wasserstein` labels change where that gains
    more than moves do for their cost, and what is left of the distance moves samples straight along
    the steepest way to another class. Under `Transport` at a cost that is no norm, or in a support,
    each sample has a worst place of its own, and goes there. A hinge attains the largest loss if
    there are samples that it rises for; cross-entropy comes nearer to it the further ever fewer
    samples move, and never there: `tol` says how near, and `gap` how near it is.

    Parameters
    ----------
    model : fitted linear classifier
        Of this library or of any other, as in `certify`.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    radius : float, optional
        Distance that the adversary may go, positive. By default the critical distance of the model,
        ``model.certificate_.critical_distance``; under KL where the certificate of `target` is
        attained.
    sample_weight : array-like of shape (n_samples,), optional
    target, loss, ambiguity, penalty : optional
        As in `certify`, for models of other libraries, or other than in training.
    tol : float, default=1e-3
        Share of what moves add to the loss that may be lost for shorter moves.

    Returns
    -------
    WorstCase

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from fragility import SatisficingClassifier, worst_case
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SatisficingClassifier("hinge", slack=0.1).fit(scale(X), y)
    >>> shifted = worst_case(model, scale(X), y, 0.05)
    >>> round(shifted.loss_before, 4), round(shifted.expected_loss, 4), round(shifted.bound, 4)
    (0.0745, 0.1283, 0.1283)
    """
    check_positive(tol, "tol", " Give one such as 1e-3.")
    asked = question_of(model, X, y, target, loss, ambiguity, penalty, inf, sample_weight)
    level = asked.target if asked.target is not None else 0.0
    certificate = asked.certificate(level)
    given = ambiguity is not None or target is not None or loss is not None
    far = _radius(model, radius, asked, certificate, given)
    carrying = np.flatnonzero(certificate.weights > 0.0)
    scores = _scores(asked, asked.samples.X[carrying], None)
    attack = Attack(
        asked.linear, asked.loss, scores, asked.samples.codes[carrying], certificate._profile,
        far, float(tol),
    )  # fmt: skip
    with np.errstate(over="ignore", under="ignore"):
        if far == inf:  # under KL, at the fragility itself
            atoms = reweighted(asked.ambiguity, attack, certificate.fragility)
        else:
            atoms = shifted(asked.ambiguity.solved_as(asked.loss), attack)
        return _result(asked, certificate, atoms._replace(source=carrying[atoms.source]), far)


def _radius(
    model: Any, radius: float | None, asked: Question, certificate: Certificate, given: bool
) -> float:
    """How far the adversary may go; infinite: to where the line of a certificate is attained."""
    if radius is not None:
        return check_positive(radius, "radius", " Give one such as 0.1.")
    if asked.ambiguity.reweights and asked.target is not None:
        if certificate.fragility == inf:
            raise ValueError(
                f"The model misses its target, {asked.target:.6g}: give radius, such as 0.1."
            )
        return inf
    own = getattr(model, "certificate_", None)
    far = own.critical_distance if own is not None and not given else inf
    if not isfinite(far):
        raise ValueError(
            f"{type(model).__name__} has no critical distance: it was not trained for a target (or "
            "not for what is asked here), or no target changes its fragility. Give radius, such as "
            "0.1."
        )
    return float(far)


def _result(asked: Question, certificate: Certificate, atoms: Atoms, far: float) -> WorstCase:
    """The rows of the atoms, and everything that is claimed of them computed from them."""
    samples, ambiguity = asked.samples, asked.ambiguity
    moved = np.flatnonzero(atoms.move >= 0)
    X, constant = samples.X[atoms.source], None
    if asked.linear.priced:
        constant = np.ones(atoms.source.size)
        constant[moved] += atoms.moves[atoms.move[moved], -1]
    if moved.size:
        steps = atoms.moves[atoms.move[moved], : samples.X.shape[1]]
        X = _with_rows(X, moved, steps)
    losses = asked.loss.value(_scores(asked, X, constant), atoms.codes)
    before, penalty = certificate.attained_loss, certificate.penalty
    if ambiguity.reweights:
        distance = float(rel_entr(atoms.mass, certificate.weights[atoms.source]).sum())
    else:
        distance = float(atoms.mass @ _paid(asked, atoms, samples.codes[atoms.source]))
    reached = distance if far == inf else max(far, distance)
    bound = ambiguity.worst_loss(certificate._profile, reached).value
    return WorstCase(
        X=X,
        y=asked.linear.classes[atoms.codes],
        weights=atoms.mass,
        source=atoms.source,
        distances=atoms.distance,
        weights_before=certificate.weights,
        constant=constant,
        loss_before=before,
        expected_loss=float(atoms.mass @ losses) + penalty,
        distance=distance,
        bound=bound + penalty,
        ambiguity=ambiguity,
        _own=asked.linear.classes[samples.codes[atoms.source]],
    )


def _paid(asked: Question, atoms: Atoms, own: NDArray[Any]) -> Floats:
    """Cost of each atom by where it is, whatever the adversary thinks that it paid."""
    ambiguity = asked.ambiguity.with_constant() if asked.linear.priced else asked.ambiguity
    if not isinstance(ambiguity, (Wasserstein, Transport)):
        return atoms.distance
    by_move = np.append(ambiguity.move_costs(atoms.moves), 0.0)
    costs: Floats = by_move[atoms.move]
    return np.where(atoms.codes != own, costs + ambiguity.label_cost, costs)


def _scores(asked: Question, X: Any, constant: Floats | None) -> Floats:
    """Scores of samples, whose constant may be another one than 1."""
    linear = asked.linear
    one = np.ones(X.shape[0]) if constant is None else constant
    if linear.classes.size == 2:
        scores: Floats = X @ linear.coef[0] + linear.intercept[0] * one
        return scores
    several: Floats = X @ linear.coef.T + np.multiply.outer(one, linear.intercept)
    return several


def _with_rows(X: Any, places: Indices, steps: Floats) -> Any:
    """Samples with steps added to some rows, of which a sparse matrix makes no others dense."""
    if not sparse.issparse(X):
        X[places] += steps
        return X
    everywhere = sparse.csr_array(steps)
    put = sparse.csr_array(
        (np.ones(places.size), (places, np.arange(places.size))), shape=(X.shape[0], places.size)
    )
    return sparse.csr_array(X + put @ everywhere)
