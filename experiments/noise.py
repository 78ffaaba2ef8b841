"""Features that are measured worse in use than in training, by errors of known size."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from pandas import DataFrame
from scipy.stats import t as student

from experiments import figures
from experiments.baselines.losses import Floats
from experiments.claims import Claim, Verdict
from experiments.comparison import short
from experiments.experiment import Condition, Experiment, Report, Row
from experiments.merit import merits
from experiments.noise_models import INFORMED, MODELS, Fitted, TrainingHalf, noisy
from experiments.platt import platt_map
from experiments.protocol import QUICK, Settings, split_data
from experiments.real_data import UCI, real_data
from experiments.tables import mean_error, summarise
from fragility import best_policy

#: Deviations of the noise that models are told of, and of the noise that comes, in those of the
#: features. In the last case it stays away: what the insurance costs.
NOISES = ((1.0, 1.0), (0.5, 0.5), (1.0, 0.0))
#: Cost of an error of the model alone, in reviews.
ERROR_COST = 10.0
MEASURES = (
    "log_loss",
    "platt_log_loss",
    "cost",
    "accuracy",
    "auc",
    "fragility_index",
    "ratio",
)
#: Ours with a slack of the loss in the sample, and with the out-of-fold loss of tuned L2 as target.
OURS = ("from_noise, slack 0.1", "from_noise, out of fold")
RIVALS = tuple(method for method in MODELS if method not in OURS)
#: What is judged, and its name in a sentence.
JUDGED = {
    "log_loss": "log-loss",
    "platt_log_loss": "log-loss after Platt's map",
    "cost": "cost",
}
#: Of the numbers of rows: halves.
_TEST_OVER_TRAIN = 1.0
#: With fewer sets or trials there is no verdict.
_FEWEST_SETS, _FEWEST_TRIALS = 5, 5


def conditions(quick: bool) -> list[Condition]:
    """Every data set; the same models are tried with every noise."""
    return [{"dataset": name} for name in (("coimbra",) if quick else ("heart", *UCI))]


def trial(condition: Condition, seed: int, quick: bool) -> Iterator[Row]:
    """Every model on a clean training half; noise on half of the numeric features at test."""
    data = real_data(str(condition["dataset"]), quick)
    split = split_data(data.X, data.y, 0.0, seed, QUICK if quick else Settings())
    rng = np.random.default_rng([seed, 29])  # another stream than that of the split
    hit = noisy_features(data.X, rng)
    noise = noisy(np.zeros_like(split.X_test), hit, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scores that tell nothing, trivial targets
        yield from _rows(TrainingHalf(split, seed), hit, noise, data.name)


def _rows(half: TrainingHalf, hit: Floats, noise: Floats, name: str) -> Iterator[Row]:
    known: dict[tuple[str, float], _Judged] = {}
    for told, came in NOISES:
        for method, fit in MODELS.items():
            key = method, told if method in INFORMED else 0.0
            if key not in known:
                known[key] = _Judged(half, fit(half, told * hit))
            row: Row = {"dataset": name, "told": told, "came": came, "method": method}
            found = known[key].measured(half.split.X_test + came * noise)
            yield short({**row, **found, "noisy": int(hit.sum()), "features": hit.size})


def noisy_features(X: Floats, rng: np.random.Generator) -> Floats:
    """1 for a random half of the numeric features, else 0; two values are levels, not numbers."""
    numeric = [j for j, column in enumerate(X.T) if np.unique(column).size > 2]
    hit = np.zeros(X.shape[1])
    hit[rng.permutation(numeric)[: (len(numeric) + 1) // 2]] = 1.0
    return hit


class _Judged:
    """A model with what clean training rows chose out of fold: a policy, and Platt's map."""

    def __init__(self, half: TrainingHalf, model: Fitted) -> None:
        y, p = half.split.y_train, model.out_of_fold
        self._model, self._y = model, half.split.y_test
        self._policy = best_policy(y, p, error_cost=ERROR_COST, review_cost=1.0)
        self._platt = platt_map(y, p)

    def measured(self, X: Floats) -> Row:
        """Merits on test rows, and the mean cost of a case."""
        y, p = self._y, self._model.proba(X)
        found = merits(y, p, [0, 1])
        calibrated = self._platt(p)
        reviewed = (p >= self._policy.lower) & (p < self._policy.upper)
        wrong = (p >= self._policy.upper) != (y == 1)
        own = np.clip(np.where(y == 1, calibrated, 1.0 - calibrated), 1e-15, 1.0)
        return {
            **{name: found[name] for name in MEASURES if name in found},
            "platt_log_loss": float(-np.log(own).mean()),
            "cost": float(np.where(reviewed, 1.0, ERROR_COST * wrong).mean()),
            "reviewed": float(reviewed.mean()),
            "chosen": self._model.chosen,
        }


def differences(results: DataFrame, measure: str = "log_loss") -> DataFrame:
    """Each of ours less each rival: mean over trials and its standard error, of each set.

    ``corrected_error`` is that of Nadeau and Bengio (2003): splits of the same rows are not
    independent, and more of them add little.
    """
    keys = ["told", "came", "dataset"]
    wide = results.pivot(index=[*keys, "trial"], columns="method", values=measure)
    rows = []
    for key in dict.fromkeys(results[keys].itertuples(index=False, name=None)):  # in their order
        part = wide.loc[key]
        for ours in (method for method in OURS if method in part):
            for rival in (method for method in RIVALS if method in part):
                mean, error, trials = mean_error(part[ours] - part[rival])
                side = "better" if mean < -2.0 * error else "neither"
                rows.append(
                    {
                        **dict(zip(keys, key, strict=True)),
                        "method": ours,
                        "against": rival,
                        "trials": trials,
                        "difference": mean,
                        "difference_error": error,
                        "corrected_error": error * np.sqrt(1.0 + trials * _TEST_OVER_TRAIN),
                        "side": "worse" if mean > 2.0 * error else side,
                    }
                )
    return DataFrame(rows)


def over_sets(results: DataFrame) -> DataFrame:
    """The same as a mean over sets, with the number of sets where it is better and worse."""
    rows = []
    by = ["told", "came", "method", "against"]
    for measure in JUDGED:
        for key, part in differences(results, measure).groupby(by, sort=False):
            mean, error, count = mean_error(part["difference"])
            rows.append(
                {
                    "measure": measure,
                    **dict(zip(by, key, strict=True)),
                    "sets": count,
                    "difference": mean,
                    "difference_error": error,
                    "better": int((part["side"] == "better").sum()),
                    "worse": int((part["side"] == "worse").sum()),
                }
            )
    return DataFrame(rows)


def report(results: DataFrame) -> Report:
    """Differences over sets, of each set, and every figure of every model."""
    return Report(
        {
            "over_sets": over_sets(results),
            "differences": differences(results),
            "models": summarise(results, ["told", "came", "dataset", "method"], MEASURES),
        },
        {"log_loss": lambda: _figure(results)},
        "Training halves are clean. At test a random half of the numeric features has Gaussian "
        "errors of `came` standard deviations; `noisy copies` (five of each training row, strength "
        "of L2 tuned on noisy held-out rows) and `from_noise` (`Wasserstein.from_noise`, floor "
        "0.3, free intercept) are told that they will be of `told`. The target is a slack of 0.1 "
        "of the loss in the sample, or (`out of fold`) the loss of tuned L2 on held-out clean "
        "rows. L2 is tuned on clean rows, boosting is LightGBM after Platt's map, Wasserstein is "
        "in ℓ2 with a slack of 0.1. `platt_log_loss` is after Platt's map of each model, fitted to "
        "clean training rows out of fold. An error of the model alone costs "
        f"{ERROR_COST:g} reviews; the policy is chosen on the same rows. A difference below zero "
        "is in favour of ours; better and worse are by two standard errors over splits, which "
        "share rows: they say nothing of other sets, and more splits make them smaller. "
        "`corrected_error` (Nadeau and Bengio) allows for the rows that splits share, and is in no "
        f"rule. {_quantile(results)}An index shrinks with the scores: read it beside the log-loss.",
    )


def _quantile(results: DataFrame) -> str:
    """What stands in place of two where the errors are those over sets."""
    sets = results["dataset"].nunique()
    if sets < 2:
        return ""
    width = student.ppf(0.975, sets - 1)
    return (
        f"Two is the question's own word: of a mean over {sets} sets a 95 % interval has "
        f"{width:.2f} standard errors on either side. "
    )


def _figure(results: DataFrame) -> Figure:
    figure, axes = figures.panels(len(NOISES), len(OURS), width=11.0, height=7.5)
    names = list(dict.fromkeys(results["dataset"]))
    places = np.arange(len(names))[::-1]
    found = differences(results, "platt_log_loss")
    for row, ours in zip(axes, OURS, strict=True):
        for ax, (told, came) in zip(row, NOISES, strict=True):
            for place, rival in enumerate(RIVALS):
                part = found[
                    (found["told"] == told)
                    & (found["came"] == came)
                    & (found["method"] == ours)
                    & (found["against"] == rival)
                ].set_index("dataset")
                part = part.reindex(names)
                ax.errorbar(
                    part["difference"],
                    places + 0.15 * (1.5 - place),
                    xerr=2.0 * part["difference_error"].fillna(0.0),
                    fmt="osD^"[place],
                    color=figures.colour(place),
                    label=f"against {rival}",
                )
            ax.axvline(0.0, color="black", linewidth=0.8)
            ax.set_yticks(places, names if ax is row[0] else [])
            title = f"{ours}: told {told:g}, came {came:g}"
            ax.set(title=title, xlabel="difference in log-loss after Platt")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


@dataclass(frozen=True)
class _Sides:
    """Sets on which one of ours is better or worse than a rival by two standard errors."""

    sets: int
    better: int
    worse: list[str]
    mean: float
    said: str


def _sides(
    results: DataFrame, ours: str, rival: str, measure: str = "log_loss", came: float = 1.0
) -> _Sides | None:
    """Where noise of one deviation is told; None if there is too little to judge."""
    kept = (results["told"] == 1.0) & (results["came"] == came)
    found = differences(results[kept & results["method"].isin([ours, rival])], measure)
    if len(found) < _FEWEST_SETS or (found["trials"] < _FEWEST_TRIALS).any():
        return None
    mean, error, count = mean_error(found["difference"])
    better = int((found["side"] == "better").sum())
    worse = found.loc[found["side"] == "worse", "dataset"].tolist()
    named = f" ({', '.join(worse)})" if worse else ""
    said = (
        f"{mean:+.4f} ± {error:.4f} over {count} sets, better by two standard errors in {better}, "
        f"worse in {len(worse)}{named}"
    )
    return _Sides(len(found), better, worse, mean, said)


def _beats_l2(ours: str, measure: str) -> Callable[[DataFrame], Verdict | None]:
    """Better on most sets; partly if on more than it is worse."""

    def rule(results: DataFrame) -> Verdict | None:
        found = _sides(results, ours, "L2", measure)
        if found is None:
            return None
        because = f"Less that of tuned L2: {found.said}."
        if found.better > found.sets / 2:
            return Verdict("holds", because)
        partly = found.better > len(found.worse)
        return Verdict("holds partly" if partly else "does not hold", because)

    return rule


def _equals_copies(ours: str, measure: str) -> Callable[[DataFrame], Verdict | None]:
    """Worse on no more sets than better; partly if it is not worse on most."""

    def rule(results: DataFrame) -> Verdict | None:
        found = _sides(results, ours, "noisy copies", measure)
        if found is None:
            return None
        because = f"Less that of noisy copies: {found.said}."
        if len(found.worse) <= found.better:
            return Verdict("holds", because)
        partly = len(found.worse) < found.sets / 2
        return Verdict("holds partly" if partly else "does not hold", because)

    return rule


def _insurance(ours: str) -> Callable[[DataFrame], Verdict | None]:
    """It loses without noise at most half of what it gains with it; partly if less than that."""

    def rule(results: DataFrame) -> Verdict | None:
        comes, stays = (_sides(results, ours, "L2", came=came) for came in (1.0, 0.0))
        if comes is None or stays is None:
            return None
        gain = -comes.mean
        because = (
            f"Without the noise, log-loss less that of tuned L2: {stays.said}; with it the mean "
            f"gain is {gain:.4f}."
        )
        if gain > 0.0 and stays.mean <= gain / 2.0:
            return Verdict("holds", because)
        partly = gain > 0.0 and stays.mean < gain
        return Verdict("holds partly" if partly else "does not hold", because)

    return rule


def _claims() -> Iterator[Claim]:
    """Every figure is judged by itself, and each target."""
    targets = ("with slack 0.1", "with the out-of-fold loss as target")
    for ours, target in zip(OURS, targets, strict=True):
        name = f"from_noise {target}"
        for measure, words in JUDGED.items():
            yield Claim(
                "our question",
                f"Noise of one deviation on half of the features at test only: {name} has a lower "
                f"{words} than tuned L2 on most sets.",
                _beats_l2(ours, measure),
            )
        for measure, words in JUDGED.items():
            yield Claim(
                "our question",
                f"There {name} equals training on tuned noisy copies by {words}.",
                _equals_copies(ours, measure),
            )
        yield Claim(
            "our question",
            f"Where the noise stays away, {name} loses at most half of the log-loss that it gains "
            "otherwise.",
            _insurance(ours),
        )


EXPERIMENT = Experiment(
    name="noise",
    title="known measurement error at test: from_noise against tuned rivals (ours)",
    trials=50,
    quick_trials=2,
    conditions=conditions,
    trial=trial,
    report=report,
    claims=list(_claims()),
)
