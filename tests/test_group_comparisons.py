"""Two models compared in each group: against literal loops, on every path, as data and tables."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import fragility.scores.state as state_module
from fragility import AnswerState, Costs, Report, ScoreState
from fragility.report.answer_reading import OutcomeBatch
from fragility.report.arrays import given_cases
from fragility.report.calibrating import chosen_for, fits_of_several, fits_of_two
from fragility.report.group_comparison_text import MOST_ROWS, cost_tables, loss_tables
from fragility.report.group_sums import GroupSums, KeyedSums
from fragility.report.model_figures import Settings
from fragility.report.outcomes import report_on_outcomes
from fragility.scores.answers import Answers
from fragility.scores.cases import joined

from .command import fragility
from .reference import group_comparisons as reference

COSTS = {"error_cost": [[0.0, 1.0], [5.0, 0.0]], "review_cost": 0.3}
NAMES = "pqr"
#: Intervals of three groups that hold together.
LEVEL = 1.0 - 0.05 / 3


def drawn(n_classes, n=360, seed=0):
    """Labels, three models, groups, weights and clusters of four cases."""
    rng = np.random.default_rng(seed)
    groups = np.array(list(NAMES))[rng.integers(0, 3, n)]
    shift = (groups == "q") * 3.0  # where one model is worse
    if n_classes == 2:
        logit = 2.0 * rng.normal(size=n)
        y = (rng.random(n) < 1.0 / (1.0 + np.exp(-logit))).astype(int)
        logits = {
            "good": logit,
            "noisy": logit + (0.5 + shift) * rng.normal(size=n),
            "bold": 2.0 * logit + 0.4 * rng.normal(size=n),
        }
        models = {name: 1.0 / (1.0 + np.exp(-z)) for name, z in logits.items()}
    else:
        y = rng.integers(0, n_classes, n)
        rows = 1.5 * np.eye(n_classes)[y] + rng.normal(size=(n, n_classes))
        noise = (0.5 + shift)[:, np.newaxis] * rng.normal(size=(n, n_classes))
        bold = 2.0 * rows + 0.4 * rng.normal(size=(n, n_classes))
        models = {}
        for name, z in {"good": rows, "noisy": rows + noise, "bold": bold}.items():
            models[name] = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    clusters = rng.permutation(n) // 4
    return y, models, groups, rng.gamma(4.0, size=n), clusters


def made(y, models, groups, weights=None, clusters=None, *, hold=np.inf, **options):
    """A report on arrays, or on the same cases beyond what is held."""
    costs = options.pop("costs", None)
    given = given_cases(
        y, models, groups=groups, costs=costs and Costs(**costs), sample_weight=weights,
        cluster=clusters, cross_groups=False, human=None, extra_metrics={}, labels=None,
        pos_label=None, cases=None, random_state=0,
    )  # fmt: skip
    state = given.state
    if hold < np.inf:
        state = ScoreState(
            state.labels, list(state.models), state.groups, state.weighted, hold,
            pos_label=state.labels[-1] if state.is_binary else None,
        )  # fmt: skip
        state.add(joined(given.state.held))
    settings = Settings(costs=given.costs, **options)
    return Report.from_cases(state, settings, reread=given.reread, clustered=given.clustered)


def comparison(report, a, b, group, column=None):
    found = [
        part
        for part in report.group_comparisons
        if (part.a, part.b, part.group) == (a, b, group) and column in (None, part.column)
    ]
    assert len(found) == 1
    return found[0]


def literal_rows(values, own, weights, clusters):
    """What references take: the cases of a group with the values of two models."""
    first, second = values
    return [
        (
            first[place],
            second[place],
            1.0 if weights is None else weights[place],
            None if clusters is None else clusters[place],
        )
        for place in np.flatnonzero(own).tolist()
    ]


def check(test, expected, rel=1e-9):
    """Every field but the p-value to `rel` of the interval's width; that on its own scale."""
    width = expected["interval"][1] - expected["interval"][0]
    for name, value in expected.items():
        found = getattr(test, name)
        if name == "p_value":
            assert np.log(found) == pytest.approx(np.log(value), rel=20 * rel, abs=20 * rel)
        else:
            assert found == pytest.approx(value, rel=rel, abs=rel * width), name


PAIRS = [("good", "noisy"), ("good", "bold"), ("noisy", "bold")]


@pytest.mark.parametrize("hold", [np.inf, 0], ids=["held", "streamed"])
@pytest.mark.parametrize("clustered", [False, True], ids=["cases", "clusters"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_log_losses_are_those_of_literal_loops(n_classes, weighted, clustered, hold):
    y, models, groups, weights, clusters = drawn(n_classes)
    weights, clusters = weights if weighted else None, clusters if clustered else None
    report = made(y, models, groups, weights, clusters, hold=hold, calibrate=False)
    assert [(part.a, part.b) for part in report.group_comparisons[::3]] == PAIRS
    assert report.streamed == (hold == 0)
    losses = {
        name: [reference.loss(c, s) for c, s in zip(y.tolist(), p.tolist(), strict=True)]
        for name, p in models.items()
    }
    p_values = []
    for part in report.group_comparisons:
        own = groups == part.group
        rows = literal_rows((losses[part.a], losses[part.b]), own, weights, clusters)
        expected = reference.difference(rows, LEVEL)
        check(part.log_loss, expected)
        assert part.n == own.sum()
        assert part.calibrated_log_loss is None
        assert part.cost is None
        p_values.append(expected["p_value"])
    adjusted = [part.adjusted["log_loss"] for part in report.group_comparisons]
    assert adjusted == pytest.approx(reference.holm(p_values), rel=1e-8)
    assert len(set(adjusted)) > 2  # a test that tells groups apart


def calibrated_losses(y, models, weights):
    """Log-loss of every case after calibration, by the maps of the library, case by case."""
    labels = np.unique(y)
    state = ScoreState(labels, list(models), weighted=weights is not None, hold=np.inf)
    state.update(y, models, weights)
    cases, losses = joined(state.held), {}
    if labels.size > 2:
        fits = {name: fits_of_several(state, name, cases, 0) for name in models}
        chosen = chosen_for({name: part.candidates for name, part in fits.items()})
        for name, part in fits.items():
            scores = part.calibrated(chosen[name].method).scores
            rows = zip(y.tolist(), scores.tolist(), strict=True)
            losses[name] = [reference.loss(c, s) for c, s in rows]
        return losses
    bins = {name: part.bins for name, part in state.sums().models.items()}
    fits = {name: fits_of_two(state, name, bins[name], cases, 0) for name in models}
    chosen = chosen_for({name: part.candidates for name, part in fits.items()})
    for name, part in fits.items():
        found = part.calibrated(chosen[name])
        losses[name] = []
        for label, score in zip(y.tolist(), models[name].tolist(), strict=True):
            if chosen[name].method == "identity":
                losses[name].append(reference.loss(label, score))
                continue
            place = int(part.table.places(np.array([score]))[0])
            maps = zip(found.scores[:, place], found.shares[label, :, place], strict=True)
            losses[name].append(sum(share * reference.loss(label, p) for p, share in maps))
    return losses


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_calibrated_losses_are_those_of_literal_loops(n_classes, weighted):
    y, models, groups, weights, _ = drawn(n_classes)
    weights = weights if weighted else None
    report = made(y, models, groups, weights)
    losses = calibrated_losses(y, models, weights)
    p_values = []
    for part in report.group_comparisons:
        rows = literal_rows((losses[part.a], losses[part.b]), groups == part.group, weights, None)
        expected = reference.difference(rows, LEVEL)
        check(part.calibrated_log_loss, expected, rel=1e-8)
        p_values.append(expected["p_value"])
    adjusted = [part.adjusted["calibrated_log_loss"] for part in report.group_comparisons]
    assert adjusted == pytest.approx(reference.holm(p_values), rel=1e-7)


@pytest.mark.parametrize("hold", [np.inf, 0], ids=["held", "streamed"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("clustered", [False, True], ids=["cases", "clusters"])
@pytest.mark.slow
def test_a_group_of_all_cases_has_the_tests_of_all(
    n_classes, weighted, clustered, hold, monkeypatch
):
    y, models, _, weights, clusters = drawn(n_classes, 800)
    monkeypatch.setattr(state_module, "HOLD", 1500)  # a sample of several classes
    hold = hold if hold or n_classes == 2 else 1500
    costs = COSTS if n_classes == 2 else {"error_cost": 5.0, "review_cost": 0.8}
    own = weights if weighted else None, clusters if clustered else None
    report = made(y, models, np.full(y.size, "every"), *own, hold=hold, costs=costs)
    rel = 1e-8 if hold == np.inf else 2e-4  # bins move the tests of all cases a little
    for pair in report.comparisons:
        part = comparison(report, pair.a, pair.b, "every")
        for test, whole in (
            (part.log_loss, pair.raw.tests["log_loss"]),
            (part.calibrated_log_loss, pair.calibrated.tests["log_loss"]),
        ):
            for name in ("a", "b", "difference", "standard_error"):
                close = pytest.approx(getattr(whole, name), rel=rel, abs=rel * whole.standard_error)
                assert getattr(test, name) == close, name
            # A group is tested with more caution, the less so the more cases it has.
            assert test.interval.low < whole.interval.low
            assert test.interval.high > whole.interval.high
            assert test.p_value >= whole.p_value
        assert part.cost.too_few == pair.cost.test.too_few
        for name in ("a", "b", "difference", "effective"):
            value = getattr(pair.cost.test, name)
            assert getattr(part.cost, name) == pytest.approx(value, rel=1e-8, abs=1e-10), name
        if not part.cost.too_few:
            assert part.cost.p_value >= pair.cost.test.p_value


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_streamed_cases_have_the_costs_of_held_ones(n_classes, monkeypatch):
    y, models, groups, weights, _ = drawn(n_classes, 800)
    monkeypatch.setattr(state_module, "HOLD", 1500)
    prices = np.random.default_rng(5).uniform(1.0, 9.0, y.size)
    options = {"costs": {"error_cost": prices, "review_cost": 0.8}, "calibrate": n_classes == 3}
    reports = [
        made(y, models, groups, weights, hold=hold, **options)
        for hold in (np.inf, 0 if n_classes == 2 else 1500)
    ]
    for report in reports:  # groups average to the whole
        for pair in report.comparisons:
            parts = [comparison(report, pair.a, pair.b, name) for name in NAMES]
            own = [weights[groups == name].sum() for name in NAMES]
            for side in ("a", "b", "difference"):
                mean = np.average([getattr(part.cost, side) for part in parts], weights=own)
                assert mean == pytest.approx(getattr(pair.cost.test, side), rel=1e-8, abs=1e-10)


def few_scores(n=5000, seed=3):
    """Scores of so few values that all folds choose the same thresholds."""
    rng = np.random.default_rng(seed)
    truth = rng.choice([0.02, 0.4, 0.97], size=n, p=[0.4, 0.3, 0.3])
    y = (rng.random(n) < truth).astype(int)
    worse = np.where(rng.random(n) < 0.2, rng.permutation(truth), truth)
    return y, {"good": truth, "worse": worse}, np.array(list("pq"))[rng.integers(0, 2, n)]


@pytest.mark.parametrize("hold", [np.inf, 0], ids=["held", "streamed"])
@pytest.mark.parametrize("clustered", [False, True], ids=["cases", "clusters"])
def test_costs_are_those_of_literal_loops(clustered, hold):
    y, models, groups = few_scores()
    clusters = np.random.default_rng(6).permutation(y.size) // 5 if clustered else None
    report = made(y, models, groups, None, clusters, hold=hold, costs=COSTS, calibrate=False)
    paid = {}
    for model in report.models:
        lower, upper, costs = model.policy.lower, model.policy.upper, []
        for label, score in zip(y.tolist(), models[model.name].tolist(), strict=True):
            if lower <= score < upper:
                costs.append(COSTS["review_cost"])
            else:
                costs.append(COSTS["error_cost"][label][int(score >= upper)])
        paid[model.name] = costs
    both = paid["good"], paid["worse"]
    every = []
    for name in "pq":  # a cluster in two groups counts as two
        own = None if clusters is None else [f"{name} {cluster}" for cluster in clusters]
        every += literal_rows(both, groups == name, None, own)
    p_values = []
    for part in report.group_comparisons:
        rows = literal_rows((paid["good"], paid["worse"]), groups == part.group, None, clusters)
        expected = reference.cost_difference(rows, 0.975, every)
        check(part.cost, expected)
        p_values.append(expected["p_value"])
    adjusted = [part.adjusted["cost"] for part in report.group_comparisons]
    assert adjusted == pytest.approx(reference.holm(p_values), rel=1e-7)


def answers(n=900, seed=4, declining=True):
    """Answers of two models of different cases, some declined, whose values are missing there."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, skill in (("one", 0.2), ("two", 0.6)):
        sure = rng.uniform(0.05, 0.95, n)
        right = rng.random(n) < sure * (1.0 - skill) + 0.5 * skill
        declined = rng.random(n) < 0.3 if declining else None
        if declined is not None:
            sure = np.where(declined, 0.0, sure)
        found[name] = Answers(right, sure, declined)
    return found, rng.integers(0, 2, n), rng.gamma(2.0, size=n), rng.permutation(n) // 3


@pytest.mark.parametrize("hold", [np.inf, 0], ids=["held", "streamed"])
@pytest.mark.parametrize("clustered", [False, True], ids=["cases", "clusters"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("declining", [False, True], ids=["all", "declined"])
def test_answers_are_those_of_literal_loops(declining, weighted, clustered, hold):
    given, groups, weights, clusters = answers(declining=declining)
    weights, clusters = weights if weighted else None, clusters if clustered else None
    batch = OutcomeBatch(
        given,
        np.arange(groups.size),
        weights,
        groups[:, np.newaxis],
        None,
        clusters,
    )
    settings = Settings(costs=Costs(5.0, 1.0), calibrate=True)
    options = {"groups": {"g": ["p", "q"]}, "hold": hold, "weighted": weighted}
    report = report_on_outcomes(
        lambda: [batch.take(slice(0, 400)), batch.take(slice(400, None))],
        ["one", "two"],
        settings,
        clustered=clustered,
        **options,
    )
    losses = [
        [
            reference.loss(int(right), sure) if answered else None
            for right, sure, answered in zip(
                part.correct, part.confidence, part.answered, strict=True
            )
        ]
        for part in given.values()
    ]
    assert [part.group for part in report.group_comparisons] == ["p", "q"]
    for code, part in enumerate(report.group_comparisons):
        rows = literal_rows(losses, groups == code, weights, clusters)
        check(part.log_loss, reference.difference(rows, 0.975))
        assert part.n == (groups == code).sum()
    total = np.ones(groups.size) if weights is None else weights
    for side, model in (("a", report.models[0]), ("b", report.models[1])):
        # Costs of groups average to that of the policy, over declined cases, too.
        own = [total[groups == code].sum() for code in range(2)]
        costs = [getattr(part.cost, side) for part in report.group_comparisons]
        assert np.average(costs, weights=own) == pytest.approx(model.policy.cost, rel=1e-8)
        # Log-losses average over answers, before and after calibration.
        answered = given[model.name].answered * total
        own = [answered[groups == code].sum() for code in range(2)]
        for name, figures in (("log_loss", model.raw), ("calibrated_log_loss", model.calibrated)):
            parts = [getattr(getattr(part, name), side) for part in report.group_comparisons]
            value = figures.figures["log_loss"].value
            assert np.average(parts, weights=own) == pytest.approx(value, rel=1e-7)


def test_identical_models_have_no_test():
    y, models, groups, weights, _ = drawn(2)
    same = {"one": models["good"], "two": models["good"].copy()}
    for part in made(y, same, groups, weights, costs=COSTS).group_comparisons:
        for test in (part.log_loss, part.calibrated_log_loss, part.cost):
            assert test.difference == 0.0
            assert np.isnan(test.p_value)
    given, groups, weights, _ = answers()
    batch = OutcomeBatch(
        {"one": given["one"], "two": given["one"]}, np.arange(900), weights, groups[:, np.newaxis]
    )
    own = {"groups": {"g": ["p", "q"]}, "weighted": True}
    report = report_on_outcomes(lambda: [batch], ["one", "two"], Settings(), **own)
    for part in report.group_comparisons:
        assert part.log_loss.difference == 0.0
        assert np.isnan(part.log_loss.p_value)


def test_a_constant_difference_is_no_test():
    """Sums of large values that differ by the same are not mistaken for tests."""
    sums, values = GroupSums(1, ["a", "b"]), np.random.default_rng(0).normal(50.0, 1.0, 40_000)
    for part in np.array_split(values, 4):
        sums.add([np.zeros(part.size, int)], {"a": part, "b": part - 0.25}, None)
    assert sums.spreads("a", "b")[0].error == 0.0
    assert sums.means("a")[0] - sums.means("b")[0] == pytest.approx(0.25, rel=1e-12)


def test_sums_by_key_are_those_of_a_dictionary(monkeypatch):
    monkeypatch.setattr("fragility.report.group_sums._WAITING", 8)
    rng, sums, expected = np.random.default_rng(0), KeyedSums(2), {}
    assert not sums.known
    for size in (5, 30, 1, 60):
        keys, rows = rng.integers(0, 40, size) ** 5, rng.normal(size=(2, size))
        sums.add(keys, list(rows))
        for key, first, second in zip(keys.tolist(), *rows.tolist(), strict=True):
            before = expected.get(key, (0.0, 0.0))
            expected[key] = before[0] + first, before[1] + second
    keys, found = sums.totals()
    assert keys.tolist() == sorted(expected)
    assert np.allclose(found.T, [expected[key] for key in keys.tolist()], rtol=1e-12)


def test_small_and_empty_groups():
    y, models, groups, weights, _ = drawn(2)
    groups = groups.astype("<U6")
    groups[:3] = "tiny"
    y[:3] = 1
    groups[3] = "single"
    groups[4] = "void"
    weights[4] = 0.0
    report = made(y, models, groups, weights, costs=COSTS)
    tiny, single, void = (comparison(report, *PAIRS[0], g) for g in ("tiny", "single", "void"))
    assert tiny.too_small
    assert tiny.n == 3
    assert not np.isnan(tiny.log_loss.p_value)  # one class is enough for a loss
    assert single.log_loss.difference != 0.0
    assert np.isnan(single.log_loss.p_value)
    assert np.isnan(single.adjusted["log_loss"])
    assert (void.n, void.log_loss, void.cost, dict(void.adjusted)) == (0, None, None, {})
    assert not comparison(report, *PAIRS[0], "q").too_small
    for table in (loss_tables, cost_tables):
        (_, note, (_, rows)), *_ = table(report, full=True)
        shown = [row[0] for row in rows]
        assert "void *" not in shown
        assert set(shown[-6:]) == {"tiny *", "single *"}
        assert "too few to be compared" in note


def test_one_test_is_corrected_for_nothing():
    y, models, groups, *_ = drawn(2, 400)
    ((_, note, (_, rows)),) = loss_tables(made(y, models, groups[:1].repeat(400)), full=False)
    assert len(rows) == 3
    assert "all 3 tests (Holm)" in note
    two = dict(list(models.items())[:2])
    ((_, note, (_, rows)),) = loss_tables(made(y, two, groups[:1].repeat(400)), full=False)
    assert len(rows) == 1
    assert "Holm" not in note


@pytest.mark.slow
def test_tables_have_the_largest_difference_first_and_twelve_rows():
    y, models, groups, *_ = drawn(2, 2000)
    groups = np.char.add(groups, (np.arange(y.size) % 7).astype(str))
    report = made(y, models, groups, costs=COSTS)
    assert len(report.group_comparisons) == 63
    ((_, note, (head, rows)),) = loss_tables(report, full=False)
    assert len(rows) == MOST_ROWS == 12
    assert "51 more rows" in note
    assert "all 21 groups together (95 %, Bonferroni)" in note
    assert "all 63 tests (Holm)" in note
    (title, note, (_, every)), (_, _, (_, after)) = loss_tables(report, full=True)
    assert every[:12] == rows
    assert "more rows" not in note
    column = head.index("difference")
    sizes = [abs(float(row[column].replace("−", "-"))) for row in every]
    assert sizes == sorted(sizes, reverse=True)
    assert len(after) == 63
    worst = max(report.group_comparisons, key=lambda part: abs(part.log_loss.difference))
    assert rows[0][:2] == [worst.group, f"{worst.a} − {worst.b}"]
    assert title in report.to_markdown()
    assert title in report.to_text(full=True)
    assert title not in report.to_text()


def test_merged_states_say_that_they_compare_no_groups():
    y, models, groups, *_ = drawn(2)
    state = ScoreState([0, 1], list(models), {"site": list(NAMES)}, hold=0)
    state.update(y, models, groups=groups)
    report = Report.from_state(state)
    assert report.group_comparisons == ()
    assert any("no comparisons by group" in note for note in report.notes)
    held = ScoreState([0, 1], list(models), {"site": list(NAMES)})
    held.update(y, models, groups=groups)
    report = Report.from_state(held)
    assert len(report.group_comparisons) == 9
    assert not any("by group" in note for note in report.notes)
    given, places, *_ = answers(declining=False)
    states = [
        AnswerState(name, ["p", "q"]).update_answers(
            part.correct, part.confidence, groups=np.array(["p", "q"])[places]
        )
        for name, part in given.items()
    ]
    report = Report.from_state(states)
    assert report.group_comparisons == ()
    assert any("nor comparisons by group" in note for note in report.notes)


def test_data_has_the_comparisons():
    y, models, groups, *_ = drawn(2)
    report = made(y, models, groups, costs=COSTS)
    found = json.loads(report.to_json())["group_comparisons"]
    assert len(found) == 9
    first, part = found[0], report.group_comparisons[0]
    assert (first["a"], first["b"], first["column"], first["group"]) == (
        part.a, part.b, part.column, part.group,
    )  # fmt: skip
    assert first["n"] == part.n
    for name in ("log_loss", "calibrated_log_loss", "cost"):
        test = getattr(part, name)
        assert first[name]["difference"] == test.difference
        known = not np.isnan(test.p_value)
        assert first[name]["interval"] == (list(test.interval) if known else None)
        assert first[name]["adjusted_p_value"] == (part.adjusted[name] if known else None)
    frame = report.to_frame("group_comparisons")
    assert len(frame) == 27
    own = frame[(frame["a"] == part.a) & (frame["b"] == part.b) & (frame["group"] == part.group)]
    assert own.set_index("figure")["difference"]["cost"] == part.cost.difference
    alone = made(y, {"good": models["good"]}, groups)
    assert alone.group_comparisons == ()


@pytest.fixture
def file(tmp_path):
    y, models, groups, *_ = drawn(2, 900)
    path = tmp_path / "cases.csv"
    pd.DataFrame({"y": y, **models, "site": groups}).to_csv(path, index=False)
    return path


@pytest.mark.slow
def test_compare_honours_groups(file):
    own = ("compare", file, "--label", "y", "--score", "good", "--score", "noisy")
    ended = fragility(*own, "--group", "site")
    assert ended.code == 0, ended.err
    _, after = ended.out.split("Log-loss by group.")
    lines = after.strip().splitlines()
    assert "Differences: good less noisy." in lines[0]
    assert lines[2].split()[:2] == ["group", "cases"] or lines[1].split()[:2] == ["group", "cases"]
    assert any(line.startswith("q ") for line in lines[:4])  # where one is worse comes first
    full = fragility(*own, "--group", "site", "--full", "--json")
    assert "Log-loss by group after calibration." in full.err
    found = json.loads(full.out)["group_comparisons"]
    assert [part["group"] for part in found] == list(NAMES)
    assert found[1]["log_loss"]["difference"] < 0.0
    streamed = fragility(*own, "--group", "site", "--json", "--hold", "0", "--no-calibration")
    for part, other in zip(found, json.loads(streamed.out)["group_comparisons"], strict=True):
        for name in ("difference", "standard_error", "adjusted_p_value"):
            assert other["log_loss"][name] == pytest.approx(part["log_loss"][name], rel=1e-9)
    ended = fragility(*own, "--min-cell", "3")
    assert ended.code == 2
    assert "--min-cell is for groups" in ended.err


@pytest.mark.slow
def test_cost_honours_groups(file):
    own = ("cost", file, "--label", "y", "--error-cost", "0,1;5,0", "--review-cost", "0.3")
    both = (*own, "--score", "good", "--score", "noisy", "--group", "site")
    ended = fragility(*both, "--json")
    assert ended.code == 0, ended.err
    assert "Cost by group. Decided alone: by the policy chosen on all cases" in ended.err
    assert "Cost against cost by group. Differences: good less noisy, each at its" in ended.err
    found = json.loads(ended.out)
    assert [(part["model"], part["group"]) for part in found["groups"]] == [
        (model, group) for model in ("good", "noisy") for group in NAMES
    ]
    first = found["group_comparisons"][0]
    costs = [part["policy"]["cost"]["value"] for part in found["groups"] if part["group"] == "p"]
    assert [first["cost"]["a"], first["cost"]["b"]] == pytest.approx(costs, rel=1e-9)
    one = fragility(*own, "--score", "good", "--group", "site")
    assert "Cost by group." in one.out
    assert "Cost against cost" not in one.out
    plain = fragility(*own, "--score", "good", "--json")
    assert "Cost by group." not in plain.err
    assert json.loads(plain.out)["groups"] == []
