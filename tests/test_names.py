"""Names in messages: the nearest, the short, those told apart."""

from __future__ import annotations

from fragility._names import nearest, shortened, told_apart


def test_nearest_in_any_case_and_none_if_nothing_is_alike():
    assert nearest("lable", ["Score", "LABEL"]) == "LABEL"
    assert nearest("lable", ["score", "age"]) is None
    assert nearest("abcd", ["abxy"]) is None
    assert nearest("abcd", ["abxy"], cutoff=0.5) == "abxy"


def test_shortened_keeps_both_ends_and_the_length():
    assert shortened("x" * 10, 10) == "x" * 10
    assert shortened("beginning-and-end", 10) == "begin…-end"
    assert len(shortened("x" * 11, 10)) == 10
    assert shortened(12, 10) == "12"


def test_told_apart_by_the_first_free_number():
    assert told_apart("a", {}) == "a"
    assert told_apart("a", {"a"}) == "a 2"
    assert told_apart("a", {"a", "a 2", "a 4"}) == "a 3"
