"""The deep experiments: they run, repeat, and their tables say what the results say."""

# ruff: noqa: E402

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch")

from experiments import medmnist, medmnist_search, synthetic_augmentation
from experiments.baselines import AdamClassifier
from experiments.baselines.augmented import LabelSmoothingClassifier
from experiments.deep import images, training
from experiments.deep.recipe import Recipe
from experiments.medmnist_report import (
    MEASURES,
    against,
    beside_printed,
    differences,
    equal_calibration,
    models,
    summary,
)
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
        of_recipe = len(medmnist.PARTS) + 2  # itself with both stems, its parts with one
        assert len(found) == 9 * 2 * len(medmnist.METHODS) + of_recipe * len(medmnist.SETS)
        assert set(medmnist.printed()["dataset"]) == {c["dataset"] for c in found}
        assert set(medmnist.printed()["method"]) <= set(medmnist.METHODS)

    def test_a_part_of_them(self, monkeypatch):
        monkeypatch.setenv("FRAGILITY_MEDMNIST", "method=Mixup,ERM dataset=breast stem=3x3")
        assert medmnist.conditions(False) == [
            {"dataset": "breast", "stem": "3x3", "method": method} for method in ("ERM", "Mixup")
        ]
        monkeypatch.setenv("FRAGILITY_MEDMNIST", "method=Frozen recipe,Regulariser weak stem=7x7")
        found = medmnist.conditions(False)
        assert sum(one["method"] == "Frozen recipe" for one in found) == 4  # its four sets
        assert sum(one["method"] == "Regulariser weak" for one in found) == 9
        assert all(1 <= medmnist.most_trials(one) <= 10 for one in found)
        monkeypatch.setenv("FRAGILITY_MEDMNIST", "method=ERM stem=7x7 method=Mixup")
        with pytest.raises(ValueError, match="names method twice"):
            medmnist.conditions(False)
        for wrong in ("dataset=brest", "set=breast", "breast", "method="):
            monkeypatch.setenv("FRAGILITY_MEDMNIST", wrong)
            with pytest.raises(ValueError, match=r"is not known\. There are: dataset=blood,breast"):
                medmnist.conditions(False)

    @pytest.mark.parametrize(
        ("dataset", "stem", "method", "seeds"),
        [
            ("breast", "7x7", "Direct", 10),
            ("breast", "3x3", "Direct", 5),
            ("retina", "7x7", "Moved+averaged", 10),
            ("pneumonia", "7x7", "Direct", 5),
            ("pneumonia", "7x7", "Mixup", 10),
            ("pneumonia", "7x7", "Moved+averaged", 10),
            ("pneumonia", "7x7", "Frozen recipe", 10),
            ("pneumonia", "3x3", "Frozen recipe", 5),
            ("blood", "7x7", "Frozen recipe", 5),
            ("organa", "7x7", "ERM", 5),
        ],
    )
    def test_seeds(self, dataset, stem, method, seeds):
        condition = {"dataset": dataset, "stem": stem, "method": method}
        assert medmnist.most_trials(condition) == seeds

    def test_claim_about_the_benchmark(self):
        (rule,) = [c.rule for c in medmnist.EXPERIMENT.claims if "benchmark" in c.says]
        results = fabricated()
        # Of the printed figures those of Pneumonia and the AUCs of Path and Retina.
        assert rule(results).holds == "holds partly"
        assert "4 of 8 printed" in rule(results).because
        assert "with the 7×7 stem 0 of 2" in rule(results).because  # Breast, as it is printed
        near = results.assign(accuracy=0.863 + 0.015, auc_ovr=0.901 - 0.025)
        assert "with the 7×7 stem 1 of 2" in rule(near).because
        assert "of ours none" in rule(results[results["dataset"] == "blood"]).because
        assert rule(results[results["method"] != "ERM"]) is None

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
        assert not report.figures
        for claim in experiment.claims:
            assert claim.rule(results) is None  # neither images nor a standard error

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
        found = differences(results).set_index(["dataset", "pick", "measure"])
        assert found.loc[("breast", "ce", "log_loss"), "difference"] == pytest.approx(
            0.3661 - 0.5832
        )
        assert found.loc[("breast", "ce", "log_loss"), "error"] == pytest.approx(0.0, abs=1e-12)
        assert found["pairs"].eq(4).all()
        wide = against(results).set_index(["dataset", "method", "pick"])
        assert len(wide) == 4
        assert wide.loc[("breast", "Regulariser", "ce"), "log_loss"] == pytest.approx(-0.2171)
        assert wide["trials"].eq(4).all()

    def test_infinite_pairs_of_classes(self):
        """By hand: the pairs that both have, and the number of those that one lacks."""
        results = fabricated(2)
        texts = {
            ("ERM", 0): "0.1 inf 0.5", ("Regulariser", 0): "0.2 0.3 0.1",
            ("ERM", 1): "inf inf 0.5", ("Regulariser", 1): "1.0 inf 0.9",
        }  # fmt: skip
        results["scaled_pairs"] = [
            texts[key] for key in zip(results["method"], results["trial"], strict=True)
        ]
        found = differences(results).set_index(["dataset", "pick", "measure"])
        common = found.loc[("breast", "ce", "scaled_common_pairs")]
        assert common["difference"] == pytest.approx(((0.1 - 0.4) / 2.0 + 0.4) / 2.0)
        fewer = found.loc[("breast", "ce", "scaled_infinite_pairs")]
        assert fewer["difference"] == pytest.approx(-1.0)
        assert fewer["error"] == pytest.approx(0.0)

    def test_infinite_indices_are_counted_not_averaged(self):
        results = fabricated()
        first = (results["trial"] == 0) & (results["dataset"] == "breast")
        results.loc[first, "fragility_index"] = np.inf
        table = models(results).set_index(["dataset", "method", "pick"])
        row = table.loc[("breast", "ERM", "ce")]
        assert row["infinite_trials"] == 1
        assert row["fragility_index"] == pytest.approx(0.2525 + 0.005)
        found = differences(results).set_index(["dataset", "pick", "measure"])
        assert found.loc[("breast", "ce", "fragility_index"), "pairs"] == 3

    def test_claims(self):
        results = fabricated()
        rules = {claim.says: claim.rule for claim in medmnist.EXPERIMENT.claims}

        def holds(says, results):
            (rule,) = [rule for text, rule in rules.items() if says in text]
            return rule(results).holds

        for model in ("figures of ERM", "figures of the regularised"):
            assert holds(model, results) == "holds"
            assert holds(model, results.assign(log_loss=9.0)) == "holds partly"
        gains = "lowers cross-entropy and index"
        assert holds(gains, results) == "holds"
        for says in ("figures of ERM", gains, "comparable to those of ERM"):
            (rule,) = [rule for text, rule in rules.items() if says in text]
            assert rule(results).because.endswith("Ours are two of the paper's nine sets.")
        assert holds(gains, results.assign(log_loss=1.0)) == "holds partly"  # of two one
        same = results.assign(log_loss=1.0, capped_fragility_index=1.0)
        assert holds(gains, same) == "does not hold"
        assert holds("comparable to those of ERM", same.assign(accuracy=0.9)) == "holds"
        by_method = 0.1 * (results["method"] == "Regulariser")
        assert holds(
            "comparable to those of ERM", same.assign(auc_ovr=by_method, accuracy=by_method)
        ) == ("does not hold")
        fair = results.assign(scaled_fragility_index=1.0 - by_method, scaled_log_loss=1.0)
        assert holds("lowers the index at", fair) == "holds partly"  # of two kinds one
        assert holds("lowers the index at", results) == "does not hold"
        shaky = results["epochs"] * (1.0 + (results["trial"] + 1.0) * by_method)
        assert holds("more epochs", results.assign(epochs=shaky**0.5)) == "holds partly"
        assert holds("more epochs", results.assign(epochs=shaky**2)) == "holds"
        shaky = results["epochs"] + results["trial"] * by_method - 1.5 * by_method
        assert holds("more epochs", results.assign(epochs=shaky)) == "does not hold"
        (rule,) = [rule for text, rule in rules.items() if "more epochs" in text]
        assert rule(results) is None  # all at one limit

    def test_claims_about_the_bound(self):
        results = pd.concat([fabricated(), fabricated().replace("ERM", "Regulariser weak")])
        results = results.drop_duplicates(["dataset", "method", "pick", "trial"])
        rules = {claim.says: claim.rule for claim in medmnist.EXPERIMENT.claims}
        strong = results["method"] == "Regulariser"
        within = results.assign(bound=1.0 - 0.5 * strong)
        assert rules["A smaller λ₀ gives a smaller k."](within).holds == "holds"
        over = results.assign(bound=1.0 + 0.5 * strong)
        assert rules["A smaller λ₀ gives a smaller k."](over).holds == "does not hold"
        fits = rules["A larger λ₀ gives no larger training loss."]
        assert fits(results) is None
        assert fits(results.assign(train_log_loss=0.1 + 0.5 * strong)).holds == "holds"
        assert fits(results.assign(train_log_loss=0.1)).holds == "holds"
        assert fits(results.assign(train_log_loss=1.0 - 0.5 * strong)).holds == "does not hold"
        # Trainings without their partner decide nothing.
        lonely = results.assign(train_log_loss=0.1 + 0.5 * strong)
        lonely.loc[~strong & (lonely["trial"] > 0), "train_log_loss"] = np.nan
        pairs = lonely["dataset"].nunique()
        assert f"in {pairs} of {pairs} pairs" in fits(lonely).because

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
        assert training._capped(truth, p, classes) == pytest.approx(np.mean(expected), rel=1e-9)
        found = training._pairs(truth, p, classes)
        np.testing.assert_allclose(np.minimum(found, 10.0), expected, rtol=1e-9)
        alone = training._pairs(truth[truth < 2], p[truth < 2][:, :2], np.arange(2))
        assert alone.tolist() == [fragility_index(truth[truth < 2], p[truth < 2, 1])]

    def test_checkpoints_are_by_name_and_seed(self, monkeypatch, tmp_path):
        """Every training that runs beside others has a file of its own, gone in the end."""
        used = []

        def train(build, data, settings, *, seed, checkpoint):
            used.append(checkpoint)
            if checkpoint:
                checkpoint.touch(exist_ok=False)
            return SimpleNamespace(
                restore=lambda: 1, objective=SimpleNamespace(judged=torch.nn.Identity())
            )

        monkeypatch.setattr(training, "train", train)
        monkeypatch.setenv("FRAGILITY_CHECKPOINTS", str(tmp_path / "new"))
        data = images.images("breast", True, torch.device("cpu"))
        for seed in (1, 2):
            training.trained(data, Recipe(teachers=1), "7x7", seed, "breast-7x7-x")
        assert len(set(used)) == len(used) == 4  # with one teacher each
        assert all(path.name.startswith("breast-7x7-x-") for path in used)
        assert not any(path.exists() for path in used)
        monkeypatch.delenv("FRAGILITY_CHECKPOINTS")
        training.trained(data, Recipe(), "7x7", 1, "breast-7x7-x")
        assert used[-1] is None


class TestTraining:
    def test_teachers_and_averages(self, monkeypatch, tmp_path):
        """Real trainings: every teacher by its own seed, at its best epoch; killed and gone on."""
        monkeypatch.setattr(images, "_STAND_IN", ((16, 12, 12), 28, 2))
        monkeypatch.setenv("FRAGILITY_CHECKPOINTS", str(tmp_path))
        data = images.images("breast", True, torch.device("cpu"))
        recipe, done, kill = Recipe(teachers=2, average=1.0), [], 2
        real = training.train

        def train(*arguments, **settings):
            if len(done) == kill:
                raise KeyboardInterrupt
            done.append(real(*arguments, **settings))
            return done[-1]

        monkeypatch.setattr(training, "train", train)
        with pytest.raises(KeyboardInterrupt):
            training.trained(data, recipe, "7x7", 5, "x")
        first, kill = list(done), 99
        done.clear()
        student = training.trained(data, recipe, "7x7", 5, "x")
        assert not list(tmp_path.iterdir())
        assert done[-1] is student
        weights = []
        for teacher, before, found in zip(done[:2], first, student.objective.teachers, strict=True):
            assert teacher.history == before.history  # read again, not trained again
            best = teacher.best["ce"]["weights"]
            assert all(torch.equal(value, best[name]) for name, value in found.state_dict().items())
            weights.append(found.fc.weight)
        assert not torch.equal(*weights)
        # What is kept is the average and not the last weights.
        best = student.best["ce"]
        assert best["epoch"] == len(student.history)
        kept, last = best["weights"]["conv1.weight"], student.objective.network.conv1.weight
        assert torch.equal(kept, student.objective.averaged.conv1.weight)
        assert not torch.equal(kept, last)
        assert student.objective.train().network.training
        assert not student.objective.judged.training

    def test_temperature_is_of_the_validation_images(self):
        """A network that says its inputs; the images to be judged would ask for another one."""
        rng = torch.Generator().manual_seed(0)
        labels = torch.arange(60) % 3
        logits = torch.randn(60, 3, generator=rng) + torch.nn.functional.one_hot(labels, 3)
        network = SimpleNamespace(logits=lambda inputs: inputs)
        row = training.judged(network, (logits, labels), (7.0 * logits, labels), seed=0)
        own = training.judged(network, (logits, labels), (logits, labels), seed=0)
        assert row["temperature"] == pytest.approx(7.0 * own["temperature"], rel=1e-6)
        assert row["log_loss"] == own["log_loss"]
        scaled = (logits.double() / row["temperature"]).softmax(1).numpy()
        assert row["scaled_fragility_index"] == pytest.approx(
            fragility_index(labels.numpy(), scaled), rel=1e-6
        )
        pairs = np.array(row["scaled_pairs"].split(), float)
        assert pairs.mean() == pytest.approx(row["scaled_fragility_index"], rel=1e-4)

    def test_training_loss_is_of_the_last_epoch(self, monkeypatch):
        """Not of the best one, whose weights are put back before the test images are judged."""
        labels = torch.tensor([0, 1, 1])
        logits = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
        network = SimpleNamespace(logits=lambda inputs: inputs)
        said = np.log1p(np.exp([-1.0, -2.0, 3.0])).mean()
        assert training.log_loss(network, (logits, labels)) == pytest.approx(said, rel=1e-12)

        restored = []

        def loss(network, part):
            assert len(part[1]) == 16  # the training images
            return float(len(restored))

        monkeypatch.setattr(images, "_STAND_IN", ((16, 12, 14), 28, 2))
        monkeypatch.setattr(training.Trained, "restore", lambda *pick: restored.append(pick) or 1)
        monkeypatch.setattr(training, "log_loss", loss)
        rows = list(medmnist.trial({"dataset": "breast", "stem": "7x7", "method": "ERM"}, 0, True))
        assert len(restored) == 2
        assert [row["train_log_loss"] for row in rows] == [0.0, 0.0]

    def test_every_method_is_trained_by_its_recipe(self, monkeypatch):
        """Those of the table and the parts of the recipe."""

        def trained(data, recipe, stem, seed, name):
            raise LookupError(recipe)

        monkeypatch.setattr(training, "trained", trained)
        for method, changes in {**medmnist.METHODS, **medmnist.PARTS}.items():
            condition = {"dataset": "breast", "stem": "7x7", "method": method}
            with pytest.raises(LookupError) as found:
                next(medmnist.trial(condition, 0, True))
            assert found.value.args == (Recipe(**changes),)

    def test_the_search_sees_no_test_images(self, monkeypatch):
        class Unseen:
            def __getitem__(self, place):
                raise AssertionError("a test image was looked at")

        real = images.images

        def found(*arguments):
            return real(*arguments)._replace(test=Unseen())

        monkeypatch.setattr(images, "_STAND_IN", ((16, 12, 12), 28, 2))
        monkeypatch.setattr(images, "images", found)
        condition = {"dataset": "breast", "recipe": "ERM"}
        (row,) = medmnist_search.trial(condition, 0, True)
        assert 0.0 <= row["accuracy"] <= 1.0
        with pytest.raises(AssertionError, match="a test image"):
            list(medmnist.trial({"dataset": "breast", "stem": "7x7", "method": "ERM"}, 0, True))


def test_summary_and_documentation():
    """The tables in the documentation are those of the committed results."""
    folder = Path(medmnist.__file__).parent
    documentation = (folder.parent / "docs" / "torch.md").read_text("utf-8")
    for stem in medmnist.STEMS:
        text = (folder / "results" / "medmnist" / f"table_summary_{stem}.md").read_text("utf-8")
        assert text in documentation
    results = fabricated()
    assert summary(results, ["breast", "blood"], "3x3").empty
    table = summary(results, ["breast", "blood"], "7x7")
    assert table["method"].tolist() == ["Regulariser"]
    change = 0.1844 - 0.2525
    assert table["Breast"].tolist() == [f"−{-change:.3f}▼ / +.000 / +.000".replace("0.", ".", 1)]


def test_where_a_method_is_lower_at_equal_calibration():
    """Clearly, by both kinds; higher by any."""
    results = fabricated()
    method, blood = results["method"] == "Regulariser", results["dataset"] == "blood"
    results["scaled_fragility_index"] -= 0.1 * method
    results["calibrated_fragility_index"] -= 0.1 * (method & ~blood) - 0.01 * (method & blood)
    (row,) = equal_calibration(results, ["breast", "blood"]).to_dict("records")
    assert row == {
        "method": "Regulariser", "cells": 2, "lower by both": 1, "higher by any": 1,
        "lower": "Breast 7x7", "higher": "Blood 7x7",
    }  # fmt: skip
    # Lower by mean is not clearly lower.
    results.loc[method, "scaled_fragility_index"] = np.where(
        results[method]["trial"] > 2, -9.0, 1.0
    )
    (row,) = equal_calibration(results, ["breast"]).to_dict("records")
    assert (row["cells"], row["lower by both"], row["higher by any"]) == (1, 0, 0)


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
