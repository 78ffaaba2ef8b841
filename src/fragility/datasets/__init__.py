"""Data of the experiments, from their official sources, checked and cached."""

from .heart import load_heart

__all__ = ["load_heart"]
