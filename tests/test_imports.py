"""Which modules are imported, and by whom: what import-linter cannot say."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import numpy as np
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


#: What a report on a CSV file has no use for; together they take twice as long as the report.
NEVER_FOR_A_REPORT = (
    {"cvxpy", "matplotlib", "narwhals", "pandas", "pooch", "sklearn", "torch"}
    | {"scipy.integrate", "scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.stats"}
    | {"pyarrow.dataset", "pyarrow.parquet", "rich.console", "rich.progress", "rich.table"}
    | {f"fragility.{name}" for name in ("datasets", "linear_model", "programs")}
    | {f"fragility.{name}" for name in ("slices", "solvers", "torch")}
    | {"fragility.metrics.displays.ranking_error"}
    | {"fragility.report.outcomes", "fragility.tables.json_files", "fragility.tables.outcomes"}
)

#: What a report without costs has no use for.
ONLY_WITH_COSTS = {f"fragility.deferral.{name}" for name in ("policy", "problems", "solving")}

EVALUATIONS = {
    "one model": "--score a",
    "three models": "--score a --score b --score c --group region --error-cost 0,1;10,0",
}


def imported_by(program: str) -> set[str]:
    """Modules that a program imports in a fresh interpreter, in the last line of its output."""
    program = f"""
import sys
try:
{indent(program, "    ")}
finally:
    print()
    print(*sys.modules)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, encoding="utf-8"
    )
    imported = set(ended.stdout.splitlines()[-1].split())
    assert "fragility" in imported
    return imported


@pytest.mark.outside
@pytest.mark.parametrize("argument", START)
def test_starting_imports_nothing_slow(argument):
    imported = imported_by(f"sys.argv = ['fragility', {argument!r}]\n{START[argument]}")
    assert imported & SLOW == set()


@pytest.mark.outside
@pytest.mark.parametrize("name", EVALUATIONS)
def test_evaluating_a_file_imports_nothing_that_it_does_not_use(name, tmp_path):
    """Which is how `benchmarks/startup.py` gets its times; nothing here takes one."""
    rng = np.random.default_rng(0)
    path = tmp_path / "predictions.csv"
    rows = [
        f"{int(rng.random() < p)},{p},{p**2},{p**0.5},{'NS'[k % 2]}"
        for k, p in enumerate(rng.random(400))
    ]
    path.write_text("\n".join(["label,a,b,c,region", *rows]))
    arguments = ["fragility", "evaluate", str(path), "--label", "label"]
    imported = imported_by(
        f"sys.argv = {[*arguments, *EVALUATIONS[name].split()]!r}\n"
        "from fragility.cli import main; main()"
    )
    assert {"fragility.report.report", "pyarrow.csv", "scipy.special"} <= imported
    assert imported & NEVER_FOR_A_REPORT == set()
    used = ONLY_WITH_COSTS if name == "three models" else set()
    assert imported & ONLY_WITH_COSTS == used
