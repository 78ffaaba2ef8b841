"""Cost of choosing by cross-validation, against one fit on the same data.

`SatisficingClassifierCV` is held against one `SatisficingClassifier`: four penalties, five slacks
and five folds are a hundred fits, and the final one. CPU time of one thread, medians of alternating
warm runs; the single fit has the penalty that the folds have, and a slack of 0.1. The second table
holds ``target="out_of_fold"``, whose 13 strengths and five folds are 65 fits and the final one,
against one `LogisticRegression` or, for a hinge, `LinearSVC`, as they come. ``--quick`` runs fewer;
``--scoring NAME`` another scorer than accuracy. Without either the tables go to
results/cross_validation.md, too.
"""

from __future__ import annotations

import os

# Before NumPy loads its libraries: they read these once.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import gc
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from time import process_time

from problems import AMBIGUITIES, Problem
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from fragility import SatisficingClassifier, SatisficingClassifierCV

#: Most fits that it may cost.
ASKED = 25.0
PROBLEMS = (Problem(10_000, 20), Problem(2_000, 20), Problem(2_000, 100), Problem(2_000, 20, 4))
ROWS = [
    *product(PROBLEMS, ["cross_entropy"], AMBIGUITIES.items()),
    *product([Problem(2_000, 20)], ["hinge"], AMBIGUITIES.items()),
]
TARGET_ROWS = [
    *product((Problem(200, 20), *PROBLEMS), ["cross_entropy"]),
    (Problem(2_000, 20), "hinge"),
]
RESULT = Path(__file__).parent / "results" / "cross_validation.md"
#: Single fits to each cross-validation: they are short, and a slow moment should hit both.
SINGLES = 5


def seconds(function: Callable[[], object]) -> float:
    start = process_time()
    function()
    return process_time() - start


def ratio(one: Callable[[], object], many: Callable[[], object], runs: int) -> tuple[float, float]:
    """Median seconds of each, from runs that alternate."""
    one()
    many()
    gc.collect()
    ones, manys = [], []
    for _ in range(runs):
        ones += [seconds(one) for _ in range(SINGLES)]
        manys.append(seconds(many))
    return median(ones), median(manys)


def target_lines(runs: int) -> list[str]:
    """The table of out-of-fold targets."""
    lines = [
        "| problem | loss | one plain fit, ms | slack, ms | out of fold, ms | ratio to plain |",
        "|---|---|---|---|---|---|",
    ]
    print(*lines, sep="\n")
    for problem, loss in TARGET_ROWS:
        X, y = problem.data()
        plain = LinearSVC(loss="hinge") if loss == "hinge" else LogisticRegression()
        slack = SatisficingClassifier(loss, slack=0.1)
        found = SatisficingClassifier(loss, target="out_of_fold")
        fits = [partial(model.fit, X, y) for model in (plain, found, slack)]
        one, many = ratio(fits[0], fits[1], runs)
        _, short = ratio(fits[0], fits[2], runs)
        lines.append(
            f"| {problem.name} | {loss} | {1e3 * one:.1f} | {1e3 * short:.1f} | {1e3 * many:.0f} "
            f"| {many / one:.1f} |"
        )
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--scoring")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [
        "| problem | loss | ambiguity | one fit, ms | cross-validation, ms | ratio | asked |",
        "|---|---|---|---|---|---|---|",
    ]
    print(*lines, sep="\n")
    for problem, loss, (name, ambiguity) in ROWS:
        X, y = problem.data()
        one = SatisficingClassifier(loss, ambiguity, penalty="l2", slack=0.1)
        many = SatisficingClassifierCV(loss, ambiguity, scoring=given.scoring)
        single, whole = ratio(
            lambda one=one, X=X, y=y: one.fit(X, y),
            lambda many=many, X=X, y=y: many.fit(X, y),
            3 if given.quick or loss == "hinge" else 7,
        )
        lines.append(
            f"| {problem.name} | {loss} | {name} | {1e3 * single:.1f} | {1e3 * whole:.0f} "
            f"| {whole / single:.1f} | ≤ {ASKED:g} |"
        )
        print(lines[-1], flush=True)
    targets = target_lines(3 if given.quick else 7)
    if not given.quick and given.scoring is None:
        met = sum(float(line.split("|")[6]) <= ASKED for line in lines[2:])
        text = [
            "# What a cross-validation costs",
            "",
            (__doc__ or "").split("\n", 2)[2].strip(),
            "",
        ]
        text += [*lines, "", f"{met} of {len(lines) - 2} met.", "", *targets]
        RESULT.write_text("\n".join(text) + "\n", encoding="utf-8")
        print(f"wrote {RESULT}")


if __name__ == "__main__":
    main()
