"""A plugin for pytest under coverage: every line knows the tests that ran it.

coverage run --source=src/fragility -m pytest -p tests.contexts
"""

from __future__ import annotations

from collections.abc import Generator

import pytest
from coverage import Coverage


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    measuring = Coverage.current()
    if measuring is None:
        return (yield)
    measuring.switch_context(item.nodeid)
    try:
        return (yield)
    finally:
        measuring.switch_context("")
