"""The regulariser of the last layer with what is done to the data: drawn data, wrong labels.

The paper gives neither its strength nor the noise nor the radius of PGD: the strength is the
library's default (λ₀ = 10), the others are those of the baselines. The model, its optimiser and its
start at zero are those of the baselines, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from pandas import DataFrame

from experiments.baselines.linear import AdamClassifier
from experiments.claims import Claim, Verdict, gained
from experiments.comparison import paired, short, side_of
from experiments.experiment import Condition, Experiment, Report, Row
from experiments.merit import merits
from experiments.protocol import Split
from experiments.synthetic import FLIPS, SMALL, TEST, draw
from experiments.synthetic_report import report_along

if TYPE_CHECKING:
    from experiments.deep.recipe import Recipe

LEAD = "Regulariser"
#: Name -> what of `Recipe` is set.
METHODS: dict[str, dict[str, float]] = {
    "ERM": {},
    LEAD: {"regularizer": 0.1},
    f"{LEAD}, mixup": {"regularizer": 0.1, "mixup": 1.0},
    f"{LEAD}, label smoothing": {"regularizer": 0.1, "label_smoothing": 0.1},
    f"{LEAD}, Gaussian noise": {"regularizer": 0.1, "noise": 0.1},
    f"{LEAD}, PGD": {"regularizer": 0.1, "pgd": 0.1},
}
_REDUCES = (f"{LEAD}, PGD", f"{LEAD}, mixup", f"{LEAD}, label smoothing")


def conditions(quick: bool) -> list[Condition]:
    """Rates of wrong labels, for two and for four classes."""
    flips = (0.0, 0.3) if quick else FLIPS
    return [{"classes": count, "flip": flip} for count in (2, 4) for flip in flips]


def trial(condition: Condition, seed: int, quick: bool) -> Iterator[Row]:
    """Every model on the same data."""
    from experiments.deep.recipe import Recipe

    n_classes = int(condition["classes"])
    split = draw(condition, n_classes, seed, 2)
    for name, added in METHODS.items():
        weights, bias = trained(split, n_classes, Recipe(**added), seed, 10 if quick else 100)
        scores = split.X_test @ weights.T + bias
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        p = shares / shares.sum(axis=1, keepdims=True)
        yield short(
            {
                "model": name,
                "method": name,
                "norm": float(np.linalg.norm(weights - weights.mean(axis=0))),
                "trivial": int(not weights.any()),
                **merits(split.y_test, p, np.arange(n_classes), seed),
            }
        )


def trained(
    split: Split, n_classes: int, recipe: Recipe, seed: int, epochs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (n_classes, d) and intercepts of a linear model, in double precision."""
    import torch

    from experiments.deep.steps import EagerSteps

    usual = AdamClassifier()
    x, y = torch.from_numpy(split.X_train), torch.from_numpy(split.y_train.astype(np.int64))
    layer = torch.nn.Linear(x.shape[1], n_classes, dtype=torch.float64)
    torch.nn.init.zeros_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    objective = recipe.objective(layer, layer, n_classes, -(-len(x) // usual.batch_size)).double()
    adam = torch.optim.Adam(objective.parameter_groups(usual.weight_decay), lr=usual.learning_rate)
    steps = EagerSteps(objective, adam, x, y, usual.batch_size)
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        for _ in range(epochs):
            steps.epoch(torch.randperm(len(x)))
    return layer.weight.detach().numpy(), layer.bias.detach().numpy()


def report(results: DataFrame) -> Report:
    """All figures against the share of wrong labels, for two and for four classes."""
    tables, figures, said = {}, {}, []
    for count, part in results.groupby("classes", sort=False):
        text = f"{count} overlapping classes, {SMALL} training samples, {TEST} clean test samples."
        one = report_along(part, "flip", "rate of wrong labels", text, lead=LEAD)
        tables.update({f"{name}_{count}": table for name, table in one.tables.items()})
        figures.update({f"{name}_{count}": figure for name, figure in one.figures.items()})
        said.append(one.text)
    return Report(tables, figures, " ".join(said))


def _reduce_index(results: DataFrame) -> Verdict | None:
    """Paired differences to the regulariser alone, raw and at equal calibration."""
    sides, said = [], []
    for count, part in results.groupby("classes", sort=False):
        for method in _REDUCES:
            raw = paired(part, "fragility_index", method, LEAD)
            fair = paired(part, "calibrated_fragility_index", method, LEAD)
            if raw is None or fair is None or np.isnan(raw[2]):
                continue
            sides.append(side_of(raw, -1))
            said.append(
                f"{count} classes, {method.removeprefix(f'{LEAD}, ')}: {raw[0]:+.3f} "
                f"({raw[1]:+.3f} to {raw[2]:+.3f}), calibrated {fair[0]:+.3f}"
            )
    if not sides:
        return None
    because = f"Change of the index, mean over all rates: {'; '.join(said)}."
    return gained(sides.count("better"), sides.count("worse"), len(sides), because)


def _pgd_helps_auc(results: DataFrame) -> Verdict | None:
    part = results[(results["classes"] == 2) & (results["flip"] == results["flip"].max())]
    found = paired(part, "auc", f"{LEAD}, PGD", LEAD)
    if found is None or np.isnan(found[1]):
        return None
    mean, low, high = found
    return Verdict(
        "holds" if low > 0.0 else "does not hold",
        f"At the largest rate PGD changes the AUC by {mean:+.4f} ({low:+.4f} to {high:+.4f}).",
    )


EXPERIMENT = Experiment(
    name="synthetic_augmentation",
    title="drawn data of two and four classes: the regulariser with augmentations",
    trials=100,
    quick_trials=2,
    conditions=conditions,
    trial=trial,
    report=report,
    claims=[
        Claim(
            "Appendix C.2",
            "PGD, mixup and label smoothing each lower the index of the regularised model.",
            _reduce_index,
        ),
        Claim(
            "Appendix C.2.1",
            "PGD raises the AUC of the regularised model where many labels are wrong.",
            _pgd_helps_auc,
        ),
    ],
)
