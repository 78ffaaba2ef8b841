"""Decide with confidence: when a model may act alone, and what that costs."""

from .._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
