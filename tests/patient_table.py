"""A small table with all kinds of columns."""

import numpy as np
import pandas as pd

NUMERIC, CATEGORICAL = ["age", "dose"], ["stage", "smoker"]


def patients(n=120, seed=0):
    """A table of all kinds of columns, whose label depends on some of them."""
    rng = np.random.default_rng(seed)
    age, dose = rng.integers(30, 80, n), rng.normal(size=n).round(3)
    stage, smoker = rng.choice(["I", "II", "III"], n), rng.random(n) < 0.4
    score = (age - 55) / 10 + dose + 1.5 * (stage == "III") + smoker + rng.logistic(size=n)
    return pd.DataFrame(
        {
            "age": age,
            "stage": stage,
            "dose": dose,
            "smoker": smoker,
            "ill": np.where(score > 0.8, "yes", "no"),
        }
    )


def rows_of(frame):
    """Rows as dicts of plain Python values, None where there is none."""
    plain = frame.astype(object).where(frame.notna(), None)
    return plain.to_dict("records")
