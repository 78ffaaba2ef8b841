from .sketching import sketch, sketch_by
from .sql import bins_query, group_sketches

__all__ = [
    "bins_query",
    "group_sketches",
    "sketch",
    "sketch_by",
]
