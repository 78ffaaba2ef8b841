"""The paper's priced intercept in the experiments, and what a free one changes."""

from dataclasses import replace

import numpy as np
import pytest
from pandas import DataFrame
from sklearn.datasets import make_classification

from experiments import comparison, heart, protocol
from experiments.intercept_report import intercept_claim, intercept_table
from experiments.protocol import LinearModel, Settings, split_data
from experiments.worst_tenth import worst_tenth
from fragility import Wasserstein

FEW = Settings(alphas=(1e-3, 1e-1), ratios=(1.05, 1.15), n_folds=3)


@pytest.fixture(scope="module")
def split():
    X, y = make_classification(160, 5, n_informative=4, n_redundant=0, flip_y=0.2, random_state=1)
    return split_data(X, y, 0.1, 3, FEW)


@pytest.mark.outside
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_the_papers_program_has_a_column_for_each_class_and_the_one_among_the_features(penalty):
    """Literally: hinge loss of the difference of two columns, all entries penalised and priced."""
    cvxpy = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(2)
    X, y, alpha, ratio = rng.normal(size=(30, 2)), rng.integers(2, size=30), 0.1, 1.1
    X[:, 0] += 1.0 + y
    columns = cvxpy.Variable((3, 2))
    w = columns[:, 1] - columns[:, 0]
    margins = cvxpy.multiply(2 * y - 1, np.column_stack([X, np.ones(30)]) @ w)
    size = cvxpy.norm1(columns) if penalty == "l1" else cvxpy.sum_squares(columns)
    loss = cvxpy.sum(cvxpy.pos(1 - margins)) / 30 + alpha * size
    lowest = cvxpy.Problem(cvxpy.Minimize(loss)).solve(solver="CLARABEL")
    length = cvxpy.norm(w)
    least = cvxpy.Problem(cvxpy.Minimize(length), [loss <= ratio * lowest]).solve(solver="CLARABEL")
    split = protocol.Split(X, y, X, y, np.arange(30) % 3)
    like = LinearModel(np.ones((1, 2)), np.zeros(1), np.zeros(30), penalty, alpha)
    settings = replace(FEW, ratios=(ratio,))
    (found,) = protocol.satisficing_models(split, like, Wasserstein(), settings)
    assert found.fragility == pytest.approx(least, rel=1e-5)
    np.testing.assert_allclose(
        np.r_[found.coef[0], found.intercept], w.value, atol=1e-4 * np.abs(w.value).max()
    )


def test_the_worst_tenth_literally(split):
    """Every sample ten times: a tenth of them is a whole number."""
    rng = np.random.default_rng(0)
    model = LinearModel(
        rng.normal(size=(1, 5)), np.array([0.3]), np.zeros(80), "l2", 0.1, fragility=0.7
    )
    # 77 samples: a tenth of them is 7.7.
    some = protocol.Split(split.X_train[:77], split.y_train[:77], *[split.X_test] * 2, split.folds)
    losses = [
        max(0.0, 1.0 - (1.0 if label else -1.0) * (row @ model.coef[0] + 0.3))
        for row, label in zip(some.X_train, some.y_train, strict=True)
    ]
    tilted = np.exp(np.array(losses) / 0.7) / sum(np.exp(np.array(losses) / 0.7))
    copies = sorted(zip(losses * 10, [*tilted] * 10, strict=True), reverse=True)[:77]
    found = worst_tenth(some, model, "KL")
    assert found["worst_tenth_weight"] == pytest.approx(sum(weight for _, weight in copies) / 10)
    assert found["worst_tenth_loss"] == pytest.approx(np.mean([loss for loss, _ in copies]))
    even = worst_tenth(some, model, "ERM")
    assert even["worst_tenth_weight"] == pytest.approx(0.1)
    assert even["worst_tenth_loss"] == found["worst_tenth_loss"]


def both(gain, trials=6):
    """Rows at two rates; `gain` of method, rate and intercept is added to figures that vary."""
    rng = np.random.default_rng(0)
    rows = []
    for flip in (0.0, 0.3):
        for trial in range(trials):
            base = rng.normal(size=3) * 0.05
            for intercept in ("priced", "free"):
                for method in ("ERM", "KL", "Wasserstein"):
                    up = 0.0 if method == "ERM" else gain(method, flip, intercept)
                    noise = 1e-3 * rng.normal(size=3)
                    accuracy, auc, index = (
                        [0.8, 0.9, 0.2] + base + noise + up * np.array([1, 1, -1])
                    )
                    rows.append(
                        {
                            "flip": flip, "trial": trial, "intercept": intercept, "method": method,
                            "accuracy": accuracy, "auc": auc, "fragility_index": index,
                        }
                    )  # fmt: skip
    return DataFrame(rows)


@pytest.mark.parametrize(
    ("gain", "holds"),
    [
        (lambda method, flip, intercept: 0.1, "does not hold"),
        (lambda method, flip, intercept: 0.1 if intercept == "priced" else -0.1, "holds"),
        # Clearly, but by less than a hundredth.
        (lambda m, flip, i: 0.1 if i == "priced" else 0.105, "does not hold"),
        # The noise of labels takes the gain of a free intercept: half of the cells.
        (lambda m, flip, i: -0.1 if flip and i == "free" else 0.1, "holds partly"),
    ],
)
def test_what_a_free_intercept_changes(gain, holds):
    results = both(gain)
    verdict = intercept_claim("5.2", ["flip"]).rule(results)
    assert verdict.holds == holds
    table = intercept_table(results, ["flip"])
    assert len(table) == 2 * 2 * 3
    row = table.set_index(["flip", "method", "gain"]).loc[(0.3, "KL", "FI")]
    for intercept in ("priced", "free"):
        assert row[intercept] == pytest.approx(gain("KL", 0.3, intercept), abs=2e-3)
    assert row["change"] == pytest.approx(row["free"] - row["priced"])
    assert row["change_low"] < row["change"] < row["change_high"]


def test_one_trial_says_nothing_of_intercepts():
    assert intercept_claim("5.2", ["flip"]).rule(both(lambda *_: 0.1, trials=1)) is None


def test_infinite_indices_are_left_out_of_all_four():
    results = both(lambda *_: 0.1)
    first = (results["trial"] == 0) & (results["intercept"] == "free") & (results["method"] == "KL")
    results.loc[first, "fragility_index"] = np.inf
    table = intercept_table(results, ["flip"]).set_index(["flip", "method", "gain"])
    known = intercept_table(results[results["trial"] > 0], ["flip"])
    known = known.set_index(["flip", "method", "gain"])
    assert table.loc[(0.0, "KL", "FI")].tolist() == known.loc[(0.0, "KL", "FI")].tolist()


def test_claims_of_the_paper_are_judged_by_its_own_model():
    """The free rows may say anything; results without the column are refused."""
    results = both(lambda method, flip, intercept: 0.1 if intercept == "priced" else -0.1)
    (claim,) = (c for c in heart.EXPERIMENT.claims if "outperform ERM" in c.says)
    assert claim.rule(results).holds == "holds"
    turned = results.assign(
        intercept=results["intercept"].map({"priced": "free", "free": "priced"})
    )
    assert claim.rule(turned).holds == "does not hold"
    with pytest.raises(ValueError, match="which intercept"):
        claim.rule(results.drop(columns="intercept"))
    assert set(comparison.of_the_paper(results)["intercept"]) == {"priced"}


@pytest.mark.parametrize(
    ("weight", "loss", "holds"),
    [
        (0.3, (1.0, 1.0), "holds"),
        (0.1, (2.0, 2.0), "does not hold"),
        (0.3, (1.5, 1.5), "does not hold"),  # more weight alone is so by definition
        (0.3, (1.0, 1.5), "holds partly"),
    ],
)
def test_weight_on_high_losses(weight, loss, holds):
    """More weight, lower losses than those of ERM at two rates: 0.1 and 1.5."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "flip": flip, "trial": trial, "intercept": "priced", "method": method,
            "worst_tenth_weight": (weight + 1e-3 * rng.normal()) if method == "KL" else 0.1,
            "worst_tenth_loss": (own if method == "KL" else 1.5) + 1e-4 * (-1) ** trial * sign,
        }
        for flip, own in zip((0.1, 0.2), loss, strict=True)
        for trial in range(10) for method, sign in (("ERM", 1), ("KL", -1))
    ]  # fmt: skip
    (claim,) = (c for c in heart.EXPERIMENT.claims if "high loss" in c.says)
    assert claim.rule(DataFrame(rows)).holds == holds
