"""Outcomes of one model as Python's own csv module and float() read them."""

from __future__ import annotations

from .tables import MISSING, records

RIGHT = {"true", "yes", "1", "1.0", "correct", "right", "c"}
WRONG = {"false", "no", "0", "0.0", "incorrect", "wrong", "i"}


def outcomes(text, correct, confidence, declined=None, drop=False):
    """Row number, right or wrong, confidence (None if declined) of every row that is used."""
    found = []
    for number, row in enumerate(records(text), start=1):
        if declined is not None and row[declined].strip().lower() in RIGHT:
            found.append((number, False, None))
            continue
        cells = [row[correct], row[confidence], *([row[declined]] if declined else [])]
        if any(cell.strip() in MISSING for cell in cells):
            assert drop
            continue
        verdict = row[correct].strip().lower()
        assert verdict in RIGHT | WRONG
        found.append((number, verdict in RIGHT, float(row[confidence])))
    return found
