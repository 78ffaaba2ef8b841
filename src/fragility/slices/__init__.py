"""Which simple conditions hold more than their share of the risk: slices of the data."""

from .finding import find_slices
from .slice import Slice

__all__ = ["Slice", "find_slices"]
