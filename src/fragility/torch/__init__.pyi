from .callbacks import FragilityCallback as FragilityCallback
from .callbacks import linear_ramp as linear_ramp
from .functional import fragility_index
from .metrics import BinaryFragilityIndex as BinaryFragilityIndex
from .metrics import MulticlassFragilityIndex as MulticlassFragilityIndex
from .regularizer import FragilityRegularizer
from .temperature import fit_temperature

__all__ = [
    "FragilityRegularizer",
    "fit_temperature",
    "fragility_index",
]
