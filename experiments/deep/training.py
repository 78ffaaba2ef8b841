"""One training on medical images, by a recipe; and what it came to on some of them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor
from torch.nn import functional

from experiments.deep.images import Images
from experiments.deep.recipe import Objective, Recipe
from experiments.deep.resnet import ResNet18
from experiments.deep.steps import batch_sizes
from experiments.deep.trainer import Data, Settings, Trained, train
from experiments.experiment import Row
from experiments.merit import CAP, merits
from fragility import measure_fragility
from fragility.torch import fit_temperature

__all__ = ["DEVICE", "judged", "log_loss", "trained"]

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
#: Most epochs where 100 would take long.
_EPOCHS = {"pneumonia": 60, "blood": 40}


def trained(data: Images, recipe: Recipe, stem: str, seed: int, name: str = "") -> Trained:
    """A network by this recipe, after its teachers if it has any.

    With a `name` and a folder in ``FRAGILITY_CHECKPOINTS`` a training that was killed goes on from
    its last epoch.
    """
    checkpoints: list[Path] = []
    result = _trained(data, recipe, stem, seed, name, checkpoints)
    for checkpoint in checkpoints:
        checkpoint.unlink(missing_ok=True)
    return result


def _trained(
    data: Images, recipe: Recipe, stem: str, seed: int, name: str, checkpoints: list[Path]
) -> Trained:
    fast = DEVICE.type == "cuda"
    epochs = 2 if data.is_stand_in else _EPOCHS.get(data.name, 100)
    settings = Settings(epochs=epochs, bfloat16=fast and stem == "3x3", graphs=fast)
    epoch_steps = len(batch_sizes(len(data.train[0]), settings.batch_size))
    alone = replace(recipe, teachers=0)
    teachers = []
    for number in range(recipe.teachers):
        own_seed = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
        named = name and f"{name}-{number}"
        found = _trained(data, alone, stem, own_seed, named, checkpoints)
        found.restore()
        teachers.append(found.objective.judged)

    def build() -> Objective:
        network = ResNet18(data.n_classes, stem)  # type: ignore[arg-type]
        if fast:
            network = network.to(memory_format=torch.channels_last)
        return recipe.objective(network, network.fc, data.n_classes, epoch_steps, teachers)

    checkpoint = _checkpoint(f"{name}-{seed}") if name else None
    if checkpoint is not None:
        checkpoints.append(checkpoint)
    return train(build, Data(*data.train, *data.val), settings, seed=seed, checkpoint=checkpoint)


def _checkpoint(name: str) -> Path | None:
    folder = os.environ.get("FRAGILITY_CHECKPOINTS")
    if not folder:
        return None
    Path(folder).mkdir(parents=True, exist_ok=True)
    return Path(folder) / f"{name}.pt"


def log_loss(network: Trained, part: tuple[Tensor, Tensor]) -> float:
    """Mean cross-entropy on some images, as they are, with the present weights."""
    return float(functional.cross_entropy(network.logits(part[0]).double(), part[1]))


def judged(
    network: Trained, part: tuple[Tensor, Tensor], val: tuple[Tensor, Tensor], seed: int
) -> Row:
    """Merits on some images; also after a temperature that the validation images chose."""
    logits = network.logits(part[0]).double()
    truth = part[1].cpu().numpy()
    classes = np.arange(logits.shape[1])
    temperature = fit_temperature(network.logits(val[0]), val[1])
    p = logits.softmax(1).cpu().numpy()
    scaled = (logits / temperature).softmax(1).cpu().numpy()
    after = merits(truth, scaled, classes, seed)
    return {
        **merits(truth, p, classes, seed),
        "auc_ovr": _auc_ovr(truth, p),
        "capped_fragility_index": _capped(truth, p, classes),
        "temperature": temperature,
        "scaled_fragility_index": after["fragility_index"],
        "scaled_log_loss": after["log_loss"],
        "scaled_pairs": " ".join(f"{pair:.6g}" for pair in _pairs(truth, scaled, classes)),
    }


def _auc_ovr(truth: Any, p: Any) -> float:
    """Mean AUC of each class against the rest, as MedMNIST defines it."""
    if p.shape[1] == 2:
        return float(roc_auc_score(truth, p[:, 1]))
    return float(roc_auc_score(truth, p, multi_class="ovr", labels=np.arange(p.shape[1])))


def _pairs(truth: Any, p: Any, classes: Any) -> Any:
    """The index of every ordered pair of classes; of two classes the one there is."""
    if classes.size == 2:
        return np.array([measure_fragility(truth, p[:, 1], labels=classes).value])
    found = measure_fragility(truth, p, labels=classes).pairs
    return found[~np.eye(classes.size, dtype=bool)]


def _capped(truth: Any, p: Any, classes: Any) -> float:
    """The index with infinite pairs counted as a large number."""
    return float(np.nanmean(np.minimum(_pairs(truth, p, classes), CAP)))
