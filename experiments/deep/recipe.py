"""What is trained: a network with a loss, and what is added to either."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from fragility.torch import FragilityLoss, FragilityRegularizer, gaussian_noise, mixup, pgd

__all__ = ["Objective", "Recipe"]


@dataclass(frozen=True)
class Recipe:
    """What is added to the cross-entropy; zero means that it is not.

    Parameters
    ----------
    regularizer : float
        Strength 1/λ₀ of the penalty on the last layer.
    direct : float
        Weight of the index itself.
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
    """

    regularizer: float = 0.0
    direct: float = 0.0
    warmup: int = 0
    ramp: int = 0
    label_smoothing: float = 0.0
    mixup: float = 0.0
    noise: float = 0.0
    pgd: float = 0.0

    def objective(
        self, network: nn.Module, last: nn.Linear, n_classes: int, epoch_steps: int
    ) -> Objective:
        """A network with this recipe; `epoch_steps`: optimiser steps of one epoch."""
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
        return Objective(network, n_classes, self, penalty, direct)


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
        Called without arguments; its parameters are trained, without weight decay.
    direct : Module, optional
        Called with logits and class numbers.
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
        *,
        bfloat16: bool = False,
    ) -> None:
        super().__init__()
        self.network, self.n_classes, self.recipe = network, n_classes, recipe
        self.penalty, self.direct = penalty, direct
        self.bfloat16 = bfloat16

    def forward(self, inputs: Tensor, labels: Tensor) -> Tensor:
        """The loss of a batch."""
        recipe, targets = self.recipe, labels
        if recipe.mixup:
            inputs, targets = mixup(
                inputs, labels, n_classes=self.n_classes, concentration=recipe.mixup
            )
            labels = targets.argmax(1)
        if recipe.noise:
            inputs = gaussian_noise(inputs, recipe.noise)
        if recipe.pgd:
            with self._precision(inputs):
                moved = pgd(self.network, inputs, targets, radius=recipe.pgd)
            inputs, targets = torch.cat([inputs, moved]), torch.cat([targets, targets])
            labels = torch.cat([labels, labels])
        logits = self.logits(inputs)
        loss = functional.cross_entropy(logits, targets, label_smoothing=recipe.label_smoothing)
        if self.penalty is not None:
            loss = loss + self.penalty()
        if self.direct is not None:
            loss = loss + self.direct(logits, labels)
        return loss

    def logits(self, inputs: Tensor) -> Tensor:
        """What the network says, in single precision at least."""
        with self._precision(inputs):
            logits: Tensor = self.network(inputs)
        return logits.float() if logits.dtype == torch.bfloat16 else logits

    def _precision(self, inputs: Tensor) -> torch.autocast:
        # Without its cache: weights that a CUDA graph has cast would never change.
        return torch.autocast(
            inputs.device.type, torch.bfloat16, enabled=self.bfloat16, cache_enabled=False
        )

    def parameter_groups(self, weight_decay: float) -> list[dict[str, object]]:
        """For the optimiser: the network with weight decay, what is added without."""
        groups: list[dict[str, object]] = [
            {"params": list(self.network.parameters()), "weight_decay": weight_decay}
        ]
        added = [p for term in (self.penalty, self.direct) if term for p in term.parameters()]
        if added:
            groups.append({"params": added, "weight_decay": 0.0})
        return groups
