"""General transport: the least fragile model, and the model of the least worst-case loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

from .._typing import Floats
from ..ambiguity import Transport
from ..programs.closed_forms import has_closed_form
from ..programs.satisficing import RobustProgram, SatisficingProgram, Solution
from . import conic, transport_logistic
from .transport_cones import size_of
from .transport_profile import why_not

#: Numbers in the per-sample vectors of a program, at most: a few gigabytes of cones.
_MOST = 20_000_000
#: Room that is left to the rounding of proofs, of what lies between lowest loss and target.
_FOR_PROOF = 2e-7

Say = Callable[[str], None]


def solve(
    program: SatisficingProgram | RobustProgram, start: Floats, say: Say | None = None
) -> Solution:
    """Least fragility at a target, which the start meets with room, or least worst-case loss."""
    objective, ambiguity, n_classes = (
        program.objective,
        program.ambiguity,
        program.objective.rows.n_classes,
    )
    assert isinstance(ambiguity, Transport)
    reason = why_not(objective.loss, ambiguity, n_classes)
    if reason:
        raise NotImplementedError(reason)
    told: Say = say or (lambda message: None)
    if objective.loss.pieces(n_classes) is None and not ambiguity.is_norm:
        return transport_logistic.solve(program, start, told)
    if isinstance(program, SatisficingProgram) and not has_closed_form(ambiguity):
        # Its certificate is proved by multipliers, which take a little room for rounding.
        target = program.target
        less = target.value - _FOR_PROOF * (target.value - target.erm_loss)
        program = replace(program, target=replace(target, value=less))
    return _by_cones(program, told)


def _by_cones(program: SatisficingProgram | RobustProgram, say: Say) -> Solution:
    """A piecewise linear loss, or a norm on the whole space: one conic program."""
    begun, rows, ambiguity = perf_counter(), program.objective.rows, program.ambiguity
    assert isinstance(ambiguity, Transport)
    pieces = program.objective.loss.pieces(rows.n_classes)
    size = 0 if pieces is None else size_of(pieces, rows.y, ambiguity, rows.X.shape[1])
    if size > _MOST:
        raise NotImplementedError(
            f"The support asks for a vector for each sample and piece, {size:,} numbers in all; up "
            f"to {_MOST:,} are supported. Give fewer samples, Norm(1) with a Box, or no support."
        )
    if size:
        say(
            f"conic program with a vector for each sample and piece: {size:,} numbers, about "
            f"{max(1, round(size / 7_000))} s"
        )
    solution = conic.solve(program)
    say(f"conic program solved in {perf_counter() - begun:.1f} s")
    return solution
