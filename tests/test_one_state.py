"""Every figure is a function of the cases: in memory, from a file, shuffled, merged, or in bins."""

from __future__ import annotations

import csv
import json
from math import inf, isnan, nan

import numpy as np
import pytest

from fragility import Costs, Report, ScoreState
from fragility.report.data import to_dict
from fragility.report.files import report_on_file
from fragility.report.inputs import as_policy
from fragility.report.moves import OF_SEVERAL
from fragility.scores import state as state_module
from fragility.tables import PredictionFile, open_table

from .command import fragility

MODELS = ("a", "b")


class Problem:
    """Random predictions of two models, with or without weights, groups and costs."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.rng = rng
        self.n_classes = (2, 3, 2, 4, 2, 5)[seed % 6]
        n = int(rng.integers(40, 250))
        self.y = np.concatenate([np.arange(self.n_classes), rng.integers(0, self.n_classes, n)])
        self.y = np.concatenate([self.y, np.arange(self.n_classes)])
        n = self.n = self.y.size
        self.kind = str(rng.choice(["smooth", "rounded", "few", "saturated"]))
        self.scores = {"a": self._scores(1.0), "b": self._scores(2.5)}
        weights = str(rng.choice(["none", "whole", "real"]))
        self.weights = None
        if weights != "none":
            drawn = rng.integers(0, 4, n) if weights == "whole" else rng.gamma(0.7, size=n)
            self.weights = drawn.astype(float)
            self.weights[: self.n_classes] = self.weights[-self.n_classes :] = 1.0
        self.groups = rng.choice(["north", "south", "west"], n) if rng.random() < 0.6 else None
        self.by_case = None
        self.costs: Costs | None = None
        choice = str(rng.choice(["none", "number", "matrix", "case"]))
        capacity = float(rng.choice([0.1, 0.3])) if rng.random() < 0.5 else None
        if choice == "number":
            self.costs = Costs(float(rng.choice([3.0, 10.0])), 1.0, capacity, 0.05)
        elif choice == "matrix":
            matrix = rng.integers(1, 9, (self.n_classes, self.n_classes)).astype(float)
            np.fill_diagonal(matrix, 0.0)
            self.costs = Costs(matrix, 1.0, capacity)
        elif choice == "case":
            self.by_case = rng.gamma(1.0, 8.0, n).round(3)
            self.costs = Costs(None, 1.0, capacity)
        self.settings = {"confident": (0.9, 0.8, 0.6, 0.95)[seed % 4]}
        if self.n_classes == 2:
            self.settings["prevalence"] = (None, 0.4, 0.02)[seed % 5 % 3]

    def _scores(self, sharpness: float) -> np.ndarray:
        rng, n, c = self.rng, self.n, self.n_classes
        if c == 2:
            z = sharpness * (1.5 * (self.y - 0.5) + rng.normal(size=n))
            p = 1.0 / (1.0 + np.exp(-z * (8.0 if self.kind == "saturated" else 1.0)))
            return {"rounded": p.round(2), "few": p.round(1)}.get(self.kind, p)
        z = rng.normal(size=(n, c)) + 1.5 * np.eye(c)[self.y]
        p = np.exp(sharpness * z * (6.0 if self.kind == "saturated" else 1.0))
        p /= p.sum(axis=1, keepdims=True)
        if self.kind in ("rounded", "few"):
            tenths = 100 if self.kind == "rounded" else 10
            rest = np.floor(p[:, 1:] * tenths) / tenths
            p = np.column_stack([1.0 - rest.sum(axis=1), rest])
        return p

    # The paths.

    def in_memory(self, order: np.ndarray | None = None) -> Report:
        rows = np.arange(self.n) if order is None else order
        costs = self.costs
        if costs is not None and self.by_case is not None:
            costs = Costs(self.by_case[rows], 1.0, costs.capacity)
        return Report.from_predictions(
            self.y[rows],
            {name: scores[rows] for name, scores in self.scores.items()},
            groups=None if self.groups is None else self.groups[rows],
            costs=costs,
            labels=np.arange(self.n_classes),
            sample_weight=None if self.weights is None else self.weights[rows],
            cases=[f"row {row + 1}" for row in rows],
            n_worst=5,
            **self.settings,
        )

    def write(self, path, order: np.ndarray) -> list[str]:
        """A CSV file; the options that describe it."""
        head, columns = ["y", "id"], [self.y, np.array([f"row {row + 1}" for row in range(self.n)])]
        options = ["--label", "y", "--classes", ",".join(map(str, range(self.n_classes)))]
        for name, scores in self.scores.items():
            parts = [scores] if scores.ndim == 1 else list(scores.T)
            names = [f"{name}{place}" for place in range(len(parts))]
            head, columns = head + names, columns + parts
            options += ["--score", f"{name}={','.join(names)}"]
        for name, column in (("w", self.weights), ("g", self.groups), ("cost", self.by_case)):
            if column is not None:
                head.append(name)
                columns.append(column)
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(head)
            rows = [[str(part[row]) for part in columns] for row in order]
            writer.writerows(rows)
        if self.weights is not None:
            options += ["--weight", "w"]
        return options

    def from_file(self, path, order: np.ndarray, hold: float) -> Report:
        self.write(path, order)
        file = PredictionFile(
            open_table(path),
            label="y",
            models={
                name: [name + str(k) for k in range(1 if self.n_classes == 2 else self.n_classes)]
                for name in MODELS
            },
            classes=[str(c) for c in range(self.n_classes)],
            weight=None if self.weights is None else "w",
            groups=[] if self.groups is None else ["g"],
            error_cost=None if self.by_case is None else "cost",
        )
        return report_on_file(
            file, costs=self.costs, hold=hold, n_worst=5, case_column="id", **self.settings
        )

    def state(self, rows: np.ndarray, hold: float) -> ScoreState:
        names = [] if self.groups is None else sorted(set(self.groups.tolist()))
        state = ScoreState(range(self.n_classes), MODELS, names, self.weights is not None, hold)
        for part in np.array_split(rows, self.rng.integers(1, 4)):
            state.update(
                self.y[part],
                {name: scores[part] for name, scores in self.scores.items()},
                None if self.weights is None else self.weights[part],
                None if self.groups is None else self.groups[part],
                None if self.by_case is None else self.by_case[part],
            )
        return state

    def merged_state(self, hold: float) -> ScoreState:
        """Random parts, some of them written and read, merged in random order."""
        order = self.rng.permutation(self.n)
        parts = [self.state(rows, hold) for rows in np.array_split(order, self.rng.integers(2, 6))]
        while len(parts) > 1:
            self.rng.shuffle(parts)
            last, *parts = parts
            if self.rng.random() < 0.5:
                last = ScoreState.from_bytes(last.to_bytes())
            parts[0] = parts[0].merge(last)
        return parts[0]


def same(a: float | None, b: float | None, rel: float = 1e-9) -> bool:
    if a is None or b is None or isnan(a) or isnan(b):
        return (a is None or isnan(a)) and (b is None or isnan(b))
    if min(a, b) > 1e100:  # no upper limit
        return True
    return a == b or (abs(a - b) <= rel * max(abs(a), abs(b)) + 1e-12 and inf not in (a, b))


def close_figures(exact, other, where: str, told_by_cases: bool = False) -> None:
    """The same value, or one between the bounds that the other has; the same interval.

    Which the other may lack, where only the cases can tell it.
    """
    assert exact.estimator == other.estimator, where
    if other.bounds is None:
        assert same(exact.value, other.value), (where, exact, other)
    else:
        low, high = other.bounds
        room = 1e-12 * max(1.0, abs(exact.value))
        assert low - room <= exact.value <= high + room, (where, exact, other)
    if other.interval is None and told_by_cases:
        return
    assert (exact.interval is None) == (other.interval is None), (where, exact, other)
    # Where bins leave the order of a few cases open, ties within a bin count half: the standard
    # error of so few cases feels it, and the interval is wider by the bounds.
    room, rel = 1e-3 * (other.standard_error or 0.0), 1e-3
    if where.endswith("log_loss"):
        # In a bin all cases weigh alike, as far as degrees of freedom go, and the largest loss is
        # that of a bin: a few heavy and certain cases feel both.
        room *= 100.0
    if other.bounds is not None and other.standard_error:
        width = other.bounds.high - other.bounds.low
        rel = 0.05 + width / other.standard_error
        room = 0.1 * other.standard_error + 3.0 * width
    assert same(exact.standard_error, other.standard_error, rel), (where, exact, other)
    for one, two in zip(exact.interval or (), other.interval or (), strict=True):
        assert same(one, two, 1e-5) or abs(one - two) <= room, (where, exact, other)


def close_models(exact, other, where: str, told_by_cases: bool = False) -> None:
    assert set(exact.figures) - set(other.figures) <= ({"cost"} if told_by_cases else set())
    for name, figure in exact.figures.items():
        if name not in other.figures:
            continue
        own = told_by_cases and name not in (*OF_SEVERAL, "cost")
        close_figures(figure, other.figures[name], f"{where} {name}", own)
    index = other.figures["fragility_index"]
    width = 0.0 if index.bounds is None else index.bounds.high - index.bounds.low
    rtol = 1e-9 + (4.0 * len(exact.pairs) ** 2 * width / index.value if width else 0.0)
    assert np.allclose(exact.pairs, other.pairs, rtol=rtol, equal_nan=True), where
    assert exact.n_infinite_pairs == other.n_infinite_pairs
    for name, amounts in vars(exact.decisions).items():
        if amounts is not None:
            np.testing.assert_allclose(amounts, getattr(other.decisions, name), 1e-9, 1e-9)
    for one, two in zip(exact.histogram, other.histogram, strict=True):
        np.testing.assert_allclose(one, two, 1e-9, 1e-9)
    for name, value in vars(exact.confident).items():
        assert same(value, getattr(other.confident, name)), (where, name)
    close_evidence(exact.evidence, other.evidence, where)


def close_evidence(exact, other, where: str) -> None:
    """Every field: what is measured on bins is the same, what is not lies between its bounds."""
    assert list(exact.figures) == list(other.figures)
    for name, figure in exact.figures.items():
        close_figures(figure, other.figures[name], f"{where} {name}")
    for part in ("reliability", "risk_coverage"):
        for name, values in vars(getattr(exact, part)).items():
            found = getattr(getattr(other, part), name)
            np.testing.assert_allclose(values, found, 1e-9, 1e-9, err_msg=f"{where} {part} {name}")
    for name in ("prevalence", "cost_threshold"):
        assert same(getattr(exact, name), getattr(other, name)), (where, name)
    for part in ("operating", "decision_curve"):
        one, two = getattr(exact, part), getattr(other, part)
        assert (one is None) == (two is None)
        if one is None:
            continue
        least, most = two.least or two.points, two.most or two.points
        for name, values in vars(one.points).items():
            low, high = getattr(least, name), getattr(most, name)
            inside = (low - 1e-9 <= values) & (values <= high + 1e-9 * np.maximum(1.0, values))
            unknown = np.isnan(values) | (values == inf)  # nothing flagged, or no positive
            assert (inside | unknown).all(), (where, part, name, values, low, high)


def close_policies(exact, other) -> None:
    """The same policy, digit for digit; only files tell the names of columns and numbers."""
    assert (exact is None) == (other is None)
    if exact is None:
        return
    found, expected = other.to_dict(), exact.to_dict()
    if any(note.startswith("One case makes") for note in found["notes"]):
        del found["notes"], expected["notes"]  # a state does not name its cases
    for one, two in ((expected, found), (found, expected)):
        for name, value in one.items():
            if name not in ("columns", "classes", "positive", "costs"):
                close_values(value, two[name], name)


def close_values(one, two, where: str) -> None:
    if isinstance(one, dict):
        assert set(one) == set(two), where
        for name, value in one.items():
            close_values(value, two[name], f"{where} {name}")
    elif isinstance(one, (list, tuple)):
        for a, b in zip(one, two, strict=True):
            close_values(a, b, where)
    elif isinstance(one, float) or one is None:
        assert same(one, two), (where, one, two)
    else:
        assert one == two, where


def close(exact: Report, other: Report, *, merged: bool = False, worst: bool = True) -> None:
    """Every field, but for what is absent by name."""
    assert list(map(str, exact.labels)) == list(map(str, other.labels))
    assert exact.support == other.support
    assert exact.weighted == other.weighted
    absent = merged and other.streamed
    several = len(exact.labels) > 2
    for one, two in zip(exact.models, other.models, strict=True):
        assert one.name == two.name
        close_models(one.raw, two.raw, f"{one.name} raw", absent and several)
        index = two.raw.figures["fragility_index"]
        if absent and several:
            assert two.policy is None
        else:
            close_policies(one.policy, two.policy)
            assert (one.confusion is None) == (two.confusion is None)
            if one.confusion is not None:
                np.testing.assert_allclose(one.confusion, two.confusion, 1e-9, 1e-9)
        if absent and several:
            assert two.confusion is None
            assert index.interval is None
            assert two.calibrated is None
            assert "cases once more" in two.why_not_calibrated or "sample" in two.why_not_calibrated
        elif one.calibrated is None:
            assert two.calibrated is None
        elif other.streamed and "too close together" in two.why_not_calibrated:
            assert two.calibrated is None  # so few cases that one pair in a bin is a share of them
        else:
            assert two.calibrated is not None
            close_models(one.calibrated, two.calibrated, f"{one.name} calibrated")
            close_values(vars(one.calibration), vars(two.calibration), "calibration")
            assert (one.raw.figures["fragility_index"].interval is None) == (index.interval is None)
        if worst and 0.0 < one.raw.figures["fragility_index"].value < inf and not several:
            assert [round(case.lift, 5) for case in one.worst] == pytest.approx(
                [round(case.lift, 5) for case in two.worst], rel=1e-4
            )
            lifts = [case.lift for case in one.worst]
            if len({round(lift, 3) for lift in lifts}) == len(lifts):
                assert [case.case for case in one.worst] == [case.case for case in two.worst]
    if absent:
        assert not other.comparisons
        assert any("paired tests" in note for note in other.notes)
    else:
        for one, two in zip(exact.comparisons, other.comparisons, strict=True):
            calibrated = [report.models[0].calibrated is not None for report in (exact, other)]
            for before, later in ((one.raw, two.raw), (one.calibrated, two.calibrated)):
                if before is None or later is None:
                    assert before is later or calibrated == [True, False]
                    continue
                alike = calibrated[0] == calibrated[1]
                assert before.n_tests == later.n_tests or not alike
                for name, a in before.tests.items():
                    b, exactly = later.tests[name], name in ("fragility_index", "ratio")
                    known = [
                        part.raw if later is two.raw else part.calibrated for part in other.models
                    ]
                    bounded = any(part.figures[name].bounds is not None for part in known)
                    # As in `close_figures`: the order of a few cases within bins is open.
                    rel = 0.2 if bounded else 1e-3
                    assert same(a.standard_error, b.standard_error, 1e-5 if exactly else rel)
                    assert same(a.p_value, b.p_value, 1e-4) or not exactly
                assert same(before.p_value, later.p_value, 1e-4) or not alike
            assert (one.cost is None) == (two.cost is None)
            if one.cost is not None:
                for part in ("a", "b", "difference", "p_value", "effective"):
                    assert same(getattr(one.cost.test, part), getattr(two.cost.test, part), 1e-8)
    if exact.n_shared_mistakes is not None and not absent:
        assert exact.n_shared_mistakes == other.n_shared_mistakes
        if worst:
            listed = [part.shared_mistakes for part in (exact, other)]
            least = [[min(case.confidence.values()) for case in part] for part in listed]
            assert least[0] == least[1]
            if len(set(least[0])) == len(least[0]):  # of equal ones the first row is listed
                assert [case.case for case in listed[0]] == [case.case for case in listed[1]]
    elif absent:
        assert other.n_shared_mistakes is None
    untold = any("What policies do in each group is not told" in note for note in other.notes)
    untold |= absent and several
    for one, two in zip(exact.groups, other.groups, strict=True):
        close_groups(one, two, absent and several, untold)


def close_groups(exact, other, told_by_cases: bool, untold: bool) -> None:
    """Every figure of a group, and what the policy does there."""
    where = f"group {exact.group}"
    for name in ("model", "group", "support", "reason", "too_small", "lacks_classes"):
        assert getattr(exact, name) == getattr(other, name), where
    assert same(exact.in_all, other.in_all, 1e-6)
    assert (exact.base_rate is None) == (other.base_rate is None)
    if exact.base_rate is not None:
        close_figures(exact.base_rate, other.base_rate, f"{where} base rate")
    assert set(exact.figures) == set(other.figures)
    for name, figure in exact.figures.items():
        found = other.figures[name]
        if found.bounds is None:
            own = told_by_cases and name not in OF_SEVERAL
            close_figures(figure, found, f"{where} {name}", own)
            continue
        # Bins of groups are wider: narrow scores of few cases may leave their interval open.
        low, high = found.bounds
        assert low - 1e-9 <= figure.value <= high + 1e-9, (where, name, figure, found)
        if found.interval is not None and figure.interval is not None:
            below, above = figure.interval
            room = 0.1 * (above - below if above < inf else below) + 1e-6
            assert found.interval.low <= below + room, (where, name, figure, found)
            assert found.interval.high >= above - room, (where, name, figure, found)
    if exact.policy is None or untold:
        assert other.policy is None
        return
    for name, figure in vars(exact.policy).items():
        found = getattr(other.policy, name)
        assert figure.estimator == found.estimator
        low, high = found.bounds or (found.value, found.value)
        unknown = isnan(figure.value) or isnan(found.value)
        assert unknown or low - 1e-9 <= figure.value <= high + 1e-9, (where, name, figure, found)
        if found.bounds is None and not unknown:
            for one, two in zip(figure.interval, found.interval, strict=True):
                assert same(one, two, 1e-6), (where, name, figure, found)


#: Two to five classes, every kind of scores, weights and costs, with and without groups.
each_problem = pytest.mark.parametrize("seed", [0, 1, 5, 6, 8, 45])


@pytest.mark.slow
@each_problem
def test_every_path_has_the_same_figures(seed, tmp_path):
    problem = Problem(seed)
    order = problem.rng.permutation(problem.n)
    exact = problem.in_memory()
    close(exact, problem.in_memory(order))
    close(exact, problem.from_file(tmp_path / "held.csv", order, 2**20))
    state = problem.merged_state(2**20)
    assert state.complete
    made = Report.from_state(state, problem.costs, **problem.settings)
    close(exact, made, merged=True, worst=False)


@pytest.mark.slow
@each_problem
def test_more_scores_than_are_held(seed, tmp_path, monkeypatch):
    problem = Problem(seed)
    hold = 40 * len(MODELS) * (1 if problem.n_classes == 2 else problem.n_classes) // 2
    monkeypatch.setattr(state_module, "HOLD", hold)
    order = problem.rng.permutation(problem.n)
    exact = problem.in_memory()
    streamed = problem.from_file(tmp_path / "streamed.csv", order, hold)
    assert streamed.streamed
    close(exact, streamed)
    state = problem.merged_state(hold)
    assert not state.complete
    made = Report.from_state(state, problem.costs, **problem.settings)
    close(exact, made, merged=True, worst=False)


@pytest.mark.parametrize("limits", [{"max_error_share": 0.1}, {"max_error_rate": 0.2}])
@pytest.mark.parametrize("classes", [2, 3])
def test_guarantees_are_the_same_on_every_path(limits, classes, tmp_path, monkeypatch):
    """In memory, streamed and merged; of several classes a merged state says that it has none."""
    rng = np.random.default_rng(classes)
    problem = Problem(0 if classes == 2 else 1)
    problem.n_classes, problem.n = classes, 900
    problem.y = rng.integers(0, classes, 900)
    problem.kind, problem.weights, problem.groups, problem.by_case = "smooth", None, None, None
    problem.scores = {"a": problem._scores(1.0), "b": problem._scores(2.5)}
    costs = Costs(5.0, 1.0, None, 0.02)
    if classes == 2:
        limits = {**limits, "max_misses": 0.2}
    hold = 100 * len(MODELS) * (1 if classes == 2 else classes)
    monkeypatch.setattr(state_module, "HOLD", hold)
    exact = Report.from_predictions(
        problem.y, problem.scores, costs=costs, policy=limits, labels=range(classes)
    )
    assert all(model.policy.guaranteed for model in exact.models)
    assert all(0.0 < model.policy.automation_rate < 1.0 for model in exact.models)
    order = problem.rng.permutation(problem.n)
    problem.write(tmp_path / "p.csv", order)
    columns = range(1 if classes == 2 else classes)
    file = PredictionFile(
        open_table(tmp_path / "p.csv"),
        label="y",
        models={name: [name + str(k) for k in columns] for name in MODELS},
        classes=[str(c) for c in range(classes)],
    )
    settings = as_policy(limits)
    streamed = report_on_file(file, costs=costs, policy=settings, hold=hold)
    assert streamed.streamed
    merged = Report.from_state(problem.merged_state(hold), costs, policy=limits)
    for one, two, three in zip(exact.models, streamed.models, merged.models, strict=True):
        close_policies(one.policy, two.policy)
        if classes == 2:
            close_policies(one.policy, three.policy)
        else:
            assert three.policy is None
    if classes == 3:
        assert any("no policies" in note for note in merged.notes)


@each_problem
@pytest.mark.parametrize("hold", [0, 60, 2**20])
def test_the_same_cases_make_the_same_bytes(seed, hold):
    problem = Problem(seed)
    whole = problem.state(np.arange(problem.n), hold).to_bytes()
    assert problem.merged_state(hold).to_bytes() == whole
    assert ScoreState.from_bytes(whole).to_bytes() == whole


@pytest.mark.slow
def test_a_gate_passes_on_the_file_that_made_its_baseline(tmp_path):
    problem = Problem(4)
    problem.costs, problem.by_case = None, None
    table = tmp_path / "predictions.csv"
    options = problem.write(table, np.arange(problem.n))
    for first, second in ((["--hold", "20"], ["--in-memory"]), (["--in-memory"], ["--hold", "20"])):
        baseline = tmp_path / "old.json"
        asked = ("gate", str(table), *options, "--error-cost", "10", *first)
        made = fragility(*asked, "--save-baseline", str(baseline))
        assert made.code == 0, made.err
        assert json.loads(baseline.read_text())["models"][0]["cost_estimator"]
        held = fragility(
            *("gate", str(table), *options, "--error-cost", "10", *second),
            *("--baseline", str(baseline)),
        )
        assert held.code == 0, held.out + held.err


@pytest.mark.slow
def test_a_gate_refuses_a_cost_of_several_classes_that_was_measured_otherwise(tmp_path):
    problem = Problem(3)
    table = tmp_path / "predictions.csv"
    options = problem.write(table, np.arange(problem.n))
    asked = ("gate", str(table), *options, "--error-cost", "10")
    made = fragility(*asked, "--save-baseline", str(tmp_path / "old.json"))
    assert made.code == 0, made.err
    held = fragility(
        *("gate", str(table), *options, "--error-cost", "10", "--hold", "20"),
        *("--baseline", str(tmp_path / "old.json")),
    )
    assert held.code == 2
    assert "estimator" in held.err


def test_unweighted_cases_merge_as_cases_of_weight_one():
    problem = Problem(0)
    rows = np.arange(problem.n)
    problem.weights = None
    for hold in (0, 2**20):
        plain = problem.state(rows, hold)
        problem.weights = np.ones(problem.n)
        weighted = problem.state(rows, hold)
        problem.weights = None
        both, other = weighted.merge(plain), problem.state(rows, hold).merge(plain)
        a, b = (to_dict(Report.from_state(part))["models"] for part in (both, other))
        for one, two in zip(a, b, strict=True):
            for name, figure in one["raw"]["figures"].items():
                assert same(figure["value"], two["raw"]["figures"][name]["value"]), name


def test_nan_is_not_a_number_of_the_same():
    assert same(nan, None)
    assert not same(1.0, nan)
    assert not same(1.0, 1.001)
