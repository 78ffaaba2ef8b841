"""The real data sets of the experiments, or stand-ins of their shape for a quick run."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import NamedTuple

from sklearn.datasets import make_classification

from experiments.baselines.losses import Floats
from experiments.data import load_shift, load_uci
from fragility.datasets import load_heart

__all__ = ["SHIFT", "UCI", "RealData", "real_data"]

#: Our name -> the paper's, in the order of its table.
UCI = {
    "coimbra": "BCC",
    "prognostic": "BCW",
    "ilpd": "ILDP",
    "german": "SG",
    "liver": "LD",
    "diabetes": "DI",
    "ionosphere": "IO",
    "sonar": "CB",
}
#: Sets with natural domains; see `experiments.data.load_shift`.
SHIFT = ("cleveland", "hungarian", "va", "red", "white", "adult", "bank")
#: Rows, features and share of class 1.
_SHAPES = {
    "heart": (918, 20, 0.553),
    "coimbra": (116, 9, 0.552),
    "prognostic": (198, 32, 0.237),
    "ilpd": (583, 10, 0.714),
    "german": (1000, 61, 0.300),
    "liver": (345, 6, 0.580),
    "diabetes": (768, 8, 0.349),
    "ionosphere": (351, 34, 0.641),
    "sonar": (208, 60, 0.534),
    "cleveland": (303, 13, 0.459),
    "hungarian": (294, 13, 0.361),
    "va": (200, 13, 0.745),
    "red": (1359, 11, 0.529),
    "white": (3961, 11, 0.660),
    "adult": (32561, 49, 0.241),
    "bank": (41188, 42, 0.113),
}


class RealData(NamedTuple):
    """Features, labels 0 and 1, and the name: "stand-in for ..." if the data are not the real ones.

    Features of sets with domains may be NaN.
    """

    X: Floats
    y: Floats
    name: str


@lru_cache(maxsize=16)
def real_data(name: str, quick: bool) -> RealData:
    """A data set by name.

    A quick run downloads nothing: what is not in the folder that ``FRAGILITY_DATA`` names is
    replaced by random data of the same shape.
    """
    home = os.environ.get("FRAGILITY_DATA") if quick else None
    try:
        if quick and not home:
            raise FileNotFoundError
        if name in SHIFT:
            found = load_shift(name, data_home=home)
            X, y = found.data, found.target
        elif name == "heart":
            X, y = load_heart(data_home=home, return_X_y=True)
        else:
            X, y = load_uci(name, data_home=home, return_X_y=True)
    except FileNotFoundError:
        if not quick:
            raise
        return _stand_in(name)
    return RealData(X, y, name)


def _stand_in(name: str) -> RealData:
    n, d, positive = _SHAPES[name]
    X, y = make_classification(
        n,
        d,
        n_informative=min(d, 6),
        n_redundant=0,
        weights=[1.0 - positive],
        flip_y=0.1,
        class_sep=0.7,
        random_state=len(name),
    )
    return RealData(X, y, f"stand-in for {name}")
