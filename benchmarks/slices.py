"""Does `find_slices` keep its level, and does it find what is planted? A seeded simulation.

Run with ``make coverage``. Two kinds of data have no bad slice: columns that say nothing about the
scores of a class, and columns that a model uses whose probabilities are as right in any slice as
elsewhere, so that it is merely unsure in some. In other data the labels of one slice are wrong more
often than the model thinks.
"""

from __future__ import annotations

import argparse
import platform
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy
from joblib import Parallel, delayed
from scipy import special

from fragility import find_slices

RESULTS = Path(__file__).parent / "results" / "slices.md"
SIZES = (1000, 3000)
LEVEL = 0.05
Columns = dict[str, np.ndarray]


class Drawn(NamedTuple):
    """Columns, labels and probabilities."""

    columns: Columns
    y: np.ndarray
    proba: np.ndarray


def columns(rng: np.random.Generator, n: int, correlation: float = 0.0) -> Columns:
    """Six numbers, of which one has gaps, a whole number, a text and a truth value."""
    common = rng.normal(size=(n, 1))
    x = np.sqrt(correlation) * common + np.sqrt(1.0 - correlation) * rng.normal(size=(n, 6))
    found = {f"x{place}": x[:, place] for place in range(6)}
    found["x5"] = np.where(rng.random(n) < 0.15, np.nan, found["x5"])
    found["visits"] = rng.poisson(1.0, n).clip(max=4)
    found["region"] = rng.choice(["north", "east", "south", "west", "abroad"], n)
    found["smoker"] = rng.random(n) < 0.3
    return found


def log_odds(x: Columns) -> np.ndarray:
    """What the columns say about the class."""
    by_region = {"north": 0.0, "east": 0.5, "south": -0.5, "west": 0.0, "abroad": 1.0}
    region = np.array([by_region[name] for name in x["region"]])
    return x["x0"] + 0.8 * x["x1"] + 0.7 * x["smoker"] + region + 0.4 * (x["visits"] - 1)


def two_classes(
    rng: np.random.Generator,
    n: int,
    *,
    correlation: float = 0.0,
    intercept: float = -0.3,
    stretch: float = 1.0,
) -> Drawn:
    """A model that knows the columns; `stretch` makes it too sure of itself."""
    x = columns(rng, n, correlation)
    z = log_odds(x) + intercept
    return Drawn(x, (rng.random(n) < special.expit(z)).astype(int), special.expit(stretch * z))


def unrelated(
    rng: np.random.Generator, n: int, *, base_rates: bool = False, rare: bool = False
) -> Drawn:
    """Scores that depend on the class alone; `base_rates`: columns depend on it, too."""
    x = columns(rng, n)
    y = (rng.random(n) < (0.05 if rare else 0.4)).astype(int)
    if base_rates:
        x["x0"] = x["x0"] + y
        x["smoker"] = rng.random(n) < 0.2 + 0.3 * y
    return Drawn(x, y, special.expit(2.0 * rng.normal(size=n) + 3.0 * y - (4.0 if rare else 1.5)))


def three_classes(rng: np.random.Generator, n: int, *, stretch: float = 1.0) -> Drawn:
    """Three classes by the logits of three columns."""
    x = columns(rng, n)
    logits = 1.3 * np.stack([x["x0"], x["x1"], x["smoker"] + x["x2"]], axis=1)
    proba = special.softmax(logits, axis=1)
    y = (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return Drawn(x, y, special.softmax(stretch * logits, axis=1))


def flipped(drawn: Drawn, bad: np.ndarray, share: float, rng: np.random.Generator) -> Drawn:
    """Labels of some cases replaced by another class."""
    n_classes = 2 if drawn.proba.ndim == 1 else drawn.proba.shape[1]
    wrong = bad & (rng.random(bad.size) < share)
    other = (drawn.y + rng.integers(1, n_classes, bad.size)) % n_classes
    return drawn._replace(y=np.where(wrong, other, drawn.y))


Draw = Callable[[np.random.Generator, int], Drawn]
NULLS: dict[str, Draw] = {
    "unrelated columns": unrelated,
    "unrelated, rare positives": lambda rng, n: unrelated(rng, n, rare=True),
    "unrelated, base rates differ": lambda rng, n: unrelated(rng, n, base_rates=True),
    "calibrated": two_classes,
    "calibrated, correlated columns": lambda rng, n: two_classes(rng, n, correlation=0.7),
    "overconfident": lambda rng, n: two_classes(rng, n, stretch=2.5),
    "calibrated, rare positives": lambda rng, n: two_classes(rng, n, intercept=-4.0),
    "three classes, calibrated": three_classes,
    "three classes, overconfident": lambda rng, n: three_classes(rng, n, stretch=2.0),
}
#: Either comparison alone keeps the level where its own independence holds.
ALONE = {
    "class": ("unrelated columns", "unrelated, rare positives", "unrelated, base rates differ"),
    "score": tuple(name for name in NULLS if name != "unrelated, base rates differ"),
}


class Planted(NamedTuple):
    """Data with a bad slice: how to draw them, which cases it has, on which columns it is."""

    draw: Draw
    bad: Callable[[Columns], np.ndarray]
    share: float
    names: tuple[str, ...]


PLANTED = {
    "a number, unrelated": Planted(unrelated, lambda x: x["x3"] > 0.7, 0.2, ("x3",)),
    "a text, calibrated": Planted(two_classes, lambda x: x["region"] == "west", 0.2, ("region",)),
    "missing, calibrated": Planted(two_classes, lambda x: np.isnan(x["x5"]), 0.2, ("x5",)),
    "a column of the model": Planted(two_classes, lambda x: x["x0"] < -0.7, 0.2, ("x0",)),
    "a crossing, calibrated": Planted(
        two_classes, lambda x: (x["x3"] > 0.0) & x["smoker"], 0.3, ("x3", "smoker")
    ),
    "a crossing, overconfident": Planted(
        NULLS["overconfident"], lambda x: (x["x3"] > 0.0) & x["smoker"], 0.3, ("x3", "smoker")
    ),
    "rare positives": Planted(
        NULLS["calibrated, rare positives"], lambda x: x["x3"] > 0.7, 0.1, ("x3",)
    ),
    "three classes": Planted(three_classes, lambda x: x["x3"] > 0.7, 0.2, ("x3",)),
}


def seeded(name: str, n: int, repetition: int) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(name.encode()), n, repetition])


def reports(name: str, n: int, repetition: int, against: str) -> bool:
    """Whether a slice is found where there is none."""
    drawn = NULLS[name](seeded(name, n, repetition), n)
    found = find_slices(*drawn, against=against, random_state=repetition)
    return bool(found)


def finds(name: str, n: int, repetition: int) -> tuple[bool, bool, bool, bool]:
    """Whether the first slice, any, or any by score alone is on planted columns; and others."""
    plan = PLANTED[name]
    rng = seeded(name, n, repetition)
    drawn = plan.draw(rng, n)
    drawn = flipped(drawn, plan.bad(drawn.columns), plan.share, rng)
    names = set(plan.names)
    found = find_slices(*drawn, random_state=repetition)
    touching = [bool(set(part.columns) & names) for part in found]
    by_score = find_slices(*drawn, against="score", random_state=repetition)
    return (
        any(set(part.columns) == names for part in found[:1]),
        any(touching),
        any(set(part.columns) & names for part in by_score),
        not all(touching),
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for line in rows:
        print("  ".join(line), flush=True)
        lines.append(list(line))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def shown(share: float, most: float) -> str:
    return f"{share:.3f}" if share <= most else f"**{share:.3f}**"


def null_rows(parallel: Parallel, repetitions: int) -> Iterable[Sequence[str]]:
    # Two standard errors of the share itself.
    most = LEVEL + 2.0 * np.sqrt(LEVEL * (1.0 - LEVEL) / repetitions)
    for name in NULLS:
        cells = []
        for n in SIZES:
            for against in ("both", *ALONE):
                if name not in ALONE.get(against, NULLS):
                    cells.append("–")
                    continue
                jobs = (delayed(reports)(name, n, r, against) for r in range(repetitions))
                cells.append(shown(float(np.mean(parallel(jobs))), most))
        yield [name, *cells]


def planted_rows(parallel: Parallel, repetitions: int) -> Iterable[Sequence[str]]:
    for name in PLANTED:
        cells = []
        for n in SIZES:
            found = parallel(delayed(finds)(name, n, r) for r in range(repetitions))
            cells += [f"{share:.2f}" for share in np.mean(found, axis=0)]
        yield [name, *cells]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=400)
    args = parser.parse_args()
    start, repetitions = time.perf_counter(), args.repetitions
    with Parallel(n_jobs=-1) as parallel:
        head = ("data", *(f"n = {n:,}: {kind}" for n in SIZES for kind in ("both", *ALONE)))
        kept = table(head, null_rows(parallel, repetitions))
        fewer = max(repetitions // 4, 1)
        asked = "first", "any", "any by score", "others"
        head = ("planted", *(f"n = {n:,}: {kind}" for n in SIZES for kind in asked))
        power = table(head, planted_rows(parallel, fewer))
    minutes = (time.perf_counter() - start) / 60.0
    text = "\n\n".join(
        [
            "# Slices that are found where there are none, and where there is one",
            f"`make coverage`: seeded, {minutes:.0f} minutes; Python {platform.python_version()}, "
            f"NumPy {np.__version__}, SciPy {scipy.__version__}.",
            "## No bad slice",
            f"{repetitions} data sets per cell. Share in which `find_slices` reports any slice, of "
            f"nine columns with a gap, a text and a truth value among them. Asked for: at most "
            f"{LEVEL:g} (bold: more by two standard errors). Class, score: `against` one of them "
            "alone, where its independence holds. Against the class alone, slices of which a model "
            "is rightly unsure are reported; against the score alone, those in which the class is "
            "more frequent than it knows.",
            kept,
            "## A planted slice",
            f"{fewer} data sets per cell. In one slice, the labels of 10 to 30 % of the cases are "
            "replaced. First: the first slice is on the very columns that were planted. Any: some "
            "slice is on one of them, and the same against the score alone. Others: some slice is "
            "on none of them. A column of the model: where the model is sure, so that even with "
            "these mistakes the slice holds hardly more than its share of the weight, but more "
            "than its scores lead one to expect.",
            power,
        ]
    )
    if repetitions >= 400:
        RESULTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
