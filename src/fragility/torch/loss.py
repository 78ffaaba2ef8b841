"""Training on the Fragility Index itself: a term to add to any loss."""

from __future__ import annotations

from math import nan
from typing import Any

import torch
from torch import Tensor, nn

from .._parameters import check_count
from ._checks import check_class_numbers, check_class_range, check_columns, check_single
from ._first_order import first_order

#: Range of s = 1/k. It keeps the term finite and differentiable where the index is 0 or infinite,
#: and exp(s·(p - 1/2)), at most e⁵⁰, within single precision.
_LEAST_S, _LARGEST_S, _FIRST_S = 0.5, 100.0, 2.0
#: Largest lift of a sample: its worst-case weight over its share of its class.
_LARGEST_LIFT = 50.0
#: Longest Newton step in ln s.
_LONGEST_STEP = 0.7
_NEWTON_STEPS = 2
#: Less than any mean of exponentials, which is at least e⁻⁵⁰.
_TINY = 1e-30


class FragilityLoss(nn.Module):
    r"""The Fragility Index of recent predictions, as a term of a training loss.

    A batch is too small to know its worst case, so the last `bank_size` predictions are kept. For
    every ordered pair of classes :math:`s = 1/FI` of the bank is tracked by two Newton steps per
    batch, and the term is the mean over pairs of

    .. math:: E_{P^*}[\varepsilon] = \sum_{neg} w_i p_i - \sum_{pos} w_i p_i,
              \qquad w_i \propto e^{\pm s p_i},

    the ranking error in the worst case, with the weights :math:`w` of the bank held fixed. Its
    gradient is the gradient of the index up to the positive factor :math:`D^*` of each pair. It is
    not differentiable itself: a second derivative raises RuntimeError.

    Add it to a proper loss such as cross-entropy: alone it can be lowered by shrinking all
    probabilities towards each other. A weight of 0.3 is safe; with 1 use a warm-up and a ramp, and
    no other regulariser.

    Parameters
    ----------
    n_classes : int
        Two classes come as one logit or as two columns.
    weight : float, default=0.3
        What the term is multiplied by. It may be set at any time: ``term.weight = 0.1``.
    bank_size : int, default=2048
        How many predictions are kept. A larger batch leaves its last ones.
    warmup : int, default=0
        Calls in training mode for which the term is zero (the bank is filled meanwhile).
    ramp : int, default=0
        Calls after these over which the weight grows linearly.
    validate_args : bool, default=True
        Refuse classes outside 0 … n_classes - 1; this check waits for the device in every call. If
        False, and always in compiled code and while a CUDA graph is recorded, nothing waits, and
        the term of a batch with such a class is NaN.

    Notes
    -----
    Bank, s, weight and schedule are buffers, hence in ``state_dict``. In evaluation mode the term
    is computed from the bank as it is, and nothing is changed. Pairs of which the bank has no
    sample on a side are left out. Logits in half precision, as under autocast, are used in single.

    Examples
    --------
    >>> import torch
    >>> from fragility.torch import FragilityLoss
    >>> term = FragilityLoss(n_classes=3)
    >>> logits = torch.tensor([[2.0, 0, 0], [0, 2, 0], [1, 0, 0]], requires_grad=True)
    >>> y_true = torch.tensor([0, 1, 2])
    >>> loss = torch.nn.functional.cross_entropy(logits, y_true) + term(logits, y_true)
    >>> loss.backward()
    """

    _bank: Tensor
    _bank_y_true: Tensor
    _cursor: Tensor
    _s: Tensor
    _weight: Tensor
    _schedule: Tensor
    _calls: Tensor

    def __init__(
        self,
        n_classes: int,
        weight: float = 0.3,
        bank_size: int = 2048,
        warmup: int = 0,
        ramp: int = 0,
        validate_args: bool = True,
    ) -> None:
        super().__init__()
        self.validate_args = bool(validate_args)
        self.n_classes = check_count(n_classes, "n_classes", 2)
        self.bank_size = check_count(bank_size, "bank_size")
        schedule = [check_count(warmup, "warmup", 0), check_count(ramp, "ramp", 0)]
        # Two classes need one column: the other is one minus it.
        columns = 1 if n_classes == 2 else n_classes
        self.register_buffer("_bank", torch.zeros(bank_size, columns))
        self.register_buffer("_bank_y_true", torch.full((bank_size,), -1))  # -1: empty
        self.register_buffer("_cursor", torch.zeros((), dtype=torch.int64))
        self.register_buffer("_s", torch.full((columns, n_classes), _FIRST_S))
        self.register_buffer("_weight", torch.tensor(check_single(weight, "weight")))
        self.register_buffer("_schedule", torch.tensor(schedule))
        self.register_buffer("_calls", torch.zeros((), dtype=torch.int64))

    @property
    def weight(self) -> Tensor:
        """What the term is multiplied by after the ramp, a scalar tensor."""
        return self._weight

    @weight.setter
    def weight(self, weight: float) -> None:
        self._weight.fill_(check_single(weight, "weight"))

    @property
    def tracked_index(self) -> Tensor:
        """Mean of 1/s over the pairs in the bank, about its Fragility Index; NaN without pairs.

        Within [0.01, 2], the range that s is kept in. A scalar tensor, for a progress bar.
        """
        pairs = self._pairs(self._membership(self._bank_y_true).sum(0))
        return (pairs / self._s).sum() / pairs.sum()

    def forward(self, logits: Tensor, y_true: Tensor) -> Tensor:
        """The term for a batch, already weighted.

        Parameters
        ----------
        logits : Tensor of shape (n, n_classes); for two classes also (n,) or (n, 1)
        y_true : Tensor of shape (n,)
            True classes, integers from 0 to n_classes - 1.

        Returns
        -------
        Tensor
            A scalar. Zero while no pair of classes is in the bank; NaN if a logit is.
        """
        logits, y_true = self._check(logits, y_true)
        known = (y_true >= 0) & (y_true < self.n_classes)
        y_true = torch.where(known, y_true, 0)  # nothing is looked up outside of a table
        with torch.autocast(logits.device.type, enabled=False):
            probs = self._probs(logits)
            with torch.no_grad():
                scores = probs.detach().to(torch.float32)
                if self.training:
                    self._remember(scores, y_true, known)
                    self._calls.add_(1)
                gradient = self._gradient(scores, y_true) * self._current_weight()
                gradient = torch.where(known[:, None], gradient, nan).to(probs.dtype)
            if torch.compiler.is_compiling():  # compiled code refuses second derivatives itself
                return (gradient * probs).sum()
            term: Tensor = _Term.apply(probs, gradient)  # type: ignore[no-untyped-call]
            return term

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        bank, s = (state_dict.get(prefix + name) for name in ("_bank", "_s"))
        saved = [] if bank is None or s is None else [s.shape[-1], len(bank)]
        if saved and saved != [self.n_classes, self.bank_size]:
            *_, error_messages = args
            error_messages.append(
                f"The saved FragilityLoss has n_classes={saved[0]} and bank_size={saved[1]}, this "
                f"one n_classes={self.n_classes} and bank_size={self.bank_size}: make it with the "
                "numbers that were saved."
            )
            return
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _check(self, logits: Tensor, y_true: Tensor) -> tuple[Tensor, Tensor]:
        columns = check_columns(logits, self.n_classes, "logits")
        numbers = check_class_numbers(y_true, len(columns))
        if not logits.device == y_true.device == self._bank.device:
            raise ValueError(
                f"logits are on {logits.device}, y_true on {y_true.device}, and this term on "
                f"{self._bank.device}. Move all to one device, such as term.to(logits.device)."
            )
        if len(numbers) and self.validate_args and _may_wait_for(numbers):
            low, high = torch.stack(torch.aminmax(numbers)).tolist()
            check_class_range(low, high, self.n_classes)
        return columns, numbers

    def _probs(self, logits: Tensor) -> Tensor:
        """Probabilities, (n, C), or (n, 1) those of class 1 of two."""
        if logits.dtype not in (torch.float32, torch.float64):
            logits = logits.to(torch.float32)
        if self.n_classes > 2:
            return logits.softmax(1)
        one = logits[:, 1:] - logits[:, :1] if logits.shape[1] == 2 else logits
        return one.sigmoid()

    def _remember(self, scores: Tensor, y_true: Tensor, known: Tensor) -> None:
        kept = min(scores.shape[0], self.bank_size)
        places = torch.arange(kept, device=scores.device).add(self._cursor) % self.bank_size
        scores, y_true = scores[-kept:], y_true[-kept:]
        # A NaN, as mixed precision may give now and then, must not stay for thousands of samples.
        valid = scores.isfinite().all(1) & known[-kept:]
        scores = torch.where(valid[:, None], scores, 0.5)
        self._bank.index_copy_(0, places, scores.to(self._bank.dtype))
        self._bank_y_true.index_copy_(0, places, torch.where(valid, y_true, -1))
        self._cursor.add_(kept).remainder_(self.bank_size)

    def _current_weight(self) -> Tensor:
        """Weight of the term in this call; calls are counted from one."""
        warmup, ramp = self._schedule.unbind()
        growth = (self._calls - warmup) / ramp.clamp_min(1)
        return self._weight * growth.clamp(0.0, 1.0)

    def _membership(self, y_true: Tensor) -> Tensor:
        """Entry [n, j]: 1.0 where sample n is of class j."""
        classes = torch.arange(self.n_classes, device=y_true.device)
        return (y_true[:, None] == classes).to(torch.float32)

    def _of_columns(self, by_class: Tensor) -> Tensor:
        """Entries of the class of each column; the only column of two classes is class 1."""
        return by_class[..., 1:] if self.n_classes == 2 else by_class

    def _pairs(self, counts: Tensor) -> Tensor:
        """Entry [i, j]: 1.0 if the class of column i and class j are a pair, both with samples."""
        present = (counts > 0).to(torch.float32)
        same = torch.eye(self.n_classes, device=counts.device)
        return self._of_columns((1.0 - same) * present[:, None] * present).T

    def _tilts(self, s: Tensor, scores: Tensor, y_true: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Samples as negatives of each column, and as positives against each class.

        Entry [n, i] of the first is exp(s·(p - 1/2)), entry [n, j] of the second, of use for the
        samples of a column's own class, exp(-s·(p - 1/2)). Third, the score p - 1/2 of that column.
        """
        y_true = y_true.clamp_min(0)  # empty places of the bank, members of no class
        column = torch.zeros_like(y_true) if self.n_classes == 2 else y_true
        centred = scores - 0.5
        own = centred.gather(1, column[:, None])
        return (s.T[y_true] * centred).exp(), (-s[column] * own).exp(), own

    def _newton(self, s: Tensor, sizes: Tensor) -> Tensor:
        """One step towards the roots of h(s)/s, in ln s."""
        bank, members = self._bank.to(torch.float32), self._membership(self._bank_y_true)
        negative, positive, own = self._tilts(s, bank, self._bank_y_true)
        owners = self._of_columns(members)
        below, above = (members.T @ negative).T, owners.T @ positive
        own_sizes = self._of_columns(sizes)[:, None]
        value = _mean(below, sizes).log() + _mean(above, own_sizes).log()
        slope = (members.T @ (negative * (bank - 0.5))).T / below.clamp_min(_TINY)
        slope = slope - owners.T @ (positive * own) / above.clamp_min(_TINY)
        level = value / s
        step = -level / (slope - level).clamp_min(1e-6)
        return (s * step.clamp(-_LONGEST_STEP, _LONGEST_STEP).exp()).clamp(_LEAST_S, _LARGEST_S)

    def _gradient(self, scores: Tensor, y_true: Tensor) -> Tensor:
        """Gradient of the unweighted term with respect to the scores of the batch."""
        members = self._membership(self._bank_y_true)
        counts = members.sum(0)
        sizes, pairs = counts.clamp_min(1.0), self._pairs(counts)
        s = self._s.to(torch.float32)
        if self.training:
            for _ in range(_NEWTON_STEPS):
                s = torch.where(pairs > 0, self._newton(s, sizes), s)
            self._s.copy_(s)
        negative, positive, _ = self._tilts(s, self._bank.to(torch.float32), self._bank_y_true)
        below = _mean((members.T @ negative).T, sizes)
        own_sizes = self._of_columns(sizes)[:, None]
        above = _mean(self._of_columns(members).T @ positive, own_sizes)
        # Lift of each sample of the batch: its worst-case weight over its share of its class.
        negative, positive, _ = self._tilts(s, scores, y_true)
        column = torch.zeros_like(y_true) if self.n_classes == 2 else y_true
        negative = (negative / below.T[y_true]).clamp_max(_LARGEST_LIFT)
        positive = (positive / above[column]).clamp_max(_LARGEST_LIFT)
        # The bank knows the shares of the classes better than the batch does.
        expected = (scores.shape[0] * counts / counts.sum().clamp_min(1.0)).clamp_min(1.0)
        share = pairs / pairs.sum().clamp_min(1.0)
        owner = self._of_columns(self._membership(y_true))
        down = (positive * share[column]).sum(1, keepdim=True)
        upward = negative * share.T[y_true]
        return ((1.0 - owner) * upward - owner * down) / expected[y_true][:, None]


class _Term(torch.autograd.Function):
    """The sum of probabilities times their gradient, which was computed before."""

    generate_vmap_rule = True

    @staticmethod
    def forward(probs: Tensor, gradient: Tensor) -> Tensor:
        return (gradient * probs).sum()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        probs, found = ctx.saved_tensors
        with torch.no_grad():
            gradient = grad * found
        return first_order(gradient, "FragilityLoss", probs, grad), None


def _may_wait_for(y_true: Tensor) -> bool:
    """Whether the numbers may be read here: not while code is compiled or a graph recorded."""
    if torch.compiler.is_compiling() or y_true.is_meta:
        return False
    return not (y_true.is_cuda and torch.cuda.is_current_stream_capturing())


def _mean(sums: Tensor, sizes: Tensor) -> Tensor:
    """Means over samples, positive also where there are none."""
    return (sums / sizes).clamp_min(_TINY)
