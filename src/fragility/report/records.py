"""A history: a file to which each evaluation adds one line, and how it is read.

Lines are strict JSON and are written at once, so that jobs which run at the same time do not mix
them. Nothing is ever replaced.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf, isfinite, nan
from pathlib import Path
from typing import Any

from .. import __version__
from .._names import shown
from .._parameters import require
from .._strict_json import strict_json
from .._typing import Interval
from ..measured import Measured
from .data import strict
from .decided_alone import DecidedAlone, by_report, n_cases
from .report import Report

#: What a line is, and its version.
KIND, VERSION = "fragility history", 1
#: Histories of many years are far below this many bytes.
_LARGEST = 256 * 2**20
#: Larger numbers of cases are not believed.
_MOST_CASES = 1e15
_COUNTS = ("exact", "effective", "expected")
_HEX = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class ModelRecord:
    """One model in one record: cases, those decided alone, figures, and whether the gate passed."""

    name: str
    n: float
    alone: DecidedAlone
    figures: Mapping[str, Measured]
    passed: bool | None


@dataclass(frozen=True)
class Record:
    """One line of a history."""

    date: datetime
    file: str
    sha256: str
    models: tuple[ModelRecord, ...]


def parse_date(text: str) -> datetime:
    """A date, or a date and time, in ISO 8601; without a time zone it is UTC."""
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(
            f"{shown(text)} is not a date in ISO 8601, such as 2026-05-04 or 2026-05-04T09:30Z."
        ) from None


def make_record(
    report: Report,
    *,
    date: datetime,
    by_model: Mapping[str, DecidedAlone] | None = None,
    passed: Mapping[str, bool] | None = None,
) -> dict[str, Any]:
    """A line of a history, in plain values.

    `by_model` has what was counted at a policy that is given, for the models that have one;
    `passed` says by model whether a gate let it pass.
    """
    models = []
    for model in report.models:
        alone = (by_model or {}).get(model.name) or by_report(report, model)
        models.append(
            {
                "name": model.name,
                "n": n_cases(report, model),
                "decided_alone": alone.decided,
                "errors": alone.errors,
                "counts": alone.counts,
                "rule": dict(alone.rule),
                "figures": {
                    name: {
                        "value": found.value,
                        "interval": None if found.interval is None else list(found.interval),
                    }
                    for name, found in model.raw.figures.items()
                },
                "passed": (passed or {}).get(model.name),
            }
        )
    return {
        "format": KIND,
        "version": VERSION,
        "date": date.isoformat().replace("+00:00", "Z"),
        "file": report.provenance.source,
        "sha256": report.provenance.sha256,
        "fragility_version": __version__,
        "confidence": report.confidence,
        "models": models,
    }


def check_appendable(path: str | os.PathLike[str]) -> None:
    """Refuse a path to which no record can be added, before the long work for it begins."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        folder = Path(path).parent
        if folder.is_dir():
            return
        raise ValueError(
            f"{path}: there is no folder {str(folder)!r}; make it first, or name another."
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"The history {path} cannot be written: {reason}.") from None
    require(stat.S_ISREG(found.st_mode), f"The history {path} must be a file; it is none.")
    if found.st_size:
        read_history(path)
        with open(path, "rb") as stream:
            stream.seek(-1, os.SEEK_END)
            require(
                stream.read() == b"\n",
                f"The last line of the history {path} has no line end, it may be cut off: add one, "
                "or take the line out.",
            )


def append_record(path: str | os.PathLike[str], record: Mapping[str, Any]) -> None:
    """Add one line at the end of a history, all of it at once."""
    line = json.dumps(strict(dict(record)), allow_nan=False).encode("ascii") + b"\n"
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o666)
    try:
        written = os.write(descriptor, line)
    finally:
        os.close(descriptor)
    if written != len(line):
        raise OSError(
            f"Only {written} of {len(line)} bytes were added to {path}; take its last line out."
        )


def read_history(path: str | os.PathLike[str]) -> list[Record]:
    """All records, in the order of the file.

    Raises
    ------
    ValueError
        If the file is not a history, or a line is damaged.
    """
    try:
        with open(path, "rb") as stream:
            data = stream.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ValueError(f"The history {path} cannot be read: {why}.") from None
    require(
        len(data) <= _LARGEST, f"{path} is not a history: it has more than {_LARGEST >> 20} MiB."
    )
    records = []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            records.append(_record(line))
            continue
        except ValueError as error:
            reason = str(error).rstrip(".")
        raise ValueError(
            f"{path} is not a history that can be used: in line {number}, {reason}. Histories are "
            "written with --record."
        )
    require(records, f"The history {path} has no records: add one with --record.")
    return records


def _record(line: bytes) -> Record:
    content = strict_json(line)
    fits = isinstance(content, dict) and content.get("format") == KIND
    require(fits, "there is no record of a history")
    version = content.get("version")
    require(version == VERSION, f"the version is {shown(version)}, this one reads {VERSION}")
    date, file, sha256 = (_text(content, name) for name in ("date", "file", "sha256"))
    require(_HEX.fullmatch(sha256), f"sha256 must have 64 hexadecimal digits; got {shown(sha256)}")
    models = content.get("models")
    require(isinstance(models, list) and models, "models must be a list with one at least")
    found = tuple(_model(part) for part in models)
    names = [model.name for model in found]
    require(len(set(names)) == len(names), "two models have the same name")
    return Record(parse_date(date), file, sha256, found)


def _model(content: Any) -> ModelRecord:
    require(isinstance(content, dict), "a model must be an object")
    n, decided, errors = (_count(content, name) for name in ("n", "decided_alone", "errors"))
    require(
        errors <= decided <= n,
        f"errors, decided_alone and n must not fall; got {errors:g}, {decided:g} and {n:g}",
    )
    counts, rule = content.get("counts"), content.get("rule")
    require(counts in _COUNTS, f"counts must be one of {', '.join(_COUNTS)}; got {shown(counts)}")
    require(isinstance(rule, dict) and isinstance(rule.get("kind"), str), "rule must have a kind")
    figures = content.get("figures")
    require(isinstance(figures, dict), "figures must be an object")
    passed = content.get("passed")
    require(passed is None or isinstance(passed, bool), "passed must be true, false or null")
    return ModelRecord(
        _text(content, "name"),
        n,
        DecidedAlone(decided, errors, counts, rule),
        {name: _measured(name, part) for name, part in figures.items()},
        passed,
    )


def _measured(name: str, content: Any) -> Measured:
    require(isinstance(content, dict), f"the figure {shown(name)} must be an object")
    ends = content.get("interval")
    require(
        ends is None or (isinstance(ends, list) and len(ends) == 2),
        f"the interval of {shown(name)} must have two ends, or be null",
    )
    interval = None if ends is None else Interval(*(_number(name, end) for end in ends))
    return Measured(_number(name, content.get("value")), interval)


def _number(name: str, value: Any) -> float:
    """A number as strict JSON has it: infinity as text, undefined as null."""
    special = {None: nan, "Infinity": inf, "-Infinity": -inf}
    if value is None or isinstance(value, str):
        require(value in special, f"{shown(name)} must be a number; got {shown(value)}")
        return special[value]
    require(_is_finite(value), f"{shown(name)} must be a number; got {shown(value)}")
    return float(value)


def _count(content: Mapping[str, Any], name: str) -> float:
    value = content.get(name)
    fits = _is_finite(value) and 0 <= value <= _MOST_CASES  # type: ignore[operator]
    require(fits, f"{name} must be a number of cases, zero or more; got {shown(value)}")
    return value  # type: ignore[return-value]


def _is_finite(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return isfinite(value)
    except OverflowError:
        return False


def _text(content: Mapping[str, Any], name: str) -> str:
    value = content.get(name)
    require(isinstance(value, str), f"{name} must be text; got {shown(value)}")
    return str(value)
