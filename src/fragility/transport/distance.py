"""`shift_distance`: the D of a certificate between the data of training and data that came."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import rel_entr
from sklearn.utils import check_array

from .._labels import encode_labels, listed, places_among
from .._parameters import check_count
from .._summary import Summary, SummaryRow
from .._typing import Floats, Integers
from .._validation import check_weights, column_names, long_integers_refused
from ..ambiguity import Ambiguity, Wasserstein, as_ambiguity
from .bounds import lower_bound, upper_bound
from .exact import transport_cost
from .masses import MoveCost, UnreachableError, masses_by_case, surplus_blocks

_ONLY_BOUNDS = "bounds: what some coupling costs, and what none costs less than"


@dataclass(frozen=True, eq=False, repr=False)
class ShiftDistance(Summary):
    """How far one sample is from another, in the distance of an ambiguity.

    Made by `fragility.shift_distance`.

    Attributes
    ----------
    lower, upper : float
        The distance is between them; equal where it is known exactly.
    ambiguity : Ambiguity
        What the distance is.
    method : str
        How it was computed, in words; why it is infinite where it is.
    n_ref, n_new : int
        Number of cases of each sample.
    weights_ref : ndarray of shape (n_ref,)
        Weights of the reference, summing to one: a certificate is one of its samples at theirs.
    """

    lower: float
    upper: float
    ambiguity: Ambiguity
    method: str
    n_ref: int
    n_new: int
    weights_ref: Floats

    @property
    def exact(self) -> bool:
        """Whether the distance is known, not only bounds of it."""
        return self.lower == self.upper

    @property
    def value(self) -> float:
        """The distance where it is known exactly; an error where only its bounds are."""
        if not self.exact:
            raise ValueError(
                f"Only bounds of this distance are known, {self.lower:.6g} and {self.upper:.6g}: "
                "use `upper` for a promise, or give shift_distance a larger max_exact."
            )
        return self.upper

    def _rows(self) -> Iterator[SummaryRow]:
        shown = f"{self.upper:.6g}" if self.exact else f"{self.lower:.6g} to {self.upper:.6g}"
        yield "shift distance", shown, f"in {self.ambiguity!r}"
        yield "method", self.method, ""
        yield "samples", f"{self.n_ref}, {self.n_new}", "reference, new"


def shift_distance(
    X_ref: Any,
    y_ref: ArrayLike,
    X_new: Any,
    y_new: ArrayLike,
    ambiguity: str | Ambiguity,
    *,
    sample_weight_ref: ArrayLike | None = None,
    sample_weight_new: ArrayLike | None = None,
    max_exact: int = 1000,
) -> ShiftDistance:
    r"""How far new data are from those of training: the D of a certificate, measured.

    Under `Wasserstein` the least mean cost of moving the reference onto the new data,

    .. math:: D = \min_\pi E_\pi [\lVert g \cdot (x' - x) \rVert + \gamma 1(y \ne y')],

    over all couplings of the two samples. It is exact for up to `max_exact` cases a side; beyond
    that it has a lower and an upper bound, both valid. Labels that do not move
    (``label_cost=inf``) and features of infinite weight must be as frequent in both samples, else
    the distance is infinite, which `method` explains. Under `KL` it is the relative entropy of the
    weights of the same cases; other cases are infinitely far, and refused.

    Parameters
    ----------
    X_ref, X_new : {array-like, sparse matrix} of shape (n_samples, n_features)
        As the model sees them: scaled as in training.
    y_ref, y_new : array-like of shape (n_samples,)
        The new labels are among those of the reference.
    ambiguity : {"kl", "wasserstein"} or Ambiguity
        The one of the certificate: ``certificate.ambiguity``.
    sample_weight_ref, sample_weight_new : array-like of shape (n_samples,), optional
        Weights of the cases; only their ratios matter. Those of the reference must be the ones of
        the certificate: after training with `class_weight`, ``certificate.weights``.
    max_exact : int, default=1000
        So many distinct cases a side, and no more, are coupled exactly, in seconds. Where labels
        do not move, this is for each class.

    Returns
    -------
    ShiftDistance

    Examples
    --------
    >>> from fragility import Wasserstein, shift_distance
    >>> X, y = [[0.0], [1.0], [2.0]], [0, 1, 1]
    >>> shift_distance(X, y, [[0.5], [1.0], [3.0]], y, Wasserstein()).value
    0.5
    >>> round(shift_distance(X, y, X, [1, 1, 1], Wasserstein(label_cost=0.3)).value, 6)
    0.1
    """
    distance = as_ambiguity(ambiguity)
    most = check_count(max_exact, "max_exact")
    X, codes, masses = _checked(
        (X_ref, X_new), (y_ref, y_new), (sample_weight_ref, sample_weight_new)
    )
    if isinstance(distance, Wasserstein):
        lower, upper, method = _moved(X, codes, masses, distance, most)
    elif distance.reweights:
        lower, upper, method = _reweighted(X, codes, masses)
    else:
        raise ValueError(f"shift_distance knows KL() and Wasserstein(); got {distance!r}.")
    return ShiftDistance(lower, upper, distance, method, masses[0].size, masses[1].size, masses[0])


def _moved(
    X: Floats,
    codes: Integers,
    masses: tuple[Floats, Floats],
    ambiguity: Wasserstein,
    max_exact: int,
) -> tuple[float, float, str]:
    """Bounds of the transport cost, and how they came about."""
    # In units of the largest entry, by a power of two: squares stay in range.
    movable = ~ambiguity.fixed(X.shape[1])
    unit = float(np.exp2(np.frexp(np.abs(X[:, movable]).max(initial=0.0))[1] - 1.0))
    cost = MoveCost(ambiguity.norm, ambiguity.label_cost / unit)
    lower, upper, exact = 0.0, 0.0, True
    try:
        for ref, new in surplus_blocks(X / unit, codes, masses, ambiguity):
            if max(len(ref), len(new)) <= max_exact:
                found = transport_cost(cost.between(ref, new), ref.mass, new.mass)
                if found is not None:
                    lower, upper = lower + found, upper + found
                    continue
            exact = False
            # A bound may be attained, and rounding is no contradiction.
            most = upper_bound(ref, new, cost)
            upper += most
            lower += min(lower_bound(ref, new, cost, max_exact), most)
    except UnreachableError as error:
        return inf, inf, _why_infinite(codes, masses, ambiguity, error.by_label)
    lower, upper = lower * unit, upper * unit
    if not np.isfinite(upper):
        raise ValueError("The distances of these cases overflow; scale the features and try again.")
    return lower, upper, "optimal transport, exact" if exact else _ONLY_BOUNDS


def _why_infinite(
    codes: Integers, masses: tuple[Floats, Floats], ambiguity: Wasserstein, by_label: bool
) -> str:
    if not by_label:
        return (
            "infinite: features that cannot shift (feature_weight=inf) have other values, or "
            "others as often, in the new data"
        )
    n = masses[0].size
    shares = [np.bincount(codes[:n], masses[0]), np.bincount(codes[n:], masses[1])]
    shown = (", ".join(f"{share:.3g}" for share in part[:6]) for part in shares)
    return (
        f"infinite: the classes have other shares ({' in the reference, '.join(shown)} in the new "
        f"data), and labels do not move under {ambiguity!r}; give a finite label_cost, or a "
        "sample_weight_new at which the classes have the shares of the reference"
    )


def _reweighted(
    X: Floats, codes: Integers, masses: tuple[Floats, Floats]
) -> tuple[float, float, str]:
    """Relative entropy of the new weights, case by case."""
    _, ref, new = masses_by_case(X, codes, masses)
    lacking = int(np.count_nonzero((new > 0.0) & (ref == 0.0)))
    if lacking:
        raise ValueError(
            f"Under KL() only the weights of the same cases shift, and {lacking} distinct new "
            "cases have no weight in the reference: the distance is infinite. Give the rows of the "
            "reference with other weights, or use Wasserstein()."
        )
    entropy = max(float(rel_entr(new, ref).sum()), 0.0)
    return entropy, entropy, "relative entropy of the weights, exact"


def _checked(
    features: tuple[Any, Any],
    labels: tuple[ArrayLike, ArrayLike],
    weights: tuple[ArrayLike | None, ArrayLike | None],
) -> tuple[Floats, Integers, tuple[Floats, Floats]]:
    """Features and classes of both samples, one below the other, and masses that sum to one."""
    names = [column_names(given) for given in features]
    if names[0] and names[1] and names[0] != names[1]:
        raise ValueError(
            f"X_new has the columns {listed(names[1])}; X_ref has {listed(names[0])}. Give the "
            "same, in the same order."
        )
    X = [_dense(given, name) for given, name in zip(features, ("X_ref", "X_new"), strict=True)]
    if X[0].shape[1] != X[1].shape[1]:
        raise ValueError(
            f"X_ref has {X[0].shape[1]} features and X_new has {X[1].shape[1]}; give the same."
        )
    classes, ref = encode_labels(labels[0])
    present, new = encode_labels(labels[1])
    places, unknown = places_among(present, classes)
    if unknown:
        raise ValueError(
            f"y_new has labels that y_ref does not have: {listed(unknown)}; those of y_ref are "
            f"{listed(classes)}. No certificate speaks of others."
        )
    codes = [ref.astype(np.int64), places[new].astype(np.int64)]
    masses = []
    for side, end in enumerate(("ref", "new")):
        if len(X[side]) != codes[side].size:
            raise ValueError(
                f"X_{end} has {len(X[side])} samples but y_{end} has {codes[side].size}."
            )
        given = weights[side]
        mass = np.ones(len(X[side])) if given is None else check_weights(given, len(X[side]))
        mass = mass / mass.max()
        masses.append(mass / mass.sum())
    return np.concatenate(X), np.concatenate(codes), (masses[0], masses[1])


def _dense(X: Any, name: str) -> Floats:
    with long_integers_refused(name):
        found = check_array(X, accept_sparse="csr", dtype=np.float64, input_name=name)
    dense: Floats = found if isinstance(found, np.ndarray) else found.toarray()
    return dense
