"""A small network whose training labels are partly wrong: what each method buys.

Run with ``make network``; needs ``fragility[torch]`` and half a minute. Malignant or benign? Plain
training, weight decay, label smoothing and the fragility regulariser learn from the same tumours,
and are compared before and after the same calibration.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from textwrap import fill

import numpy as np
import torch
from scipy.stats import t as student
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn import functional

from fragility import fragility_ratio
from fragility.torch import FragilityRegularizer, fit_temperature, fragility_index

TRAINING, VALIDATION = 250, 128  # of 569 tumours; the others test
METRICS = (
    "accuracy", "AUC", "log-loss", "FI", "ratio",
    "calibrated loss", "calibrated FI", "calibrated ratio",
)  # fmt: skip
#: Of these a sentence is said: is more better?
JUDGED = {"accuracy": True, "AUC": True, "calibrated loss": False}


@dataclass(frozen=True)
class Method:
    """What is added to plain training; zero means that it is not."""

    decay: float = 0.0
    smoothing: float = 0.0
    regularizer: float = 0.0


METHODS = {
    "plain": Method(),
    "weight decay": Method(decay=0.01),
    "smoothing": Method(smoothing=0.1),
    "regulariser": Method(regularizer=0.1),
}


def trained(method: Method, x: Tensor, y: Tensor, *, epochs: int, seed: int) -> nn.Module:
    """An ordinary training loop; the regulariser adds two lines to it."""
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(x.shape[1], 64), nn.ReLU(), nn.Linear(64, 2))
    regularizer = FragilityRegularizer(network[-1], strength=method.regularizer)  # 1 of 2
    optimizer = torch.optim.Adam(network.parameters(), weight_decay=method.decay)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(32):
            logits = network(x[rows])
            loss = functional.cross_entropy(logits, y[rows], label_smoothing=method.smoothing)
            if method.regularizer:
                loss = loss + regularizer()  # 2 of 2
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return network.eval()


def split(seed: int, wrong: float) -> list[tuple[Tensor, Tensor]]:
    """Training, validation and test data; a share of the training labels is wrong."""
    X, y = load_breast_cancer(return_X_y=True)
    X, X_rest, y, y_rest = train_test_split(
        X, 1 - y, train_size=TRAINING, stratify=y, random_state=seed
    )
    parts = train_test_split(
        X_rest, y_rest, train_size=VALIDATION, stratify=y_rest, random_state=seed
    )
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    y = y ^ (np.random.default_rng(seed).random(TRAINING) < wrong)
    pairs = (X, y), (parts[0], parts[2]), (parts[1], parts[3])
    return [
        (torch.tensor((X - mean) / deviation, dtype=torch.float32), torch.tensor(y))
        for X, y in pairs
    ]


@torch.no_grad()
def judged(network: nn.Module, validation, test) -> list[float]:
    """All metrics on the test data; the validation data choose the temperature."""
    logits, labels = network(test[0]).double(), test[1]
    temperature = fit_temperature(network(validation[0]), validation[1])
    raw, calibrated = logits.softmax(1), (logits / temperature).softmax(1)
    figures = [accuracy_score(labels, raw.argmax(1)), roc_auc_score(labels, raw[:, 1])]
    for p in (raw, calibrated):
        index = fragility_index(p, labels).item()
        ratio = fragility_ratio(labels.numpy(), p[:, 1].numpy())
        figures += [log_loss(labels, p), index, ratio]
    return figures


def mean_and_error(values) -> tuple[float, float]:
    with np.errstate(invalid="ignore"):  # an infinite index has no standard error
        return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


def beyond_chance(values) -> bool:
    """Whether the 95% interval of the mean leaves out zero."""
    mean, error = mean_and_error(values)
    return abs(mean) > student.ppf(0.975, len(values) - 1) * error


def verdict(change: dict[str, np.ndarray]) -> str:
    """What a method did, from its differences to plain training in each split, by rule."""
    raw, left = mean_and_error(change["FI"])[0], mean_and_error(change["calibrated FI"])[0]
    if not beyond_chance(change["FI"]):
        text = "FI as in plain training within chance"
    else:
        text = f"FI {'lower' if raw < 0 else 'higher'} by {abs(raw):.3f}"
    if not beyond_chance(change["calibrated FI"]):
        text += ", and calibrated alike no difference beyond chance"
    else:
        text += f", calibrated alike {'lower' if left < 0 else 'higher'} by {abs(left):.3f}"
    for metric, more_is_better in JUDGED.items():
        mean = mean_and_error(change[metric])[0]
        if beyond_chance(change[metric]):
            better = "better" if (mean > 0) == more_is_better else "worse"
            text += f"; {metric} {better} by {abs(mean):.3f}"
    return text + "."


def print_table(results) -> None:
    print(f"{'':17}" + "".join(f"{name:>15}" for name in METHODS))
    for j, metric in enumerate(METRICS):
        cells = [mean_and_error(results[:, i, j]) for i in range(len(METHODS))]
        print(f"{metric:17}" + "".join(f"{mean:7.3f} ± {error:.3f}" for mean, error in cells))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=8, help="random splits (default 8)")
    parser.add_argument("--epochs", type=int, default=60, help="of each training (default 60)")
    parser.add_argument(
        "--wrong", type=float, default=0.1, help="share of wrong training labels (default 0.1)"
    )
    args = parser.parse_args()
    if args.splits < 2:
        parser.error("--splits must be 2 or more: one split has no standard error")
    if not 0.0 <= args.wrong < 0.5:
        parser.error("--wrong must be at least 0 and below 0.5: beyond it labels say the reverse")
    return args


def main() -> None:
    args = parsed()
    about = (
        f"Malignant or benign? {TRAINING} tumours train, {args.wrong:.0%} of their labels are "
        f"wrong; {VALIDATION} choose a temperature for each network, the other 191 test, with true "
        f"labels; {args.splits} splits, mean ± standard error. FI: tail risk of confident ranking "
        "mistakes, lower is better, but shrinking all scores lowers it, too; ratio: the same, free "
        "of scale; calibrated: after the temperature."
    )
    print(fill(about, 106) + "\n")
    trials = []
    for seed in range(args.splits):
        training, validation, test = split(seed, args.wrong)
        networks = (
            trained(method, *training, epochs=args.epochs, seed=seed) for method in METHODS.values()
        )
        trials.append([judged(network, validation, test) for network in networks])
    results = np.array(trials)
    print_table(results)
    print("\nAgainst plain training:")
    for i, name in enumerate(METHODS):
        if i > 0:
            with np.errstate(invalid="ignore"):  # infinite less infinite is no number
                change = dict(zip(METRICS, (results[:, i] - results[:, 0]).T, strict=True))
            text = f"{name}: {verdict(change)}"
            print(fill(text, 106, initial_indent="  ", subsequent_indent="    "))
    caveat = (
        "Chance: 95% t intervals of paired differences. The splits share the same tumours, so they "
        "say less of others than they seem to. Strengths are the recommended ones, not tuned here: "
        "other data may give another answer."
    )
    print("\n" + fill(caveat, 106))


if __name__ == "__main__":
    main()
