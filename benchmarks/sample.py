"""Precision, bias and honesty of figures on a sample by cells, against figures of all rows.

Run with ``python benchmarks/sample.py`` (ten minutes). The unit of all errors is the standard error
that a figure has on all rows. Asked for: reported squares are .7 to 1.4 times the true ones, and
biases are within three errors of the simulation.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit, softmax
from threadpoolctl import threadpool_limits

from fragility.cases.cases import Cases
from fragility.cases.sample import Sample
from fragility.figures.registry import FIGURES
from fragility.figures.scored import Estimate, Scored

RESULTS = Path(__file__).parent / "results" / "sample.md"
N_PARTS = 6
KINDS = (
    "plain",
    "nearly equal",
    "rare positives",
    "97 % ties",
    "two digits",
    "11 scores",
    "scores at 0 and 1",
    "weights",
    "abstained",
    "three models",
    "four classes",
    "amounts",
    "groups",
    "clusters",
)
#: Title, models, sigma of the log-weights, groups, rows, share of the fills that are asked for.
REPEATED = (
    ("two models", 2, 0.0, 0, 20_000, 1.0),
    ("weights", 2, 2.0, 0, 20_000, 1.0),
    ("five models", 5, 0.0, 0, 40_000, 0.5),
    ("eight models", 8, 0.0, 0, 40_000, 0.5),
    ("30 groups", 2, 0.0, 30, 100_000, 0.25),
    ("300 groups", 2, 0.0, 300, 100_000, 0.25),
    ("3,000 groups", 2, 0.0, 3_000, 100_000, 0.25),
    ("more rows", 2, 0.0, 0, 400_000, 0.25),
)
Figures = Mapping[str, tuple[Callable[[Scored], Estimate], bool]]
Measured = dict[tuple[Any, str], tuple[float, float]]


def error_rate(model: Scored) -> Estimate:
    return model.mean(model.wrong.astype(np.float64))


def cost_at_cuts(model: Scored) -> Estimate:
    """Cost of fixed cuts, which jumps inside a cell: a miss 20, a false alarm 4, a review 1."""
    amount = model.cases.error_cost
    if not model.is_binary:
        return model.mean(np.where(model.confidence >= 0.6, 4.0 * model.wrong, 1.0))
    missed = (20.0 if amount is None else amount) * (model.y == 1)
    alarmed = (4.0 if amount is None else amount) * (model.y == 0)
    alone = np.where(model.p < 0.03, missed, alarmed)
    return model.mean(np.where((model.p < 0.03) | (model.p >= 0.75), alone, 1.0))


ALL_FIGURES: Figures = {
    **{name: (figure.estimate, figure.by_class) for name, figure in FIGURES.items()},
    "error_rate": (error_rate, False),
    "cost_at_cuts": (cost_at_cuts, False),
}
#: Error rates at 0.5 and confident errors are exact, and accuracy is the error rate.
SHOWN = [name for name in ALL_FIGURES if name not in ("accuracy", "cvar", "buffered_auc")]


def measured(cases: Cases, figures: Figures) -> Measured:
    """Value and standard error of each figure, of each model and of the differences of two."""
    models = {name: Scored(cases, name) for name in cases.scores}
    values: Measured = {}
    for figure, (estimate, by_class) in figures.items():
        influences = {}
        for name, model in models.items():
            value, influence = estimate(model)[:2]
            values[name, figure] = value, model.spread(influence, by_class).error
            influences[name] = model.on_all_cases(influence)
        for a, b in combinations(models, 2):
            classes = cases.y if by_class else None
            error = cases.spread(influences[a] - influences[b], classes).error
            values[(a, b), figure] = values[a, figure][0] - values[b, figure][0], error
    return values


def population(kind: str, n: int) -> dict[str, Any]:
    """Columns of `Sample.update` for one kind of data."""
    rng = np.random.default_rng(2)
    mean, spread = {"rare positives": (-9.0, 2.0), "scores at 0 and 1": (0.0, 12.0)}.get(
        kind, (-2.2, 2.0)
    )
    z = rng.normal(mean, spread, n)
    y = (rng.random(n) < expit(z)).astype(np.int64)
    if mean > -5.0:
        y = np.where(rng.random(n) < 0.003, 1 - y, y)  # mistakes that no score explains
    scores = {
        "a": expit(z + rng.normal(0.0, 0.5, n)),
        "b": expit(1.4 * (z + rng.normal(0.0, 1.0, n))),
    }
    batch: dict[str, Any] = {"y_true": y, "y_proba": scores}
    if kind == "two digits":
        batch["y_proba"] = {name: np.round(p, 2) for name, p in scores.items()}
    elif kind == "11 scores":
        scores["a"] = np.round(scores["a"], 1)
    elif kind == "97 % ties":
        tied = rng.random(n) < 0.97
        batch["y_proba"] = {
            name: np.where(tied, tie, p)
            for (name, p), tie in zip(scores.items(), (0.02, 0.05), strict=True)
        }
        batch["y_true"] = np.where(tied, rng.random(n) < 0.03, y).astype(np.int64)
    elif kind == "weights":
        batch["sample_weight"] = np.exp(np.clip(2.5 * rng.normal(size=n), -6.0, 6.0))
    elif kind == "amounts":
        batch["error_cost"] = np.exp(rng.normal(1.0, 1.3, n) + 0.2 * z)
    elif kind == "nearly equal":
        scores["b"] = expit(logit(scores["a"]) + rng.normal(0.0, 0.05, n))
    elif kind == "abstained":
        batch["y_proba"] = {
            name: np.where(rng.random(n) < 0.05 * (1.0 + p), np.nan, p)
            for name, p in scores.items()
        }
    elif kind == "three models":
        scores["c"] = expit(0.7 * (z + rng.normal(0.0, 0.8, n)))
    elif kind == "groups":
        site = np.where(rng.random(n) < 0.3, rng.integers(1, 31, n), 0)
        scores["b"] = expit(logit(scores["b"]) * (1.0 - 0.02 * site / 3.0))
        batch["groups"] = {"site": site}
    elif kind == "clusters":
        cluster = rng.integers(0, n // 8, n)
        common = rng.normal(size=n // 8)[cluster]
        z = rng.normal(-4.5, 1.7, n) + common
        batch["y_true"] = (rng.random(n) < expit(z)).astype(np.int64)
        scores["a"] = expit(z - 0.7 * common + rng.normal(0.0, 0.5, n))
        scores["b"] = expit(1.4 * (z + rng.normal(0.0, 1.0, n)))
        batch["cluster"] = cluster
    elif kind == "four classes":
        q = rng.normal([1.5, 0.0, 0.0, -0.5], size=(n, 4))
        p = softmax(1.5 * q, axis=1)
        batch["y_true"] = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        scores["a"] = softmax(1.4 * (q + rng.normal(0.0, 0.5, q.shape)), axis=1)
        scores["b"] = softmax(2.0 * (q + rng.normal(0.0, 0.8, q.shape)), axis=1)
    return batch


def take(batch: Mapping[str, Any], rows: Any) -> dict[str, Any]:
    return {
        name: take(column, rows) if isinstance(column, dict) else column[rows]
        for name, column in batch.items()
    }


def filled(batch: Mapping[str, Any], n_parts: int, **settings: Any) -> Sample:
    """Samples of parts, merged into one."""
    n = len(next(iter(batch["y_proba"].values())))
    total = Sample(**settings)
    for rows in np.array_split(np.arange(n), n_parts):
        total.merge(Sample(**settings).update(**take(batch, rows)))
    return total


def precision(
    kind: str, n: int, max_rows: int, draws: int, figures: Figures
) -> Iterator[tuple[str, ...]]:
    """Errors of a few draws, and reported errors, of a model, of a difference and of groups."""
    batch = population(kind, n)
    settings = {"labels": range(4) if kind == "four classes" else None}
    everything = Sample(max_rows=None, **settings).update(**batch).cases()
    codes = [g for g in (1, 7, 19) if kind == "groups"]
    tables = {"": everything} | {f"group {g}": everything.group("site", g) for g in codes}
    truth = {where: measured(table, figures) for where, table in tables.items()}
    errors: dict[Any, list[tuple[float, float]]] = {}
    fill_times, sizes = [], []
    for seed in range(1, draws + 1):
        start = time.process_time()
        sample = filled(batch, N_PARTS, max_rows=max_rows, random_state=seed, **settings)
        cases = sample.cases()
        fill_times.append(time.process_time() - start)
        sizes.append(cases.n)
        samples = {"": cases} | {f"group {g}": cases.group("site", g) for g in codes}
        for where, table in samples.items():
            for key, (value, error) in measured(table, figures).items():
                true_value, true_error = truth[where][key]
                relative = (value - true_value, error)
                scale = max(true_error, 1e-300)
                errors.setdefault((where, *key), []).append(tuple(v / scale for v in relative))
    for where in tables:
        for who in ("a", ("a", "b")):
            cells = []
            for figure in figures:
                drawn = np.array(errors[where, who, figure])
                rms, reported = np.sqrt(np.mean(drawn[:, 0] ** 2)), drawn[:, 1].mean()
                cells.append(f"{rms:.2f} / {reported:.2f}")
            title = f"{kind} {where}".strip() + (": a" if who == "a" else ": a - b")
            yield title, f"{np.mean(sizes):,.0f}", f"{np.mean(fill_times):.1f}", *cells


def honesty(
    title: str, n_models: int, sigma: float, n_groups: int, n: int, fills: int, figures: Figures
) -> Iterator[tuple[str, ...]]:
    """Bias and reported squares over true ones in many fills of one population."""
    rng = np.random.default_rng(9)
    z = rng.normal(-1.5, 2.0, n)
    noise = [rng.normal(0.0, 0.5 + 0.1 * k, n) for k in range(n_models)]
    batch: dict[str, Any] = {
        "y_true": (rng.random(n) < expit(z)).astype(np.int64),
        "y_proba": {f"m{k}": expit((1.0 + 0.1 * k) * (z + e)) for k, e in enumerate(noise)},
    }
    if sigma:
        batch["sample_weight"] = np.exp(sigma * rng.normal(size=n))
    if n_groups:
        batch["groups"] = {"site": rng.integers(0, n_groups, n)}
    max_rows = 2 ** round(np.log2(n / 5.0))
    everything = Sample(max_rows=None).update(**batch).cases()
    truth = measured(everything, figures)
    drawn: dict[Any, list[tuple[float, float]]] = {key: [] for key in truth}
    sizes, off = [], []
    for seed in range(1, fills + 1):
        cases = filled(batch, 4, max_rows=max_rows, random_state=seed).cases()
        sizes.append(cases.n)
        off.append(abs(cases.mass.sum() / everything.mass.sum() - 1.0))
        for key, (value, error) in measured(cases, figures).items():
            true_value, true_error = truth[key]
            scale = max(true_error, 1e-300)
            drawn[key].append(((value - true_value) / scale, error / scale))
    for who in ("m0", ("m0", "m1"), f"m{n_models - 1}"):
        for figure in figures:
            error, reported = np.array(drawn[who, figure]).T
            simulation = max(error.std(ddof=1) / np.sqrt(fills), 1e-12)
            ratio = np.mean(reported**2) / (1.0 + error.var(ddof=1))
            name = who if isinstance(who, str) else " - ".join(who)
            yield (
                title,
                f"{max(sizes):,} of {max_rows:,}",
                f"{max(off):.0e}",
                f"{figure} of {name}",
                f"{error.mean():+.3f}",
                f"{error.mean() / simulation:+.1f}",
                f"{ratio:.2f}",
            )


def speed(n: int) -> tuple[float, int]:
    """CPU seconds to fill a sample of default size with n rows of two models."""
    sample, seconds = Sample(), 0.0
    rng = np.random.default_rng(0)
    for _ in range(n // 1_000_000):
        z = rng.normal(-2.2, 2.0, 1_000_000)
        y = (rng.random(z.size) < expit(z)).astype(np.int64)
        scores = {"a": expit(z + rng.normal(0.0, 0.5, z.size)), "b": expit(1.4 * z)}
        start = time.process_time()
        sample.update(y, scores)
        seconds += time.process_time() - start
    start = time.process_time()
    n_held = sample.cases().n
    return seconds + time.process_time() - start, n_held


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---", *["---:"] * (len(head) - 1)), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="50,000 rows, nothing written")
    parser.add_argument("--kinds", default=",".join(KINDS), help="kinds of data, with commas")
    parser.add_argument("--figures", default=",".join(SHOWN), help="figures, with commas")
    args = parser.parse_args()
    n, max_rows, draws, fills = (
        (50_000, 1 << 13, 2, 20) if args.quick else (1_000_000, 1 << 17, 4, 300)
    )
    figures = {name: ALL_FIGURES[name] for name in args.figures.split(",")}
    means = {name: ALL_FIGURES[name] for name in ("error_rate", "log_loss", "auc", "cost_at_cuts")}
    precise, honest = [], []
    with threadpool_limits(1):
        for kind in args.kinds.split(","):
            for line in precision(kind, n, max_rows, draws, figures):
                precise.append(line)
                print("  ", " | ".join(line), flush=True)
        for title, n_models, sigma, n_groups, size, share in REPEATED:
            size = size // 4 if args.quick else size
            repeats = max(round(share * fills), 5)
            for line in honesty(title, n_models, sigma, n_groups, size, repeats, means):
                honest.append(line)
                print("  ", " | ".join(line), flush=True)
        seconds, n_held = speed(1_000_000 if args.quick else 10_000_000)
    text = [
        "# A sample by cells",
        f"`python benchmarks/sample.py`, {platform.machine()}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}. The unit of errors is the standard error on all rows.",
        f"Filling a sample of default size with ten million rows of two models: {seconds:.1f} s "
        f"CPU, {n_held:,} rows held.",
        f"## Precision: {n:,} rows, `max_rows={max_rows}`, {N_PARTS} samples merged",
        f"Error (root mean square of {draws} draws) / reported error.",
        table(("data", "held", "fill, s CPU", *figures), precise),
        f"## Bias and honesty: up to {fills} fills of one population",
        "z: bias over its simulation error. Ratio: mean reported square over the true one (of the "
        "population and of the drawing).",
        table(("data", "most held", "mass off", "figure", "bias", "z", "ratio"), honest),
    ]
    page = "\n\n".join(text) + "\n"
    print(page)
    if not args.quick:
        RESULTS.write_text(page)


if __name__ == "__main__":
    main()
