"""The Fragility Index for PyTorch: measured exactly, with its gradient, and trained against.

Needs the extra `torch`; nothing else of the library imports it. The metrics need torchmetrics, the
callback Lightning too: both are imported when they are asked for, and not before.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        'fragility.torch needs PyTorch, which is not installed: pip install "fragility[torch]"'
    ) from error

from .augmentation import gaussian_noise, mixup, pgd
from .functional import fragility_index
from .loss import FragilityLoss
from .regularizer import FragilityRegularizer
from .temperature import fit_temperature

if TYPE_CHECKING:
    from .callbacks import FragilityCallback as FragilityCallback
    from .callbacks import linear_ramp as linear_ramp
    from .metrics import BinaryFragilityIndex as BinaryFragilityIndex
    from .metrics import MulticlassFragilityIndex as MulticlassFragilityIndex

#: What every installation has: ``from fragility.torch import *`` must not need Lightning.
__all__ = [
    "FragilityLoss",
    "FragilityRegularizer",
    "fit_temperature",
    "fragility_index",
    "gaussian_noise",
    "mixup",
    "pgd",
]

#: Name -> the module that has it.
_LAZY = {
    "BinaryFragilityIndex": "metrics",
    "FragilityCallback": "callbacks",
    "MulticlassFragilityIndex": "metrics",
    "linear_ramp": "callbacks",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
