"""The alarm on errors: exact fractions, Ville's inequality, late changes, bad input."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fragility import error_alarm
from tests.reference import monitoring as reference

WEEKS = ([1, 0, 2, 5, 6], [40, 30, 35, 45, 38])


def test_evidence_is_that_of_exact_fractions():
    errors, decided = WEEKS
    for rate in (0.004, 0.02, 0.3):
        found = error_alarm(errors, decided, rate).evidence
        for look in range(len(errors)):
            exact = reference.evidence(errors[: look + 1], decided[: look + 1], Fraction(rate))
            assert found[look] == pytest.approx(float(exact), rel=1e-12)


def test_evidence_of_many_looks_is_that_of_exact_fractions():
    rng = np.random.default_rng(1)
    decided = rng.integers(0, 30, 16).tolist()
    errors = [int(rng.binomial(n, 0.05 + 0.1 * (k > 9))) for k, n in enumerate(decided)]
    exact = float(reference.evidence(errors, decided, Fraction(0.05)))
    assert error_alarm(errors, decided, 0.05).evidence[-1] == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("rate", [Fraction(1, 8), Fraction(1, 2)])
def test_evidence_is_expected_to_stay_where_it_is(rate):
    """The expectation of the next look, over every number of errors, at the promise and below."""
    errors, decided, n = [1, 3], [6, 5], 7
    now = error_alarm(errors, decided, float(rate)).evidence[-1]

    def expected(true):
        return sum(
            float(reference.probability(k, n, true))
            * error_alarm([*errors, k], [*decided, n], float(rate)).evidence[-1]
            for k in range(n + 1)
        )

    assert expected(rate) == pytest.approx(now, rel=1e-12)
    assert expected(rate / 2) < now
    assert expected((1 + rate) / 2) > now


def test_unequal_cases_are_no_more_evidence():
    """A look whose cases differ, but are wrong with the promised mean, is expected to add less."""
    promise, n = 0.25, 6
    each = [0.0, 0.0, 0.25, 0.25, 0.4, 0.6]
    assert np.mean(each) == pytest.approx(promise)
    law = np.array([1.0])
    for p in each:
        law = np.convolve(law, [1.0 - p, p])
    total = sum(law[k] * error_alarm([k], [n], promise).evidence[0] for k in range(n + 1))
    assert total < 1.0


def test_lower_limits_are_where_the_evidence_reaches_the_threshold():
    errors, decided = WEEKS
    found = error_alarm(errors, decided, 0.02)
    assert found.threshold == pytest.approx(20.0)
    assert np.all(np.diff(found.lower) >= 0.0)
    rise = [0, *np.flatnonzero(np.diff(found.lower) > 0.0) + 1]
    assert len(rise) >= 3
    for look in (look for look in rise if found.lower[look] > 0.0):
        for slack, is_refuted in ((1 - 1e-6, True), (1 + 1e-6, False)):
            rate = Fraction(found.lower[look] * slack)
            exact = reference.evidence(errors[: look + 1], decided[: look + 1], rate)
            assert (exact >= 20) == is_refuted
    assert found.first_alarm == 4
    assert (found.lower >= 0.02).tolist() == [False, False, False, False, True]


def test_lower_limits_do_not_depend_on_blocks(monkeypatch):
    rng = np.random.default_rng(2)
    errors = rng.binomial(50, 0.1, 30)
    whole = error_alarm(errors, [50] * 30).lower
    monkeypatch.setattr("fragility.monitoring._BLOCK", 7)
    assert error_alarm(errors, [50] * 30).lower == pytest.approx(whole, rel=1e-9)
    assert whole[0] == 0.0 < whole[-1]


def test_first_look_is_held_at_its_upper_limit():
    errors, decided = [3, 4, 2, 40], [100, 90, 110, 100]
    found = error_alarm(errors, decided)
    assert found.from_first
    assert reference.upper_limit_is(found.max_error_rate, 3, 100, 0.025, 1e-9)
    assert found.threshold == pytest.approx(40.0)  # half of the 5 % is spent on the limit
    assert found.evidence[0] == 1.0
    later = error_alarm(errors[1:], decided[1:], found.max_error_rate)
    assert found.evidence[1:].tolist() == later.evidence.tolist()
    assert found.first_alarm == 3


def test_a_late_change_is_noticed_where_the_sum_of_all_is_still_good():
    errors, decided = [0] * 50 + [25, 25, 25], [500] * 53
    assert sum(errors) / sum(decided) < 0.02
    assert error_alarm(errors, decided, 0.02).first_alarm in (51, 52)
    assert not error_alarm([0] * 50 + [10] * 3, decided, 0.02).alarm


def test_looks_without_cases_are_no_evidence_of_errors():
    assert error_alarm([0, 0], [0, 0], 0.1).evidence.tolist() == pytest.approx([1.0, 1.0])


def test_overwhelming_evidence_is_infinite():
    assert error_alarm([10_000], [10_000], 0.01).evidence[0] == np.inf


@pytest.mark.slow
def test_false_alarms_are_rare_over_104_looks():
    rng = np.random.default_rng(3)
    for size, rate in ((100, 0.02), (300, 0.1)):
        counts = rng.binomial(size, rate, (2000, 104))
        alarms = sum(error_alarm(row, np.full(104, size), rate).alarm for row in counts)
        assert 0 < alarms <= 0.05 * 2000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([], []), "no looks"),
        (([1, 2], [3]), "got 2 and 1"),
        (([1, 4], [3, 3]), "look 2 there are 4 errors of 3"),
        (([-1], [3]), "look 1 has -1"),
        (([0, np.nan], [3, 3]), "look 2 has nan"),
        (([[1]], [[3]]), "one number for each look"),
        ((["1"], [3]), "text"),
        (([0, 1], [0, 5]), "no cases decided alone"),
        (([5, 1], [5, 5]), "nothing can be worse"),
        (([1], [3], 0.0), "between 0 and 1"),
        (([1], [3], 1.0), "between 0 and 1"),
        (([1], [3], 0.1, 1.0), "confidence"),
    ],
)
def test_bad_input(arguments, words):
    with pytest.raises(ValueError, match=words):
        error_alarm(*arguments)
