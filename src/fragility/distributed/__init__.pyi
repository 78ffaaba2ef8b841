from .fitting import fit
from .sketching import sketch, sketch_by

__all__ = [
    "fit",
    "sketch",
    "sketch_by",
]
