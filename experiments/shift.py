"""Models after a natural shift: another hospital, year, country or colour; what was promised."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from pandas import DataFrame
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments import figures
from experiments.baselines.losses import Floats
from experiments.claims import Claim, Verdict, mostly
from experiments.comparison import same_order, short, side_of
from experiments.experiment import Condition, Experiment, Report, Row
from experiments.merit import merits
from experiments.policy_models import Triple, costs_at
from experiments.shift_models import MODELS, Predictions, predictions
from experiments.shifts import NATURAL, lacking, two_parts
from experiments.tables import interval, mean_error, mean_interval
from fragility import SatisficingClassifier, Wasserstein, best_policy, certify, shift_distance

#: Cases that train, and cases after the shift that judge, at most; of a promise both.
TRAINING, AFTER, PROMISED = 2_000, 5_000, 1_000
_QUICK_CASES = 150
#: An error costs so many reviews.
ERRORS = (10, 20)
#: Cost of another label in deviations, for promises about other class shares, fixed beforehand.
LABEL_COST = 2.0
FIGURES = ("log_loss", "auc", "fragility_index", *(f"cost_{e}" for e in ERRORS))
RIVALS = tuple(name for name in MODELS if name != "satisficing")


def conditions(quick: bool) -> list[Condition]:
    """Every natural shift; one between hospitals in a quick run."""
    names = ["cleveland to hungarian"] if quick else list(NATURAL)
    return [{"shift": name} for name in names]


def trial(condition: Condition, seed: int, quick: bool) -> Iterator[Row]:
    """Every model after the shift, as it is and calibrated on the source; then the promises."""
    data = two_parts(str(condition["shift"]), seed, False)
    rng = np.random.default_rng(seed)
    here, there = (
        rng.permutation(part.size)[: _QUICK_CASES if quick else most]
        for part, most in ((data.y, TRAINING), (data.y_after, AFTER))
    )
    X, y, X_after, y_after = data.X[here], data.y[here], data.X_after[there], data.y_after[there]
    for name in MODELS:
        for found in predictions(name, X, y, X_after, seed):
            yield short({"part": "model", "model": name, **_figures(found, y, y_after)})
    few = slice(PROMISED)
    for row in _promises(X[few], y[few], X_after[few], y_after[few]):
        yield short({"part": "promise", "model": "satisficing", **row})


def _figures(found: Predictions, y: Floats, y_after: Floats) -> Row:
    """Figures after the shift, and costs at thresholds of the source and of the probabilities."""
    judged = merits(y_after, found.after, [0, 1])
    row: Row = {"calibrated": int(found.calibrated)}
    row.update({name: judged[name] for name in ("log_loss", "auc", "fragility_index")})
    for error in ERRORS:
        triple = Triple(float(error), float(error), 1.0)
        chosen = best_policy(y, found.out_of_fold, error_cost=triple.matrix, review_cost=1.0)
        row[f"cost_{error}"] = float(costs_at(chosen, triple, y_after, found.after).mean())
        # What the probabilities themselves ask for: decide where an error is rarer than 1 / error.
        sure = 1.0 / error
        paid = triple.paid(y_after, found.after < sure, found.after >= 1.0 - sure)
        row[f"own_cost_{error}"] = float(paid.mean())
    return row


def _promises(X: Floats, y: Floats, X_after: Floats, y_after: Floats) -> Iterator[Row]:
    """Measured distance, promised loss and the loss that came, in two ways.

    Within classes: new cases are weighted so that classes have the shares of the source. With
    labels: nothing is weighted, and another label has a cost.
    """
    scale = make_pipeline(
        SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
    ).fit(X)
    source, after = scale.transform(X), scale.transform(X_after)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SatisficingClassifier().fit(source, y)
    weights = (np.bincount(y, minlength=2) / y.size / np.bincount(y_after, minlength=2))[y_after]
    for way, ambiguity, weight in (
        ("within classes", Wasserstein(), weights),
        ("with labels", Wasserstein(label_cost=LABEL_COST), None),
    ):
        certificate = certify(model, source, y, ambiguity=ambiguity)
        far = shift_distance(source, y, after, y_after, ambiguity, sample_weight_new=weight)
        came = certify(model, after, y_after, sample_weight=weight).attained_loss
        promise = certificate.at(far, came)
        yield {
            "way": way,
            "target": certificate.target,
            "fragility": certificate.fragility,
            "distance_lower": far.lower,
            "distance": far.upper,
            "exact": int(far.exact),
            "promised": promise.loss,
            "worst_loss": promise.worst_loss,
            "came": came,
            "held": int(bool(promise.held)),
            "guessing": promise.guessing,
        }


def by_shift(results: DataFrame, calibrated: int) -> DataFrame:
    """Figures of each shift and model, means over trials."""
    part = results[(results["part"] == "model") & (results["calibrated"] == calibrated)]
    own = [f"own_cost_{error}" for error in ERRORS]
    table = part.groupby(["shift", "model"], sort=False)[[*FIGURES, *own]].mean().reset_index()
    table.insert(1, "family", [NATURAL[name].family for name in table["shift"]])
    return DataFrame(table)


def differences(results: DataFrame) -> DataFrame:
    """Default satisficing less every other model, over shifts and over families of them."""
    rows = []
    for calibrated in (0, 1):
        table = by_shift(results, calibrated)
        family = table.groupby("shift", sort=False)["family"].first()
        for figure in FIGURES:
            wide = table.pivot_table(index="shift", columns="model", values=figure, sort=False)
            for rival in RIVALS:
                apart = (wide["satisficing"] - wide[rival]).dropna()
                mean, error, count = mean_error(apart)
                families = apart.groupby(family).mean()
                family_mean, family_error, family_count = mean_error(families)
                rows.append(
                    {
                        "figure": figure,
                        "against": rival,
                        "calibrated": calibrated,
                        "shifts": count,
                        "difference": mean,
                        "difference_error": error,
                        "median": apart.median(),
                        "lower": (apart < 0.0).mean(),
                        "families": family_count,
                        "family_difference": family_mean,
                        "family_difference_error": family_error,
                    }
                )
    return DataFrame(rows)


def agreement(results: DataFrame, calibrated: int) -> DataFrame:
    """Of the pairs of models that both put in an order, how many index and cost order alike."""
    rows = []
    for name, part in by_shift(results, calibrated).groupby("shift", sort=False):
        by_model = part.set_index("model")
        for error in ERRORS:
            alike, of = same_order(by_model["fragility_index"], by_model[f"cost_{error}"])
            rows.append({"shift": name, "error": error, "alike": alike, "of": of})
    return DataFrame(rows)


def promises(results: DataFrame) -> DataFrame:
    """What was promised and what came, means over trials; `held`: in every one."""
    part = results[results["part"] == "promise"]
    means = ["distance_lower", "distance", "target", "fragility", "promised", "worst_loss", "came"]
    groups = part.groupby(["shift", "way"], sort=False)
    table = groups[[*means, "guessing"]].mean()
    table["held"] = groups["held"].min() == 1
    return DataFrame(table.reset_index())


def report(results: DataFrame) -> Report:
    """Differences, figures of each shift, agreement of index and cost, promises."""
    tables = {
        "differences": differences(results),
        "shifts": by_shift(results, 0),
        "shifts_calibrated": by_shift(results, 1),
        "promises": promises(results),
    }
    return Report(
        tables,
        {"log_loss": lambda: _figure(tables["shifts"], tables["shifts_calibrated"])},
        f"Models are trained in one domain (at most {TRAINING:,} cases) and judged in another. "
        "Tuned L2 is logistic regression whose strength is chosen by cross-validated log-loss; "
        "boosting is LightGBM as it comes. Every model is judged as it is and after Platt scaling "
        "by predictions out of fold at the source. Costs are per case in reviews: thresholds are "
        "chosen at the source (`best_policy`); `own cost` is that of the thresholds which the "
        "probabilities themselves ask for; full review costs 1. An index shrinks with the scores: "
        "read it beside the log-loss. Promises are those of the default satisficing model, of at "
        f"most {PROMISED:,} cases to as many, so that the distance is exact: within classes (new "
        "cases weighted so that classes have the shares of the source) and with "
        f"labels that move at a cost of {LABEL_COST:g} deviations. A promise above the loss of "
        "guessing says nothing. Standard errors are those over shifts, and over families of "
        "shifts, since shifts of the same data are not independent: the latter are the ones to "
        "read, and verdicts are by their 95 % intervals (Student's t).",
    )


def _figure(raw: DataFrame, calibrated: DataFrame) -> Figure:
    figure, axes = figures.panels(2, width=9.5, height=6.0)
    names = list(dict.fromkeys(raw["shift"]))
    places = np.arange(len(names))[::-1]
    for ax, table, title in zip(
        axes.flat, (raw, calibrated), ("as it is", "calibrated on the source"), strict=True
    ):
        wide = table.pivot_table(index="shift", columns="model", values="log_loss", sort=False)
        for number, rival in enumerate(("tuned L2", "boosting", "forest")):
            apart = (wide["satisficing"] - wide[rival]).reindex(names)
            ax.plot(apart, places, "osv"[number], color=figures.colour(number), label=rival)
        ax.axvline(0.0, color="black", linewidth=0.8)
        ax.set(title=title, xlabel="log-loss, satisficing − other", yticks=places)
        ax.set_yticklabels(names if table is raw else [])
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def _said(row: Mapping[str, Any]) -> str:
    return (
        f"{row['difference']:+.4f} ± {row['difference_error']:.4f} over {row['shifts']} shifts, "
        f"{row['family_difference']:+.4f} ± {row['family_difference_error']:.4f} over "
        f"{row['families']} families, median {row['median']:+.4f}, lower in "
        f"{100 * row['lower']:.0f} %"
    )


def _lower_log_loss(results: DataFrame, rival: str) -> Verdict | None:
    """Both as they are and calibrated clearly lower; partly if one is and none clearly higher.

    Clearly: by the 95 % interval over families.
    """
    table = differences(results)
    table = table[(table["figure"] == "log_loss") & (table["against"] == rival)]
    rows = [dict(table.iloc[calibrated]) for calibrated in (0, 1)]
    if min(row["families"] for row in rows) < 3:
        return None
    by_family = ("family_difference", "family_difference_error", "families")
    sides = [side_of(interval(*(row[name] for name in by_family)), -1) for row in rows]
    lower, higher = sides.count("better"), sides.count("worse")
    holds = "holds" if lower == 2 else "holds partly" if lower and not higher else "does not hold"
    return Verdict(
        holds,
        f"Log-loss against {rival}: as they are {_said(rows[0])}; calibrated on the source "
        f"{_said(rows[1])}.",
    )


def _lower_than_tuned(results: DataFrame) -> Verdict | None:
    return _lower_log_loss(results, "tuned L2")


def _lower_than_boosting(results: DataFrame) -> Verdict | None:
    return _lower_log_loss(results, "boosting")


def _index_orders_costs(results: DataFrame) -> Verdict | None:
    """Three quarters of the pairs, and clearly more than half; partly if only the latter.

    Clearly: by the 95 % interval over families.
    """
    table = agreement(results, 1)
    table = table[table["of"] > 0]
    shares = (table["alike"] / table["of"]).groupby(table["shift"]).mean()
    families = shares.groupby([NATURAL[str(name)].family for name in shares.index]).mean()
    if len(families) < 3:
        return None
    mean, error, count = mean_error(shares)
    family_mean, low, high = mean_interval(families)
    clear = low > 0.5
    holds = (
        "holds" if clear and family_mean >= 0.75 else "holds partly" if clear else "does not hold"
    )
    return Verdict(
        holds,
        f"Of two calibrated models the one with the lower index costs less in {100 * mean:.0f} ± "
        f"{100 * error:.0f} % of the pairs over {count} shifts; over {len(families)} families in "
        f"{100 * family_mean:.0f} % (95 % interval {100 * low:.0f} to {100 * high:.0f} %).",
    )


def _dearer_than_full_review(results: DataFrame) -> Verdict | None:
    """A half of the shifts × models × costs; partly if a tenth."""
    table = by_shift(results, 1)
    if table["shift"].nunique() < 3:
        return None
    costs = table[[f"own_cost_{error}" for error in ERRORS]].to_numpy()
    part = float((costs > 1.0).mean())
    shifts = table["shift"][(costs > 1.0).any(axis=1)].nunique()
    holds = "holds" if part >= 0.5 else "holds partly" if part >= 0.1 else "does not hold"
    return Verdict(
        holds,
        f"Own thresholds of calibrated models cost more than full review in {100 * part:.0f} % of "
        f"{costs.size} cells, in {shifts} of {table['shift'].nunique()} shifts for some model; on "
        f"average {costs.mean():.2f} reviews a case, at worst {costs.max():.2f}.",
    )


def _promise_held(results: DataFrame) -> Verdict | None:
    """A theorem: one broken promise refutes it."""
    part = results[results["part"] == "promise"]
    if part.empty:
        return None
    held = int((part["came"] <= part["promised"] * (1.0 + 1e-5)).sum())  # six digits are kept
    holds = "holds" if held == len(part) else "does not hold"
    return Verdict(holds, f"The loss that came is within the promise in {held} of {len(part)}.")


def _promise_says_something(results: DataFrame) -> Verdict | None:
    part = results[(results["part"] == "promise") & (results["way"] == "within classes")]
    if part["shift"].nunique() < 3:
        return None
    useful = int((part["promised"] < part["guessing"]).sum())
    return mostly(
        useful,
        len(part),
        f"Within classes the promised loss is below that of guessing in {useful} of {len(part)} "
        f"cases; median promise {part['promised'].median():.2f}, loss that came "
        f"{part['came'].median():.2f}, distance {part['distance'].median():.2f}.",
    )


EXPERIMENT = Experiment(
    name="shift",
    title="models after a natural shift, and what was promised",
    trials=2,
    quick_trials=1,
    conditions=conditions,
    trial=trial,
    report=report,
    lacks=lacking,
    claims=[
        Claim(
            "our question",
            "After a natural shift default satisficing has a lower log-loss than tuned L2.",
            _lower_than_tuned,
        ),
        Claim(
            "our question",
            "After a natural shift default satisficing has a lower log-loss than boosting.",
            _lower_than_boosting,
        ),
        Claim(
            "our question",
            "After a shift a lower index at equal calibration goes with a lower cost.",
            _index_orders_costs,
        ),
        Claim(
            "our question",
            "After a shift a calibrated model's own thresholds cost more than full review.",
            _dearer_than_full_review,
        ),
        Claim(
            "our question",
            "The loss after a shift is within the promise at the measured distance.",
            _promise_held,
        ),
        Claim(
            "our question",
            "The promise at the measured distance says something: less than guessing loses.",
            _promise_says_something,
        ),
    ],
)
