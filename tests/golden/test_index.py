"""The index bank is answered as before the library was rebuilt."""

from pathlib import Path

import pytest

from .ask import ask_index
from .compare import Tolerance, differences, plain, read_bank, relative_above_one
from .index import CASES

BANK = read_bank(Path(__file__).parent / "index.json.gz")
ERROR = Tolerance(1e-6)
TOLERANCES = {
    "": Tolerance(1e-9),
    "data_sums": relative_above_one(1e-9),
    "standard_error": ERROR,
    "interval": ERROR,
    "interval_by_logarithm": ERROR,
    "p_value": ERROR,
    "difference": relative_above_one(1e-9),
    "weight": relative_above_one(1e-9),
    "row": Tolerance(0.0),
}


def test_every_recorded_case_is_asked():
    assert sorted(CASES) == sorted(BANK)


@pytest.mark.parametrize("name", CASES)
def test_index(name):
    answer = plain({"what": CASES[name]} | ask_index(CASES[name]))
    lines = differences(BANK[name], answer, TOLERANCES)
    assert not lines, "\n".join(f"{name}: {line}" for line in lines)
