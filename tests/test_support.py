"""The support matrix in the documentation is what happens."""

from .support_matrix import PAGE, matrix


def test_the_page_is_what_happens():
    assert PAGE.read_text(encoding="utf-8") == matrix(), "run `make support` and look at the change"
