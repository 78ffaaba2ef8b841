"""The Fragility Index as torchmetrics classes, exact over any number of batches and processes."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from math import nan
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from .._optional import needed_for
from .._parameters import check_choice, check_count, check_number
from .._validation import PROBABILITY_ROUNDING
from ..exceptions import AbsentClassWarning
from ..index.fragility import Fragility
from ..metrics import measure_fragility
from ._checks import check_class_numbers, check_columns
from ._lazy import LazyScalar
from ._merging import STATES, batches_of, check_same_classes, check_state
from .functional import fragility_index

with needed_for("Metrics need torchmetrics (pip install torchmetrics)", "lightning"):
    from torchmetrics import Metric
    from torchmetrics.utilities import dim_zero_cat
    from torchmetrics.utilities.distributed import gather_all_tensors


class _FragilityMetric(Metric):
    """Base of the two metrics: the state, and how a batch is added to it."""

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    plot_lower_bound = 0.0

    refused: Tensor
    probs: list[Tensor] | Tensor  # one tensor within `synced`
    y_true: list[Tensor] | Tensor

    def __init__(
        self,
        n_classes: int,
        *,
        multi_class: Literal["ovo", "ovr"] = "ovo",
        target: float = 0.0,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        n_classes = check_count(n_classes, "n_classes", least=2)
        super().__init__(**kwargs)
        check_choice(multi_class, ("ovo", "ovr"), "multi_class")
        self.n_classes, self.multi_class = n_classes, multi_class
        self.target, self.validate_args = check_number(target, "target"), validate_args
        self.add_state("refused", torch.zeros(2, dtype=torch.int64), dist_reduce_fx="sum")
        self.add_state("probs", [], dist_reduce_fx="cat")
        self.add_state("y_true", [], dist_reduce_fx="cat")

    def set_dtype(self, dst_type: str | torch.dtype) -> _FragilityMetric:
        """Leave the state as it is: probabilities are kept in double precision."""
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Sequence[str] = "") -> Any:
        """Move to another device, but not to another type, as ``model.bfloat16()`` asks for."""
        # Lightning calls this at every step: a lazy value on its device need not be computed.
        value: Tensor | None
        value, self._forward_cache = self._forward_cache, None
        super()._apply(lambda tensor: tensor.to(fn(tensor).device), exclude_state)
        if value is not None:
            self._forward_cache = value.to(self.device)
        return self

    def merge_state(self, incoming_state: dict[str, Any] | Metric) -> None:
        """Add the samples of another metric of the same classes, or of its ``metric_state``."""
        state, updates = incoming_state, 1
        if isinstance(incoming_state, _FragilityMetric):
            check_same_classes(self.n_classes, incoming_state.n_classes, "the other one")
            state, updates = incoming_state.metric_state, incoming_state._update_count
        if isinstance(state, Mapping):
            check_state(self.n_classes, state, "the other one")
        super().merge_state(incoming_state)
        # The base class leaves these as they were: `compute` would return the earlier value.
        self._computed = None
        self._update_count += updates

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        names = [name for name in STATES if prefix + name in state_dict]
        if names:
            state = {name: state_dict[prefix + name] for name in names}
            check_state(self.n_classes, state, "the saved one")
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
        if names:
            # A copy, because updates in place must not change the loaded tensor.
            self.refused = self.refused.to(self.device, copy=True)
            self.probs = [batch.to(self.device) for batch in batches_of(self.probs)]
            self.y_true = [batch.to(self.device) for batch in batches_of(self.y_true)]
            self._computed, self._update_count = None, max(self._update_count, 1)

    def _sync_dist(
        self, dist_sync_fn: Callable[..., Any] = gather_all_tensors, process_group: Any = None
    ) -> None:
        n_classes = torch.tensor([self.n_classes], device=self.device)
        gathered = dist_sync_fn(n_classes, group=process_group or self.process_group)
        for process, number in enumerate(gathered):
            check_same_classes(self.n_classes, int(number), f"that of process {process}")
        if not self.probs:  # processes must agree in types and dimensions
            probs, y_true = self._samples()
            self.probs, self.y_true = [probs], [y_true]
        super()._sync_dist(dist_sync_fn, process_group)

    def forward(self, probs: Tensor, y_true: Tensor) -> Tensor:
        """Add a batch, and return its own index: a scalar that is computed at its first use.

        So a training step only pays for `update` unless it prints, adds or logs the value. Until
        then the value holds a copy of the batch.

        Parameters
        ----------
        probs, y_true : Tensor
            As for `update`.

        Returns
        -------
        Tensor
            What `compute` of a new metric would be after this batch alone.
        """
        changed = type(self).update, type(self).compute
        if changed != (_FragilityMetric.update, _FragilityMetric.compute) or (
            self._is_synced or self.dist_sync_on_step
        ):
            eager: Tensor = super().forward(probs, y_true)
            return eager
        self._own_state()
        self.update(probs, y_true)
        batch = probs.detach().clone(), y_true.detach().clone()
        value = LazyScalar(partial(_value_of, self._settings, *batch), probs.device)
        self._forward_cache = value  # type: ignore[assignment]
        return value

    def _own_state(self, always: bool = False) -> None:
        """Copy states that other metrics of a MetricCollection share."""
        for name in self._defaults:
            if isinstance(self.__dict__[name], list):
                setattr(self, name, list(self.__dict__[name]))
            elif always or sys.getrefcount(self.__dict__[name]) > 2:  # here, and as an argument
                setattr(self, name, self.__dict__[name].clone())

    @property
    def _settings(self) -> dict[str, Any]:
        names = "n_classes", "multi_class", "target", "validate_args"
        return {name: getattr(self, name) for name in names}

    def update(self, probs: Tensor, y_true: Tensor) -> None:
        """Add a batch.

        Parameters
        ----------
        probs : Tensor of shape (n,) or (n, n_classes)
            Probabilities, not logits. One column, or two, if there are two classes.
        y_true : Tensor of shape (n,)
            True classes, numbered from 0.
        """
        given = check_columns(probs.detach(), self.n_classes, "probs")
        # The number of classes may be beyond a narrower type than int64.
        y_true = check_class_numbers(y_true, len(given))
        if y_true.numel() == 0:
            return
        if self.refused.is_inference() and not torch.is_inference_mode_enabled():
            self._own_state(always=True)  # as after a `reset` there
        low, high = -PROBABILITY_ROUNDING, 1.0 + PROBABILITY_ROUNDING
        within = ((given >= low) & (given <= high)).all(1)
        known = (y_true >= 0) & (y_true < self.n_classes)
        refused = torch.stack([(~within).sum(), (~known).sum()])
        if self.validate_args:
            self._raise_if(refused, given, y_true)
        self.refused += refused
        columns = given[:, 1:] if given.shape[1] == 2 else given
        # Refused samples raise an error in `compute`: until then they must only be harmless.
        counted = within & known
        columns = torch.where(counted[:, None], columns.double().clamp(0.0, 1.0), 0.0)
        y_true = torch.where(counted, y_true, 0)
        if isinstance(self.probs, list) and isinstance(self.y_true, list):
            self.probs.append(columns.squeeze(1))
            self.y_true.append(y_true)

    def _raise_if(self, refused: Tensor, given: Tensor, y_true: Tensor) -> None:
        outside, unknown = refused.tolist()
        if outside and given.isnan().any():
            raise ValueError(f"probs holds {int(given.isnan().sum())} NaN.")
        if outside:
            low, high = given.min().item(), given.max().item()
            link = "torch.softmax(logits, dim=1)"
            if self.n_classes == 2:
                link = f"torch.sigmoid(logits) or {link}"
            raise ValueError(
                f"probs must lie from 0 to 1; those of {outside} samples do not (they go from "
                f"{low:g} to {high:g}). If they are logits, give {link}."
            )
        if unknown:
            low, high = y_true.min().item(), y_true.max().item()
            raise ValueError(
                f"y_true must be from 0 to {self.n_classes - 1}; the classes of {unknown} samples "
                f"are not (they go from {low} to {high})."
            )

    def compute(self) -> Tensor:
        """The index of all samples so far: a scalar; NaN if fewer than two classes have any."""
        if not self._compares_classes():
            return torch.tensor(nan, dtype=torch.float64, device=self.device)
        samples = self._samples()
        return fragility_index(*samples, target=self.target, multi_class=self.multi_class)

    def measured(self) -> Fragility | None:
        """The full result over all processes; None with fewer than two classes.

        It has the ratio and the table of class pairs. All processes must call this method. The
        result is computed on the host.
        """
        with self.synced():
            if not self._compares_classes():
                return None
            probs, y_true = self.values()
            return measure_fragility(
                y_true,
                probs,
                labels=list(range(self.n_classes)),
                target=self.target,
                multi_class=self.multi_class,
            )

    def synced(self) -> AbstractContextManager[None]:
        """Context with the joined state of all processes. All of them must enter it."""
        apart = self._to_sync and not self._is_synced
        return self.sync_context(
            should_sync=apart,
            should_unsync=apart,
            distributed_available=self.distributed_available_fn,
        )

    def values(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return the probabilities and the true classes that this process has seen."""
        self._check_state()
        probs, y_true = self._samples()
        return probs.cpu().numpy(), y_true.cpu().numpy()

    def _samples(self) -> tuple[Tensor, Tensor]:
        if isinstance(self.probs, list) and not self.probs:
            shape = (0,) if self.n_classes == 2 else (0, self.n_classes)
            empty = torch.zeros(shape, dtype=torch.float64, device=self.device)
            return empty, torch.zeros(0, dtype=torch.int64, device=self.device)
        return dim_zero_cat(self.probs), dim_zero_cat(self.y_true)

    def _check_state(self) -> None:
        outside, unknown = self.refused.tolist()
        if outside or unknown:
            raise ValueError(
                f"{outside} samples had probs outside 0 to 1 and {unknown} had y_true outside 0 to "
                f"{self.n_classes - 1}. Use validate_args=True to find the batch, and reset()."
            )

    def _compares_classes(self) -> bool:
        """Whether two classes have samples; if not, a warning says so."""
        self._check_state()
        present = int(torch.bincount(self._samples()[1]).count_nonzero())
        if present < 2:
            warnings.warn(
                f"The Fragility Index compares two classes, and {present} of "
                f"{self.n_classes} have samples: it is NaN.",
                AbsentClassWarning,
                stacklevel=3,
            )
        return present >= 2


def _value_of(settings: dict[str, Any], probs: Tensor, y_true: Tensor) -> Tensor:
    """The index of one batch."""
    alone = _FragilityMetric(sync_on_compute=False, **settings).to(probs.device)
    alone.update(probs, y_true)
    return alone.compute()


class BinaryFragilityIndex(_FragilityMetric):
    """Fragility Index of two classes.

    All samples are kept until `reset`, 16 bytes each, and gathered from all processes.

    Parameters
    ----------
    target : float, default=0.0
        Level that the expected ranking error must meet.
    validate_args : bool, default=True
        Check every batch at once, which waits for the device. If False, bad samples are counted
        instead, and `compute` refuses.
    **kwargs
        As for every `torchmetrics.Metric`.

    Examples
    --------
    >>> import torch
    >>> from fragility.torch import BinaryFragilityIndex
    >>> metric = BinaryFragilityIndex()
    >>> metric.update(torch.tensor([0.6, 0.2, 0.9, 0.7]), torch.tensor([1, 0, 1, 0]))
    >>> round(metric.compute().item(), 6)
    0.073051
    """

    def __init__(
        self,
        *,
        target: float = 0.0,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(2, target=target, validate_args=validate_args, **kwargs)


class MulticlassFragilityIndex(_FragilityMetric):
    """Fragility Index of several classes: the mean over ordered pairs of classes.

    Classes without samples are named in a warning and left out. All samples are kept until `reset`,
    8 bytes for each class and 8 for the label, and gathered from all processes.

    Parameters
    ----------
    n_classes : int
    multi_class : {"ovo", "ovr"}, default="ovo"
        Every ordered pair of classes, or each class against the rest.
    target, validate_args, **kwargs
        As for `BinaryFragilityIndex`.

    Examples
    --------
    >>> import torch
    >>> from fragility.torch import MulticlassFragilityIndex
    >>> metric = MulticlassFragilityIndex(n_classes=3)
    >>> logits = torch.tensor([[2.0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0], [1, 2, 0], [1, 0, 3]])
    >>> metric.update(logits.softmax(1), torch.tensor([0, 1, 2, 0, 1, 2]))
    >>> round(metric.compute().item(), 6)
    0.004974
    """
