"""What the paper says of the index: sections 1, 3 and 5.3, appendix A."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from experiments import errata_cases as cases
from experiments import errata_properties as properties
from experiments.errata_item import Item, compared, never
from experiments.experiment import Row

_DRAWN = f"of {properties.CASES} drawn cases that break it"


def _definition(seed: int) -> Iterator[Row]:
    for name, printed in (("A", 0.073), ("B", 0.163)):
        found = cases.joint_kl_index(*cases.EXAMPLE[name])
        yield compared(f"FI of model {name} by the definition", "=", printed, found, 5e-4)


def _auc(seed: int) -> Iterator[Row]:
    for name, (y, scores) in cases.tied_and_not().items():
        usual, found = cases.half_for_ties(y, scores), cases.share_not_positive(y, scores)
        yield compared(f"P(ε ≤ 0) as AUC, {name}", "=", usual, found, 1e-12)


def _property(
    broken: Callable[[properties.Index, int], int], of: Mapping[str, properties.Index], seed: int
) -> Iterator[Row]:
    for name, one in of.items():
        yield never(f"{name}: number {_DRAWN}", broken(one, seed))


def _monotonicity(seed: int) -> Iterator[Row]:
    yield never(
        f"each model with class sizes of its own: number {_DRAWN}",
        properties.monotonicity(cases.pair_index, seed),
    )
    for name, index in (
        ("as in the lemma", cases.pair_index),
        ("of (x, y) jointly, as defined", cases.joint_kl_index),
    ):
        first, second = (index(*model) for model in cases.SAME_ERRORS)
        yield compared(
            f"FI of two models with the same errors, one over the other, KL {name}",
            "=",
            1.0,
            first / second,
            1e-6,
        )


def _tail(seed: int) -> Iterator[Row]:
    yield never(
        f"errors and levels of {properties.CASES} models that exceed the bound",
        properties.tail_bound(cases.pair_index, seed),
    )


def _value_at_risk(seed: int) -> Iterator[Row]:
    yield never(
        f"levels of {properties.CASES} models at which VaR exceeds the bound",
        properties.value_at_risk_bound(cases.pair_index, seed),
    )


def _root(seed: int) -> Iterator[Row]:
    for name, case in cases.ROOTS.items():
        yield compared(f"roots of G among 60 values of k: {name}", "=", 1, cases.roots(*case))


def _bisection(seed: int) -> Iterator[Row]:
    for name, case in cases.BISECTED.items():
        found = cases.brackets(*case, doublings=1000)
        yield compared(f"bracket found in 1,000 doublings: {name}", "=", 1, found)


def _quadratic(seed: int) -> Iterator[Row]:
    few, many = (cases.exponentials(n, seed) for n in (10_000, 100_000))
    # Generous: a factor of two off is still quadratic.
    yield compared(
        "exponentials of the exact index, 100,000 scores over 10,000", "=", 100, many / few, 50
    )
    yield compared(
        "largest excess of an error, midway between two models, over its mean at both",
        ">",
        0.0,
        cases.midpoint_excess(seed),
        1e-9,
    )


def _cost(seed: int) -> Iterator[Row]:
    yield never(f"number {_DRAWN} at some threshold", properties.cost_monotonicity(seed))


def _alignment(seed: int) -> Iterator[Row]:
    surer, other = (cases.pair_index(*cases.ALIGNMENT[name]) for name in "AB")
    yield compared("FI of the model that is surer of its mistakes", "≥", other, surer)
    yield never(
        f"hypotheses met within each class: number {_DRAWN}",
        properties.index_alignment(cases.pair_index, seed, in_each_class=True),
    )


def _weights(seed: int) -> Iterator[Row]:
    for name, pair in (
        ("no creature|person (its example)", (cases.NOTHING, cases.PERSON)),
        ("person|no creature (its definition)", (cases.PERSON, cases.NOTHING)),
    ):
        person, animal = (
            cases.weighted_index(taken_for, {pair: 3.0})
            for taken_for in (cases.PERSON, cases.ANIMAL)
        )
        yield compared(
            f"FI_weight, taken for a person over for an animal, weight 3 of {name}",
            ">",
            1.0,
            person / animal,
            1e-9,
        )


def _wasserstein_bound(seed: int) -> Iterator[Row]:
    for name, (bound, found) in cases.wasserstein_bound(seed).items():
        yield compared(f"Wasserstein FI, {name}", "≤", bound, found)


ITEMS = {
    "definition": Item(
        "3.1.1, 3.3",
        "The index of the examples is the one defined, with the KL divergence of (x, y) jointly.",
        _definition,
    ),
    "auc": Item("3.1.1", "AUC is P(ε ≤ 0).", _auc, divisible=True),
    **{
        f"theorem_1{part}": Item(f"3.2, theorem ({part})", says, partial(_property, broken, of))
        for part, says, broken, of in (
            (
                "a",
                "The index is positively homogeneous.",
                properties.homogeneity,
                properties.INDICES,
            ),
            ("b", "The index is subadditive.", properties.subadditivity, properties.INDICES),
            (
                "c",
                "The index is 0 where the target is no less than any error.",
                properties.prorobustness,
                properties.WORST,
            ),
            (
                "d",
                "The index is infinite where the mean error exceeds the target.",
                properties.antifragility,
                properties.WORST,
            ),
            (
                "e",
                "The index does not grow with the target.",
                properties.tradeoff,
                properties.INDICES,
            ),
        )
    },
    "theorem_1f": Item(
        "3.2, theorem (f)",
        "Under KL, errors that dominate others have no smaller index.",
        _monotonicity,
        divisible=True,
    ),
    "root": Item("3.3, root lemma", "The index is the one root of G.", _root, divisible=True),
    "tail": Item("3.3, proposition", "P(ε ≥ θ) is at most exp(−(θ − τ)/FI) on the data.", _tail),
    "value_at_risk": Item(
        "3.3, corollary", "VaR of the errors at level 1 − α is at most τ − FI ln α.", _value_at_risk
    ),
    "quadratic": Item(
        "4.1",
        "The ranking error is non-convex in the parameters, and its pairs make the cost of the "
        "index quadratic in the sample size.",
        _quadratic,
        divisible=True,
    ),
    "cost": Item(
        "5.3, proposition (a)",
        "Of two models with equal error rate and equal confidence when right, the one surer of its "
        "mistakes costs no less at any threshold.",
        _cost,
    ),
    "alignment": Item(
        "5.3, proposition (b)",
        "Of two such models the one surer of its mistakes has no smaller index.",
        _alignment,
    ),
    "weights": Item(
        "A.2.3",
        "Where ‘no creature’ taken for ‘person’ costs more than for ‘animal’, a larger weight of "
        "no creature|person emphasises it.",
        _weights,
    ),
    "bisection": Item("A.4", "Doubling k₀ brackets the root of G.", _bisection, divisible=True),
    "wasserstein_bound": Item(
        "A.5", "The bound on the Wasserstein index holds.", _wasserstein_bound
    ),
}
