"""Binning of scores on a device, with the same bits as in `fragility.scores.sketch`."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..binned import ROUNDER
from ..scores.bins import MEAN_UNIT, SQUARE_UNIT

#: Most samples in a bin: more could overflow a sum of distances, each below 2³⁶ units.
MOST_IN_A_BIN = 1 << 27


def add_to_bins(
    columns: Tensor, y_true: Tensor, sums: Sequence[Tensor], extremes: Sequence[Tensor]
) -> None:
    """Add scores in place, exactly and without waiting for the device.

    Parameters
    ----------
    columns : Tensor of shape (n, K), float64
        Scores from 0 to 1.
    y_true : Tensor of shape (n,)
        Known classes.
    sums : three Tensors of shape (K, G, n_bins + 1), int64
        Counts, sums of distances and of squared distances, of G groups. A group is a class; with
        fewer groups than columns, group 1 holds the samples of the class of the column, and group 0
        all others.
    extremes : two Tensors of shape (K, G), float64
        Smallest and largest scores.
    """
    n_columns, n_groups, centres = sums[0].shape
    n_bins = centres - 1
    width = 1.0 / n_bins
    numbers = torch.arange(n_columns, device=y_true.device)
    groups = y_true[:, None].long().expand(-1, n_columns)
    if n_columns > n_groups:  # each class against the rest
        groups = (groups == numbers).long()
    # Rounded half to even as in `fragility.binned`: the same scores give the same bins there and
    # here, whatever their group.
    total = columns + ROUNDER * width
    centre = total - ROUNDER * width
    x = (columns - centre) * n_bins
    bins = (centre * n_bins).long()
    flat = (bins + (groups + numbers * n_groups) * centres).flatten()
    distances, squares = torch.round(x / MEAN_UNIT), torch.round(x * x / SQUARE_UNIT)
    for state, terms in zip(sums, (torch.ones_like(x), distances, squares), strict=True):
        state.view(-1).index_add_(0, flat, terms.long().flatten())
    own = (groups + numbers * n_groups).flatten()
    for state, kind in zip(extremes, ("amin", "amax"), strict=True):
        state.view(-1).scatter_reduce_(0, own, columns.flatten(), kind)
