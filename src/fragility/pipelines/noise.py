"""Measurement errors of the columns of a table, as those of the inputs of a classifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .._labels import listed
from .._names import did_you_mean
from .._typing import Floats
from ..exceptions import TableError
from .kinds import ColumnKinds


def check_noise(noise: Mapping[str, float], features: list[str], columns: ColumnKinds) -> list[str]:
    """Refuse noise of what is not a numeric feature; notes on columns that are left out."""
    unknown = [name for name in noise if name not in features]
    if unknown:
        raise TableError(
            f"Measurement errors are given of columns that are not features: {listed(unknown)}."
            f"{did_you_mean(unknown[:10], features)} Features are {listed(features, 20)}."
        )
    levels = [name for name in noise if name in columns.categorical]
    if levels:
        raise TableError(
            f"A measurement error is one of numbers, and {listed(levels)} has levels: another "
            "level is not an error of some size. Leave it out of noise (on the command line "
            "--noise), or give the column as numbers."
        )
    return [
        f"the measurement error of {name!r} means nothing here: the column has one value only"
        for name in noise
        if name in columns.constant
    ]


def noise_of_inputs(
    noise: Mapping[str, float], columns: ColumnKinds, preparation: Pipeline, n_inputs: int
) -> Floats:
    """Deviation of the measurement error of every input, of a preparation that is fitted.

    A number is divided by the scale of its column, as its error is; indicators of levels have none.
    """
    sigma = np.zeros(n_inputs)
    if columns.numeric:
        parts: Any = preparation.named_steps["columns"]
        scale = parts.named_transformers_["numeric"].named_steps["scale"].scale_
        given = np.array([noise.get(name, 0.0) for name in columns.numeric])
        sigma[parts.output_indices_["numeric"]] = given / scale
    return sigma
