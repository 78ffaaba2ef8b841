"""Costs of `fragility.torch` on a GPU: of a training step, and of the exact index against AUROC.

Run on a machine with CUDA: ``PYTHONPATH=. python benchmarks/torch_gpu.py``. Values are checked
against NumPy first. All times are of one run: what is compared takes turns, round after round, and
the ratios are medians over the rounds.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import torch
import torchmetrics
from index import binary, several
from torch import Tensor
from torchmetrics.functional.classification import binary_auroc, multiclass_auroc

import fragility
from experiments.deep.recipe import Objective, Recipe
from experiments.deep.resnet import ResNet18
from experiments.deep.steps import EagerSteps, GraphedSteps
from fragility.torch import fragility_index

RESULTS = Path(__file__).parent / "results"
RECIPES = {"ERM": {}, "regulariser": {"regularizer": 0.1}, "direct": {"direct": 0.3}}
BATCH, STEPS = 128, 40


def milliseconds(function: Callable[[], object]) -> float:
    """Time on the device from before the call to after all it started."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    function()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end)


def in_turns(functions: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Times of each, in rounds that go through all of them; two rounds before are not counted."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for number in range(rounds + 2):
        for name, function in functions.items():
            taken = milliseconds(function)
            if number >= 2:
                times[name].append(taken)
    return times


def index_rows(n: int, rounds: int) -> list[dict[str, object]]:
    """Exact index and AUROC of the same tensors."""
    rows = []
    for n_classes in (2, 10):
        truth, p = binary(n) if n_classes == 2 else several(n, n_classes)
        y = torch.as_tensor(truth, device="cuda")
        known = fragility.fragility_index(truth, p)
        for dtype in (torch.float32, torch.float64):
            probs = torch.as_tensor(p, device="cuda").to(dtype)
            found = fragility_index(probs, y).item()
            if dtype == torch.float64:
                error = abs(found / known - 1.0)
                assert error < 1e-12, (found, known)
            times = in_turns(
                {
                    "index": lambda probs=probs, y=y: fragility_index(probs, y),
                    "AUROC": lambda probs=probs, y=y: auroc(probs, y),
                    "AUROC unchecked": lambda probs=probs, y=y: auroc(probs, y, False),
                },
                rounds,
            )
            row = {"C": n_classes, "dtype": str(dtype).removeprefix("torch."), "n": n}
            row |= {f"{name} ms": round(median(values), 3) for name, values in times.items()}
            ratios = [a / b for a, b in zip(times["index"], times["AUROC"], strict=True)]
            rows.append({**row, "index / AUROC": round(median(ratios), 2)})
            print(rows[-1], flush=True)
    return rows


def auroc(probs: Tensor, y: Tensor, checked: bool = True) -> Tensor:
    """What torchmetrics users have."""
    if probs.ndim == 1:
        return binary_auroc(probs, y, validate_args=checked)
    return multiclass_auroc(probs, y, num_classes=probs.shape[1], validate_args=checked)


def steps(mode: str, stem: str, recipe: Recipe, n_classes: int) -> EagerSteps:
    """Steps of a network on random images of 28 × 28 pixels, as the trainer makes them."""
    torch.manual_seed(0)
    images = torch.randn(BATCH * STEPS, 3, 28, 28, device="cuda")
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(n_classes, (len(images),), device="cuda")
    network = ResNet18(n_classes, stem).to(memory_format=torch.channels_last)
    objective: Objective = recipe.objective(network, network.fc, n_classes, STEPS).cuda()
    objective.bfloat16 = stem == "3x3"
    if "compiled" in mode:
        for term in (objective.penalty, objective.direct):
            if term is not None:
                term.compile()
    groups = objective.parameter_groups(1e-4)
    for group in groups:
        group["lr"] = torch.tensor(1e-3, device="cuda")
    optimizer = torch.optim.Adam(groups, capturable=True, fused=True)
    kind = GraphedSteps if mode.startswith("graphed") else EagerSteps
    return kind(objective, optimizer, images, labels, BATCH)


def step_rows(rounds: int) -> list[dict[str, object]]:
    """Step times of every method in every mode, and their ratio to ERM's in that mode."""
    rows = []
    order = torch.randperm(BATCH * STEPS)
    modes = ("eager", "graphed", "graphed, terms compiled")
    for stem, n_classes in (("7x7", 2), ("7x7", 8), ("3x3", 2), ("3x3", 8)):
        for mode in modes:
            made = {n: steps(mode, stem, Recipe(**r), n_classes) for n, r in RECIPES.items()}
            times = in_turns(
                {name: lambda made=each: made.epoch(order) for name, each in made.items()}, rounds
            )
            for name, values in times.items():
                ratios = [a / b for a, b in zip(values, times["ERM"], strict=True)]
                rows.append(
                    {
                        "stem": stem,
                        "C": n_classes,
                        "mode": mode,
                        "method": name,
                        "step ms": round(median(values) / STEPS, 4),
                        "over ERM": f"{median(ratios) - 1.0:+.1%}",
                    }
                )
                print(rows[-1], flush=True)
            torch._dynamo.reset()
            del made
            torch.cuda.empty_cache()
    return rows


def gradients_agree() -> None:
    """Values and gradients on the device are those of the host."""
    for n_classes in (2, 5):
        truth, p = binary(5000) if n_classes == 2 else several(5000, n_classes)
        for kind in ("ovo", "ovr"):
            found = []
            for device in ("cpu", "cuda"):
                probs = torch.tensor(p, device=device, requires_grad=True)
                fragility_index(
                    probs, torch.as_tensor(truth, device=device), multi_class=kind
                ).backward()
                found.append(probs.grad.cpu().numpy())
            np.testing.assert_allclose(found[1], found[0], rtol=1e-10, atol=1e-16)


def as_markdown(rows: list[dict[str, object]]) -> str:
    head = list(rows[0])
    lines = [" | ".join(head), " | ".join("---:" for _ in head)]
    lines += [" | ".join(str(row[name]) for name in head) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    gradients_agree()
    index, step = index_rows(options.n, options.rounds), step_rows(options.rounds)
    about = (
        f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, torchmetrics "
        f"{torchmetrics.__version__}, Python {platform.python_version()}; medians of "
        f"{options.rounds} rounds, also of the ratios, which are taken round by round."
    )
    text = (
        "# PyTorch on a GPU\n\n`PYTHONPATH=. python benchmarks/torch_gpu.py`. " + about + "\n\n"
        "## Exact index against AUROC\n\n" + as_markdown(index) + "\n\n"
        f"## Training steps: ResNet-18, batch {BATCH}, images of 28 × 28\n\n"
        + as_markdown(step)
        + "\n"
    )
    options.results.mkdir(parents=True, exist_ok=True)
    (options.results / "torch_gpu.md").write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
