from .sketching import sketch, sketch_by

__all__ = [
    "sketch",
    "sketch_by",
]
