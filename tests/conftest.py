"""Hypothesis runs the same examples every time; HYPOTHESIS_PROFILE=search looks for new ones.

Pictures are drawn in memory.
"""

import os

import pytest
from hypothesis import settings

os.environ["MPLBACKEND"] = "Agg"

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture(scope="module")
def trained():
    """A pipeline with every kind of step."""
    from fragility.pipelines import train_pipeline  # needs pandas, as few tests do

    from .patient_table import patients

    data = patients()
    data.loc[3, "dose"] = None
    return train_pipeline(data, "ill", impute=True)


@pytest.fixture
def saved(trained, tmp_path):
    """Its model file."""
    from fragility.pipelines import save_model

    path = tmp_path / "model.skops"
    save_model(trained.pipeline, path)
    return path
