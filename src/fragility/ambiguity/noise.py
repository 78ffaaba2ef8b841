"""Measurement errors of the features, and what it costs to move each feature because of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from scipy import sparse

from .._labels import listed
from .._names import did_you_mean, shown
from .._parameters import check_not_negative
from .._typing import Floats
from .._validation import check_values

#: One number for each feature, or pairs of a name and a number.
_PerFeature = tuple[float, ...] | tuple[tuple[str, float], ...]

#: Share of its deviation that a feature may drift by, unless another is given.
NOISE_FLOOR = 0.3
#: Rows read at once: they should stay in the cache of the processor.
_BLOCK = 1_024


@dataclass(frozen=True)
class FeatureNoise:
    r"""Known measurement errors, made by `Wasserstein.from_noise`, which says what they mean.

    Attributes
    ----------
    sigma : tuple of float, or of (name, float)
        Standard deviation of the error of each feature; of features without a name here zero.
    floor : float
        Share of its own standard deviation that any feature may drift by.
    scale : tuple of float, or of (name, float), or None
        Standard deviation of each feature; None: not known before the data are.
    """

    sigma: Any
    floor: float = NOISE_FLOOR
    scale: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", _per_feature(self.sigma, "sigma"))
        object.__setattr__(self, "floor", check_not_negative(self.floor, "floor"))
        if self.scale is not None:
            object.__setattr__(self, "scale", _per_feature(self.scale, "scale"))
            if not self.scale:
                raise ValueError(
                    "scale has no entries. Give the deviation of each feature, or leave scale out: "
                    "then it is the standard deviation in the training data."
                )
        if self.floor == 0.0 and not any(_numbers(self.sigma)):
            raise ValueError(
                "sigma is 0 for every feature and floor=0, so that nothing may shift. Give the "
                f"measurement error of a feature, or a floor such as {NOISE_FLOOR:g}."
            )
        if self.is_known and self.scale is not None and len(self.scale) != len(self.sigma):
            raise ValueError(
                f"sigma has {len(self.sigma)} entries and scale has {len(self.scale)}; give one "
                "of each for every feature."
            )

    @property
    def arguments(self) -> str:
        """What `Wasserstein.from_noise` was given, as it is written."""
        parts = [_written(self.sigma), f"floor={self.floor:g}"]
        if self.scale is not None:
            parts.append(f"scale={_written(self.scale)}")
        return ", ".join(parts)

    @property
    def is_known(self) -> bool:
        """Whether the costs follow from it alone: nothing has to be looked up in data."""
        scaled = self.floor == 0.0 or (self.scale is not None and not _is_named(self.scale))
        return scaled and not _is_named(self.sigma)

    def seen_in(self, X: Any, weights: Floats | None, names: Sequence[str] | None) -> FeatureNoise:
        """The same with a number for each feature of some data, whose deviations are the scale."""
        sigma = _in_order(self.sigma, "sigma", X.shape[1], names, missing=0.0)
        if self.scale is not None:
            scale = _in_order(self.scale, "scale", X.shape[1], names, missing=None)
        else:
            scale = deviations(X, weights)
        return FeatureNoise(tuple(sigma), self.floor, tuple(scale))

    def deviation(self) -> Floats:
        r"""How far each feature may well move: :math:`\sqrt{(floor \cdot sd)^2 + \sigma^2}`."""
        sigma = np.asarray(self.sigma)
        return sigma if self.floor == 0.0 else np.hypot(self.floor * np.asarray(self.scale), sigma)

    def weight(self) -> Floats:
        """Cost of a unit of each feature."""
        # With a floor, a deviation of zero is that of a constant column. Its unit is not known, and
        # no model gains by it: not free, or a model might rely on it.
        unmoved = inf if self.floor == 0.0 else 1.0
        deviation = self.deviation()
        moved = deviation > 0.0
        return np.where(moved, 1.0 / np.where(moved, deviation, 1.0), unmoved)


def deviations(X: Any, weights: Floats | None = None) -> Floats:
    """Weighted standard deviation of each column; exactly zero if it is constant but for rounding.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, d)
    weights : ndarray of shape (n,), optional
        Not negative, by default all alike. Weighted samples are as repeated ones.
    """
    share = np.ones(X.shape[0]) if weights is None else weights / weights.max()
    share = share / share.sum()
    mean: Floats = np.asarray(share @ X)
    squares = np.zeros(X.shape[1])
    if sparse.issparse(X):
        stored = sparse.coo_array(X)
        stored.sum_duplicates()
        rows, columns = stored.coords
        of_stored = share[rows] * (stored.data - mean[columns]) ** 2
        squares += np.bincount(columns, of_stored, X.shape[1])
        # All others are zeros.
        others = 1.0 - np.bincount(columns, share[rows], X.shape[1])
        squares += np.maximum(others, 0.0) * mean**2
    else:
        for start in range(0, X.shape[0], _BLOCK):
            part = slice(start, start + _BLOCK)
            squares += share[part] @ (X[part] - mean) ** 2
    found = np.sqrt(squares)
    return np.where(found > 1e-13 * np.abs(mean), found, 0.0)


def _per_feature(given: Any, name: str) -> _PerFeature:
    """Numbers of zero or more, in a tuple, so that two of the same are equal and hash alike."""
    pairs = _pairs(given)
    if pairs is not None:
        keys = [key for key, _ in pairs]
        unnamed = [key for key in keys if not isinstance(key, str)]
        if unnamed:
            raise ValueError(
                f"{name} must have names of features for keys; got {shown(unnamed[0])}. Without "
                "names give a list of one number for each feature."
            )
        repeated = [key for key, count in Counter(keys).items() if count > 1]
        if repeated:
            raise ValueError(
                f"{name} has several entries for {listed(repeated, 10)}; give one for each feature."
            )
        return tuple(sorted((key, check_not_negative(v, f"{name} of {key!r}")) for key, v in pairs))
    numbers = check_values(given, name).astype(np.float64)
    fits = np.isfinite(numbers).all() and (numbers >= 0.0).all()
    if not (fits and numbers.ndim == 1 and numbers.size > 0):
        raise ValueError(
            f"{name} must be one finite number of zero or more for each feature, or a dictionary "
            f"of names of features and such numbers; got {shown(given)}."
        )
    return tuple(numbers.tolist())


def _pairs(given: Any) -> list[tuple[Any, Any]] | None:
    """Names and numbers of a mapping, or of a pandas Series with labels; None: it has no names."""
    if isinstance(given, Mapping):
        return list(given.items())
    if _is_named(given):
        return list(given)
    is_series = hasattr(given, "items") and hasattr(given, "index") and np.ndim(given) == 1
    if is_series and list(given.index) != list(range(len(given))):
        return list(given.items())
    return None


def _in_order(
    given: _PerFeature, name: str, n_features: int, names: Sequence[str] | None, missing: Any
) -> Iterable[float]:
    """A number for each feature of the data; what has no name in `given` gets `missing`."""
    if not _is_named(given):
        if len(given) != n_features:
            raise ValueError(
                f"{name} has {len(given)} entries; X has {n_features} features. Give one for each."
            )
        return _numbers(given)
    by_name = dict(given)  # type: ignore[arg-type]
    if not by_name and missing is not None:
        return [missing] * n_features
    if names is None or len(names) == 0:
        raise ValueError(
            f"{name} names features ({listed(by_name, 3)}), but X has no column names. Give a data "
            f"frame, or {name} as a list of one number for each of the {n_features} features."
        )
    unknown = [key for key in by_name if key not in names]
    if unknown:
        raise ValueError(
            f"{name} names features that X does not have: {listed(unknown, 10)}."
            f"{did_you_mean(unknown[:10], names)} X has {listed(names, 20)}."
        )
    absent = [key for key in names if key not in by_name]
    if absent and missing is None:
        raise ValueError(
            f"{name} has no entry for {listed(absent, 10)}. Give one for each feature, or leave "
            f"{name} out: then it is the standard deviation in the training data."
        )
    return [by_name.get(key, missing) for key in names]


def _is_named(given: Any) -> bool:
    """Whether it is a tuple of pairs; an empty one is a mapping that names nothing."""
    return isinstance(given, tuple) and all(
        isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str)
        for entry in given
    )


def _numbers(given: _PerFeature) -> list[float]:
    return [entry[1] if isinstance(entry, tuple) else entry for entry in given]


def _written(given: _PerFeature) -> str:
    entries = [
        f"{entry[0]!r}: {entry[1]:g}" if isinstance(entry, tuple) else f"{entry:g}"
        for entry in given[:6]
    ]
    inner = ", ".join(entries) + (", ..." if len(given) > 6 else "")
    return f"{{{inner}}}" if _is_named(given) else f"[{inner}]"
