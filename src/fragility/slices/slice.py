"""A slice of the data that holds more than its share of the risk."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .._summary import percent
from .._typing import Interval


@dataclass(frozen=True)
class Slice:
    """A condition that holds more than its share of the worst-case weight.

    Made by `fragility.find_slices`. All figures but `n` are of the cases that did not choose the
    condition.

    Attributes
    ----------
    condition : str
        In words, such as "age from 40 to under 60 and sex is 'F'".
    columns : tuple of str
        The one or two columns of the condition.
    n : int
        Cases that meet it, of all.
    n_tested : int
        Those among the cases that did not choose it.
    share : float
        Its share of the data; all classes count alike, as they do in the worst case.
    weight_share : float
        Its share of the worst-case weight.
    expected_share : float
        The share of the weight that its scores lead one to expect: what cases of about the same
        scores hold, whatever their class.
    p_value : float
        Adjusted for the number of conditions that were tested (Holm).
    confident_error_rate, confident_error_rate_outside : float
        Share of the cases that are wrong at a confidence above `confident`, in the slice and
        outside.
    index : float
        Fragility Index within the slice; NaN if it has one class only.
    index_interval : Interval or None
        95 % interval of it.
    """

    condition: str
    columns: tuple[str, ...]
    n: int
    n_tested: int
    share: float
    weight_share: float
    expected_share: float
    p_value: float
    confident_error_rate: float
    confident_error_rate_outside: float
    index: float
    index_interval: Interval | None

    @property
    def lift(self) -> float:
        """Share of the worst-case weight over the share of the data."""
        return self.weight_share / self.share

    def __str__(self) -> str:
        return (
            f"{self.condition}: {self.n:,} cases, {percent(self.share)} of the data if classes "
            f"count alike, and {percent(self.weight_share)} of the worst-case weight, "
            f"{self.lift:.2f} times its share (its scores lead one to expect "
            f"{percent(self.expected_share)}; p = {self.p_value:.2g}). Confident errors: "
            f"{percent(self.confident_error_rate)} inside, "
            f"{percent(self.confident_error_rate_outside)} outside."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values; `index` may be NaN or infinite."""
        limits = None if self.index_interval is None else list(self.index_interval)
        lists = {"columns": list(self.columns), "index_interval": limits, "lift": self.lift}
        return {**asdict(self), **lists}
