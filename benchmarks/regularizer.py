"""Does training with the regulariser break down? Every usual optimiser, 2 to 1,000 classes.

Run with ``python benchmarks/regularizer.py`` (minutes, on a processor). Networks of one hidden
layer learn drawn classes: without the penalty, with it, and with what it was before: a bound k that
the optimiser has to learn. At every step the relative violations of k are added up, from distances
of their own.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable, Iterable
from math import expm1, log
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fragility.torch import FragilityRegularizer

RESULTS = Path(__file__).parent / "results" / "regularizer.md"
STRENGTH, SHARPNESS = 0.1, 50.0
FEATURES, HIDDEN = 16, 64
Parameters = Iterable[nn.Parameter]
OPTIMISERS: dict[str, Callable[[Parameters], torch.optim.Optimizer]] = {
    "SGD 0.1": lambda p: torch.optim.SGD(p, lr=0.1),
    "SGD 0.1, clipped at 1": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum 0.05": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "Adam 0.003": lambda p: torch.optim.Adam(p, lr=0.003),
    "AdamW 0.003": lambda p: torch.optim.AdamW(p, lr=0.003),
}
#: Classes -> distance of their centres, optimiser steps, seeds.
CLASSES = {2: (1.0, 300, 5), 8: (1.8, 300, 5), 100: (4.0, 300, 3), 1000: (6.0, 100, 1)}


class LearnedBound(nn.Module):
    """The same penalty with a bound that is a parameter, kept positive, and starts at 0.05."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = (layer,)
        self.free = nn.Parameter(torch.tensor(log(expm1(0.98 * 5.0)) / 100.0))

    @property
    def k(self) -> Tensor:
        return 0.001 + functional.softplus(self.free, 100.0)

    def forward(self) -> Tensor:
        k = self.k
        excess = functional.relu(torch.pdist(self.layer[0].weight) - k).square().sum()
        return STRENGTH * (k + 0.5 * SHARPNESS / k.detach() * excess)


def none(layer: nn.Linear) -> None:
    return None


def closed_form(layer: nn.Linear) -> nn.Module:
    return FragilityRegularizer(layer, STRENGTH, SHARPNESS)


KINDS = {"without": none, "closed form": closed_form, "learned k": LearnedBound}


def drawn(n_classes: int, distance: float, seed: int) -> list[tuple[Tensor, Tensor]]:
    """Training and test cases of normal classes around random centres."""
    rng = np.random.default_rng([n_classes, seed])
    centres = distance / np.sqrt(2.0) * rng.normal(size=(n_classes, FEATURES)) / FEATURES**0.5
    parts = []
    for size in (max(2000, 10 * n_classes), 2000):
        y = rng.integers(0, n_classes, size)
        x = 2.0 * centres[y] + rng.normal(size=(size, FEATURES))
        parts.append((torch.tensor(x, dtype=torch.float32), torch.tensor(y)))
    return parts


def trained(kind: str, name: str, n_classes: int, seed: int) -> dict[str, float]:
    """Test accuracy, the first penalty, and how far the sum of violations ever was from 1/A."""
    distance, steps, _ = CLASSES[n_classes]
    (x, y), test = drawn(n_classes, distance, seed)
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, n_classes))
    penalty = KINDS[kind](network[-1])
    added = [] if penalty is None else list(penalty.parameters())
    optimizer = OPTIMISERS[name]([*network.parameters(), *added])
    first, off = np.nan, 0.0
    for step in range(steps):
        rows = torch.randint(len(x), (128,))
        loss = functional.cross_entropy(network(x[rows]), y[rows])
        if penalty is not None:
            value = penalty()
            first = value.item() if step == 0 else first
            off = max(off, abs(violations(network[-1], penalty) * SHARPNESS - 1.0))
            loss = loss + value
        optimizer.zero_grad()
        loss.backward()
        if "clipped" in name:
            nn.utils.clip_grad_norm_([*network.parameters(), *added], 1.0)
        optimizer.step()
    with torch.no_grad():
        accuracy = (network(test[0]).argmax(1) == test[1]).double().mean().item()
    return {"accuracy": accuracy, "first": first, "off": off}


@torch.no_grad()
def violations(layer: nn.Linear, penalty: nn.Module) -> float:
    """The sum of the relative violations of k, in double precision."""
    return float((torch.pdist(layer.weight.double()) / penalty.k - 1.0).clamp_min(0.0).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, nargs="*", default=list(CLASSES))
    parser.add_argument("--output", type=Path, default=RESULTS)
    args = parser.parse_args()
    torch.set_num_threads(1)
    lines = [
        "# Training with the regulariser",
        "",
        f"`python benchmarks/regularizer.py`: drawn classes, {FEATURES} features, {HIDDEN} hidden "
        f"units, batches of 128, strength {STRENGTH:g}, A = {SHARPNESS:g}; Python "
        f"{platform.python_version()}, PyTorch {torch.__version__}, on a processor. Test accuracy, "
        "mean over seeds; the penalty before the first step; and, over all steps, the largest "
        'relative error of the sum of relative violations, which is to be 1/A. "Learned k" is the '
        "same penalty with k a parameter of the optimiser at the network's rate, as it was before. "
        "In 100 steps plain SGD learns little of 1,000 classes, whatever is added.",
        "",
        "| classes | optimiser | seeds, steps | accuracy without | with | learned k "
        "| first penalty | learned k | sum of violations off by | learned k |",
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for n_classes in args.classes:
        _, steps, seeds = CLASSES[n_classes]
        for name in OPTIMISERS:
            found = {
                kind: [trained(kind, name, n_classes, seed) for seed in range(seeds)]
                for kind in KINDS
            }
            mean = {
                kind: {key: float(np.mean([one[key] for one in runs])) for key in runs[0]}
                for kind, runs in found.items()
            }
            worst = {kind: max(one["off"] for one in runs) for kind, runs in found.items()}
            after, before = mean["closed form"], mean["learned k"]
            lines.append(
                f"| {n_classes} | {name} | {seeds}, {steps} | {mean['without']['accuracy']:.3f} | "
                f"{after['accuracy']:.3f} | {before['accuracy']:.3f} | {after['first']:.3g} | "
                f"{before['first']:.3g} | {worst['closed form']:.1e} | {worst['learned k']:.1e} |"
            )
            print(lines[-1], flush=True)
    args.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
