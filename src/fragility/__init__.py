"""Measure, train against and decide with the tail risk of confident mistakes."""

from ._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
