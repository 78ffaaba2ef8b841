"""Hypothesis runs the same examples every time; HYPOTHESIS_PROFILE=search looks for new ones.

Pictures are drawn in memory.
"""

import gc
import os

import pytest
from hypothesis import settings

from .engine_sessions import dask, spark  # noqa: F401 - fixtures

os.environ["MPLBACKEND"] = "Agg"
os.environ["SOURCE_DATE_EPOCH"] = "1760000000"  # reports say when they were made

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture(scope="module")
def chromium():
    """A browser; tests that need it are skipped, or fail, where there is none."""
    from .browser import browser

    with browser() as found:
        yield found


@pytest.fixture
def open_page(chromium, tmp_path):
    """Open the page of a report; at the end it must not have complained or asked for anything."""
    from .browser import Tab
    from .page_example import TWO_REPORT

    tabs = []

    def opened(report=TWO_REPORT, fragment="", **options):
        path = tmp_path / f"{len(tabs)}.html"
        report.to_html(path)
        tabs.append(Tab(chromium, path, fragment, **options))
        return tabs[-1]

    yield opened
    for tab in tabs:
        tab.close()


#: Each takes many seconds: begun last, one would leave the other workers with nothing to do.
LONGEST = {
    "test_committed_results_make_the_committed_pages_and_pictures",
    "test_killed_twice_and_resumed_is_uninterrupted",
    "test_demo_shows_equal_auc_and_unequal_fragility",
}


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: getattr(item, "originalname", None) not in LONGEST)


def pytest_collection_finish():
    """Libraries and tests stay to the end: the search for garbage need not look at them."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure():
    gc.unfreeze()  # libraries that count what they leave behind would complain


@pytest.fixture
def no_network(tmp_path, monkeypatch):
    """No test reads the user's cache, the user's data folder or the network."""
    import pooch

    def offline(self, url, output, pooch):
        raise ConnectionError("no network in tests")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("FRAGILITY_DATA", raising=False)
    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", offline)
