"""Speed of policies against scikit-learn's AUC of the same arrays.

Run with ``make bench``. CPU time of one thread, median of alternating warm runs, validation
included. The ratio is how many times the CPU of `roc_auc_score` a policy takes; asked for at a
million cases is at most 3.
"""

from __future__ import annotations

import argparse
import platform
from pathlib import Path

import numpy as np
import sklearn
from index import binary, cpu_seconds
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from fragility import best_policy, compare_costs

RESULTS = Path(__file__).parent / "results" / "deciding.md"
COSTS = {"error_cost": [[0.0, 1.0], [5.0, 0.0]], "review_cost": 0.3}
WAYS = {
    "best_policy": {},
    "with a capacity of 10 %": {"capacity": 0.1},
    "tuned": {"rule": "tuned"},
    "expected cost": {"rule": "expected_cost"},
    "error share of 2 % guaranteed": {"max_error_share": 0.02},
    "error rate of 5 % guaranteed": {"max_error_rate": 0.05},
    "misses of 5 % guaranteed": {"max_misses": 0.05},
    "least fragile": {"criterion": "fragility"},
}


def rows(sizes: list[int], runs: int) -> list[tuple[str, ...]]:
    found = []
    for n in sizes:
        y, p = binary(n)
        other = binary(n, seed=1)[1]
        weights = np.random.default_rng(1).random(n)
        calls = {
            name: lambda more=more, y=y, p=p: best_policy(y, p, **COSTS, **more)
            for name, more in WAYS.items()
        }
        calls["weights"] = lambda y=y, p=p, w=weights: best_policy(y, p, **COSTS, sample_weight=w)
        calls["compare_costs of two models"] = lambda y=y, p=p, q=other: compare_costs(
            y, p, q, **COSTS
        )
        for name, call in calls.items():
            theirs, own = cpu_seconds(lambda y=y, p=p: roc_auc_score(y, p), call, runs=runs)
            found.append((f"{n:.0e}", name, f"{theirs:.3f}", f"{own:.3f}", f"{own / theirs:.2f}"))
            print("  ", " | ".join(found[-1]), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="10,000 cases, nothing written")
    args = parser.parse_args()
    with threadpool_limits(1):
        found = rows([10**4] if args.quick else [10**4, 10**6], 3)
    if args.quick:
        return
    head = "n", "what", "roc_auc_score, s", "policy, s", "times"
    lines = [head, ("---", "---", "---:", "---:", "---:"), *found]
    text = [
        "# Policies against roc_auc_score",
        f"`make bench`: CPU time of one thread, medians; {platform.machine()}, Python "
        f"{platform.python_version()}, NumPy {np.__version__}, scikit-learn {sklearn.__version__}.",
        "Asked for at 1e+06 cases: at most 3 times.",
        "\n".join("| " + " | ".join(line) + " |" for line in lines),
    ]
    RESULTS.write_text("\n\n".join(text) + "\n")


if __name__ == "__main__":
    main()
