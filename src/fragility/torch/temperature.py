"""Temperature scaling: one number that calibrates logits, fitted on validation data."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["fit_temperature"]

#: Steps of Newton's method; a dozen are usual.
_MOST_STEPS = 100
#: Where a step gains less than this share of the loss, rounding hides whether it gains at all.
_NEAR = 1e-10
_ACCURACY = 1e-26
#: Log-probabilities of a case that are this close are the same but for rounding.
_SAME = 1e-13


def fit_temperature(logits: Tensor, labels: Tensor) -> float:
    """The temperature T for which ``logits / T`` has the least cross-entropy.

    Fit it on validation data, then divide the logits of the test data by it: classes keep their
    order, confidence becomes comparable between models (Guo et al., 2017).

    Parameters
    ----------
    logits : Tensor of shape (n,) or (n, C)
        One logit of class 1, or one of each class. Computed in float64.
    labels : Tensor of shape (n,)
        Class numbers from 0.

    Returns
    -------
    float
        Positive; infinite if the logits say less than nothing of the labels (then no confidence
        is the best), 1 if all logits of each case are equal. The targets are smoothed by one case
        of each class, as in `fragility.calibration`: a model without errors would have T = 0.

    Examples
    --------
    >>> import torch
    >>> from fragility.torch import fit_temperature
    >>> logits = torch.tensor([[2.0, 0.0]] * 4)
    >>> round(fit_temperature(logits, torch.tensor([0, 0, 0, 1])), 4)
    2.8854
    """
    logs, codes = _checked(logits, labels)
    n, n_classes = logs.shape
    if bool((logs.amax(1) - logs.amin(1)).max() <= _SAME):
        return 1.0
    missing = 1.0 / (n + n_classes)
    own = logs.gather(1, codes[:, None])[:, 0]
    target = (1.0 - n_classes * missing) * own + missing * logs.sum(1)

    def derivatives(power: float) -> tuple[float, float, float]:
        """Of the loss of ``power * logits``: value, slope, curvature."""
        scores = power * logs
        probability = scores.softmax(1)
        mean = (probability * logs).sum(1)
        variance = (probability * (logs - mean[:, None]).square()).sum(1)
        loss = scores.logsumexp(1) - power * target
        value, slope, curvature = torch.stack(
            [loss.mean(), (mean - target).mean(), variance.mean()]
        ).tolist()
        return value, slope, curvature

    # From zero, where the curvature tells the most: it vanishes where confidence is full.
    power, found = 0.0, derivatives(0.0)
    for _ in range(_MOST_STEPS):
        value, slope, curvature = found
        step = slope / (curvature + 1e-300)
        decrement, length = slope * step, 1.0
        while True:
            found = derivatives(power - length * step)
            near = decrement <= _NEAR * abs(value)
            if near or found[0] <= value - 1e-4 * length * decrement or length < 1e-9:
                break
            length /= 2.0
        power -= length * step
        if decrement <= _ACCURACY * abs(value):
            break
    return 1.0 / power if power > 0.0 else torch.inf


def _checked(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probabilities in float64, one column for each class, and class numbers."""
    scores, codes = logits.detach().double(), labels.detach().to(logits.device)
    if scores.ndim == 1:
        scores = torch.stack([torch.zeros_like(scores), scores], dim=1)
    if scores.ndim != 2 or scores.shape[1] < 2 or codes.shape != scores.shape[:1] or not len(codes):
        raise ValueError(
            "logits must have shape (n,) or (n, C) and labels (n,), with n of 1 or more and C of 2 "
            f"or more; got {tuple(logits.shape)} and {tuple(labels.shape)}."
        )
    if codes.is_floating_point() or bool((codes < 0).any() | (codes >= scores.shape[1]).any()):
        raise ValueError(
            f"labels must be whole class numbers from 0 to {scores.shape[1] - 1}; got {codes.dtype}"
            f" from {codes.min().item()} to {codes.max().item()}."
        )
    if not bool(scores.isfinite().all()):
        raise ValueError("logits must be finite; these hold NaN or infinity.")
    return scores.log_softmax(1), codes.long()
