"""Baselines in files: small, strict JSON of their own, distrusted when read."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from math import inf
from typing import Any

from .._labels import listed
from .._names import shortened
from .._parameters import require
from .._strict_json import strict_json
from ..deferral import Costs
from ..measured import Measured
from . import words
from .baselines import HELD, HELD_IN_GROUPS, Baseline, BaselineModel
from .contrasts import AS_GIVEN, CALIBRATED
from .data import json_text
from .limits import KINDS, LARGEST_LOG_LOSS, WRONG

KIND, FORMAT = "fragility baseline", 2
#: Settings of costs that a report has, and types of labels.
_SETTINGS = set(Costs.__dataclass_fields__)
_LABELS = (str, int, float)
#: A baseline of many models and groups is far below this many bytes.
_LARGEST = 64 * 2**20
#: Largest values of figures that have one.
_LARGEST_FIGURE = {"log_loss": LARGEST_LOG_LOSS, WRONG: 1.0}
_NEW = "make a new one with `fragility gate ... --save-baseline baseline.json`"


def baseline_text(baseline: Baseline, **about: Any) -> str:
    """The content of a file; `about` is what else it says, which is not read."""
    from .. import __version__

    content = {
        "kind": KIND,
        "format": FORMAT,
        "fragility_version": __version__,
        **about,
        "n_samples": baseline.n_samples,
        "classes": baseline.classes,
        "positive": baseline.positive,
        "weighted": baseline.weighted,
        "answers": baseline.answers,
        "costs": baseline.costs,
        "models": [
            {
                "name": name,
                "raw": _plain(model.raw),
                "calibrated": None if model.calibrated is None else _plain(model.calibrated),
                "cost_estimator": model.estimator,
                "groups": [
                    {"column": column, "group": group, "figures": _plain(figures)}
                    for (column, group), figures in model.groups.items()
                ],
            }
            for name, model in baseline.models.items()
        ],
    }
    return json_text(content) + "\n"


def _plain(figures: Mapping[str, Measured]) -> dict[str, Any]:
    return {
        name: {"value": figure.value, "standard_error": figure.standard_error}
        for name, figure in figures.items()
    }


def read_baseline(path: str) -> Baseline:
    """Read a file that `fragility gate --save-baseline` wrote."""
    try:
        with open(path, "rb") as stream:
            data = stream.read(_LARGEST + 1)
        require(len(data) <= _LARGEST, f"it has more than {_LARGEST // 2**20} MiB")
        content = strict_json(data, object_pairs_hook=_without_repeats, parse_int=_integer)
        return _baseline(path, content)
    except OSError as error:
        raise ValueError(f"The baseline {path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        reason = str(error)
    raise ValueError(f"{path} is not a baseline: {shortened(reason, 200)}; {_NEW}.")


def _baseline(path: str, content: Any) -> Baseline:
    is_kind = isinstance(content, dict) and content.get("kind") == KIND
    if not is_kind and isinstance(content, dict) and "fragility_version" in content:
        raise ValueError("it is a report, which an earlier version took for one")
    require(is_kind, f"it does not say that it is one (kind: {KIND!r})")
    read = content.get("format")
    fits = type(read) is int and read == FORMAT
    shown = shortened(json.dumps(read), 20)
    require(fits, f"it has format {shown}, this version reads {FORMAT}")
    costs, n = content.get("costs"), content.get("n_samples")
    require(type(n) is int and 1 <= n < 2**63, "n_samples must be a number of cases")
    known = costs is None or (isinstance(costs, dict) and set(costs) == _SETTINGS)
    require(known, f"costs must be null, or have just {listed(sorted(_SETTINGS))}")
    models = _parts(content, "models")
    names = [model.get("name") for model in models]
    require(all(isinstance(name, str) for name in names), "a model has no name")
    different = names and len(set(names)) == len(names)
    require(different, "it must hold models, each with a name of its own")
    lacking = {"cost": costs is None, WRONG: content.get("answers") is not True}
    found: dict[str, BaselineModel] = {}
    for name, model in zip(names, models, strict=True):
        try:
            found[str(name)] = _model(model, lacking)
        except ValueError as error:
            raise ValueError(f"of model {words.shortened(name)!r} {error}") from None
    classes = content.get("classes")
    several = isinstance(classes, list) and len(classes) >= 2
    several = several and all(isinstance(label, _LABELS) for label in classes)
    require(several, "classes must hold two labels or more")
    positive, weighted, answers = (content.get(n) for n in ("positive", "weighted", "answers"))
    fits = isinstance(positive, _LABELS) == (len(classes) == 2)
    require(fits, "positive must be one of two classes, or null for several")
    require(isinstance(weighted, bool), "weighted must be true or false")
    require(isinstance(answers, bool), "answers must be true or false")
    return Baseline(found, classes, positive, weighted, costs, n, answers, path)


def _model(content: Mapping[str, Any], lacking: Mapping[str, bool]) -> BaselineModel:
    """A model; `lacking` says which figures there are none of, without costs or of classes."""
    needed = {
        part: [name for name, of in HELD if of == part and not lacking.get(name, False)]
        for part in (AS_GIVEN, CALIBRATED)
    }
    estimator = content.get("cost_estimator")
    require(estimator is None or isinstance(estimator, str), "cost_estimator must be text or null")
    calibrated = content.get("calibrated")
    groups: dict[tuple[str, str], dict[str, Measured]] = {}
    for part in _parts(content, "groups"):
        place = part.get("column"), part.get("group")
        require(all(isinstance(name, str) for name in place), "a group has no column or name")
        column, group = map(str, place)
        require((column, group) not in groups, f"group {words.shortened(group)!r} is there twice")
        held = part.get("figures")
        own = [name for name in HELD_IN_GROUPS if isinstance(held, dict) and name in held]
        require(own, f"group {words.shortened(group)!r} has no figures")
        groups[column, group] = _figures(held, own)
    return BaselineModel(
        _figures(content.get("raw"), needed[AS_GIVEN]),
        None if calibrated is None else _figures(calibrated, needed[CALIBRATED]),
        groups,
        estimator,
    )


def _figures(content: Any, needed: list[str]) -> dict[str, Measured]:
    require(isinstance(content, dict), "has no figures")
    found = {}
    for name in needed:
        figure, title = content.get(name), KINDS[name].title
        require(isinstance(figure, dict), f"{title} is missing ({name})")
        error = figure.get("standard_error")
        largest = _LARGEST_FIGURE.get(name, sys.float_info.max)
        value = _number(title, figure.get("value"), inf if "index" in name else largest)
        told = f"the standard error of {title}"
        found[name] = Measured(
            value, standard_error=None if error is None else _number(told, error, inf)
        )
    return found


def _number(title: str, value: Any, largest: float) -> float:
    """The value as a float, if the figure can have it."""
    given = inf if value == "Infinity" else value
    fits = isinstance(given, (int, float)) and not isinstance(given, bool)
    require(fits, f"{title} must be a number, not {shortened(json.dumps(value), 40)}")
    try:
        number = float(given)
    except OverflowError:
        raise ValueError(f"{title} is a whole number beyond any float") from None
    require(0.0 <= number <= largest, f"{title} cannot be {value!r}")
    return number


def _parts(content: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    parts: Any = content.get(name)
    fits = isinstance(parts, list) and all(isinstance(part, dict) for part in parts)
    require(fits, f"{name} must be a list of objects")
    return list(parts)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        require(name not in found, f"the key {words.shortened(name)!r} is there twice")
        found[name] = value
    return found


def _integer(digits: str) -> int:
    # Python itself refuses to read longer ones.
    require(len(digits) <= 4000, f"a number in it has {len(digits):,} digits")
    return int(digits)
