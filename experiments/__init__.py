"""The research behind the Fragility Index, reproduced: ``python -m experiments list``."""
