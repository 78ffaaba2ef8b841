"""Data that are drawn: overlapping clusters, a logistic model with known probabilities, noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from .._labels import listed
from .._parameters import check_count, check_not_negative, check_number, check_positive
from .._random import random_generator
from .._typing import Floats, Integers


def make_gaussian_clusters(
    n_samples: int = 100,
    n_classes: int = 2,
    *,
    radius: float = 1.25,
    stretch: float = 1.5,
    quadratic: bool = False,
    random_state: Any = None,
) -> tuple[Floats, Integers]:
    """Classes that are overlapping Gaussian clouds in the plane.

    The centres lie evenly on a circle, the first at 45 degrees. Every cloud is an ellipse of area
    one, in standard deviations, whose long axis is turned by half a right angle from one class to
    the next: the best borders are curved, and a linear model can have them from quadratic
    features.

    Parameters
    ----------
    n_samples : int, default=100
        Spread as evenly over the classes as can be, in random order.
    n_classes : int, default=2
    radius : float, default=1.25
        Of the circle; the smaller, the more the classes overlap.
    stretch : float, default=1.5
        Standard deviation along the long axis, and one over that along the short one; 1 for
        circles.
    quadratic : bool, default=False
        Return the columns (a, b, a², b², ab) instead of (a, b). There is no column of ones: linear
        models here have an intercept.
    random_state : int, Generator, RandomState or None, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, 2) or (n_samples, 5)
    y : ndarray of shape (n_samples,)

    Examples
    --------
    >>> from fragility.datasets import make_gaussian_clusters
    >>> X, y = make_gaussian_clusters(400, 4, quadratic=True, random_state=0)
    >>> X.shape, [int((y == c).sum()) for c in range(4)]
    ((400, 5), [100, 100, 100, 100])
    """
    n = check_count(n_samples, "n_samples")
    classes = check_count(n_classes, "n_classes", least=2)
    check_not_negative(radius, "radius")
    check_positive(stretch, "stretch")
    rng = random_generator(random_state)
    y = rng.permutation(np.arange(n) % classes)
    noise = rng.standard_normal((n, 2)) * [stretch, 1.0 / stretch]
    turn = 0.25 * np.pi * y
    cos, sin = np.cos(turn), np.sin(turn)
    where = 2.0 * np.pi * y / classes + 0.25 * np.pi
    a = radius * np.cos(where) + cos * noise[:, 0] - sin * noise[:, 1]
    b = radius * np.sin(where) + sin * noise[:, 0] + cos * noise[:, 1]
    columns = (a, b, a * a, b * b, a * b) if quadratic else (a, b)
    return np.column_stack(columns), y


def make_calibrated_logistic(
    n_samples: int = 1000,
    n_features: int = 20,
    *,
    theta: float = 5.0,
    width: float = 1.0,
    coef: ArrayLike | None = None,
    random_state: Any = None,
) -> tuple[Floats, Integers, Floats]:
    """Labels of a logistic model, and the probabilities that they were drawn with.

    Features are independent and uniform around 0; class 1 has the probability sigma(theta w'x).

    Parameters
    ----------
    n_samples : int, default=1000
    n_features : int, default=20
    theta : float, default=5
        How steep the border is: the larger, the surer a perfect model is.
    width : float, default=1
        Features lie between -width/2 and width/2.
    coef : array-like of shape (n_features,), optional
        The weights w; by default drawn from the standard normal distribution, before the features.
    random_state : int, Generator, RandomState or None, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    probability : ndarray of shape (n_samples,)
        True probability of class 1.

    Examples
    --------
    >>> from fragility.datasets import make_calibrated_logistic
    >>> X, y, p = make_calibrated_logistic(100_000, 4, random_state=0)
    >>> likely = p > 0.75
    >>> bool(abs(y[likely].mean() - p[likely].mean()) < 0.01)
    True
    """
    n = check_count(n_samples, "n_samples")
    d = check_count(n_features, "n_features")
    theta = check_number(theta, "theta")
    check_positive(width, "width")
    rng = random_generator(random_state)
    if coef is None:
        weights = rng.standard_normal(d)
    else:
        weights = np.asarray(coef, dtype=float)
        if weights.shape != (d,) or not np.isfinite(weights).all():
            raise ValueError(
                f"coef must hold n_features={d} finite numbers; got the shape {weights.shape}."
            )
    X = rng.uniform(-0.5 * width, 0.5 * width, (n, d))
    probability: Floats = expit(theta * (X @ weights))
    y = (rng.random(n) < probability).astype(np.int64)
    return X, y, probability


def flip_labels(
    y: ArrayLike, rate: float, rng: Any = None, *, classes: ArrayLike | None = None
) -> NDArray[Any]:
    """Labels with noise: each is changed with the same probability, to any other class alike.

    With the same seed, the labels that are changed at one rate are changed at every larger rate
    too, and to the same class: rates can be compared pair by pair.

    Parameters
    ----------
    y : array-like of shape (n,)
    rate : float
        Probability of a change, from 0 to 1.
    rng : int, Generator, RandomState or None, default=None
        Draws the same amount of numbers at every rate.
    classes : array-like, optional
        All classes; by default those that occur.

    Returns
    -------
    ndarray of shape (n,)
        A copy.

    Examples
    --------
    >>> from fragility.datasets import flip_labels
    >>> flip_labels(["ill", "well", "well"], 1.0, 0).tolist()
    ['well', 'ill', 'ill']
    """
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y must have one dimension; got the shape {labels.shape}.")
    rate = check_number(rate, "rate")
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"rate must lie from 0 to 1, such as 0.1; got {rate!r}.")
    known = np.unique(labels if classes is None else np.asarray(classes))
    if known.size < 2:
        raise ValueError(
            f"Labels can be flipped between two classes or more; got {listed(known)}. "
            "Name all classes by `classes`."
        )
    absent = np.setdiff1d(labels, known)
    if absent.size:
        raise ValueError(f"y has labels that are not in classes: {listed(absent)}.")
    generator = random_generator(rng)
    changed = generator.random(labels.size) < rate
    shift = generator.integers(1, known.size, labels.size)
    codes = np.searchsorted(known, labels)
    flipped: NDArray[Any] = known[np.where(changed, (codes + shift) % known.size, codes)]
    return flipped
