"""Hypothesis runs the same examples every time; HYPOTHESIS_PROFILE=search looks for new ones.

Pictures are drawn in memory.
"""

import os

from hypothesis import settings

os.environ["MPLBACKEND"] = "Agg"

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
