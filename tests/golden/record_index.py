"""Record the index bank: ``python -m tests.golden.record_index``.

Run once, by the library as it was before it was rebuilt; see `tests.golden.record_training`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .ask_training import ask_index
from .compare import write_bank
from .index import CASES

FOLDER = Path(__file__).parent


def index() -> dict[str, Any]:
    """Return the answers to every case, by name."""
    return {name: {"what": case} | ask_index(case) for name, case in CASES.items()}


def main(folder: Path = FOLDER) -> None:
    """Write the bank."""
    path = folder / "index.json.gz"
    write_bank(path, index())
    print(path.name, path.stat().st_size, "bytes")


if __name__ == "__main__":
    import sys

    main(*map(Path, sys.argv[1:]))
