"""Boosted trees, from their packages and with the packages' settings, one thread each."""

from __future__ import annotations

from typing import Any

__all__ = ["lightgbm", "xgboost"]


def xgboost(seed: int) -> Any:
    """`xgboost.XGBClassifier`; labels must be 0, 1, ..."""
    try:
        from xgboost import XGBClassifier
    except ImportError as missing:
        raise ImportError(_advice("XGBoost")) from missing
    return XGBClassifier(random_state=seed % 2**31, n_jobs=1)


def lightgbm(seed: int) -> Any:
    """`lightgbm.LGBMClassifier`."""
    try:
        from lightgbm import LGBMClassifier
    except ImportError as missing:
        raise ImportError(_advice("LightGBM")) from missing
    return LGBMClassifier(
        random_state=seed % 2**31, n_jobs=1, verbose=-1, deterministic=True, force_row_wise=True
    )


def _advice(name: str) -> str:
    return f'{name} is not installed. Install it with: pip install "fragility[experiments]"'
