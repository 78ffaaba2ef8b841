"""Claims about gains: intervals decide, and what is partly right is more often right than wrong."""

import numpy as np
import pytest
from pandas import DataFrame

from experiments import calibration, comparison, heart, scale_matched

METHODS = ("ERM", *heart.ROBUST, *heart.PAPERS)


def hearts(figure, noise=1e-3, trials=6):
    """Results of `heart` at three rates: `figure` of method and rate is (accuracy, AUC, FI)."""
    rng = np.random.default_rng(0)
    rows = []
    for flip in (0.0, 0.2, 0.3):
        for trial in range(trials):
            for method in METHODS:
                a, b, c = np.array(figure(method, flip)) + noise * rng.normal(size=3)
                rows.append(
                    {
                        "flip": flip, "trial": trial, "method": method, "intercept": "priced",
                        "accuracy": a, "auc": b, "fragility_index": c,
                        "calibrated_fragility_index": c,
                    }
                )  # fmt: skip
    return DataFrame(rows)


def judged(module, words, results):
    (claim,) = (claim for claim in module.EXPERIMENT.claims if words in claim.says)
    return claim.rule(results).holds


#: Words of a claim, and what it needs of three models: the one that it praises, and the others.
FIRST = {
    "lowest FI throughout": "fragility_index",
    "lowest FI at equal calibration": "calibrated_fragility_index",
    "highest AUC is that of": "auc",
}


@pytest.mark.parametrize("words", FIRST)
def test_heart_claims_about_the_first(words):
    def praised(method, flip, wins):
        up = 0.05 if method == "Wasserstein" and wins(flip) else 0.0
        down = 0.05 if method == "Wasserstein" and not wins(flip) else 0.0
        return 0.8, 0.9 + up - down, 0.2 - up + down

    def results(wins):
        return hearts(lambda method, flip: praised(method, flip, wins))

    assert judged(heart, words, results(lambda flip: True)) == "holds"
    assert judged(heart, words, results(lambda flip: False)) == "does not hold"
    # First at all rates but one.
    assert judged(heart, words, results(lambda flip: flip < 0.3)) == "holds partly"
    # First by its mean everywhere, with intervals that hold zero.
    wide = hearts(lambda m, flip: praised(m, flip, lambda _: True), noise=1.0)
    assert judged(heart, words, wide) == "does not hold"


def test_heart_claims_about_what_noise_takes():
    def lost(ours, theirs):
        rate = {"KL": ours[0], "Wasserstein": ours[1]}
        return hearts(
            lambda m, flip: (
                0.8 - flip * rate.get(m, theirs),
                0.9 - flip * rate.get(m, theirs),
                0.1,
            )
        )

    words = "lose less accuracy and AUC"
    assert judged(heart, words, lost((0.1, 0.1), 0.3)) == "holds"
    assert judged(heart, words, lost((0.5, 0.5), 0.3)) == "does not hold"
    assert judged(heart, words, lost((0.1, 0.5), 0.3)) == "does not hold"  # as many as not
    assert judged(heart, words, lost((0.1, 0.3), 0.3)) == "holds partly"


def test_heart_claim_about_the_best_baselines():
    def results(index, accuracy):
        return hearts(
            lambda m, flip: (0.8 + 0.05 * (m == accuracy), 0.9 + 0.05 * (m == accuracy),
                             0.2 - 0.05 * (m == index))
        )  # fmt: skip

    words = "Among the baselines XGBoost"
    assert judged(heart, words, results("XGBoost", "SCE")) == "holds"
    assert judged(heart, words, results("GCE", "Mixup")) == "does not hold"
    assert judged(heart, words, results("GCE", "SCE")) == "holds partly"


def test_the_first_of_some_methods():
    results = hearts(lambda m, flip: (0.8, 0.9 + 0.05 * (m == "KL"), 0.2))
    found = comparison.first_of(results, "auc", heart.ROBUST, METHODS)
    assert (found.method, found.side) == ("KL", "better")
    assert found.other not in heart.ROBUST
    assert str(found).startswith("KL 0.950 clearly before")
    assert comparison.first_of(results, "auc", ("GCE",), METHODS).side == "worse"
    assert comparison.first_of(results, "auc", ("nobody",), METHODS) is None


@pytest.mark.parametrize(
    ("shrunk", "calibrated", "holds", "left"),
    [
        # The index of ERM is 0.3, of Wasserstein 0.1.
        ((0.25, 0.28), (-0.1, -0.1), "holds", "holds"),
        ((0.1, 0.05), (0.1, 0.0), "does not hold", "does not hold"),
        ((0.25, 0.05), (-0.1, 0.0), "holds partly", "holds partly"),
    ],
)
def test_scale_matched(shrunk, calibrated, holds, left):
    """At two rates: index of ERM at the scale of Wasserstein; difference after calibration."""
    rng = np.random.default_rng(0)
    rows = []
    for place, flip in enumerate((0.0, 0.3)):
        for trial in range(6):
            index = {"ERM": 0.3, "KL": 0.2, "Wasserstein": 0.1, "ERM, scores as KL": 0.3}
            index["ERM, scores as Wasserstein"] = shrunk[place]
            for method, value in index.items():
                fair = 0.2 + (calibrated[place] if method == "Wasserstein" else 0.0)
                rows.append(
                    {
                        "dataset": "d", "flip": flip, "trial": trial, "method": method,
                        "fragility_index": value + 1e-3 * rng.normal(),
                        "calibrated_fragility_index": fair + 1e-3 * rng.normal(),
                    }
                )  # fmt: skip
    results = DataFrame(rows)
    assert judged(scale_matched, "more than smaller scores", results) == holds
    assert judged(scale_matched, "after calibration, too", results) == left
    assert all("our addition" in claim.where for claim in scale_matched.EXPERIMENT.claims)


def temperatures(before, after):
    """Results of `calibration`: distances from the truth of LR, XGBoost and LightGBM."""
    rng = np.random.default_rng(0)
    rows = []
    for trial in range(6):
        for place, name in enumerate(("LR", "XGBoost", "LightGBM")):
            raw, scaled = np.array([before[place], after[place]]) + 1e-3 * rng.normal(size=2)
            rows.append({"trial": trial, "classifier": name, "raw_std": raw, "std": scaled})
        rows.append({"trial": trial, "classifier": calibration.TRUTH, "raw_std": 0.0, "std": 0.0})
    indices = {"raw_fragility_index": 0.2, "fragility_index": 0.1}
    measures = dict.fromkeys(("accuracy_train", "accuracy", "auc"), 0.5)
    return DataFrame(rows).assign(**indices, **measures)


@pytest.mark.parametrize(
    ("before", "after", "helps", "no_cure"),
    [
        ((0.3, 0.4, 0.5), (0.2, 0.3, 0.4), "holds", "holds"),
        ((0.3, 0.4, 0.5), (0.4, 0.3, 0.5), "does not hold", "does not hold"),
        ((0.3, 0.4, 0.5), (0.25, 0.2, 0.6), "holds partly", "does not hold"),
        ((0.3, 0.4, 0.5), (0.2, 0.2, 0.4), "holds", "holds partly"),
    ],
)
def test_temperatures_before_and_after(before, after, helps, no_cure):
    results = temperatures(before, after)
    assert judged(calibration, "nearer to the true", results) == helps
    assert judged(calibration, "does not undo", results) == no_cure
    table = calibration.before_and_after(results).set_index("classifier")
    assert list(table.index) == ["LR", "XGBoost", "LightGBM"]
    gap = table.loc["XGBoost"]
    assert gap["std_change"] == pytest.approx(after[1] - before[1], abs=2e-3)
    assert gap["raw_std_to_lr"] == pytest.approx(before[1] - before[0], abs=2e-3)
    assert gap["std_to_lr"] == pytest.approx(after[1] - after[0], abs=2e-3)


def test_no_model_overfits_more_than_lr():
    (claim,) = (c for c in calibration.EXPERIMENT.claims if "does not undo" in c.says)
    assert claim.rule(temperatures((0.5, 0.4, 0.3), (0.3, 0.2, 0.1))) is None
