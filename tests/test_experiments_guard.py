"""The experiment on the guard: its rule says yes, partly and no; its model is its formulas."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from pandas import DataFrame, read_csv
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

import fragility
from experiments import figures, guard, guard_claims, guard_models, guard_report, guard_tasks
from experiments.guard_claims import FIGURES, contrast
from experiments.guard_models import METHODS, LogOdds
from experiments.guard_tasks import TASKS
from experiments.platt import platt_map
from experiments.real_data import real_data

COMMITTED = Path(guard.__file__).parent / "results" / "guard" / "results.csv"

pytestmark = pytest.mark.usefixtures("no_network")

AFTER, WITHOUT, INSURANCE, BESIDE, FATE = (claim.rule for claim in guard.EXPERIMENT.claims)
RULES = (AFTER, WITHOUT, INSURANCE, BESIDE, FATE)
#: Two tasks of each of three families after a shift, and three families without one.
SHIFTED = [
    *("cleveland to va", "heart, by age", "red to white", "white to red"),
    *("adult: men to women", "adult: women to men"),
]
UNSHIFTED = ["coimbra", "liver", "sonar"]
#: What the guard has by chance: nothing on average over the families of a kind.
CHANCE = {"hospitals": 1e-4, "wine": -1e-4, "coimbra": 1e-4, "liver": -1e-4}
CELLS = [(name, size) for name in (*SHIFTED, *UNSHIFTED) for size in (300, 1200)]


def results_of(change):
    """Made-up results: `change(method, figure, task, size)` is added to a common figure."""
    rng = np.random.default_rng(0)
    rows = []
    for task, size in CELLS:
        for trial in range(2):
            common = dict(zip(FIGURES, 0.5 + 0.01 * rng.random(4), strict=True))
            for method in METHODS:
                row = {"task": task, "size": size, "trial": trial, "method": method, "rows": size}
                chance = CHANCE.get(TASKS[task].family, 0.0) * (method == "guard")
                row |= {
                    name: value + chance + change(method, name, task, size)
                    for name, value in common.items()
                }
                rows.append({**row, "auc": 0.8})
    return DataFrame(rows)


def verdicts(change):
    made = results_of(change)
    return [rule(made).holds for rule in RULES]


def gains(*, boosting=0.0, average=0.0, more=lambda figure, task: 0.0):
    """By how much boosting and the average are above the guard in log-loss after a shift."""
    above = {"boosting": boosting, "average": average, "guard": 0.0}

    def change(method, figure, task, size):
        if method == "guard":
            return more(figure, task)
        return above[method] * (figure == "log_loss" and task in SHIFTED)

    return change


YES, PARTLY, NO = "holds", "holds partly", "does not hold"


def test_a_clear_gain_over_both_ships():
    made = results_of(gains(boosting=0.05, average=0.02))
    assert [rule(made).holds for rule in RULES] == [YES] * 5
    assert FATE(made).because.endswith("GuardedClassifier is shipped.")


@pytest.mark.parametrize(("average", "beside"), [(0.0051, YES), (0.004, PARTLY), (-0.02, NO)])
def test_a_small_gain_over_the_average_is_no_reason(average, beside):
    made = results_of(gains(boosting=0.05, average=average))
    assert BESIDE(made).holds == beside
    assert FATE(made).holds == (YES if beside == YES else PARTLY)
    assert ("not shipped" in FATE(made).because) == (beside != YES)


@pytest.mark.parametrize(("figure", "without"), [("cost_10", PARTLY), ("log_loss", NO)])
def test_what_it_must_not_cost_without_a_shift(figure, without):
    def more(name, task):
        return 0.03 * (name == figure and task in UNSHIFTED)

    found = verdicts(gains(boosting=0.05, average=0.02, more=more))
    assert found == [YES, without, YES, NO, PARTLY]


@pytest.mark.parametrize("figure", ["brier", "cost_10", "cost_20"])
def test_what_it_must_not_cost_after_a_shift(figure):
    def more(name, task):
        return 0.03 * (name == figure and task in SHIFTED)

    found = verdicts(gains(boosting=0.05, average=0.02, more=more))
    assert found == [NO, YES, YES, NO, NO]


def test_a_gain_in_one_family_is_not_clear():
    def change(method, figure, task, size):
        wine = TASKS[task].family == "wine"
        return -0.2 * (method == "guard" and figure == "log_loss" and wine)

    made = results_of(change)
    assert AFTER(made).holds == PARTLY
    assert INSURANCE(made).holds == NO  # lower in one of three families
    assert FATE(made).holds == NO


def test_insurance_is_a_matter_of_the_worst():
    """Nothing gained on average, but at the worst task and size of every family."""

    def change(method, figure, task, size):
        if figure != "log_loss" or task in UNSHIFTED:
            return 0.0
        first = task in SHIFTED[::2] and size == 300
        if method == "guard":
            return 0.1 if first else 0.0
        return 0.13 if first else -0.01

    made = results_of(change)
    assert contrast(made, "log_loss", "average").mean == pytest.approx(0.0, abs=1e-4)
    found = contrast(made, "log_loss", "average", worst=True)
    assert found.mean == pytest.approx(-0.03, abs=1e-3)
    assert INSURANCE(made).holds == YES
    made.loc[(made["method"] == "guard") & made["task"].isin(SHIFTED), "log_loss"] -= 1e-3
    assert BESIDE(made).holds == YES
    made.loc[(made["method"] == "guard") & made["task"].isin(SHIFTED), "log_loss"] += 2e-3
    assert BESIDE(made).holds == NO
    swapped = {"guard": "average", "average": "guard", "boosting": "guard"}
    turned = results_of(lambda method, *cell: change(swapped[method], *cell))
    assert INSURANCE(turned).holds == NO


def test_insurance_that_is_too_low_forbids_shipping():
    """Better on average and no better at the worst."""

    def change(method, figure, task, size):
        if figure != "log_loss" or task in UNSHIFTED or method == "guard":
            return 0.2 * (figure == "log_loss" and task in SHIFTED[::2])
        return 0.1 if task in SHIFTED[1::2] else 0.19

    assert verdicts(change) == [YES, YES, NO, YES, PARTLY]


def test_a_contrast_counts_every_family_once():
    def change(method, figure, task, size):
        return (method == "guard") * (TASKS[task].family == "hospitals") * (size / 1e4)

    made = results_of(change)
    few = made[(made["task"] != "heart, by age") | (made["size"] == 300)]
    found = contrast(few, "log_loss", "boosting")
    by_task = [np.mean([0.03, 0.12]), 0.03]
    values = [np.mean(by_task), 0.0, 0.0]
    assert found.mean == pytest.approx(np.mean(values), abs=1e-4)
    assert found.error == pytest.approx(np.std(values, ddof=1) / math.sqrt(3), abs=1e-4)
    assert sorted(found.families.index) == ["adult", "hospitals", "wine"]
    worst = contrast(few, "log_loss", "boosting", worst=True)
    assert worst.families["hospitals"] == pytest.approx(0.12, abs=0.02)


def test_few_families_are_not_judged():
    made = results_of(gains(boosting=0.05, average=0.02))
    for kept in (SHIFTED, UNSHIFTED, [*SHIFTED[:4], *UNSHIFTED]):
        assert [rule(made[made["task"].isin(kept)]) for rule in RULES] == [None] * 5


def test_what_is_shipped_is_what_the_rule_says():
    ships = FATE(read_csv(COMMITTED)).holds == YES
    assert ("GuardedClassifier" in fragility.__all__) == ships


def moved_cases(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) ** 3
    X[::9, 2] = np.nan
    y = (np.cbrt(X[:, 0]) + rng.normal(size=n) > 0.3).astype(int)
    return X, y, 3.0 * X[:60] + 0.5


def folds_of(X, y, seed=1):
    return list(StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y))


def test_shrunken_log_odds_are_those_of_the_mean_probability():
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    for mean, variance in ((1.0, 0.5), (-2.0, 2.0), (3.0, 4.0)):
        exact = weights @ expit(mean + math.sqrt(variance) * nodes) / weights.sum()
        found = expit(guard_models.shrunk(np.array([mean]), np.array([variance])))[0]
        assert found == pytest.approx(exact, abs=0.02)
        assert abs(found - exact) < 0.5 * abs(expit(mean) - exact)


def test_the_linear_member_is_that_of_the_formulas():
    X, y, X_after = moved_cases()
    strength = 0.3
    (scores,) = guard_models._linear_path(X, y, [strength], True)
    median = np.nanmedian(X, axis=0)
    known, new = (np.where(np.isnan(part), median, part) for part in (X, X_after))
    for j in range(3):
        low, high = np.quantile(known[:, j], [0.01, 0.99])
        known[:, j], new[:, j] = (np.clip(part[:, j], low, high) for part in (known, new))
    centre, width = known.mean(axis=0), known.std(axis=0)
    Z, Z_new = (known - centre) / width, (new - centre) / width
    model = LogisticRegression(C=strength, solver="newton-cg", tol=1e-12).fit(Z, y)
    precision = np.diag([0.0, *[1.0 / strength] * 3])
    for z, p in zip(Z, model.predict_proba(Z)[:, 1], strict=True):
        x = np.r_[1.0, z]
        precision += p * (1.0 - p) * np.outer(x, x)
    inverse = np.linalg.inv(precision)
    for z, u, found in zip(Z_new, model.decision_function(Z_new), scores(X_after), strict=True):
        x = np.r_[1.0, z]
        variance = x @ inverse @ x
        assert found == pytest.approx(u / math.sqrt(1.0 + math.pi * variance / 8.0), abs=1e-7)
    (plain,) = guard_models._linear_path(X, y, [strength], False)
    assert np.abs(plain(100.0 * X_after)).max() > 3.0 * np.abs(plain(X_after)).max()
    assert np.abs(scores(100.0 * X_after)).max() < 1.2 * np.abs(scores(X_after)).max()


@pytest.mark.parametrize("guarded", [False, True])
def test_the_strength_has_the_least_log_loss_out_of_fold(guarded):
    X, y, X_after = moved_cases()
    folds = folds_of(X, y)
    losses = {}
    for strength in guard_models.STRENGTHS:
        own = np.empty(y.size)
        for train, test in folds:
            (scores,) = guard_models._linear_path(X[train], y[train], [strength], guarded)
            own[test] = scores(X[test])
        losses[strength] = log_loss(y, expit(own)), own
    best = min(losses, key=lambda strength: losses[strength][0])
    said = guard_models._linear(X, y, X_after, folds, guarded)
    assert said.out_of_fold == pytest.approx(losses[best][1], rel=1e-6, abs=1e-6)
    (scores,) = guard_models._linear_path(X, y, [best], guarded)
    assert said.after == pytest.approx(scores(X_after), rel=1e-6, abs=1e-6)


def test_boosting_has_the_settings_of_the_least_log_loss_out_of_fold(monkeypatch):
    LGBMClassifier = pytest.importorskip("lightgbm").LGBMClassifier
    monkeypatch.setattr(guard_models, "LEAVES", (3, 7))
    monkeypatch.setattr(guard_models, "TREES", (5, 40))
    X, y, X_after = moved_cases()
    folds = folds_of(X, y)

    def fitted(rows, leaves, cases, trees):
        model = LGBMClassifier(
            num_leaves=leaves,
            min_child_samples=cases,
            n_estimators=trees,
            learning_rate=0.05,
            random_state=1,
            verbose=-1,
            n_jobs=1,
        )
        return model.fit(DataFrame(X[rows]), y[rows])

    losses = {}
    for setting in [(a, b, c) for a in (3, 7) for b in (5, 50) for c in (5, 40)]:
        p = np.empty(y.size)
        for train, test in folds:
            p[test] = fitted(train, *setting).predict_proba(DataFrame(X[test]))[:, 1]
        losses[setting] = log_loss(y, p), p
    best = min(losses, key=lambda setting: losses[setting][0])
    said = guard_models._boosting(X, y, X_after, folds, 1)
    assert expit(said.out_of_fold) == pytest.approx(losses[best][1], rel=1e-6)
    after = fitted(np.arange(y.size), *best).predict_proba(DataFrame(X_after))[:, 1]
    assert expit(said.after) == pytest.approx(after, rel=1e-6)


def test_the_forest_is_never_certain():
    x = np.r_[np.arange(-30.0, 0.0), np.arange(1.0, 31.0)]
    y = (x > 0).astype(int)
    said = guard_models._forest(x[:, None], y, np.array([[-30.0]]), folds_of(x, y), 0)
    assert said.after == logit(0.005)
    assert np.abs(said.out_of_fold).max() == pytest.approx(logit(0.995))


def test_members_are_calibrated_averaged_and_calibrated_again(monkeypatch):
    rng = np.random.default_rng(0)
    y, X, X_after = rng.integers(0, 2, 80), np.zeros((80, 1)), np.zeros((5, 1))
    made = {
        name: LogOdds((2 * y - 1) * rng.random() + rng.normal(size=80), rng.normal(size=5))
        for name in ("boosting", "forest", "plain", "careful")
    }
    monkeypatch.setattr(guard_models, "_boosting", lambda *_: made["boosting"])
    monkeypatch.setattr(guard_models, "_forest", lambda *_: made["forest"])
    monkeypatch.setattr(
        guard_models, "_linear", lambda *given: made["careful" if given[-1] else "plain"]
    )
    found = guard_models.predictions(X, y, X_after, 0)
    maps = {name: platt_map(y, expit(said.out_of_fold)) for name, said in made.items()}
    assert found["boosting"] == pytest.approx(maps["boosting"](expit(made["boosting"].after)))

    def together(names, guarded, part, i):
        odds = [logit(maps[name](expit(made[name][part][i : i + 1]))[0]) for name in names]
        mean = sum(odds) / 3.0
        variance = sum((one - mean) ** 2 for one in odds) / 3.0 if guarded else 0.0
        return 1.0 / (1.0 + math.exp(-mean / math.sqrt(1.0 + math.pi * variance / 8.0)))

    for method, linear in (("average", "plain"), ("guard", "careful")):
        names = ("boosting", "forest", linear)
        own, after = (
            np.array([together(names, method == "guard", part, i) for i in range(size)])
            for part, size in ((0, 80), (1, 5))
        )
        assert found[method] == pytest.approx(platt_map(y, own)(after), rel=1e-8)


def test_figures_of_a_trial():
    p = np.array([0.02, 0.3, 0.97, 0.93, 0.04, 0.6])
    y = np.array([0, 1, 1, 0, 1, 1])
    row = guard.figures_of(y, p)
    # At 10 reviews an error: 0.3 and 0.6 are reviewed, 0.93 and 0.04 are wrong.
    assert row["cost_10"] == pytest.approx((1 + 1 + 10 + 10) / 6)
    # At 20 0.93 is reviewed, too.
    assert row["cost_20"] == pytest.approx((1 + 1 + 1 + 20) / 6)
    assert row["log_loss"] == pytest.approx(log_loss(y, p))
    assert row["brier"] == pytest.approx(np.mean((p - y) ** 2))


@pytest.fixture
def no_data(monkeypatch):
    """Stand-ins, whatever data are at hand."""
    monkeypatch.delenv("FRAGILITY_DATA", raising=False)
    real_data.cache_clear()
    yield
    real_data.cache_clear()


@pytest.mark.usefixtures("no_data")
def test_tasks_of_one_family_share_data():
    kinds = [task.shift for task in TASKS.values()]
    assert (kinds.count("natural"), kinds.count("made"), kinds.count("none")) == (20, 7, 13)
    of = {
        kind: {task.family for task in TASKS.values() if (task.shift == "none") == kind}
        for kind in (False, True)
    }
    assert of[False] == {"hospitals", "wine", "adult", "bank", "diabetes", "german", "ilpd"}
    assert len(of[True]) == 12
    assert TASKS["heart"].family == TASKS["heart, by age"].family == "hospitals"
    first, again, other = (guard_tasks.cases("liver", 300, seed, True) for seed in (0, 0, 1))
    assert first.y.size == first.y_after.size == 150
    assert np.array_equal(first.X, again.X)
    assert not np.array_equal(first.X, other.X)
    train, judge = ({tuple(row) for row in part} for part in (first.X, first.X_after))
    assert not train & judge
    assert guard_tasks.sizes("liver") == [300]  # the half of 345 rows
    assert guard_tasks.sizes("red") == [300, 1200]  # of 1,359
    assert guard_tasks.sizes("adult") == [300, 1200, 10_000]


@pytest.mark.slow
@pytest.mark.usefixtures("no_data")
def test_a_quick_run_of_stand_ins_reports():
    pytest.importorskip("lightgbm")
    rows = []
    for condition in guard.conditions(True):
        found = list(guard.trial(condition, 3, True))
        assert [row["method"] for row in found] == list(METHODS)
        assert all(row["dataset"] == f"stand-in for {condition['task']}" for row in found)
        assert all(np.isfinite(row[figure]) for row in found for figure in FIGURES)
        rows += [{**condition, "trial": 0, **row} for row in found]
    results = DataFrame(rows)
    shown = guard_report.report(results)
    table = shown.tables["contrasts"]
    first = table[(table["tasks"] == "shifted") & (table["size"] == "all")].iloc[0]
    assert first["log_loss"] == pytest.approx(rows[2]["log_loss"] - rows[0]["log_loss"])
    assert len(shown.tables["tasks"]) == len(rows)
    assert figures.svg(shown.figures["log_loss"]).startswith("<?xml")
    assert [rule(results) for rule in RULES] == [None] * 5
    assert guard_claims.fate(results) is None


def test_large_conditions_have_fewer_trials():
    fewer = guard.EXPERIMENT.most_trials
    assert [fewer({"task": "bank", "size": size}) for size in guard_tasks.SIZES] == [3, 3, 2]
