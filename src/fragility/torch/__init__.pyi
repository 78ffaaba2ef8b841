from .augmentation import gaussian_noise, mixup, pgd
from .callbacks import FragilityCallback as FragilityCallback
from .callbacks import linear_ramp as linear_ramp
from .functional import fragility_index
from .loss import FragilityLoss
from .metrics import BinaryFragilityIndex as BinaryFragilityIndex
from .metrics import MulticlassFragilityIndex as MulticlassFragilityIndex
from .regularizer import FragilityRegularizer
from .temperature import fit_temperature

__all__ = [
    "FragilityLoss",
    "FragilityRegularizer",
    "fit_temperature",
    "fragility_index",
    "gaussian_noise",
    "mixup",
    "pgd",
]
