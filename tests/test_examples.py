"""What the README promises of the demo."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_demo_shows_equal_auc_and_unequal_fragility(capsys):
    runpy.run_path(str(ROOT / "examples" / "equal_auc.py"), run_name="__main__")
    printed = capsys.readouterr().out
    rows = {
        name.strip(): (float(first), float(second))
        for name, first, second in re.findall(
            r"^(.{34}) +([\d.]+) +([\d.]+)$", printed, flags=re.MULTILINE
        )
    }
    assert rows["AUC"][0] == pytest.approx(rows["AUC"][1], abs=0.005)
    assert rows["Fragility Index"][1] > 1.3 * rows["Fragility Index"][0]
    assert rows["relative to separation"][1] > 0
    assert "The cases that carry the risk" in printed
