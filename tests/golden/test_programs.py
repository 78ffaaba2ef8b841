"""The 400 programs and the further ones are solved as they were before the library was rebuilt."""

import warnings
from pathlib import Path

import pytest

from .ask import ask, ask_program
from .compare import Tolerance, differences, plain, read_bank, relative_above_one
from .programs import N_PROGRAMS, RADIUS
from .training import CONIC, PROBLEMS, comparable, problems, unique_parts

FOLDER = Path(__file__).parent
CHUNK = 20

LOSS = relative_above_one(1e-8)
TARGET = relative_above_one(1e-9)
FRAGILITY = Tolerance(1e-6, 1e-9)
SOLUTION = Tolerance(1e-4, by_norm=True)
#: The fragility of a program in a ball is a multiplier: where its worst loss is right to 1e-8 it is
#: right to 1e-4, and so is the target that follows from both.
MULTIPLIER = Tolerance(1e-4, 1e-9)

PROGRAM_TOLERANCES = {
    "fragility_": FRAGILITY,
    "multiplier": MULTIPLIER,
    "target_": TARGET,
    "worst_loss": LOSS,
    "erm_loss_": LOSS,
    "trivial_loss_": LOSS,
    "solution": SOLUTION,
}
PROBLEM_TOLERANCES = {
    "data_sums": relative_above_one(1e-9),
    "fragility": FRAGILITY,
    "multiplier": MULTIPLIER,
    "target": TARGET,
    "lowest_loss": LOSS,
    "trivial_loss": LOSS,
    "worst_loss": LOSS,
    "attained_loss": LOSS,
    "loss": LOSS,
    "solution": SOLUTION,
}


@pytest.fixture(scope="module")
def programs():
    return read_bank(FOLDER / "programs.json.gz")["programs"]


@pytest.fixture(scope="module")
def more_programs():
    return read_bank(FOLDER / "more_programs.json.gz")


def program_answer(entry, unique):
    """What of an answer to one of the 400 programs is compared."""
    answer = comparable(entry, unique)
    answer.pop("solver_", None)
    if entry["what"]["estimator"] == "dro":
        answer["multiplier"] = answer.pop("fragility_")
        answer["worst_loss"] = answer.pop("target_") + RADIUS * answer["multiplier"]
    return answer


@pytest.mark.parametrize("first", range(0, N_PROGRAMS, CHUNK))
def test_400_programs(programs, first):
    failures = {}
    for i in range(first, first + CHUNK):
        recorded = programs[str(i)]
        what = recorded["what"]
        unique = unique_parts(
            loss=what["loss"],
            penalty=what["penalty"],
            priced=what["intercept"] == "priced",
            fragility=recorded["fragility_"],
            ball=what["ambiguity"] == "w2" and len(recorded["coef"]) == 1,
            full_rank=True,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = plain(ask_program(i))
        expected, actual = (program_answer(entry, unique) for entry in (recorded, answer))
        lines = differences(expected, actual, PROGRAM_TOLERANCES)
        if lines:
            failures[i] = lines
    assert not failures, listing(failures)


def problem_answer(entry, recorded):
    """What of an answer to a further program is compared."""
    answer = {key: value for key, value in entry.items() if key not in ("what", "unique")}
    if "error" in answer:
        del answer["message"]  # compared by a test of its own
        return answer
    # Whether a search settles is the solver's own business.
    answer["warnings"] = [name for name in answer["warnings"] if name != "ConvergenceWarning"]
    what = recorded["what"]
    answer = comparable(answer, recorded["unique"], centred=what["estimator"] != "regression")
    if what["estimator"] == "dro":
        answer["multiplier"] = answer.pop("fragility")
        del answer["target"]  # the worst loss less the radius times the multiplier
        del answer["attained_loss"]
    return answer


def check_problems(kind, recorded):
    """Compare all problems of a kind; the message has every difference."""
    asked = problems(kind)
    assert sorted(asked) == sorted(recorded)
    failures = {}
    for name, problem in asked.items():
        expected = recorded[name]
        lines = differences(expected["what"], plain(problem))
        actual = plain(ask(problem))
        if ("error" in expected) == ("error" in actual):
            actual = problem_answer(actual, expected)
        lines += differences(problem_answer(expected, expected), actual, PROBLEM_TOLERANCES)
        if lines:
            failures[name] = lines
    assert not failures, listing(failures)


def listing(failures):
    """Differences by name, one line each."""
    return "\n".join(f"{name}: {line}" for name, lines in failures.items() for line in lines)


def test_messages_of_refused_programs(more_programs):
    failures = {}
    for kind in PROBLEMS:
        for name, problem in problems(kind).items():
            expected = more_programs[kind][name]
            if "error" in expected:
                lines = differences(expected["message"], ask(problem).get("message"))
                failures |= {name: lines} if lines else {}
    assert not failures, listing(failures)


@pytest.mark.parametrize("kind", [kind for kind in PROBLEMS if kind not in CONIC])
def test_further_programs(more_programs, kind):
    check_problems(kind, more_programs[kind])


@pytest.mark.outside
@pytest.mark.parametrize("kind", CONIC)
def test_further_programs_of_the_conic_extra(more_programs, kind):
    check_problems(kind, more_programs[kind])
