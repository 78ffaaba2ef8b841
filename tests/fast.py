"""The fast tier: ``pytest -p tests.fast``, or `make test-fast`.

Leaves out what is marked ``slow`` or ``outside``, and what is not about the core at all; of a test
with many parameters it takes a few: every test function of the core still runs. What is
left must need none of the libraries below and start no process: one that does fails, and says why.
A file that is marked as a whole (``pytestmark = pytest.mark.outside``), or skips itself without a
library, is not even imported.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]

#: Not collected: doctests that need PyTorch or cvxpy, and the paper.
ELSEWHERE = (
    ROOT / "src" / "fragility" / "torch",
    ROOT / "src" / "fragility" / "linear_model" / "regression.py",
    ROOT / "docs" / "torch.md",
    ROOT / "experiments",
)

#: At most so many sets of parameters of a test.
FEW = 3

#: What stands in a file that is outside as a whole.
MARKED = re.compile(
    r"^pytestmark = pytest\.mark\.(?:outside|slow)$|^(?:\w+ = )?pytest\.importorskip\(",
    re.MULTILINE,
)

LIBRARIES = {"cvxpy", "lightning", "playwright", "pytorch_lightning", "torch", "torchmetrics"}

#: Events of the interpreter, see the table of audit events in its documentation.
STARTS = {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system"}
STARTS |= {"subprocess.Popen"}

_watching = False


class _Absent:
    """A finder that finds none of the libraries, as if they were not installed."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in LIBRARIES:
            raise ModuleNotFoundError(
                f"{name} is not in the fast tier: mark the test with pytest.mark.outside", name=name
            )


def _watch(event: str, _: tuple[object, ...]) -> None:
    """Fail the test that starts a process; hooks of this kind cannot be removed."""
    if _watching and event in STARTS:
        pytest.fail(f"starts a process ({event}): mark the test with pytest.mark.outside")


def pytest_configure(config: pytest.Config) -> None:
    config.option.markexpr = config.option.markexpr or "not slow and not outside"
    sys.meta_path.insert(0, _Absent)
    sys.addaudithook(_watch)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    paper = collection_path.name.startswith("test_experiments_")
    if paper or any(collection_path.is_relative_to(folder) for folder in ELSEWHERE):
        return True
    is_test = collection_path.match("test_*.py")
    if is_test and MARKED.search(collection_path.read_text(encoding="utf-8")):
        return True
    return None


@pytest.hookimpl(trylast=True)  # after the selection by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of each test the first and the last set of parameters, and some between."""
    by_test: dict[str, list[pytest.Item]] = {}
    for item in items:
        by_test.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept: set[pytest.Item] = set()
    for found in by_test.values():
        places = range(len(found)) if len(found) <= FEW else range(FEW)
        step = (len(found) - 1) / max(len(places) - 1, 1)
        kept.update(found[round(step * place)] for place in places)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def _watched() -> Generator[None, Any, Any]:
    global _watching
    _watching = True
    try:
        return (yield)
    finally:
        _watching = False


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    return (yield from _watched())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, Any, Any]:
    return (yield from _watched())
