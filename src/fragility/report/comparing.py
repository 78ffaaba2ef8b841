"""Two models on the same cases: paired tests of every figure and of costs, corrected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite, nan

import numpy as np

from ..figures.spread import MOVED, MoveSums
from ..index.inference import PairedDifference
from .parts import CostTest, ModelFigures, PairedFigures
from .policies import CostReader
from .rereading import Reader

#: Differences of two models by figure.
Tests = Mapping[str, PairedDifference]


def paired_tests(
    reader: Reader, models: Mapping[str, ModelFigures], confidence: float
) -> dict[tuple[str, str], Tests]:
    """Tests of every two models, by figure."""
    return {
        (a, b): {
            name: _difference(
                sums,
                name,
                models[a].figures[name].value,
                models[b].figures[name].value,
                confidence,
            )
            for name in MOVED
        }
        for (a, b), sums in reader.pairs.items()
    }


def _difference(
    sums: MoveSums, name: str, a: float, b: float, confidence: float
) -> PairedDifference:
    error, freedom = nan, inf
    of_index = name in ("fragility_index", "ratio")
    if isfinite(a) and isfinite(b) and (min(a, b) > 0.0 or not of_index):
        error, freedom = sums.spread(name)
    if error == 0.0 and not of_index:  # no case tells the models apart
        error = nan
    return PairedDifference.of(a, b, error, freedom, confidence)


def cost_tests(reader: CostReader, confidence: float) -> dict[tuple[str, str], CostTest]:
    """Tests of what every two models cost; p-values allow for the number of pairs."""
    tests = reader.tests(confidence)
    found = holm([test.p_value for test in tests.values()])
    n_tests = int(np.count_nonzero(~np.isnan(found)))
    return {
        pair: CostTest(test, p, n_tests)
        for (pair, test), p in zip(tests.items(), found, strict=True)
    }


def adjusted(tests: Sequence[Tests]) -> list[PairedFigures]:
    """Tests with adjusted p-values: those of the index count together, and all others."""
    p_values = [dict[str, float]() for _ in tests]
    sizes: dict[str, int] = {}
    for names in (MOVED[:1], MOVED[1:]):
        places = [(place, name) for place in range(len(tests)) for name in names]
        family = holm([tests[place][name].p_value for place, name in places])
        for (place, name), p in zip(places, family, strict=True):
            p_values[place][name] = p
        sizes |= dict.fromkeys(names, int(np.count_nonzero(~np.isnan(family))))
    return [PairedFigures(found, own, sizes) for found, own in zip(tests, p_values, strict=True)]


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjustment for several tests; undefined ones do not count."""
    p = np.array(p_values, dtype=np.float64)
    defined = np.flatnonzero(~np.isnan(p))
    order = defined[np.argsort(p[defined], kind="stable")]
    adjusted = p.copy()
    factors = np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return [float(value) for value in adjusted]
