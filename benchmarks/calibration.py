"""Is the chosen calibration ever clearly worse than Platt's? On every data set at hand.

``PYTHONPATH=. python benchmarks/calibration.py`` takes some minutes and the files of
`experiments.data`, in the folder that FRAGILITY_DATA names; it writes
``benchmarks/results/calibration.md``. Models predict cases that they were not fitted to. Asked for
is that the log-loss by the chosen map, each case by a map fitted without it, is at most one
standard error (of the difference, over the same cases) above that by Platt's map; for several
classes by one temperature.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy
import sklearn
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.data import load_medmnist, load_shift, load_uci
from experiments.data.shift import SETS as SHIFT_SETS
from experiments.data.uci_files import SETS as UCI_SETS
from fragility import Report
from fragility._validation import check_labelled_probabilities
from fragility.calibration.choice import CalibrationChoice
from fragility.calibration.table import ScoreTable, calibrated_table
from fragility.datasets import load_heart
from fragility.figures.rank import calibration_error
from fragility.measured import CALIBRATION_BINS
from fragility.report.sum_views import CalibratedView

RESULTS = Path(__file__).parent / "results" / "calibration.md"
IMAGES = ("breast", "pneumonia", "retina", "blood")


class Predicted(NamedTuple):
    """Predictions of one model on cases that it was not fitted to."""

    data: str
    model: str
    y: Any
    p: Any


def models() -> dict[str, Callable[[], Any]]:
    """Models that are calibrated in different ways, or not at all."""
    return {
        "logistic": lambda: LogisticRegression(max_iter=2_000),
        "naive Bayes": GaussianNB,
        "forest": lambda: RandomForestClassifier(100, random_state=0),
        "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
    }


def prepared(model: Any, *steps: Any) -> Any:
    return make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), *steps, model)


def tables() -> Iterator[tuple[str, Any, Any]]:
    """Every table: name, features, classes."""
    X, y = load_heart(return_X_y=True)
    yield "heart", X, y
    for name in UCI_SETS:
        X, y = load_uci(name, return_X_y=True)
        yield name, X, y
    for name in SHIFT_SETS:
        found = load_shift(name)
        yield name, found.data, found.target


def on_tables() -> Iterator[Predicted]:
    """Out of fold."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    for name, X, y in tables():
        X = X[:, ~np.isnan(X).all(axis=0)]
        for title, model in models().items():
            p = cross_val_predict(prepared(model()), X, y, cv=folds, method="predict_proba")
            yield Predicted(name, title, y, p[:, 1])


def later() -> Iterator[Predicted]:
    """The bank's last quarter of the calls, by models of the first 55 %."""
    found = load_shift("bank")
    n = len(found.target)
    first, last = slice(0, int(0.55 * n)), slice(int(0.75 * n), n)
    for title, model in models().items():
        fitted = prepared(model()).fit(found.data[first], found.target[first])
        p = fitted.predict_proba(found.data[last])[:, 1]
        yield Predicted("bank, later", title, found.target[last], p)


def on_images() -> Iterator[Predicted]:
    """Validation and test cases, by models of 40 principal components of the training images."""
    for name in IMAGES:
        found = load_medmnist(name)
        X, y = (
            np.concatenate([getattr(found[part], kind) for part in ("val", "test")])
            for kind in ("data", "target")
        )
        for title, model in models().items():
            fitted = prepared(model(), PCA(40, random_state=0))
            fitted.fit(_flat(found.train.data), found.train.target)
            p = fitted.predict_proba(_flat(X))
            yield Predicted(name, title, y, p[:, 1] if p.shape[1] == 2 else p)


def _flat(images: Any) -> Any:
    return images.reshape(len(images), -1) / 255.0


class Row(NamedTuple):
    """What was found for one model."""

    data: str
    model: str
    n: int
    n_classes: int
    choice: CalibrationChoice
    before: float
    after: float
    by_old: float

    @property
    def old(self) -> str:
        return "platt" if self.n_classes == 2 else "temperature"

    @property
    def gap(self) -> float:
        return self.choice.losses[self.choice.method] - self.choice.losses[self.old]

    @property
    def error(self) -> float:
        return self.choice.errors[self.old]

    @property
    def kept(self) -> bool:
        """Whether the loss is at most one standard error above that of the old map."""
        return self.gap <= self.error + 1e-12


def measured(found: Predicted) -> Row:
    """The choice of the report, and calibration errors before and after."""
    n_classes = 2 if found.p.ndim == 1 else found.p.shape[1]
    report = Report.from_predictions(found.y, {"m": found.p}, n_worst=0, labels=range(n_classes))
    (model,) = report.models
    assert model.calibration is not None
    assert model.calibrated is not None
    before, after = (
        part.figures["calibration_error"].value for part in (model.raw, model.calibrated)
    )
    by_old = np.nan
    if n_classes == 2:
        by_old = after if model.calibration.method == "platt" else _error_by_platt(found)
    return Row(
        found.data, found.model, len(found.y), n_classes, model.calibration, before, after, by_old
    )


def _error_by_platt(found: Predicted) -> float:
    data = check_labelled_probabilities(found.y, found.p, [0, 1], 1, None, name="p")
    table = ScoreTable.of_cases(data, None)
    calibration = calibrated_table(table, 1, data.labels, method="platt")
    view = CalibratedView(table, 1, data.support, calibration)
    others, happened = view.outcomes()
    return calibration_error(happened, others, min(CALIBRATION_BINS, len(found.y))).value


def predictions(quick: bool) -> Iterator[Predicted]:
    yield from on_images()
    if not quick:
        yield from later()
        yield from on_tables()


def page(rows: list[Row], seconds: float) -> str:
    """The table in Markdown."""
    versions = (
        f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}"
    )
    kept = sum(row.kept for row in rows)
    clearly = sum(row.gap < -row.error for row in rows)
    lines = [
        "# Chosen calibration against Platt's",
        "",
        "`PYTHONPATH=. python benchmarks/calibration.py`: seeded, "
        f"{seconds / 60:.0f} minutes; {versions}.",
        "",
        "Log-loss on cases that the map was not fitted to: by the chosen map, and by Platt's "
        "(several classes: one temperature). Difference: chosen minus Platt's, with the standard "
        "error over the same cases; asked for is a difference of at most one standard error. "
        "Calibration error: of the scores as they are, after the chosen map, after Platt's. Bold: "
        "missed.",
        "",
        f"Kept in {kept} of {len(rows)} rows; in {clearly} the chosen map is better by more than "
        "one standard error.",
        "",
        "| data | model | n | classes | chosen | log-loss | Platt's | difference | standard error "
        "| calibration error | chosen | Platt's |",
        "| --- | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        losses = row.choice.losses
        mark = "" if row.kept else "**"
        by_old = "–" if np.isnan(row.by_old) else f"{row.by_old:.3f}"
        lines.append(
            f"| {row.data} | {row.model} | {row.n} | {row.n_classes} | {row.choice.method} "
            f"| {losses[row.choice.method]:.4f} | {losses[row.old]:.4f} "
            f"| {mark}{row.gap:+.5f}{mark} | {row.error:.5f} "
            f"| {row.before:.3f} | {row.after:.3f} | {by_old} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="images only, nothing is written")
    quick = parser.parse_args().quick
    began, rows = time.perf_counter(), []
    for found in predictions(quick):
        rows.append(measured(found))
        print(rows[-1], flush=True)
    text = page(rows, time.perf_counter() - began)
    print(text)
    if not quick:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
