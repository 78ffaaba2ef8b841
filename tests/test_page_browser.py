"""The live part of the page in a real browser: what it shows, against Python."""

from __future__ import annotations

import re
from math import inf

import numpy as np
import pytest

import fragility as fr
from fragility._summary import threshold
from fragility.report import words
from fragility.report.page_data import page_data

from .page_example import TWO, TWO_REPORT, example_report, predicted
from .page_numbers import CELLS, cell, check_row, cuts_of, live, shown_text
from .reference import page

pytestmark = pytest.mark.outside


def on_grid(n=400, n_models=2, seed=3):
    """Classes, and scores of models that are all thresholds of the page."""
    true, found = predicted(n_models, 2, n, seed)
    scores = [np.clip(np.round(64 * p[:, 1]), 1, 63) / 64 for p in found]
    return true, dict(zip("abcd", scores, strict=False))


def report_at(true, models, **costs):
    return fr.Report.from_predictions(true, models, costs=fr.Costs(**costs), n_worst=0)


def matrix(miss, alarm):
    return [[0.0, alarm], [miss, 0.0]]


def thresholds_in_words(policy):
    lower = {0.0: "never", inf: "always"}.get(policy.lower, threshold(policy.lower))
    upper = {0.0: "always", inf: "never"}.get(policy.upper, threshold(policy.upper))
    return f"{lower} · {upper}"


def fill(tab, **entered):
    for key, number in entered.items():
        tab.page.fill(f"#{key}", str(number))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("miss", "alarm", "man", "cap", "rev"),
    [(25.5, 4, 2, 100, 3), (8, 8, 1, 7.5, 0), (3, 40, 0.5, 50, 10), (1, 1, 3, 100, 0)],
)
def test_policies_at_other_costs_are_those_of_a_report_at_these(
    open_page, miss, alarm, man, cap, rev
):
    """Where the page has every threshold that matters, it chooses what the library chooses."""
    true, models = on_grid()
    tab = open_page(report_at(true, models, error_cost=10.0))
    fill(tab, miss=miss, alarm=alarm, man=man, cap=cap, rev=rev)
    other = report_at(
        true,
        models,
        error_cost=matrix(miss, alarm),
        review_cost=man,
        capacity=cap / 100,
        reviewer_error=rev / 100,
    )
    costs = {}
    for place, model in enumerate(other.models):
        policy = model.policy
        assert cell(tab, place, "thresholds") == thresholds_in_words(policy)
        expected = page.outcome(
            true == 1, models[model.name], policy.lower, policy.upper, miss, alarm, man, rev / 100
        )
        check_row(lambda name, place=place: cell(tab, place, name), expected)
        assert cell(tab, place, "alone") == words.percent(policy.automation_rate)
        costs[place] = expected["cost"]
        tab.page.select_option("#model", str(place))
        check_row(lambda name: live(tab, name), expected)
        for side, ends in (("lower", policy.lower_interval), ("upper", policy.upper_interval)):
            beyond = {"lower": "always", "upper": "never"}[side]
            told = [beyond if end == inf else threshold(end) for end in ends]
            told = beyond if ends.low == inf else " to ".join(told)
            assert tab.text(f"#{side}-same") == told
    best = min(costs, key=costs.get)
    told = other.models[best].policy.instruction()
    tab.until(lambda: told in shown_text(tab, "#now-said"))
    assert tab.page.locator("#models .tag:visible").count() == 1
    assert tab.page.locator(f'#models tr[data-model="{best}"] .tag').is_visible()


def test_the_page_finds_the_cheapest_of_all_pairs_of_thresholds(open_page):
    """By loops over all pairs, from the definition of the rule."""
    true, models = on_grid(80, 1)
    scores = np.round(models["a"] * 16) / 16
    report = report_at(true, {"a": scores}, error_cost=10.0)
    tab = open_page(report)
    p, share = report.models[0].policy.decision.calibrated(scores), 1000 / 1080
    own = np.unique(scores)
    between = [0.0, *((own[1:] + own[:-1]) / 2), inf]
    for cap in (100, 20):
        fill(tab, miss=6, alarm=3, man=1, cap=cap)
        costs = {"miss": 6.0, "alarm": 3.0, "review": 1.0}
        given = true == 1, scores.tolist(), p.tolist(), share, between, cap / 100
        lower, upper = page.cheapest(*given, **costs)
        check_row(
            lambda name: cell(tab, 0, name),
            page.outcome(true == 1, scores, lower, upper, **costs),
        )


def test_of_equally_cheap_thresholds_those_with_the_fewest_reviews_are_taken(open_page):
    """By the rule that looks at these cases alone, many pairs of thresholds cost the same."""
    true, models = on_grid(80, 1)
    scores = np.round(models["a"] * 16) / 16
    own = np.unique(scores)
    between = [0.0, *((own[1:] + own[:-1]) / 2), inf]

    def report(**costs):
        given = {"costs": fr.Costs(**costs), "policy": {"rule": "tuned"}}
        return fr.Report.from_predictions(true, {"a": scores}, n_worst=0, **given)

    tab = open_page(report(error_cost=7.0))
    tied = 0
    for miss, alarm, man in ((2, 2, 1), (4, 2, 1), (3, 3, 0), (6, 6, 2)):
        fill(tab, miss=miss, alarm=alarm, man=man)
        policy = report(error_cost=matrix(miss, alarm), review_cost=man).models[0].policy
        assert cell(tab, 0, "thresholds") == thresholds_in_words(policy)
        given = true == 1, scores
        best = page.outcome(*given, policy.lower, policy.upper, miss, alarm, man)
        check_row(lambda name: cell(tab, 0, name), best)
        for lower in between:
            for upper in between[between.index(lower) :]:
                found = page.outcome(*given, lower, upper, miss, alarm, man)
                assert found["cost"] >= best["cost"] - 1e-12
                if found["cost"] <= best["cost"] + 1e-12:
                    assert found["reviews"] >= best["reviews"]
                    tied += found["reviews"] > best["reviews"]
    assert tied > 3


@pytest.mark.parametrize("turned", [False, True])
def test_the_page_opens_at_the_policy_of_each_model(open_page, turned):
    """Whatever the order of the models, the verdict's is chosen, and the cheapest is marked."""
    true, models = on_grid(300, 3)
    if turned:
        models = dict(reversed(models.items()))
    report = report_at(true, models, error_cost=10.0, review_cost=1.0)
    tab = open_page(report)
    for place, model in enumerate(report.models):
        policy = model.policy
        assert cell(tab, place, "thresholds") == thresholds_in_words(policy)
        expected = page.outcome(
            true == 1, models[model.name], policy.lower, policy.upper, 10.0, 10.0, 1.0
        )
        check_row(lambda name, place=place: cell(tab, place, name), expected)
    names = [model.name for model in report.models]
    subject = names.index(report.verdict.subject)
    assert tab.page.input_value("#model") == str(subject)
    least = min(report.models, key=lambda model: model.policy.cost).name
    assert shown_text(tab, "#models .best").startswith(least)
    assert report.verdict.sentences[0] in shown_text(tab, ".verdict")


def test_keys_move_thresholds_and_every_number_follows(open_page):
    tab = open_page(example_report(("only", "other")))
    true, (p, _) = predicted(2, 2)
    data = page_data(example_report(("only", "other")))
    cuts = cuts_of(data, 0)
    tab.page.select_option("#model", "0")
    start = data["models"][0]["cells"]["start"]
    cut = list(start)

    def check():
        expected = page.outcome(true == 1, p[:, 1], cuts[cut[0]], cuts[cut[1]], 10.0, 10.0, 1.0)
        check_row(lambda name: live(tab, name), expected)
        told = f"{expected['missed']:g} missed, {expected['alarms']:g} false alarms"
        assert tab.text("#kinds") == told
        rows = tab.page.locator("#confusion tbody tr").all()
        decided = [[c.text_content() for c in row.locator("td").all()] for row in rows]
        assert decided[0][2] == f"{expected['alarms']:g}"
        assert decided[1][0] == f"{expected['missed']:g}"
        assert sum(int(n) for row in decided for n in row) == 300

    check()
    for side, key, moved in [
        (0, "ArrowRight", lambda: cut[0] + 1),
        (1, "ArrowLeft", lambda: cut[1] - 1),
        (0, "Home", lambda: 0),
        (1, "End", lambda: len(cuts) - 1),
        (0, "End", lambda: len(cuts) - 1),
        (1, "Home", lambda: 0),  # the lower one gives way
    ]:
        tab.page.locator("#upper" if side else "#lower").press(key)
        cut[side] = moved()
        cut[1 - side] = min(cut[0], cut[1]) if side else max(cut[0], cut[1])
        check()
    tab.page.click("#cheapest-cuts")
    cut[:] = start
    check()


def test_several_classes_are_decided_by_expected_cost(open_page):
    labels = ("bird", "cat", "dog")
    true, (p,) = predicted(1, 3, 200)
    names = np.array(labels)[true]

    def report(**costs):
        return fr.Report.from_predictions(names, {"m": p}, costs=fr.Costs(**costs), n_worst=0)

    tab = open_page(report(error_cost=10.0))
    for err, man, cap, rev in [(10, 1, 100, 0), (30, 2, 100, 4), (30, 2, 20, 4), (2, 1, 100, 0)]:
        fill(tab, err=err, man=man, cap=cap, rev=rev)
        other = report(
            error_cost=err, review_cost=man, capacity=cap / 100, reviewer_error=rev / 100
        )
        policy = other.models[0].policy
        decided = policy.decide(p)
        wrong = decided.label != names
        limit = -inf if policy.automation_rate == 0.0 else policy.decision.limit
        expected = page.of_losses(wrong, decided.score, limit, err, man, rev / 100)
        check_row(lambda name: cell(tab, 0, name), expected)
        assert cell(tab, 0, "alone") == words.percent(policy.automation_rate)
        told = policy.instruction()
        if (
            0.0 < policy.automation_rate < 1.0
        ):  # the limit is between two losses, of the page at one
            told = "the model decides alone where its expected loss is at most"
        tab.until(lambda told=told: told in shown_text(tab, "#now-said"))


def test_several_classes_with_a_matrix_of_costs_are_scaled(open_page):
    true, (p,) = predicted(1, 3, 200)
    prices = np.array([[0.0, 5.0, 10.0], [8.0, 0.0, 3.0], [20.0, 4.0, 0.0]])

    def report(**costs):
        return fr.Report.from_predictions(true, {"m": p}, costs=fr.Costs(**costs), n_worst=0)

    tab = open_page(report(error_cost=prices, reviewer_error=0.1))
    fill(tab, err=3, man=1.5, cap=60)
    other = report(error_cost=3 * prices, review_cost=1.5, capacity=0.6, reviewer_error=0.1)
    policy = other.models[0].policy
    decided = policy.decide(p)
    regret = 3 * prices[true, decided.label]
    reviewed = 1.5 + 0.1 * 3 * prices.sum(axis=1)[true] / 2
    cost = np.where(decided.automate, regret, reviewed).mean()
    assert cell(tab, 0, "alone") == words.percent(decided.automate.mean())
    assert cell(tab, 0, "cost") == tab_money(1000 * cost)
    assert "not known at these costs" in tab.text("#lower-same")


def tab_money(amount):
    return fr.Report.from_predictions([0, 1], [0.1, 0.9], calibrate=False).context.money(amount)


def test_answers_are_given_or_passed_on(open_page):
    rng = np.random.default_rng(2)
    sure = {name: np.round(64 * rng.random(300)).clip(1, 63) / 64 for name in "ab"}
    correct = {name: rng.random(300) < p for name, p in sure.items()}
    declined = {name: rng.random(300) < share for name, share in (("a", 0.1), ("b", 0.3))}

    def report(**costs):
        return fr.Report.from_outcomes(correct, sure, declined=declined, costs=costs)

    tab = open_page(report(error_cost=10.0))
    assert tab.page.locator("#lower").count() == 0
    for err, man, cap, rev in [(10, 1, 100, 0), (2, 1, 100, 5), (3, 1, 40, 0)]:
        fill(tab, err=err, man=man, cap=cap, rev=rev)
        other = report(
            error_cost=err, review_cost=man, capacity=cap / 100, reviewer_error=rev / 100
        )
        for place, model in enumerate(other.models):
            name = model.name
            scores = [
                None if gone else score
                for score, gone in zip(sure[name], declined[name], strict=True)
            ]
            # Of a declined case a right answer may be missed, at the price of an error.
            truth = correct[name] & ~declined[name]
            upper = model.policy.upper
            expected = page.outcome(truth, scores, 0.0, upper, err, err, man, rev / 100)
            check_row(lambda cell_name, place=place: cell(tab, place, cell_name), expected)
            assert cell(tab, place, "alone") == words.percent(model.policy.automation_rate)
        told = [model.policy.instruction() for model in other.models]
        tab.until(lambda told=told: any(part in shown_text(tab, "#now-said") for part in told))


def test_over_capacity_is_never_called_cheapest(open_page):
    rng = np.random.default_rng(2)
    sure = {name: rng.random(200).round(2) for name in "ab"}
    declined = {"a": rng.random(200) < 0.05, "b": rng.random(200) < 0.3}
    correct = {"a": rng.random(200) < 0.5, "b": rng.random(200) < 0.99}
    report = fr.Report.from_outcomes(correct, sure, declined=declined, costs={"error_cost": 10.0})
    tab = open_page(report)
    assert tab.page.locator('#models tr[data-model="1"] .tag').is_visible()
    fill(tab, cap=20)  # b is cheaper, and declines more than that
    assert "over capacity" in cell(tab, 1, "reviews")
    assert tab.page.locator('#models tr[data-model="0"] .tag').is_visible()
    assert tab.page.locator('#models tr[data-model="1"] .tag').is_hidden()
    fill(tab, cap=1)
    assert tab.page.locator("#models .tag:visible").count() == 0
    tab.until(lambda: "no model keeps the capacity" in tab.text("#now-said"))
    two = open_page()
    fill(two, cap=10)
    two.page.locator("#lower").press("Home")
    two.page.locator("#upper").press("End")
    assert "over capacity" in live(two, "reviews")
    assert "over capacity" not in two.text("#models")


def test_costs_by_case_and_by_class_are_kept(open_page):
    true, models = on_grid(300, 1)
    rng = np.random.default_rng(8)
    costs = rng.exponential(10.0, 300)
    tab = open_page(report_at(true, models, error_cost=costs, reviewer_error=0.05))
    assert tab.page.locator("#miss").count() == 0
    fill(tab, err=2.5, man=3, rev=20)
    other = report_at(true, models, error_cost=2.5 * costs, review_cost=3.0, reviewer_error=0.2)
    policy = other.models[0].policy
    expected = page.outcome(
        true == 1, models["a"], policy.lower, policy.upper, 2.5, 2.5, 3.0, 0.2, costs=costs
    )
    check_row(lambda name: cell(tab, 0, name), expected)
    rates = np.where(true == 1, 0.2, 0.02)
    tab = open_page(report_at(true, models, error_cost=10.0, reviewer_error=[0.02, 0.2]))
    fill(tab, miss=30, rev=0.5)
    other = report_at(true, models, error_cost=matrix(30, 10), reviewer_error=[0.01, 0.1])
    policy = other.models[0].policy
    expected = page.outcome(
        true == 1, models["a"], policy.lower, policy.upper, 30, 10, 1.0, 0.5, rates=rates
    )
    check_row(lambda name: cell(tab, 0, name), expected)


def test_weights_and_a_currency(open_page):
    true, models = on_grid(300, 1)
    weights = np.random.default_rng(3).random(300) * 1e3
    report = fr.Report.from_predictions(
        true,
        models,
        sample_weight=weights,
        costs=fr.Costs(matrix(400.0, 90.0), 15.0, capacity=0.25, reviewer_error=0.1),
        context={"currency": "€"},
    )
    tab = open_page(report)
    for key, start in {"miss": "400", "alarm": "90", "man": "15", "cap": "25", "rev": "10"}.items():
        assert tab.page.input_value(f"#{key}") == start
    policy = report.models[0].policy
    given = true == 1, models["a"], policy.lower, policy.upper, 400.0, 90.0, 15.0, 0.1, weights
    found = page.outcome(*given)
    assert cell(tab, 0, "cost") == report.context.money(1000 * found["cost"])
    assert cell(tab, 0, "cost").startswith("€")
    assert cell(tab, 0, "wrong") == words.percent(found["wrong"])


def test_a_number_that_makes_no_sense_is_told_and_changes_nothing(open_page):
    tab = open_page()
    before = tab.text("#models"), shown_text(tab, ".live")
    for key, entered in [
        ("miss", "-2"),
        ("alarm", ""),
        ("man", "-1"),
        ("cap", "101"),
        ("rev", "1e9"),
    ]:
        tab.page.fill(f"#{key}", entered)
        assert tab.page.get_attribute(f"#{key}", "aria-invalid") == "true"
        assert tab.page.locator(f"#{key}-problem").is_visible()
        assert tab.text(f"#{key}-problem").endswith("not used")
        assert (tab.text("#models"), shown_text(tab, ".live")) == before
    tab.page.fill("#miss", "20")
    assert tab.page.get_attribute("#miss", "aria-invalid") == "false"
    assert tab.text("#models") != before[0]


def test_what_does_not_follow_an_edit_is_greyed_and_says_for_which_costs(open_page):
    tab = open_page()
    tab.page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    colours = "nodes => nodes.map(node => getComputedStyle(node).color)"
    kinds = ".verdict .lead", ".large dd strong", "#models td[data-fixed]"
    before = [tab.page.locator(kind).evaluate_all(colours) for kind in kinds]
    notes = tab.page.locator(".stale")
    assert not any(note.is_visible() for note in notes.all())
    tab.page.fill("#man", "2")
    after = [tab.page.locator(kind).evaluate_all(colours) for kind in kinds]
    for old, new in zip(before, after, strict=True):
        assert not set(old) & set(new)
    assert notes.count() >= 5
    for note in notes.all():
        assert note.is_visible()
        assert "a miss 10, a false alarm 10, a review 1" in note.text_content()
    # Every number of the report's policies, outside what follows, is within what is greyed.
    policy = TWO_REPORT.models[0].policy
    stale = [words.money(policy.cost), TWO_REPORT.context.money(1000 * policy.cost)]
    left = tab.page.evaluate(
        """() => { const copy = document.querySelector("main").cloneNode(true);
          for (const part of copy.querySelectorAll("[data-fixed], .deciding, #models [data-cell]"))
            part.remove();
          return copy.textContent; }"""
    )
    for number in stale:
        assert number in tab.text("main")
        assert not re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d,])", left)
    tab.page.click("#report-costs")
    assert [tab.page.locator(kind).evaluate_all(colours) for kind in kinds] == before
    assert not any(note.is_visible() for note in notes.all())


def test_a_view_is_shared_by_its_address(open_page):
    tab = open_page()
    tab.page.fill("#miss", "37.5")
    tab.page.fill("#cap", "7")
    tab.page.select_option("#model", "2")
    tab.page.locator("#lower").press("ArrowRight")
    tab.until(lambda: "lo=" in tab.page.url)
    fragment = tab.page.evaluate("location.hash")
    assert fragment.startswith("#miss=37.5&alarm=10&man=1&cap=0.07&rev=0&m=3&lo=")
    other = open_page(fragment=fragment)
    for key in ("miss", "alarm", "man", "cap", "rev", "model", "lower", "upper"):
        assert other.page.input_value(f"#{key}") == tab.page.input_value(f"#{key}")
    for part in ("#models", ".live"):
        assert other.text(part) == tab.text(part)
    other.page.evaluate("location.hash = '#man=5'")
    other.until(lambda: other.page.input_value("#man") == "5")
    assert other.page.input_value("#miss") == "10"


@pytest.mark.parametrize(
    "fragment",
    [
        "#m=none&miss=-3&man=abc&alarm=Infinity&cap=2&rev=&lo=9x&up=1",
        "#m=1e999&err=4&__proto__=1&%E0%A4%A",
        "#<img src=x onerror=alert(1)>",
    ],
)
def test_nonsense_in_the_address_is_ignored(open_page, fragment):
    tab, plain = open_page(fragment=fragment), open_page()
    for part in ("#models", ".live"):
        assert tab.text(part) == plain.text(part)


def test_infinite_and_undefined_figures(open_page):
    """Scores the wrong way round, scores that are all the same, scores without an error."""
    true, (p, *_) = predicted(1, 2)
    models = {
        "wrong way": 1.0 - p[:, 1],
        "constant": np.full(true.size, 0.6),
        "perfect": np.where(true, 0.8, 0.3),
    }
    report = fr.Report.from_predictions(true, models, costs=fr.Costs(10.0), n_worst=0)
    tab = open_page(report)
    assert "∞" in tab.text("table.figures")
    fill(tab, miss=20, man=2)
    other = fr.Report.from_predictions(true, models, costs=fr.Costs(matrix(20, 10), 2.0), n_worst=0)
    for place, model in enumerate(other.models):
        policy = model.policy
        expected = page.outcome(
            true == 1, models[model.name], policy.lower, policy.upper, 20.0, 10.0, 2.0
        )
        check_row(lambda name, place=place: cell(tab, place, name), expected)
    for fold in tab.page.locator(".folds > details > summary").all():
        fold.click()
    assert "NaN" not in tab.page.locator("main").inner_html()
    bad = fr.Report.from_predictions([0, 1, 2] * 9, np.tile((1 - np.eye(3)) / 2, (9, 1)))
    tab = open_page(bad)
    for fold in tab.page.locator(".folds > details > summary").all():
        fold.click()
    assert "NaN" not in tab.page.locator("main").inner_html()
    assert tab.page.locator("#tail-charts figure").count() == 0


@pytest.mark.parametrize("labels", [("well", "ill"), ("bird", "cat", "dog")])
def test_one_model_without_costs(open_page, labels):
    report = example_report(("only",), labels=labels, calibrate=False, costs=None)
    tab = open_page(report)
    assert "are suggestions" in shown_text(tab)
    assert tab.page.locator("#model, .stale").count() == 0
    assert all(cell(tab, 0, name) for name in CELLS)
    before = tab.text("#models")
    tab.page.fill("#man", "3")
    assert tab.text("#models") != before
    assert tab.page.locator(".tag:visible").count() == 0


def test_small_costs(open_page):
    tab = open_page(fragment="#miss=1e-4&alarm=1e-4&man=1e-5&m=1&lo=0&up=Infinity")
    assert live(tab, "cost") == "0.01"
    fill(tab, man="1e-9")
    tab.page.locator("#lower").press("Home")
    tab.page.locator("#upper").press("End")
    assert live(tab, "cost") == TWO_REPORT.context.money(1e-6)
    assert TWO["total"] == 300
