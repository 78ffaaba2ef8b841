"""Cost of robust training against one scikit-learn fit, or a simpler one of ours, on the same data.

Run with ``make bench``. CPU time of one thread, medians of alternating warm runs; ours includes the
fit without robustness that the target comes from. ``--only NAME`` runs one section.
"""

from __future__ import annotations

import os

# Before NumPy loads its libraries: they read these once.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ["RAYON_NUM_THREADS"] = "1"

import argparse
import gc
import platform
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from math import isnan
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from peers import PEERS, UnsolvedError
from problems import (
    ALPHA,
    BALLS,
    HINGE,
    HINGE_BY_SLACK,
    KNOWN_KINDS,
    LASSO,
    MAX_LOGISTIC,
    PENALISED,
    RATIO,
    SLACK,
    SMOOTHED_HINGE,
    TOL,
    UNPENALISED,
    UNSEEN_KINDS,
    Fit,
    OtherProblem,
    Problem,
    WrongLabels,
)
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_info

from fragility import SatisficingClassifier

RESULTS = Path(__file__).parent / "results" / "training.md"
#: CPU seconds for the whole; what does not fit is left out by name. Not those of the clock: a busy
#: machine shall not shorten the tables.
TIME_LIMIT = 12 * 60.0
#: Peak memory over that of X.
MEMORY_ASKED = 3

#: Prices of another label, as shares of the highest at which one pays where none moves.
LABEL_COSTS = {"no label pays": 1.1, "labels pay": 0.5}

Row = tuple[str, ...]


@dataclass(frozen=True)
class Baseline:
    """What a robust fit is measured against."""

    name: str
    fit: Callable[..., Any]


REGRESSION = Baseline("LR", lambda X, y: LogisticRegression().fit(X, y))
MACHINE = Baseline("SVC", lambda X, y: LinearSVC(loss="hinge").fit(X, y))
MACHINE_STEPS = LinearSVC().max_iter
#: How many fits there were, and what was wrong with any.
FITS: list[str] = []


def head(base: str, minimised: str = "k") -> Row:
    return (
        "problem", f"{base} iterations", "fit", "solver", "iterations", f"{base} ms", "ours ms",
        "ratio", "asked", "met", minimised, "Clarabel ms", f"{minimised} over Clarabel's",
        "remarks",
    )  # fmt: skip


def out_of_time() -> bool:
    return process_time() > TIME_LIMIT


def cpu_seconds(functions: Sequence[Callable[[], object]], budget: float) -> list[float]:
    """Median CPU time of each, in about `budget` seconds.

    The runs alternate, so that a slow moment hits all; a short one follows an untimed one, so that
    none pays for the caches that another left. At least three runs; where a round of them takes
    over 5 s the first ones, elsewhere untimed, count as well: two runs, one if a round takes 20 s.
    """

    def timed(function: Callable[[], object]) -> float:
        start = process_time()
        function()
        return process_time() - start

    gc.collect()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were shown by the fit before
            costs = [timed(function) for function in functions]
            short = [cost < 0.1 for cost in costs]
            cost = sum(c * (1 + s) for c, s in zip(costs, short, strict=True))
            runs = min(max(round(budget / max(cost, 1e-9)), 3), 101)
            times: list[list[float]] = [[] for _ in functions]
            if cost > 5.0:
                runs, times = int(cost <= 20.0), [[one] for one in costs]
            for _ in range(runs):
                for function, twice, record in zip(functions, short, times, strict=True):
                    if twice:
                        function()
                    record.append(timed(function))
        return [median(record) for record in times]
    finally:
        gc.enable()


def attempt(function: Callable[[], Any]):
    """Model or None, and what it warned of or failed with."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = function()
        except Exception as error:  # a fit that fails is a row of the table, not its end
            return None, f"{type(error).__name__}: {error}".splitlines()[0][:80]
    return model, ", ".join(sorted({w.category.__name__ for w in caught}))


def checked(fit: Fit, X, y):
    """A model of ours, and what is wrong with it by its own certificate or its warnings."""
    model, remark = attempt(partial(fit.run, X, y))
    remarks = [remark] if remark else []
    if model is not None:
        certificate = model.certificate_
        if not np.isfinite(certificate.fragility):
            remarks.append("fragility not finite")
        if not certificate.headroom >= -1e-9 * certificate.target:
            remarks.append(f"target missed by {-certificate.headroom:.1e}")
    FITS.append(", ".join(remarks))
    return model, FITS[-1]


def speed_rows(
    problems: Sequence[Problem], fits: Sequence[Fit], quick: bool, base: Baseline = REGRESSION
) -> Iterator[Row]:
    for problem in problems:
        if out_of_time():
            yield problem.name, *["–"] * (len(head("")) - 2), "left out: out of time"
            continue
        X, y = problem.data()
        yield from rows_of(problem, X, y, fits, base, quick)


def rows_of(
    problem: Problem, X, y, fits: Sequence[Fit], base: Baseline, quick: bool
) -> Iterator[Row]:
    baseline, _ = attempt(partial(base.fit, X, y))
    results = [(fit, *checked(fit, X, y)) for fit in fits]
    solved = [partial(fit.run, X, y) for fit, model, _ in results if model is not None]
    spent, *own = cpu_seconds([partial(base.fit, X, y), *solved], 0.3 if quick else 4.0)
    seconds = iter(own)
    for fit, model, remark in results:
        asked = fit.asked(problem)
        start = problem.name, str(np.max(baseline.n_iter_)), fit.name
        limit, met = "–" if asked is None else f"≤ {asked:g}", "–" if asked is None else "no"
        shown = f"{1e3 * spent:.1f}"
        if model is None:
            yield *start, "–", "–", shown, "–", "–", limit, met, "–", "–", "–", remark
            continue
        ours = next(seconds)
        if asked is not None and ours <= asked * spent:
            met = "yes"
        yield (
            *start, str(model.solver_), str(np.max(model.n_iter_)),
            shown, f"{1e3 * ours:.1f}", f"{ours / spent:.1f}", limit, met,
            f"{fit.minimised(model):.6g}", *reference_cells(problem, fit, model, X, y, quick),
            remark,
        )  # fmt: skip


def reference_cells(problem: Problem, fit: Fit, model, X, y, quick: bool) -> tuple[str, str]:
    """Time of cvxpy and Clarabel on the same program, and how far our minimum is above theirs."""
    if fit.loss == "smoothed_hinge" or not problem.conic_is_affordable or out_of_time():
        return "–", "–"
    try:
        found = fit.reference(X, y, model.target_, 10.0 if quick else 60.0)
    except UnsolvedError as reason:
        return str(reason), "–"
    notes = [f"attempt {found.attempt}"] * (found.attempt > 1) + ["inaccurate"] * found.inaccurate
    again = f" ({', '.join(notes)})" if notes else ""
    excess = fit.minimised(model) / found.minimum - 1.0
    return f"{1e3 * found.seconds:.0f}{again}", f"{excess:+.1e}"


def binary_rows(quick: bool) -> Iterator[Row]:
    sizes = (500, 2_000) if quick else (500, 2_000, 10_000, 100_000)
    yield from speed_rows([Problem(n, d) for d in (20, 100) for n in sizes], PENALISED, quick)


def kind_rows(quick: bool) -> Iterator[Row]:
    n, d, seeds = (2_000, 20, (0,)) if quick else (10_000, 100, (0, 1))
    kinds = (*KNOWN_KINDS, *UNSEEN_KINDS)
    problems = [OtherProblem(n, d, kind=kind, seed=seed) for kind in kinds for seed in seeds]
    yield from speed_rows(problems, PENALISED[:1], quick)


def wide_rows(quick: bool) -> Iterator[Row]:
    sizes, d = ((100,), 400) if quick else ((500, 1_000), 2_000)
    problems = [Problem(n, d) for n in sizes]
    problems += [OtherProblem(n, d, kind=kind) for kind in UNSEEN_KINDS for n in sizes]
    yield from speed_rows(problems, [*PENALISED[2:], *UNPENALISED[2:]], quick)


def class_rows(quick: bool) -> Iterator[Row]:
    sizes = (2_000,) if quick else (2_000, 20_000)
    problems = [Problem(500, 20, 4), *(Problem(n, 20, c) for c in (4, 10) for n in sizes)]
    yield from speed_rows(problems[:2] if quick else problems, PENALISED, quick)


def unpenalised_rows(quick: bool) -> Iterator[Row]:
    problems = [Problem(2_000, 20), Problem(10_000, 20), Problem(2_000, 20, 4)]
    yield from speed_rows(problems[:1] if quick else problems, UNPENALISED, quick)


def smoothed_rows(quick: bool) -> Iterator[Row]:
    problems = [Problem(2_000, 20), Problem(10_000, 20), Problem(2_000, 20, 4)]
    yield from speed_rows(problems[:1] if quick else problems, SMOOTHED_HINGE, quick)


def hinge_rows(quick: bool) -> Iterator[Row]:
    sizes = (500, 2_000) if quick else (500, 2_000, 10_000)
    problems = [Problem(n, d) for d in (20, 100) for n in sizes]
    yield from speed_rows(problems, HINGE, quick, MACHINE)
    if not quick:
        yield from speed_rows([Problem(100_000, 20)], HINGE, quick, MACHINE)
        # There LinearSVC alone takes longer than all of ours: only what a figure is asked for.
        yield from speed_rows([Problem(100_000, 100)], HINGE[:2], quick, MACHINE)


def hinge_class_rows(quick: bool) -> Iterator[Row]:
    sizes = (2_000,) if quick else (2_000, 20_000)
    problems = [Problem(500, 20, 4), *(Problem(n, 20, c) for c in (4, 10) for n in sizes)]
    yield from speed_rows(problems[:2] if quick else problems, HINGE, quick)


def wrong_label_rows(quick: bool) -> Iterator[Row]:
    sizes = (2_000,) if quick else (2_000, 20_000)
    problems = [WrongLabels(n, 20, c) for c in (4, 10) for n in sizes]
    yield from speed_rows(problems[:1] if quick else problems, HINGE_BY_SLACK, quick)


def label_rows(quick: bool) -> Iterator[Row]:
    for n in (2_000,) if quick else (2_000, 10_000, 100_000):
        problem = Problem(n, 20)
        X, y = problem.data()
        for plain in PENALISED[1:]:
            if out_of_time():
                yield problem.name, *["–"] * (len(head("")) - 2), "left out: out of time"
                continue
            fits = plain.with_labels_at(LABEL_COSTS, X, y)
            yield from rows_of(problem, X, y, fits, Baseline("", plain.run), quick)


def other_rows(quick: bool) -> Iterator[Row]:
    problems = [Problem(2_000, 20)] if quick else [Problem(2_000, 20), Problem(10_000, 20)]
    yield from speed_rows(problems, LASSO, quick)
    problems = [Problem(500, 20, 4)] if quick else [Problem(500, 20, 4), Problem(2_000, 20, 4)]
    yield from speed_rows(problems, MAX_LOGISTIC, quick)


def ball_rows(quick: bool) -> Iterator[Row]:
    problems = [Problem(2_000, 20), Problem(10_000, 20), Problem(500, 20, 4)]
    yield from speed_rows(problems[:1] if quick else problems, BALLS, quick)


def peer_rows(quick: bool) -> Iterator[Row]:
    for n in (500,) if quick else (500, 2_000):
        problem = Problem(n, 20)
        X, y = problem.data()

        def ours(X=X, y=y) -> SatisficingClassifier:
            return SatisficingClassifier(target_ratio=RATIO, tol=TOL).fit(X, y)

        model, remark = attempt(ours)
        if model is None:
            yield problem.name, "ours, W ℓ2, no penalty", "–", "–", "–", remark
            continue
        base, own = cpu_seconds([lambda X=X, y=y: LogisticRegression().fit(X, y), ours], 1.0)
        cells = f"{1e3 * own:.1f}", f"{own / base:.1f}", f"{model.fragility_:.6g}"
        yield problem.name, "ours, W ℓ2, no penalty", *cells, remark
        for name, fit in PEERS.items():
            start = process_time()
            try:
                k = fit(X, y, RATIO)
            except UnsolvedError as reason:
                yield problem.name, name, "–", "–", "–", str(reason)
            except Exception as error:  # theirs, not ours to mend
                yield problem.name, name, "–", "–", "–", f"failed: {type(error).__name__}"
            else:
                spent = process_time() - start
                found = "–" if isnan(k) else f"{k:.6g}"
                yield problem.name, name, f"{1e3 * spent:.1f}", f"{spent / base:.1f}", found, ""


def scaling_sizes(quick: bool) -> tuple[int, ...]:
    return (1_000, 3_000, 10_000) if quick else (10_000, 30_000, 100_000, 300_000, 1_000_000)


def scaling_rows(quick: bool) -> Iterator[Row]:
    names = ["LogisticRegression", *(fit.name for fit in PENALISED[:2])]
    times: dict[int, list[float]] = {}
    spent = 0.0
    for n in scaling_sizes(quick):
        # Three times the samples: some four times the time of the round before.
        if out_of_time() or process_time() + 4 * spent > TIME_LIMIT:
            break
        begin = process_time()
        X, y = Problem(n, 20).data()
        fits = [partial(fit.run, X, y) for fit in PENALISED[:2]]
        times[n] = cpu_seconds(
            [lambda X=X, y=y: LogisticRegression().fit(X, y), *fits], 0.3 if quick else 4.0
        )
        spent = process_time() - begin
        progress((f"n = {n:,}", *(f"{1e3 * t:.1f} ms" for t in times[n])))
    for i, name in enumerate(names):
        own = [times[n][i] for n in times]
        cells = [f"{1e3 * t:.1f}" for t in own] + ["–"] * (len(scaling_sizes(quick)) - len(own))
        slope = np.polyfit(np.log(list(times)), np.log(own), 1)[0] if len(own) > 1 else np.nan
        yield name, *cells, f"{slope:.2f}"


def memory_rows(quick: bool) -> Iterator[Row]:
    n, d = (100_000 if quick else 1_000_000), 50
    script = str(Path(__file__).with_name("memory.py"))
    for name in ("LogisticRegression", *(fit.name for fit in PENALISED[:2])):
        command = [sys.executable, script, name, str(n), str(d)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        ours = name != "LogisticRegression"
        asked = f"< {MEMORY_ASKED}" if ours else "–"
        if ran.returncode:
            reason = (ran.stderr.strip().splitlines() or ["killed"])[-1][:80]
            yield f"{name}, n = {n:,}, d = {d}", "–", "–", "–", asked, f"no: {reason}"
            continue
        size, peak = map(int, ran.stdout.split())
        met = "–" if not ours else "yes" if peak < MEMORY_ASKED * size else "no"
        shown = f"{size / 2**20:.0f}", f"{peak / 2**20:.0f}", f"{peak / size:.2f}"
        yield f"{name}, n = {n:,}, d = {d}", *shown, asked, met


def progress(row: Row) -> None:
    print(f"{process_time():6.0f} s  " + " | ".join(row), file=sys.stderr, flush=True)


def table(columns: Row, rows: Iterator[Row]) -> tuple[str, list[Row]]:
    kept = []
    for row in rows:
        progress(row)
        kept.append(row)
    lines = [columns, ("---",) * len(columns), *kept]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines), kept


PEER_HEAD = ("problem", "fit", "ms", "ratio", "k", "remarks")
MEMORY_HEAD = ("fit", "X MiB", "peak MiB", "peak / X", "asked", "met")

SECTIONS: dict[str, tuple[str, Callable[[bool], Iterator[Row]]]] = {
    "binary": (f"Two classes, ℓ2 penalty (alpha {ALPHA:g}), target {RATIO} times ERM", binary_rows),
    "kinds": ("KL on other kinds of data, the same setting", kind_rows),
    "wide": ("Fewer samples than features, the same setting and that without a penalty", wide_rows),
    "classes": ("Several classes, the same setting", class_rows),
    "unpenalised": (f"No penalty, slack {SLACK}", unpenalised_rows),
    "hinge": ("Hinge, two classes, against `LinearSVC`", hinge_rows),
    "hinge_classes": ("Hinge, several classes", hinge_class_rows),
    "wrong_labels": ("Hinge, several classes, wrong labels", wrong_label_rows),
    "labels": ("Labels that move, against the same fit without", label_rows),
    "smoothed": ("Smoothed hinge; no figure asked", smoothed_rows),
    "others": ("ℓ1 penalty and max-logistic; no figure asked", other_rows),
    "dro": ("`DROClassifier`; no figure asked", ball_rows),
    "peers": (f"Other libraries, binary, no penalty, target {RATIO} times ERM", peer_rows),
    "scaling": ("Growth with n, d = 20, CPU ms; exponent 1 is linear", scaling_rows),
    "memory": ("Memory", memory_rows),
}

HOW_TO_READ = f"""\
LR is `LogisticRegression()` with its defaults, which stops at a gradient of 1e-4 after the
iterations shown. SVC is `LinearSVC(loss="hinge")` with its defaults: at {MACHINE_STEPS:,}
iterations it has stopped at its limit, not at its minimum, and warned so. Ours is
`SatisficingClassifier(..., tol={TOL:g}).fit`, the fit without robustness that sets the target
included. Ratio: ours over theirs; below one we are faster than a plain fit. Both times are CPU
time, medians of alternating warm runs (3 to 101 of them; two where a round of fits takes over 5 s,
one over 20 s), garbage collection off. Features are normal with correlation 0.5 between neighbours;
12 to 14 % of the labels are noise. The other kinds of data are those of `OtherProblem` in
`problems.py`; no constant was chosen on {" and ".join(UNSEEN_KINDS)}.

Where labels move, "no label pays" is at a price {LABEL_COSTS["no label pays"]:g} times the highest
at which one would pay at the solution without (largest margin over k), "labels pay" at
{LABEL_COSTS["labels pay"]:g} times that; "same" is that solution's fit.

k is the fragility that was minimised (`DROClassifier`: the worst loss). Clarabel is cvxpy with
Clarabel on the same program at the same target, modelling included, the fit that the target comes
from not, one run of at most 60 s; where it fails it is tried again with shorter steps, twice, and
failed attempts are not counted; "inaccurate" is its own word for its answer. The last figure is our
minimum over theirs, less one (Clarabel itself is good for some 1e-7; well below zero would mean
that we miss the target, if the certificate did not say otherwise). Remarks are warnings of our fit,
why it failed, or what its certificate, recomputed from the data, finds wrong with it.

Memory is the peak resident size of a process that makes the data and fits, less its size before X
was made, over the size of X: X itself counts as one, the labels as 1/50."""


def head_of(name: str, quick: bool) -> Row:
    if name == "scaling":
        return ("fit", *(f"n = {n:,}" for n in scaling_sizes(quick)), "exponent")
    heads = {
        "peers": PEER_HEAD,
        "memory": MEMORY_HEAD,
        "hinge": head("SVC"),
        "labels": head("same"),
        "dro": head("LR", "worst loss"),
    }
    return heads.get(name, head("LR"))


def versions() -> str:
    def one(name: str) -> str:
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            return f"{name} not installed"

    names = ("fragility", "numpy", "scipy", "scikit-learn", "cvxpy", "clarabel", "dro", "skwdro")
    threads = max((pool["num_threads"] for pool in threadpool_info()), default=1)
    shown = f"{threads} thread" + "s" * (threads > 1)
    return f"Python {platform.python_version()}, {', '.join(map(one, names))}, {shown}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller inputs, nothing written")
    parser.add_argument(
        "--only", choices=SECTIONS, action="append", help="this section, nothing written"
    )
    args = parser.parse_args()
    parts, met = [], []
    for name in args.only or SECTIONS:
        title, rows = SECTIONS[name]
        columns = head_of(name, args.quick)
        text, kept = table(columns, rows(args.quick))
        parts += [f"## {title}", text]
        if "met" in columns:
            asked = [dict(zip(columns, row, strict=True)) for row in kept]
            met += [row["met"] == "yes" for row in asked if row["asked"] != "–"]
    text = "\n\n".join(
        [
            "# Robust training against plain fits",
            f"`make bench` or `python benchmarks/training.py`. {versions()}.",
            f"Met: {sum(met)} of {len(met)} figures asked. Of {len(FITS)} fits "
            f"{sum(map(bool, FITS))} have a remark, "
            f"{sum('ConvergenceWarning' in fault for fault in FITS)} of them a ConvergenceWarning.",
            HOW_TO_READ,
            *parts,
        ]
    )
    print(text)
    if not args.quick and not args.only:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(text + "\n")


if __name__ == "__main__":
    main()
