"""What made some results: settings, code and versions, and nothing of the machine."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import fragility

__all__ = ["Record", "running_code"]

#: Packages whose version can change a result.
PACKAGES = (
    "numpy", "scipy", "scikit-learn", "xgboost", "xgboost-cpu", "lightgbm", "torch", "torchmetrics",
    "lightning",
)  # fmt: skip
#: Files of this folder that show results and do not make them, by the last word of their names.
_SHOWING = frozenset(
    ("main", "command", "claims", "tables", "figures", "page", "report", "reporting", "verify")
)
_FORMAT = 1


@lru_cache(1)
def running_code() -> dict[str, str]:
    """Versions of what is running, and a digest of our own code."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue  # optional: what needs it says so
    return {**versions, "fragility": fragility.__version__, "source": _digest()}


def _digest() -> str:
    library, here = Path(fragility.__file__).parent, Path(__file__).parent
    digest = hashlib.sha256()
    for folder in (library, here):
        for file in sorted(folder.rglob("*.py")):
            if file.parent == here and file.stem.strip("_").split("_")[-1] in _SHOWING:
                continue
            digest.update(file.relative_to(folder).as_posix().encode() + b"\0")
            digest.update(file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Record:
    """The file ``environment.json`` beside some results.

    Parameters
    ----------
    experiment : str
        The name of the experiment.
    quick : bool
        Whether it was a quick run.
    trials, conditions, rows : int
        How much there is.
    code : sequence of dict
        The code that ran: one entry, or more when a journal of other code was trusted.
    results : str
        The SHA-256 of ``results.csv``.
    units : int
        How many trials of conditions there are; 0 if the record does not say.
    """

    experiment: str
    quick: bool
    trials: int
    conditions: int
    rows: int
    code: Sequence[dict[str, str]]
    results: str
    units: int = 0
    format: int = _FORMAT

    def text(self) -> str:
        """The record as the text of its file."""
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def read(cls, path: Path) -> Record:
        """The record in a file; ValueError if it is of another version or no record."""
        try:
            content: dict[str, Any] = json.loads(path.read_text("utf-8"))
            found = content["format"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is not a record of a run: {error}.") from None
        if found != _FORMAT:
            raise ValueError(
                f"{path} has format {found}, this version reads {_FORMAT}. Run the experiment "
                "again, or report with the version that ran it."
            )
        try:
            return cls(**content)
        except TypeError as error:
            raise ValueError(f"{path} is not a record of a run: {error}.") from None
