"""Calibration on equal terms: every model after a cross-fitted map, chosen by the same rule."""

from .choice import CalibrationChoice
from .cross_fitting import cross_fitted_calibration

__all__ = ["CalibrationChoice", "cross_fitted_calibration"]
