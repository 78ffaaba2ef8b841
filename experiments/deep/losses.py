"""The Fragility Index of recent predictions as a term of a training loss."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["FragilityLoss"]

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
    gradient is the gradient of the index up to the positive factor :math:`D^*` of each pair. The
    gradient is a constant to PyTorch: do not differentiate it again.

    Parameters
    ----------
    n_classes : int
    weight : float, default=0.3
        What the term is multiplied by.
    bank_size : int, default=2048
        How many predictions are kept. A larger batch leaves its last ones.
    warmup : int, default=0
        Calls in training mode for which the term is zero (the bank is filled meanwhile).
    ramp : int, default=0
        Calls after these over which the weight grows linearly.

    Notes
    -----
    Bank, s and the number of calls are buffers, hence in ``state_dict``. In evaluation mode the
    term is computed from the bank as it is, and nothing is changed. Pairs of which the bank has no
    sample on a side are left out.
    """

    _bank: Tensor
    _bank_y_true: Tensor
    _cursor: Tensor
    _s: Tensor
    _calls: Tensor

    def __init__(
        self,
        n_classes: int,
        weight: float = 0.3,
        bank_size: int = 2048,
        warmup: int = 0,
        ramp: int = 0,
    ) -> None:
        super().__init__()
        self.n_classes, self.bank_size = n_classes, bank_size
        self.weight, self.warmup, self.ramp = weight, warmup, ramp
        # Two classes need one column: the other is one minus it.
        columns = 1 if n_classes == 2 else n_classes
        self.register_buffer("_bank", torch.zeros(bank_size, columns))
        self.register_buffer("_bank_y_true", torch.full((bank_size,), -1))  # -1: empty
        self.register_buffer("_cursor", torch.zeros((), dtype=torch.int64))
        self.register_buffer("_s", torch.full((columns, n_classes), _FIRST_S))
        self.register_buffer("_calls", torch.zeros((), dtype=torch.int64))

    def forward(self, logits: Tensor, y_true: Tensor) -> Tensor:
        """Return the weighted term for a batch.

        Parameters
        ----------
        logits : Tensor of shape (n, n_classes)
        y_true : Tensor of shape (n,)
            True classes, integers from 0 to n_classes - 1.

        Returns
        -------
        Tensor
            A scalar. Zero while no pair of classes is in the bank; NaN if a logit is.
        """
        if self.n_classes == 2:
            probs = (logits[:, 1:] - logits[:, :1]).sigmoid()
        else:
            probs = logits.softmax(1)
        with torch.no_grad():
            scores = probs.detach().to(torch.float32)
            if self.training:
                self._remember(scores, y_true)
                self._calls.add_(1)
            gradient = (self._gradient(scores, y_true) * self._current_weight()).to(probs.dtype)
        return (gradient * probs).sum()

    def _remember(self, scores: Tensor, y_true: Tensor) -> None:
        n_kept = min(scores.shape[0], self.bank_size)
        rows = torch.arange(n_kept, device=scores.device).add(self._cursor) % self.bank_size
        scores, y_true = scores[-n_kept:], y_true[-n_kept:]
        # A NaN, as mixed precision may give now and then, must not stay for thousands of samples.
        valid = scores.isfinite().all(1)
        self._bank.index_copy_(0, rows, torch.where(valid[:, None], scores, 0.5))
        self._bank_y_true.index_copy_(0, rows, torch.where(valid, y_true, -1))
        self._cursor.add_(n_kept).remainder_(self.bank_size)

    def _current_weight(self) -> Tensor:
        """Return the weight of the term in this call; calls are counted from one."""
        growth = (self._calls - self.warmup) / max(self.ramp, 1)
        return self.weight * growth.clamp(0.0, 1.0)

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
        bank, members = self._bank, self._membership(self._bank_y_true)
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
        s = self._s
        if self.training:
            for _ in range(_NEWTON_STEPS):
                s = torch.where(pairs > 0, self._newton(s, sizes), s)
            self._s.copy_(s)
        negative, positive, _ = self._tilts(s, self._bank, self._bank_y_true)
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


def _mean(sums: Tensor, sizes: Tensor) -> Tensor:
    """Means over samples, positive also where there are none."""
    return (sums / sizes).clamp_min(_TINY)
