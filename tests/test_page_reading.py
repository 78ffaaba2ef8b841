"""The page in a real browser: how it is reached, read, printed, and what it holds."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fragility import Costs, Report
from fragility._summary import threshold
from fragility.report import words
from fragility.report.page_data import page_data, script_json

from .browser import Tab
from .page_example import (
    BOTH,
    HOSTILE,
    MANY_REPORT,
    TWO,
    TWO_REPORT,
    example_report,
    predicted,
)
from .page_numbers import cuts_of, shown_text, value

pytestmark = pytest.mark.outside


def open_folds(tab):
    tab.page.evaluate(
        "for (const d of document.querySelectorAll('.folds > details')) d.open = true"
    )
    tab.page.locator("#coverage-charts figure").wait_for()


def test_the_page_answers_what_people_ask(open_page):
    """From what is seen alone: which model, half the reviewers, which cases, the dearest group."""
    report = example_report(("plain", "robust"), n_worst=3, costs=Costs(10.0, 1.0, capacity=0.4))
    tab = open_page(report)
    verdict, policy = report.verdict, report.models[0].policy
    assert verdict.subject == "plain"
    first = shown_text(tab, ".verdict")
    # Which model, and which thresholds?
    assert verdict.sentences[0] in first
    for number in (
        report.context.money(verdict.cost.value),
        words.percent(policy.automation_rate),
        words.percent(policy.error_rate),
        f"{threshold(policy.lower)} · {threshold(policy.upper)}",
        " to ".join(threshold(end) for end in policy.lower_interval),
    ):
        assert number in first
    # What if half of the reviewers leave?
    tab.page.get_by_label("Reviews at most (% of cases)").fill("20")
    tab.until(lambda: "At these costs: " in shown_text(tab, "#now-said"))
    said = shown_text(tab, "#now-said")
    other = example_report(("plain", "robust"), costs=Costs(10.0, 1.0, capacity=0.2))
    found = page_data(other)["models"][0]["cells"]
    lower, upper = found["start"]
    reviews = np.sum(found["wrong"], axis=0)[lower:upper].sum()
    shown_reviews = re.search(r"([\d,]+) reviews\.$", said)[1]
    assert int(shown_reviews) == pytest.approx(reviews, abs=2)  # thresholds are those of the page
    assert int(shown_reviews) <= 60
    assert "plain is cheapest: decide well below" in said
    tab.page.get_by_role("button", name="Costs of the report").click()
    # Which cases to audit?
    tab.page.get_by_text("Single cases to look at").click()
    cases = shown_text(tab, "#cases")
    for model in report.models:
        for case in model.worst:
            assert case.case in cases
    # What does the dearest group cost?
    tab.page.get_by_text("Groups", exact=True).click()
    tab.page.locator("#group-charts summary").first.click()
    dearest = max(
        (part for part in report.groups if part.model == "plain"),
        key=lambda part: part.policy.cost.value,
    )
    first_row = tab.page.locator("#group-charts tbody tr").first
    first_row.wait_for()
    cells = first_row.locator("th, td").all_text_contents()
    assert cells[0] == dearest.group
    assert cells[2] == report.context.money(1000 * dearest.policy.cost.value)
    assert cells[4] == words.percent(dearest.policy.error_rate.value)


def test_shared_mistakes_come_first_and_misses_before_false_alarms(open_page):
    true, (p,) = predicted(1, 2)
    scores = p[:, 1].copy()
    sure = np.flatnonzero(true == 1)[:2], np.flatnonzero(true == 0)[:2]
    scores[sure[0]], scores[sure[1]] = 0.01, 0.985
    report = Report.from_predictions(
        true, {"a": scores, "b": scores}, n_worst=4, cases=[f"case {k}" for k in range(true.size)]
    )
    assert report.n_shared_mistakes >= 4
    tab = open_page(report)
    tab.page.get_by_text("Single cases to look at").click()
    titles = tab.page.locator("#cases h3").all_text_contents()
    assert titles[0] == "Wrong by all models"
    rows = tab.page.locator("#cases section").nth(1).locator("tbody tr").all()
    kinds = [row.locator("td").first.text_content() for row in rows]
    order = ["miss", "false alarm", "right"]
    assert kinds == sorted(kinds, key=order.index)
    assert set(kinds) >= {"miss", "false alarm"}
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.page.locator("#cases button").first.click()
    tab.until(lambda: "cases copied" in shown_text(tab, "#cases"))
    copied = tab.page.evaluate("navigator.clipboard.readText()")
    assert copied.splitlines()[0].split("\t")[:2] == ["case", "truth"]
    assert len(copied.splitlines()) == 1 + len(report.shared_mistakes)


def test_the_keyboard_is_enough(open_page):
    tab = open_page()
    reached, outlines = [], []
    for _ in range(40):
        tab.page.keyboard.press("Tab")
        what, outline = tab.page.evaluate(
            """() => {
              const now = document.activeElement;
              const words = now.id || now.name || now.getAttribute("aria-label") || now.textContent;
              return [words.trim(), getComputedStyle(now).outlineStyle];
            }"""
        )
        reached.append(what)
        outlines.append(outline)
        if what == "Method and provenance":
            break
    for wanted in ("miss", "alarm", "man", "cap", "rev", "model", "lower", "upper"):
        assert wanted in reached
    assert {"All metrics", "Groups", "Numbers of the chart of costs"} <= set(reached)
    assert "none" not in outlines  # the focus is seen
    tab.page.locator("#cost-chart summary").focus()
    tab.page.keyboard.press("Enter")
    rows = tab.page.locator("#cost-chart table tbody tr")
    tab.until(lambda: rows.count() == len(cuts_of(TWO, 0)))


@pytest.mark.parametrize("report", [TWO_REPORT, MANY_REPORT], ids=["two classes", "four"])
def test_every_chart_has_words_and_a_table(open_page, report):
    tab = open_page(report)
    open_folds(tab)
    figures = tab.page.locator("figure")
    assert figures.count() == 5 + 2 * len(report.models)
    for figure in figures.all():
        assert len(figure.locator('svg[role="img"]').get_attribute("aria-label")) > 20
        figure.locator("summary").click()
        figure.locator("table tbody tr").first.wait_for()
        assert "NaN" not in figure.inner_html()
    curve = report.models[1].raw.evidence.reliability
    rows = tab.page.locator("#reliability-charts figure").nth(2).locator("tbody tr")
    shown = rows.nth(4).locator("th, td").all_text_contents()
    assert shown[1] == words.percent(float(f"{curve.predicted[4]:.4g}"))
    assert shown[2] == words.percent(float(f"{curve.observed[4]:.4g}"))
    assert float(shown[4]) == curve.counts[4]


@pytest.mark.parametrize(
    ("report", "scheme"),
    [(TWO_REPORT, "light"), (MANY_REPORT, "dark")],
    ids=["two classes, light", "four, dark"],
)
def test_axe_finds_nothing(open_page, report, scheme):
    from axe_playwright_python.sync_playwright import Axe

    tab = open_page(report, fragment="#cap=0.3&man=2", color_scheme=scheme)
    open_folds(tab)
    tab.page.fill("#man", "-1")  # what is wrong must be readable, too
    tab.page.locator("#cost-chart summary").click()
    found = Axe().run(tab.page).response["violations"]
    assert [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in found] == []


@pytest.mark.parametrize("report", [TWO_REPORT, MANY_REPORT], ids=["two classes", "four"])
def test_it_is_short_on_a_desk_and_prints_on_two_sheets(open_page, report):
    tab = open_page(report)
    assert tab.page.evaluate("document.documentElement.scrollHeight") < 2600
    assert tab.page.pdf(format="A4").count(b"/Type /Page\n") == 2


def test_dark_and_print(open_page):
    ground = "getComputedStyle(document.body).backgroundColor"
    tab = open_page(color_scheme="dark")
    assert tab.page.evaluate(ground) == "rgb(15, 20, 25)"
    tab.page.emulate_media(media="print")
    assert tab.page.evaluate(ground) == "rgb(255, 255, 255)"
    assert tab.page.locator("#report-costs").is_hidden()
    for printed in tab.page.locator(".findings li, .trail li").all():  # also what is folded away
        assert printed.is_visible()
    assert tab.page.locator("#cost-chart svg[role=img]").is_visible()
    tab.page.set_viewport_size({"width": 720, "height": 1000})  # a sheet of paper
    assert tab.page.evaluate("document.documentElement.scrollWidth") == 720


@pytest.mark.parametrize("hostile", [False, True])
@BOTH
def test_a_phone_scrolls_one_way_only(open_page, report, hostile):
    if hostile:
        labels = HOSTILE[: len(report.labels)]
        report = example_report(HOSTILE, labels=labels, group=HOSTILE[3], case=HOSTILE[3])
    tab = open_page(report, viewport={"width": 390, "height": 800})
    open_folds(tab)
    assert tab.page.evaluate("document.documentElement.scrollWidth") == 390
    # A table that is wider is in a region that shows so, and can be reached by keys.
    hidden = tab.page.evaluate(
        """() => [...document.querySelectorAll("main table")]
          .filter((table) => table.getBoundingClientRect().right > 391 && !table.closest(".scroll"))
          .map((table) => table.id)"""
    )
    assert hidden == []
    for region in tab.page.locator(".scroll:visible").all()[:3]:
        assert region.get_attribute("tabindex") == "0"
        drawn = region.evaluate("node => getComputedStyle(node).backgroundImage")
        assert drawn.count("gradient") == 4
    drawn = tab.page.locator("#cost-chart svg[role=img]").bounding_box()
    assert drawn["x"] + drawn["width"] <= 390
    bar = tab.page.locator(".bar")
    assert bar.is_visible()
    assert bar.bounding_box()["y"] + bar.bounding_box()["height"] == pytest.approx(800, abs=1)
    tab.page.set_viewport_size({"width": 800, "height": 800})
    chart = tab.page.locator("#cost-chart svg[role=img]")  # has no box while it is drawn again
    tab.until(lambda: (chart.bounding_box() or {"width": 0.0})["width"] > 500)
    assert bar.is_hidden()


def test_the_card_stays_with_the_chart_that_it_moves(open_page):
    tab = open_page()
    tab.page.evaluate("window.scrollTo(0, 700)")
    for part in ("#miss", "#lower", "#cost-chart svg[role=img]"):
        box = tab.page.locator(part).bounding_box()
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= 900


@pytest.mark.parametrize("labels", [HOSTILE[:2], HOSTILE], ids=["two classes", "four classes"])
def test_hostile_names_are_text(open_page, labels):
    report = example_report(HOSTILE, labels=labels, group=HOSTILE[0], case=HOSTILE[1])
    report = report.with_notes(*HOSTILE)
    tab = open_page(report)
    open_folds(tab)
    assert tab.page.locator("img").count() == 0
    assert tab.page.locator("script").count() == 2
    assert tab.page.locator(".notes li").all_text_contents()[:4] == list(HOSTILE)
    names = tab.page.locator("#models bdi")
    titles = [names.nth(place).get_attribute("title") for place in range(4)]
    assert titles == [words.seen(name) for name in HOSTILE]
    assert "\\u202eشبكة" in titles[2]
    assert len(titles[3]) > 9_000
    shown = [words.shortened(name) for name in HOSTILE]
    assert names.all_text_contents() == shown
    assert tab.page.locator("#model option").all_text_contents() == shown
    assert words.shortened(HOSTILE[0]) in tab.text("details:has(#group-charts)")
    assert words.shortened(f"{HOSTILE[1]} 7")[:20] in tab.text("#cases")
    before = tab.text("#models")
    tab.page.fill("#man", "2")
    assert tab.text("#models") != before


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


def test_without_scripts_verdict_findings_and_tables_are_there(open_page):
    tab = open_page(java_script_enabled=False)
    assert tab.page.locator(".verdict .lead").is_visible()
    assert tab.page.locator("#models").is_visible()
    assert tab.page.locator(".deciding, .bar").first.is_hidden()
    tab.page.get_by_text("All metrics").click()
    assert tab.page.locator("table.figures").is_visible()
    assert tab.page.get_by_text("need JavaScript").is_visible()


def test_in_a_frame_it_works_too(chromium, tmp_path):
    path = tmp_path / "notebook.html"
    shown_in_cell = TWO_REPORT._repr_html_()
    path.write_text(f"<!DOCTYPE html><title>n</title>{shown_in_cell}", encoding="utf-8")
    tab = Tab(chromium, path)
    inside = tab.page.frame_locator("iframe")
    inside.locator("#lower").press("Home")
    inside.locator("#upper").press("End")
    assert inside.locator('.live [data-live="cost"]').text_content() == "1,000"  # all are reviewed
    tab.page.wait_for_timeout(300)  # the address is written late
    tab.close()


def test_ticks_tell_numbers_apart_at_even_steps(open_page):
    """Also of a model whose scores, errors and index are all tiny, and of one without errors."""
    rng = np.random.default_rng(2)
    true = np.arange(200) % 2
    close = 0.5 + 0.004 * (true - 0.5) + 0.002 * rng.normal(size=200)
    perfect = np.where(true, 0.9, 0.1)
    for scores in (close, perfect):
        report = Report.from_predictions(true, scores, calibrate=False)
        tab = open_page(report, fragment="#miss=0.015&man=0.005")
        open_folds(tab)
        for svg in tab.page.locator("svg[role=img]").all():
            for axis in (".end", ".middle:not(.title)"):
                told = svg.locator(axis).all_text_contents()
                assert len(set(told)) == len(told)
                assert "−0" not in told
                assert all(len(number) <= 9 for number in told)
                places = [
                    tick.get_attribute("y" if axis == ".end" else "x")
                    for tick in svg.locator(axis).all()
                ]
                steps = np.diff([float(place) for place in places])
                assert np.ptp(steps) < 0.01 if steps.size else True
        first = tab.page.locator("#cost-chart svg[role=img]")
        marks = first.locator(".middle:not(.title)").all_text_contents()
        lowest = min(value(mark) for mark in marks)
        assert lowest >= 100 * scores.min() - 1.0  # the axis starts where scores start


def test_names_written_from_the_right_leave_sentences_as_they_are(open_page):
    name = "نموذج"
    tab = open_page(example_report((name, "plain"), labels=("א", "ב", "ג")))
    open_folds(tab)
    for sentence in tab.page.locator(".lead, .findings li, figcaption, .about, #now-said").all():
        assert sentence.evaluate("node => getComputedStyle(node).direction") == "ltr"
    captions = tab.page.locator("#reliability-charts figcaption").all_text_contents()
    assert captions[0].startswith(f"\u2068{name}\u2069: ")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_model_has_a_hue_of_its_own_and_red_is_for_what_is_wrong(open_page, scheme):
    report = example_report(("a", "b", "c", "d", "e", "f"))
    tab = open_page(report, color_scheme=scheme)
    open_folds(tab)
    fills = "nodes => nodes.map(node => getComputedStyle(node).fill)"
    marks = tab.page.locator("#models .mark").evaluate_all(fills)
    shapes = tab.page.locator("#models .mark").evaluate_all(
        "nodes => nodes.map(node => node.tagName + node.getAttribute('points'))"
    )
    assert len(set(marks)) == len(set(shapes)) == 6
    wrong = set(tab.page.locator(".area.wrong").evaluate_all(fills))
    assert len(wrong) == 1
    assert not wrong & set(marks)
    for place in (0, 3):
        hollow = tab.page.locator(f"#reliability-charts .mark.hollow.s{place}").first
        line = hollow.evaluate("node => getComputedStyle(node).stroke")
        assert line == marks[place]
        assert hollow.evaluate("node => getComputedStyle(node).fill") != marks[place]


@BOTH
def test_findings_are_all_there(open_page, report):
    tab = open_page(report)
    heads = tab.page.locator("main h2").all_text_contents()
    assert heads[:2] == ["Verdict", "What if costs or thresholds change?"]
    told = tab.page.locator(".findings li").all_text_contents()
    assert [text.replace("\xa0", " ") for text in told] == [f.text for f in report.findings]
    assert tab.page.locator(".findings li").last.is_hidden()
    tab.page.get_by_text("All findings").click()
    assert tab.page.locator(".findings li").last.is_visible()
