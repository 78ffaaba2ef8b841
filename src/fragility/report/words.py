"""Numbers as people write them."""

from __future__ import annotations

from math import ceil, inf, isinf, isnan, log10
from typing import TYPE_CHECKING, Any

from .. import _names
from .._names import seen as seen
from .._summary import percent as percent
from .._summary import threshold
from .._typing import Interval
from ..deferral.policy_text import errs_alone
from ..measured import Measured

if TYPE_CHECKING:
    from ..deferral import Policy

#: Heading and rows.
Table = tuple[list[str], list[list[str]]]

UNDEFINED = "undefined"
#: Bounds that are closer together than this are not shown.
_SEEN = 1e-9
_LONGEST_NAME = 60


def number(value: float, decimals: int = 3) -> str:
    """A number with three decimals, or as many as asked; infinity and undefined as such."""
    if isnan(value):
        return UNDEFINED
    if isinf(value):
        return "∞" if value > 0 else "−∞"
    if value != 0.0 and (abs(value) < 0.1 ** (decimals + 1) or abs(value) >= 1e6):
        return f"{value:.2e}".replace("-", "−")
    text = f"{value:.{decimals}f}" if abs(value) < 10.0 else f"{value:,.4g}"
    return text.replace("-", "−")


def signed(value: float, decimals: int = 3) -> str:
    """A number with its sign."""
    text = number(value, decimals)
    return text if value < 0.0 or isnan(value) else f"+{text}"


def decimals_for(limits: Interval) -> int:
    """Enough decimals to tell the limits of an interval apart."""
    width = limits.high - limits.low
    return 3 if not 0.0 < width < 0.005 else min(ceil(-log10(width)) + 1, 7)


def money(value: float) -> str:
    """A cost per case, with enough digits to tell thresholds apart."""
    if isnan(value) or isinf(value) or 0.0 < abs(value) < 0.001 or abs(value) >= 1e15:
        return number(value, 2)
    text = f"{value:,.4f}" if abs(value) < 10.0 else f"{value:,.2f}"
    return text.replace("-", "−")


def amount(cost: Measured) -> str:
    """A cost with its interval, if that is known."""
    if cost.interval is None or isnan(cost.interval.low):
        return money(cost.value)
    low, high = map(money, cost.interval)
    return f"{money(cost.value)} ({low} to {high})"


def share(found: Measured) -> str:
    """A share in per cent, with its interval if that is known."""
    if found.interval is None:
        return percent(found.value)
    low, high = map(percent, found.interval)
    return f"{percent(found.value)} ({low} to {high})"


def wrong_of_alone(policy: Policy) -> str:
    """Errors among new cases decided alone, if there are such cases."""
    return percent(policy.error_rate) if errs_alone(policy) else "–"


def suspects(n: int, *, answers: bool) -> tuple[str, str]:
    """What to check where all models get so many cases wrong, and what it may be."""
    its = "its" if n == 1 else "their"
    if answers:  # which have no labels, but somebody or something marked them
        return f"{its} marking", "a wrong mark"
    return ("its label" if n == 1 else "their labels"), "a wrong label"


def count(n: float) -> str:
    """A whole number in groups of three."""
    return f"{n:,.0f}"


def interval(limits: Interval) -> str:
    """Both limits of an interval."""
    decimals = decimals_for(limits)
    return f"{number(limits.low, decimals)} to {number(limits.high, decimals)}"


def measured(figure: Measured) -> str:
    """A figure with its interval; a figure known between bounds has a ± of half their width.

    Bounds that differ only in the ninth digit are left out: they say nothing to a reader.
    """
    decimals = 3 if figure.interval is None else decimals_for(figure.interval)
    text = number(figure.value, decimals)
    if figure.bounds is not None and not figure.bounds.high - figure.bounds.low < _SEEN:
        text = f"{text} ± {margin(figure.bounds)}"
    return text if figure.interval is None else f"{text} ({interval(figure.interval)})"


def margin(bounds: Interval) -> str:
    """Half the width of bounds."""
    half = (bounds.high - bounds.low) / 2.0
    return number(half) if isinf(half) or isnan(half) else f"{half:.0e}".replace("-", "−")


def shortened(name: Any) -> str:
    """A name short enough for a sentence: on one line, a long one without its middle."""
    return _names.shortened(seen(name), _LONGEST_NAME)


def level(confidence: float) -> str:
    """Name of the intervals in tables and sentences."""
    return f"{100 * confidence:g} % interval"


#: What is decided below and from the ends of all thresholds.
BELOW, FROM = {0.0: "never", inf: "always"}, {0.0: "always", inf: "never"}


def thresholds(ends: Interval, at_ends: dict[float, str]) -> str:
    """Thresholds from one to another, or the word for both where there is one."""
    if ends.low == ends.high and ends.low in at_ends:
        return at_ends[ends.low]
    return " to ".join(at_ends[end] if end == inf else threshold(end) for end in ends)
