"""The Fragility Index in Lightning: logged on validation, scheduled, and used to keep an epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, nan
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from .._labels import listed
from .._optional import needed_for
from .._parameters import check_count, check_number
from ..calibration import cross_fitted_calibration
from ..metrics import fragility_index
from ._checks import check_columns
from .metrics import MulticlassFragilityIndex

with needed_for("FragilityCallback is for Lightning", "lightning"):
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback  # type: ignore[assignment, unused-ignore]

from torchmetrics import MeanMetric

#: Cap on the index of a pair of classes in the comparison of epochs.
_CAP = 10.0

#: From the number of the epoch, from 0, to the value of a weight.
Schedule = Callable[[int], float]


def linear_ramp(value: float, warmup: int = 0, ramp: int = 0) -> Schedule:
    """A weight that is 0 for some epochs and then rises to its value in equal steps.

    Parameters
    ----------
    value : float
    warmup : int, default=0
        Epochs at 0.
    ramp : int, default=0
        Epochs of the rise; the last of them has the full value.

    Returns
    -------
    callable
        From the number of an epoch, from 0, to the weight.

    Examples
    --------
    >>> from fragility.torch import linear_ramp
    >>> [linear_ramp(1.0, warmup=1, ramp=4)(epoch) for epoch in range(6)]
    [0.0, 0.25, 0.5, 0.75, 1.0, 1.0]
    """
    full = check_number(value, "value")
    check_count(warmup, "warmup", least=0)
    check_count(ramp, "ramp", least=0)
    return lambda epoch: full * min(max(epoch - warmup + 1, 0) / max(ramp, 1), 1.0)


class FragilityCallback(Callback):  # type: ignore[misc, unused-ignore]
    """Log the index on validation, set weights by epoch, and keep the best epoch.

    ``validation_step`` must return a mapping with the logits and the true classes of its batch,
    such as ``{"logits": logits, "y_true": y_true}``. After every validation these figures over all
    processes are logged, each with the `prefix`:

    ``fragility``
        The index.
    ``fragility_ratio``
        Its scale-free companion.
    ``fragility_calibrated``
        The index after cross-fitted calibration, to compare models on equal terms: by Platt
        scaling for two classes, one temperature for several.
    ``cross_entropy``
    ``cross_entropy_fragility``
        The sum of cross-entropy and index, where the index of a pair of classes counts as at most
        10. Choose epochs by this figure, here or in ``ModelCheckpoint(monitor=...)``: the index
        alone would choose the epoch with the smallest scores.

    Parameters
    ----------
    n_classes : int
    logits, y_true : str, default="logits" and "y_true"
        Keys of the mapping that ``validation_step`` returns. Logits have shape (n, n_classes), or,
        for two classes, (n,) or (n, 1). Log-probabilities are allowed.
    calibrated : bool, default=True
        Log the index after cross-fitted calibration, too.
    weights : mapping from str to callable, optional
        Values to set at the start of each training epoch: names of attributes of the module, such
        as ``"regularizer.strength"``, and functions of the number of the epoch (`linear_ramp`).
    keep_best : bool, default=False
        Keep the weights of the epoch of least ``cross_entropy_fragility``, and put them back when
        the fit ends. They are in the checkpoints, too.
    multi_class : {"ovo", "ovr"}, default="ovo"
    prefix : str, default="val_"
    prog_bar : bool, default=True
        Show the index on the progress bar.
    dataloader_idx : int, default=0
        The validation set to measure, if there are several.

    Attributes
    ----------
    best_epoch : int or None
    best_score : float

    Examples
    --------
    >>> from fragility.torch import FragilityCallback, linear_ramp
    >>> callback = FragilityCallback(
    ...     n_classes=10, weights={"regularizer.strength": linear_ramp(0.1, warmup=5)}
    ... )
    """

    def __init__(
        self,
        n_classes: int,
        *,
        logits: str = "logits",
        y_true: str = "y_true",
        calibrated: bool = True,
        weights: Mapping[str, Schedule] | None = None,
        keep_best: bool = False,
        multi_class: Literal["ovo", "ovr"] = "ovo",
        prefix: str = "val_",
        prog_bar: bool = True,
        dataloader_idx: int = 0,
    ) -> None:
        super().__init__()
        for name, schedule in (weights or {}).items():
            if not callable(schedule):
                raise TypeError(
                    f"The weight {name!r} must be given as a function of the epoch, such as "
                    f"linear_ramp({schedule!r}); got {type(schedule).__name__}."
                )
        self.logits, self.y_true, self.calibrated = logits, y_true, calibrated
        self.weights, self.keep_best = dict(weights or {}), keep_best
        self.prefix, self.prog_bar, self.dataloader_idx = prefix, prog_bar, dataloader_idx
        self.best_epoch: int | None = None
        self.best_score = inf
        self._best_weights: dict[str, Any] | None = None
        self._index = MulticlassFragilityIndex(n_classes, multi_class=multi_class)
        self._cross_entropy = MeanMetric().set_dtype(torch.float64)

    @torch.no_grad()
    def on_train_epoch_start(self, trainer: Any, pl_module: nn.Module) -> None:
        """Set the weights of this epoch."""
        for name, schedule in self.weights.items():
            _set_number(pl_module, name, schedule(trainer.current_epoch))

    def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin afresh."""
        for metric in (self._index, self._cross_entropy):
            metric.reset()
            metric.to(pl_module.device)

    @torch.no_grad()
    def on_validation_batch_end(
        self,
        trainer: Any,
        pl_module: nn.Module,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Add a batch."""
        if trainer.sanity_checking or dataloader_idx != self.dataloader_idx:
            return
        logits, y_true = self._taken(outputs)
        if y_true.numel() == 0:
            return
        columns = check_columns(logits.detach().double(), self._index.n_classes, "logits")
        if columns.shape[1] == 1:  # of two classes: the logit of class 0 is zero
            columns = nn.functional.pad(columns, (1, 0))
        logs = columns.log_softmax(1)
        y_true = y_true.flatten()
        self._index.update(logs.exp(), y_true)
        own = logs.gather(1, y_true.long()[:, None])
        self._cross_entropy.update(-own.mean(), y_true.numel())

    def _taken(self, outputs: Any) -> tuple[Tensor, Tensor]:
        keys = (self.logits, self.y_true)
        if isinstance(outputs, Mapping) and all(key in outputs for key in keys):
            return outputs[self.logits], outputs[self.y_true]
        given = type(outputs).__name__
        if isinstance(outputs, Mapping):
            given = f"a mapping with {listed(list(outputs))}"
        raise ValueError(
            f"FragilityCallback needs validation_step to return a mapping with {keys[0]!r} and "
            f"{keys[1]!r}; it returned {given}. Name other keys with logits= and y_true=."
        )

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Log, and keep the weights if no epoch was better."""
        if trainer.sanity_checking:
            return
        figures = self._figures()
        for name, value in figures.items():
            pl_module.log(
                self.prefix + name,
                torch.tensor(value, dtype=torch.float32, device=pl_module.device),
                prog_bar=self.prog_bar and name == "fragility",
                sync_dist=trainer.world_size > 1,
            )
        score = figures["cross_entropy_fragility"]
        if self.keep_best and trainer.state.fn == "fit" and score < self.best_score:
            self.best_score, self.best_epoch = score, int(trainer.current_epoch)
            self._best_weights = {
                name: value.detach().to("cpu", copy=True) if isinstance(value, Tensor) else value
                for name, value in pl_module.state_dict().items()
            }

    def _figures(self) -> dict[str, float]:
        """All logged figures, the same in every process."""
        cross_entropy = float(self._cross_entropy.compute())
        figures = {"fragility": nan, "fragility_ratio": nan}
        capped = nan
        with self._index.synced():
            found = self._index.measured()
            if found is not None:
                figures = {"fragility": found.value, "fragility_ratio": found.ratio}
                capped = float(np.nanmean(np.minimum(found.pairs, _CAP)))
            if self.calibrated:
                figures["fragility_calibrated"] = self._calibrated_index()
        figures["cross_entropy"] = cross_entropy
        figures["cross_entropy_fragility"] = cross_entropy + capped
        return figures

    def _calibrated_index(self) -> float:
        """The index after calibration; NaN where there are too few samples to cross-fit."""
        probs, y_true = self._index.values()
        support = np.bincount(y_true)
        if np.count_nonzero(support) < 2 or support[support > 0].min() < 2:
            return nan
        classes = list(range(self._index.n_classes))
        # One kind of map for all epochs and models: figures of different kinds do not compare.
        method = "platt" if len(classes) == 2 else "temperature"
        fair = cross_fitted_calibration(y_true, probs, method=method, labels=classes)
        multi_class = self._index.multi_class
        return float(fragility_index(y_true, fair, labels=classes, multi_class=multi_class))

    def on_fit_end(self, trainer: Any, pl_module: nn.Module) -> None:
        """Put the best weights back."""
        if self.keep_best and self._best_weights is not None:
            pl_module.load_state_dict(self._best_weights)

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint."""
        best = {"best_epoch": self.best_epoch, "best_score": self.best_score}
        return {**best, "best_weights": self._best_weights}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state from a checkpoint."""
        self.best_epoch, self.best_score = state_dict["best_epoch"], state_dict["best_score"]
        self._best_weights = state_dict["best_weights"]


def _set_number(module: nn.Module, name: str, value: float) -> None:
    """Set an attribute at a dotted path; a tensor is filled in place, for compiled code."""
    value = check_number(value, f"The weight {name!r}")
    *path, last = name.split(".")
    owner: Any = module
    for part in path:
        owner = getattr(owner, part, None)
    if not hasattr(owner, last):
        raise AttributeError(
            f"{type(module).__name__} has no attribute {name!r} whose value could be scheduled."
        )
    current = getattr(owner, last)
    if isinstance(current, Tensor):
        current.fill_(value)
    else:
        setattr(owner, last, value)
