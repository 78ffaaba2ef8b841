"""A history by model: its records in order of date, and the alarm on errors decided alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .._labels import listed
from .._typing import Interval
from ..figures.intervals import share_interval
from ..measured import Measured
from ..monitoring import ErrorAlarm, error_alarm
from . import words
from .records import ModelRecord, Record

#: Figures that are shown: the index, and what is never left out beside it.
_SHOWN = ("cost", "fragility_index", "ratio", "log_loss")
_HEADS = ("cost", "index", "ratio", "log-loss")


@dataclass(frozen=True)
class Look:
    """One model in one record; `counted` is false if the same file was recorded before."""

    record: Record
    model: ModelRecord
    counted: bool

    def error_rate(self, confidence: float) -> Measured | None:
        """Share of errors among the cases decided alone, with its interval."""
        decided, errors = self.model.alone.decided, self.model.alone.errors
        if not decided:
            return None
        share = errors / decided
        return Measured(share, share_interval(share, decided, confidence))


@dataclass(frozen=True)
class ModelHistory:
    """Looks at one model by date, its alarm, and sentences on what to know of the records."""

    name: str
    looks: tuple[Look, ...]
    alarm: ErrorAlarm
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        """Name of the model, on one line."""
        return words.shortened(self.name)

    @property
    def first_alarm(self) -> Look | None:
        """The look at which the alarm went on."""
        place = self.alarm.first_alarm
        return None if place is None else [look for look in self.looks if look.counted][place]

    @property
    def sentences(self) -> list[str]:
        """Whether there is an alarm, and by what."""
        alarm, first = self.alarm, self.first_alarm
        later = slice(int(alarm.from_first), None)
        decided, errors = alarm.decided[later].sum(), alarm.errors[later].sum()
        promise = f"at most {words.percent(alarm.max_error_rate)} may be"
        cases, whose = "cases decided alone", ""
        if alarm.from_first:
            cases += " since the first record"
            whose = ", the upper limit of that record"
        found = f"there are no {cases}"
        if decided:
            found = (
                f"{_number(errors)} of {_number(decided)} {cases} were wrong "
                f"({words.percent(errors / decided)}), {promise}{whose}"
            )
        verdict = f"No alarm for {self.title}: {found}."
        if first is not None:
            verdict = (
                f"ALARM for {self.title} since {day(first.record.date)}: {found}; in some records "
                f"it was {words.percent(alarm.lower[-1])} at least."
            )
        return [verdict, *self.notes]

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Heading and a row for each record."""
        wrong = f"wrong ({words.level(self.alarm.confidence)})"
        head = ["date", "cases", "decided alone", wrong, *_HEADS, "gate", "alarm"]
        rows, state, first = [], "", self.first_alarm
        for look in self.looks:
            model, rate = look.model, look.error_rate(self.alarm.confidence)
            state = "ALARM" if look is first else state  # it stays on
            rows.append(
                [
                    day(look.record.date),
                    words.count(model.n),
                    _number(model.alone.decided),
                    "–" if rate is None else f"{_number(model.alone.errors)}: {words.share(rate)}",
                    *(_figure(model, name) for name in _SHOWN),
                    {True: "passed", False: "FAILED", None: "–"}[model.passed],
                    state if look.counted else "counted before",
                ]
            )
        return head, rows

    def to_dict(self) -> dict[str, Any]:
        """All of it in plain values."""
        alarm, first = self.alarm, self.first_alarm
        place = 0
        looks = []
        for look in self.looks:
            model, rate = look.model, look.error_rate(alarm.confidence)
            found: dict[str, Any] = {
                "date": look.record.date.isoformat().replace("+00:00", "Z"),
                "file": look.record.file,
                "sha256": look.record.sha256,
                "n": model.n,
                "decided_alone": model.alone.decided,
                "errors": model.alone.errors,
                "counts": model.alone.counts,
                "rule": dict(model.alone.rule),
                "error_rate": _plain(rate),
                "figures": {name: _plain(figure) for name, figure in model.figures.items()},
                "passed": model.passed,
                "counted": look.counted,
            }
            if look.counted:
                found["evidence"] = float(alarm.evidence[place])
                found["lower_limit"] = float(alarm.lower[place])
                place += 1
            looks.append(found)
        return {
            "name": self.name,
            "max_error_rate": alarm.max_error_rate,
            "from_first": alarm.from_first,
            "threshold": alarm.threshold,
            "alarm": alarm.alarm,
            "first_alarm": None
            if first is None
            else first.record.date.isoformat().replace("+00:00", "Z"),
            "notes": list(self.notes),
            "records": looks,
        }


def histories(
    records: Sequence[Record],
    *,
    model: str | None = None,
    since: datetime | None = None,
    max_error_rate: float | None = None,
    confidence: float = 0.95,
) -> list[ModelHistory]:
    """The history of one model, or of each, in order of date.

    Each model has the whole probability of a false alarm.
    """
    ordered = sorted(records, key=lambda record: record.date)
    if since is not None:
        ordered = [record for record in ordered if record.date >= since]
        if not ordered:
            raise ValueError(f"The history has no record since {day(since)}.")
    names = list(dict.fromkeys(part.name for record in ordered for part in record.models))
    if model is not None:
        if model not in names:
            known = listed(map(words.shortened, names))
            raise ValueError(
                f"The history has no model {words.shortened(model)!r}; it has {known}."
            )
        names = [model]
    return [_history(name, ordered, max_error_rate, confidence) for name in names]


def is_ordered(records: Iterable[Record]) -> bool:
    """Whether no record is older than the one before."""
    dates = [record.date for record in records]
    return dates == sorted(dates)


def _history(
    name: str, records: Sequence[Record], max_error_rate: float | None, confidence: float
) -> ModelHistory:
    looks: list[Look] = []
    seen: dict[str, datetime] = {}
    notes = []
    for record in records:
        for part in record.models:
            if part.name != name:
                continue
            counted = record.sha256 not in seen
            looks.append(Look(record, part, counted))
            if not counted:
                notes.append(
                    f"The record of {day(record.date)} is of the same file as that of "
                    f"{day(seen[record.sha256])} (SHA-256 {record.sha256[:12]}…): its cases are "
                    "counted once."
                )
            seen.setdefault(record.sha256, record.date)
    alone = [look.model.alone for look in looks if look.counted]
    rules = [dict(part.rule) for part in alone]
    other = next((place for place, rule in enumerate(rules) if rule != rules[0]), None)
    if other is not None:
        changed = [look for look in looks if look.counted][other].record.date
        told = (
            f"since {day(changed)} {words.shortened(name)} has decided alone by another rule "
            f"({_rule(rules[other])}) than at first ({_rule(rules[0])})"
        )
        if max_error_rate is None:
            raise ValueError(
                f"The first record promises no error rate: {told}. Give --max-error-rate, or begin "
                "later with --since."
            )
        notes.append(f"Note: {told}.")
    kinds = {part.counts for part in alone}
    if "expected" in kinds:
        notes.append(
            "Note: each file has chosen its policy anew, so errors are expected numbers; record "
            "with --policy to count those of one policy."
        )
    if "effective" in kinds:
        notes.append(
            "Note: cases have weights or clusters, so numbers are effective ones, and false alarms "
            "are limited only nearly."
        )
    try:
        alarm = error_alarm(
            [part.errors for part in alone],
            [part.decided for part in alone],
            max_error_rate,
            confidence,
        )
    except ValueError as error:
        told = str(error).replace("max_error_rate", "--max-error-rate").replace("look", "record")
        raise ValueError(f"{words.shortened(name)}: {told}") from None
    return ModelHistory(name, tuple(looks), alarm, tuple(notes))


def _rule(rule: dict[str, Any]) -> str:
    """What decides alone, in words."""
    kind = rule["kind"]
    if kind == "confident":
        level = rule.get("level")
        return f"confidence above {words.percent(level)}" if isinstance(level, float) else kind
    if kind == "policy":
        return f"the policy {str(rule.get('sha256'))[:12]}…"
    return "a policy that each file chooses" if kind == "chosen" else words.shortened(kind)


def _figure(model: ModelRecord, name: str) -> str:
    found = model.figures.get(name)
    if found is None:
        return "–"
    if name == "cost":
        return words.amount(found)
    return words.measured(found) if name == "fragility_index" else words.number(found.value)


def _plain(found: Measured | None) -> dict[str, Any] | None:
    if found is None:
        return None
    limits: Interval | None = found.interval
    return {"value": found.value, "interval": None if limits is None else list(limits)}


def _number(n: float) -> str:
    """A number of cases, with a decimal where it is an expected or effective one."""
    return f"{n:,.0f}" if float(n).is_integer() else f"{n:,.1f}"


def day(date: datetime) -> str:
    """The day, with the time where there is one."""
    midnight = not (date.hour or date.minute or date.second or date.microsecond)
    return date.strftime("%Y-%m-%d" if midnight else "%Y-%m-%d %H:%M")
