"""Random numbers: a generator from what people give, and folds that are drawn with one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._typing import Indices, Mask


def random_generator(random_state: Any) -> np.random.Generator:
    """Generator from whatever people give: a seed, a generator of either kind, or None."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            "random_state must be a whole number of zero or more, a NumPy generator or None; "
            f"got {random_state!r}."
        ) from None


def content_order(
    codes: NDArray[Any],
    scores: NDArray[Any],
    weights: NDArray[Any] | None = None,
    beside: Sequence[NDArray[Any]] = (),
) -> Indices:
    """Order of samples by what they are: class, scores, weight, then other scores `beside` these.

    Samples that are drawn in this order are drawn alike whatever order they came in: those that it
    does not tell apart are the same. Those of no weight come last, so that they move no others.
    """
    own, *others = ([*np.atleast_2d(part.T)] for part in (scores, *beside))
    keys: list[NDArray[Any]] = [codes, *own]
    if weights is not None:
        keys = [weights == 0.0, *keys, weights]
    keys += [column for part in others for column in part]
    return np.lexsort(keys[::-1])


def spread_over_folds(
    codes: NDArray[Any],
    n_folds: int,
    rng: np.random.Generator,
    counted: Mask | None = None,
) -> Indices:
    """Fold of each sample: drawn at random, each class spread as evenly as it can be.

    Unlike scikit-learn's folds these exist for any classes: a class with fewer samples than folds
    is in some folds only. The samples that are `counted` (all by default) are spread evenly among
    themselves.
    """
    order = rng.permutation(codes.size)
    if counted is not None:
        order = order[np.argsort(~counted[order], kind="stable")]
    order = order[np.argsort(codes[order], kind="stable")]
    folds = np.empty(codes.size, dtype=np.intp)
    folds[order] = np.arange(codes.size) % n_folds
    return folds
