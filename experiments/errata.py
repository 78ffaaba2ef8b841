"""Where the paper is wrong or silent: every point with the number that shows it.

Each statement of the paper becomes one or more comparisons: a quantity, what the statement asks of
it (=, ≤ or ≥ a value), and what we find. A comparison that fails refutes the statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from pandas import DataFrame, read_csv

from experiments import errata_cases as cases
from experiments import figures
from experiments.claims import Claim, Verdict, share
from experiments.experiment import Condition, Experiment, Report, Row

#: Rows of the data sets in the paper's table, as it gives them.
SIZES = {
    "coimbra": 116,
    "liver": 345,
    "ilpd": 583,
    "german": 1000,
    "prognostic": 198,
    "diabetes": 768,
    "ionosphere": 351,
    "sonar": 208,
}
_NORMAL = 1.959964


class Item(NamedTuple):
    """A statement of the paper: where, what, and the comparisons that test it."""

    where: str
    says: str
    rows: Callable[[int], Iterator[Row]]
    #: Several statements in one, or one with its limits: it can hold in part. A statement about
    #: all cases cannot: one that contradicts it is enough.
    divisible: bool = False


def compared(quantity: str, relation: str, paper: float, found: float, within: float = 0.0) -> Row:
    """One comparison: `found` must stand in `relation` to `paper`, but for a rounding."""
    return {
        "quantity": quantity,
        "relation": relation,
        "paper": paper,
        "found": found,
        "within": within,
    }


def _joint_divergence(seed: int) -> Iterator[Row]:
    for name, printed in (("A", 0.073), ("B", 0.163)):
        found = cases.joint_kl_index(*cases.EXAMPLE[name])
        yield compared(f"FI of model {name} by the definition", "=", printed, found, 5e-4)


def _roots(seed: int) -> Iterator[Row]:
    for name, case in cases.WITHOUT_ROOT.items():
        yield compared(f"roots of G among 60 values of k: {name}", "=", 1, cases.roots(*case))
    for name, case in cases.BISECTED.items():
        found = cases.brackets(*case, doublings=1000)
        yield compared(f"bracket found in 1,000 doublings: {name}", "=", 1, found)


def _cost_alignment(seed: int) -> Iterator[Row]:
    surer, other = (cases.index(*cases.ALIGNMENT[name]) for name in "AB")
    yield compared("FI of the model that is surer of its mistakes", "≥", other, surer)


def _wasserstein_bound(seed: int) -> Iterator[Row]:
    for name, (bound, found) in cases.wasserstein_bound(seed).items():
        yield compared(f"Wasserstein FI, {name}", "≤", bound, found)


def _guarantees(seed: int) -> Iterator[Row]:
    left, right = cases.key_inequality()
    yield compared("left side of the key inequality of the KL proof, C = 3", "≤", right, left)
    for name, target in cases.kl_targets(seed).items():
        # No ranking error exceeds 1: at such a target every model has the index 0.
        yield compared(f"target of the KL guarantee, {name}", "≤", 1.0, target)
    yield compared("Wasserstein FI over k*", "≤", 1.0, cases.wasserstein_over_k(seed))


def _label_flips(seed: int) -> Iterator[Row]:
    for name, (bound, growth) in cases.label_flips(seed).items():
        yield compared(f"growth of the loss by flipped labels, {name}", "≤", bound, growth, 1e-9)


def _generalisation(seed: int) -> Iterator[Row]:
    yield compared(
        "slack of the bound at the worst case, in units of the target",
        "=",
        0.0,
        cases.slack_of_the_lemma(seed),
        1e-6,
    )
    exact, approximate = cases.half_label_cost(seed)
    yield compared("k with the label term, label cost half of max ‖x‖", "=", exact, approximate)


def _operator_norm(seed: int) -> Iterator[Row]:
    slope, nuclear = cases.slope_and_nuclear_norm(seed)
    # The spectral norm of this B is 1, which is what the slope asks for.
    yield compared(
        "least k/ω₁ that bounds the slope, orthonormal B", "=", nuclear, slope / np.sqrt(2.0), 1e-6
    )


def _symmetric(seed: int) -> Iterator[Row]:
    for p in (0.9, 0.99):
        printed, published = cases.reverse_cross_entropy(p)
        yield compared(
            f"printed term where the true class has {p:g}", "=", published, printed, 1e-6
        )


def _ties(seed: int) -> Iterator[Row]:
    yield compared("P(ε ≤ 0) of a constant model, as AUC", "=", 0.5, cases.share_not_positive())


def _uci(seed: int) -> Iterator[Row]:
    printed = read_csv(Path(__file__).parent / "printed" / "uci.csv")
    yield compared("UCI data sets", "=", 9, printed["dataset"].nunique())
    accuracy = printed["accuracy"]
    deviation = np.sqrt(accuracy * (1 - accuracy) / (printed["dataset"].map(SIZES) / 2))
    width = printed["accuracy_high"] - printed["accuracy_low"]
    implied = (2 * _NORMAL * deviation / width)[width > 0] ** 2
    # Generous: a hundred trials and the widths agree within a factor of two.
    yield compared(
        "trials that the widths of normal intervals of the accuracy imply (median)",
        "=",
        100,
        float(implied.median()),
        50,
    )


ITEMS = {
    1: Item(
        "3.1.1, 3.3",
        "The index of the examples is the one defined, with the KL divergence of (x, y) jointly.",
        _joint_divergence,
    ),
    2: Item(
        "3.3, A.4",
        "The index is always the one root of G, and the bisection finds it from any start.",
        _roots,
        divisible=True,
    ),
    3: Item(
        "5.3, proposition (b)",
        "Of two models with equal error rate and equal confidence when right, the one surer of its "
        "mistakes has no smaller index.",
        _cost_alignment,
    ),
    4: Item("A.5", "The bound on the Wasserstein index holds.", _wasserstein_bound),
    5: Item(
        "4.2.1, 4.3.1",
        "The guarantees bound the index of a trained model by k*, with the constants of the paper.",
        _guarantees,
        divisible=True,
    ),
    6: Item(
        "4.3.2, corollary",
        "Flipping labels raises the loss by at most max ‖x‖ times k* times the share flipped.",
        _label_flips,
        divisible=True,
    ),
    7: Item(
        "B.3, 4.3.2",
        "The generalisation bound is attained, and the label term approximates the exact one.",
        _generalisation,
    ),
    8: Item(
        "4.3.2, Lipschitz",
        "The norm in the Lipschitz theorem, written as a dual (nuclear) norm of B, is the one that "
        "bounds the slope of the loss.",
        _operator_norm,
    ),
    9: Item("C.1", "The printed second term of SCE is the reverse cross-entropy.", _symmetric),
    10: Item("1, 3", "P(ε ≤ 0) is the AUC.", _ties),
    11: Item("C.3", "Nine UCI data sets, 100 trials of each.", _uci),
}


def trial(condition: Condition, seed: int, quick: bool) -> Iterator[Row]:
    """The comparisons of one item."""
    yield from ITEMS[int(condition["item"])].rows(seed)


def stands(results: DataFrame) -> DataFrame:
    """The same with a column that says which comparisons agree with the paper."""
    gap = results["found"] - results["paper"]
    relation = results["relation"]
    agrees = (
        ((relation == "=") & (gap.abs() <= results["within"]))
        | ((relation == "≤") & (gap <= results["within"]))
        | ((relation == "≥") & (gap >= -results["within"]))
    )
    return results.assign(agrees=agrees)


def report(results: DataFrame) -> Report:
    """Every comparison."""
    judged = stands(results)
    table = judged[["item", "quantity", "relation", "paper", "found", "agrees"]].copy()
    table["agrees"] = np.where(table["agrees"], "yes", "no")
    table = table.rename(columns={"paper": "paper_says", "found": "we_find"})
    refuted = judged.loc[~judged["agrees"], "item"].nunique()
    return Report(
        {"comparisons": table},
        {"ratios": lambda: _figure(judged)},
        f"{refuted} of {judged['item'].nunique()} statements fail at least one comparison. The "
        "library does what is right in each case: the class-conditional divergence of the paper's "
        "own lemma, every case of the root, the exact Wasserstein index, exact label costs, bounds "
        "with the intercept, the induced norm, both kinds of SCE, and the usual AUC.",
    )


def _figure(judged: DataFrame) -> Figure:
    """How far each comparison is off, as found over paper where both are positive."""
    shown = judged[(judged["paper"] > 0) & (judged["found"] > 0) & np.isfinite(judged["found"])]
    figure, axes = figures.panels(1, width=7.6, height=0.27 * len(shown) + 0.9)
    ax = axes[0, 0]
    places = np.arange(len(shown))[::-1]
    ratio = shown["found"] / shown["paper"]
    for agrees, number, marker in ((True, 0, "o"), (False, 1, "X")):
        chosen = (shown["agrees"] == agrees).to_numpy()
        ax.scatter(
            ratio[chosen],
            places[chosen],
            color=figures.colour(number),
            marker=marker,
            label="as the paper says" if agrees else "not as it says",
            zorder=3,
        )
    ax.axvline(1.0, color=figures.GREY, linewidth=0.8)
    ax.set(xscale="log", xlabel="found over what the paper says", yticks=places)
    ax.set_yticklabels(
        [f"{row.item}: {row.quantity} ({row.relation})" for row in shown.itertuples()], fontsize=7
    )
    figure.legend(loc="outside upper right", ncols=2)
    return figure


def _verdict(number: int, results: DataFrame) -> Verdict | None:
    judged = stands(results)
    judged = judged[judged["item"] == number]
    if judged.empty:
        return None
    failing = judged[~judged["agrees"]]
    said = "; ".join(
        f"{row.quantity}: {row.found:.4g} (should be {row.relation} {row.paper:.4g})"
        for row in (judged if failing.empty else failing).itertuples()
    )
    held, of = int(judged["agrees"].sum()), len(judged)
    if not ITEMS[number].divisible and held < of:
        held = 0
    if 0 < len(failing) < len(judged):
        said += f"; as it says in {len(judged) - len(failing)} of {len(judged)} comparisons"
    return share(held, of, f"{said[:1].upper()}{said[1:]}.")


EXPERIMENT = Experiment(
    name="errata",
    title="where the paper is wrong or silent, each point with its number",
    trials=1,
    quick_trials=1,
    conditions=lambda quick: [{"item": number} for number in ITEMS],
    trial=trial,
    report=report,
    claims=[
        Claim(item.where, item.says, partial(_verdict, number)) for number, item in ITEMS.items()
    ],
)
