"""The map of the tree in CONTRIBUTING.md and the tree have the same modules.

A row of the map begins with a module or a folder in backquotes. Names after the first one in a cell
lie in the folder of the first. A folder is described as a whole (`losses/`), or module by module:
as soon as one row begins with a module of a folder, every module of that folder needs its name.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "fragility"
HEADER = "| in `src/fragility/` | holds |"


def folder_of(name: str) -> str:
    """Everything up to the last slash, with it."""
    return name[: name.rfind("/") + 1]


def rows() -> list[tuple[list[str], list[str]]]:
    """Names in the first and in the second cell of each row, as paths below src/fragility."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    lines = text[text.index(HEADER) :].splitlines()[2:]
    found = []
    for line in lines[: lines.index("")]:
        _, cell, description, _ = line.split("|")
        first, *others = re.findall(r"`([^`]+)`", cell)
        folder = folder_of(first)
        mentioned = re.findall(r"`([a-z_/0-9]+(?:\.py|/))`", description)
        found.append(
            ([first, *(folder + name for name in others)], [folder + n for n in mentioned])
        )
    return found


NAMED = [name for names, _ in rows() for name in names]
MENTIONED = [name for _, names in rows() for name in names]


def modules() -> list[str]:
    """All but the ``__init__.py`` of packages, which the rows of their modules describe."""
    found = (
        path for path in SOURCE.rglob("*.py") if path.parent == SOURCE or path.stem != "__init__"
    )
    return sorted(path.relative_to(SOURCE).as_posix() for path in found)


def test_every_module_is_on_the_map():
    whole = {name for name in NAMED if name.endswith("/")}
    whole -= {
        name[: name.rindex("/") + 1] for name in NAMED if name.endswith(".py") and "/" in name
    }
    missing = [
        module
        for module in modules()
        if module not in {*NAMED, *MENTIONED}
        and not whole & {f"{parent.as_posix()}/" for parent in Path(module).parents}
    ]
    assert missing == [], "give each a line on the map in CONTRIBUTING.md"


def test_every_name_on_the_map_exists_and_is_there_once():
    kinds = {name: (SOURCE / name).is_dir() for name in NAMED if (SOURCE / name).exists()}
    assert kinds == {name: name.endswith("/") for name in NAMED}
    assert len(NAMED) == len(set(NAMED))


def test_every_module_that_a_description_mentions_exists():
    for name in MENTIONED:
        folder = SOURCE / Path(name).parent
        below, elsewhere = list(folder.rglob(Path(name).name)), SOURCE / Path(name).name
        assert below or elsewhere.exists(), f"{name} is mentioned on the map"
