"""The page of a history: its lines are the records, its alarm that of the command."""

from __future__ import annotations

import csv
import re

import numpy as np
import pytest

from fragility.report import words
from fragility.report.history import histories
from fragility.report.history_page import charts, even_steps, history_page
from fragility.report.records import read_history

from .command import fragility

DATES = ("2026-03-02", "2026-03-09", "2026-03-16", "2026-03-30")
#: Errors among the hundred cases above 90 % confidence of each file.
ERRORS = (1, 3, 20, 30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("history_page")
    for date, errors in zip(DATES, ERRORS, strict=True):
        rng = np.random.default_rng(errors)
        sure = np.r_[np.full(100, 0.95), 0.5 + 0.3 * rng.random(60)]
        sick = np.r_[np.arange(100) >= errors, np.arange(60) % 2].astype(int)
        with (made / f"{date}.csv").open("w", newline="") as target:
            writer = csv.writer(target)
            writer.writerow(["sick", "<b>p</b>"])
            writer.writerows(zip(sick.tolist(), sure.tolist(), strict=True))
        asked = ("--label", "sick", "--score", "<b>p</b>", "--no-calibration")
        record = ("--record", "h.jsonl", "--date", date)
        assert fragility("evaluate", f"{date}.csv", *asked, *record, cwd=made).code == 0
    return made


def drawn(folder):
    found = histories(read_history(str(folder / "h.jsonl")), max_error_rate=0.05)
    return found[0], charts(found[0])


def test_lines_are_the_records(folder):
    found, (errors, index) = drawn(folder)
    days = np.array([0, 7, 14, 28])
    across = np.array([point.x for point in errors.points])
    np.testing.assert_allclose((across - across[0]) / np.ptp(across), days / 28)
    zero, top = errors.y_ticks[0].at, errors.limit
    heights = np.array([point.y for point in errors.points])
    np.testing.assert_allclose((zero - heights) / (zero - top), np.array(ERRORS) / 100 / 0.05)
    for point, look in zip(errors.points, found.looks, strict=True):
        low, high = look.error_rate(0.95).interval
        np.testing.assert_allclose(
            (zero - np.array([point.low, point.high])) / (zero - top), np.array([low, high]) / 0.05
        )
    assert found.alarm.alarm
    assert errors.alarm == errors.points[2].x  # 20 of 100, where 5 may be
    assert "alarm since 2026-03-16" in errors.words
    assert f"at first {words.percent(0.01)}, at last {words.percent(0.3)}" in errors.words
    values = [look.model.figures["fragility_index"].value for look in found.looks]
    zero = index.y_ticks[0].at
    heights = np.array([zero - point.y for point in index.points])
    np.testing.assert_allclose(heights / heights[0], np.array(values) / values[0])
    assert index.alarm is None
    assert index.limit is None


@pytest.mark.parametrize("most", [1e-9, 0.043, 0.9, 1.0, 7.0, 1234.5])
def test_steps_are_even_and_round(most):
    steps = even_steps(most)
    assert steps[0] == 0
    assert 2 <= len(steps) <= 6
    assert steps[-1] <= most
    np.testing.assert_allclose(np.diff(steps), steps[1])
    assert f"{steps[1]:.0e}"[0] in "125"


def test_the_page_shows_names_as_text_and_runs_nothing(folder):
    page = history_page(histories(read_history(str(folder / "h.jsonl")), max_error_rate=0.05))
    assert "<h1>Fragility history: ALARM</h1>" in page
    assert "<script" not in page
    assert "script-src" not in page  # the default is none
    assert "default-src 'none'" in page
    assert "<b>p</b>" not in page
    assert "&lt;b&gt;p&lt;/b&gt;" in page
    assert not re.search("https?:", page)
    assert page.count("<svg") == page.count('role="img"') == 2
    calm = history_page(histories(read_history(str(folder / "h.jsonl")), max_error_rate=0.5))
    assert "<h1>Fragility history: no alarm</h1>" in calm
    assert 'class="alarm"' not in calm


def test_the_command_writes_it(folder):
    asked = ("history", "h.jsonl", "--max-error-rate", "0.05", "--output")
    ended = fragility(*asked, "h.html", cwd=folder)
    assert ended.code == 1  # there is an alarm
    assert "Wrote h.html" in ended.err
    records = read_history(str(folder / "h.jsonl"))
    written = (folder / "h.html").read_text("utf-8")
    assert written == history_page(histories(records, max_error_rate=0.05))
    assert fragility(*asked, "h.html", cwd=folder).code == 1  # a page may replace a page
    (folder / "notes.html").write_text("my notes")
    refused = fragility(*asked, "notes.html", cwd=folder)
    assert refused.code == 2
    assert (folder / "notes.html").read_text() == "my notes"
    assert fragility(*asked, "notes.html", "--force", cwd=folder).code == 1
    for wrong in ("h.pdf", "h.jsonl"):
        ended = fragility(*asked, wrong, cwd=folder)
        assert ended.code == 2
        assert ".html" in ended.err
    assert len(read_history(str(folder / "h.jsonl"))) == 4


@pytest.mark.outside
def test_it_opens_quietly_and_fits_a_phone(chromium, folder, tmp_path):
    from axe_playwright_python.sync_playwright import Axe

    from .browser import Tab

    path = tmp_path / "h.html"
    path.write_text(history_page(histories(read_history(str(folder / "h.jsonl")))), "utf-8")
    tab = Tab(chromium, path, viewport={"width": 390, "height": 800})
    assert tab.page.evaluate("document.documentElement.scrollWidth") == 390
    assert tab.page.locator("svg").first.is_visible()
    assert Axe().run(tab.page).response["violations"] == []
    tab.close()
