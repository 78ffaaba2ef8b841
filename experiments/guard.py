"""Guarding any model: several model classes that doubt what they have not seen, after a shift.

`experiments.guard_claims` has the rule that decides whether the guard becomes a class of the
library. It was written, and committed, before any full run.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from experiments.baselines.losses import Floats
from experiments.comparison import short
from experiments.experiment import Condition, Experiment, Row
from experiments.guard_claims import CLAIMS, ERRORS
from experiments.guard_models import predictions
from experiments.guard_report import report
from experiments.guard_tasks import SIZES, TASKS, cases, sizes
from experiments.merit import merits
from experiments.policy_models import Triple

#: Trials of a condition, and of those of the largest size, settled before the run.
TRIALS, LARGEST_TRIALS = 3, 2


def conditions(quick: bool) -> list[Condition]:
    """Every task and size; a shift and a set in a quick run."""
    if quick:
        return [{"task": name, "size": SIZES[0]} for name in ("cleveland to hungarian", "diabetes")]
    return [{"task": name, "size": size} for name in TASKS for size in sizes(name)]


def trial(condition: Condition, seed: int, quick: bool) -> Iterator[Row]:
    """Every method, trained on the same cases of the source."""
    data = cases(str(condition["task"]), int(condition["size"]), seed, quick)
    for method, p in predictions(data.X, data.y, data.X_after, seed).items():
        yield short(
            {
                **{"dataset": data.name, "rows": data.y.size, "judges": data.y_after.size},
                **{"method": method, **figures_of(data.y_after, p)},
            }
        )


def figures_of(y: Floats, p: Floats) -> Row:
    """Log-loss, Brier score, and costs in reviews at the thresholds that probabilities ask for."""
    judged = merits(y, p, [0, 1])
    row: Row = {name: judged[name] for name in ("log_loss", "brier", "auc")}
    for error in ERRORS:
        sure = 1.0 / error  # decide where an error is rarer
        paid = Triple(float(error), float(error), 1.0).paid(y, p < sure, p >= 1.0 - sure)
        row[f"cost_{error}"] = float(np.mean(paid))
    return row


def _most_trials(condition: Condition) -> int:
    return LARGEST_TRIALS if condition["size"] == SIZES[-1] else TRIALS


EXPERIMENT = Experiment(
    name="guard",
    title="a guard of several model classes against tuned boosting and a plain average",
    trials=TRIALS,
    quick_trials=1,
    conditions=conditions,
    trial=trial,
    report=report,
    claims=CLAIMS,
    most_trials=_most_trials,
)
