"""The report as one HTML page that needs nothing else: no network, no other file."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..measured import FIGURES
from . import text, words

if TYPE_CHECKING:
    from .report import Report

__all__ = ["page"]


def page(report: Report) -> str:
    """The page. Every name in it is shown as text, whatever it holds."""
    from .. import __version__

    content: str = _template().render(
        version=__version__,
        report=report,
        about=text.about(report),
        level=text.level(report),
        figures=text.table(report),
        comparisons=text.comparison_rows(report) if report.comparisons else None,
        thresholds=text.threshold_rows(report) if report.costs is not None else None,
        about_thresholds=text.about_thresholds(report),
        groups=text.group_rows(report) if report.groups else None,
        pairs=[(m.name, text.pair_rows(report, place)) for place, m in enumerate(report.models)]
        if len(report.labels) > 2
        else [],
        worst=[
            (m.name, text.worst_rows(report, place))
            for place, m in enumerate(report.models)
            if m.worst
        ],
        meanings=[kind for name, kind in FIGURES.items() if name in report.titles],
    )
    return content


@lru_cache(1)
def _template() -> Any:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ImportError(
            'Pages are made with Jinja2, which is not installed: pip install "fragility[report]"'
        ) from error
    environment = Environment(
        loader=PackageLoader("fragility.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shortened"] = words.shortened
    environment.filters["unbroken"] = lambda sentence: sentence.replace(" %", "\N{NO-BREAK SPACE}%")
    return environment.get_template("report.html.jinja")
