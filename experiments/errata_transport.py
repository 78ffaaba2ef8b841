"""What the paper says of transport in general, of robust programs, and of several classes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from experiments import errata_bounds as bounds
from experiments import errata_programs as programs
from experiments.errata_item import Item, compared, never
from experiments.experiment import Row

#: What a label costs where it moves: more than any way inside the sets.
_LABEL_COST = 4.0
_TARGET = 0.6


def _ratio(seed: int, support: programs.Support, label_cost: float, *, by_label: bool) -> float:
    """The k of the program over that of trying every corner."""
    data = programs.sample(support, seed)
    found = programs.program_k(support, data, label_cost, _TARGET, by_label=by_label)
    return found / programs.exact_k(support, data, label_cost, _TARGET)


def _piecewise(
    set_name: str, support: programs.Support, by_label: bool, seed: int
) -> Iterator[Row]:
    for name, cost in (("labels fixed", math.inf), (f"labels cost {_LABEL_COST:g}", _LABEL_COST)):
        found = _ratio(seed, support, cost, by_label=by_label)
        yield compared(
            f"k of the program over the exact k, {set_name}, {name}", "=", 1.0, found, 1e-6
        )


def _corollary(seed: int) -> Iterator[Row]:
    yield from _piecewise("a triangle", programs.TRIANGLE, False, seed)
    inside = programs.dual_support_value(np.array([0.6, 0.8]), inside=True)
    yield compared("dual of the largest zᵀx, ‖x‖² ≤ 1, z of length 1", "=", 1.0, inside, 1e-6)
    without = programs.dual_support_value(np.array([0.0, 1.0]), inside=False)
    yield compared("dual of the largest x₂ with ‖x‖ ≤ x₁ (no inner point)", "=", 0.0, without)


def _repaired(seed: int) -> Iterator[Row]:
    yield from _piecewise("a box", programs.BOX, True, seed)
    yield from _piecewise("a triangle", programs.TRIANGLE, True, seed)


def _support(seed: int) -> Iterator[Row]:
    unsolved = programs.unsolved_by_few_points(seed)
    yield compared("inner problems of 300 that M + 1 points do not solve", ">", 0.0, unsolved)
    lower, upper = programs.cross_entropy_bounds(programs.boxed(seed), _TARGET)
    yield compared(
        "cross-entropy in a box: exact k of a model over the least k of a convex program",
        ">",
        1.0,
        upper / lower,
        1e-5,
    )


def _lipschitz(seed: int) -> Iterator[Row]:
    for norm in bounds.NORMS:
        name = "ℓ∞" if norm == math.inf else f"ℓ{norm}"
        broken = bounds.understated(seed, norm)
        yield never(f"cross-entropy, {name}: of 200 models, with a slope above ω₁‖B‖", broken)
    found = bounds.steepest_of_regression(seed)
    yield compared("‖Bᵀx − y‖₂: steepest slope over ω₁‖B‖", "=", 1.0, found, 1e-6)


def _beside(seed: int) -> Iterator[Row]:
    slope = bounds.label_slope(seed)
    yield compared(
        "‖u − y‖₂, one-hot labels: largest rise with the label over √2‖u‖", "≤", 1.0, slope
    )
    rise = bounds.label_rise((1.0, 2.0))
    yield compared(
        "‖u − y‖₂ at u = 0, labels of lengths 1 and 2: rise with the label", "≤", 0.0, rise
    )
    found = bounds.spectral_midpoint_excess(seed)
    yield compared(
        "spectral norm midway over its mean at both ends, largest of 200", ">", 1.0, found
    )


def _lower_bound(best: bool, seed: int) -> Iterator[Row]:
    for name in bounds.SETTINGS:
        found = bounds.lower_bounds(seed, name)
        if best:
            said = f"δ₁/δ₂ at the best δ₂ over k*, {name}"
            yield compared(said, "=", 1.0, found.best, 1e-6)
        else:
            said = f"largest δ₁/δ₂ of {len(bounds.RADII)} radii over k*, {name}"
            yield compared(said, "≤", 1.0, found.of_row, 1e-6)


def _robust_labels(seed: int) -> Iterator[Row]:
    for share, name in ((1.0, "max ‖x‖"), (0.5, "half of max ‖x‖")):
        found = bounds.label_term_robust(seed, share)
        yield compared(f"robust loss over the exact one, label cost {name}", "=", 1.0, found, 1e-6)


def _robust_ball(seed: int) -> Iterator[Row]:
    for name in bounds.SETTINGS:
        found = bounds.lower_bounds(seed, name).in_ball
        said = f"k inside a ball over (DRO − τ)/radius, {name}"
        yield compared(said, "=", 1.0, found, 1e-6)


def _pairs(seed: int) -> Iterator[Row]:
    found = bounds.pairs_broken(seed)
    yield never(f"KL: of {found.pairs} pairs, with FI above k/2 at (τ − R)/(2 min π)", found.kl)
    yield never(f"transport: of {found.pairs} pairs, in which a move pays at K/2", found.transport)


ITEMS = {
    "lower_bound": Item(
        "4.1, lemma",
        "k* is at least δ₁/δ₂, where the robust loss within δ₂ exceeds the target by δ₁.",
        partial(_lower_bound, False),
    ),
    "lower_bound_attained": Item(
        "4.1 (our addition)",
        "The lemma's bound is k* itself at the best δ₂: one robust fit proves a k* optimal.",
        partial(_lower_bound, True),
    ),
    "lipschitz": Item(
        "4.3.2, theorem (Lipschitz)",
        "‖B‖ ≤ k/ω₁, with the induced norm, suffices for every Lipschitz loss, and ‖u − y‖₂ needs "
        "all of it.",
        _lipschitz,
    ),
    "lipschitz_beside": Item(
        "4.3.2, beside the theorem",
        "‖u − y‖₂ meets the assumption on labels, and it is the Frobenius norm that makes the "
        "program convex.",
        _beside,
        divisible=True,
    ),
    "several_classes_repaired": Item(
        "B.1 (our addition)",
        "Of a pair of several classes FI at (τ − R)/(2 min(π_i, π_j)) is at most k*/2 under KL, "
        "and no move pays at half of the largest ‖β_i − β_l‖ under transport.",
        _pairs,
    ),
    "support": Item(
        "B.2.2, remark",
        "With a support there is no exact reformulation for the cross-entropy (here: two classes).",
        _support,
    ),
    "piecewise": Item(
        "B.2.3, theorem",
        "For piecewise linear losses and a support, a program with a vector v for each sample and "
        "piece is exact.",
        partial(_piecewise, "a box", programs.BOX, False),
        divisible=True,
    ),
    "piecewise_corollary": Item(
        "B.2.3, corollary",
        "So it is for a polytope, with multipliers for each sample and piece, and for convex "
        "constraints by their dual.",
        _corollary,
        divisible=True,
    ),
    "piecewise_repaired": Item(
        "B.2.3 (our addition)",
        "With a vector for each label, too, both programs are exact.",
        _repaired,
    ),
    "robust_labels": Item(
        "B.4.1, proposition",
        "The robust loss has the label term λ(‖x‖ − γ)₊, exactly for γ ≥ max ‖x‖.",
        _robust_labels,
        divisible=True,
    ),
    "robust_ball": Item(
        "B.4.2, proposition",
        "Inside a ball k is the least of the program with k + λ: what the robust loss exceeds the "
        "target by, over the radius.",
        _robust_ball,
    ),
}
