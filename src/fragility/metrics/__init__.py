"""The scikit-learn face of the library: metrics as functions, scorers and Displays."""

from .._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
