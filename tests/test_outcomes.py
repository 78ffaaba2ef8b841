"""Answers without classes: every figure against literal loops, on every path."""

from __future__ import annotations

import json
from math import inf, isnan, nan

import numpy as np
import pytest
from scipy.stats import beta, t

from fragility import AnswerState, Costs, Policy, Report, ScoreState
from fragility.calibration.choice import CalibrationChoice
from fragility.calibration.table import ScoreTable, TableFits
from fragility.report.answer_reading import OutcomeBatch
from fragility.report.answer_text import answer_table
from fragility.report.baseline_files import baseline_text, read_baseline
from fragility.report.baselines import Baseline
from fragility.report.gates import check_gates
from fragility.report.inputs import as_policy
from fragility.report.limits import Limits
from fragility.report.model_figures import Settings, model_figures
from fragility.report.outcomes import report_on_outcomes
from fragility.report.page_parts import verdict_numbers
from fragility.report.sum_views import CalibratedView
from fragility.scores.answers import check_answers
from fragility.scores.tally import Task

from .reference import gates
from .reference import outcomes as reference
from .test_one_state import close

MODELS = ("a", "b")
SEEDS = range(9)


class Problem:
    """Random answers of two models, with or without declined cases, weights, groups and costs."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = np.random.default_rng(seed)
        n = self.n = int(rng.integers(50, 110))
        kind = ("smooth", "rounded", "few", "saturated")[seed % 4]
        self.correct, self.confidence, self.declined = {}, {}, {}
        for name, power in zip(MODELS, (1.0, 2.0), strict=True):
            p = rng.beta(1.5, 1.0, n)
            correct = rng.random(n) < p**power
            if kind == "saturated":  # a confidence of 0 and of 1 occurs, wrong and right
                p = np.clip(np.round(1.4 * p - 0.2, 3), 0.0, 1.0)
            self.confidence[name] = {"rounded": p.round(2), "few": p.round(1)}.get(kind, p)
            correct[:4] = correct[-4:] = [True, False, True, False]
            self.correct[name] = correct
            self.declined[name] = rng.random(n) < (0.0 if seed % 3 == 0 else 0.15)
            self.declined[name][:4] = self.declined[name][-4:] = False
        self.weights = None
        if seed % 3 == 1:
            whole = rng.integers(0, 4, n).astype(float)
            self.weights = whole if seed % 2 else rng.gamma(1.0, size=n)
            self.weights[:4] = self.weights[-4:] = 1.0
        self.groups = rng.choice(["north", "south"], n) if seed % 2 else None
        self.by_case = rng.gamma(1.0, 6.0, n).round(3) if seed % 4 == 2 else None
        self.costs = None
        if seed % 4:
            capacity = 0.3 if seed % 5 == 0 else None
            error_cost = None if self.by_case is not None else 4.0
            self.costs = Costs(error_cost, 1.0, capacity, 0.05)
        self.policy = {"rule": ("auto", "tuned", "expected_cost", "confidence")[seed % 4]}
        self.confident = (0.9, 0.8, 0.3, 0.95)[seed % 4]

    def answers(self, model: str):
        return reference.answered(
            self.correct[model], self.confidence[model], self.declined[model], self.weights
        )

    def taken(self, part, rows):
        return None if part is None else part[rows]

    # The paths.

    def in_memory(self, models=MODELS, order=None, **options) -> Report:
        rows = np.arange(self.n) if order is None else order
        costs = self.costs
        if costs is not None and self.by_case is not None:
            costs = Costs(self.by_case[rows], 1.0, costs.capacity, 0.05)
        return Report.from_outcomes(
            {name: self.correct[name][rows] for name in models},
            {name: self.confidence[name][rows] for name in models},
            declined={name: self.declined[name][rows] for name in models},
            groups=self.taken(self.groups, rows),
            costs=costs,
            policy=None if costs is None else self.policy,
            sample_weight=self.taken(self.weights, rows),
            cases=[f"row {row + 1}" for row in rows],
            n_worst=5,
            confident=self.confident,
            **options,
        )

    def batches(self, order) -> list[OutcomeBatch]:
        codes = None
        if self.groups is not None:
            codes = (self.groups == "south").astype(np.int64)
        found = []
        for rows in np.array_split(order, 3):
            answers = {
                name: check_answers(
                    self.correct[name][rows], self.confidence[name][rows], self.declined[name][rows]
                )
                for name in MODELS
            }
            groups = None if codes is None else codes[rows][:, np.newaxis]
            weights, costs = self.taken(self.weights, rows), self.taken(self.by_case, rows)
            found.append(OutcomeBatch(answers, rows, weights, groups, costs))
        return found

    def streamed(self, order, hold: float) -> Report:
        batches, readings = self.batches(order), []

        def read():
            readings.append(1)
            return iter(batches)

        report = report_on_outcomes(
            read,
            MODELS,
            Settings(
                costs=self.costs,
                n_worst=5,
                policy=as_policy(None if self.costs is None else self.policy),
                confident=self.confident,
            ),
            groups=None if self.groups is None else {"group": ("north", "south")},
            weighted=self.weights is not None,
            name_cases=lambda chosen: {row: f"row {row + 1}" for row in chosen},
            hold=hold,
        )
        assert (len(readings) == 1) == (hold == inf)  # what is held is not read again
        return report

    def state(self, model: str, hold: float) -> AnswerState:
        """Random parts, written, read and merged in random order."""
        parts = []
        for rows in np.array_split(self.rng.permutation(self.n), 4):
            groups = () if self.groups is None else ("north", "south")
            state = AnswerState(model, groups, self.weights is not None, hold)
            state.update_answers(
                self.correct[model][rows],
                np.where(self.declined[model], nan, self.confidence[model])[rows],
                self.declined[model][rows],
                sample_weight=self.taken(self.weights, rows),
                groups=self.taken(self.groups, rows),
                case_costs=self.taken(self.by_case, rows),
            )
            read = ScoreState.from_bytes(state.to_bytes())
            assert isinstance(read, AnswerState)
            assert read.to_bytes() == state.to_bytes()
            parts.append(read)
        while len(parts) > 1:
            self.rng.shuffle(parts)
            last, *parts = parts
            parts[0] = parts[0].merge(last)
        return parts[0]

    def from_states(self, models, hold: float) -> Report:
        return Report.from_state(
            [self.state(name, hold) for name in models],
            self.costs,
            policy=None if self.costs is None else self.policy,
            confident=self.confident,
        )


FIGURES = {
    name: getattr(reference, name)
    for name in ("accuracy", "fragility_index", "ratio", "auc", "log_loss", "brier", "aurc")
}


@pytest.mark.parametrize("seed", SEEDS)
def test_figures_are_those_of_loops(seed):
    problem = Problem(seed)
    report = problem.in_memory(calibrate=False)
    grid = Task(2, answers=True).thresholds
    assert grid[0] == 0.0
    assert grid[1] < 0.01
    for model in report.models:
        answers = problem.answers(model.name)
        found = model.raw.figures
        for name, figure in FIGURES.items():
            assert found[name].value == pytest.approx(figure(answers), rel=1e-9, abs=1e-12), name
        level = reference.confident_error_rate(answers, problem.confident)
        assert found["confident_error_rate"].value == pytest.approx(level, abs=1e-12)
        reviewed, errors = reference.decisions(answers, grid.tolist())
        np.testing.assert_allclose(model.raw.decisions.reviewed, reviewed, atol=1e-9)
        np.testing.assert_allclose(model.raw.decisions.errors, errors, atol=1e-9)
        assert model.raw.decisions.false_negatives is None
        counts = model.answers
        weight = np.ones(problem.n) if problem.weights is None else problem.weights
        left_out = problem.declined[model.name]
        assert counts.right == sum(right for right, _, _ in answers)
        assert counts.wrong == len(answers) - counts.right
        assert counts.declined == np.count_nonzero(left_out & (weight > 0.0))
        assert counts.declined_share == pytest.approx(weight[left_out].sum() / weight.sum())
        assert report.n_samples == np.count_nonzero(weight)


def test_the_confidence_is_never_one_minus_itself():
    """A file of answers, read as one of two classes, has another AURC and other errors."""
    rng = np.random.default_rng(3)
    p = rng.random(400)
    correct = rng.random(400) < 0.5
    (found,) = Report.from_outcomes(correct, p, calibrate=False).models
    (read,) = Report.from_predictions(correct, p, calibrate=False).models
    answers = reference.answered(correct, p)
    assert found.raw.figures["aurc"].value == pytest.approx(reference.aurc(answers))
    assert abs(read.raw.figures["aurc"].value - found.raw.figures["aurc"].value) > 0.002
    sure = float(np.mean(~correct & (p > 0.9)))
    assert found.raw.figures["confident_error_rate"].value == pytest.approx(sure)
    assert read.raw.figures["confident_error_rate"].value > sure


@pytest.mark.parametrize("seed", [1, 2])
def test_calibrated_answers_still_claim_to_be_right(seed):
    """Cases of a class and score are under several maps: as many answers, of smaller weights."""
    problem = Problem(seed)
    state = problem.state("a", inf)
    table = ScoreTable.of_cases(state.labelled("a", state.cases()), None)
    found = TableFits(table, 1, state.labels).calibrated(CalibrationChoice("platt"))
    view = CalibratedView(table, 1, state.support, found, answers=True)
    view.confident = problem.confident
    figures = model_figures(view, Settings(confident=problem.confident), {}).figures
    weights = table.amounts["weight"]
    answers = [
        (bool(code), float(found.scores[k, place]), float(share * weights[code, place]))
        for (code, k, place), share in np.ndenumerate(found.shares)
        if share * weights[code, place] > 0.0
    ]
    low = min(p for _, p, _ in answers)
    assert low < 0.5  # or nothing would tell a confidence from one minus it
    for name in ("accuracy", "auc", "aurc", "brier"):
        assert figures[name].value == pytest.approx(FIGURES[name](answers), rel=1e-9), name
    level = reference.confident_error_rate(answers, problem.confident)
    assert figures["confident_error_rate"].value == pytest.approx(level, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_path_has_the_same_figures(seed):
    problem = Problem(seed)
    exact = problem.in_memory()
    order = problem.rng.permutation(problem.n)
    for hold in (inf, 0.0):
        other = problem.streamed(order, hold)
        assert other.streamed == (hold == 0.0)
        close(exact, other)
        for one, two in zip(exact.models, other.models, strict=True):
            assert vars(one.answers) == pytest.approx(vars(two.answers))
    close(exact, problem.in_memory(order=order), worst=False)
    single = problem.in_memory(["a"])
    for hold in (inf, 0.0):
        merged = problem.from_states(["a"], hold)
        close(single, merged, worst=False)
        assert merged.models[0].answers.declined == single.models[0].answers.declined
    both = problem.from_states(MODELS, 0.0)
    assert not both.comparisons
    assert any("no paired tests" in note for note in both.notes)


def close_sets(confidence, declined, found, expected):
    """Two thresholds give the same answers."""
    seen = confidence[~declined]
    assert sorted(seen[seen >= found]) == sorted(seen[seen >= expected])


@pytest.mark.parametrize("capacity", [None, 0.5, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_the_tuned_policy_is_the_cheapest_threshold(seed, capacity):
    problem = Problem(4 * seed + 1)  # rounded, so that every bin has one score
    weights = None if problem.weights is None else problem.weights.tolist()
    costs = {"error_cost": 2.5, "review": 1.0, "reviewer_error": 0.05}
    report = Report.from_outcomes(
        problem.correct,
        problem.confidence,
        declined=problem.declined,
        sample_weight=weights,
        costs=Costs(2.5, 1.0, capacity, 0.05),
        policy={"rule": "tuned"},
    )
    for model in report.models:
        policy, name = model.policy, model.name
        correct, p, declined = (
            problem.correct[name],
            problem.confidence[name],
            problem.declined[name],
        )
        threshold, _, passed_on = reference.best_threshold(
            correct, p, declined, weights, costs, capacity
        )
        total = problem.n if weights is None else sum(weights)
        assert policy.lower == 0.0
        close_sets(p, declined, policy.upper, threshold)
        assert policy.automation_rate == pytest.approx(1.0 - float(passed_on) / total)
        most = inf if capacity is None else capacity
        assert policy.within_capacity == (float(passed_on) / total <= most + 1e-9)
        # What others chose costs what is decided: given, passed on, declined.
        assert model.confusion[:, 0].tolist() == [0.0, 0.0]
        given, wrong = model.confusion[:, 1].sum(), model.confusion[0, 1]
        cost = (2.5 * wrong + (1.0 + 0.05 * 2.5) * (total - given)) / total
        assert policy.cost == pytest.approx(cost)
        assert policy.error_share == pytest.approx(wrong / total)
        assert policy.error_rate == pytest.approx(wrong / given, nan_ok=True)
        everything = reference.costs_at(0.0, correct, p, declined, weights, **costs)[0]
        assert policy.cost_without_review == pytest.approx(float(everything) / total)
        assert policy.cost_review_all == pytest.approx(1.0 + 0.05 * 2.5)
        assert isnan(policy.misses)
        assert isnan(policy.false_alarms)


def test_declined_cases_cost_a_review_by_case():
    rng = np.random.default_rng(0)
    n, p = 300, np.random.default_rng(1).random(300).round(2)
    correct, declined = rng.random(n) < p, rng.random(n) < 0.2
    price = rng.gamma(1.0, 5.0, n)
    report = Report.from_outcomes(
        correct,
        np.where(declined, nan, p),
        declined=declined,
        costs={"error_cost": price, "review_cost": 0.0, "reviewer_error": 0.5},
        policy={"rule": "tuned"},
    )
    policy = report.models[0].policy
    everything = 0.5 * price[declined].sum() + price[~declined & ~correct].sum()
    assert policy.cost_without_review == pytest.approx(everything / n)
    assert policy.cost_review_all == pytest.approx(0.5 * price.mean())
    assert policy.n_samples == n


@pytest.mark.parametrize("clustered", [False, True])
def test_the_interval_of_the_cost_counts_declined_cases(clustered):
    """Every answer is given, whoever chooses: the cost is a mean of known numbers."""
    rng = np.random.default_rng(5)
    n = 400
    cluster = rng.integers(0, 60, n)
    often = rng.random(61)[cluster]  # clusters differ in what is declined
    correct, p, declined = rng.random(n) < 0.5, rng.random(n), rng.random(n) < 0.6 * often
    cluster[:3], declined[:3] = 60, True  # a cluster without any answer
    report = Report.from_outcomes(
        correct,
        p,
        declined=declined,
        cluster=cluster if clustered else None,
        costs={"error_cost": 0.5, "review_cost": 1.0},
        policy={"rule": "tuned"},
    )
    policy = report.models[0].policy
    assert policy.upper == 0.0
    paid = np.where(declined, 1.0, np.where(correct, 0.0, 0.5))
    units, error = n, paid.std(ddof=1) / np.sqrt(n)
    if clustered:
        sums = np.bincount(cluster, paid - paid.mean())
        units, error = sums.size, np.sqrt((sums @ sums) * sums.size / (sums.size - 1)) / n
    reach = t.ppf(0.975, units - 1) * error
    assert policy.cost == pytest.approx(paid.mean())
    assert policy.cost_interval.high - policy.cost == pytest.approx(reach, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_a_guaranteed_share_counts_all_cases(seed):
    rng = np.random.default_rng(seed)
    n, share = 1000, 0.05
    p = rng.random(n).round(3)
    correct, declined = rng.random(n) < p, rng.random(n) < 0.4
    report = Report.from_outcomes(
        correct,
        p,
        declined=declined,
        costs={"error_cost": 0.01, "review_cost": 1.0},  # as many answers as the limit allows
        policy={"max_error_share": share, "rule": "tuned"},
    )
    policy = report.models[0].policy
    most = reference.allowed_errors(n, share, 0.05)
    assert reference.allowed_errors(int(n - declined.sum()), share, 0.05) < most - 5
    given = ~declined & (p >= policy.upper)
    wrong = np.count_nonzero(given & ~correct)
    # Each fold has a map of the others: the order along the path differs by a case or two.
    assert most - 3 <= wrong <= most + 1
    assert policy.guaranteed
    assert "Guaranteed with 95 % probability: errors of the model, of all cases" in str(
        policy.sentences()
    )


def test_a_guaranteed_rate_needs_answers_not_declined_cases():
    """Declined cases are no evidence that answers are right."""
    rng = np.random.default_rng(0)
    correct = np.concatenate([rng.random(30) < 0.9, np.zeros(2000, dtype=bool)])
    correct[:2] = True, False
    declined = np.arange(2030) >= 30
    report = Report.from_outcomes(
        correct,
        rng.random(2030),
        declined=declined,
        costs={"error_cost": 0.1, "review_cost": 1.0},
        policy={"max_error_rate": 0.05},
    )
    policy = report.models[0].policy
    assert not policy.guaranteed
    assert policy.automation_rate == 0.0
    assert "Pass every case on" in policy.sentences()[0]


def test_policies_of_answers_are_written_and_read():
    problem = Problem(1)
    policy = problem.in_memory().models[0].policy
    assert policy.sentences()[0].startswith("Answer alone from a confidence of ")
    assert "pass on the rest" in policy.sentences()[0]
    read = Policy.from_dict(json.loads(policy.to_json()))
    assert read.answers
    assert read.to_dict() == policy.to_dict()
    made = read.decide([0.0, policy.upper - 1e-6, policy.upper, 1.0])
    assert made.label.tolist() == ["right"] * 4
    assert made.automate.tolist() == [False, False, True, True]
    wrong = policy.to_dict()
    wrong["decision"]["lower"] = wrong["decision"]["suggestion"] = 0.1
    with pytest.raises(ValueError, match="lower threshold of 0"):
        Policy.from_dict(wrong)
    wrong = policy.to_dict() | {"answers": 1}
    with pytest.raises(ValueError, match="answers must be true or false"):
        Policy.from_dict(wrong)


@pytest.mark.parametrize(("seed", "clustered"), [(1, False), (2, False), (2, True)])
def test_paired_tests_are_over_all_cases(seed, clustered):
    problem = Problem(seed)
    clusters = problem.rng.integers(0, 20, problem.n) if clustered else None
    report = problem.in_memory(cluster=clusters, calibrate=False)
    (pair,) = report.comparisons
    weights = problem.weights
    carrying = np.ones(problem.n, bool) if weights is None else weights > 0.0
    for name in ("accuracy", "auc", "log_loss", "brier", "aurc"):
        change = np.zeros(problem.n)
        for sign, model in ((1.0, "a"), (-1.0, "b")):
            own = carrying & ~problem.declined[model]
            change[own] += sign * np.array(reference.moves(FIGURES[name], problem.answers(model)))
        error = reference.error_of_difference(
            change[carrying],
            None if weights is None else weights[carrying].tolist(),
            None if clusters is None else clusters[carrying].tolist(),
        )
        assert pair.raw.tests[name].standard_error == pytest.approx(error, rel=1e-4), name
        found = [model.raw.figures[name].value for model in report.models]
        assert pair.raw.tests[name].difference == pytest.approx(found[0] - found[1])


def test_the_accuracy_has_the_limits_of_a_share():
    correct = np.arange(50) < 40
    report = Report.from_outcomes(correct, np.linspace(0.99, 0.2, 50))
    found = report.models[0].raw.figures["accuracy"]
    assert found.interval.low == pytest.approx(beta.ppf(0.025, 40, 11), rel=0.02)
    assert found.interval.high == pytest.approx(beta.ppf(0.975, 41, 10), rel=0.02)
    assert next(iter(report.models[0].raw.figures)) == "accuracy"
    assert report.models[0].calibrated.figures["accuracy"].value == pytest.approx(0.8)


def test_words_are_of_answers():
    problem = Problem(5)
    report = problem.in_memory()
    shown = report.to_text(full=True) + report.to_markdown(full=True)
    for nonsense in ("positives", "decide right", "decide wrong", "true right", "| truth"):
        assert nonsense not in shown, nonsense
    assert "answer alone from" in shown
    assert "answers right" in shown
    assert " declined (" in shown
    found = json.loads(report.to_json())
    assert found["classes"] == [{"label": "wrong", "n": None}, {"label": "right", "n": None}]
    counts = found["models"][0]["answers"]
    assert counts["right"] + counts["wrong"] + counts["declined"] == found["n_samples"]
    assert set(report.to_frame("comparisons").figure) >= {"accuracy", "fragility_index"}
    page = report.to_html()
    assert "false negatives" not in page.lower()
    assert "A miss costs" not in page
    assert "count as reviewed, whatever the threshold" in page


def test_pages_count_declined_cases_as_reviewed():
    from fragility.report.page_data import page_data

    problem = Problem(5)
    found = page_data(problem.in_memory())
    assert found["kind"] == "answers"
    assert found["total"] == problem.n
    for model, name in zip(found["models"], MODELS, strict=True):
        left_out = int(problem.declined[name].sum())
        assert model["cells"]["declined"] == left_out
        assert left_out + np.sum(model["cells"]["wrong"]) == problem.n


def test_answers_are_held_to_a_baseline_of_answers(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    correct = rng.random(300) < p
    report = Report.from_outcomes(correct, p, costs={"error_cost": 5.0})
    path = tmp_path / "baseline.json"
    path.write_text(baseline_text(Baseline.of(report)))
    baseline = read_baseline(str(path))
    assert all(check.passed for check in check_gates(report, baseline=baseline))
    worse = Report.from_outcomes(correct, 1.0 - p, costs={"error_cost": 5.0})
    failed = [c.figure for c in check_gates(worse, baseline=baseline) if not c.passed]
    assert "log_loss" in failed
    both = Report.from_outcomes(correct, {"old": p, "new": 1.0 - p})
    checks = check_gates(both, against="old")
    assert {check.model for check in checks if not check.passed} == {"new"}
    classes = Report.from_predictions(
        np.where(correct, "right", "wrong"), p, pos_label="right", costs={"error_cost": 5.0}
    )
    with pytest.raises(ValueError, match="what is measured there: answers, right or wrong"):
        check_gates(classes, baseline=baseline)


def test_answers_that_are_wrong_more_often_fail_however_well_the_model_knows_it(tmp_path):
    rng = np.random.default_rng(2)
    n, sure = 1500, rng.uniform(0.8, 1.0, 1500)
    old, new = rng.random(n) < sure, rng.random(n) < 0.5
    knows = np.where(new, 0.97, 0.03) + rng.uniform(-0.03, 0.03, n)
    knows[:2], new[:2] = 0.5, [True, False]
    report = Report.from_outcomes({"old": old, "new": new}, {"old": sure, "new": knows})
    assert report.verdict.model == "old"
    wrong, *others = check_gates(report, against="old")
    assert {part.figure for part in others} >= {"log_loss"}
    assert all(part.passed for part in others)
    assert (wrong.figure, wrong.passed, wrong.title) == ("wrong_answers", False, "share wrong")
    assert wrong.value == pytest.approx(np.mean(~new))
    # Two shares of the level, as log-loss has after calibration; all others have one.
    lost = [(~part).astype(float).tolist() for part in (new, old)]
    expected = gates.paired_limit(*lost, 0.05 * 2 / (3 + len(others)), 0.01)
    assert wrong.limit == pytest.approx(expected, rel=1e-6)
    (held,) = [c for c in check_gates(report, against="old", margin=0.1) if "margin" in c.source]
    assert (held.figure, held.passed) == ("wrong_answers", False)
    (held,) = [c for c in check_gates(report, against="old", margin=0.5) if "margin" in c.source]
    assert held.passed
    # The same on other cases.
    path = tmp_path / "baseline.json"
    path.write_text(baseline_text(Baseline.of(report, without="new")))
    held = check_gates(report, against="old", baseline=read_baseline(str(path)))
    content = json.loads(path.read_text())
    content["models"][0]["raw"]["wrong_answers"]["value"] = 1.5
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"share wrong cannot be 1\.5"):
        read_baseline(str(path))
    failed = {(part.figure, part.source) for part in held if not part.passed}
    assert failed == {("wrong_answers", "against old"), ("wrong_answers", "baseline")}
    # And as a limit.
    (limited,) = check_gates(Report.from_outcomes(new, knows), Limits({"wrong_answers": 0.2}))
    assert (limited.value, limited.passed) == (pytest.approx(np.mean(~new)), False)


def test_one_array_of_outcomes_holds_for_every_model():
    rng = np.random.default_rng(0)
    correct = rng.random(80) < 0.6
    sure = {"a": rng.random(80), "b": rng.random(80)}
    report = Report.from_outcomes(correct, sure, calibrate=False)
    apart = Report.from_outcomes({"a": correct, "b": correct}, sure, calibrate=False)
    assert report.to_json() == apart.to_json()
    assert [model.answers.right for model in report.models] == [int(correct.sum())] * 2


GOOD = ([1, 0, 1, 0], [0.9, 0.2, 0.8, 0.6])


@pytest.mark.parametrize(
    ("correct", "confidence", "declined", "told"),
    [
        ([1, 0, 0.5, 0], GOOD[1], None, "it is 0.5 in 1 of 4 rows.*Partial credit must be rounded"),
        (["yes", "no", "yes", "no"], GOOD[1], None, "correct must hold numbers.*text"),
        ([1, 0, nan, 0], GOOD[1], None, "correct has missing values in 1 of 4 rows.*declined"),
        (GOOD[0], [90, 20, 80, 60], None, "from 0 to 1; it is 90 in 4 of 4 rows.*per cent"),
        (GOOD[0], [-0.1, 0.2, 0.8, 0.6], None, "from 0 to 1; it is -0.1 in 1 of 4"),
        (GOOD[0], [0.9, None, 0.8, 0.6], None, "confidence has missing values in 1 of 4 rows"),
        (GOOD[0], GOOD[1][:3], None, "correct has 4 entries but confidence has 3"),
        (GOOD[0], GOOD[1], [0, 1], "correct has 4 entries but declined has 2"),
        (GOOD[0], GOOD[1], [0, 2, 0, 0], "declined must be true or false.*it is 2 in 1 of 4"),
        ([1, 1, 1, 1], GOOD[1], None, "all 4 answers are right. The report measures how"),
        ([0, 0, 0, 0], GOOD[1], None, "all 4 answers are wrong"),
        ([1], [0.9], None, "its only answer is right"),
        (GOOD[0], GOOD[1], [1, 1, 1, 1], "declined all 4 cases"),
        ([], [], None, "correct is empty"),
        (np.ones((4, 2)), GOOD[1], None, r"correct has shape \(4, 2\); give one entry"),
        ({"a": GOOD[0]}, {"b": GOOD[1]}, None, "correct is of 'a', but the confidences are of 'b'"),
        (GOOD[0], {"a": GOOD[1]}, {"b": GOOD[0]}, "declined is of 'b', but the confidences"),
        (GOOD[0], {}, None, "confidences is empty"),
    ],
)
def test_bad_answers_are_refused_in_a_sentence(correct, confidence, declined, told):
    with pytest.raises(ValueError, match=told):
        Report.from_outcomes(correct, confidence, declined=declined)


def test_models_of_other_cases_are_refused():
    with pytest.raises(ValueError, match="different numbers of cases \\('a': 4, 'b': 2\\)"):
        Report.from_outcomes({"a": GOOD[0], "b": [1, 0]}, {"a": GOOD[1], "b": [0.9, 0.1]})


@pytest.mark.parametrize(
    ("costs", "policy", "told"),
    [
        ({"error_cost": [[0, 1], [5, 0]]}, None, "a matrix of classes; answers are right or wrong"),
        ({"error_cost": 5}, {"max_misses": 0.1}, "max_misses is for two classes; answers are"),
        ({"error_cost": 5}, {"max_false_alarms": 0.1}, "use max_error_share or max_error_rate"),
        (None, {"rule": "tuned"}, "policy says nothing without costs"),
    ],
)
def test_costs_and_limits_of_classes_are_refused(costs, policy, told):
    with pytest.raises(ValueError, match=told):
        Report.from_outcomes(*GOOD, costs=costs, policy=policy)


def test_a_level_between_thresholds_is_refused():
    assert Report.from_outcomes(*GOOD, confident=0.2, calibrate=False).confident == 0.2
    with pytest.raises(ValueError, match=r"from 0\.005 to 0\.9999"):
        Report.from_outcomes(*GOOD, confident=0.2001)


def test_states_of_answers_merge_with_their_like_only():
    state = AnswerState("m")
    with pytest.raises(ValueError, match="differ in whether cases are answers"):
        state.merge(ScoreState(["wrong", "right"], ["m"]))
    with pytest.raises(ValueError, match="differ in models"):
        state.merge(AnswerState("other"))
    with pytest.raises(ValueError, match="no case of positive weight"):
        Report.from_state(state)
    with pytest.raises(ValueError, match="without weighted=True"):
        state.update_answers(*GOOD, sample_weight=[1, 1, 1, 1])
    state.update_answers(*GOOD, declined=[0, 0, 0, 1], case_costs=[1, 2, 3, 4])
    before = state.to_bytes()
    with pytest.raises(ValueError, match="Some cases have costs of their own, but not all"):
        state.update_answers(*GOOD, declined=[1, 1, 1, 1])
    with pytest.raises(ValueError, match="correct must be true or false"):
        state.update_answers([2, 0], [0.1, 0.2], case_costs=[1, 1])
    assert state.to_bytes() == before
    assert state.declined == {
        "number": 1.0,
        "weight": 1.0,
        "squares": 1.0,
        "costs": 4.0,
        "cost_squares": 16.0,
    }


def test_states_of_different_cases_are_not_one_report():
    one, two = AnswerState("a"), AnswerState("b")
    one.update_answers(*GOOD)
    two.update_answers(*GOOD, declined=[0, 0, 0, 1]).update_answers([1], [0.5])
    with pytest.raises(ValueError, match="different numbers of cases \\('a': 4, 'b': 5"):
        Report.from_state([one, two])
    with pytest.raises(ValueError, match="merge states of the same model first"):
        Report.from_state([one, one])
    with pytest.raises(ValueError, match="an AnswerState for each model"):
        Report.from_state([one, ScoreState([0, 1], ["c"])])


def test_merging_weights_keeps_declined_cases():
    plain, weighted = AnswerState("m"), AnswerState("m", weighted=True)
    plain.update_answers(*GOOD, declined=[0, 0, 0, 1])
    weighted.update_answers(*GOOD, declined=[0, 0, 1, 0], sample_weight=[1, 1, 0.5, 1])
    merged = plain.merge(weighted)
    assert merged.declined == {"number": 2.0, "weight": 1.5, "squares": 1.25}
    assert ScoreState.from_bytes(merged.to_bytes()).to_bytes() == merged.to_bytes()


def test_a_model_that_is_not_surer_when_right():
    correct = np.arange(60) % 2 == 0
    report = Report.from_outcomes(correct, np.where(correct, 0.3, 0.6), costs={"error_cost": 5.0})
    (found,) = [finding.text for finding in report.findings]
    assert "is surer of its wrong answers than of its right ones, AUC 0.000" in found
    policy = report.models[0].policy
    assert "Is it the probability of being right?" in " ".join(policy.sentences())
    assert policy.upper in (0.0, inf)


def test_words_count_answers_where_cases_were_declined():
    correct, confidence = np.arange(40) % 4 > 0, np.linspace(0.5, 1.0, 40)
    declined = np.arange(40) % 5 == 4
    report = Report.from_outcomes(correct, confidence, declined=declined)
    shown = report.to_markdown(full=True)
    # 12 of the 32 answers are above 0.8, as 16 of the 40 cases are.
    assert "| confidence | of all answers |" in shown
    assert f"| above 80.0 % | {100 * np.mean(confidence[~declined] > 0.8):.1f} % |" in shown
    assert "share of the answers that are wrong above 90 % confidence" in shown


def test_models_that_are_no_surer_when_right():
    correct, good = np.arange(40) % 4 > 0, np.linspace(0.3, 0.9, 40)
    good[correct] += 0.1
    bad = 1.0 - good
    alone = Report.from_outcomes(correct, {"bad": bad})
    assert alone.verdict.sentences == (
        "None is to be used: the model is no surer of right answers than of wrong ones (bad).",
    )
    both = Report.from_outcomes(correct, {"bad": bad, "worse": 1.0 - good**2}).verdict.sentences
    assert "the models are no surer of right answers than of wrong ones" in both[0]
    one = Report.from_outcomes(correct, {"bad": bad, "good": good}).verdict.sentences
    assert "bad is left out: it is no surer of right answers than of wrong ones." in one


def test_more_right_answers_are_a_share_of_the_cases():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    right = {"a": rng.random(400) < 0.4 + 0.2 * p, "b": rng.random(400) < 0.7 + 0.2 * p}
    told = Report.from_outcomes(right, {"a": p, "b": p}).verdict.sentences[1]
    more = 100 * (right["b"].mean() - right["a"].mean())
    assert told.startswith(f"It is right in {more:.1f} % of the cases more than a, the next best")


def test_merged_states_say_that_shared_mistakes_are_not_known():
    states = [
        AnswerState(name).update_answers([0, 0, 1, 1, 1], [0.95, 0.2, 0.9, 0.3, 0.8])
        for name in MODELS
    ]
    report = Report.from_state(states)
    assert report.shared_mistakes == ()
    assert any("nor a list of what all models get wrong" in note for note in report.notes)


def test_a_policy_that_answers_nothing_alone_has_no_errors_of_its_own():
    k = np.arange(60)
    correct, confidence = k % 3 > 0, (0.3 + 0.6 * (k * 7 % 11) / 11).round(3)
    report = Report.from_outcomes(correct, confidence, costs={"error_cost": 3.0})
    policy = report.models[0].policy
    assert policy.automation_rate == 0.0
    assert policy.error_rate > 0.5  # of policies that other cases chose
    assert "are wrong (on new cases)" not in report.to_text(full=True)
    assert "| wrong of these | – |" in report.to_markdown()
    assert "of these" not in str(policy)
    assert [n.value for n in verdict_numbers(report) if n.title == "wrong of these"] == ["–"]
    rows = dict(row[:2] for row in answer_table(report)[1])
    assert (rows["answered alone"], rows["wrong of these"]) == ("0.0 %", "–")


def test_missing_values_of_any_library_may_be_declined():
    pandas = pytest.importorskip("pandas")
    declined = np.arange(12) % 4 == 3
    correct = pandas.Series(np.arange(12) % 3 > 0).astype("boolean")
    confidence = pandas.Series(np.linspace(0.1, 0.9, 12)).astype("Float64")
    correct[declined], confidence[declined] = pandas.NA, pandas.NA
    found = Report.from_outcomes(correct, confidence, declined=declined, calibrate=False)
    assert found.models[0].answers.declined == 3
    with pytest.raises(ValueError, match=r"correct has missing values in 3 of 12 rows"):
        Report.from_outcomes(correct, confidence)
    with pytest.raises(ValueError, match=r"declined must be true or false.* it is nan in 3 of 12"):
        Report.from_outcomes(correct.fillna(True), 0.5 + 0 * np.arange(12), declined=correct)


def test_reviewers_may_err_by_kind_of_answer():
    rng = np.random.default_rng(3)
    p = rng.random(200)
    correct = rng.random(200) < p
    policies = [
        Report.from_outcomes(
            correct, p, costs={"error_cost": 5.0, "reviewer_error": reviewer_error}
        )
        .models[0]
        .policy
        for reviewer_error in ({"right": 0.1, "wrong": 0.3}, [0.3, 0.1])
    ]
    assert policies[0].to_dict() == policies[1].to_dict()
    # A right review costs itself, a wrong one the error, too.
    full = 1.0 + 5.0 * np.where(correct, 0.1, 0.3).mean()
    assert policies[0].cost_review_all == pytest.approx(full)
    costs = {"error_cost": 5.0, "reviewer_error": {"right": 0.1}}
    with pytest.raises(ValueError, match="of the classes 'wrong', 'right'; these are missing"):
        Report.from_outcomes(correct, p, costs=costs)


def test_which_of_two_models_is_better_names_both():
    rng = np.random.default_rng(1)
    p = rng.random(600)
    correct = {"a": rng.random(600) < 0.3 + 0.2 * p, "b": rng.random(600) < 0.7 + 0.2 * p}
    declined = {"a": np.zeros(600), "b": np.arange(600) % 10 == 0}
    found = Report.from_outcomes(correct, {"a": p, "b": p}, declined=declined).verdict
    assert (found.reason, found.tied) == ("costs needed", ("b",))  # clearly right more often
    assert found.sentences[0].startswith("Which of a and b is better depends on what a wrong")


def test_shared_mistakes_of_answers_are_marked_not_labelled():
    correct = np.arange(40) % 4 > 0
    sure = {"a": np.linspace(0.3, 0.99, 40), "b": np.linspace(0.2, 0.98, 40)}
    report = Report.from_outcomes(correct, sure)
    assert report.n_shared_mistakes == 1
    told = report.to_text(full=True)
    assert "1 case is wrong above 90 % confidence in both models: check its marking first." in told
    assert "Check its marking first: a wrong mark, or a blind spot" in told
    assert "label" not in told


def test_a_policy_that_answers_nothing_never_does_so_at_the_same_cost_either():
    rng = np.random.default_rng(1)
    right, sure = rng.random(300) < 0.6, rng.random(300)
    limits = {"max_error_rate": 0.0001}
    report = Report.from_outcomes(right, sure, costs={"error_cost": 5.0}, policy=limits)
    policy = report.models[0].policy
    assert policy.upper == policy.upper_interval.low == inf
    rows = {line.split("  ")[0]: line for line in report.to_text(full=True).splitlines()}
    assert rows["answer alone from"].endswith(" never")
    assert rows["at the same cost"].endswith(" never")
    assert "none               same cost none to none" in repr(policy)
    (shown,) = (n for n in verdict_numbers(report) if n.title.startswith("answer alone from"))
    assert (shown.value, shown.note) == ("never", "same cost: never")


def test_limits_and_shares_are_of_answers_that_were_given():
    rng = np.random.default_rng(2)
    n = 900
    right = {"a": rng.random(n) < 0.9, "b": rng.random(n) < 0.6}
    sure = {name: 0.55 * own + 0.45 * rng.random(n) for name, own in right.items()}
    costs, limits = {"error_cost": 5.0}, {"max_error_rate": 0.1}
    for declined, given in (({"a": rng.random(n) < 0.2, "b": np.zeros(n)}, True), (None, False)):
        report = Report.from_outcomes(right, sure, declined=declined, costs=costs, policy=limits)
        found = {finding.code: finding.text for finding in report.findings}
        assert ("of the answers given, difference" in found["FRA004"]) == given
        assert "errors, of the cases answered alone, at most 10 %" in found["FRA010"]
    policy = report.models[0].policy
    assert "errors, of the cases answered alone" in repr(policy)
    assert policy.error_rate == 0.0
    assert "cases answered alone: up to" in next(
        risk.text for risk in report.verdict.risks if risk.kind == "too_few_cases"
    )
