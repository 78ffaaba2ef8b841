"""The answers of the training banks, for `tests.golden.record`.

programs.json.gz        the 400 programs (the committed file was recorded on another machine,
                        from which this one differs by up to 1.3e-8)
more_programs.json.gz   further programs of every kind, and refused ones
certificates.json.gz    certificates, proofs, measured shifts
targets.json.gz         targets out of fold, choices by cross-validation, paths
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .ask import (
    ask,
    ask_certificate,
    ask_chosen,
    ask_out_of_fold,
    ask_path,
    ask_program,
    ask_proof,
    ask_shift,
    estimator_of,
)
from .certificates import certified, proved, shifted
from .programs import N_PROGRAMS
from .training import (
    CONIC,
    PROBLEMS,
    Problem,
    chosen_problems,
    out_of_fold_problems,
    path_problems,
    problems,
    samples,
    unique_parts_of,
)

#: Accuracy of the second fit, which must agree with the first in what is recorded as unique.
ACCURATE = 1e-9
#: How near the two must be, as a share of the norm of the coefficients.
AGREE = 3e-5


def programs() -> dict[str, Any]:
    """Return the answers to the 400 programs."""
    return {"programs": {str(i): ask_program(i) for i in range(N_PROGRAMS)}, "refused": {}}


def more_programs() -> dict[str, Any]:
    """Return the answers to the further programs, by kind and name."""
    return {
        kind: {name: _answered(kind, one) for name, one in problems(kind).items()}
        for kind in PROBLEMS
    }


def _answered(kind: str, problem: Problem) -> dict[str, Any]:
    entry = {"what": problem} | ask(problem)
    if "error" in entry:
        return entry
    unique = unique_parts_of(problem, entry.get("fragility"))
    if kind not in CONIC:  # those solvers have an accuracy of their own
        again = ask(problem, tol=ACCURATE)
        size = AGREE * float(np.linalg.norm(entry["coef"]))
        unique = [part for part in unique if np.linalg.norm(entry[part] - again[part]) <= size]
    return entry | {"unique": unique}


def certificates() -> dict[str, Any]:
    """Return the certificates, the proofs and the measured shifts."""
    return {
        "certified": _recorded(certified(), ask_certificate),
        "proved": _recorded(proved(), ask_proof),
        "shifted": _recorded(shifted(), ask_shift),
    }


def targets() -> dict[str, Any]:
    """Return the targets out of fold, the choices and the paths."""
    out_of_fold = _recorded(out_of_fold_problems(), ask_out_of_fold)
    for name, problem in out_of_fold_problems().items():
        out_of_fold[name] |= _fold_losses(problem, out_of_fold[name])
    return {
        "out_of_fold": out_of_fold,
        "chosen": _recorded(chosen_problems(), ask_chosen),
        "paths": _recorded(path_problems(), ask_path),
    }


def _recorded(questions: dict[str, Any], ask_one: Any) -> dict[str, Any]:
    return {name: {"what": what} | ask_one(what) for name, what in questions.items()}


def _fold_losses(problem: Problem, answer: dict[str, Any]) -> dict[str, Any]:
    """Return the mean loss of each fold at the chosen strength, and their standard error.

    It follows the private steps of the tree that was recorded, since no attribute holds the folds:
    another rule for the target must land within a tenth of this standard error.
    """
    from sklearn.base import clone
    from sklearn.preprocessing import StandardScaler

    from fragility.linear_model import out_of_fold as rule
    from fragility.linear_model.base import TrainingData
    from fragility.losses import as_loss
    from fragility.programs.rows import distinct_rows
    from fragility.solvers.searching import result, side_by_side

    model = estimator_of(problem)
    loss = as_loss(model.loss)
    labelled = model._class_weighted(model._validated(*samples(problem["data"])))
    rows = distinct_rows(labelled.X, labelled.codes, labelled.weights)
    X, codes, weights = rule._in_order(*rows)
    X = StandardScaler(with_mean=False).fit_transform(X, sample_weight=weights)
    folds, _ = rule._folds(codes, labelled, model.random_state)
    plain_model = clone(model).set_params(loss=loss, ambiguity="kl", penalty="l2")
    tests = [folds == fold for fold in np.unique(folds[folds >= 0])]
    classes = labelled.classes
    parts = [TrainingData(X[~t], codes[~t], weights[~t], classes) for t in tests]
    fitted = result(side_by_side(rule._models(plain_model, part) for part in parts))
    losses, masses = [], []
    for test, models in zip(tests, fitted, strict=True):
        coef, intercept = models[rule.ALPHAS.index(answer["strength"])]
        scores = X[test] @ coef.T + intercept
        scores = scores[:, 0] if len(coef) == 1 else scores
        mass = weights[test].sum()
        losses.append(float(weights[test] @ loss.value(scores, codes[test]) / mass))
        masses.append(float(mass))
    mean = float(np.average(losses, weights=masses))
    assert math.isclose(mean, answer["out_of_fold_loss"], rel_tol=1e-9), (mean, answer)
    error = float(np.std(losses, ddof=1) / math.sqrt(len(losses)))
    return {"fold_losses": losses, "standard_error": error}


BANKS = {
    "programs": programs,
    "more_programs": more_programs,
    "certificates": certificates,
    "targets": targets,
}
