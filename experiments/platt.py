"""Platt's map of two classes, as the library fits it: the only one of the experiments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fragility._validation import check_labelled_probabilities
from fragility.calibration.cases import fitted_map

__all__ = ["platt_map"]


def platt_map(y: Any, p: Any) -> Callable[[Any], Any]:
    """The map of probabilities of class 1 that is fitted to these, of cases of known class.

    Parameters
    ----------
    y : array-like of shape (n,)
        Classes 0 and 1.
    p : array-like of shape (n,)
        Probabilities of class 1, of a model that did not train on these cases.

    Examples
    --------
    >>> import numpy as np
    >>> calibrated = platt_map([0, 1, 0, 1], [0.01, 0.02, 0.98, 0.99])(np.array([0.02, 0.98]))
    >>> bool(0.02 < calibrated[0] < calibrated[1] < 0.98)
    True
    """
    seen = check_labelled_probabilities(
        y, p, labels=[0, 1], pos_label=1, sample_weight=None, name="proba"
    )
    return fitted_map(seen)
