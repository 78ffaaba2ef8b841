"""Pictures in scikit-learn's manner: data in attributes, `from_predictions`, `from_estimator`."""

from ..._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
