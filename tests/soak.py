"""The same calls ten thousand times in one process: ``python -m tests.soak``.

Memory, objects, open files and threads are counted every thousand calls, after all garbage is
collected. Caches fill in the first calls; after them nothing may grow.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

CALLS = 10_000
CHECKPOINTS = 10
#: Growth that is taken for a leak: half a KiB for each call would be 5 MiB.
MIB, OBJECTS, FILES = 5.0, 5000, 2


@dataclass(frozen=True)
class Census:
    """What a process holds."""

    mib: float
    objects: int
    files: int
    threads: int

    @classmethod
    def now(cls) -> Census:
        """Of this process, without garbage."""
        for _ in range(3):
            gc.collect()
        with suppress(AttributeError, OSError):  # not glibc
            ctypes.CDLL(None).malloc_trim(0)  # what is free but kept says nothing
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        return cls(
            pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
            len(gc.get_objects()),
            len(os.listdir("/proc/self/fd")),
            len(os.listdir("/proc/self/task")),
        )


def tasks(folder: Path) -> dict[str, tuple[int, Callable[[], object]]]:
    """Calls by name, each with how many of a hundred they are."""
    from fragility import (
        KL,
        DeferralClassifier,
        DROClassifier,
        ERMClassifier,
        FragilitySketch,
        Report,
        SatisficingClassifier,
        SatisficingClassifierCV,
        Wasserstein,
        best_policy,
        certify,
        compare_fragility,
        deferral_curve,
        fragility_path,
        loss_fragility,
        measure_fragility,
        wasserstein_fragility_index,
    )
    from fragility.metrics import buffered_auc_score, ranking_error_cvar

    from .fuzzing.readers import run

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    three = np.digitize(X[:, 0] + rng.normal(size=60), [-0.6, 0.6])
    p = 1.0 / (1.0 + np.exp(-X[:, 0] - 0.3 * rng.normal(size=60)))
    several = np.exp(X + 1.5 * np.eye(3)[three])
    several /= several.sum(axis=1, keepdims=True)
    predictions = folder / "predictions.csv"
    rows = "".join(f"{label},{score}\n" for label, score in zip(y, p, strict=True))
    predictions.write_text("label,a\n" + rows, "utf-8")

    def fit(estimator, labels=y):
        return lambda: estimator.fit(X, labels).predict_proba(X)

    def index():
        found = measure_fragility(y, p)
        return found.interval(), found.attribution(), repr(found), measure_fragility(three, several)

    def other_indices():
        wasserstein_fragility_index(y, np.log(p / (1.0 - p)), weight_norm=2.0)
        return loss_fragility(p, target=0.9), buffered_auc_score(y, p), ranking_error_cvar(y, p)

    def sketch():
        parts = [FragilitySketch(64, [0, 1]) for _ in range(3)]
        for part in parts:
            part.update(y, p)
        whole = FragilitySketch.from_bytes((parts[0] + parts[1] + parts[2]).to_bytes())
        return whole.fragility()

    def report():
        made = Report.from_predictions(y, {"a": p, "b": p**2}, costs={"error_cost": 5.0})
        return made.to_html(), made.to_json(), made.to_markdown(), repr(made)

    def deferral():
        curve = deferral_curve(y, p, error_cost=5.0)
        return curve, best_policy(y, p, error_cost=5.0, random_state=0)

    def command(label, expected):
        def call():
            code, _, said = run("evaluate", predictions, "--label", label, "--score", "a")
            assert code == expected, said

        return call

    slack = {"slack": 0.2}
    ball = Wasserstein(1, label_cost=1.0)
    deferring = DeferralClassifier(ERMClassifier(), error_cost=5.0, cv=2, random_state=0)
    return {
        "lowest loss": (8, fit(ERMClassifier())),
        "Wasserstein": (8, fit(SatisficingClassifier(**slack))),
        "Wasserstein, ℓ1, labels": (5, fit(SatisficingClassifier(ambiguity=ball, **slack))),
        "KL": (8, fit(SatisficingClassifier(ambiguity=KL(), **slack))),
        "hinge": (5, fit(SatisficingClassifier("hinge", **slack))),
        "three classes": (5, fit(SatisficingClassifier(**slack), three)),
        "ball": (3, fit(SatisficingClassifier(radius=0.02, **slack))),
        "DRO": (5, fit(DROClassifier(radius=0.05))),
        "cross-validation": (1, fit(SatisficingClassifierCV(slacks=[0.1], alphas=[1e-3], cv=2))),
        "path": (2, lambda: fragility_path(X, y, slacks=[0.1, 0.3])),
        "certify": (5, lambda: repr(certify(ERMClassifier().fit(X, y), X, y, target=0.9))),
        "index": (10, index),
        "other indices": (5, other_indices),
        "comparison": (3, lambda: compare_fragility(y, p, p**2)),
        "sketch": (6, sketch),
        "report": (3, report),
        "deferral": (3, deferral),
        "deferring classifier": (2, lambda: deferring.fit(X, y).decide(X)),
        "command": (2, command("label", 0)),
        "command, refused": (2, command("nothing", 2)),
        **torch_tasks(three, several),
    }


def torch_tasks(labels, probabilities) -> dict[str, tuple[int, Callable[[], object]]]:
    """Those of networks, if PyTorch is there."""
    try:
        import torch
        import torchmetrics  # noqa: F401
    except ImportError:
        return {}
    from fragility.torch import MulticlassFragilityIndex, fragility_index

    y, logits = torch.as_tensor(labels), torch.log(torch.as_tensor(probabilities))

    def index():
        scores = logits.clone().requires_grad_()
        fragility_index(scores.softmax(1), y).backward()

    metric = MulticlassFragilityIndex(3)

    def metric_step():
        metric(logits.softmax(1), y)
        metric.compute()
        metric.reset()

    return {
        "torch: index": (2, index),
        "torch: metric": (2, metric_step),
    }


def grown(counted: list[Census]) -> list[str]:
    """What grew: the last third of the counts lies above the first by more than is allowed."""
    third = max(1, len(counted) // 3)
    allowed = {"mib": MIB, "objects": OBJECTS, "files": FILES, "threads": FILES}
    found = []
    for name, most in allowed.items():
        first, last = (
            median(getattr(one, name) for one in part)
            for part in (counted[:third], counted[-third:])
        )
        if last - first > most:
            found.append(
                f"{name} grew from {first:.1f} to {last:.1f}; at most {most:g} more may be"
            )
    return found


def soak(work: dict[str, tuple[int, Callable[[], object]]], calls: int) -> int:
    """Do the work in turn and count; 1 if something grew."""
    order = [name for name, (share, _) in work.items() for _ in range(share)]
    np.random.default_rng(1).shuffle(order)
    for _, call in work.values():  # imports and caches
        call()
    begun, counted = time.monotonic(), []
    spent = dict.fromkeys(work, 0.0)
    print(f"{'calls':>7} {'MiB':>8} {'objects':>9} {'files':>6} {'threads':>8} {'seconds':>8}")
    for number in range(1, calls + 1):
        name = order[number % len(order)]
        start = time.perf_counter()
        work[name][1]()
        spent[name] += time.perf_counter() - start
        if number % max(1, calls // CHECKPOINTS) == 0:
            now = Census.now()
            counted.append(now)
            print(
                f"{number:>7} {now.mib:>8.1f} {now.objects:>9} {now.files:>6} {now.threads:>8} "
                f"{time.monotonic() - begun:>8.0f}",
                flush=True,
            )
    slowest = sorted(spent, key=lambda name: -spent[name])[:5]
    print("Most time: " + ", ".join(f"{name} {spent[name]:.0f} s" for name in slowest) + ".")
    problems = grown(counted[1:])  # what fills up late, such as a cache of the allocator
    for problem in problems:
        print(f"A leak: {problem}.")
    if not problems:
        print(f"Nothing grew in {calls} calls: memory within {MIB:g} MiB.")
    return int(bool(problems))


def main(arguments: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser("python -m tests.soak", description=__doc__)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--only", help="the call of this name alone")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        work = tasks(Path(folder))
        if options.only:
            work = {options.only: work[options.only]}
        result = soak(work, options.calls)
        left = sorted(path.name for path in Path(folder).iterdir())
    if left != ["predictions.csv"] and not options.only:
        print(f"Files were left behind: {', '.join(left)}.")
        return 1
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
