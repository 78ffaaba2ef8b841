"""The paper's statements: cases by other means, counters that find a wrong index, the rule."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from pandas import DataFrame
from scipy.optimize import linprog
from sklearn.metrics import roc_auc_score

from experiments import errata, errata_training
from experiments import errata_cases as cases
from experiments import errata_models as models
from experiments import errata_properties as properties
from experiments.comparison import GAINS
from experiments.errata_item import Item, compared, never, stands, verdict
from experiments.worker import plain
from fragility import measure_fragility

from .reference.pairs import bisected_index, joint_kl_index, pair_matrix

SEED = 5


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What a run hands to the report; the results of `uci` are made up."""
    experiment = errata.EXPERIMENT
    uci = tmp_path_factory.mktemp("uci") / "results.csv"
    cell = {"dataset": "coimbra", "flip": 0.0, "intercept": "priced", "method": "ERM"}
    values = np.random.default_rng(0).normal(0.7, 0.05, size=20)
    made = [{**cell, "trial": i, **dict.fromkeys(GAINS, v)} for i, v in enumerate(values)]
    DataFrame(made).to_csv(uci, index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(errata_training, "UCI_RESULTS", uci)
        return DataFrame(
            [
                {**condition, "trial": 0, **plain(row)}
                for condition in experiment.conditions(True)
                for row in experiment.trial(condition, SEED, True)
            ]
        )


def verdicts(results):
    return {
        name: claim.rule(results)
        for name, claim in zip(errata.ITEMS, errata.EXPERIMENT.claims, strict=True)
    }


# The rule


@pytest.mark.parametrize(
    ("relation", "gap", "agrees"),
    [
        ("=", 0.1, False),
        ("=", -0.1, False),
        ("=", 0.0, True),
        ("≤", -0.1, True),
        ("≤", 0.1, False),
        ("≤", math.inf, False),
        ("≥", 0.1, True),
        ("≥", -0.1, False),
        ("<", -0.1, True),
        ("<", 0.0, False),
        ("<", -1e-10, False),
        (">", 0.1, True),
        (">", 0.0, False),
        (">", math.nan, False),
    ],
)
def test_comparisons(relation, gap, agrees):
    row = compared("x", relation, 1.0, 1.0 + gap, 1e-9)
    assert stands(DataFrame([row]))["agrees"].tolist() == [agrees]


def test_two_infinite_values_are_equal():
    rows = [compared("x", relation, math.inf, math.inf) for relation in ("=", "≤", "<")]
    assert stands(DataFrame(rows))["agrees"].tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("broken", "divisible", "holds"),
    [
        ([0, 0], False, "holds"),
        ([0, 0], True, "holds"),
        ([0, 3], False, "does not hold"),
        ([0, 3], True, "holds partly"),
        ([2, 3], True, "does not hold"),
    ],
)
def test_one_comparison_refutes_unless_the_statement_has_parts(broken, divisible, holds):
    item = Item("1", "Something.", lambda seed: iter(()), divisible)
    found = verdict(item, DataFrame([never(f"cases {i}", n) for i, n in enumerate(broken)]))
    assert found.holds == holds
    assert ("as it says in 1 of 2 comparisons" in found.because) == (broken == [0, 3])
    assert found.because.startswith("Cases")


def test_a_statement_without_comparisons_is_not_judged():
    item = Item("1", "Something.", lambda seed: iter(()))
    assert verdict(item, DataFrame([never("cases", 0)])[:0]) is None


def test_symbols_keep_their_case():
    item = Item("1", "Something.", lambda seed: iter(()))
    for quantity in ("k with a label", "k† over k*"):
        assert verdict(item, DataFrame([never(quantity, 0)])).because.startswith("k")


# The whole


@pytest.mark.slow
def test_every_statement_is_judged(results):
    assert set(results["item"]) == set(errata.ITEMS)
    # The number of trials hangs on the results of another experiment.
    found = {k: said for k, said in verdicts(results).items() if k != "uci_trials"}
    by = {
        holds: [name for name, said in found.items() if said.holds == holds]
        for holds in ("holds", "does not hold")
    }
    theorem = [f"theorem_1{part}" for part in "abcde"]
    right = ["lower_bound", "lower_bound_attained", "lipschitz", "several_classes_repaired"]
    assert by["holds"] == [
        *theorem,
        *("tail", "value_at_risk", "cost", "label_flips", "k_dagger"),
        *right,
        *("piecewise_repaired", "robust_ball"),
    ]
    refuted = ["definition", "alignment", "weights", "wasserstein_bound"]
    assert by["does not hold"] == [
        *refuted,
        *("label_flips_free", "symmetric", "uci_sets", "support"),
    ]
    for name in ("piecewise", "piecewise_corollary", "lipschitz_beside", "robust_labels"):
        assert found[name].holds == "holds partly"
    assert found["k_dagger_better"].holds == "holds partly"
    failing = stands(results).query("not agrees")
    assert set(failing.query("item == 'generalisation'")["quantity"]) == {
        "slack at the worst case over the target, R > 0"
    }
    assert set(failing.query("item == 'auc'")["found"]) == {1.0}
    values = results.set_index("quantity")["found"]
    assert values["FI of model A by the definition"] == pytest.approx(0.146, abs=5e-4)
    assert values["FI of model B by the definition"] == pytest.approx(0.341, abs=5e-4)
    assert values["FI of the model that is surer of its mistakes"] == pytest.approx(0.152, abs=5e-4)
    assert values["Wasserstein FI, swapped labels"] == math.inf


@pytest.mark.slow
def test_verdicts_turn_with_the_results(results):
    """Where all agree every statement holds, where none does none holds."""
    sign = results["relation"].map({"=": 0.0, "≤": -1.0, "<": -1.0, "≥": 1.0, ">": 1.0})
    agreed = results.assign(found=results["paper"] + sign)
    assert {said.holds for said in verdicts(agreed).values()} == {"holds"}
    against = results["paper"] - sign.where(sign != 0, 1.0) * (1.0 + 2 * results["within"])
    refuted = results.assign(found=against)
    assert {said.holds for said in verdicts(refuted).values()} == {"does not hold"}


@pytest.mark.slow
def test_the_report_draws(results):
    report = errata.report(results)
    assert len(report.tables["comparisons"]) == len(results)
    assert report.figures["ratios"]().axes
    assert "not judged" not in report.text


@pytest.mark.slow
def test_without_results_of_uci_the_trials_are_not_judged(results, monkeypatch, tmp_path):
    monkeypatch.setattr(errata_training, "UCI_RESULTS", tmp_path / "results.csv")
    assert {"item": "uci_trials"} not in errata.conditions(True)
    fewer = results[results["item"] != "uci_trials"]
    assert verdicts(fewer)["uci_trials"] is None
    assert "`uci`, which are not there" in errata.report(fewer).text


# Cases by other means


@pytest.mark.slow
def test_joint_index_of_cases():
    case = cases.EXAMPLE["B"]
    assert cases.joint_kl_index(*case) == pytest.approx(joint_kl_index(*case), abs=1e-4)


def test_indices_of_cases():
    for negatives, positives, target in cases.ROOTS.values():
        errors = pair_matrix(negatives, positives)
        if errors.mean() == errors.max() == target:
            continue  # every k is a root, the index is 0
        expected = bisected_index(errors, target)
        assert cases.pair_index(negatives, positives, target) == pytest.approx(expected, rel=1e-10)
    first, second = (np.sort(pair_matrix(*model).ravel()) for model in cases.SAME_ERRORS)
    assert first == pytest.approx([-0.4] * 4 + [0.1] * 4)
    assert second == pytest.approx(first)


def test_transport_index_by_linear_programs():
    """At the index the dearest transport plan just meets the target."""
    rng = np.random.default_rng(1)
    data = properties.Data(rng.uniform(size=5), np.array([0, 1, 4]), np.array([2, 3]))
    scores = rng.uniform(size=5)
    mean = scores[data.negatives].mean() - scores[data.positives].mean()
    value = properties.transport_index(data, scores, mean + 0.1)
    distance = np.abs(np.subtract.outer(data.points, data.points))
    total = 0.0
    for sign, members in ((1.0, data.negatives), (-1.0, data.positives)):
        gain = sign * scores - 0.5 * value * distance[members]
        rows = np.kron(np.eye(len(members)), np.ones(5))
        plan = linprog(-gain.ravel(), A_eq=rows, b_eq=np.full(len(members), 1 / len(members)))
        total -= plan.fun
    assert 0 < value < math.inf
    assert total == pytest.approx(mean + 0.1, abs=1e-9)


def test_auc_of_cases():
    for y, scores in cases.tied_and_not().values():
        assert cases.half_for_ties(y, scores) == pytest.approx(roc_auc_score(y, scores))


def test_weights_of_pairs_are_those_of_the_library():
    y = np.repeat([0, 1, 2], 2)
    for taken_for in cases.TAKEN_FOR:
        seen = [*cases._SEEN[0], *cases._SEEN[1], *cases._SEEN[2], cases.TAKEN_FOR[taken_for]]
        pairs = measure_fragility(y, np.array(seen)).pairs.copy()
        for weights in ({}, {(2, 0): 3.0}):
            expected = np.mean([weights.get(p, 1.0) * pairs[p] for p in permutations(range(3), 2)])
            assert cases.weighted_index(taken_for, weights) == pytest.approx(expected, rel=1e-9)


def test_exponentials_are_of_the_index():
    assert cases.exponentials(1000, 0) % 1000 == 0


def test_exponentials_of_another_number_are_refused(monkeypatch):
    monkeypatch.setattr(cases, "fragility_index", lambda y, p: 0.5)
    with pytest.raises(ArithmeticError, match="is not the index"):
        cases.exponentials(1000, 0)


def test_key_inequality_with_every_sample():
    left, right = models.key_inequality()
    # With a vector for every sample, as the proof has it.
    losses = np.r_[np.full(1097, 2.242), np.full(1097, 2.242), 21.804]
    groups, k = np.repeat([0, 1, 2], [1097, 1097, 1]), 1.58 * losses.mean()
    b = math.log(2195) / (2 * math.log(1097) + 3 * math.log(3))
    a = b + b * k * math.log(2195) * (1 - 1 / (3 * b)) / (2 * losses.mean())
    assert right == pytest.approx(math.log(np.mean(np.exp(losses / k))) / b)
    assert left == pytest.approx(
        sum(math.log(np.mean(np.exp(losses[groups == i] / (3 * a * k)))) for i in range(3))
    )


def test_both_kinds_of_symmetric_cross_entropy():
    printed, published = cases.reverse_cross_entropy(0.9)
    assert published == pytest.approx(-(0.9 * math.log(1) + 0.1 * -4))
    assert printed == pytest.approx(-(math.log(0.9) + math.log(0.1)) / 2)


@pytest.mark.parametrize("radius", [0.05, 0.5, 5.0])
def test_k_in_a_ball_by_a_grid(radius):
    """The level falls by 0.2 for each unit of k + λ, down to 0; both constraints hold at 1."""

    def level(total):
        return max(0.5 - 0.2 * (total - 1.0), 0.0)

    grid = np.linspace(0.0, 4.0, 401)
    feasible = [
        k
        for k in grid
        if any(k + lam >= 1.0 and lam * radius + level(k + lam) <= 0.5 + 1e-9 for lam in grid)
    ]
    assert models.k_in_ball(1.0, 0.5, level, radius) == pytest.approx(min(feasible), abs=0.02)


@pytest.mark.parametrize("loss", ["cross-entropy", *models.HINGE_TYPE])
def test_dominance_is_the_sum_over_classes(loss):
    """One sample for each class: sums of losses and of ranking errors, as the paper has them."""
    rng = np.random.default_rng(2)
    broken, of_sums = models.dominance_broken(loss, 3, 2), 0
    for first in rng.normal(scale=3.0, size=(300, 3)):
        # Scores of a sample of each class, all with the same margins.
        u = np.array([np.roll(first, i) for i in range(3)])
        p = np.exp(u) / np.exp(u).sum(axis=1, keepdims=True)
        errors = sum(p[j, i] - p[i, i] for i, j in permutations(range(3), 2))
        if loss == "cross-entropy":
            total = -np.log(p.diagonal()).sum()
        else:
            total = sum(
                max(models.HINGE_TYPE[loss](u[i, i] - u[i, j]) for j in range(3) if j != i)
                for i in range(3)
            )
        of_sums += total < errors / 2 - 1e-12
    assert (of_sums > 0) == (broken > 0) == (loss == "a loss down to −1")


def test_the_loss_that_breaks_dominance_is_admissible():
    u = np.linspace(-20, 20, 4001)
    value = models.HINGE_TYPE["a loss down to −1"](u)
    slopes = np.diff(value) / np.diff(u)
    assert (value >= (1 - np.exp(u)) / (1 + np.exp(u)) - 1e-12).all()
    assert (np.diff(slopes) >= -1e-9).all()  # convex
    assert slopes.min() == pytest.approx(-0.5)
    assert slopes.max() == pytest.approx(0.0, abs=1e-6)


def test_worst_distance_by_a_grid():
    X, y, coef, intercept, _, _ = models._three_classes(SEED)
    axis = np.linspace(-8, 8, 65)
    grid = np.array([[a, b] for a in axis for b in axis])
    p = np.exp(grid @ coef.T + intercept)
    p /= p.sum(axis=1, keepdims=True)
    worst = grid[np.argmin(p, axis=0)]
    expected = np.mean([np.linalg.norm(X[y == i] - worst[i], axis=1).mean() for i in range(3)])
    assert models.worst_distance(SEED, 8.0) == pytest.approx(expected)


def test_radius_of_the_proposition():
    """At θ = 1 both exponents agree; beyond it the smaller one counts."""
    chance = models.log_chance_over_epsilon
    assert chance(-100.0, exponent=2.0, features=4) == pytest.approx(0.0, abs=1e-9)
    theta = 4.0 ** (1 / 5)
    found = chance(-400.0, exponent=2.0, features=4)
    assert found == pytest.approx(400 - 100 * theta**2)
    assert chance(-400.0, exponent=6.0, features=4) < 0


def test_trials_that_widths_imply():
    rng = np.random.default_rng(0)
    values = rng.normal(0.8, 0.05, size=1000)
    results = DataFrame(
        {
            "dataset": "a",
            "flip": 0.0,
            "trial": range(1000),
            "intercept": "priced",
            "method": "ERM",
            "auc": values,
        }
    )
    half = 1.959964 * values.std(ddof=1) / math.sqrt(37)
    printed = {"dataset": "a", "flip": 0.0, "method": "ERM", "auc_low": 0.8 - half}
    table = DataFrame([printed | {"auc_high": 0.8 + half}, printed | {"auc_high": 0.8 - half}])
    assert errata_training.implied_trials(table, results, "auc") == pytest.approx(37)
    with pytest.raises(ValueError, match="No cell"):
        errata_training.implied_trials(table.assign(dataset="b"), results, "auc")
    # Infinite values do not count.
    infinite = DataFrame(
        [*results.to_dict("records"), *results[:5].assign(auc=np.inf).to_dict("records")]
    )
    assert errata_training.implied_trials(table, infinite, "auc") == pytest.approx(37)
    # Models with a free intercept are not the paper's.
    free = results.assign(intercept="free", auc=3.0 * values)
    both = DataFrame([row for part in (results, free) for row in part.to_dict("records")])
    assert errata_training.implied_trials(table, both, "auc") == pytest.approx(37)
    with pytest.raises(ValueError, match="which intercept"):
        errata_training.implied_trials(table, results.drop(columns="intercept"), "auc")


# Counters that find a wrong index


@pytest.mark.parametrize(
    ("count", "wrong"),
    [
        (properties.homogeneity, lambda v: v**2),
        (properties.subadditivity, lambda v: v**2),
        (properties.tradeoff, lambda v: -v),
    ],
)
@pytest.mark.parametrize("index", properties.INDICES.values(), ids=properties.INDICES)
def test_parts_of_the_theorem_can_fail(count, wrong, index):
    assert count(lambda *case: wrong(index(*case)), SEED) > 0


@pytest.mark.parametrize("worst", properties.WORST.values(), ids=properties.WORST)
def test_parts_about_the_worst_case_can_fail(worst):
    """A worst case that is a little too large, or too small, is found out."""
    assert properties.prorobustness(lambda *case: worst(*case) + 1e-4, SEED) > 0
    assert properties.antifragility(lambda *case: worst(*case) - 0.05, SEED) > 0


@pytest.mark.parametrize("name", properties.WORST)
def test_the_index_is_the_least_price_of_the_worst_case(name):
    rng = np.random.default_rng(1)
    data, scores = properties._data(rng), properties._scores(rng)
    target = properties._mean_error(data, scores) + 0.05
    k = properties.INDICES[name](data, scores, target)
    assert 0.0 < k < math.inf
    assert properties.WORST[name](data, scores, k) == pytest.approx(target)
    assert properties.WORST[name](data, scores, 0.99 * k) > target


@pytest.mark.parametrize(
    ("count", "wrong"),
    [
        (properties.monotonicity, lambda v: 1.0 / (1.0 + v)),
        (properties.tail_bound, lambda v: 0.5 * v),
        (properties.value_at_risk_bound, lambda v: 0.5 * v),
    ],
)
def test_bounds_can_fail(count, wrong):
    assert count(lambda *case: wrong(cases.pair_index(*case)), SEED) > 0


def test_costs_turn_where_an_error_costs_less_than_a_review():
    assert properties.cost_monotonicity(SEED, error_costs=(0.1, 0.9)) > 0


def test_alignment_fails_over_all_cases_and_holds_in_each_class():
    assert properties.index_alignment(cases.pair_index, SEED, in_each_class=False) > 0
    assert properties.index_alignment(cases.pair_index, SEED, in_each_class=True) == 0


@pytest.mark.parametrize("in_each_class", [True, False])
def test_drawn_pairs_meet_the_hypotheses(in_each_class):
    rng = np.random.default_rng(3)
    for _ in range(50):
        pair = properties.drawn_pair(rng, in_each_class=in_each_class)
        right, wrong = [], []
        for scores in (pair.surer, pair.other):
            sure, hit = np.maximum(scores, 1 - scores), (scores >= 0.5) == pair.labels
            assert (sure > 0.5).all()
            right.append(np.sort(sure[hit]))
            wrong.append(np.sort(sure[~hit]))
        assert right[0].tolist() == right[1].tolist()
        assert len(wrong[0]) == len(wrong[1]) > 0
        assert (wrong[0] >= wrong[1]).all()


def test_cost_of_a_case():
    labels, scores = np.array([0, 1, 1, 0]), np.array([0.9, 0.8, 0.4, 0.45])
    # Above .7 alone: the first is wrong (10), the second right; two are reviewed.
    assert properties.cost(labels, scores, 0.7, 10.0) == 12.0
    assert properties.cost(labels, scores, 0.9, 10.0) == 4.0
