"""The small experiments: their numbers by other means, and rules that can say no."""

from __future__ import annotations

import math
import runpy
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from pandas import DataFrame, Series

from experiments import (
    comparison,
    example1,
    example2,
    heart,
    heart_confidence,
    heart_cost,
    label_cost,
    ova,
    uci,
)
from experiments.worker import plain
from fragility import loss_fragility

from .reference.pairs import bisected_index, pair_matrix

ROOT = Path(__file__).parent.parent


def results_of(module, trials=1, seed=5, quick=True):
    """What a run would hand to the report."""
    experiment = module.EXPERIMENT
    return DataFrame(
        [
            {**condition, "trial": trial, **plain(row)}
            for condition in experiment.conditions(quick)
            for trial in range(trials)
            for row in experiment.trial(condition, seed + trial, quick)
        ]
    )


@pytest.fixture(scope="module")
def label_costs():
    return results_of(label_cost)


def verdicts(module, results):
    return [claim.rule(results).holds for claim in module.EXPERIMENT.claims]


def test_example_1_by_the_definition():
    results = results_of(example1)
    assert verdicts(example1, results) == ["holds"]
    for row in results.itertuples():
        errors = pair_matrix([row.negative_1, row.negative_2], [row.positive_1, row.positive_2])
        assert row.fragility_index == pytest.approx(bisected_index(errors, 0.0), rel=1e-12)
        assert row.fragility_index == pytest.approx(row.paper, abs=5e-4)
    other = results.assign(fragility_index=[0.1633, 0.0731])
    assert verdicts(example1, other) == ["does not hold"]
    assert verdicts(example1, results.assign(auc=[0.75, 0.8])) == ["holds partly"]


def test_example_2_chooses_pairs_by_their_auc_alone():
    drawn = results_of(example2, trials=2)
    assert drawn.groupby("trial")["model"].apply(list).tolist() == [list(example2.PRINTED)] * 2
    logistic = drawn["model"] == example2.LOGISTIC
    assert (drawn["fragility_index"][logistic].to_numpy() > 0.1).all()
    again = results_of(example2, trials=2)
    assert drawn.equals(again)
    # Three trials: equal far from the printed AUC, unequal, equal near it.
    three = DataFrame(
        [row for trial in (0, 1, 2) for row in drawn[:2].assign(trial=trial).to_dict("records")]
    )
    three["auc"] = [0.85, 0.8501, 0.904, 0.906, 0.905, 0.9049]
    assert example2.equal_pairs(three).index.tolist() == [2, 0]
    assert verdicts(example2, three) == ["holds", "holds"]
    three["fragility_index"] = [0.2, 0.1, 0.2, 0.1, 0.1, 0.2]
    assert verdicts(example2, three)[0] == "holds partly"
    none = three.assign(auc=[0.8, 0.9] * 3)
    assert [claim.rule(none) for claim in example2.EXPERIMENT.claims] == [None, None]
    assert "No pair" in example2.report(none).text


def test_ova_mixtures_by_replication():
    rng = np.random.default_rng(0)
    first, second = ova.errors_of(rng, 0.077, 400), ova.errors_of(rng, 0.055, 400)
    assert loss_fragility(first, target=0.0) == pytest.approx(0.077, rel=1e-12)
    assert ova.errors_of(rng, 0.0, 100).max() < 0.0
    replicated = np.r_[np.tile(first, 3), second]
    assert ova.mixed(first, second, (0.75, 0.25)) == pytest.approx(
        bisected_index(replicated, 0.0), rel=1e-10
    )
    results = results_of(ova, trials=3)
    assert verdicts(ova, results) == ["holds", "holds", "holds"]
    table = ova.report(results).tables["weights"]
    assert table["paper"].tolist() == [0.061, 0.064, 0.066, 0.068, 0.07, 0.072, 0.074, 0.075, 0.076]
    turned = results.assign(ova=-results["ova"])
    assert verdicts(ova, turned) == ["does not hold"] * 3


@pytest.mark.parametrize("loss", label_cost.REACH)
def test_the_approximation_without_cvxpy_is_the_one_with_it(loss):
    example = runpy.run_path(str(ROOT / "examples" / "label_cost.py"), run_name="label_cost")
    X, y = label_cost.sample(label_cost.CLUSTERS, 3)
    ours, literal = label_cost.Approximation(X, y, loss), example["Approximation"](X, y, loss)
    longest = ours.lengths.max()
    for share in (0.3, 0.85, 0.95):
        expected = (
            literal.fragility(share * longest, ours.target)
            if literal.lowest_level(share * longest) <= ours.target
            else math.inf
        )
        assert ours.fragility(share * longest) == pytest.approx(expected, rel=1e-5)


def test_label_costs(label_costs):
    # It has a solution in fewer than half of the cases.
    assert verdicts(label_cost, label_costs) == ["holds", "holds", "does not hold"]
    infeasible = np.isinf(label_costs["approximation"])
    assert infeasible[label_costs["label_cost"] < 0.5].all()
    assert not infeasible[label_costs["label_cost"] >= 0.9].any()
    smaller = label_costs.assign(approximation=0.9 * label_costs["exact"])
    assert verdicts(label_cost, smaller) == ["does not hold", "does not hold", "holds"]
    report = label_cost.report(label_costs)
    table = report.tables["label_costs"].set_index(["loss", "label_cost"])
    assert table.loc[("hinge", 0.1), "share_of_trials_with_a_solution"] == 0.0
    assert math.isnan(table.loc[("hinge", 0.1), "approximation_over_exact"])


def judged(module, words, results):
    """Verdict of the one claim with these words."""
    (claim,) = (claim for claim in module.EXPERIMENT.claims if words in claim.says)
    return claim.rule(results).holds


def drawn(figures, trials=4, **more):
    """Rows of methods whose figures vary a little from trial to trial, alike for all of them."""
    return [
        {"trial": trial, "method": method, "intercept": "priced", **more}
        | {name: value + 0.001 * trial for name, value in values.items()}
        for method, values in figures.items()
        for trial in range(trials)
    ]


def hearts(figures_at):
    """Results of `heart` at two rates from (accuracy, AUC, index) of each method and rate."""
    names = ("accuracy", "auc", "fragility_index")
    rows = []
    for flip in (0.0, 0.3):
        figures = {
            method: dict(zip(names, figures_at(method, flip), strict=True))
            for method in ("ERM", *heart.ROBUST, *heart.PAPERS)
        }
        rows += drawn(figures, flip=flip)
    return DataFrame(rows)


HEART_CLAIMS = ("comparable to robust", "lower FI than standard", "more robust to label noise")


def test_heart_claims_about_baselines():
    def as_the_paper_says(method, flip):
        ours = method in heart.ROBUST
        place = ("ERM", *heart.ROBUST, *heart.PAPERS).index(method)
        index = 0.05 + 0.001 * place if ours else 0.1 + 0.01 * place
        return 0.8 - flip * index, 0.9 - flip * index, index

    def the_opposite(method, flip):
        accuracy, auc, index = as_the_paper_says(method, flip)
        ours = method in heart.ROBUST
        return accuracy - 0.1 * ours, auc - 0.1 * ours, 0.5 - index

    def in_part(method, flip):
        accuracy, auc, index = as_the_paper_says(method, flip)
        weak = 0.1 * (method == "KL")
        at_risk = method == "KL" and flip == 0.0
        return accuracy - weak, auc - weak, 0.5 - index if at_risk else index

    for figures_at, holds in (
        (as_the_paper_says, ["holds"] * 3),
        (the_opposite, ["does not hold"] * 3),
        (in_part, ["holds partly"] * 3),
    ):
        results = hearts(figures_at)
        assert [judged(heart, words, results) for words in HEART_CLAIMS] == holds


@pytest.mark.parametrize(
    ("places", "holds"),
    [
        ((0, 1, 2, 3, 4, 5, 6, 7, 9, 8), "holds"),  # 44 pairs of 45 in the same order
        ((2, 1, 0, 5, 4, 3, 8, 7, 6, 9), "holds partly"),  # 36
        ((5, 4, 3, 2, 1, 0, 8, 7, 6, 9), "does not hold"),  # 27: a random order may well have that
    ],
)
def test_an_order_by_chance_is_no_part_of_robustness(places, holds):
    methods = ("ERM", *heart.ROBUST, *heart.PAPERS)

    def figures_at(method, flip):
        lost = flip * 0.1 * places[methods.index(method)]
        return 0.9 - lost, 0.95 - lost, 0.1 + 0.1 * methods.index(method)

    assert judged(heart, "more robust to label noise", hearts(figures_at)) == holds


def confidences(index, tail, accuracy):
    """Results of `heart_confidence`, of ERM, KL and Wasserstein."""
    rows = []
    for probability in ("platt", "sigmoid"):
        figures = {
            method: {"accuracy": accuracy[place], "auc": 0.9, "fragility_index": index[place]}
            | dict.fromkeys(
                ("confident_errors", "error_cvar", "mean_confidence_wrong"), tail[place]
            )
            for place, method in enumerate(heart_confidence.METHODS)
        }
        rows += drawn(figures, probability=probability)
    return DataFrame(rows)


@pytest.mark.parametrize(
    ("index", "tail", "accuracy", "alike", "follows"),
    [
        ((0.3, 0.2, 0.1), (0.3, 0.2, 0.1), (0.8, 0.805, 0.795), "holds", "holds"),
        ((0.1, 0.2, 0.3), (0.3, 0.2, 0.1), (0.7, 0.8, 0.9), "does not hold", "does not hold"),
        ((0.3, 0.1, 0.2), (0.3, 0.2, 0.1), (0.7, 0.8, 0.9), "holds partly", "holds partly"),
    ],
)
def test_heart_confidence_claims_about_the_index(index, tail, accuracy, alike, follows):
    results = confidences(index, tail, accuracy)
    assert judged(heart_confidence, "similar accuracy", results) == alike
    assert judged(heart_confidence, "goes with a lower risk", results) == follows
    if alike == "holds partly":
        far = results.assign(auc=results["method"].map({"ERM": 0.7, "KL": 0.8, "Wasserstein": 0.9}))
        assert judged(heart_confidence, "similar accuracy", far) == "does not hold"


def deferrals(reviewed, errors, index):
    """Results of `heart_cost` for the five models of the paper, the same at every threshold."""
    rows = []
    for trial, (place, method) in product(range(3), enumerate(heart_cost.PAPERS)):
        row = {"method": method, "trial": trial, "cases": 100, "fragility_index": index[place]}
        row["probability"] = "own" if method in ("XGBoost", "SCE") else "sigmoid"
        # Trials differ, and differences of models a little, too.
        more = trial + 0.01 * trial * place
        for t in heart_cost.THRESHOLDS:
            row |= {f"reviewed_{t}": reviewed[place] + more, f"errors_{t}": errors[place] + more}
        rows.append(row)
    return DataFrame(rows)


@pytest.mark.parametrize(
    ("reviewed", "errors", "index", "defer", "cost"),
    [
        # ERM, KL, Wasserstein, XGBoost, SCE
        ((10, 20, 20, 10, 10), (9, 5, 4, 9, 8), (0.3, 0.2, 0.1, 0.3, 0.25), "holds", "holds"),
        ((20, 10, 10, 20, 20), (4, 8, 9, 5, 4), (0.3, 0.2, 0.1, 0.25, 0.3), *["does not hold"] * 2),
        ((20, 10, 30, 20, 20), (9, 5, 4, 8, 3), (0.3, 0.2, 0.1, 0.25, 0.4), *["holds partly"] * 2),
    ],
)
def test_heart_cost_claims_about_the_index(reviewed, errors, index, defer, cost):
    results = deferrals(reviewed, errors, index)
    assert judged(heart_cost, "more cases to review", results) == defer
    assert judged(heart_cost, "lower FI cost less", results) == cost


@pytest.mark.parametrize(
    ("errors", "most", "lowest"),
    [
        # ERM, KL, Wasserstein, XGBoost, SCE; the same at every threshold, so the lowest is at 0.5.
        ((9, 5, 1, 9, 8), "holds", "holds partly"),
        ((9, 5, 9, 9, 8), "does not hold", "does not hold"),
    ],
)
def test_heart_cost_claims_about_the_cheapest(errors, most, lowest):
    results = deferrals([10] * 5, errors, [0.1] * 5)
    assert judged(heart_cost, "is cheapest at most thresholds.", results) == most
    assert judged(heart_cost, "lowest cost of all", results) == lowest
    if most == "holds":
        half = results.copy()  # clearly cheapest at a third of the thresholds, unclear elsewhere
        for t in (t for t in heart_cost.THRESHOLDS if t > 66):
            spread = 8.0 * (results["trial"] - 1)
            kl, ours = results["method"] == "KL", results["method"] == "Wasserstein"
            half.loc[ours, f"errors_{t}"] = (
                results.loc[kl, f"errors_{t}"].to_numpy() + spread[ours].to_numpy()
            )
        assert judged(heart_cost, "is cheapest at most thresholds.", half) == "holds partly"
        at_70 = results.copy()
        for t in heart_cost.THRESHOLDS:
            at_70[f"reviewed_{t}"] += abs(t - 70)
        assert judged(heart_cost, "lowest cost of all", at_70) == "holds"


@pytest.mark.parametrize(
    ("curve", "holds"),
    [
        # Errors made alone at the thresholds; a review costs 1, an error 10 or 20.
        (lambda t: (100 * t**2, 12 * (1 - t)), "holds"),
        (lambda t: (100 * t, 8 * (1 - t)), "holds partly"),  # flat and falling
        (lambda t: (100 * t, 3 * (1 - t)), "does not hold"),  # dear reviews: rising at both
    ],
)
def test_shapes_of_the_cost_curves(curve, holds):
    results = deferrals([0] * 5, [0] * 5, [0.1] * 5)
    for t in heart_cost.THRESHOLDS:
        reviewed, errors = curve((t - 50) / 50)
        results[f"reviewed_{t}"], results[f"errors_{t}"] = reviewed, errors
    assert judged(heart_cost, "U-shaped", results) == holds


def test_pairs_in_the_same_order():
    first = Series({"A": 1.0, "B": 2.0, "C": 2.0, "D": math.inf})
    assert comparison.same_order(first, first) == (5, 5)
    assert comparison.same_order(first, -first) == (0, 5)
    assert comparison.same_order(first, Series({"A": 1.0, "B": 0.0, "C": 3.0, "D": 2.0})) == (3, 5)


def uci_results(index, accuracy, trivial=0):
    """Results of `uci` on two sets: index and accuracy (AUC alike) of ERM, KL, Wasserstein."""
    rows = []
    for dataset in ("coimbra", "sonar"):
        figures = {
            method: {"fragility_index": a, "accuracy": b, "auc": b}
            for method, a, b in zip(uci.METHODS, index, accuracy, strict=True)
        }
        rows += drawn(figures, dataset=dataset, flip=0.0, trivial=trivial)
    return DataFrame(rows)


@pytest.mark.parametrize(
    ("index", "accuracy", "holds"),
    [
        ((0.3, 0.2, 0.1), (0.8, 0.9, 0.7), "holds"),
        ((0.3, 0.2, 0.1), (0.8, 0.9, 0.85), "holds partly"),
        ((0.1, 0.2, 0.3), (0.8, 0.7, 0.9), "does not hold"),
    ],
)
def test_uci_claim_about_wasserstein(index, accuracy, holds):
    assert judged(uci, "best in most FI", uci_results(index, accuracy)) == holds


def test_a_constant_wasserstein_model_is_not_the_weakest():
    """In one set it is constant, with an AUC of a half; in the other it is the best of all."""
    results = uci_results((0.3, 0.2, 0.1), (0.7, 0.8, 0.9))
    constant = (results["method"] == "Wasserstein") & (results["dataset"] == "coimbra")
    results.loc[constant, ["trivial", "accuracy", "auc"]] = [1, 0.5, 0.5]
    shared, cells = uci._all_contest(results)
    assert cells == 1
    assert shared["trial"].nunique() == results["trial"].nunique()
    assert set(shared["dataset"]) == {"sonar"}
    assert judged(uci, "best in most FI", results) == "does not hold"  # the index in one of two
    weak = results.assign(accuracy=results["accuracy"].where(~constant, 0.0))
    assert judged(uci, "best in most FI", weak) == "does not hold"
    weakest = (results["method"] == "Wasserstein") & ~constant
    results.loc[weakest, ["accuracy", "auc"]] = [0.6, 0.6]
    assert judged(uci, "best in most FI", results) == "holds partly"


def test_models_without_a_feature_win_nothing():
    """Wasserstein has the lowest index everywhere: as a model, or as none."""
    results = uci_results((0.3, 0.2, 0.0), (0.8, 0.7, 0.75))
    ours = results["method"] == "Wasserstein"
    assert uci._wins(results)[0]["Wasserstein"]["fragility_index"] == 2
    assert judged(uci, "KL model is best", results) == "does not hold"
    constant = results.assign(trivial=ours.astype(int))
    wins, cells = uci._wins(constant)
    assert wins["Wasserstein"] == dict.fromkeys(comparison.GAINS, 0.0)
    assert (wins["KL"]["fragility_index"], cells) == (2, 2)
    assert judged(uci, "best in most FI", constant) == "does not hold"
    # One constant model of four: that trial does not count, for any of the three.
    once = results.assign(trivial=(ours & (results["trial"] == 0)).astype(int))
    once.loc[once["trial"] == 0, "fragility_index"] = 9.0
    assert uci._wins(once)[0] == uci._wins(results[results["trial"] > 0])[0]
    # Nobody uses a feature: nobody wins.
    nobody = uci._wins(results.assign(trivial=1))[0]
    assert all(set(by.values()) == {0.0} for by in nobody.values())


@pytest.mark.parametrize(
    ("accuracy", "constant", "holds"),
    [
        ((0.8, 0.9, 0.7), False, "holds"),
        ((0.8, 0.9, 0.7), True, "does not hold"),  # what is left says nothing
        ((0.9, 0.8, 0.7), False, "does not hold"),
    ],
)
def test_uci_claim_that_kl_improves_on_erm(accuracy, constant, holds):
    index = (0.3, 0.2, 0.1) if holds == "holds" or constant else (0.2, 0.3, 0.1)
    results = uci_results(index, accuracy)
    results.loc[(results["method"] == "KL") & (results["trial"] > 0), "trivial"] = int(constant)
    found = [c.rule(results) for c in uci.EXPERIMENT.claims if "reweighting" in c.says]
    assert [verdict.holds for verdict in found] == [holds]


@pytest.mark.parametrize("module", [example1, example2, ova])
def test_reports_draw(module):
    report = module.report(results_of(module, trials=3 if module is example2 else 1))
    assert report.tables
    for draw in report.figures.values():
        assert draw().axes
