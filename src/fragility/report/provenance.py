"""Where a report comes from: when, from which file, by which versions, with which seed and methods.

The date is that of ``SOURCE_DATE_EPOCH``, if that is set, so that builds can be repeated.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from .words import seen, shortened

if TYPE_CHECKING:
    from .model_figures import Settings
    from .report import Report

#: Packages that figures depend on.
_PACKAGES = ("numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Provenance:
    """Where a report comes from.

    Attributes
    ----------
    created : str
        Date and time, UTC, as ISO 8601 has it.
    source : str
        Name of the file, or "arrays".
    sha256 : str or None
        Checksum of the file; None for arrays.
    versions : mapping of str to str
        Of fragility, Python and the packages that figures depend on.
    random_state : int or None
        Seed of folds and draws.
    """

    created: str
    source: str
    sha256: str | None
    versions: Mapping[str, str]
    random_state: int | None

    @classmethod
    def of(cls, settings: Settings) -> Provenance:
        """Of a report that is made now, from arrays."""
        return cls(_now(), "arrays", None, dict(_versions()), settings.random_state)

    def from_files(self, paths: Sequence[Path], name: str) -> Provenance:
        """The same for a file, or for several one after the other, which people call so."""
        return replace(self, source=seen(Path(name).name), sha256=sha256_of(*paths))


@cache
def _versions() -> Mapping[str, str]:
    """Looked up once: each look reads the description of a package from its file."""
    from .. import __version__

    own = {"fragility": __version__, "python": platform.python_version()}
    return own | {name: version(name) for name in _PACKAGES}


def sha256_of(*paths: str | os.PathLike[str]) -> str:
    """Checksum of a file, or of several one after the other."""
    if len(paths) == 1:
        with open(paths[0], "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    found = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as stream:
            while block := stream.read(1 << 20):
                found.update(block)
    return found.hexdigest()


def _now() -> str:
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdecimal() else datetime.now(UTC)
    return now.isoformat(timespec="seconds")


def methods(report: Report) -> Iterator[str]:
    """How the figures were measured, a sentence each."""
    level = f"{100 * report.confidence:g} %"
    unit = "clusters of cases" if report.clustered else "cases"
    yield (
        f"Intervals: {level}, by the influence of single {unit}; tests of models are paired, "
        "corrected by Holm."
    )
    choices = {model.name: model.calibration for model in report.models if model.calibration}
    if choices:
        named = ", ".join(f"{shortened(name)}: {choice.title}" for name, choice in choices.items())
        yield f"Calibration: cross-fitted maps ({named})."
    policies = [model.policy for model in report.models if model.policy is not None]
    if policies:
        yield (
            f"Policies: rule {policies[0].rule}, criterion {policies[0].criterion}; costs and "
            "errors on new cases, those of the folds that did not choose."
        )
    if report.streamed:
        yield "The cases were not held: figures come from exact sums in narrow bins."


def paper_trail(report: Report) -> Iterator[str]:
    """Date, file, versions, seed, costs and methods, a line each."""
    found = report.provenance
    yield f"Made {found.created}."
    checksum = f" (SHA-256 {found.sha256})" if found.sha256 else ""
    yield f"From {shortened(found.source)}{checksum}, {report.n_samples:,} cases."
    yield f"By {', '.join(f'{name} {number}' for name, number in found.versions.items())}."
    if found.random_state is not None:
        yield f"Seed of folds and draws: {found.random_state}."
    if report.costs is not None:
        told = ", ".join(f"{name} {value}" for name, value in _told_costs(report).items())
        yield f"Costs: {told}."
    yield from methods(report)


def _told_costs(report: Report) -> Mapping[str, str]:
    from .data import plain_costs  # which tells where reports come from

    named = {"error_cost": "errors", "review_cost": "a review", "capacity": "capacity"}
    named |= {"reviewer_error": "errors of reviewers"}
    found = plain_costs(report) or {}
    told = {named[name]: value for name, value in found.items() if value is not None}
    currency = {"currency": report.context.currency} if report.context.currency else {}
    return {name: str(value) for name, value in {**told, **currency}.items()}
