"""Two models on the same cases: paired tests of every figure and of costs, corrected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite, nan
from typing import TYPE_CHECKING

import numpy as np

from ..calibration.choice import CalibrationChoice
from ..figures.spread import MoveSums
from ..index.inference import PairedDifference
from .parts import Comparison, CostTest, ModelFigures, ModelReport, PairedFigures

if TYPE_CHECKING:
    from .cost_reading import CostReader

#: Differences of two models by figure.
Tests = Mapping[str, PairedDifference]


#: Sums of the differences of two models' moves, by pair of models.
Pairs = Mapping[tuple[str, str], MoveSums]


def compared(
    models: Sequence[ModelReport],
    raw_pairs: Pairs,
    pairs_after: Pairs,
    costs: Mapping[tuple[str, str], CostTest],
    confidence: float,
) -> tuple[Comparison, ...]:
    """Every two models, as they are and after calibration, if there are sums for that."""
    raw = paired_tests(raw_pairs, {model.name: model.raw for model in models}, confidence)
    found = {model.name: model.calibrated for model in models if model.calibrated}
    after = paired_tests(pairs_after, found, confidence)
    choices = {model.name: model.calibration for model in models}
    # Where neither needs a map, the test after calibration is the one before.
    same = [pair for pair in after if {_method(choices[name]) for name in pair} == {"identity"}]
    after = {pair: tests for pair, tests in after.items() if pair not in same}
    before_and_after = adjusted([*raw.values(), *after.values()])
    tests = dict(zip(raw, before_and_after, strict=False))
    calibrated = dict(zip(after, before_and_after[len(raw) :], strict=True))
    calibrated |= {pair: tests[pair] for pair in same}
    return tuple(
        Comparison(*pair, test, calibrated.get(pair), costs.get(pair))
        for pair, test in tests.items()
    )


def _method(choice: CalibrationChoice | None) -> str:
    return "" if choice is None else choice.method


def paired_tests(
    pairs: Pairs, models: Mapping[str, ModelFigures], confidence: float
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
            for name in sums.names
        }
        for (a, b), sums in pairs.items()
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
    known = tuple(tests[0]) if tests else ()
    for names in (known[:1], known[1:]):
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
