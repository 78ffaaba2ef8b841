"""The experiment on targets: its rule says yes, no and partly; its figures are of one split."""

from pathlib import Path

import numpy as np
import pytest
from pandas import DataFrame, read_csv
from sklearn.linear_model import LogisticRegression

from experiments import target
from experiments.target import CHALLENGERS, DEFAULT, METHODS, TUNED
from fragility import SatisficingClassifier

from .reference import out_of_fold as reference
from .test_out_of_fold import folds_of

pytestmark = pytest.mark.usefixtures("no_network")

SETS = ("a", "b", "c", "d")
COMMITTED = Path(target.__file__).parent / "results" / "target" / "results.csv"


def results(change, sets=SETS, flips=(0.0, 0.2)):
    """Made-up results: `change(method, measure, flip)` is added to a common figure."""
    rng = np.random.default_rng(0)
    rows = []
    for dataset in sets:
        for flip in flips:
            for n in (100, 200):
                for trial in range(2):
                    common = dict(zip(target.MEASURES, rng.random(7), strict=True))
                    rows += [
                        {
                            **{"dataset": dataset, "flip": flip, "n": n, "trial": trial},
                            **{"method": method, "given_up": 0.1, "norm": 1.0},
                            **{
                                measure: value
                                + change(method, measure, flip)
                                + 1e-3 * rng.normal() * (method != DEFAULT)
                                for measure, value in common.items()
                            },
                        }
                        for method in METHODS
                    ]
    return DataFrame(rows)


def judged(change, **more):
    made = results(change, **more)
    first, second = (claim.rule(made) for claim in target.EXPERIMENT.claims)
    return target.winner(made), first, second


@pytest.mark.parametrize(("priced", "wins"), [(-0.05, "free"), (-0.1, "free"), (-0.2, "priced")])
def test_a_clear_gain_with_wrong_labels_wins(priced, wins):
    """Of two that gain the one that changes less, unless the other gains clearly more."""
    gains = {"out of fold, free": -0.1, "out of fold, priced": priced}

    def change(method, measure, flip):
        return gains.get(method, 0.0) if measure == "calibrated_log_loss" and flip else 0.0

    winner, verdict, _ = judged(change)
    assert winner == f"out of fold, {wins}"
    assert verdict.holds == "holds"
    assert verdict.because.endswith(f"The default is out of fold, {wins}.")


@pytest.mark.parametrize(
    ("worse", "flip"),
    [("log_loss", 0.2), ("cost", 0.0), ("calibrated_log_loss", 0.0), ("calibrated_log_loss", 0.2)],
)
def test_what_it_must_not_cost(worse, flip):
    def change(method, measure, rate):
        if method not in CHALLENGERS:
            return 0.0
        gain = -0.1 * (measure == "calibrated_log_loss" and rate > 0.0)
        return gain + 0.3 * (measure == worse and rate == flip)

    winner, verdict, _ = judged(change)
    assert winner == DEFAULT
    # Clearly better with wrong labels, but at a price; or not better at all.
    gains = not (worse == "calibrated_log_loss" and flip > 0.0)
    assert verdict.holds == ("holds partly" if gains else "does not hold")
    said = "is clearly higher" if gains else "is not clearly lower"
    assert f"{worse.replace('_', ' ')} +0." in verdict.because
    assert said in verdict.because
    assert verdict.because.endswith("The default is slack, free as before.")


def test_no_difference_is_no_reason():
    winner, verdict, second = judged(lambda *_: 0.0)
    assert winner == DEFAULT
    assert verdict.holds == "does not hold"
    assert second.holds == "holds"


@pytest.mark.parametrize(
    ("flips", "holds"), [((0.0, 0.2), "does not hold"), ((0.2,), "holds partly")]
)
def test_worse_than_tuned_l2(flips, holds):
    def change(method, measure, flip):
        return 0.1 * (method == "out of fold, free" and flip in flips)

    assert judged(change)[2].holds == holds


def test_few_sets_or_labels_of_one_kind_cannot_say():
    for more in ({"sets": SETS[:2]}, {"flips": (0.2,)}):
        assert judged(lambda *_: 0.0, **more) == (None, None, None)


def test_errors_are_over_sets_that_count_once():
    made = results(lambda *_: 0.0, flips=(0.2,))
    extra = made[(made["dataset"] == "a") & (made["n"] == 100)].assign(n=500)  # a task more
    made = DataFrame(made.to_dict("records") + extra.to_dict("records"))
    found = target.contrast(made, "cost", TUNED, DEFAULT, "wrong")
    differences = {}
    for row in made.to_dict("records"):
        task = row["dataset"], row["n"], row["trial"]
        differences.setdefault(task, {})[row["method"]] = row["cost"]
    by_set = {
        name: np.mean([d[TUNED] - d[DEFAULT] for (s, *_), d in differences.items() if s == name])
        for name in SETS
    }
    values = np.array(list(by_set.values()))
    assert found.mean == pytest.approx(values.mean())
    assert found.error == pytest.approx(values.std(ddof=1) / np.sqrt(len(SETS)))
    assert (found.sets, found.tasks) == (4, 9)


@pytest.mark.parametrize(("noise", "best"), [(1.0, 0.03), (0.0, 1e-5), (100.0, 1.0)])
def test_tuned_l2_is_logistic_regression_of_the_best_strength(noise, best):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = (X[:, 0] + noise * rng.normal(size=80) > 0.0).astype(int)
    found = target.TunedL2(random_state=3).fit(X, y)
    losses = reference.log_losses(*folds_of(X, y, seed=3), reference.STRENGTHS, True)
    assert reference.STRENGTHS[int(np.argmin(losses))] == best
    plain = LogisticRegression(
        C=1.0 / (2.0 * best * y.size), solver="newton-cholesky", tol=1e-10, max_iter=1000
    ).fit(X, y)
    assert found.coef_ == pytest.approx(plain.coef_, rel=1e-3)
    assert found.intercept_ == pytest.approx(plain.intercept_, rel=1e-3, abs=1e-3)


def test_a_trial_has_every_method_and_figure():
    condition = target.conditions(True)[0]
    rows = list(target.trial(condition, 0, True))
    assert [row["method"] for row in rows] == list(METHODS)
    for row in rows:
        assert {*target.MEASURES, "given_up", "norm"} <= set(row)
        assert 0.0 <= row["cost"] <= 10.0
    assert rows[1]["given_up"] == pytest.approx(0.1, rel=1e-6)
    assert DataFrame(rows).equals(DataFrame(target.trial(condition, 0, True)))


def test_conditions_leave_rows_to_test():
    every = target.conditions(False)
    assert {c["dataset"] for c in every} == set(target.SETS)
    assert {c["flip"] for c in every} == {0.0, 0.1, 0.2}
    assert max(c["n"] for c in every if c["dataset"] == "heart") == 800
    assert [c["n"] for c in every if c["dataset"] == "sonar"] == [100] * 3


def test_the_report_shows_what_the_rule_uses():
    made = results(lambda *_: 0.0)
    shown = target.EXPERIMENT.report(made)
    table = shown.tables["contrasts"]
    row = table[(table["method"] == "out of fold, free") & (table["less"] == DEFAULT)].iloc[0]
    found = target.contrast(made, "cost", "out of fold, free", DEFAULT, "wrong")
    assert (row["labels"], row["cost"], row["cost_error"]) == ("wrong", found.mean, found.error)
    assert len(shown.tables["means"]) == 2 * len(METHODS)
    assert shown.figures["contrasts"]()


def test_the_default_of_the_library_is_the_winner():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) + 1.0
    y = (X[:, 0] + rng.normal(size=60) > 1.0).astype(int)
    chosen = METHODS[target.winner(read_csv(COMMITTED))](None).fit(X, y)
    default = SatisficingClassifier().fit(X, y)
    assert default.target_ == chosen.target_
    assert np.array_equal(default.coef_, chosen.coef_)
