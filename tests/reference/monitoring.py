"""Evidence against a promised error rate, term by term in exact fractions.

Ratios are those of two binomial laws, of the promise and of odds that are larger by a factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import comb

#: The factors, as decimals that are written out.
FACTORS = tuple(Fraction(text) for text in ("1.1", "1.25", "1.5", "2", "3", "5"))


def probability(errors: int, decided: int, rate: Fraction) -> Fraction:
    """Of so many errors, by the binomial law."""
    return comb(decided, errors) * rate**errors * (1 - rate) ** (decided - errors)


def likelihood_ratio(errors: int, decided: int, rate: Fraction, factor: Fraction) -> Fraction:
    odds = factor * rate / (1 - rate)
    worse = odds / (1 + odds)
    return probability(errors, decided, worse) / probability(errors, decided, rate)


def evidence(errors: Sequence[int], decided: Sequence[int], rate: Fraction) -> Fraction:
    """After the last look: every bet on the look from which on errors are more frequent."""
    looks = len(errors)
    total = Fraction(0)
    for first in range(looks):
        for factor in FACTORS:
            gained = Fraction(1)
            for look in range(first, looks):
                gained *= likelihood_ratio(errors[look], decided[look], rate, factor)
            number = first + 1
            total += Fraction(1, number * (number + 1)) * gained / len(FACTORS)
    # Bets on looks that are still to come are as good as on the first day.
    kept = 1 - sum(Fraction(1, (k + 1) * (k + 2)) for k in range(looks))
    return total + kept


def upper_limit_is(rate: float, errors: int, decided: int, tail: float, slack: float) -> bool:
    """Whether no more than `errors` have the probability `tail` at this rate, nearly."""

    def below(p: float) -> Fraction:
        exact = Fraction(p)
        return sum((probability(k, decided, exact) for k in range(errors + 1)), Fraction(0))

    return below(rate * (1 + slack)) < Fraction(tail) < below(rate * (1 - slack))
