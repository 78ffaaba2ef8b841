"""Calibration of several classes by a sample of their cases, where not all of them are held."""

from __future__ import annotations

from .._random import random_generator, spread_over_folds
from .._typing import Integers
from .._validation import LabelledScores
from .cases import FoldMaps

#: Folds that choose the kind of map.
_FOLDS = 5


def sample_folds(data: LabelledScores, counts: Integers, seed: int = 0) -> FoldMaps:
    """Maps of folds of a sample of cases, which choose the kind of map to fit to all of it.

    Parameters
    ----------
    data : LabelledScores
        Distinct cases in an order that depends on what they are alone; every class that occurs has
        two. A case that came several times has that times its weight, and is in one fold.
    counts : ndarray of shape (n,)
        How often each came.
    seed : int
    """
    n_folds = min(_FOLDS, int(data.support[data.support > 0].min()))
    counted = None if data.weights is None else data.weights > 0.0
    folds = spread_over_folds(data.codes, n_folds, random_generator(seed), counted)
    return FoldMaps(data, folds, counts=counts)
