"""Chromium for tests, or the reason why there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

#: Set to "required", a missing browser is a failure and no reason to skip.
VARIABLE = "FRAGILITY_BROWSER"


def _missing() -> str:
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "playwright is not installed: pip install playwright"
    if _executable() is None:
        return "Chromium is not installed: apt-get install chromium"
    return ""


def _executable() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def browser() -> Iterator[Any]:
    """A browser without a window; the test is skipped where there is none."""
    reason = _missing()
    if reason and os.environ.get(VARIABLE) == "required":
        pytest.fail(f"{reason} ({VARIABLE} is set to required)")
    if reason:
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=_executable(), args=["--no-sandbox"])
        yield found
        found.close()


class Tab:
    """A page that was opened from a file, with all it asked for and complained about."""

    def __init__(self, browser: Any, path: Any, fragment: str = "", **options: Any) -> None:
        self.address = f"file://{path}"
        self.problems: list[str] = []
        self.requests: list[str] = []
        options = {"viewport": {"width": 1280, "height": 900}} | options
        self.context = browser.new_context(**options)
        self.context.route("**/*", self._route)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda dialog: self.problems.append(dialog.message))
        self.page.goto(self.address + fragment)

    def _route(self, route: Any) -> None:
        if route.request.url.split("#")[0] == self.address:
            route.continue_()
        else:
            self.requests.append(route.request.url)
            route.abort()

    def text(self, selector: str) -> str:
        """What an element says, shown or not."""
        return str(self.page.locator(selector).text_content()).strip()

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something that the page does late; its policy forbids to wait inside it."""
        for _ in range(250):
            if holds():
                return
            self.page.wait_for_timeout(20)
        assert holds()

    def close(self) -> None:
        """Close it; it must have been quiet all the time."""
        self.context.close()
        assert self.problems == []
        assert self.requests == []
