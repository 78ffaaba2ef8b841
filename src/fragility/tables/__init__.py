"""Predictions in files (CSV, JSON lines, Parquet, Arrow), checked, read whole or in batches."""

from .._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
