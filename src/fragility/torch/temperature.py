"""Temperature scaling: one number that calibrates logits, fitted on validation data."""

from __future__ import annotations

import torch
from torch import Tensor

from ..calibration.temperature import best_temperature
from ._checks import check_class_numbers, check_class_range


def fit_temperature(logits: Tensor, y_true: Tensor) -> float:
    """The temperature T for which ``logits / T`` has the least cross-entropy.

    Fit it on validation data, then divide the logits of the test data by it: classes keep their
    order, confidence becomes comparable between models (Guo et al., 2017). It is the estimate of
    maximum likelihood, without smoothing of the classes.

    Parameters
    ----------
    logits : Tensor of shape (n,) or (n, C)
        One logit of class 1, or one of each class. Computed in float64.
    y_true : Tensor of shape (n,)
        True classes, numbered from 0.

    Returns
    -------
    float
        Positive and finite. Two kinds of data have no best temperature, and get a bound:

        * No label speaks against any confidence (the largest logit is right in every case, T = 0
          would be the best): the mean cross-entropy becomes ``1 / (n + 1)``, about that of a model
          which is right in n of n + 1 cases (or half that of equal probabilities, if less).
        * The logits speak against the true classes (the best T is infinite): T is
          a thousand times the largest difference between two logits of a case. The probabilities
          of two classes then differ by 0.1 % at most, and keep their order.

        1 if all logits of each case are equal.

    Examples
    --------
    >>> import torch
    >>> from fragility.torch import fit_temperature
    >>> logits = torch.tensor([[2.0, 0.0]] * 4)
    >>> temperature = fit_temperature(logits, torch.tensor([0, 0, 0, 1]))
    >>> round(temperature, 4)
    1.8205
    >>> (logits[0] / temperature).softmax(0)  # three of four were right
    tensor([0.7500, 0.2500])
    """
    scores, codes = _checked(logits, y_true)
    return best_temperature(scores, codes, torch.ones_like(scores[:, 0]), torch)


def _checked(logits: Tensor, y_true: Tensor) -> tuple[Tensor, Tensor]:
    """Logits in float64, one column for each class, and class numbers."""
    scores = logits.detach().double()
    if scores.ndim == 1:
        scores = torch.stack([torch.zeros_like(scores), scores], dim=1)
    if scores.ndim != 2 or scores.shape[1] < 2 or not len(scores):
        raise ValueError(
            "logits must have shape (n,) or (n, C), with n of 1 or more and C of 2 or more; got "
            f"{tuple(logits.shape)}."
        )
    codes = check_class_numbers(y_true, len(scores)).to(logits.device)
    low, high = torch.stack(torch.aminmax(codes)).tolist()
    check_class_range(low, high, scores.shape[1])
    if not bool(scores.isfinite().all()):
        raise ValueError("logits must be finite; these hold NaN or infinity.")
    return scores, codes
