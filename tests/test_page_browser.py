"""The live part of the page in a real browser: what it shows, against Python."""

from __future__ import annotations

import re
from dataclasses import replace
from math import isclose

import numpy as np
import pytest

import fragility as fr
from fragility.report import words
from fragility.report.page_data import page_data

from .page_example import (
    BOTH,
    FOUR,
    TWO,
    TWO_LABELS,
    TWO_REPORT,
    example_report,
    predicted,
)
from .page_numbers import best, cell, check_outcomes, outcome, place_of, value
from .reference import page

pytestmark = pytest.mark.outside


@BOTH
def test_keys_move_the_threshold_and_the_costs_are_those_of_python(open_page, report):
    tab, data = open_page(report), page_data(report)
    slider = tab.page.locator("#delta")
    start = place_of(tab)
    assert isclose(data["grid"][start], best(data, 0, err=10, man=1)[0])
    check_outcomes(tab, data, start, err=10, man=1)
    slider.focus()
    for key, place in [("Home", 0), ("ArrowRight", 1), ("ArrowRight", 2), ("End", None)]:
        slider.press(key)
        place = len(data["grid"]) - 1 if place is None else place
        assert place_of(tab) == place
        check_outcomes(tab, data, place, err=10, man=1)


def test_answers_and_declined_cases_cost_what_python_says(open_page):
    rng = np.random.default_rng(2)
    sure = {name: rng.random(300).round(3) for name in "ab"}
    correct = {name: rng.random(300) < p for name, p in sure.items()}
    declined = {name: rng.random(300) < share for name, share in (("a", 0.1), ("b", 0.3))}
    report = fr.Report.from_outcomes(correct, sure, declined=declined, costs={"error_cost": 10.0})
    tab, data = open_page(report), page_data(report)
    slider = tab.page.locator("#delta")
    slider.focus()
    for key, place in [("Home", 0), ("ArrowRight", 1), ("End", len(data["grid"]) - 1)]:
        slider.press(key)
        assert place_of(tab) == place
        check_outcomes(tab, data, place, err=10, man=1)
    slider.press("Home")  # every answer is given, the declined cases are left
    assert value(cell(tab, 1, "automation")) == round(100 * (1 - declined["b"].mean()), 1)
    wrong = (~correct["b"] & ~declined["b"]).sum()
    assert isclose(
        value(cell(tab, 1, "cost")), (10 * wrong + declined["b"].sum()) / 300, abs_tol=1e-4
    )
    assert tab.page.locator("[data-cell=kinds]").count() == 0


def test_the_slider_and_the_chart_are_dragged(open_page):
    """What is shown is what `deferral_curve` makes of the predictions, to the last digit shown."""
    tab = open_page()
    true, probabilities = predicted(4, 2)
    curves = [
        fr.deferral_curve(true, p[:, 1], error_cost=10.0, review_cost=1.0) for p in probabilities
    ]
    for selector in ("#delta", "#cost-chart .canvas"):
        tab.page.locator(selector).scroll_into_view_if_needed()
        box = tab.page.locator(selector).bounding_box()
        middle = box["y"] + box["height"] / 2
        tab.page.mouse.move(box["x"] + box["width"] * 0.5, middle)
        tab.page.mouse.down()
        seen = set()
        for share in (0.55, 0.7, 0.85):
            tab.page.mouse.move(box["x"] + box["width"] * share, middle, steps=3)
            seen.add(place_of(tab))
            for model, curve in enumerate(curves):
                point = curve.at(TWO["grid"][place_of(tab)])
                assert cell(tab, model, "cost") == words.money(point.cost)
                assert cell(tab, model, "automation") == words.percent(point.automation_rate)
                rate, number = cell(tab, model, "errors").split(" · ")
                assert rate == words.percent(point.error_rate)
                alone = round(point.automation_rate * true.size)
                assert int(number) == round(point.error_rate * alone)
        tab.page.mouse.up()
        assert len(seen) == 3


def test_costs_capacity_and_reviewers(open_page):
    tab = open_page()
    for key, entered in [("err", "25.5"), ("man", "2"), ("fn", "4"), ("rev", "3")]:
        tab.page.fill(f"#{key}", entered)
    check_outcomes(tab, TWO, place_of(tab), err=25.5, man=2, fn=4, rev=0.03)
    assert cell(tab, 0, "chow") == "–"  # errors differ in cost
    tab.page.fill("#fn", "1")
    assert value(cell(tab, 0, "chow")) == pytest.approx(1 - 2 / 25.5 - 0.03, abs=1e-3)
    chow = 1 - 2 / 25.5 - 0.03
    below = max(i for i, delta in enumerate(TWO["grid"]) if delta <= chow)
    cost = outcome(TWO, 0, below, err=25.5, man=2, rev=0.03)[0]
    assert value(cell(tab, 0, "chow-cost")) == pytest.approx(cost, abs=6e-5)
    tab.page.fill("#cap", "10")
    for model in range(4):
        delta, least = best(TWO, model, capacity=0.1, err=25.5, man=2, rev=0.03)
        assert value(cell(tab, model, "best-cost")) == pytest.approx(least, abs=6e-5)
        tab.page.get_by_role("button", name=f"Go to the best δ of {FOUR[model]}").click()
        assert TWO["grid"][place_of(tab)] == delta
        assert "over capacity" not in cell(tab, model, "reviews")
    tab.page.locator("#delta").press("End")
    assert "over capacity" in cell(tab, 0, "reviews")
    for model in range(4):  # Chow's threshold is lowered to the capacity
        decided = TWO["models"][model]["raw"]["decisions"]
        may = [i for i in range(below + 1) if page.allowed(decided, i, TWO["total"], 0.1)]
        assert may[-1] < below
        assert value(cell(tab, model, "chow")) == TWO["grid"][may[-1]]
        cost = outcome(TWO, model, may[-1], err=25.5, man=2, rev=0.03)[0]
        assert value(cell(tab, model, "chow-cost")) == pytest.approx(cost, abs=6e-5)


def test_calibrated_figures_and_hidden_models(open_page):
    *others, last = TWO_REPORT.models
    tab = open_page(replace(TWO_REPORT, models=(*others, replace(last, calibrated=None))))
    tab.page.get_by_label("calibrated", exact=True).check()
    assert cell(tab, 3, "cost") == "not calibrated"
    cost = outcome(TWO, 1, place_of(tab), err=10, man=1, version="calibrated")[0]
    assert value(cell(tab, 1, "cost")) == pytest.approx(cost, abs=6e-5)
    assert tab.page.locator("#confidence-charts figure").count() == 3
    tab.page.get_by_label("robust", exact=True).uncheck()
    assert tab.page.locator('tr[data-model="1"]').is_hidden()
    assert tab.page.locator("#confidence-charts figure").count() == 2
    for name in ("plain", "trees", "neighbours"):
        tab.page.get_by_label(name, exact=True).uncheck()
    tab.until(lambda: "No model" in tab.text("#now-said"))


def test_a_number_that_makes_no_sense_is_told_and_not_used(open_page):
    tab = open_page()
    before = cell(tab, 0, "cost")
    for key, entered in [("err", "-2"), ("err", ""), ("man", "-1"), ("cap", "101"), ("rev", "1e9")]:
        tab.page.fill(f"#{key}", entered)
        assert tab.page.get_attribute(f"#{key}", "aria-invalid") == "true"
        assert tab.text(f"#{key}-problem").startswith("A number")
        assert cell(tab, 0, "cost") == before
    tab.page.fill("#err", "20")
    assert tab.page.get_attribute("#err", "aria-invalid") == "false"
    assert cell(tab, 0, "cost") != before


def test_a_view_is_shared_by_its_address(open_page):
    tab = open_page()
    tab.page.fill("#err", "37.5")
    tab.page.fill("#cap", "7")
    tab.page.get_by_label("trees", exact=True).uncheck()
    tab.page.get_by_label("calibrated", exact=True).check()
    tab.page.locator("#delta").press("ArrowRight")
    tab.until(lambda: f"#d={TWO['grid'][place_of(tab)]}&" in tab.page.url)
    fragment = tab.page.evaluate("location.hash")
    assert re.search(r"err=37\.5&man=1&fn=1&cap=0\.07&rev=0&cal=1&off=3$", fragment)
    other = open_page(fragment=fragment)
    for key in ("delta", "err", "man", "fn", "cap", "rev"):
        assert other.page.input_value(f"#{key}") == tab.page.input_value(f"#{key}")
    assert other.text("#outcomes") == tab.text("#outcomes")
    assert other.page.locator('tr[data-model="2"]').is_hidden()
    other.page.evaluate("location.hash = '#d=0&err=5'")
    other.until(lambda: other.page.input_value("#err") == "5")
    check_outcomes(other, TWO, 0, err=5, man=1)


@pytest.mark.parametrize(
    "fragment",
    [
        "#d=none&err=-3&man=abc&fn=Infinity&cap=2&rev=&off=9,x,-1&cal=7",
        "#d=1e999&err=&__proto__=1&%E0%A4%A",
        "#<img src=x onerror=alert(1)>",
    ],
)
def test_nonsense_in_the_address_is_ignored(open_page, fragment):
    tab, plain = open_page(fragment=fragment), open_page()
    assert tab.text("#outcomes") == plain.text("#outcomes")


def test_infinite_and_undefined_figures(open_page):
    """Scores the wrong way round, scores that are all the same, scores without an error."""
    true, (p, *_) = predicted(1, 2)
    models = {
        "wrong way": 1.0 - p[:, 1],
        "constant": np.full(true.size, 0.6),
        "perfect": np.where(true, 0.8, 0.3),
    }
    report = fr.Report.from_predictions(np.array(TWO_LABELS)[true], models, pos_label="ill")
    tab = open_page(report)
    assert "∞" in tab.text("#index-chart svg")
    assert "∞" in tab.text("table.figures")
    for chart in tab.page.locator("#ranking-charts svg").all():  # the perfect one spoils no other
        assert chart.locator(".middle:not(.title)").count() > 1
    assert "NaN" not in tab.page.locator("main").inner_html()
    check_outcomes(tab, page_data(report), place_of(tab), err=10, man=1)
    bad = fr.Report.from_predictions([0, 1, 2] * 9, np.tile((1 - np.eye(3)) / 2, (9, 1)))
    tab = open_page(bad)
    assert "∞" in tab.text("#pair-charts svg")
    assert tab.page.locator("#ranking").is_hidden()


def test_one_model_without_costs(open_page):
    report = example_report(("only",), calibrate=False, costs=None)
    tab = open_page(report)
    assert "suggestions" in tab.text("section:has(#deciding)")
    assert "cases to come" not in tab.page.content()
    assert tab.page.locator('[name="calibrated"]').count() == 0
    check_outcomes(tab, page_data(report), place_of(tab), err=10, man=1)


def test_weights_capacity_and_a_matrix_are_where_the_page_starts(open_page):
    true, probabilities = predicted(2, 2)
    weights = np.random.default_rng(3).random(true.size) * 1e3
    matrix = [[0.0, 4.0], [20.0, 0.0]]
    costs = fr.Costs(matrix, 1.5, capacity=0.25, reviewer_error=0.1)
    models = {name: p[:, 1] for name, p in zip("ab", probabilities, strict=True)}
    report = fr.Report.from_predictions(true, models, sample_weight=weights, costs=costs)
    tab = open_page(report)
    for key, start in {"err": "4", "man": "1.5", "fn": "5", "cap": "25", "rev": "10"}.items():
        assert tab.page.input_value(f"#{key}") == start
    curve = fr.deferral_curve(true, models["a"], sample_weight=weights, **vars(costs))
    assert cell(tab, 0, "cost") == words.money(
        curve.at(page_data(report)["grid"][place_of(tab)]).cost
    )
    tab.page.locator("#delta").press("End")
    assert cell(tab, 0, "cost") == words.money(curve.at(1.0).cost)
    assert "over capacity" in cell(tab, 0, "reviews")


@pytest.mark.parametrize("size", [1e-9, 1e12, 1e17])
def test_weights_of_any_size(open_page, size):
    true, (p,) = predicted(1, 2)
    weights = size * np.random.default_rng(4).random(true.size)
    report = fr.Report.from_predictions(true, p[:, 1], sample_weight=weights, costs=fr.Costs(10.0))
    tab = open_page(report)
    curve = fr.deferral_curve(true, p[:, 1], sample_weight=weights, error_cost=10.0)
    point = curve.at(page_data(report)["grid"][place_of(tab)])
    assert cell(tab, 0, "cost") == words.money(point.cost)
    reviewed = (1.0 - point.automation_rate) * weights.sum()
    assert value(cell(tab, 0, "reviews")) == pytest.approx(reviewed, rel=5e-3)
    tab.page.locator("#delta").press("End")
    assert cell(tab, 0, "cost") == "1.0000"
    assert cell(tab, 0, "automation") == "0.0 %"


def test_a_small_share_is_not_rounded_to_nothing_nor_a_large_one_to_all(open_page):
    true = np.array([0, 1] * 20)
    p = np.where(true, 0.9, 0.1)
    p[0] = 0.9  # the only error
    weights = np.ones(40)
    weights[0] = 39e-7
    report = fr.Report.from_predictions(true, p, sample_weight=weights, calibrate=False)
    tab = open_page(report, fragment="#d=0")
    assert cell(tab, 0, "errors").startswith("0.00001 % · ")
    p[0] = 0.4  # right, and the least confident
    report = fr.Report.from_predictions(true, p, sample_weight=weights, calibrate=False)
    tab = open_page(report, fragment="#d=0.7")
    assert cell(tab, 0, "automation") == "99.999 %"


def test_small_costs_and_extreme_thresholds(open_page):
    tab = open_page(fragment="#d=0.9&err=1e-4&man=1e-5")
    true, probabilities = predicted(4, 2)
    curve = fr.deferral_curve(true, probabilities[0][:, 1], error_cost=1e-4, review_cost=1e-5)
    assert value(cell(tab, 0, "cost")) == pytest.approx(curve.at(0.9).cost, rel=5e-3)
    assert value(words.money(curve.at(0.9).cost)) == value(cell(tab, 0, "cost"))
    for err, man, chow in [("1e12", "0.01", "1"), ("1.0001", "1", "0"), ("10", "1", "0.9")]:
        tab.page.fill("#err", err)
        tab.page.fill("#man", man)
        assert cell(tab, 0, "chow") == chow
