"""A price on labels: the exact program against the paper's approximation.

With a finite label cost γ the worst case may change labels, too. What another label adds to a loss
is at most k (m ‖x‖ − γ)₊ with m = 1 for cross-entropy and 2 for the hinge, and the paper puts that
in its place. Since the term grows with k, below some γ no k at all meets the target, although the
exact program always has a solution. Which γ that is depends on the target. No free intercept: with
one the bound does not hold at all.

The approximation is: mean loss + k·c ≤ target and ‖w‖ ≤ k, where c = mean (m ‖x‖ − γ)₊. The lowest
left side that any model and k reach is the value of the distributionally robust program of radius
c, and its least k is where t + c·k(t) meets the target, k(t) being the least norm that reaches the
mean loss t. So the library's own solvers give it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pandas import DataFrame
from scipy.optimize import brentq
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from experiments import figures, tables
from experiments.claims import Claim, Verdict, share
from experiments.experiment import Condition, Experiment, Report, Row
from fragility import DROClassifier, SatisficingClassifier, Wasserstein
from fragility.datasets import make_gaussian_clusters
from fragility.exceptions import TrivialRadiusWarning

#: Multiple of ‖x‖ that the approximation takes for what another label adds per unit of k.
REACH = {"cross_entropy": 1.0, "hinge": 2.0}
#: Label costs as shares of what makes the approximation exact, m · longest sample.
COSTS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.5)
QUICK_COSTS = (0.1, 0.6, 0.9, 1.0)
TUMOURS, CLUSTERS = "tumours", "clusters"
#: Share of the learned loss that is given up: which label costs have a solution depends on it.
SLACK = 0.1
#: Agreement of two solutions that are the same.
SAME = 1e-4


def sample(name: str, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """A random half of 569 tumours (ten mean measurements), or 300 points of two clusters."""
    if name == TUMOURS:
        X, y = load_breast_cancer(return_X_y=True)
        chosen = np.random.default_rng(seed).permutation(len(y))[: len(y) // 2]
        X, y = X[chosen, :10], y[chosen]
    else:
        X, y = make_gaussian_clusters(300, 2, quadratic=True, random_state=seed)
    scaled: NDArray[np.float64] = StandardScaler().fit_transform(X)
    return scaled, y


def exact(X: NDArray[np.float64], y: NDArray[np.int64], loss: str, cost: float) -> float:
    """Least k with labels that move at this cost."""
    model = SatisficingClassifier(
        loss, Wasserstein(label_cost=cost), slack=SLACK, fit_intercept=False
    )
    return float(model.fit(X, y).fragility_)


class Approximation:
    """The paper's program on some data."""

    def __init__(self, X: NDArray[np.float64], y: NDArray[np.int64], loss: str) -> None:
        self.X, self.y, self.loss = X, y, loss
        self.lengths = REACH[loss] * np.linalg.norm(X, axis=1)
        plain = SatisficingClassifier(loss, slack=SLACK, fit_intercept=False).fit(X, y)
        self.target, self.without_labels = float(plain.target_), float(plain.fragility_)

    def fragility(self, cost: float) -> float:
        """Least k; infinite where there is none."""
        added = float(np.maximum(self.lengths - cost, 0.0).mean())
        if added == 0.0:
            return self.without_labels
        with warnings.catch_warnings():
            # A radius at which no feature is worth using is one at which there is no solution.
            warnings.simplefilter("ignore", TrivialRadiusWarning)
            lowest = DROClassifier(self.loss, radius=added, fit_intercept=False)
            lowest.fit(self.X, self.y)
        if lowest.worst_loss_ > self.target:
            return np.inf
        # The level is convex in t, lowest there and too high at the target itself.
        t = brentq(lambda t: t + added * self._norm(t) - self.target, lowest.target_, self.target)
        return self._norm(float(t))

    def _norm(self, target: float) -> float:
        model = SatisficingClassifier(self.loss, target=target, fit_intercept=False)
        return float(model.fit(self.X, self.y).fragility_)


def conditions(quick: bool) -> list[Condition]:
    """Both data sets and losses."""
    names = (CLUSTERS,) if quick else (TUMOURS, CLUSTERS)
    return [{"dataset": name, "loss": loss} for name in names for loss in REACH]


def trial(condition: Condition, seed: int, quick: bool) -> Iterator[Row]:
    """Both programs at every label cost."""
    loss = str(condition["loss"])
    X, y = sample(str(condition["dataset"]), seed)
    paper = Approximation(X, y, loss)
    for share_of_longest in QUICK_COSTS if quick else COSTS:
        cost = share_of_longest * float(paper.lengths.max())
        yield {
            "label_cost": share_of_longest,
            "exact": exact(X, y, loss, cost),
            "approximation": paper.fragility(cost),
            "labels_fixed": paper.without_labels,
        }


def report(results: DataFrame) -> Report:
    """How often the approximation has a solution, and how large its k is beside the exact one."""
    marked = results.assign(
        solvable=np.isfinite(results["approximation"]).astype(float),
        exact_over_fixed=results["exact"] / results["labels_fixed"],
        approximation_over_exact=results["approximation"] / results["exact"],
    )
    names = ["solvable", "exact_over_fixed", "approximation_over_exact"]
    table = tables.summarise(marked, ["dataset", "loss", "label_cost"], names)
    dropped = ["solvable_low", "solvable_high", "approximation_over_exact_infinite"]
    table = table.drop(columns=dropped, errors="ignore").rename(
        columns={"solvable": "share_of_trials_with_a_solution"}
    )
    below = results[results["label_cost"] < 1.0]
    solvable = np.isfinite(below["approximation"])
    ratio = (below["approximation"] / below["exact"])[solvable]
    text = (
        "Label costs are in units of the one from which on the approximation is proved exact. "
        f"Below it, at a slack of {SLACK:g}, the approximation has a solution in "
        f"{solvable.sum()} of {len(below)} cases, the exact program in all of them."
    )
    if len(ratio):
        text += f" Where it has one, its k is {ratio.median():.2f} times the exact k (median)."
    return Report({"label_costs": table}, {"label_costs": lambda: _figure(marked)}, text)


def _figure(marked: DataFrame) -> Figure:
    groups = list(marked.groupby(["dataset", "loss"], sort=False))
    figure, axes = figures.panels(2, (len(groups) + 1) // 2)
    for ax, ((name, loss), group) in zip(axes.ravel(), groups, strict=False):
        relative = group.assign(
            approximation_over_fixed=group["approximation"] / group["labels_fixed"]
        )
        table = tables.summarise(
            relative, ["label_cost"], ["exact_over_fixed", "approximation_over_fixed", "solvable"]
        )
        for place, (kind, label) in enumerate(
            (("exact_over_fixed", "exact"), ("approximation_over_fixed", "approximation"))
        ):
            ends = (table[f"{kind}_{end}"].fillna(table[kind]) for end in ("low", "high"))
            figures.band(ax, table["label_cost"], table[kind], *ends, label=label, place=place)
        never = table["label_cost"][table["solvable"] == 0.0]
        if len(never):
            ax.axvspan(table["label_cost"].min(), never.max(), color=figures.colour(1), alpha=0.1)
        ax.set(
            xscale="log",
            yscale="log",
            title=f"{name}, {str(loss).replace('_', '-')}",
            xlabel="label cost",
            ylabel="k over k with fixed labels",
        )
        ax.legend(title="shaded: no approximation", loc="upper right")
    return figure


def _safe(results: DataFrame) -> Verdict:
    finite = results[np.isfinite(results["approximation"])]
    held = int((finite["approximation"] >= finite["exact"] * (1.0 - SAME)).sum())
    least = (finite["approximation"] / finite["exact"]).min()
    return share(
        held,
        len(finite),
        f"In {held} of {len(finite)} cases with a solution; the smallest k of the approximation "
        f"is {least:.5f} times the exact one.",
    )


def _equal_when_dear(results: DataFrame) -> Verdict:
    dear = results[results["label_cost"] >= 1.0]
    off = (dear["approximation"] / dear["exact"] - 1.0).abs()
    held = int((off < SAME).sum())
    return share(
        held,
        len(dear),
        f"In {held} of {len(dear)} cases with a label cost of at least the longest sample (twice "
        f"that for the hinge); largest relative difference {off.max():.1e}.",
    )


def _usable(results: DataFrame) -> Verdict:
    cheap = results[results["label_cost"] < 1.0]
    solvable = np.isfinite(cheap["approximation"])
    least = cheap["label_cost"][solvable].min()
    return share(
        int(solvable.sum()),
        len(cheap),
        f"At a slack of {SLACK:g} it has a solution in {solvable.sum()} of {len(cheap)} cases "
        f"below that cost, none below {least:g} of it; the exact program in "
        f"{np.isfinite(cheap['exact']).sum()}.",
    )


EXPERIMENT = Experiment(
    name="label_cost",
    title="a price on labels: exact, and by the paper's approximation",
    trials=20,
    quick_trials=1,
    conditions=conditions,
    trial=trial,
    report=report,
    claims=[
        Claim(
            "4.3, theorems",
            "A solution of the approximation is feasible for the exact program: its k is never "
            "too small.",
            _safe,
        ),
        Claim(
            "4.3, theorems",
            "When labels are dear enough both programs are the same.",
            _equal_when_dear,
        ),
        Claim(
            "4.3, theorems",
            "When labels are cheaper the exact program can be approximated by the other one.",
            _usable,
        ),
    ],
)
