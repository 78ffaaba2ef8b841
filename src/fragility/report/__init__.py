"""Reports for a team: one table of several models, findings in plain words, a page."""

from .arrays import PreviousPredictions
from .report import Report

__all__ = ["PreviousPredictions", "Report"]
