"""Trains a network by the paper's protocol, and after a kill goes on from where it was."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.optim.lr_scheduler import ReduceLROnPlateau

from experiments.deep.progress import epoch_bar
from experiments.deep.recipe import Objective
from experiments.deep.steps import EagerSteps, GraphedSteps
from fragility._files import replacing
from fragility.torch import fragility_index

__all__ = ["PICKS", "Data", "Epoch", "Settings", "Trained", "train"]

#: How the epoch whose weights are kept is chosen, on validation data: the least of these.
PICKS = ("ce", "ce+fi")
#: Of the checkpoint files.
_FORMAT = 1
#: Samples at a time where nothing is trained.
_MANY = 1024


@dataclass(frozen=True)
class Settings:
    """The paper's protocol.

    Parameters
    ----------
    epochs : int
        At most so many.
    batch_size : int
    learning_rate, weight_decay : float
        Of Adam.
    plateau_patience : int
    plateau_factor : float
        The rate is multiplied by the factor after more than so many epochs without progress.
    stop_patience : int
        Training ends after so many epochs without a better validation cross-entropy.
    bfloat16 : bool
        Compute in bfloat16 where PyTorch holds that safe.
    graphs : bool
        Replay the steps as CUDA graphs; on CUDA only.
    """

    epochs: int = 100
    batch_size: int = 128
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    plateau_patience: int = 5
    plateau_factor: float = 0.1
    stop_patience: int = 30
    bfloat16: bool = False
    graphs: bool = False


class Data(NamedTuple):
    """Training and validation data, as tensors on the device of the training."""

    inputs: Tensor
    labels: Tensor
    validation_inputs: Tensor
    validation_labels: Tensor


class Epoch(NamedTuple):
    """What one epoch came to."""

    number: int
    loss: float
    learning_rate: float
    cross_entropy: float
    fragility_index: float


@dataclass
class Trained:
    """A trained network: its history, and the best weights by each choice of the epoch.

    Attributes
    ----------
    objective : Objective
        As it was after the last epoch; see `restore`.
    history : list of Epoch
    best : dict
        For each of `PICKS` the number of the epoch, its score and its weights.
    """

    objective: Objective
    history: list[Epoch] = field(default_factory=list)
    best: dict[str, dict[str, Any]] = field(default_factory=dict)

    def restore(self, pick: str = "ce") -> int:
        """Give the network the weights of its best epoch; returns the number of that epoch."""
        if pick not in self.best:
            raise ValueError(
                f"There are no best weights by {pick!r}, only: {', '.join(self.best) or 'none'}. "
                "If no epoch had a finite loss, try a smaller learning rate."
            )
        self.objective.judged.load_state_dict(self.best[pick]["weights"])
        return int(self.best[pick]["epoch"])

    def logits(self, inputs: Tensor) -> Tensor:
        """Logits of many samples, in evaluation mode, without gradients."""
        self.objective.eval()
        with torch.no_grad():
            return torch.cat([self.objective.logits(part) for part in inputs.split(_MANY)])


def train(
    build: Callable[[], Objective],
    data: Data,
    settings: Settings,
    *,
    seed: int = 0,
    checkpoint: Path | None = None,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    progress: bool = False,
) -> Trained:
    """Train until the validation loss has stopped falling.

    The seed decides everything that is random, and each epoch is seeded by itself: a run that was
    killed and goes on gives, on a CPU, the same bits as one that was not.

    Parameters
    ----------
    build : callable
        Makes the objective; its random start comes from the seed.
    data : Data
    settings : Settings
    seed : int, default=0
    checkpoint : Path, optional
        Written after each epoch, whole or not at all. If it is there, training goes on from it; one
        of another training is an error.
    on_epoch : callable, optional
        Told each epoch, after the checkpoint is written.
    progress : bool, default=False
        Whether to show a bar with losses and index.

    Returns
    -------
    Trained
        With the weights of the last epoch; `Trained.restore` gives it the best ones.
    """
    _check(data, settings)
    devices = [data.inputs.device] if data.inputs.device.type == "cuda" else []
    with torch.random.fork_rng(devices), epoch_bar(settings.epochs, shown=progress) as show:
        _seed(seed, 0)
        run = _Run(build(), data, settings)
        identity = _identity(run.trained.objective, data, settings, seed)
        if checkpoint is not None and checkpoint.exists():
            run.load(_read(checkpoint, identity, data.inputs.device))
        steps = run.steps()
        for epoch in run.trained.history:
            show(epoch)
        while not run.finished:
            _seed(seed, len(run.trained.history) + 1)
            epoch = run.epoch(steps)
            if checkpoint is not None:
                with replacing(checkpoint) as temporary:
                    torch.save({**run.state(), "identity": identity}, temporary)
            show(epoch)
            on_epoch(epoch)
    return run.trained


class _Run:
    """Everything that changes during training."""

    def __init__(self, objective: Objective, data: Data, settings: Settings) -> None:
        self.data, self.settings = data, settings
        objective.to(data.inputs.device)
        objective.bfloat16 = settings.bfloat16
        self.trained = Trained(objective)
        self.optimizer = _adam(objective, settings, data.inputs.device)
        self.scheduler = ReduceLROnPlateau(
            self.optimizer, patience=settings.plateau_patience, factor=settings.plateau_factor
        )

    def steps(self) -> EagerSteps:
        """What goes through an epoch; to be made after `load`."""
        kind = GraphedSteps if self.settings.graphs else EagerSteps
        data, size = self.data, self.settings.batch_size
        return kind(self.trained.objective, self.optimizer, data.inputs, data.labels, size)

    @property
    def finished(self) -> bool:
        history = self.trained.history
        if not history:
            return self.settings.epochs < 1
        last, best = history[-1], self.trained.best.get("ce", {"epoch": 0})
        return (
            len(history) >= self.settings.epochs
            or last.number - best["epoch"] >= self.settings.stop_patience
            or not math.isfinite(last.cross_entropy)
        )

    def epoch(self, steps: EagerSteps) -> Epoch:
        """Train one more epoch, judge it, and keep it if it is the best so far."""
        rate = float(self.optimizer.param_groups[0]["lr"])
        loss = steps.epoch(torch.randperm(len(self.data.inputs))).item()
        judged = Epoch(len(self.trained.history) + 1, loss, rate, *self._judged())
        self.trained.history.append(judged)
        self.scheduler.step(judged.cross_entropy)
        ce = judged.cross_entropy
        # An infinite index says nothing of the rest: then cross-entropy decides.
        scores = {"ce": (ce,), "ce+fi": (ce + judged.fragility_index, ce)}
        for pick in PICKS:
            found, best = scores[pick], self.trained.best.get(pick)
            if math.isfinite(ce) and (best is None or found < tuple(best["score"])):
                weights = self.trained.objective.judged.state_dict()
                self.trained.best[pick] = {
                    "epoch": judged.number,
                    "score": list(found),
                    "weights": {name: value.clone() for name, value in weights.items()},
                }
        return judged

    def _judged(self) -> tuple[float, float]:
        """Cross-entropy and index of the validation data."""
        labels = self.data.validation_labels
        logits = self.trained.logits(self.data.validation_inputs).double()
        loss = functional.cross_entropy(logits, labels).item()
        if not math.isfinite(loss):
            return loss, math.nan
        return loss, fragility_index(logits.softmax(1), labels).item()

    def state(self) -> dict[str, Any]:
        """Everything that `load` needs."""
        return {
            "objective": self.trained.objective.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "best": self.trained.best,
            "history": [list(epoch) for epoch in self.trained.history],
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Go back to what was saved."""
        self.trained.objective.load_state_dict(state["objective"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.trained.best = dict(state["best"])
        self.trained.history = [Epoch(*values) for values in state["history"]]


def _adam(objective: Objective, settings: Settings, device: torch.device) -> torch.optim.Adam:
    groups = objective.parameter_groups(settings.weight_decay)
    if not settings.graphs:
        return torch.optim.Adam(groups, lr=settings.learning_rate)
    for group in groups:
        # Its own tensor: of a common one the scheduler would take a tenth once for each group.
        group["lr"] = torch.tensor(settings.learning_rate, device=device)
    return torch.optim.Adam(groups, capturable=True, fused=True)


def _seed(seed: int, epoch: int) -> None:
    """Seed the random numbers of an epoch (0: of the start) by itself: nothing need be saved."""
    torch.manual_seed(int(np.random.SeedSequence([seed, epoch]).generate_state(1)[0]))


def _check(data: Data, settings: Settings) -> None:
    kinds = {str(part.device) for part in data}
    if len(kinds) > 1:
        raise ValueError(
            f"All data must be on one device; these are on {', '.join(sorted(kinds))}."
        )
    if settings.graphs and data.inputs.device.type != "cuda":
        raise ValueError(
            f"graphs=True needs data on a CUDA device; these are on {data.inputs.device}."
        )
    for x, y, name in ((data[0], data[1], "training"), (data[2], data[3], "validation")):
        if len(x) != len(y) or len(x) < 2:
            raise ValueError(
                f"The {name} data need as many labels as inputs, at least two; got {len(x)} inputs "
                f"and {len(y)} labels."
            )


def _identity(objective: Objective, data: Data, settings: Settings, seed: int) -> dict[str, Any]:
    """What must be the same for training to go on; more epochs are no other training."""
    shapes = {name: list(value.shape) for name, value in objective.state_dict().items()}
    return {
        "format": _FORMAT,
        "seed": int(seed),
        **{f"settings.{k}": v for k, v in asdict(settings).items() if k != "epochs"},
        **{f"recipe.{k}": v for k, v in asdict(objective.recipe).items()},
        "network": crc32(repr(sorted(shapes.items())).encode()),
        "inputs": [list(data.inputs.shape), list(data.validation_inputs.shape)],
        "labels": [_crc(data.labels), _crc(data.validation_labels)],
    }


def _crc(labels: Tensor) -> int:
    return crc32(labels.cpu().numpy().tobytes())


def _read(path: Path, identity: Mapping[str, Any], device: torch.device) -> Mapping[str, Any]:
    try:
        state: Mapping[str, Any] = torch.load(path, map_location=device, weights_only=True)
        there = state["identity"]
    except (RuntimeError, EOFError, KeyError, TypeError, pickle.UnpicklingError) as error:
        raise ValueError(
            f"{path} is no checkpoint of this trainer, or damaged: delete it to start over. "
            f"({str(error).splitlines()[0] if str(error) else type(error).__name__})"
        ) from error
    other = [
        f"{name} {there.get(name)!r}, now {value!r}"
        for name, value in identity.items()
        if there.get(name) != value
    ]
    if other:
        raise ValueError(
            f"{path} belongs to another training ({'; '.join(other)}). Delete it to start over, or "
            "name another file."
        )
    return state
