"""All results on one page that needs no network: the verdicts first, then each experiment."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from pandas import DataFrame

from experiments import tables
from experiments.claims import Holds

if TYPE_CHECKING:
    from experiments.reporting import Reported

__all__ = ["html"]

_PLURAL = {"holds": "hold", "holds partly": "hold partly", "does not hold": "do not hold"}
#: Longer tables are folded.
_LONG = 16


def html(everything: Sequence[Reported]) -> str:
    """The page. The pictures lie beside it; every text in it is shown as it is."""
    verdicts = [
        (one.experiment, claim, verdict) for one in everything for claim, verdict in one.verdicts
    ]
    counts = Counter(verdict.holds for *_, verdict in verdicts if verdict)
    content: str = _template().render(
        everything=everything,
        verdicts=verdicts,
        counts=[(holds, counts[holds]) for holds in get_args(Holds)],
        plural=_PLURAL,
        tables={one.experiment.name: _tables(one) for one in everything},
        about={one.experiment.name: about(one) for one in everything},
        quick=any(one.record.quick for one in everything),
    )
    return content


def about(one: Reported) -> str:
    """How much was run, with what."""
    record = one.record
    code = record.code[-1]
    said = ", ".join(f"{name} {code[name]}" for name in code if name != "source")
    most = "Up to " if one.experiment.most_trials and not record.quick else ""
    amount = (
        f"{most}{_counted(record.trials, 'trial')} of {_counted(record.conditions, 'condition')}"
    )
    less = (
        f" (the full experiment: {one.experiment.trials})"
        if record.trials < one.experiment.trials
        else ""
    )
    return f"{'Quick run: ' if record.quick else ''}{amount}{less}; {said}."


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _tables(one: Reported) -> list[dict[str, Any]]:
    return [_shown(name, table) for name, table in one.report.tables.items()]


def _shown(name: str, table: DataFrame) -> dict[str, Any]:
    cells = tables.joined(table)
    return {
        "name": name,
        "title": name.replace("_", " "),
        "head": list(cells.columns),
        "rows": cells.to_numpy().tolist(),
        "numeric": tables.numeric(table),
        "long": len(cells) > _LONG,
    }


def _coded(text: str) -> Markup:
    """Names between backticks in the type of code; everything else as it is."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


@lru_cache(1)
def _template() -> Any:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["unbroken"] = lambda text: text.replace(" %", "\N{NO-BREAK SPACE}%")
    environment.filters["coded"] = _coded
    return environment.get_template("page.html.jinja")
