"""Heart failure: every method at four rates of label noise."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.figure import Figure
from pandas import DataFrame

from experiments import figures
from experiments.baselines import BASELINES
from experiments.comparison import merit_table, method_rows, of_the_paper, papers_claim
from experiments.experiment import Condition, Experiment, Report, Row
from experiments.heart_claims import CLAIMS, PAPERS, ROBUST
from experiments.intercept_report import intercept_claim, intercept_table
from experiments.protocol import QUICK, Settings, split_data
from experiments.real_data import real_data

_SHOWN = ("accuracy", "auc", "fragility_index", "ratio", "calibrated_fragility_index", "log_loss")


def trial(condition: Condition, seed: int, quick: bool) -> Iterator[Row]:
    """All methods on one split."""
    data = real_data("heart", quick)
    settings = QUICK if quick else Settings()
    split = split_data(data.X, data.y, float(condition["flip"]), seed, settings)
    yield from method_rows(split, settings, BASELINES, seed, dataset=data.name)


def report(results: DataFrame) -> Report:
    """Figures of merit at each rate of noise."""
    table = merit_table(of_the_paper(results), ["flip", "method"])
    free = merit_table(results[results["intercept"] == "free"], ["flip", "method"])
    return Report(
        {
            "methods": table,
            "free_intercept": free,
            "intercepts": intercept_table(results, ["flip"]),
        },
        {
            "robust": lambda: _lines(table, ["ERM", *ROBUST, "XGBoost", "SCE"]),
            "baselines": lambda: _lines(table, [*ROBUST, *PAPERS]),
            "all": lambda: _lines(table, list(dict.fromkeys(table["method"]))),
        },
        "Half of the patients train a model, half test it; training labels are flipped with the "
        "probability `flip`. ERM, KL and Wasserstein are linear with a hinge loss and the paper's "
        "intercept, a constant feature inside norm and penalty; penalty and target by 5-fold "
        "cross-validation. `free intercept`: the same with an intercept that is neither moved nor "
        "penalised; `intercepts`: gains over ERM with both. Features are standardised, "
        "probabilities are the sigmoid of the scores. The other linear models are trained with "
        "Adam. Bands and brackets are 95 % intervals of the mean over splits. An index shrinks "
        "with the scores: compare `ratio` and `calibrated fragility index`, too. `trivial` counts "
        "models that use no feature.",
    )


def _lines(table: DataFrame, methods: list[str]) -> Figure:
    figure, axes = figures.panels(3, 2)
    order = list(dict.fromkeys(table["method"]))
    for ax, measure in zip(axes.flat, _SHOWN, strict=True):
        for method in methods:
            part = table[table["method"] == method]
            figures.band(
                ax,
                part["flip"],
                part[measure],
                part[f"{measure}_low"],
                part[f"{measure}_high"],
                label=method,
                place=order.index(method),
            )
        ax.set(title=measure.replace("_", " "), xlabel="probability of a flipped label")
        ax.set_xticks(sorted(table["flip"].unique()))
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5)
    return figure


EXPERIMENT = Experiment(
    name="heart",
    title="heart failure: all methods under label noise",
    trials=100,
    quick_trials=2,
    conditions=lambda quick: [
        {"flip": flip} for flip in ((0.0, 0.2) if quick else (0.0, 0.1, 0.2, 0.3))
    ],
    trial=trial,
    report=report,
    claims=[*map(papers_claim, CLAIMS), intercept_claim("5.2", ["flip"])],
)
