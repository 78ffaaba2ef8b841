"""The programs lowered to cones by the library, against their literal transcriptions."""

from types import SimpleNamespace

import pytest

from fragility.ambiguity import as_ambiguity
from fragility.losses import CrossEntropy, as_loss
from fragility.programs.objective import Objective
from fragility.programs.rows import training_rows
from fragility.programs.satisficing import RobustProgram, SatisficingProgram
from fragility.solvers import conic

from .program_cells import ALPHA, SOME, dro, satisficing, target_of

pytestmark = pytest.mark.outside

some_cells = pytest.mark.parametrize("cell", SOME, ids=str)


def program_of(cell, kind, asked):
    X, y, weights = cell.data
    rows = training_rows(X, y, cell.n_classes, weights, fit_intercept=cell.fit_intercept)
    strength = {"l2": {"alpha": ALPHA}, "l1": {"lasso": ALPHA}}.get(cell.penalty, {})
    objective = Objective(rows, as_loss(cell.loss), **strength)
    return kind(objective, as_ambiguity(cell.parameters["ambiguity"]), asked)


def judged(cell, program, solution):
    objective = program.objective
    coef, intercept = objective.split(solution.parameters)
    return cell.judged(*objective.rows.in_user_units(coef, intercept))


@some_cells
def test_least_fragility(cell):
    target = target_of(cell)
    program = program_of(cell, SatisficingProgram, SimpleNamespace(value=target))
    solution = conic.solve(program)
    own = judged(cell, program, solution)
    assert solution.solver == "conic"
    assert own.fragility(target * (1 + 1e-6)) == pytest.approx(satisficing(cell).k, rel=1e-4)
    assert own.supremum(satisficing(cell).k) <= target * (1 + 1e-6)


@some_cells
def test_least_worst_loss(cell):
    radius = 0.02
    program = program_of(cell, RobustProgram, radius)
    own = judged(cell, program, conic.solve(program))
    assert own.worst(radius) == pytest.approx(dro(cell, radius).value, rel=1e-6)


def test_losses_of_the_user_are_refused():
    class Own(CrossEntropy):
        pass

    assert "hinge and max_logistic" in conic.why_not(Own())
    assert not conic.why_not(CrossEntropy())
