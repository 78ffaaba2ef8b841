"""The Fragility Index for PyTorch: measured exactly, with its gradient, and trained against.

Needs the extra `torch`; nothing else of the library imports it. The metrics need torchmetrics, the
callback Lightning too: both are imported when they are asked for, and not before. They are not in
``__all__``: ``from fragility.torch import *`` must not need Lightning.
"""

from .._lazy import attach_stub
from .._optional import needed_for

with needed_for("fragility.torch needs PyTorch", "torch"):
    import torch as _torch  # noqa: F401

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
