"""What the paper's section 6 says of its networks, judged by our results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pandas import DataFrame

from experiments.claims import Claim, Verdict, gained, mostly
from experiments.medmnist_frozen import better_than_printed, lower_at_equal_calibration
from experiments.medmnist_report import (
    AT_EQUAL_CALIBRATION,
    benchmark,
    beside_printed,
    differences,
    printed,
)

__all__ = ["CLAIMS"]

#: With fewer seeds than these, a difference says nothing.
_ENOUGH = 3
#: Accuracies and AUCs that differ by no more are comparable.
_ALIKE = 0.02


def _reproduced(method: str, results: DataFrame) -> Verdict | None:
    beside = beside_printed(results, printed())
    if beside.empty:
        return None
    same = (beside["method"] == method) & (beside["stem"] == "7x7")
    part = beside[same & (beside["trials"] >= _ENOUGH)]
    if part.empty:
        return None
    outside = [f"{r.dataset} {r.measure}" for r in part[~part["inside"]].itertuples()]
    return mostly(
        int(part["inside"].sum()),
        len(part),
        f"Printed figures within two standard errors of ours, 7×7 stem: "
        f"{int(part['inside'].sum())} of {len(part)}. Outside: {', '.join(outside) or 'none'}.",
    )


def _changes(results: DataFrame, measures: tuple[str, ...]) -> DataFrame | None:
    """What the regulariser changes, by set and stem, where there are seeds enough to tell."""
    compared = results["method"].isin(("ERM", "Regulariser")) & (results["pick"] == "ce")
    part = differences(results[compared], "ERM", measures)
    part = part[part["pairs"] >= _ENOUGH] if len(part) else part
    return None if part.empty else part


def _real(results: DataFrame) -> DataFrame:
    """The epochs that the paper chooses, of images and not of what a quick run has instead."""
    return results[(results["pick"] == "ce") & results["dataset"].isin(printed()["dataset"])]


def _comparable(results: DataFrame) -> Verdict | None:
    part = _changes(results, ("accuracy", "auc_ovr"))
    if part is None:
        return None
    changes = part["difference"]
    alike = int((changes.abs() <= _ALIKE).sum())
    return mostly(
        alike,
        len(part),
        f"Mean accuracy and AUC differ by at most {_ALIKE} in {alike} of {len(part)} cells (set, "
        f"stem, figure); from {changes.min():+.3f} to {changes.max():+.3f}.",
    )


def _near_benchmark(results: DataFrame) -> Verdict | None:
    ours = _real(results)
    ours = ours[ours["method"] == "ERM"].rename(columns={"auc": "auc_ovo", "auc_ovr": "auc"})
    if ours.empty:
        return None
    known = benchmark().set_index("dataset")

    def near(means: DataFrame) -> tuple[int, int]:
        gaps = (means[list(known)] - known).dropna()
        return int((gaps.abs() <= _ALIKE).to_numpy().sum()), gaps.size

    theirs = printed()
    met, total = near(theirs[theirs["method"] == "ERM"].set_index("dataset"))
    told = []
    for stem, part in ours.groupby("stem", sort=False):
        alike, compared = near(part.groupby("dataset")[list(known)].mean())
        if compared:
            told.append(f"with the {stem.replace('x', '×')} stem {alike} of {compared}")
    return mostly(
        met,
        total,
        f"Within {_ALIKE} of the benchmark are {met} of {total} printed figures "
        f"({', '.join(known.index)}; accuracy and AUC); of ours {', '.join(told) or 'none'}.",
    )


def _regulariser_gains(results: DataFrame) -> Verdict | None:
    names = {"log_loss": "Cross-entropy", "capped_fragility_index": "index"}
    part = _changes(results, tuple(names))
    if part is None:
        return None
    told, most = [], []
    for measure, name in names.items():
        lower, higher = _clear(part[part["measure"] == measure])
        of = int((part["measure"] == measure).sum())
        told.append(f"{name} in {lower} of {of}, higher in {higher}")
        most.append(2 * lower > of)
    return gained(
        *_clear(part),
        len(part),
        "Lower than ERM's by more than two standard errors: " + "; ".join(told) + " (set, stem).",
        holds=all(most),
    )


def _clear(changes: DataFrame) -> tuple[int, int]:
    """Changes that are negative, and positive, by more than two standard errors."""
    size = changes["difference"] / changes["error"]
    return int((size < -2.0).sum()), int((size > 2.0).sum())


def _gains_left(results: DataFrame) -> Verdict | None:
    part = _changes(results, AT_EQUAL_CALIBRATION)
    if part is None:
        return None
    lower, higher = _clear(part)
    return gained(
        lower,
        higher,
        len(part),
        f"Index lower than ERM's by more than two standard errors in {lower} of {len(part)} cells "
        f"(set, stem, kind of calibration), higher in {higher}.",
        holds=lower >= 0.9 * len(part),
    )


def _by_strength(results: DataFrame, figure: str) -> DataFrame | None:
    """A figure of trainings with λ₀ = 10 and with 100, of the same seeds."""
    both = ["Regulariser", "Regulariser weak"]
    if figure not in results:
        return None
    wide = _real(results).pivot_table(figure, ["dataset", "stem", "trial"], "method")
    if not set(both) <= set(wide):
        return None
    pairs = wide[both].dropna()
    return None if pairs.empty else pairs


def _smaller_is_more_robust(results: DataFrame) -> Verdict | None:
    pairs = _by_strength(results, "bound")
    if pairs is None:
        return None
    held = int((pairs["Regulariser"] <= pairs["Regulariser weak"]).sum())
    return mostly(
        held,
        len(pairs),
        f"k is smaller with λ₀ = 10 than with 100 in {held} of {len(pairs)} pairs of trainings.",
    )


def _larger_fits_better(results: DataFrame) -> Verdict | None:
    pairs = _by_strength(results, "train_log_loss")
    if pairs is None:
        return None
    lower = pairs["Regulariser weak"] <= pairs["Regulariser"]
    sets = lower.groupby(["dataset", "stem"], sort=False).agg(["sum", "size"])
    each = ", ".join(
        f"{d} {stem} {row['sum']} of {row['size']}" for (d, stem), row in sets.iterrows()
    )
    return mostly(
        int(lower.sum()),
        len(lower),
        f"After the last epoch the cross-entropy of the training images is no larger with λ₀ = 100 "
        f"than with 10 in {int(lower.sum())} of {len(lower)} pairs of trainings ({each}).",
    )


def _more_epochs(results: DataFrame) -> Verdict | None:
    part = _changes(results, ("epochs",))
    if part is None:
        return None
    part = part[part["stem"] == "7x7"].set_index("dataset")
    part = part[part["error"] > 0.0]  # not where all trainings end at our limit
    if part.empty:
        return None
    plain = _real(results)
    plain = plain[(plain["method"] == "ERM") & (plain["stem"] == "7x7")]
    more = part["difference"] / plain.groupby("dataset")["epochs"].mean()[part.index]
    clearly = int((part["difference"] > 2.0 * part["error"]).sum())
    each = ", ".join(f"{dataset} {change:+.0%}" for dataset, change in more.items())
    because = (
        f"With the 7×7 stem {more.mean():+.0%} epochs by mean ({each}), clearly more on {clearly} "
        f"of {len(part)} sets. Left out: sets where every training reaches our limit of epochs."
    )
    if more.mean() >= 0.3:
        return Verdict("holds", because)
    return Verdict("holds partly" if 2 * clearly > len(part) else "does not hold", because)


def _told_of_sets(claim: Claim) -> Claim:
    """The same, saying of how many of the paper's sets it speaks."""

    def rule(results: DataFrame) -> Verdict | None:
        verdict, known = claim.rule(results), printed()["dataset"].unique()
        if verdict is None:
            return None
        there = [name for name in known if name in set(results["dataset"])]
        sets = f"Ours are {_count(there)} of the paper's {_count(known)} sets."
        return Verdict(verdict.holds, f"{verdict.because} {sets}")

    return replace(claim, rule=rule)


def _count(names: Sequence[str]) -> str:
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return words[len(names)]


_CLAIMS = (
    Claim(
        "Table (MedMNIST)",
        "The printed figures of ERM are reproduced.",
        partial(_reproduced, "ERM"),
    ),
    Claim(
        "Table (MedMNIST)",
        "The printed figures of the regularised model are reproduced (with λ₀ = 10).",
        partial(_reproduced, "Regulariser"),
    ),
    Claim(
        "6.1 (note)",
        "Accuracy and AUC are comparable to those of MedMNIST's own benchmark.",
        _near_benchmark,
    ),
    Claim("6.1", "Accuracy and AUC are comparable to those of ERM.", _comparable),
    Claim(
        "6.1",
        "The regulariser lowers cross-entropy and index of ERM on most sets.",
        _regulariser_gains,
    ),
    Claim(
        "6.1 (our addition)",
        "The regulariser lowers the index at equal calibration, too.",
        _gains_left,
    ),
    Claim("6", "A smaller λ₀ gives a smaller k.", _smaller_is_more_robust),
    Claim("6", "A larger λ₀ gives no larger training loss.", _larger_fits_better),
    Claim("6.1", "The regularised model needs more epochs than ERM, by 43 %.", _more_epochs),
    Claim(
        "6.1 (our goal)",
        "One recipe, frozen before, is better than both printed columns by all four figures.",
        better_than_printed,
    ),
    Claim(
        "6.1 (our goal)",
        "On most sets that recipe has a lower index than ERM, label smoothing and mixup at equal "
        "calibration.",
        lower_at_equal_calibration,
    ),
)
CLAIMS = tuple(map(_told_of_sets, _CLAIMS))
