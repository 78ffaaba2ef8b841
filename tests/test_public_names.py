"""A public name, parameter, method or property changes only where somebody meant it to."""

from __future__ import annotations

import difflib

import pytest

from .public_names import FILE, lines

pytestmark = pytest.mark.outside


def test_public_names_are_those_in_the_file():
    stored = FILE.read_text(encoding="utf-8").splitlines()
    difference = list(difflib.unified_diff(stored, lines(), "stored", "now", lineterm="", n=0))
    assert difference == [], "meant? python -m tests.public_names, and a line in CHANGELOG.md"
