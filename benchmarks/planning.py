"""Does a plan keep its word? New cases, as many as `plan_evaluation` asks for: a seeded simulation.

Run with ``make coverage``. A pilot is drawn, a plan made from it, and as many new cases are drawn
from the same population: how wide their interval is beside the width that was asked for, and how
often they find the difference of two models that was asked for, which is the true one.
"""

from __future__ import annotations

import argparse
import platform
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import scipy
from joblib import Parallel, delayed
from scipy import special

from fragility import Report, plan_evaluation

RESULTS = Path(__file__).parent / "results" / "planning.md"
PILOTS = (300, 1000)
FIGURES = ("fragility_index", "ratio", "auc", "log_loss", "brier", "aurc")
POWER = 0.8
#: The wanted width, as a part of that of the first pilots.
NARROWER = 0.5
Models = dict[str, np.ndarray]


def logistic(intercept: float, stretch: float) -> Callable[..., tuple[np.ndarray, Models]]:
    """Two models of one logit, the second with a fifth of noise."""

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, Models]:
        z = 2.0 * rng.normal(size=n) + intercept
        y = (rng.random(n) < special.expit(z)).astype(int)
        noisy = 0.8 * z + 1.2 * rng.normal(size=n) * 0.8 + 0.2 * intercept
        return y, {"a": special.expit(stretch * z), "b": special.expit(stretch * noisy)}

    return draw


def three_classes(rng: np.random.Generator, n: int) -> tuple[np.ndarray, Models]:
    logits = 1.5 * rng.normal(size=(n, 3))
    proba = special.softmax(logits, axis=1)
    y = (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    noisy = logits + rng.normal(size=(n, 3))
    return y, {"a": proba, "b": special.softmax(noisy, axis=1)}


POPULATIONS = {
    "calibrated": logistic(0.0, 1.0),
    "overconfident": logistic(0.0, 2.0),
    "positives one in ten": logistic(-3.3, 1.0),
    "three classes": three_classes,
}


def seeded(*key: object) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(str(part).encode()) for part in key])


def measured(y: np.ndarray, models: Models) -> Report:
    return Report.from_predictions(y, models, calibrate=False, n_worst=0)


def widths(report: Report) -> dict[str, float]:
    figures = report.models[0].raw.figures
    limits = {name: figures[name].interval for name in FIGURES}
    return {name: np.inf if part is None else part.high - part.low for name, part in limits.items()}


def one(
    name: str, n_pilot: int, wanted: dict[str, float], true: dict[str, float], number: int
) -> dict[str, tuple[float, ...]]:
    """By figure: cases planned and width by wanted; cases planned and whether it is found."""
    draw, rng = POPULATIONS[name], seeded(name, n_pilot, number)
    y, models = draw(rng, n_pilot)
    first = {"a": models["a"]}
    found = {}
    for figure in FIGURES:
        try:
            plan = plan_evaluation(y, first, width=wanted[figure], figure=figure)
            y_new, new = draw(rng, plan.n_cases)
            width = widths(measured(y_new, {"a": new["a"]}))[figure] / wanted[figure]
            pair = plan_evaluation(y, models, difference=true[figure], figure=figure)
            y_new, new = draw(rng, min(pair.n_cases, 50_000))
            (test,) = measured(y_new, new).comparisons
            hit = test.raw.tests[figure].p_value <= 0.05
        except ValueError:  # a pilot without a plan
            found[figure] = (np.nan,) * 4
            continue
        found[figure] = plan.n_cases, width, pair.n_cases, float(hit)
    return found


def rows(parallel: Parallel, repetitions: int) -> Iterable[Sequence[str]]:
    for name, draw in POPULATIONS.items():
        y, models = draw(seeded(name, "true"), 400_000)
        large = measured(y, models).models
        true = {f: large[0].raw.figures[f].value - large[1].raw.figures[f].value for f in FIGURES}
        for n_pilot in PILOTS:
            pilots = [draw(seeded(name, n_pilot, "first", k), n_pilot) for k in range(5)]
            typical = [widths(measured(y, {"a": models["a"]})) for y, models in pilots]
            wanted = {f: NARROWER * float(np.median([w[f] for w in typical])) for f in FIGURES}
            jobs = (delayed(one)(name, n_pilot, wanted, true, k) for k in range(repetitions))
            found = list(parallel(jobs))
            for figure in FIGURES:
                planned, width, pairs, hit = np.array([part[figure] for part in found]).T
                low, middle, high = np.nanquantile(planned, [0.1, 0.5, 0.9])
                yield (
                    name,
                    str(n_pilot),
                    figure,
                    f"{wanted[figure]:.3f}",
                    f"{middle:,.0f} ({low:,.0f} to {high:,.0f})",
                    f"{np.nanmean(width):.2f}",
                    f"{abs(true[figure]):.4f}",
                    f"{np.nanmedian(pairs):,.0f}",
                    f"{np.nanmean(hit):.2f}",
                    f"{np.mean(np.isnan(planned)):.2f}",
                )


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    found = [head, ["---", *["---:"] * (len(head) - 1)]]
    for line in lines:
        print("  ".join(line), flush=True)
        found.append(list(line))
    return "\n".join(f"| {' | '.join(line)} |" for line in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=60)
    args = parser.parse_args()
    start = time.perf_counter()
    head = (
        "population", "pilot", "figure", "wanted width", "cases: median (80 % of the plans)",
        "mean width / wanted", "true difference", "cases: median", "power", "no plan",
    )  # fmt: skip
    with Parallel(n_jobs=-1) as parallel:
        found = table(head, rows(parallel, args.repetitions))
    minutes = (time.perf_counter() - start) / 60.0
    text = "\n\n".join(
        [
            "# Plans, and what as many new cases give",
            f"`make coverage`: {args.repetitions} pilots per row, seeded, {minutes:.0f} minutes; "
            f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy "
            f"{scipy.__version__}.",
            f"Wanted is {NARROWER:g} of the width that such pilots have, and the true difference "
            "of two models, to be found with a power of "
            f"{POWER:g}. Every plan is tried with as many new cases as it asks for (a test with at "
            "most 50,000). Asked for: widths within 15 % of the wanted.",
            found,
        ]
    )
    if args.repetitions >= 60:
        RESULTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
