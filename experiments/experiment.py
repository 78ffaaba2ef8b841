"""The shape of an experiment, and the list of all of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING

from experiments.claims import Claim, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["NAMES", "Claim", "Condition", "Experiment", "Report", "Row", "Verdict", "find"]

Row = dict[str, str | int | float]
Condition = Mapping[str, str | int | float]

NAMES = (
    "example1",
    "example2",
    "ova",
    "label_cost",
    "errata",
    "heart",
    "heart_confidence",
    "scale_matched",
    "heart_cost",
    "policies",
    "policy_shift",
    "noise",
    "shift",
    "guard",
    "uci",
    "uci_settings",
    "target",
    "calibration",
    "synthetic_size",
    "synthetic_flip",
    "synthetic_baselines",
    "synthetic_size_4",
    "synthetic_flip_4",
    "synthetic_baselines_4",
    "synthetic_augmentation",
    "medmnist",
    "medmnist_bound",
    "medmnist_search",
)
#: Experiments that share a module; every other one has a module of its own name.
_SHARED = {
    f"synthetic_{what}{classes}": "synthetic_experiments"
    for what in ("size", "flip", "baselines")
    for classes in ("", "_4")
}


class RefusedError(RuntimeError):
    """Something a trial lacks; the message says what to do, and a traceback would hide it."""


@dataclass(frozen=True)
class Report:
    """What is shown of an experiment: everything comes from its results, nothing is recomputed.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        Each is written as ``table_KEY.csv`` and ``table_KEY.md``.
    figures : mapping of str to callable
        Each makes one Matplotlib figure, written as ``KEY.svg``.
    text : str
        A few plain sentences: what was done and what came out.
    """

    tables: Mapping[str, DataFrame] = field(default_factory=dict)
    figures: Mapping[str, Callable[[], Figure]] = field(default_factory=dict)
    text: str = ""


@dataclass(frozen=True)
class Experiment:
    """One experiment: what varies, what one trial does, and what is reported.

    Parameters
    ----------
    name : str
        The name of its results, and as a rule of its module under ``experiments``.
    title : str
        One line for ``python -m experiments list``.
    trials, quick_trials : int
        Number of trials of each condition: the paper's, and that of ``--quick``.
    conditions : callable
        Takes ``quick`` and returns the settings to run, each a flat mapping.
    trial : callable
        Takes ``(condition, seed, quick)`` and returns rows, one for each method. It is a
        function of its module (workers import it), and makes everything random from the
        seed, so that the same seed and condition give the same rows.
    report : callable
        Takes the results and returns a `Report`.
    claims : sequence of Claim
        What the paper says of this experiment.
    most_trials : callable, optional
        Takes a condition and returns the most trials it gets unless their number is asked for,
        where some take long.
    lacks : callable, optional
        Returns why it cannot be run here, such as data that are never downloaded, as a sentence
        that says what to do; nothing if it can. Then it is skipped.
    """

    name: str
    title: str
    trials: int
    quick_trials: int
    conditions: Callable[[bool], Sequence[Condition]]
    trial: Callable[[Condition, int, bool], Iterable[Row]]
    report: Callable[[DataFrame], Report]
    claims: Sequence[Claim] = ()
    most_trials: Callable[[Condition], int] | None = None
    lacks: Callable[[], str] | None = None


def find(name: str) -> Experiment:
    """The experiment of this name; its module is imported only now.

    Raises
    ------
    ValueError
        When there is none, with the nearest name.
    """
    if name not in NAMES:
        near = get_close_matches(name, NAMES, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"There is no experiment {name!r}.{hint} There are: {', '.join(NAMES)}.")
    module = importlib.import_module(f"experiments.{_SHARED.get(name, name)}")
    experiment: Experiment = module.EXPERIMENTS[name] if name in _SHARED else module.EXPERIMENT
    return experiment
