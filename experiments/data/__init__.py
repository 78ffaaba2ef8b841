"""Data sets of the experiments that are read from files: of UCI, with domains, and of MedMNIST."""

from experiments.data.medmnist import load_medmnist
from experiments.data.shift import load_shift
from experiments.data.uci import load_uci

__all__ = ["load_medmnist", "load_shift", "load_uci"]
