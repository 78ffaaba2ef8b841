"""Every figure of a report in two readings of cases that do not fit in memory."""

from .batches import Batch
from .confidences import ConfidenceHistogram, CostCurve
from .measure import MOST_GROUPS, PairedModels, StreamedMeasures, StreamedModel, measure_batches

__all__ = [
    "MOST_GROUPS",
    "Batch",
    "ConfidenceHistogram",
    "CostCurve",
    "PairedModels",
    "StreamedMeasures",
    "StreamedModel",
    "measure_batches",
]
