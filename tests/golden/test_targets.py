"""Targets out of fold, choices by cross-validation and paths are as before."""

import warnings
from pathlib import Path

import pytest

from .ask import ask_chosen, ask_out_of_fold, ask_path
from .compare import Tolerance, differences, plain, read_bank, relative_above_one
from .training import chosen_problems, out_of_fold_problems, path_problems

BANK = read_bank(Path(__file__).parent / "targets.json.gz")
#: Another rule may choose another target, within this share of the standard error of the folds.
SHARE_OF_STANDARD_ERROR = 0.1

LOSS = relative_above_one(1e-8)
TARGET = relative_above_one(1e-6)
TOLERANCES = {
    "target": TARGET,
    "out_of_fold_loss": TARGET,
    "penalty": TARGET,
    "lowest_loss": LOSS,
    "trivial_loss": LOSS,
    "loss": TARGET,
    "slack": TARGET,
    "fragility": Tolerance(1e-5, 1e-9),
    "best_score": relative_above_one(1e-3),
    "mean_scores": relative_above_one(1e-3),
}
#: Recorded once: no attribute holds the folds.
ONLY_RECORDED = ("fold_losses", "standard_error")

OUT_OF_FOLD, CHOSEN, PATHS = out_of_fold_problems(), chosen_problems(), path_problems()


def check(part, name, problem, question):
    """Compare one answer; the message has every difference."""
    recorded = {key: one for key, one in BANK[part][name].items() if key not in ONLY_RECORDED}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = plain({"what": problem} | question(problem))
    lines = differences(recorded, answer, TOLERANCES)
    assert not lines, "\n".join(f"{name}: {line}" for line in lines)


def test_every_recorded_problem_is_asked():
    asked = {"out_of_fold": OUT_OF_FOLD, "chosen": CHOSEN, "paths": PATHS}
    assert {part: sorted(one) for part, one in asked.items()} == {
        part: sorted(one) for part, one in BANK.items()
    }


@pytest.mark.parametrize("name", OUT_OF_FOLD)
def test_target_out_of_fold(name):
    check("out_of_fold", name, OUT_OF_FOLD[name], ask_out_of_fold)


@pytest.mark.parametrize("name", OUT_OF_FOLD)
def test_loss_out_of_fold_is_within_its_standard_error(name):
    """What a later rule must still meet."""
    recorded = BANK["out_of_fold"][name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = ask_out_of_fold(OUT_OF_FOLD[name])
    allowed = SHARE_OF_STANDARD_ERROR * recorded["standard_error"] + 1e-6
    assert abs(answer["target"] - recorded["target"]) <= allowed


@pytest.mark.parametrize("name", CHOSEN)
def test_choice_by_cross_validation(name):
    check("chosen", name, CHOSEN[name], ask_chosen)


@pytest.mark.parametrize("name", PATHS)
def test_path_of_targets(name):
    check("paths", name, PATHS[name], ask_path)
