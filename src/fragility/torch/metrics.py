"""The Fragility Index as torchmetrics classes: constant memory, any number of processes."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from math import inf, nan
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from .._parameters import check_choice, check_count, check_number
from .._validation import PROBABILITY_ROUNDING
from ..exceptions import AbsentClassWarning
from ..index.fragility import Fragility
from ..metrics import measure_fragility
from ..scores.sketch import FragilitySketch, SketchFragility
from ._binning import MOST_IN_A_BIN, add_to_bins
from ._lazy import LazyScalar
from ._merging import STATES, Kind, check_state
from .functional import fragility_index

try:
    from torchmetrics import Metric
    from torchmetrics.utilities import dim_zero_cat
    from torchmetrics.utilities.distributed import gather_all_tensors
except ImportError as error:
    raise ImportError(
        "The metrics of fragility.torch are torchmetrics classes, and torchmetrics is not "
        'installed: pip install torchmetrics, or pip install "fragility[lightning]"'
    ) from error


class _FragilityMetric(Metric):
    """What the two metrics share: the state, and how a batch is added to it."""

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    plot_lower_bound = 0.0

    refused: Tensor
    counts: Tensor
    sums: Tensor
    squares: Tensor
    smallest: Tensor
    largest: Tensor
    probs: list[Tensor] | Tensor  # one tensor within `synced`
    labels: list[Tensor] | Tensor

    def __init__(
        self,
        num_classes: int,
        *,
        multi_class: Literal["ovo", "ovr"] = "ovo",
        target: float = 0.0,
        exact: bool = False,
        n_bins: int = 4096,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        num_classes = check_count(num_classes, "num_classes", least=2)
        super().__init__(**kwargs)
        check_choice(multi_class, ("ovo", "ovr"), "multi_class")
        self.num_classes, self.multi_class = num_classes, multi_class
        self.target, self.exact, self.n_bins = check_number(target, "target"), bool(exact), n_bins
        self.validate_args = validate_args
        self.add_state("refused", torch.zeros(2, dtype=torch.int64), dist_reduce_fx="sum")
        if self.exact:
            self.add_state("probs", [], dist_reduce_fx="cat")
            self.add_state("labels", [], dist_reduce_fx="cat")
            return
        self._empty_sketch()  # which refuses settings that it cannot hold
        several = num_classes > 2
        groups = num_classes if several and multi_class == "ovo" else 2
        shape = (num_classes if several else 1, groups)
        for name in ("counts", "sums", "squares"):
            zeros = torch.zeros((*shape, n_bins + 1), dtype=torch.int64)
            self.add_state(name, zeros, dist_reduce_fx="sum")
        for name, start, reduction in (("smallest", inf, "min"), ("largest", -inf, "max")):
            extremes = torch.full(shape, start, dtype=torch.float64)
            self.add_state(name, extremes, dist_reduce_fx=reduction)

    def set_dtype(self, dst_type: str | torch.dtype) -> _FragilityMetric:
        """Leave the state as it is: its sums are exact in their own types alone."""
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Sequence[str] = "") -> Any:
        """Move to another device, but not to another type, as ``model.bfloat16()`` asks for."""
        # Lightning asks at every step: what stays where it is need not be computed for that.
        value: Tensor | None
        value, self._forward_cache = self._forward_cache, None
        super()._apply(lambda tensor: tensor.to(fn(tensor).device), exclude_state)
        if value is not None:
            self._forward_cache = value.to(self.device)
        return self

    @property
    def _kind(self) -> Kind:
        several = self.num_classes > 2 and not self.exact
        bins = 0 if self.exact else self.n_bins
        return Kind(self.num_classes, bins, several and self.multi_class == "ovr")

    def merge_state(self, incoming_state: dict[str, Any] | Metric) -> None:
        """Add the samples of another metric of the same settings, or of its ``metric_state``."""
        state, updates = incoming_state, 1
        if isinstance(incoming_state, _FragilityMetric):
            self._kind.check(incoming_state._kind, "the other one")
            state, updates = incoming_state.metric_state, incoming_state._update_count
        if isinstance(state, Mapping):
            check_state(self._kind, self._defaults, state, "the other one")
        super().merge_state(incoming_state)
        # Which the base class leaves as they were: `compute` would give the value from before.
        self._computed = None
        self._update_count += updates

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        names = [name for name in STATES if prefix + name in state_dict]
        if names:
            state = {name: state_dict[prefix + name] for name in names}
            check_state(self._kind, self._defaults, state, "the saved one")
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
        for name in names:  # copies, as what is added in place must not reach what was loaded
            loaded = getattr(self, name)
            if isinstance(loaded, Tensor):
                setattr(self, name, loaded.to(self.device, copy=True))
            else:
                setattr(self, name, [part.to(self.device) for part in loaded])
        if names:
            self._computed, self._update_count = None, max(self._update_count, 1)

    def _sync_dist(
        self, dist_sync_fn: Callable[..., Any] = gather_all_tensors, process_group: Any = None
    ) -> None:
        kind = torch.tensor([int(part) for part in self._kind], device=self.device)
        for place, part in enumerate(dist_sync_fn(kind, group=process_group or self.process_group)):
            classes, bins, rest = part.tolist()
            self._kind.check(Kind(classes, bins, bool(rest)), f"that of process {place}")
        if self.exact and not self.probs:  # processes must agree in types and dimensions
            probs, labels = self._samples()
            self.probs, self.labels = [probs], [labels]
        super()._sync_dist(dist_sync_fn, process_group)

    def forward(self, probs: Tensor, labels: Tensor) -> Tensor:
        """Add a batch, and return its own index: a scalar that is computed when it is looked at.

        So a training step pays for `update` alone unless it prints, adds or logs the value. Until
        then the value holds a copy of the batch.

        Parameters
        ----------
        probs, labels : Tensor
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
            eager: Tensor = super().forward(probs, labels)
            return eager
        self._own_state()
        self.update(probs, labels)
        batch = probs.detach().clone(), labels.detach().clone()
        value = LazyScalar(partial(_value_of, self._settings, *batch), probs.device)
        self._forward_cache = value  # type: ignore[assignment]
        return value

    def _own_state(self, always: bool = False) -> None:
        """Copy what others hold too: a MetricCollection lets a group share one, and calls each."""
        for name in self._defaults:
            if isinstance(self.__dict__[name], list):
                setattr(self, name, list(self.__dict__[name]))
            elif always or sys.getrefcount(self.__dict__[name]) > 2:  # here, and as an argument
                setattr(self, name, self.__dict__[name].clone())

    @property
    def _settings(self) -> dict[str, Any]:
        names = "num_classes", "multi_class", "target", "exact", "n_bins", "validate_args"
        return {name: getattr(self, name) for name in names}

    def update(self, probs: Tensor, labels: Tensor) -> None:
        """Add a batch.

        Parameters
        ----------
        probs : Tensor of shape (n,) or (n, num_classes)
            Probabilities, not logits. One column, or two, if there are two classes.
        labels : Tensor of shape (n,)
            Numbers of the classes, from 0.
        """
        given = self._checked(probs, labels)
        if labels.numel() == 0:
            return
        if self.refused.is_inference() and not torch.is_inference_mode_enabled():
            self._own_state(always=True)  # as after a `reset` there
        labels = labels.long()  # the number of classes may be beyond a narrower type
        low, high = -PROBABILITY_ROUNDING, 1.0 + PROBABILITY_ROUNDING
        within = ((given >= low) & (given <= high)).all(1)
        known = (labels >= 0) & (labels < self.num_classes)
        refused = torch.stack([(~within).sum(), (~known).sum()])
        if self.validate_args:
            self._raise_if(refused, given, labels)
        self.refused += refused
        columns = given[:, 1:] if given.shape[1] == 2 else given
        # Refused samples end the computation later: until then they only must not do harm.
        counted = within & known
        columns = torch.where(counted[:, None], columns.double().clamp(0.0, 1.0), 0.0)
        labels = torch.where(counted, labels, 0)
        if not self.exact:
            binned = self.counts, self.sums, self.squares
            add_to_bins(columns, labels, *binned, self.smallest, self.largest)
        elif isinstance(self.probs, list) and isinstance(self.labels, list):
            self.probs.append(columns.squeeze(1))
            self.labels.append(labels)

    def _checked(self, probs: Tensor, labels: Tensor) -> Tensor:
        """Scores in columns, without their graph; the values are not yet checked."""
        n, two = self.num_classes, self.num_classes == 2
        shapes = "(n,) or (n, 2)" if two else f"(n, {n})"
        if two and probs.ndim == 2 and probs.shape[1] == 1:
            probs = probs[:, 0]
        fits = (two and probs.ndim == 1) or (probs.ndim == 2 and probs.shape[1] == n)
        if not fits or labels.ndim != 1 or len(probs) != len(labels):
            raise ValueError(
                f"probs must have shape {shapes} and labels (n,); got {tuple(probs.shape)} and "
                f"{tuple(labels.shape)}."
            )
        if not probs.is_floating_point():
            raise TypeError(f"probs must hold probabilities; got {probs.dtype}.")
        if labels.is_floating_point() or labels.is_complex():
            raise TypeError(f"labels must hold numbers of classes; got {labels.dtype}.")
        return probs.detach()[:, None] if probs.ndim == 1 else probs.detach()

    def _raise_if(self, refused: Tensor, given: Tensor, labels: Tensor) -> None:
        outside, unknown = refused.tolist()
        if outside and given.isnan().any():
            raise ValueError(f"probs holds {int(given.isnan().sum())} NaN.")
        if outside:
            low, high = given.min().item(), given.max().item()
            link = "torch.softmax(logits, dim=1)"
            if self.num_classes == 2:
                link = f"torch.sigmoid(logits) or {link}"
            raise ValueError(
                f"probs must lie from 0 to 1; those of {outside} samples do not (they go from "
                f"{low:g} to {high:g}). If they are logits, give {link}."
            )
        if unknown:
            low, high = labels.min().item(), labels.max().item()
            raise ValueError(
                f"labels must be from 0 to {self.num_classes - 1}; those of {unknown} samples are "
                f"not (they go from {low} to {high})."
            )

    def compute(self) -> Tensor:
        """The index of all samples so far: a scalar; NaN if fewer than two classes have any."""
        if not self._compares_classes():
            return torch.tensor(nan, dtype=torch.float64, device=self.device)
        if self.exact:
            samples = self._samples()
            return fragility_index(*samples, target=self.target, multi_class=self.multi_class)
        value = self.sketch().fragility(self.target).value
        return torch.tensor(value, dtype=torch.float64, device=self.device)

    def measured(self) -> Fragility | SketchFragility | None:
        """The index with what comes with it, over all processes; None with fewer than two classes.

        All processes must call it. The ratio, the table of class pairs and the bounds are there. It
        is made on the host.
        """
        with self.synced():
            if not self._compares_classes():
                return None
            if not self.exact:
                return self.sketch().fragility(self.target)
            probs, labels = self.values()
            return measure_fragility(
                labels,
                probs,
                labels=list(range(self.num_classes)),
                target=self.target,
                multi_class=self.multi_class,
            )

    def synced(self) -> AbstractContextManager[None]:
        """Within this context the state is that of all processes. All of them must enter it."""
        apart = self._to_sync and not self._is_synced
        return self.sync_context(
            should_sync=apart,
            should_unsync=apart,
            distributed_available=self.distributed_available_fn,
        )

    def sketch(self) -> FragilitySketch:
        """The samples of this process as a `fragility.FragilitySketch`, to merge and to store."""
        if self.exact:
            raise ValueError("A metric with exact=True keeps the samples and no sketch.")
        self._check_state()
        return self._empty_sketch().add_sums(
            self.counts.cpu().numpy(),
            self.sums.cpu().numpy(),
            self.squares.cpu().numpy(),
            extremes=(self.smallest.cpu().numpy(), self.largest.cpu().numpy()),
        )

    def values(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Probabilities and labels of this process, kept by ``exact=True``."""
        if not self.exact:
            raise ValueError("Only a metric with exact=True keeps the samples.")
        self._check_state()
        probs, labels = self._samples()
        return probs.cpu().numpy(), labels.cpu().numpy()

    def _samples(self) -> tuple[Tensor, Tensor]:
        if isinstance(self.probs, list) and not self.probs:
            shape = (0,) if self.num_classes == 2 else (0, self.num_classes)
            empty = torch.zeros(shape, dtype=torch.float64, device=self.device)
            return empty, torch.zeros(0, dtype=torch.int64, device=self.device)
        return dim_zero_cat(self.probs), dim_zero_cat(self.labels)

    def _empty_sketch(self) -> FragilitySketch:
        return FragilitySketch(
            self.n_bins, labels=range(self.num_classes), multi_class=self.multi_class
        )

    def _check_state(self) -> None:
        outside, unknown = self.refused.tolist()
        if outside or unknown:
            raise ValueError(
                f"{outside} samples had probs outside 0 to 1 and {unknown} had labels outside 0 to "
                f"{self.num_classes - 1}. Use validate_args=True to find the batch, and reset()."
            )
        if not self.exact and self.counts.max().item() > MOST_IN_A_BIN:
            raise ValueError(
                f"A bin holds more than {MOST_IN_A_BIN} samples, too many for its sums. Keep "
                "metrics of parts of the data, and merge their sketches."
            )

    def _compares_classes(self) -> bool:
        """Whether two classes have samples; if not, a warning says so."""
        self._check_state()
        if self.exact:
            support = torch.bincount(self._samples()[1], minlength=self.num_classes)
        elif self.multi_class == "ovr" and self.num_classes > 2:
            support = self.counts[:, 1].sum(1)
        else:
            support = self.counts[0].sum(1)
        present = int(support.count_nonzero())
        if present < 2:
            warnings.warn(
                f"The Fragility Index compares two classes, and {present} of "
                f"{self.num_classes} have samples: it is NaN.",
                AbsentClassWarning,
                stacklevel=3,
            )
        return present >= 2


def _value_of(settings: dict[str, Any], probs: Tensor, labels: Tensor) -> Tensor:
    """The index of one batch."""
    alone = _FragilityMetric(sync_on_compute=False, **settings).to(probs.device)
    alone.update(probs, labels)
    return alone.compute()


class BinaryFragilityIndex(_FragilityMetric):
    """Fragility Index of two classes.

    Parameters
    ----------
    target : float, default=0.0
        Level that the expected ranking error must meet.
    exact : bool, default=False
        Keep all samples, for the exact index. By default a sketch of constant size is kept, whose
        answer is right to about a millionth, and whose sums are exact: any order of the batches
        and any number of processes give the same bits.
    n_bins : int, default=4096
        Bins of the sketch, a power of two.
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
        exact: bool = False,
        n_bins: int = 4096,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            2, target=target, exact=exact, n_bins=n_bins, validate_args=validate_args, **kwargs
        )


class MulticlassFragilityIndex(_FragilityMetric):
    """Fragility Index of several classes: the mean over ordered pairs of classes.

    Classes without samples are named in a warning and left out.

    Parameters
    ----------
    num_classes : int
    multi_class : {"ovo", "ovr"}, default="ovo"
        Every ordered pair of classes, or each class against the rest, which takes less memory.
    target, exact, n_bins, validate_args, **kwargs
        As for `BinaryFragilityIndex`.

    Examples
    --------
    >>> import torch
    >>> from fragility.torch import MulticlassFragilityIndex
    >>> metric = MulticlassFragilityIndex(num_classes=3)
    >>> logits = torch.tensor([[2.0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0], [1, 2, 0], [1, 0, 3]])
    >>> metric.update(logits.softmax(1), torch.tensor([0, 1, 2, 0, 1, 2]))
    >>> round(metric.compute().item(), 6)
    0.004974
    """
