"""Cost of `SatisficingClassifierCV` against one `SatisficingClassifier` fit on the same data.

Four penalties, five slacks and five folds are a hundred fits, and the final one. CPU time of one
thread, medians of alternating warm runs; the single fit has the penalty that the folds have, and
both are otherwise as they come. ``--quick`` runs fewer; ``--scoring NAME`` another scorer than
accuracy. Without either the table goes to results/cross_validation.md, too.
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
from itertools import product
from pathlib import Path
from statistics import median
from time import process_time

from problems import AMBIGUITIES, Problem

from fragility import SatisficingClassifier, SatisficingClassifierCV

#: Most fits that it may cost.
ASKED = 25.0
PROBLEMS = (Problem(10_000, 20), Problem(2_000, 20), Problem(2_000, 100), Problem(2_000, 20, 4))
ROWS = [
    *product(PROBLEMS, ["cross_entropy"], AMBIGUITIES.items()),
    *product([Problem(2_000, 20)], ["hinge"], AMBIGUITIES.items()),
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
        one = SatisficingClassifier(loss, ambiguity, penalty="l2")
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
    if not given.quick and given.scoring is None:
        met = sum(float(line.split("|")[6]) <= ASKED for line in lines[2:])
        text = [
            "# What a cross-validation costs",
            "",
            (__doc__ or "").split("\n", 2)[2].strip(),
            "",
        ]
        text += [*lines, "", f"{met} of {len(lines) - 2} met."]
        RESULT.write_text("\n".join(text) + "\n", encoding="utf-8")
        print(f"wrote {RESULT}")


if __name__ == "__main__":
    main()
