"""The support matrix in the documentation is what happens."""

import pytest

from .support_matrix import PAGE, matrix

pytestmark = pytest.mark.slow


def test_the_page_is_what_happens():
    assert PAGE.read_text(encoding="utf-8") == matrix(), "run `make support` and look at the change"
