"""The exact Fragility Index of tensors, on their device, with its gradient."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from .._parameters import check_choice, check_number
from .._typing import Floats, Integers
from .._validation import PROBABILITY_ROUNDING, check_presence
from ..index.root import inverse
from ._checks import check_class_numbers, check_class_range
from ._first_order import first_order
from ._groups import Groups
from ._root import Equation, solve
from ._two_classes import Summary, TwoClasses

_NAME = "fragility_index"
#: From the gradient of a value to the gradient of scores.
_Gradient = Callable[[Tensor], Tensor]
#: Smaller numbers lose digits.
_TINY = 2.3e-308


def fragility_index(
    probs: Tensor,
    y_true: Tensor,
    *,
    target: float = 0.0,
    multi_class: Literal["ovo", "ovr"] = "ovo",
    average: Literal["macro"] | None = "macro",
    sample_weight: Tensor | None = None,
) -> Tensor:
    r"""Fragility Index of predicted probabilities, exact and differentiable.

    The same number as `fragility.fragility_index`, computed on the device of `probs`, all pairs of
    classes at once, in memory that grows like `probs` (some twenty numbers for each of its own).

    Parameters
    ----------
    probs : Tensor of shape (n,), (n, 2) or (n, C)
        Probabilities of class 1, or of each class. Any floating dtype; computed in float64.
    y_true : Tensor of shape (n,)
        True classes: integers from 0 to C - 1 (or booleans). Classes without samples are named in a
        warning and left out.
    target : float, default=0.0
        Level that the expected ranking error must meet.
    multi_class : {"ovo", "ovr"}, default="ovo"
        Every ordered pair of classes, or each class against the rest.
    average : {"macro"} or None, default="macro"
        Mean over the pairs (infinite if any of them is), or all of them: a (C, C) tensor whose
        entry [i, j] is the index of samples of class j scored as class i (NaN on the diagonal), a
        (C,) tensor for "ovr".
    sample_weight : Tensor of shape (n,), optional
        Weights, not negative; an integer weight is the same as repeating the sample. No gradient
        flows into them.

    Returns
    -------
    Tensor
        float64, on the device of `probs`.

    Notes
    -----
    By the implicit function theorem the gradient is the worst-case weight of each sample over the
    KL divergence of the worst case, :math:`\partial FI / \partial p_i = \pm w_i / D^*`. A pair
    whose index is 0 or infinite has no gradient and contributes zero, so that the gradient is
    finite even where the mean is infinite (but it may overflow if `probs` is in half precision).
    The gradient is not differentiable itself: a second derivative raises RuntimeError. The
    transforms of ``torch.func`` are not supported.

    Examples
    --------
    >>> import torch
    >>> from fragility.torch import fragility_index
    >>> p = torch.tensor([0.6, 0.9, 0.2, 0.7], dtype=torch.float64, requires_grad=True)
    >>> index = fragility_index(p, torch.tensor([1, 1, 0, 0]))
    >>> round(index.item(), 6)
    0.073051
    >>> index.backward()
    >>> p.grad.round(decimals=2).tolist()
    [-0.76, -0.01, 0.0, 0.77]
    """
    check_choice(multi_class, ("ovo", "ovr"), "multi_class")
    check_choice(average, ("macro", None), "average")
    target = check_number(target, "target")
    probs = _check_probs(probs)
    y_true, weights = _check_samples(probs, y_true, sample_weight)
    if probs.ndim == 2 and probs.shape[1] > 2:
        _check_ranges(probs.shape, *_extremes(probs, y_true))
        rest = multi_class == "ovr"
        rows, bounds = _by_class(y_true, weights, probs.shape[1])
        if weights is not None:
            weights = _scaled(weights, y_true, probs.shape[1], rest)
        equation = Equation(Groups(probs.detach(), rows, bounds, weights, rest), target)
        found = _pair_index(probs, rows, equation, mean=average == "macro")
        return found[:, 0] if rest and average is None else found
    # One problem: a ranking error of one class is also one of the other.
    scores = probs if probs.ndim == 1 else probs[:, 1]
    summary = Summary(scores.detach(), y_true, weights, [*torch.aminmax(probs.detach())])
    if summary.labelled < len(y_true):
        _check_ranges(probs.shape, *_extremes(probs, y_true))
    _check_ranges(probs.shape, *summary.also)
    check_presence(np.arange(2), np.array(summary.members))
    value = _two_class_index(scores, y_true, TwoClasses(summary, target))
    if average == "macro":
        return value
    if multi_class == "ovr":
        return value.expand(2)
    off_diagonal = ~torch.eye(2, dtype=torch.bool, device=value.device)
    return torch.where(off_diagonal, value, nan)


class _Index(torch.autograd.Function):
    """A number or table of numbers that is known already, and a function for its gradient."""

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, rows: Tensor, value: float | Floats, gradient: _Gradient
    ) -> Tensor:
        ctx.save_for_backward(rows)  # so that changing them before `backward` is an error
        ctx.scores, ctx.gradient = scores, gradient
        return torch.tensor(value, dtype=torch.float64).to(scores.device)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        _ = ctx.saved_tensors  # reading them raises an error if they were changed
        with torch.no_grad():
            gradient = ctx.gradient(grad).to(ctx.scores.dtype)
        return first_order(gradient, _NAME, ctx.scores, grad), None, None, None


def _two_class_index(scores: Tensor, y_true: Tensor, equation: TwoClasses) -> Tensor:
    """Index of two classes, from the scores of class 1."""
    s = equation.root()

    def gradient(grad: Tensor) -> Tensor:
        return grad * equation.gradient(s) if 0.0 < s < inf else torch.zeros_like(scores)

    found: Tensor = _Index.apply(scores, y_true, inverse(s), gradient)  # type: ignore[no-untyped-call]
    return found


def _pair_index(probs: Tensor, rows: Tensor, equation: Equation, *, mean: bool) -> Tensor:
    """Index of every pair of classes, as a table over pairs, or the mean of those."""
    s, groups = solve(equation), equation.groups
    values = np.where(equation.regular, 1.0 / s, np.where(equation.infinite, inf, 0.0))
    counted = groups.counted
    n_averaged = int(counted.sum()) if mean else 1

    def gradient(grad: Tensor) -> Tensor:
        wanted = grad.detach().cpu().numpy() / n_averaged
        below, above, slope = equation.tilt(s)
        if groups.rest:  # a positive has a row for each other class, all equal
            above = above * groups.others.sum(1, keepdims=True)
        with np.errstate(all="ignore"):
            shares = np.where(equation.regular, wanted / (s * slope), 0.0)
            tables = [
                [np.where(equation.regular, table, 0.0) for table in (s, side.high, shares / sums)]
                for side, sums in zip(equation.sides, (below, above), strict=True)
            ]
        tilt, high, lift = groups.along(*tables)
        lifted = torch.exp(tilt * (groups.values - high)) * lift * groups.weights[:, None]
        negative, positive = lifted.chunk(2)
        total = torch.zeros(probs.shape, dtype=torch.float64, device=negative.device)
        total.index_add_(0, groups.samples.flatten(), negative.transpose(1, 2).flatten(0, 1))
        column = groups.classes[:, None].expand_as(groups.samples)
        total.index_put_((groups.samples, column), -positive.sum(1), accumulate=True)
        return total

    value = values[counted].mean() if mean else np.where(counted, values, nan)
    found: Tensor = _Index.apply(probs, rows, value, gradient)  # type: ignore[no-untyped-call]
    return found


def _check_probs(probs: Tensor) -> Tensor:
    if not isinstance(probs, Tensor) or not probs.is_floating_point():
        kind = probs.dtype if isinstance(probs, Tensor) else type(probs).__name__
        raise TypeError(
            f"probs must be a tensor of floating point numbers; got {kind}. The order is (probs, "
            "y_true); for arrays use fragility.fragility_index(y_true, probs)."
        )
    if torch._C._functorch.is_functorch_wrapped_tensor(probs):
        raise RuntimeError(
            "fragility_index does not work within torch.func (grad, vmap, hessian, ...), because "
            "the number of its steps depends on the data. Use torch.autograd.grad, and a loop for "
            "several sets."
        )
    if probs.ndim == 2 and probs.shape[1] == 1:
        probs = probs[:, 0]
    if probs.ndim not in (1, 2):
        raise ValueError(
            "probs must have the shape (n,), the probabilities of class 1, or (n, C), one column "
            f"per class; got {tuple(probs.shape)}."
        )
    if probs.numel() == 0:
        raise ValueError(f"probs is empty, of shape {tuple(probs.shape)}: give some samples.")
    return probs


def _check_samples(
    probs: Tensor, y_true: Tensor, sample_weight: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Class numbers and weights on the device of `probs`; the class numbers are not yet checked."""
    codes = check_class_numbers(y_true, len(probs)).to(probs.device)
    if sample_weight is None:
        return codes, None
    return codes, _check_weights(sample_weight, len(probs)).to(probs.device)


def _extremes(probs: Tensor, y_true: Tensor) -> list[float]:
    """Least and largest of probs and of y_true, in one transfer."""
    extremes = [*torch.aminmax(probs.detach()), *torch.aminmax(y_true)]
    return [float(e) for e in torch.stack([e.to(torch.float64) for e in extremes]).tolist()]


def _check_ranges(
    shape: tuple[int, ...], low: float, high: float, first: float = 0.0, last: float = 0.0
) -> None:
    if not (low >= -PROBABILITY_ROUNDING and high <= 1.0 + PROBABILITY_ROUNDING):  # NaN neither
        found = "holds NaN" if low != low else f"goes from {low:g} to {high:g}"
        raise ValueError(
            f"probs must hold probabilities, from 0 to 1, but {found}. Put logits through softmax, "
            "or sigmoid if there is one column."
        )
    n_classes = 2 if len(shape) == 1 else shape[1]
    check_class_range(first, last, n_classes, f", because probs has shape {tuple(shape)}")


def _by_class(y_true: Tensor, weights: Tensor | None, n_classes: int) -> tuple[Tensor, Integers]:
    """The samples of positive weight sorted by class, and the bounds of the classes."""
    kept = None if weights is None else torch.nonzero(weights > 0.0)[:, 0]
    used = y_true if kept is None else y_true[kept]
    # The narrowest integer that holds the classes: the sort takes one round per byte.
    narrow = used.to(torch.uint8) if n_classes <= 256 else used
    in_order, rows = torch.sort(narrow, stable=True)
    classes = torch.arange(n_classes, dtype=narrow.dtype, device=narrow.device)
    bounds = np.append(torch.searchsorted(in_order, classes).cpu().numpy(), len(rows))
    check_presence(np.arange(n_classes), np.diff(bounds))
    return rows if kept is None else kept[rows], bounds


def _check_weights(sample_weight: Tensor, n: int) -> Tensor:
    if not isinstance(sample_weight, Tensor) or sample_weight.shape != (n,):
        shape = tuple(np.shape(sample_weight))
        raise ValueError(
            f"sample_weight must be a tensor with one entry per sample, the shape ({n},); got "
            f"{type(sample_weight).__name__} of shape {shape}."
        )
    if sample_weight.is_complex():
        raise ValueError(f"sample_weight must hold real numbers; got {sample_weight.dtype}.")
    weights = sample_weight.detach().to(torch.float64)
    low, high = torch.stack(torch.aminmax(weights)).tolist()
    if not (low >= 0.0 and high < inf):  # NaN neither
        raise ValueError(
            "sample_weight must hold finite numbers that are not negative; got numbers from "
            f"{low:g} to {high:g}."
        )
    return weights


def _scaled(weights: Tensor, y_true: Tensor, n_classes: int, rest: bool) -> Tensor:
    """Weights of order one: only ratios matter, within each class unless classes are pooled."""
    if rest:
        scaled = weights / weights.max()
    else:
        largest = torch.zeros(n_classes, dtype=weights.dtype, device=weights.device)
        largest.scatter_reduce_(0, y_true, weights, "amax")
        scaled = weights / largest[y_true]
    positive = weights > 0.0
    if bool((positive & (scaled < _TINY)).any()):
        counted = weights[positive]
        raise ValueError(
            f"sample_weight goes from {counted.min().item():g} to {counted.max().item():g}, a "
            "range that floating point cannot hold; give samples of negligible weight the weight 0."
        )
    return torch.where(positive, scaled, 0.0)
