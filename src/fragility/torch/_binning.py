"""Binning of scores on a device, with the same bits as in `fragility.scores.sketch`."""

from __future__ import annotations

import torch
from torch import Tensor

from ..binned import ROUNDER
from ..scores.bins import MEAN_UNIT, SQUARE_UNIT

#: Most samples in a bin: more could overflow a sum of distances, each below 2³⁶ units.
MOST_IN_A_BIN = 1 << 27


def add_to_bins(
    columns: Tensor,
    y_true: Tensor,
    counts: Tensor,
    sums: Tensor,
    squares: Tensor,
    smallest: Tensor,
    largest: Tensor,
) -> None:
    """Add scores in place, exactly and without waiting for the device.

    Parameters
    ----------
    columns : Tensor of shape (n, K), float64
        Scores from 0 to 1.
    y_true : Tensor of shape (n,)
        Known classes.
    counts, sums, squares : Tensor of shape (K, G, n_bins + 1), int64
        G groups. A group is a class; with fewer groups than columns, group 1 holds the samples of
        the class of the column, and group 0 all others.
    smallest, largest : Tensor of shape (K, G), float64
    """
    n_columns, n_groups, centres = counts.shape
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
    for state, terms in (
        (counts, torch.ones_like(flat)),
        (sums, torch.round(x / MEAN_UNIT).long().flatten()),
        (squares, torch.round(x * x / SQUARE_UNIT).long().flatten()),
    ):
        state.view(-1).index_add_(0, flat, terms)
    own = (groups + numbers * n_groups).flatten()
    for state, kind in ((smallest, "amin"), (largest, "amax")):
        state.view(-1).scatter_reduce_(0, own, columns.flatten(), kind)
