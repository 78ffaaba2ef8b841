"""A history as one HTML page: a line for each figure over the records, the promise, the alarm.

The page has no script: its charts are drawn here, and each has its table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from math import ceil, floor, isfinite, log10
from typing import NamedTuple

from .._typing import Interval
from ..measured import Measured
from . import words
from .history import Look, ModelHistory, day
from .page import content_hash, environment, source

#: Size of a chart, and room around what is drawn.
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 560, 250, 66, 40, 24, 42
#: Dates below a chart, and steps of its scale.
_MOST_DATES, _STEPS = 5, 4


class Tick(NamedTuple):
    """A place on an axis and its words."""

    at: float
    words: str


class Point(NamedTuple):
    """A record on a chart; `low` and `high` are ends of its interval, if that is known."""

    x: float
    y: float
    low: float | None
    high: float | None
    counted: bool


@dataclass(frozen=True)
class Chart:
    """A figure over the records, in places of a drawing.

    `limit` is the height of what was promised, `alarm` the place of the record at which the alarm
    went on.
    """

    title: str
    words: str
    points: tuple[Point, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    limit: float | None = None
    alarm: float | None = None

    @property
    def path(self) -> str:
        """A line through all points."""
        return "".join(
            f"{'L' if place else 'M'}{point.x:.1f} {point.y:.1f}"
            for place, point in enumerate(self.points)
        )


def history_page(histories: Sequence[ModelHistory]) -> str:
    """The page of histories, one for each model."""
    from .. import __version__

    style = source("page.css")
    content: str = (
        environment()
        .get_template("history.html.jinja")
        .render(
            version=__version__,
            style=style,
            style_hash=content_hash(style),
            on=any(part.alarm.alarm for part in histories),
            box={"width": _WIDTH, "height": _HEIGHT, "left": _LEFT, "right": _WIDTH - _RIGHT}
            | {"top": _TOP, "floor": _HEIGHT - _BOTTOM},
            models=[
                {"title": part.title, "said": part.sentences, "charts": charts(part)}
                | {"rows": part.rows()}
                for part in histories
            ],
        )
    )
    return content


def charts(found: ModelHistory) -> list[Chart]:
    """Errors of cases decided alone; then cost and index, where records have them."""
    confidence, promised = found.alarm.confidence, found.alarm.max_error_rate
    drawn = [
        _chart(
            found,
            f"Wrong of the cases decided alone, with {words.level(confidence)}s",
            lambda look: look.error_rate(confidence),
            words.percent,
            promised,
        )
    ]
    for name, title, told in (
        ("cost", "Cost per case", words.money),
        ("fragility_index", "Fragility Index", words.number),
    ):
        drawn.append(_chart(found, title, partial(_figure, name), told))
    return [chart for chart in drawn if chart is not None]


def _figure(name: str, look: Look) -> Measured | None:
    return look.model.figures.get(name)


def _chart(
    found: ModelHistory,
    title: str,
    figure: Callable[[Look], Measured | None],
    told: Callable[[float], str],
    promised: float | None = None,
) -> Chart | None:
    """A chart of a figure; None if no record has it."""
    known = [(look, measured) for look in found.looks if (measured := figure(look)) is not None]
    known = [(look, measured) for look, measured in known if isfinite(measured.value)]
    if not known:
        return None
    dates = [look.record.date for look in found.looks]
    x = _scale(min(dates).timestamp(), max(dates).timestamp(), _LEFT + 8, _WIDTH - _RIGHT - 8)
    ends = [end for _, m in known for end in (m.value, *(m.interval or ())) if isfinite(end)]
    most = 1.05 * max(*ends, promised or 0.0) or 1.0
    y = _scale(0.0, most, _HEIGHT - _BOTTOM, _TOP)
    points = tuple(
        _point(look, measured, x(look.record.date.timestamp()), y, most) for look, measured in known
    )
    first, last = known[0][1].value, known[-1][1].value
    said = f"{title} of {found.title} in {len(known)} records: at first {told(first)}, at last "
    said += told(last)
    alarm = None
    if promised is not None:
        said += f"; at most {words.percent(promised)} may be"
        if found.first_alarm is not None:
            alarm = x(found.first_alarm.record.date.timestamp())
            said += f"; alarm since {day(found.first_alarm.record.date)}"
    return Chart(
        title,
        f"{said}.",
        points,
        tuple(_dates(dates, x)),
        tuple(Tick(y(value), told(value)) for value in even_steps(most)),
        None if promised is None else y(promised),
        alarm,
    )


def _point(
    look: Look, found: Measured, x: float, y: Callable[[float], float], most: float
) -> Point:
    limits: Interval | None = found.interval
    if limits is None:
        return Point(x, y(found.value), None, None, look.counted)
    low, high = (y(min(max(end, 0.0), most)) for end in limits)
    return Point(x, y(found.value), low, high, look.counted)


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    if high == low:
        return lambda value: (start + end) / 2.0
    return lambda value: start + (value - low) / (high - low) * (end - start)


def _dates(dates: Sequence[datetime], x: Callable[[float], float]) -> list[Tick]:
    """The first and the last date, and some between at even steps of time."""
    first, last = min(dates), max(dates)
    days = max((last - first).days, 1)
    n = min(_MOST_DATES - 1, days) if last > first else 0
    steps = [first + (last - first) * k / n for k in range(n + 1)] if n else [first]
    return [Tick(x(step.timestamp()), step.strftime("%Y-%m-%d")) for step in steps]


def even_steps(most: float) -> list[float]:
    """Round values from 0 at even steps, about four.

    Examples
    --------
    >>> from fragility.report.history_page import even_steps
    >>> even_steps(0.9)
    [0.0, 0.5]
    >>> even_steps(43.0)
    [0.0, 20.0, 40.0]
    """
    rough = most / _STEPS
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= rough)
    digits = max(-floor(log10(step)), 0)
    return [round(k * step, digits) for k in range(ceil(most / step)) if k * step <= most]
