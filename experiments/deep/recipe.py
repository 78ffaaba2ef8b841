"""What is trained: a network with a loss, and what is added to either."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from math import exp, nan

import torch
from torch import Tensor, nn
from torch.nn import functional

from experiments.deep.augmentation import gaussian_noise, mixup, pgd
from experiments.deep.images import moved
from experiments.deep.losses import FragilityLoss
from fragility.torch import FragilityRegularizer

__all__ = ["Objective", "Recipe"]


@dataclass(frozen=True)
class Recipe:
    """What is added to the cross-entropy; zero means that it is not.

    Parameters
    ----------
    regularizer : float
        Strength 1/λ₀ of the penalty on the last layer.
    tightening : int
        Epochs over which that strength grows from nothing.
    direct : float
        Weight of the index itself.
    tempered : bool
        Whether the index is that of logits of one scale, which is learned by cross-entropy: it
        cannot be lowered by smaller logits, only by a better order. The scale starts at 1, and
        learns in thousands of steps rather than hundreds.
    warmup, ramp : int
        Epochs without the index, and epochs until its full weight.
    label_smoothing : float
        Share of the uniform distribution.
    mixup : float
        Concentration of the shares; 1 is uniform.
    noise : float
        Standard deviation of the noise on the inputs.
    pgd : float
        Radius of worst neighbours, which are added to the batch.
    moved : float
        Images are mirrored, turned, shifted and scaled at random; 1: by up to 15 degrees, two
        pixels and a tenth.
    average : float
        Epochs over which the weights are averaged for the network that is judged.
    teachers : int
        Networks trained before by the same recipe, from whose mean this one learns.
    """

    regularizer: float = 0.0
    tightening: int = 0
    direct: float = 0.0
    tempered: bool = False
    warmup: int = 0
    ramp: int = 0
    label_smoothing: float = 0.0
    mixup: float = 0.0
    noise: float = 0.0
    pgd: float = 0.0
    moved: float = 0.0
    average: float = 0.0
    teachers: int = 0

    def objective(
        self,
        network: nn.Module,
        last: nn.Linear,
        n_classes: int,
        epoch_steps: int,
        teachers: Sequence[nn.Module] = (),
    ) -> Objective:
        """A network with this recipe; `epoch_steps`: optimiser steps of one epoch."""
        if len(teachers) != self.teachers:
            raise ValueError(
                f"The recipe has {self.teachers} teachers; {len(teachers)} are given. Train them "
                "first, by the same recipe with teachers=0."
            )
        penalty, direct = None, None
        if self.regularizer:
            penalty = FragilityRegularizer(last, strength=self.regularizer)
        if self.direct:
            direct = FragilityLoss(
                n_classes,
                weight=self.direct,
                warmup=self.warmup * epoch_steps,
                ramp=self.ramp * epoch_steps,
            )
        fresh = 1.0 - exp(-1.0 / (self.average * epoch_steps)) if self.average else 1.0
        tightening = self.tightening * epoch_steps
        made = Objective(network, n_classes, self, penalty, direct, teachers, fresh, tightening)
        made.last = (last,)  # a tuple, so that the layer is not registered twice
        return made


class Objective(nn.Module):
    """A network and the loss it is trained on: one module, with one state.

    Parameters
    ----------
    network : Module
        From inputs to logits (n, n_classes).
    n_classes : int
    recipe : Recipe
        Its augmentations and smoothing are used; the added terms are the next two.
    penalty : Module, optional
        Called without arguments.
    direct : Module, optional
        Called with logits and class numbers.
    teachers : sequence of Module
        Networks from whose mean probabilities this one learns, instead of the labels.
    fresh : float, default=1.0
        Share of the newest weights in the average that is judged; 1: there is no average.
    tightening : int, default=0
        Steps over which the penalty grows from nothing.
    bfloat16 : bool, default=False
        Whether the network computes in bfloat16 where PyTorch holds that safe.
    """

    def __init__(
        self,
        network: nn.Module,
        n_classes: int,
        recipe: Recipe,
        penalty: nn.Module | None = None,
        direct: nn.Module | None = None,
        teachers: Sequence[nn.Module] = (),
        fresh: float = 1.0,
        tightening: int = 0,
        *,
        bfloat16: bool = False,
    ) -> None:
        super().__init__()
        self.network, self.n_classes, self.recipe = network, n_classes, recipe
        self.penalty, self.direct = penalty, direct
        self.teachers = nn.ModuleList(teachers).requires_grad_(False)
        self.averaged = deepcopy(network).requires_grad_(False) if fresh < 1.0 else None
        self.fresh, self.tightening = fresh, tightening
        self.log_scale = nn.Parameter(torch.zeros(())) if recipe.tempered else None
        self.last: tuple[nn.Linear, ...] = ()
        self.register_buffer("steps", torch.zeros(()))
        self.bfloat16 = bfloat16

    @property
    def judged(self) -> nn.Module:
        """The network that counts: the average of the weights, if there is one."""
        return self.network if self.averaged is None else self.averaged

    def train(self, mode: bool = True) -> Objective:
        """As of any module; what is only looked at stays in evaluation mode."""
        super().train(mode)
        self.teachers.eval()
        if self.averaged is not None:
            self.averaged.eval()
        return self

    @torch.no_grad()
    def after_step(self) -> None:
        """Count, and take the weights into the average: all alike at first, then new ones most."""
        self.steps.add_(1.0)
        if self.averaged is None:
            return
        share = (1.0 / self.steps).clamp_min(self.fresh)
        old, new = self.averaged.state_dict(), self.network.state_dict()
        floats = [name for name, value in new.items() if value.is_floating_point()]
        kept = [old[name] for name in floats]
        gains = torch._foreach_sub([new[name] for name in floats], kept)
        torch._foreach_mul_(gains, share)
        torch._foreach_add_(kept, gains)

    def forward(self, inputs: Tensor, labels: Tensor) -> Tensor:
        """The loss of a batch."""
        recipe, targets = self.recipe, labels
        if recipe.moved:
            inputs = moved(inputs, recipe.moved)
        if recipe.mixup:
            inputs, targets = mixup(
                inputs, labels, n_classes=self.n_classes, concentration=recipe.mixup
            )
            labels = targets.argmax(1)
        if recipe.noise:
            inputs = gaussian_noise(inputs, recipe.noise)
        if recipe.pgd:
            with self._precision(inputs):
                worst = pgd(self.network, inputs, targets, radius=recipe.pgd)
            inputs, targets = torch.cat([inputs, worst]), torch.cat([targets, targets])
            labels = torch.cat([labels, labels])
        if self.teachers:
            with torch.no_grad(), self._precision(inputs):
                said = [teacher(inputs).float().softmax(1) for teacher in self.teachers]
            targets = torch.stack(said).mean(0)
        logits = self._said(self.network, inputs)
        loss = functional.cross_entropy(logits, targets, label_smoothing=recipe.label_smoothing)
        if self.penalty is not None:
            grown = (self.steps / self.tightening).clamp_max(1.0) if self.tightening else 1.0
            loss = loss + grown * self.penalty()
        if self.log_scale is not None:
            centred = logits - logits.mean(1, keepdim=True)
            shape = centred / centred.square().mean().sqrt().clamp_min(1e-6)
            scale = self.log_scale.exp()
            # This loss moves the scale alone, the index the shape alone.
            loss = loss + functional.cross_entropy(scale * shape.detach(), labels)
            logits = scale.detach() * shape
        if self.direct is not None:
            loss = loss + self.direct(logits, labels)
        return loss

    def logits(self, inputs: Tensor) -> Tensor:
        """What the network that counts says, in single precision at least."""
        return self._said(self.judged, inputs)

    def _said(self, network: nn.Module, inputs: Tensor) -> Tensor:
        with self._precision(inputs):
            logits: Tensor = network(inputs)
        return logits.float() if logits.dtype == torch.bfloat16 else logits

    def _precision(self, inputs: Tensor) -> torch.autocast:
        # Without its cache: weights that a CUDA graph has cast would never change.
        return torch.autocast(
            inputs.device.type, torch.bfloat16, enabled=self.bfloat16, cache_enabled=False
        )

    def bound(self) -> dict[str, float]:
        """The bound of the regulariser, by what part distances exceed it: the largest, and all."""
        if self.penalty is None or not self.last:
            return {"bound": nan, "excess": nan, "violations": nan}
        k, (last,) = float(self.penalty.k), self.last
        parts = torch.pdist(last.weight.detach().double()) / k - 1.0
        violations = float(parts.clamp_min(0.0).sum())
        return {"bound": k, "excess": float(parts.max()), "violations": violations}

    def parameter_groups(self, weight_decay: float) -> list[dict[str, object]]:
        """For the optimiser: the network with weight decay, what is added without."""
        groups: list[dict[str, object]] = [
            {"params": list(self.network.parameters()), "weight_decay": weight_decay}
        ]
        if self.log_scale is not None:
            groups.append({"params": [self.log_scale], "weight_decay": 0.0})
        return groups
