"""The support matrix in the documentation is what happens."""

import pytest

from .support_matrix import PAGE, lines

pytestmark = pytest.mark.slow

WRITTEN = PAGE.read_text(encoding="utf-8").split("\n")
LINES = lines()
SOLVED = [number for number, line in enumerate(LINES) if not isinstance(line, str)]


@pytest.mark.parametrize("number", SOLVED, ids=[f"line {number + 1}" for number in SOLVED])
def test_a_line_of_the_page_is_what_happens(number):
    # Each line is a test: one for the whole page would keep a single worker busy for a minute.
    assert WRITTEN[number] == LINES[number](), "run `make support` and look at the change"


def test_the_page_is_these_lines():
    assert len(WRITTEN) == len(LINES)
    given = [written for written, line in zip(WRITTEN, LINES, strict=True) if isinstance(line, str)]
    assert given == [line for line in LINES if isinstance(line, str)]
