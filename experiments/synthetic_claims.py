"""What the paper says of the drawn data (appendix C.2), as rules.

Models are compared pair by pair: on the same data, over the trials where both figures are finite. A
difference is clear when its 95 % interval has one sign.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import get_args

import numpy as np
from pandas import DataFrame, Series

from experiments.claims import Claim, Holds, Verdict, gained, share
from experiments.tables import mean_interval

__all__ = ["baseline_claims", "flip_claims", "size_claims"]

Rule = Callable[[DataFrame], Verdict | None]

#: Figure -> +1 if the larger the better.
_SHOWN = {"accuracy": 1, "auc": 1, "fragility_index": -1}
_NAMES = {"accuracy": "accuracy", "auc": "AUC", "fragility_index": "FI"}
#: Differences that are called similar.
_SIMILAR = 0.01
_LOW, _HIGH = 1.05, 1.15


@dataclass(frozen=True)
class _Gain:
    """How much better one model is than another, by one figure at one condition."""

    where: str
    mean: float
    low: float
    high: float

    @property
    def better(self) -> bool:
        """Whether its interval says so."""
        return self.low > 0.0

    @property
    def worse(self) -> bool:
        return self.high < 0.0


def _gains_by_trial(results: DataFrame, model: str, than: str, measure: str, at: float) -> Series:
    """Paired gains at a condition, of the trials where both figures are finite."""
    rows = results[results[_along(results)] == at]
    wide = rows.pivot(index="trial", columns="model", values=measure)
    change = _SHOWN[measure] * (wide[model] - wide[than])
    return change[np.isfinite(wide[model]) & np.isfinite(wide[than])]


def _gain(results: DataFrame, model: str, than: str, measure: str, at: float) -> _Gain:
    found = mean_interval(_gains_by_trial(results, model, than, measure, at))
    return _Gain(f"{model} against {than}, {_NAMES[measure]} at {at:g}", *found)


def _along(results: DataFrame) -> str:
    return "n" if "n" in results else "flip"


def _models(results: DataFrame, method: str) -> list[str]:
    return list(results.loc[results["method"] == method, "model"].unique())


def _conditions(results: DataFrame) -> list[float]:
    return sorted(results[_along(results)].unique())


def _gains(results: DataFrame, methods: Iterable[str], measures: Iterable[str]) -> list[_Gain]:
    """Against ERM, everywhere."""
    models = [model for method in methods for model in _models(results, method)]
    cells = product(models, measures, _conditions(results))
    gains = [_gain(results, model, "ERM", measure, at) for model, measure, at in cells]
    return [gain for gain in gains if np.isfinite(gain.mean)]


def _judged(gains: Sequence[_Gain], most: bool = False) -> Verdict:
    """Better in all cells, or with `most` in more than half of them."""
    better, worse = _counts(gains)
    worst = min(gains, key=lambda gain: gain.mean)
    because = f"Clearly better in {better} of {len(gains)} cells, clearly worse in {worse}"
    because += f"; the least: {worst.where}, {worst.mean:+.3f}." if not worst.better else "."
    holds = better > len(gains) / 2 if most else None
    return gained(better, worse, len(gains), because, holds)


def _counts(gains: Sequence[_Gain]) -> tuple[int, int]:
    """Clearly better, and clearly worse."""
    return sum(gain.better for gain in gains), sum(gain.worse for gain in gains)


def _wasserstein_wins(results: DataFrame) -> Verdict:
    return _judged(_gains(results, ["Wasserstein"], _SHOWN))


def _kl_is_like_erm_with_less_risk(results: DataFrame) -> Verdict:
    """Two parts, and no more holds than the weaker: a model that is ERM has no lower index."""
    alike = _gains(results, ["KL"], ["accuracy", "auc"])
    safer = _gains(results, ["KL"], ["fragility_index"])
    near = sum(abs(gain.mean) <= _SIMILAR for gain in alike)
    lower, higher = _counts(safer)
    because = (
        f"Accuracy and AUC differ by at most {_SIMILAR} in {near} of {len(alike)} cells; FI is "
        f"clearly lower in {lower} of {len(safer)}, clearly higher in {higher}, lower on average "
        f"by {_mean(safer):.3f}."
    )
    parts = share(near, len(alike), because), gained(lower, higher, len(safer), because)
    return max(parts, key=lambda part: get_args(Holds).index(part.holds))


def _mean(gains: Sequence[_Gain]) -> float:
    return float(np.mean([gain.mean for gain in gains]))


def _gap_closes(results: DataFrame) -> Verdict | None:
    """Each gap, whatever its sign, at the fewest and at the most samples; trials are paired."""
    first, *_, last = _conditions(results)
    changes, said = [], []
    for model, measure in product(_models(results, "Wasserstein"), _SHOWN):
        small, large = (_gains_by_trial(results, model, "ERM", measure, at) for at in (first, last))
        closed = np.sign(small.mean()) * small - np.sign(large.mean()) * large
        changes.append(_Gain(model, *mean_interval(closed)))
        if model.endswith(f"{_LOW:g}"):
            said.append(f"{_NAMES[measure]} {small.mean():+.3f} to {large.mean():+.3f}")
    closer, wider = _counts(changes)
    because = (
        f"The gap is clearly smaller at {last:g} than at {first:g} samples in {closer} of "
        f"{len(changes)} cells, clearly larger in {wider}; gain of Wasserstein {_LOW:g}: "
        f"{', '.join(said)}."
    )
    return gained(closer, wider, len(changes), because)


def _both_win_mostly(results: DataFrame) -> Verdict:
    """Each by itself: a claim about both holds only if it holds for each."""
    gains = _gains(results, ["KL"], _SHOWN), _gains(results, ["Wasserstein"], _SHOWN)
    kl, wasserstein = (_judged(some, most=True) for some in gains)
    better, worse = _counts([*gains[0], *gains[1]])
    return gained(
        better,
        worse,
        len(gains[0]) + len(gains[1]),
        f"KL: {kl.because} Wasserstein: {wasserstein.because}",
        holds=kl.holds == wasserstein.holds == "holds",
    )


def _worse_at_high_noise(model: float, than: str) -> Rule:
    """Wasserstein with a large target, at the most noise."""

    def rule(results: DataFrame) -> Verdict | None:
        highest = _conditions(results)[-1]
        if not highest > 0.0:
            return None
        name = f"Wasserstein {model:g}"
        gains = [_gain(results, name, than, measure, highest) for measure in ("accuracy", "auc")]
        better, worse = _counts(gains)
        said = "; ".join(f"{g.where}: {g.mean:+.3f} ({g.low:+.3f} to {g.high:+.3f})" for g in gains)
        return gained(worse, better, len(gains), said + ".")

    return rule


def _larger_targets_lower_the_index(results: DataFrame) -> Verdict:
    cells = product(("KL", "Wasserstein"), _conditions(results))
    gains = [
        _gain(results, f"{m} {_HIGH:g}", f"{m} {_LOW:g}", "fragility_index", at) for m, at in cells
    ]
    return _judged([gain for gain in gains if np.isfinite(gain.mean)])


def _kl_trades_better(results: DataFrame) -> Verdict:
    highest = _conditions(results)[-1]
    ratios = sorted(set(results["target_ratio"]) - {1.0})
    gains = [
        _gain(results, f"KL {r:g}", f"Wasserstein {r:g}", measure, highest)
        for r in ratios
        for measure in ("accuracy", "auc")
    ]
    return _judged(gains)


def _means(
    results: DataFrame, measure: str
) -> Iterator[tuple[float, dict[str, float], list[float]]]:
    """At each condition: the mean of each of our models, and those of the paper's baselines."""
    along = _along(results)
    for at in _conditions(results):
        rows = results[(results[along] == at) & np.isfinite(results[measure])]
        means = rows.groupby("model")[measure].mean().to_dict()
        ours = {m: v for m, v in means.items() if m.split()[0] in ("KL", "Wasserstein")}
        yield at, ours, [v for m, v in means.items() if m not in (*ours, "ERM", "SCE as printed")]


def _comparable(results: DataFrame) -> Verdict:
    """At most a hundredth worse than the median of the baselines."""
    held = cells = 0
    outside = []
    for measure, sign in _SHOWN.items():
        for at, ours, others in _means(results, measure):
            for model, value in ours.items():
                cells += 1
                if sign * (value - float(np.median(others))) >= -_SIMILAR:
                    held += 1
                else:
                    outside.append(f"{model} {_NAMES[measure]} at {at:g}")
    because = f"At most {_SIMILAR} worse than the median baseline in {held} of {cells} cells"
    return share(held, cells, because + (f"; not: {', '.join(outside)}." if outside else "."))


def _among_baselines(results: DataFrame, measure: str) -> Iterator[tuple[float, int, int, int]]:
    """At each condition: baselines that Wasserstein is clearly better and worse than, and all."""
    (model,) = _models(results, "Wasserstein")
    ours = ("ERM", "KL", "Wasserstein", "SCE as printed")
    others = [m for m in results["model"].unique() if not str(m).startswith(ours)]
    for at in _conditions(results):
        gains = [_gain(results, model, other, measure, at) for other in others]
        yield at, *_counts(gains), len(others)


def _less_risk_than_most(results: DataFrame) -> Verdict:
    held = against = 0
    said = []
    for at, lower, higher, of in _among_baselines(results, "fragility_index"):
        held, against = held + (lower > of / 2), against + (higher > of / 2)
        said.append(f"{lower} of {of} at {at:g}")
    return gained(held, against, len(said), f"FI clearly below that of {', '.join(said)}.")


def _poor_among_baselines(results: DataFrame) -> Verdict:
    held = against = 0
    said = []
    for at, higher, lower, of in _among_baselines(results, "accuracy"):
        held, against = held + (lower >= of / 2), against + (higher > of / 2)
        said.append(f"{lower} of {of} at {at:g}")
    because = f"Baselines of a clearly higher accuracy: {', '.join(said)}."
    return gained(held, against, len(said), because)


def size_claims(where: str) -> list[Claim]:
    """Of the number of training samples."""
    return [
        Claim(
            where,
            "Wasserstein beats ERM at every sample size in accuracy, AUC and FI.",
            _wasserstein_wins,
        ),
        Claim(
            where,
            "KL is like ERM in accuracy and AUC, with a lower FI.",
            _kl_is_like_erm_with_less_risk,
        ),
        Claim(where, "More samples make the gap between Wasserstein and ERM smaller.", _gap_closes),
    ]


def flip_claims(where: str, many: bool = False) -> list[Claim]:
    """Of the noise of labels; `many`: of more than two classes."""
    both = [
        Claim(
            where,
            "Both robust models beat ERM by most figures at most noise rates.",
            _both_win_mostly,
        ),
        Claim(
            where,
            "At high noise Wasserstein with the target ratio 1.15 is worse than ERM.",
            _worse_at_high_noise(_HIGH, "ERM"),
        ),
        Claim(
            where,
            "At high noise Wasserstein is worse with the target ratio 1.15 than with 1.05.",
            _worse_at_high_noise(_HIGH, f"Wasserstein {_LOW:g}"),
        ),
    ]
    if many:
        return [
            *both,
            Claim(
                where,
                "With four classes Wasserstein is worse than ERM at very high noise.",
                _worse_at_high_noise(_LOW, "ERM"),
            ),
            Claim(
                where,
                "With four classes and high noise KL keeps more accuracy and AUC than Wasserstein.",
                _kl_trades_better,
            ),
        ]
    return [
        *both,
        Claim(
            where,
            "A larger target leaves more room to lower FI.",
            _larger_targets_lower_the_index,
        ),
    ]


def baseline_claims(where: str, many: bool = False) -> list[Claim]:
    """Of the robust baselines; `many`: of more than two classes."""
    comparable = Claim(
        where, "The robust models are comparable to the robust baselines.", _comparable
    )
    if many:
        poor = "With four classes Wasserstein is somewhat poor among the baselines, by accuracy."
        return [comparable, Claim(where, poor, _poor_among_baselines)]
    less = "Wasserstein has a lower FI than most baselines."
    return [comparable, Claim(where, less, _less_risk_than_most)]
