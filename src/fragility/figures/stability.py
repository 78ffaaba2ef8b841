"""How far the scores of one population lie from those of another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._optional import data_frame
from .._typing import Floats

#: A smaller share of a population counts as this one, so that its logarithm is finite.
LEAST_SHARE = 1e-4


@dataclass(frozen=True, eq=False)
class StabilityBins:
    """Shares of two populations in the same bins of the score.

    Made by `fragility.metrics.population_stability`.

    Attributes
    ----------
    edges : ndarray of shape (n_bins - 1,)
        Between the bins. A score on an edge lies above it.
    expected, actual : ndarray of shape (n_bins,)
        Shares of the scores.
    terms : ndarray of shape (n_bins,)
        What each bin adds to the index.
    index : float
        Population stability index, the sum of `terms`.
    """

    edges: Floats
    expected: Floats
    actual: Floats

    @property
    def terms(self) -> Floats:
        """What each bin adds to the index."""
        own, other = (np.maximum(part, LEAST_SHARE) for part in (self.actual, self.expected))
        found: Floats = (own - other) * np.log(own / other)
        return found

    @property
    def index(self) -> float:
        """Population stability index."""
        return float(self.terms.sum())

    def to_frame(self) -> Any:
        """Return the bins as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            A row for each bin, from `low` (included) to `high`, with the columns expected, actual
            and term.
        """
        ends = np.concatenate([[-np.inf], self.edges, [np.inf]])
        return data_frame(
            {
                "low": ends[:-1],
                "high": ends[1:],
                "expected": self.expected,
                "actual": self.actual,
                "term": self.terms,
            }
        )


def stability_bins(expected: Floats, actual: Floats, n_bins: int) -> StabilityBins:
    """Bins of equal mass of the expected scores; equal quantiles make one bin of several."""
    edges = np.unique(np.quantile(expected, np.arange(1, n_bins) / n_bins))
    # Where the largest scores are tied, they are a bin, and what lies above them another.
    if edges.size and edges[-1] == expected.max():
        edges = np.append(edges, np.nextafter(edges[-1], np.inf))
    shares = []
    for scores in (expected, actual):
        places = np.searchsorted(edges, scores, side="right")
        shares.append(np.bincount(places, minlength=edges.size + 1) / scores.size)
    return StabilityBins(edges, *shares)
