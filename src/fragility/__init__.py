"""Measure, train against and decide with the tail risk of confident mistakes."""

from importlib.metadata import version

from .exceptions import AbsentClassWarning
from .index.attribution import AttributedSample
from .index.fragility import Fragility
from .index.inference import Interval, PairedDifference
from .index.sketch import FragilitySketch, SketchFragility
from .metrics import (
    FragilityComparison,
    compare_fragility,
    fragility_index,
    fragility_ratio,
    loss_fragility,
    measure_fragility,
    neg_fragility_index_scorer,
    neg_fragility_ratio_scorer,
    wasserstein_fragility_index,
)

__version__ = version("fragility")

__all__ = [
    "AbsentClassWarning",
    "AttributedSample",
    "Fragility",
    "FragilityComparison",
    "FragilitySketch",
    "Interval",
    "PairedDifference",
    "SketchFragility",
    "compare_fragility",
    "fragility_index",
    "fragility_ratio",
    "loss_fragility",
    "measure_fragility",
    "neg_fragility_index_scorer",
    "neg_fragility_ratio_scorer",
    "wasserstein_fragility_index",
]
