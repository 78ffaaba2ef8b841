"""What a recipe is made of and chosen by: moved images, averages, teachers, the frozen file."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch")

from experiments import files, medmnist, medmnist_frozen, medmnist_search  # noqa: E402
from experiments.deep.images import Images, moved  # noqa: E402
from experiments.deep.recipe import Recipe  # noqa: E402
from experiments.deep.steps import EagerSteps  # noqa: E402
from experiments.experiment import RefusedError  # noqa: E402
from experiments.journal import Unit  # noqa: E402
from experiments.medmnist_report import MEASURES  # noqa: E402
from experiments.worker import work  # noqa: E402


def layers():
    network = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 3)
    )
    return network, network[-1]


class TestMoved:
    def test_strength_zero_only_mirrors(self):
        torch.manual_seed(0)
        images = torch.rand(16, 3, 9, 9)
        found = moved(images, 0.0)
        mirrored = [
            torch.allclose(new, old.flip(-1), atol=1e-5)
            for new, old in zip(found, images, strict=True)
        ]
        same = [torch.allclose(new, old, atol=1e-5) for new, old in zip(found, images, strict=True)]
        assert all(a != b for a, b in zip(mirrored, same, strict=True))
        assert 3 < sum(mirrored) < 13

    def test_moves_by_what_it_says(self):
        """A bright point in the middle stays within two pixels, and the mean of images stays."""
        torch.manual_seed(1)
        images = torch.zeros(200, 1, 29, 29)
        images[:, :, 14, 14] = 1.0
        found = moved(images, 1.0)
        weight = found.sum((1, 2, 3))
        places = torch.arange(29.0)
        right = (found.sum((1, 2)) * places).sum(1) / weight - 14.0
        down = (found.sum((1, 3)) * places).sum(1) / weight - 14.0
        distance = torch.maximum(right.abs(), down.abs())
        assert distance.max() < 2.0 * 1.1 + 0.6  # shifted, scaled, and spread over pixels
        assert distance.mean() > 0.7
        assert abs(right.mean()) < 0.3


class TestAverage:
    def test_is_the_average_of_the_weights(self):
        torch.manual_seed(0)
        network, last = layers()
        objective = Recipe(average=0.5).objective(network, last, 3, epoch_steps=4)
        x, y = torch.randn(40, 4), torch.arange(40) % 3
        optimizer = torch.optim.Adam(objective.parameter_groups(0.0), lr=0.1)
        steps = EagerSteps(objective, optimizer, x, y, 10)
        objective.train()
        fresh, kept = 1.0 - np.exp(-1.0 / 2.0), None
        for number in range(1, 9):
            steps.step(torch.arange(10) + 10 * (number % 4))
            new = {n: v.clone() for n, v in network.state_dict().items() if v.is_floating_point()}
            share = max(fresh, 1.0 / number)
            kept = kept or {n: torch.zeros_like(v) for n, v in new.items()}
            kept = {n: (1.0 - share) * kept[n] + share * new[n] for n in new}
        averaged = objective.judged.state_dict()
        assert objective.judged is not network
        for name, value in kept.items():
            torch.testing.assert_close(averaged[name], value)
        objective.eval()
        torch.testing.assert_close(objective.logits(x), objective.judged(x))
        assert all(p.grad is None for p in objective.judged.parameters())

    def test_none_by_default(self):
        network, last = layers()
        objective = Recipe().objective(network, last, 3, epoch_steps=4)
        assert objective.judged is network


def test_teachers_are_what_is_learned_from():
    torch.manual_seed(0)
    network, last = layers()
    teachers = [layers()[0] for _ in range(2)]
    objective = Recipe(teachers=2).objective(network, last, 3, 4, teachers)
    x, y = torch.randn(12, 4), torch.arange(12) % 3
    objective.train()
    assert not any(teacher.training for teacher in objective.teachers)
    loss = objective(x, y)
    with torch.no_grad():
        targets = torch.stack([teacher.eval()(x).softmax(1) for teacher in teachers]).mean(0)
        network.train()
        said = -(targets * network(x).log_softmax(1)).sum(1).mean()
    assert loss.item() == pytest.approx(said.item(), rel=1e-5)
    with pytest.raises(ValueError, match="has 2 teachers; 0 are given"):
        Recipe(teachers=2).objective(network, last, 3, 4)
    trained = {id(p) for group in objective.parameter_groups(0.0) for p in group["params"]}
    assert not trained & {id(p) for teacher in teachers for p in teacher.parameters()}


def test_tightening_grows_with_the_steps():
    torch.manual_seed(0)
    network, last = layers()
    objective = Recipe(regularizer=0.1, tightening=2).objective(network, last, 3, epoch_steps=5)
    plain = Recipe().objective(network, last, 3, epoch_steps=5)
    x, y = torch.randn(12, 4), torch.arange(12) % 3
    for step in range(13):
        added = (objective(x, y) - plain(x, y)).item()
        full = objective.penalty().item()
        assert added == pytest.approx(min(step / 10.0, 1.0) * full, rel=1e-4, abs=1e-5)
        objective.after_step()


class TestTempered:
    def test_smaller_logits_change_nothing(self):
        """The index term has no gradient along the logits themselves; without it, it has."""
        torch.manual_seed(0)
        network, last = torch.nn.Identity(), torch.nn.Linear(2, 3)
        logits, y = torch.randn(30, 3), torch.arange(30) % 3
        logits = (logits + torch.nn.functional.one_hot(y, 3)).requires_grad_()
        plain = Recipe().objective(network, last, 3, epoch_steps=5)
        centred = logits - logits.mean(1, keepdim=True)
        along = {}
        for tempered in (False, True):
            recipe = Recipe(direct=1.0, tempered=tempered)
            objective = recipe.objective(network, last, 3, epoch_steps=5)
            for _ in range(5):
                objective(logits, y)  # the bank fills
            added = objective(logits, y) - plain(logits, y)
            (slope,) = torch.autograd.grad(added, logits)
            along[tempered] = (slope * centred).sum().item() / (slope.norm() * centred.norm())
        assert abs(along[True]) < 1e-5
        assert abs(along[False]) > 1e-2

    def test_scale_is_learned_by_cross_entropy(self):
        torch.manual_seed(0)
        network, last = layers()
        objective = Recipe(direct=0.3, tempered=True).objective(network, last, 3, epoch_steps=5)
        (_, added) = objective.parameter_groups(1e-4)
        assert [id(p) for p in added["params"]] == [id(objective.log_scale)]
        x, y = torch.randn(60, 4), torch.arange(60) % 3
        shape = network(x).detach()
        shape = shape - shape.mean(1, keepdim=True)
        shape = shape / shape.square().mean().sqrt()
        (slope,) = torch.autograd.grad(objective(x, y), objective.log_scale)
        scale = torch.zeros((), requires_grad=True)
        loss = torch.nn.functional.cross_entropy(scale.exp() * shape, y)
        (expected,) = torch.autograd.grad(loss, scale)
        assert slope.item() == pytest.approx(expected.item(), rel=1e-4)


class TestFrozen:
    @pytest.fixture
    def recipe(self, tmp_path, monkeypatch):
        path = tmp_path / "recipe.json"
        monkeypatch.setattr(medmnist_frozen, "RECIPE", path)
        medmnist_frozen.frozen_recipe.cache_clear()
        yield path
        medmnist_frozen.frozen_recipe.cache_clear()

    def git(self, folder, *arguments):
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", "-C", folder, *who, *arguments], check=True, capture_output=True)

    def test_refused_until_committed_as_it_is(self, recipe, tmp_path, monkeypatch):
        recipe.write_text(json.dumps({"recipe": {"mixup": 1.0}}))
        condition = {"dataset": "breast", "stem": "7x7", "method": medmnist_frozen.FROZEN}
        nothing = Images((), (), (), 2, "breast")
        monkeypatch.setattr("experiments.deep.images.images", lambda *arguments: nothing)
        told = work(medmnist.trial, Unit(condition, 0), 0, False).failure
        assert told.startswith("recipe.json is not committed")  # and no traceback before it
        self.git(tmp_path, "init")
        self.git(tmp_path, "add", "recipe.json")
        with pytest.raises(RefusedError, match="not committed"):
            medmnist_frozen.frozen_recipe()
        self.git(tmp_path, "commit", "-m", "frozen")
        assert medmnist_frozen.frozen_recipe() == {"mixup": 1.0}
        medmnist_frozen.frozen_recipe.cache_clear()
        recipe.write_text(json.dumps({"recipe": {"mixup": 0.5}}))
        with pytest.raises(RefusedError, match="not committed"):
            medmnist_frozen.frozen_recipe()
        self.git(tmp_path, "update-index", "--assume-unchanged", "recipe.json")
        with pytest.raises(RefusedError, match="not committed"):  # git does not say so, we see it
            medmnist_frozen.frozen_recipe()
        monkeypatch.setenv("PATH", "")
        with pytest.raises(RefusedError, match="git is needed"):
            medmnist_frozen.frozen_recipe()

    def test_cells_and_calibration(self):
        results = self.fabricated()
        cells = medmnist_frozen.cells(results)
        assert len(cells) == 16
        missed = cells[~cells["better than both"]]
        assert missed[["dataset", "figure"]].values.tolist() == [["blood", "auc"]]
        goal = medmnist_frozen.better_than_printed(results)
        assert goal.holds == "holds partly"  # all sixteen were the goal
        assert "15 of 16" in goal.because
        assert "worse by as much in 1. Not better: blood auc" in goal.because
        goal = medmnist_frozen.better_than_printed(results.assign(accuracy=0.0))
        assert goal.because.endswith("with less: ERM 11.")  # as the recipe: four less, and that AUC
        assert medmnist_frozen.better_than_printed(results.assign(auc_ovr=1.0)).holds == "holds"
        assert medmnist_frozen.better_than_printed(results.assign(method="ERM")) is None

    def test_calibrated(self):
        results = self.fabricated()
        table = medmnist_frozen.calibrated(results)
        assert len(table) == 12
        assert table["lower"].all()
        assert table["clearly"].all()
        np.testing.assert_allclose(table["scaled_common_pairs"], -0.1, atol=1e-3)
        goal = medmnist_frozen.lower_at_equal_calibration(results)
        assert goal.holds == "holds"
        assert "ERM on 4 of 4 sets" in goal.because
        assert "(clearly on 4), on 4 after cross-fitted" in goal.because
        once = results.assign(calibrated_fragility_index=0.5)  # lower by one kind is not enough
        assert medmnist_frozen.lower_at_equal_calibration(once).holds == "does not hold"
        erm = results["method"] == "ERM"  # lower than two of three
        two = results.assign(
            scaled_pairs=results["scaled_pairs"].where(~erm, "0.05"),
            calibrated_fragility_index=results["calibrated_fragility_index"].where(~erm, 0.05),
        )
        assert medmnist_frozen.lower_at_equal_calibration(two).holds == "holds partly"
        frozen = results["method"] == medmnist_frozen.FROZEN
        more = results.assign(
            scaled_pairs=results["scaled_pairs"].where(~frozen, results["scaled_pairs"] + " inf")
        )
        more["scaled_pairs"] = more["scaled_pairs"].where(frozen, more["scaled_pairs"] + " 0.3")
        assert not medmnist_frozen.calibrated(more)["lower"].any()  # one pair more is infinite
        assert medmnist_frozen.lower_at_equal_calibration(more).holds == "does not hold"

    def test_part_by_part(self):
        """Each less the one before: together, all of the recipe less ERM."""
        assert medmnist_frozen.part_by_part(self.fabricated()).empty
        first, second = medmnist_frozen.PARTS
        results = self.fabricated().replace({"Smoothing": first, "Mixup": second})
        table = medmnist_frozen.part_by_part(results)
        assert table["dataset"].tolist() == [name for name in medmnist_search.SETS for _ in "123"]
        assert table["method"].tolist()[:3] == [
            f"{first} less ERM", f"{second} less {first}", f"Frozen recipe less {second}",
        ]  # fmt: skip
        assert (table["trials"] == 4).all()
        calibrated = medmnist_frozen.calibrated(results).set_index("dataset")
        for name in ("scaled_common_pairs", "calibrated_fragility_index"):
            found = table.groupby("dataset")[name].sum()
            np.testing.assert_allclose(found, calibrated[name][found.index], rtol=1e-9)

    def test_parts_are_those_of_the_recipe(self):
        recipe = json.loads(medmnist_frozen.RECIPE.read_text("utf-8"))["recipe"]
        assert recipe.pop("teachers") == 3
        first, second = medmnist_frozen.PARTS.values()
        assert second == recipe
        assert {**first, "regularizer": recipe["regularizer"]} == second

    def fabricated(self):
        rng = np.random.default_rng(0)
        rows = []
        table = medmnist.printed().set_index(["dataset", "method"])
        for dataset in medmnist_search.SETS:
            erm = table.loc[(dataset, "ERM")]
            for method in (medmnist_frozen.FROZEN, *medmnist_frozen.OTHERS):
                for trial in range(4):
                    noise = rng.normal(0, 1e-4)
                    better = method == medmnist_frozen.FROZEN
                    row = dict.fromkeys(MEASURES, 1.0)
                    row |= {"accuracy": erm.accuracy + (0.05 if better else 0.0) + noise}
                    row |= {"auc_ovr": 1.0 if dataset != "blood" else 0.5, "log_loss": 0.1 + noise}
                    row |= {"capped_fragility_index": 0.01 + noise}
                    row |= {"scaled_pairs": f"{0.2 - 0.1 * better + noise}"}
                    row |= {"calibrated_fragility_index": 0.2 - 0.1 * better + noise}
                    names = {"dataset": dataset, "stem": "7x7", "method": method, "pick": "ce"}
                    rows.append({**names, "trial": trial, **row})
        return pd.DataFrame(rows)

    def test_the_frozen_recipe_is_the_one_that_won(self):
        """The file says what the committed search found, by the rule of the search."""
        folder = Path(medmnist_search.__file__).parent
        frozen = json.loads((folder / "recipe.json").read_text("utf-8"))
        results = files.load(folder / "results" / "medmnist_search")
        first = medmnist_search.ranking(results[results["trial"] < 2])
        assert set(first["recipe"]) == set(medmnist_search.CANDIDATES)
        assert set(first["recipe"][:4]) == set(medmnist_search.FINALISTS)
        final = results[results["recipe"].isin(medmnist_search.FINALISTS)]
        seeds = final.groupby(["dataset", "recipe"])["trial"].agg(tuple).unstack()
        assert (seeds.nunique(axis=1) == 1).all()  # all of them have the same
        best = medmnist_search.ranking(final)["recipe"].iloc[0]
        assert frozen["name"] == best
        assert frozen["recipe"] == medmnist_search.CANDIDATES[best]


def test_ranking_of_candidates():
    """A recipe that is best everywhere is first; infinite figures rank last."""
    rows = [
        {
            "recipe": recipe,
            "dataset": dataset,
            "trial": trial,
            "accuracy": level,
            "auc_ovr": level,
            "log_loss": 1.0 - level,
            "capped_fragility_index": 1.0 - level,
            "scaled_fragility_index": np.inf if recipe == "c" else 1.0 - level,
        }
        for recipe, level in (("a", 0.5), ("b", 0.8), ("c", 0.6))
        for dataset in ("breast", "blood")
        for trial in range(2)
    ]
    table = medmnist_search.ranking(pd.DataFrame(rows))
    assert table["recipe"].tolist() == ["b", "c", "a"]
    assert table["mean rank"].tolist() == pytest.approx([1.0, (4 * 2 + 3) / 5, (4 * 3 + 2) / 5])
    part = pd.DataFrame([row for row in rows if (row["recipe"], row["dataset"]) != ("b", "blood")])
    assert medmnist_search.ranking(part)["recipe"].tolist() == ["c", "a"]  # not on all sets
