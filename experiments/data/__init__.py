"""Data sets of the experiments that are read from files: eight of UCI, nine of MedMNIST."""

from experiments.data.medmnist import load_medmnist
from experiments.data.uci import load_uci

__all__ = ["load_medmnist", "load_uci"]
