r"""Label moves by the paper's bound of what they add, instead of exactly.

Another label adds at most :math:`k c \lVert x \rVert` to a loss, with c = 1 for cross-entropy and 2
for hinges, if no score has an intercept that is free. The paper therefore asks for

.. math:: \sum_n a_n \ell_n + k T + R \le \tau, \qquad
          T = \sum_n a_n (c \lVert x_n \rVert - \gamma)_+ .

That is the program without label moves at the target :math:`\tau - k T`: k is the smallest fixed
point of a convex increasing function, which secants find from below. The term grows with k, so that
no k will do unless the least worst-case loss in a ball of radius T, which has
:math:`\lambda T` in the place of :math:`k T`, is at most :math:`\tau`.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import norm as sparse_norm

from .._typing import Intercept
from ..ambiguity import Ambiguity, Wasserstein
from ..exceptions import InfeasibleTargetError
from ..losses import LipschitzLoss, Loss
from ..programs.objective import Objective
from ..programs.satisficing import Outcome, Solution
from .robust import profile_of

#: Accuracy of the fixed point, relative, and most secants.
_ACCURATE, _SECANTS = 1e-8, 50


def applies(ambiguity: Ambiguity) -> bool:
    """Whether labels move, by the bound of the paper."""
    return isinstance(ambiguity, Wasserstein) and ambiguity.by_paper


def without_labels(ambiguity: Ambiguity) -> Wasserstein:
    """The same where labels do not move."""
    assert isinstance(ambiguity, Wasserstein)
    return replace(ambiguity, label_cost=inf, label_term="exact")


def check(loss: Loss, ambiguity: Ambiguity, fit_intercept: Intercept) -> None:
    """Refuse, before any data are seen, what the bound does not hold for."""
    if not applies(ambiguity):
        return
    if fit_intercept is True:
        raise NotImplementedError(
            'label_term="paper" ignores a free intercept, and is no bound with one. Give '
            'fit_intercept="priced", the paper\'s own, or False, or label_term="exact".'
        )
    if isinstance(loss, LipschitzLoss) and loss.known is None:
        raise NotImplementedError(
            f'label_term="paper" needs to know what another label adds to {loss!r}, of which '
            'only a bound of its slope is known. Give label_term="exact".'
        )


def raised_by_labels(objective: Objective, ambiguity: Ambiguity) -> float:
    """The T above: what the label term adds to the loss per unit of k."""
    rows, loss = objective.rows, objective.loss
    assert isinstance(ambiguity, Wasserstein)
    mobility = ambiguity.mobility(rows.X.shape[1])
    if not mobility.all():
        raise NotImplementedError(
            'label_term="paper" knows no features that cannot shift (an infinite feature_weight): '
            'the length of a sample would be infinite. Give label_term="exact".'
        )
    _check_alike(objective)
    # Without a free intercept nothing was centred.
    X = rows.X @ sparse.diags_array(rows.scale / mobility)
    lengths = (sparse_norm if sparse.issparse(X) else np.linalg.norm)(X, ord=ambiguity.norm, axis=1)
    known = loss.known if isinstance(loss, LipschitzLoss) else None
    factor = (known or loss).relabelling
    return float(rows.weights @ np.maximum(factor * lengths - ambiguity.label_cost, 0.0))


def solve(program: Any, raised: float, at_target: Any, in_ball: Any) -> Any:
    """Least fragility with the label term, by programs without label moves.

    `at_target` solves such a program at a target, from a solution nearby; `in_ball` finds the least
    worst-case loss within a radius. Both are searches.
    """
    objective, target = program.objective, program.target.value
    plain = without_labels(program.ambiguity)

    def slope(solution: Solution) -> float:
        return profile_of(plain, objective.at(solution.parameters)).slope

    first: Solution = yield from at_target(target, None)
    if raised == 0.0 or first.outcome in (Outcome.TRIVIAL, Outcome.NOTHING_LEARNED):
        return first
    ball: Solution = yield from in_ball(raised)
    point = objective.at(ball.parameters)
    level, most = point.value + raised * slope(ball), slope(ball)
    if level > target * (1.0 + 1e-9):
        raise InfeasibleTargetError(
            f'target={target:.6g} cannot be met with label_term="paper": at label_cost='
            f"{program.ambiguity.label_cost:g} its label term raises the lowest loss to "
            f'{level:.6g}. Give label_term="exact", which has a solution for every label cost, a '
            "larger target, or a larger label_cost."
        )
    # h(k) = k*(τ - T k) - k is convex and falls to its first zero: secants from below stay below.
    before, k, found = (0.0, slope(first)), slope(first), first
    iterations = first.iterations + ball.iterations
    for _ in range(_SECANTS):
        if k >= most * (1.0 - _ACCURATE):
            return replace(ball, iterations=iterations)
        found = yield from at_target(target - raised * k, found)
        iterations += found.iterations
        rest = slope(found) - k
        if rest <= _ACCURATE * k:
            return replace(found, iterations=iterations)
        fall = before[1] - rest
        step = rest * (k - before[0]) / fall if fall > 0.0 else rest
        before, k = (k, rest), k + max(step, rest)
    return replace(ball, outcome=Outcome.UNSETTLED, iterations=iterations)


def _check_alike(objective: Objective) -> None:
    """Refuse a loss that differs between labels where all scores are zero."""
    if np.ptp(objective.loss.of_zero_scores(objective.rows.n_classes)) > 0.0:
        raise NotImplementedError(
            f'label_term="paper" is no bound for {objective.loss!r}, whose labels cost different '
            'amounts at scores of zero. Give label_term="exact".'
        )
