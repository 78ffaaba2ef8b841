"""Nine sets of small medical images: ResNet-18 by the paper's protocol, beside its table.

All nine sets: ``python -m experiments run medmnist``. A part of them: name it in the environment
variable ``FRAGILITY_MEDMNIST``, such as ``dataset=breast,blood stem=7x7 method=ERM,Mixup``. With a
folder in ``FRAGILITY_CHECKPOINTS`` a training that was killed goes on from its last epoch, not from
its first. Trainings run on CUDA where there is any; there the same seed gives the same start and
order, but the device rounds its sums differently each time, and so is what comes out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pandas import DataFrame, read_csv
from sklearn.metrics import roc_auc_score

from experiments.claims import Claim, Verdict, mostly
from experiments.comparison import short
from experiments.experiment import Condition, Experiment, Report, Row
from experiments.medmnist_report import beside_printed, differences, models
from experiments.merit import merits
from fragility import measure_fragility

if TYPE_CHECKING:
    from experiments.deep.trainer import Trained

DATASETS = (
    "blood", "breast", "organa", "organc", "organs", "path", "pneumonia", "retina", "tissue",
)  # fmt: skip
#: Name -> what of `Recipe` is set.
METHODS: Mapping[str, Mapping[str, Any]] = {
    "ERM": {},
    "Regulariser": {"regularizer": 0.1},
    "Regulariser+smoothing": {"regularizer": 0.1, "label_smoothing": 0.1},
    "Direct": {"direct": 0.3},
    "Direct+regulariser": {"direct": 0.3, "regularizer": 0.1},
    "Smoothing": {"label_smoothing": 0.1},
    "Mixup": {"mixup": 1.0},
    "Direct+mixup": {"direct": 0.3, "mixup": 1.0},
}
_QUICK_METHODS = ("ERM", "Regulariser", "Direct+mixup")
#: What an infinite pair counts as in the capped index: a guess that fits the printed RetinaMNIST.
CAP = 10.0


def conditions(quick: bool) -> list[Condition]:
    """Every set with both stems and every method, or those that were asked for."""
    if quick:
        return [{"dataset": "breast", "stem": "7x7", "method": m} for m in _QUICK_METHODS]
    wanted = _wanted(os.environ.get("FRAGILITY_MEDMNIST", ""))
    return [
        {"dataset": dataset, "stem": stem, "method": method}
        for dataset in wanted["dataset"]
        for stem in wanted["stem"]
        for method in wanted["method"]
    ]


def _wanted(text: str) -> dict[str, tuple[str, ...]]:
    """The choices of the environment variable, in our order; all where nothing is said.

    Examples
    --------
    >>> _wanted("dataset=breast,blood stem=7x7")["dataset"]
    ('blood', 'breast')
    """
    known = {"dataset": DATASETS, "stem": ("7x7", "3x3"), "method": tuple(METHODS)}
    wanted: dict[str, tuple[str, ...]] = dict(known)
    for part in text.split():
        key, _, values = part.partition("=")
        names = values.split(",")
        if key not in known or not set(names) <= set(known[key]):
            all_known = "; ".join(f"{name}={','.join(values)}" for name, values in known.items())
            raise ValueError(f"FRAGILITY_MEDMNIST: {part!r} is not known. There are: {all_known}.")
        wanted[key] = tuple(value for value in known[key] if value in names)
    return wanted


def trial(condition: Condition, seed: int, quick: bool) -> Iterator[Row]:
    """One training: a row for each way to choose its epoch."""
    import torch

    from experiments.deep.images import images
    from experiments.deep.recipe import Objective, Recipe
    from experiments.deep.resnet import ResNet18
    from experiments.deep.steps import batch_sizes
    from experiments.deep.trainer import PICKS, Data, Settings, train

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = images(str(condition["dataset"]), quick, device)
    stem, fast = condition["stem"], device.type == "cuda"
    settings = Settings(epochs=2 if quick else 100, bfloat16=fast and stem == "3x3", graphs=fast)
    epoch_steps = len(batch_sizes(len(data.train[0]), settings.batch_size))
    recipe = Recipe(**METHODS[str(condition["method"])])

    def build() -> Objective:
        network = ResNet18(data.n_classes, stem)  # type: ignore[arg-type]
        if fast:
            network = network.to(memory_format=torch.channels_last)
        return recipe.objective(network, network.fc, data.n_classes, epoch_steps)

    checkpoint = _checkpoint(condition, seed, quick)
    trained = train(build, Data(*data.train, *data.val), settings, seed=seed, checkpoint=checkpoint)
    for pick in PICKS:
        epoch = trained.restore(pick)
        yield short(
            {
                "dataset": data.name,
                "pick": pick,
                "epoch": epoch,
                "epochs": len(trained.history),
                **_judged(trained, data, seed),
            }
        )
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)


def _checkpoint(condition: Condition, seed: int, quick: bool) -> Path | None:
    folder = os.environ.get("FRAGILITY_CHECKPOINTS")
    if not folder or quick:
        return None
    Path(folder).mkdir(parents=True, exist_ok=True)
    name = "-".join(str(condition[key]) for key in ("dataset", "stem", "method"))
    return Path(folder) / f"{name}-{seed}.pt"


def _judged(trained: Trained, data: Any, seed: int) -> Row:
    """Merits on the test images; also after a temperature that the validation images chose."""
    from fragility.torch import fit_temperature

    logits = trained.logits(data.test[0]).double()
    truth = data.test[1].cpu().numpy()
    classes = np.arange(data.n_classes)
    temperature = fit_temperature(trained.logits(data.val[0]), data.val[1])
    p = logits.softmax(1).cpu().numpy()
    # A temperature without limit leaves no confidence at all; so large a one leaves its traces.
    scaled = (logits / min(temperature, 1e6)).softmax(1).cpu().numpy()
    after = merits(truth, scaled, classes, seed)
    return {
        **merits(truth, p, classes, seed),
        "auc_ovr": _auc_ovr(truth, p),
        "capped_fragility_index": _capped(truth, p, classes),
        "temperature": temperature,
        "scaled_fragility_index": after["fragility_index"],
        "scaled_log_loss": after["log_loss"],
    }


def _auc_ovr(truth: Any, p: Any) -> float:
    """Mean AUC of each class against the rest, as MedMNIST defines it."""
    if p.shape[1] == 2:
        return float(roc_auc_score(truth, p[:, 1]))
    return float(roc_auc_score(truth, p, multi_class="ovr", labels=np.arange(p.shape[1])))


def _capped(truth: Any, p: Any, classes: Any) -> float:
    """The index with infinite pairs counted as a large number."""
    found = measure_fragility(truth, p[:, 1] if classes.size == 2 else p, labels=classes)
    return float(np.nanmean(np.minimum(found.pairs, CAP)))


def printed() -> DataFrame:
    """The paper's table: one row for each set and method."""
    return read_csv(Path(__file__).parent / "printed" / "medmnist.csv")


def report(results: DataFrame) -> Report:
    """Ours beside the printed values, and every method against ERM, paired by seed."""
    tables = {"models": models(results)}
    beside = beside_printed(results, printed())
    if not beside.empty:
        tables["beside_printed"] = beside
    against = differences(results)
    if not against.empty:
        tables["against_erm"] = against
    return Report(
        tables,
        {},
        "ResNet-18 from scratch, Adam, official splits, the epoch of the least validation "
        "cross-entropy (`ce`, the paper's choice) or of the least sum with the index (`ce+fi`). "
        "`calibrated` figures are cross-fitted on the test images; `scaled` ones follow the "
        "temperature that the validation images chose. `capped` counts an infinite pair as "
        f"{CAP:g}, which is a guess at what the paper does. On a GPU the same seed does not give "
        "the same figures twice. The paper's regulariser column stands beside "
        "ours with λ₀ = 10.",
    )


def _erm_reproduced(results: DataFrame) -> Verdict | None:
    beside = beside_printed(results, printed())
    if beside.empty:
        return None
    part = beside[(beside["method"] == "ERM") & (beside["stem"] == "7x7")].dropna(subset=["error"])
    if part.empty:
        return None
    outside = [f"{r.dataset} {r.measure}" for r in part[~part["inside"]].itertuples()]
    return mostly(
        int(part["inside"].sum()),
        len(part),
        f"Printed ERM figures within two standard errors of ours, 7×7 stem: "
        f"{int(part['inside'].sum())} of {len(part)}. Outside: {', '.join(outside) or 'none'}.",
    )


def _regulariser_gains(results: DataFrame) -> Verdict | None:
    against = differences(results)
    if against.empty:
        return None
    part = against[(against["method"] == "Regulariser") & (against["pick"] == "ce")]
    part = part[part["measure"].isin(["log_loss", "fragility_index"])].dropna(subset=["error"])
    if part.empty:
        return None
    lower = part[part["difference"] < -2.0 * part["error"]]
    return mostly(
        len(lower),
        len(part),
        f"Cross-entropy or index lower than ERM's by more than two standard errors in {len(lower)} "
        f"of {len(part)} cells (set, stem, figure).",
    )


def _more_epochs(results: DataFrame) -> Verdict | None:
    part = results[(results["pick"] == "ce") & (results["stem"] == "7x7")]
    epochs = part.groupby(["dataset", "method"])["epochs"].mean().unstack()
    if not {"ERM", "Regulariser"} <= set(epochs) or set(part["dataset"]) == {"stand-in"}:
        return None
    more = float((epochs["Regulariser"] / epochs["ERM"]).mean() - 1.0)
    return Verdict(
        "holds" if more >= 0.2 else "holds partly" if more > 0.0 else "does not hold",
        f"With the 7×7 stem the regulariser needs {more:+.0%} epochs (the paper: +43 %).",
    )


EXPERIMENT = Experiment(
    name="medmnist",
    title="nine sets of medical images: deep networks beside the printed values",
    trials=10,
    quick_trials=2,
    conditions=conditions,
    trial=trial,
    report=report,
    claims=[
        Claim("Table (MedMNIST)", "The printed figures of ERM are reproduced.", _erm_reproduced),
        Claim(
            "6.1",
            "The regulariser lowers cross-entropy and index of ERM on most sets.",
            _regulariser_gains,
        ),
        Claim("6.1", "The regularised model needs more epochs than ERM.", _more_epochs),
    ],
)
