r"""Alarm on the errors among cases that a model decides alone, valid at every look.

At look *t* the model has decided :math:`n_t` new cases alone, :math:`e_t` of them wrongly. The
promise is a rate *p*: given the past, the cases of a look are independent and wrong with a mean
probability of at most *p*. Then for every odds ratio *c* > 1

.. math:: L_t(c) = c^{e_t} / (1 - p + c p)^{n_t}

has an expectation of at most 1 (of unequal probabilities by the inequality of the means): it is the
likelihood ratio of odds that are *c* times as large. What multiplies such ratios from look *k* on
bets that errors became more frequent at look *k*. The evidence mixes the bets on every *k*, with
weights 1/(k(k+1)) that sum to 1, and on a few odds ratios, in equal parts:

.. math:: M_t = \frac1{t+1} + \sum_{k \le t} \frac1{k(k+1)} \, \frac1{|C|} \sum_{c \in C}
          \prod_{s=k}^t L_s(c).

It starts at 1 and is expected never to rise while the promise is kept, so that by Ville's
inequality it *ever* reaches :math:`1/\alpha` with probability :math:`\alpha` at most, however many
looks there are and whenever they are taken. The bets on late looks notice a late change.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._names import shown
from ._parameters import check_confidence, check_number, require
from ._typing import Floats, Indices
from ._validation import check_values
from .figures.intervals import share_interval

#: How many times as large the odds of an error may have become.
ODDS_RATIOS = (1.1, 1.25, 1.5, 2.0, 3.0, 5.0)
#: Rates below this are not told apart from 0.
_LEAST_RATE = 1e-12
#: Halvings of an interval of log-rates: to about 1e-13, relative.
_HALVINGS = 48
#: Lower limits of so many looks are found at once.
_BLOCK = 64


@dataclass(frozen=True, eq=False)
class ErrorAlarm:
    """Whether errors have become more frequent than was promised.

    Made by `fragility.error_alarm`.

    Attributes
    ----------
    errors, decided : ndarray of shape (n_looks,)
    max_error_rate : float
        The rate that is held: the promised one, or the upper limit of the first look's.
    from_first : bool
        Whether the first look is the reference. It is no evidence then: the looks after it are.
    confidence : float
        One minus the probability of a false alarm over all looks.
    evidence : ndarray of shape (n_looks,)
        Against the promise, 1 at the beginning.
    threshold : float
        The alarm is on from the first look at which the evidence reaches it.
    """

    errors: Floats
    decided: Floats
    max_error_rate: float
    from_first: bool
    confidence: float
    evidence: Floats
    threshold: float

    @property
    def first_alarm(self) -> int | None:
        """The look at which the alarm went on, counted from 0; None if it did not."""
        reached = np.flatnonzero(self.evidence >= self.threshold)
        return int(reached[0]) if reached.size else None

    @property
    def alarm(self) -> bool:
        """Whether the alarm is on; it stays on."""
        return self.first_alarm is not None

    @cached_property
    def lower(self) -> Floats:
        """Lower limit of the error rate at each look.

        So frequent were errors in some look so far, whatever was promised; the alarm is on where it
        is not below the promise. All limits hold together.
        """
        start = int(self.from_first)
        errors, decided, reached = self.errors[start:], self.decided[start:], log(self.threshold)
        found = np.zeros(self.errors.size)
        for first in range(0, errors.size, _BLOCK):
            last = min(first + _BLOCK, errors.size)
            # Most looks do not refute more than those before did: these need no search.
            least = np.array([max(found.max(), _LEAST_RATE)])
            logs = _log_evidence(errors[:last], decided[:last], least)[0, first:]
            looks = np.flatnonzero(logs >= reached) + first
            if looks.size:
                found[start + looks] = _lower(errors[:last], decided[:last], looks, reached)
        return np.maximum.accumulate(found)


def error_alarm(
    errors: ArrayLike,
    decided: ArrayLike,
    max_error_rate: float | None = None,
    confidence: float = 0.95,
) -> ErrorAlarm:
    """Whether errors among cases decided alone have become more frequent than was promised.

    False alarms have a probability of at most one minus `confidence` over all looks together,
    however many there are, if cases are independent. The alarm may be asked at every look.

    Parameters
    ----------
    errors, decided : array-like of shape (n_looks,)
        At each look, in order: cases that the model decided alone since the look before, and how
        many of them were wrong. Numbers need not be whole (effective numbers of weighted cases);
        the promise on false alarms is approximate then.
    max_error_rate : float, optional
        The promised share of errors, between 0 and 1. By default the first look is the reference:
        the upper limit of its error rate is held, with half of the probability of a false alarm.
    confidence : float, default=0.95

    Returns
    -------
    ErrorAlarm
        With the `evidence` and the `lower` limit of the rate at each look, and `first_alarm`.

    Examples
    --------
    >>> from fragility import error_alarm
    >>> found = error_alarm([9, 11, 8, 16, 31], [500, 510, 495, 505, 500], max_error_rate=0.02)
    >>> found.alarm, found.first_alarm
    (True, 4)
    >>> found.evidence.round(1).tolist()
    [0.6, 0.5, 0.4, 0.6, 16133.1]
    """
    wrong, alone = (_numbers(errors, "errors"), _numbers(decided, "decided"))
    require(
        wrong.size == alone.size,
        f"errors and decided must have one number for each look; got {wrong.size} and "
        f"{alone.size}.",
    )
    more = np.flatnonzero(wrong > alone)
    require(
        more.size == 0,
        f"No look can have more errors than cases decided; at look {_place(more)} there are "
        f"{_at(wrong, more)} errors of {_at(alone, more)}.",
    )
    level = check_confidence(confidence)
    from_first = max_error_rate is None
    if max_error_rate is None:
        rate = _reference(wrong, alone, level)
    else:
        rate = check_number(max_error_rate, "max_error_rate")
        require(
            0.0 < rate < 1.0,
            f"max_error_rate must be a share between 0 and 1, such as 0.02; got "
            f"{shown(max_error_rate)}.",
        )
    start = int(from_first)
    logs = _log_evidence(wrong[start:], alone[start:], np.array([rate]))[0]
    with np.errstate(over="ignore"):  # beyond all numbers it is infinite
        evidence = np.exp(np.concatenate([np.zeros(start), logs]))
    threshold = (2.0 if from_first else 1.0) / (1.0 - level)
    return ErrorAlarm(wrong, alone, rate, from_first, level, evidence, threshold)


def _numbers(given: Any, name: str) -> Floats:
    """Numbers of cases, zero or more."""
    found = np.asarray(check_values(given, name), dtype=np.float64)
    require(found.ndim == 1, f"{name} must be a list with one number for each look.")
    require(found.size > 0, f"{name} has no looks: give at least one.")
    wrong = np.flatnonzero(~np.isfinite(found) | (found < 0.0))
    require(
        wrong.size == 0,
        f"{name} must be numbers of cases, zero or more; look {_place(wrong)} has "
        f"{_at(found, wrong)}.",
    )
    return found


def _place(found: Any) -> int | None:
    """The first of some looks, as a person counts them."""
    return int(found[0]) + 1 if found.size else None


def _at(values: Floats, found: Any) -> str:
    return f"{values[found[0]]:g}" if found.size else ""


def _reference(wrong: Floats, alone: Floats, confidence: float) -> float:
    """Upper limit of the rate of the first look, with half of the probability of an error."""
    if alone[0] == 0.0:
        raise ValueError(
            "The first look has no cases decided alone, so it promises no error rate: give "
            "max_error_rate, or begin with a look that has some."
        )
    rate = share_interval(wrong[0] / alone[0], alone[0], confidence).high
    if rate >= 1.0:
        raise ValueError(
            f"All {alone[0]:g} cases of the first look are wrong: nothing can be worse. Give "
            "max_error_rate."
        )
    return rate


def _log_evidence(errors: Floats, decided: Floats, rates: Floats) -> Floats:
    """Logarithm of the evidence against each of some rates (rows) at every look (columns)."""
    looks = np.arange(1.0, errors.size + 1.0)
    weights = -np.log(looks * (looks + 1.0))
    total = np.broadcast_to(-np.log(looks + 1.0), (rates.size, errors.size))
    for ratio in ODDS_RATIOS:
        each = log(ratio) * errors - np.log1p((ratio - 1.0) * rates)[:, np.newaxis] * decided
        so_far = np.cumsum(each, axis=1)
        # A bet from look k on has gained what all looks have less those before k.
        bets = so_far + np.logaddexp.accumulate(weights - (so_far - each), axis=1)
        total = np.logaddexp(total, bets - log(len(ODDS_RATIOS)))
    return total


def _lower(errors: Floats, decided: Floats, looks: Indices, reached: float) -> Floats:
    """Largest rate that the evidence at each of some looks refutes, by bisection.

    The evidence falls where the rate rises, since each likelihood ratio does.
    """
    rows = np.arange(looks.size)
    low, high = np.full(looks.size, log(_LEAST_RATE)), np.zeros(looks.size)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        logs = _log_evidence(errors, decided, np.exp(middle))[rows, looks]
        low, high = np.where(logs >= reached, [middle, high], [low, middle])
    found: Floats = np.exp(low)
    return found
