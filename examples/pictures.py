"""The pictures of the README. Run with ``make pictures``."""

from __future__ import annotations

import shutil
from dataclasses import replace
from io import BytesIO
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from equal_auc import predictions
from label_cost import REACH, data, label_costs
from matplotlib.ticker import LogLocator, NullFormatter
from numpy import isfinite
from PIL import Image
from playwright.sync_api import sync_playwright
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from fragility import (
    ConfidenceDisplay,
    DeferralDisplay,
    RankingErrorDisplay,
    Wasserstein,
    fragility_path,
)
from fragility.cli.demo import demo_report
from fragility.metrics.displays.figure import GREY, RIGHT, WRONG, tidy

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
#: Width and height of what is seen of the page of a report.
SCREENS = {"wide": (1280, 1250), "phone": (390, 1280)}


def confidences(y, scores):
    figure, axes = plt.subplots(1, len(scores), figsize=(10.5, 4), layout="constrained")
    for ax, (name, p) in zip(axes, scores.items(), strict=True):
        ConfidenceDisplay.from_predictions(y, p, name=name, ax=ax)
    return figure


def what_a_target_costs():
    """What a target costs on the tumours, all features in deviations, where any may shift."""
    data = load_breast_cancer()
    X = StandardScaler().fit_transform(data.data)
    found = fragility_path(X, data.target, ambiguity=Wasserstein(norm=inf), penalty="l2")
    return replace(found, feature_names=data.feature_names.tolist()).plot().figure_


def what_labels_cost():
    """The exact k at each label cost beside the paper's approximation, on the tumours."""
    figure, axes = plt.subplots(1, len(REACH), figsize=(10.5, 4.4), layout="constrained")
    for ax, loss in zip(axes, REACH, strict=True):
        found = label_costs(*data(), loss)
        left, right = found.costs[[0, -1]]
        bottom, top = 0.6 * found.without, 1.6 * found.exact.max()
        ax.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top))
        ax.axvspan(left, found.feasible_from, color=WRONG, alpha=0.12, linewidth=0)
        ax.axhline(found.without, color=GREY, linestyle=":", linewidth=1)
        ax.plot(found.costs, found.product / found.costs, "--", color=GREY, linewidth=1)
        ax.plot(found.costs, found.exact, color=RIGHT, linewidth=2.5)
        ax.plot(found.costs, found.approximate, color=WRONG)
        beside = left**0.6 * found.feasible_from**0.4
        peak = found.approximate[isfinite(found.approximate)].max()
        for x, y, words, aligned, colour in (
            (left, found.without, r" $k_\infty$: labels do not move", "left", GREY),
            (beside, 0.75 * found.product / beside, r"$M / \gamma$", "right", GREY),
            (1.1 * beside, 1.2 * found.product / beside, "exact", "left", RIGHT),
            (1.02 * found.feasible_from, 1.05 * peak, "approximation", "left", WRONG),
            (0.97 * found.feasible_from, 0.8 * top, "approximation infeasible", "right", WRONG),
        ):
            ax.text(x, y, words, ha=aligned, va="bottom", color=colour, fontsize=9)
        ax.set_title(loss.replace("_", "-"))
        ax.set_xlabel(r"label cost $\gamma$ / longest sample")
        ax.set_ylabel("least fragility k")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())
        tidy(ax)
    return figure


def page_screens():
    """The page of ``make demo`` in a browser, moved to what the threshold does."""
    with TemporaryDirectory() as folder, sync_playwright() as driver:
        path = Path(folder) / "page.html"
        demo_report().to_html(path)
        chromium = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for kind, (width, height) in SCREENS.items():
            for scheme in ("light", "dark"):
                screen = {"width": width, "height": height}
                page = chromium.new_page(viewport=screen, color_scheme=scheme)
                page.goto(f"file://{path}")
                if kind == "phone":
                    page.evaluate("document.getElementById('deciding').scrollIntoView()")
                page.wait_for_timeout(500)
                yield f"page_{kind}_{scheme}", Image.open(BytesIO(page.screenshot()))
        chromium.close()


def main() -> None:
    y, scores = predictions()
    name, p = list(scores.items())[-1]
    figures = {
        "confidence": confidences(y, scores),
        "deferral": DeferralDisplay.from_predictions(y, scores, error_cost=10).figure_,
        "label_cost": what_labels_cost(),
        "path": what_a_target_costs(),
        "ranking_errors": RankingErrorDisplay.from_predictions(y, p, name=name).figure_,
    }
    FOLDER.mkdir(parents=True, exist_ok=True)
    for kind, figure in figures.items():
        path = FOLDER / f"{kind}.png"
        figure.savefig(path, dpi=100)
        print(path)
    for kind, image in page_screens():
        path = FOLDER / f"{kind}.webp"
        image.save(path, lossless=True)
        print(path)


if __name__ == "__main__":
    main()
