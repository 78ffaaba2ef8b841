"""The page in a real browser: how it is reached, read, printed, and what it holds."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fragility as fr
from fragility.report import words
from fragility.report.page_data import page_data, script_json
from fragility.report.verdict_text import verdict_lines

from .browser import Tab
from .page_example import (
    BOTH,
    HOSTILE,
    MANY_REPORT,
    TWO,
    TWO_REPORT,
    example_report,
)
from .page_numbers import cell, check_outcomes, outcome, place_of, value

pytestmark = pytest.mark.outside


def test_the_keyboard_is_enough(open_page):
    tab = open_page()
    reached, outlines = [], []
    for _ in range(60):
        tab.page.keyboard.press("Tab")
        what, outline = tab.page.evaluate(
            """() => {
              const now = document.activeElement;
              const words = now.id || now.name || now.getAttribute("aria-label") || now.textContent;
              return [words, getComputedStyle(now).outlineStyle];
            }"""
        )
        reached.append(what)
        outlines.append(outline)
        if what.startswith("Numbers: Cost"):
            break
    for wanted in ("delta", "err", "man", "fn", "cap", "rev", "calibrated", "model"):
        assert wanted in reached
    assert "Go to the best δ of neighbours" in reached
    assert "none" not in outlines  # the focus is seen
    tab.page.keyboard.press("Enter")
    rows = tab.page.locator("#cost-chart table tbody tr")
    tab.until(lambda: rows.count() == len(TWO["grid"]))


def test_every_chart_has_words_and_a_table(open_page):
    for report in (TWO_REPORT, MANY_REPORT):
        tab = open_page(report)
        figures = tab.page.locator("figure")
        n_models = len(report.models)
        assert figures.count() == 2 + 3 * n_models + (0 if report is TWO_REPORT else n_models)
        for i in range(figures.count()):
            figure = figures.nth(i)
            assert len(figure.locator('svg[role="img"]').get_attribute("aria-label")) > 20
            figure.locator("summary").click()
            figure.locator("table tbody tr").first.wait_for()
            assert "NaN" not in figure.text_content()
            assert "NaN" not in figure.inner_html()
    line = TWO["models"][2]["raw"]["decisions"]
    shown = open_page()
    shown.page.locator("#cost-chart summary").click()
    shown.page.locator("#cost-chart tbody tr").first.wait_for()
    last = shown.page.locator("#cost-chart tbody tr").last.locator("th, td").all_text_contents()
    assert last[0] == "1"
    assert value(last[3]) == pytest.approx(line["reviewed"][-1] / TWO["total"], abs=6e-5)


@pytest.mark.parametrize(
    ("report", "scheme"),
    [(TWO_REPORT, "light"), (MANY_REPORT, "dark")],
    ids=["two classes, light", "four, dark"],
)
def test_axe_finds_nothing(open_page, report, scheme):
    from axe_playwright_python.sync_playwright import Axe

    tab = open_page(report, fragment="#d=1&cap=0.01", color_scheme=scheme)
    tab.page.fill("#err", "-1")  # what is wrong must be readable, too
    assert "over capacity" in cell(tab, 0, "reviews")
    tab.page.locator("#cost-chart summary").click()
    found = Axe().run(tab.page).response["violations"]
    assert [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in found] == []


def test_dark_and_print(open_page):
    ground = "getComputedStyle(document.body).backgroundColor"
    tab = open_page(color_scheme="dark")
    assert tab.page.evaluate(ground) == "rgb(15, 20, 25)"
    tab.page.emulate_media(media="print")
    assert tab.page.evaluate(ground) == "rgb(255, 255, 255)"
    assert tab.page.locator("#outcomes button").first.is_hidden()
    for finding in tab.page.locator(".findings li").all():  # also those that are folded away
        assert finding.is_visible()
    assert tab.page.locator("#cost-chart svg").is_visible()
    assert tab.page.pdf()[:5] == b"%PDF-"
    tab.page.set_viewport_size({"width": 720, "height": 1000})  # a sheet of paper
    assert tab.page.evaluate("document.documentElement.scrollWidth") == 720


@pytest.mark.parametrize("hostile", [False, True])
@BOTH
def test_a_phone_scrolls_one_way_only(open_page, report, hostile):
    if hostile:
        labels = HOSTILE[: len(report.labels)]
        report = example_report(HOSTILE, labels=labels, group=HOSTILE[3], case=HOSTILE[3])
    tab = open_page(report, viewport={"width": 390, "height": 800})
    assert tab.page.evaluate("document.documentElement.scrollWidth") == 390
    drawn = tab.page.locator("#cost-chart svg").bounding_box()
    assert drawn["x"] + drawn["width"] <= 390
    tab.page.set_viewport_size({"width": 800, "height": 800})
    chart = tab.page.locator("#cost-chart svg")  # has no box while it is drawn again
    tab.until(lambda: (chart.bounding_box() or {"width": 0.0})["width"] > 500)


@pytest.mark.parametrize("labels", [HOSTILE[:2], HOSTILE], ids=["two classes", "four classes"])
def test_hostile_names_are_text(open_page, labels):
    report = example_report(HOSTILE, labels=labels, group=HOSTILE[0], case=HOSTILE[1])
    report = report.with_notes(*HOSTILE)
    tab = open_page(report)
    assert tab.page.locator("img").count() == 0
    assert tab.page.locator("script").count() == 2
    assert tab.page.locator("#notes + ul li").all_text_contents()[:4] == list(HOSTILE)
    toggles = tab.page.locator("fieldset bdi")
    titles = [toggles.nth(place).get_attribute("title") for place in range(4)]
    assert titles == [words.seen(name) for name in HOSTILE]
    assert "\\u202eشبكة" in titles[2]
    assert len(titles[3]) > 9_000
    assert toggles.first.text_content() == HOSTILE[0]
    shown = [words.shortened(name) for name in HOSTILE]
    assert toggles.all_text_contents() == shown
    assert words.shortened(HOSTILE[0]) in tab.text("section:has(#groups)")
    assert words.shortened(f"{HOSTILE[1]} 7")[:20] in tab.text("section:has(#worst)")
    tab.page.locator("#cost-chart summary").click()
    assert tab.page.locator("#cost-chart thead th").nth(1).text_content() in HOSTILE[0]
    check_outcomes(tab, page_data(report), place_of(tab), err=10, man=1)


def test_the_file_holds_what_it_computes_with_and_no_more(tmp_path):
    report = example_report(("a",), case="patient 4711, number")
    with_cases, without = report.to_html(), report.to_html(tmp_path / "p.html", cases=False)
    assert (tmp_path / "p.html").read_text("utf-8") == without
    (embedded,) = re.findall(r'id="report-data">(.*?)</script>', with_cases, re.DOTALL)
    assert embedded == script_json(page_data(report))
    assert "patient 4711" in with_cases
    assert "patient 4711" not in embedded
    assert "patient 4711" not in without
    assert "single cases" in with_cases
    assert "no single case" in without
    assert without == example_report(("a",), n_worst=0).to_html()


def test_without_scripts_findings_and_tables_are_there(open_page):
    tab = open_page(java_script_enabled=False)
    assert tab.page.locator(".findings li").first.is_visible()
    assert tab.page.locator("table.figures").is_visible()
    assert tab.page.locator("#live").is_hidden()
    assert tab.page.get_by_text("need JavaScript").is_visible()


def test_in_a_frame_it_works_too(chromium, tmp_path):
    path = tmp_path / "notebook.html"
    shown_in_cell = TWO_REPORT._repr_html_()
    path.write_text(f"<!DOCTYPE html><title>n</title>{shown_in_cell}", encoding="utf-8")
    tab = Tab(chromium, path)
    inside = tab.page.frame_locator("iframe")
    inside.locator("#delta").press("Home")
    shown = inside.locator('tr[data-model="0"] [data-cell="cost"]').text_content()
    assert value(shown) == pytest.approx(outcome(TWO, 0, 0, err=10, man=1)[0], abs=6e-5)
    tab.page.wait_for_timeout(300)  # the address is written late
    tab.close()


def test_ticks_tell_numbers_apart(open_page):
    """Also of a model whose scores, errors and index are all tiny, and of one without errors."""
    rng = np.random.default_rng(2)
    true = np.arange(200) % 2
    close = 0.5 + 0.004 * (true - 0.5) + 0.002 * rng.normal(size=200)
    perfect = np.where(true, 0.9, 0.1)
    for scores in (close, perfect):
        report = fr.Report.from_predictions(true, scores, calibrate=False)
        tab = open_page(report, fragment="#err=0.015&man=0.005")
        for svg in tab.page.locator("svg[role=img]").all():
            for axis in (".end", ".middle:not(.title)"):
                told = svg.locator(axis).all_text_contents()
                assert len(set(told)) == len(told)
                assert "−0" not in told
                assert all(len(number) <= 8 for number in told)
            assert len(told) > 1


def test_names_written_from_the_right_leave_sentences_as_they_are(open_page):
    name = "نموذج"
    tab = open_page(example_report((name, "plain"), labels=("א", "ב", "ג")))
    for sentence in tab.page.locator(".findings li, figcaption, .about, #now-said").all():
        assert sentence.evaluate("node => getComputedStyle(node).direction") == "ltr"
    captions = tab.page.locator("#confidence-charts figcaption").all_text_contents()
    assert captions[0].startswith(f"\u2068{name}\u2069: ")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_numbers_on_the_heat_map_can_be_read(open_page, scheme):
    """Axe does not look into charts."""
    tab = open_page(MANY_REPORT, color_scheme=scheme)
    strongest, written = tab.page.evaluate(
        """() => [".heat", "#pair-charts .middle.title"].map((selector) =>
          getComputedStyle(document.querySelector(selector)).fill.match(/\\d+/g).map(Number))"""
    )
    low, high = sorted([luminance(strongest), luminance(written)])
    assert (high + 0.05) / (low + 0.05) >= 4.5


def luminance(colour):
    parts = [c / 255 for c in colour]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@BOTH
def test_words_of_a_chart_are_those_of_its_numbers(open_page, report):
    tab = open_page(report)
    shown = report.models[0].raw.histogram
    words_of = tab.page.locator("#confidence-charts svg").first.get_attribute("aria-label")
    share, edge = re.search(
        r"; ([\d.]+) % of the wrong ones are above ([\d.]+)\.$", words_of
    ).groups()
    above = shown.edges[:-1] >= float(edge) - 1e-3
    assert 0.9 <= float(edge) < 0.95
    assert float(share) == pytest.approx(100 * shown.wrong[above].sum(), abs=0.06)


def test_tables_behind_charts_name_their_rows(open_page):
    tab = open_page(MANY_REPORT)
    tab.page.locator("#pair-charts summary").first.click()
    table = tab.page.locator("#pair-charts table").first
    table.wait_for()
    assert table.locator("tbody th[scope=row]").all_text_contents() == list(MANY_REPORT.labels)


def test_the_verdict_is_first_and_all_findings_are_there(open_page):
    tab = open_page()
    assert tab.page.locator("main section").first.locator("h2").text_content() == "Verdict"
    texts = [
        text.replace("\xa0", " ") for text in tab.page.locator(".findings li").all_text_contents()
    ]
    verdict = verdict_lines(TWO_REPORT, 9)
    assert texts == [*verdict, *(finding.text for finding in TWO_REPORT.findings)]
    assert tab.page.locator(".findings li").last.is_hidden()
    tab.page.locator(".findings summary").click()
    assert tab.page.locator(".findings li").last.is_visible()
