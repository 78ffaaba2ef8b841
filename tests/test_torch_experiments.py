"""The deep experiments: they run, repeat, and their tables say what the results say."""

# ruff: noqa: E402

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch")

from experiments import medmnist, synthetic_augmentation
from experiments.baselines import AdamClassifier
from experiments.baselines.augmented import LabelSmoothingClassifier
from experiments.deep import images
from experiments.deep.recipe import Recipe
from experiments.medmnist_report import MEASURES, beside_printed, differences, models
from experiments.synthetic import draw
from fragility import fragility_index
from tests.test_torch_trainer import build


class TestSyntheticAugmentation:
    @pytest.mark.parametrize("n_classes", [2, 4])
    def test_without_the_regulariser_it_is_the_numpy_baseline(self, n_classes):
        split = draw({"flip": 0.1}, n_classes, 3, 2)  # 50 samples: one batch, in any order
        for recipe, baseline in (
            (Recipe(), AdamClassifier(epochs=30)),
            (Recipe(label_smoothing=0.1), LabelSmoothingClassifier(epochs=30)),
        ):
            weights, bias = synthetic_augmentation.trained(split, n_classes, recipe, 0, 30)
            if n_classes == 2:
                weights, bias = weights[1:] - weights[:1], bias[1:] - bias[:1]
            model = baseline.fit(split.X_train, split.y_train)
            np.testing.assert_allclose(weights, model.coef_, rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(bias, model.intercept_, rtol=1e-6, atol=1e-9)

    def test_quick_run_repeats_and_reports(self):
        experiment = synthetic_augmentation.EXPERIMENT
        rows = []
        for condition in experiment.conditions(True):
            for number in range(2):
                found = list(experiment.trial(condition, 100 + number, True))
                rows += [{**condition, "trial": number, **row} for row in found]
        assert str(list(experiment.trial(condition, 101, True))) == str(found)
        results = pd.DataFrame(rows)
        assert set(results["model"]) == set(synthetic_augmentation.METHODS)
        norms = results.groupby("model")["norm"].mean()
        assert norms["Regulariser"] < norms["ERM"]
        report = experiment.report(results)
        assert set(report.tables) == {"along_2", "along_4"}
        assert set(report.figures) == {"paper_2", "more_2", "paper_4", "more_4"}

    def test_claims(self):
        rng = np.random.default_rng(0)
        rows = [
            {
                "classes": count, "flip": flip, "trial": number, "model": name, "method": name,
                "auc": 0.9 + 0.05 * ("PGD" in name) + 1e-3 * rng.normal(),
                "fragility_index": 0.2 - 0.1 * (name in ALL_THREE) + 1e-3 * rng.normal(),
                "calibrated_fragility_index": 0.2,
            }
            for count in (2, 4) for flip in (0.0, 0.3) for number in range(5)
            for name in synthetic_augmentation.METHODS
        ]  # fmt: skip
        results = pd.DataFrame(rows)
        claims = synthetic_augmentation.EXPERIMENT.claims
        assert [claim.rule(results).holds for claim in claims] == ["holds", "holds"]
        worse = results.assign(
            auc=-results["auc"], fragility_index=1.0 - results["fragility_index"]
        )
        assert [claim.rule(worse).holds for claim in claims] == ["does not hold"] * 2
        partly = results.copy()
        partly.loc[partly["method"] == "Regulariser, mixup", "fragility_index"] = 0.5
        assert claims[0].rule(partly).holds == "holds partly"


ALL_THREE = ("Regulariser, PGD", "Regulariser, mixup", "Regulariser, label smoothing")


def fabricated(trials=4):
    """Results of two sets whose printed figures are known."""
    printed = medmnist.printed().set_index(["dataset", "method"])
    rows = []
    for dataset in ("breast", "blood"):
        for method in ("ERM", "Regulariser"):
            line = printed.loc[(dataset, method)]
            for trial in range(trials):
                for pick in ("ce", "ce+fi"):
                    off = 0.01 * (trial - 1.5)
                    row = dict.fromkeys(MEASURES, 1.0 + off)
                    row |= {"accuracy": line["accuracy"] + off, "auc_ovr": line["auc"] + off}
                    row |= {"log_loss": line["log_loss"] + off}
                    row |= {"capped_fragility_index": line["fragility_index"] + off}
                    row |= {"fragility_index": line["fragility_index"] + off}
                    if pick == "ce+fi":
                        row["accuracy"] = 0.0
                    names = {"dataset": dataset, "stem": "7x7", "method": method, "pick": pick}
                    rows.append({**names, "trial": trial, **row})
    return pd.DataFrame(rows)


class TestMedMNIST:
    def test_all_nine_sets_both_stems(self, monkeypatch):
        monkeypatch.delenv("FRAGILITY_MEDMNIST", raising=False)
        found = medmnist.conditions(False)
        assert len(found) == 9 * 2 * len(medmnist.METHODS)
        assert set(medmnist.printed()["dataset"]) == {c["dataset"] for c in found}
        assert set(medmnist.printed()["method"]) <= set(medmnist.METHODS)

    def test_a_part_of_them(self, monkeypatch):
        monkeypatch.setenv("FRAGILITY_MEDMNIST", "method=Mixup,ERM dataset=breast stem=3x3")
        assert medmnist.conditions(False) == [
            {"dataset": "breast", "stem": "3x3", "method": method} for method in ("ERM", "Mixup")
        ]
        for wrong in ("dataset=brest", "set=breast", "breast", "method="):
            monkeypatch.setenv("FRAGILITY_MEDMNIST", wrong)
            with pytest.raises(ValueError, match=r"is not known\. There are: dataset=blood,breast"):
                medmnist.conditions(False)

    def test_quick_run_repeats_and_reports(self, monkeypatch):
        monkeypatch.setattr(images, "_STAND_IN", ((16, 12, 12), 28, 2))  # quicker yet
        experiment = medmnist.EXPERIMENT
        rows = []
        for condition in experiment.conditions(True):
            found = list(experiment.trial(condition, 100, True))
            rows += [{**condition, "trial": 0, **row} for row in found]
        assert str(list(experiment.trial(condition, 100, True))) == str(found)
        results = pd.DataFrame(rows)
        assert set(results["dataset"]) == {"stand-in"}
        assert set(results["pick"]) == {"ce", "ce+fi"}
        report = experiment.report(results)
        assert set(report.tables) == {"models", "against_erm"}  # no stand-in beside printed values
        for claim in experiment.claims:
            assert claim.rule(results) is None  # one trial has no standard error

    def test_tables(self):
        results = fabricated()
        error = 0.01 * np.sqrt(5.0 / 3.0) / 2.0  # of -1.5, -.5, .5, 1.5 hundredths
        table = models(results)
        assert len(table) == 8
        np.testing.assert_allclose(table["log_loss_error"], error)
        assert (table["trials"] == 4).all()
        beside = beside_printed(results, medmnist.printed())
        assert len(beside) == 2 * 2 * 4
        np.testing.assert_allclose(beside["ours"], beside["paper"])
        np.testing.assert_allclose(beside["error"], error)
        assert beside["inside"].all()
        moved = results.assign(log_loss=results["log_loss"] + 2.1 * error)
        assert (
            not beside_printed(moved, medmnist.printed())
            .query("measure == 'log_loss'")["inside"]
            .any()
        )
        against = differences(results).set_index(["dataset", "pick", "measure"])
        assert against.loc[("breast", "ce", "log_loss"), "difference"] == pytest.approx(
            0.3661 - 0.5832
        )
        assert against.loc[("breast", "ce", "log_loss"), "error"] == pytest.approx(0.0, abs=1e-12)
        assert against["pairs"].eq(4).all()

    def test_infinite_indices_are_counted_not_averaged(self):
        results = fabricated()
        first = (results["trial"] == 0) & (results["dataset"] == "breast")
        results.loc[first, "fragility_index"] = np.inf
        table = models(results).set_index(["dataset", "method", "pick"])
        row = table.loc[("breast", "ERM", "ce")]
        assert row["infinite_trials"] == 1
        assert row["fragility_index"] == pytest.approx(0.2525 + 0.005)
        against = differences(results).set_index(["dataset", "pick", "measure"])
        assert against.loc[("breast", "ce", "fragility_index"), "pairs"] == 3

    def test_claims(self):
        results = fabricated()
        rules = [claim.rule for claim in medmnist.EXPERIMENT.claims]
        assert rules[0](results).holds == "holds"
        assert rules[0](results.assign(log_loss=9.0)).holds == "holds partly"
        assert rules[1](results).holds == "holds"
        same = results.assign(log_loss=1.0, fragility_index=1.0)
        assert rules[1](same).holds == "does not hold"
        longer = results["epochs"] + 0.5 * (results["method"] == "Regulariser")
        assert rules[2](results.assign(epochs=longer)).holds == "holds"
        assert rules[2](results).holds == "does not hold"

    def test_capped_index(self):
        p = np.random.default_rng(0).dirichlet([1.0, 1.0, 1.0], 30)
        truth, classes = np.arange(30) % 3, np.arange(3)
        expected = []
        for i in range(3):
            for j in range(3):
                if i != j:
                    rows = (truth == i) | (truth == j)
                    value = fragility_index((truth[rows] == i).astype(int), p[rows, i])
                    expected.append(min(value, 10.0))
        assert 0 < expected.count(10.0) < 6
        assert medmnist._capped(truth, p, classes) == pytest.approx(np.mean(expected), rel=1e-9)

    def test_checkpoints_have_names_of_their_own(self, monkeypatch, tmp_path):
        monkeypatch.setenv("FRAGILITY_CHECKPOINTS", str(tmp_path / "new"))
        paths = {
            medmnist._checkpoint(c, s, False) for c in medmnist.conditions(False) for s in (1, 2)
        }
        assert len(paths) == 2 * len(medmnist.conditions(False))
        assert medmnist._checkpoint(medmnist.conditions(True)[0], 1, True) is None


def test_images_keep_pixels_and_channels():
    rng = np.random.default_rng(0)
    grey, colour = rng.integers(0, 256, (3, 28, 28)), rng.integers(0, 256, (3, 28, 28, 3))
    x, y = images._tensors(grey.astype(np.uint8), [0, 1, 1], torch.device("cpu"))
    assert x.shape == (3, 3, 28, 28)
    assert torch.equal(x[:, 0], x[:, 2])
    np.testing.assert_allclose(x[:, 1].numpy(), grey / 127.5 - 1.0, atol=1e-6)
    x, _ = images._tensors(colour.astype(np.uint8), y, torch.device("cpu"))
    np.testing.assert_allclose(x[:, 2].numpy(), colour[..., 2] / 127.5 - 1.0, atol=1e-6)


def test_learning_rates_of_a_graphed_optimiser_are_apart():
    from experiments.deep.trainer import Settings, _adam

    try:
        adam = _adam(build(), Settings(graphs=True), torch.device("cpu"))
    except RuntimeError as error:
        pytest.skip(f"not without CUDA: {error}")
    first, second = (group["lr"] for group in adam.param_groups)
    assert first is not second
