"""Which modules are imported, and by whom: what import-linter cannot say."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "fragility"


def private_names_of_scikit_learn(path: Path) -> list[str]:
    """Imported names that begin with an underscore, or lie in a module that does."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    parts = {name: name.split(".") for name in found}
    return [
        name
        for name, (first, *rest) in parts.items()
        if first == "sklearn" and any(part.startswith("_") for part in rest)
    ]


def test_one_module_imports_private_names_of_scikit_learn():
    found = {
        path.relative_to(SOURCE).as_posix(): names
        for path in SOURCE.rglob("*.py")
        if (names := private_names_of_scikit_learn(path))
    }
    assert list(found) == ["_sklearn.py"]


#: Importing one of these takes longer than everything that a command without data has to do.
SLOW = {"matplotlib", "pandas", "pyarrow", "sklearn", "torch"}

START = {
    "import": "import fragility; fragility.__version__; dir(fragility)",
    "--version": "from fragility.cli import main; main()",
    "--help": "from fragility.cli import main; main()",
}


@pytest.mark.outside
@pytest.mark.parametrize("argument", START)
def test_starting_imports_nothing_slow(argument):
    """In a fresh interpreter; what is imported stands in the last line of its output."""
    program = f"""
import sys
sys.argv = ["fragility", {argument!r}]
try:
    {START[argument]}
finally:
    print()
    print(*sys.modules)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, encoding="utf-8"
    )
    imported = set(ended.stdout.splitlines()[-1].split())
    assert "fragility" in imported
    assert imported & SLOW == set()
