"""Sketches on engines that people run: the part of the work that data should not travel for."""

from .._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
