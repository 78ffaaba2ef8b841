"""Reviewers on every path: arrays, files, streams and merged states give the same policies."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from fragility import Costs, Policy, Report, ScoreState, best_policy
from fragility.deferral import policy_search
from fragility.report.files import report_on_file
from fragility.scores import state as state_module
from fragility.scores import state_bytes
from fragility.tables import PredictionFile, open_table

from .reference import reviewers as reference
from .test_reviewers import same_policies

Y, P = [0, 1, 0, 1, 0, 1], [0.1, 0.8, 0.3, 0.6, 0.2, 0.9]


class Paths:
    """The same cases as arrays, as a file, and in states."""

    def __init__(self, seed):
        rng = np.random.default_rng([seed, 23])
        self.c = 2 + seed % 2
        n = self.n = 260
        self.y = np.r_[np.arange(self.c), rng.integers(0, self.c, n - self.c)]
        z = rng.normal(size=(n, self.c)) + 1.4 * np.eye(self.c)[self.y]
        proba = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        self.scores = {
            name: (part[:, 1] if self.c == 2 else part)
            for name, part in (("a", proba), ("b", flat(proba)))
        }
        self.weights = rng.gamma(0.8, size=n) + 0.01 if seed % 4 < 2 else None
        self.kind = "human" if seed % 3 else "errors"
        slips = rng.random(n) < 0.12
        self.human = np.where(slips, (self.y + rng.integers(1, self.c, n)) % self.c, self.y)
        self.errors = (rng.random(n) * 0.3).round(3)
        self.errors[rng.random(n) < 0.3] = 0.0
        self.costs = {"error_cost": 6.0, "review_cost": 0.7}
        if seed % 5 > 1:
            matrix = rng.integers(1, 9, (self.c, self.c)).astype(float)
            np.fill_diagonal(matrix, 0.0)
            self.costs["error_cost"] = matrix

    def report(self, rows):
        costs, human = dict(self.costs), None
        if self.kind == "human":
            human = self.human[rows]
        else:
            costs["reviewer_error"] = self.errors[rows]
        weights = None if self.weights is None else self.weights[rows]
        scores = {name: part[rows] for name, part in self.scores.items()}
        own = {"labels": range(self.c), "n_worst": 0, "sample_weight": weights}
        own["calibrate"] = False
        return Report.from_predictions(self.y[rows], scores, costs=costs, human=human, **own)

    def write(self, path, order):
        lines = ["y,h,e,w," + ",".join(f"{m}{k}" for m in "ab" for k in range(self.columns))]
        for row in order:
            weight = 1.0 if self.weights is None else self.weights[row]
            cells = [self.y[row], self.human[row], self.errors[row], repr(float(weight))]
            for part in self.scores.values():
                cells += [repr(float(v)) for v in np.atleast_1d(part[row])]
            lines.append(",".join(map(str, cells)))
        path.write_text("\n".join(lines) + "\n")

    @property
    def columns(self):
        return 1 if self.c == 2 else self.c

    def file(self, path, hold):
        file = PredictionFile(
            open_table(path),
            label="y",
            models={m: [f"{m}{k}" for k in range(self.columns)] for m in "ab"},
            classes=[str(k) for k in range(self.c)],
            weight=None if self.weights is None else "w",
            human="h" if self.kind == "human" else None,
            reviewer_error="e" if self.kind == "errors" else None,
        )
        return report_on_file(
            file, costs=Costs(**self.costs), hold=hold, n_worst=0, calibrate=False
        )

    def state(self, rows, hold):
        state = ScoreState(range(self.c), ["a", "b"], (), self.weights is not None, hold)
        given = {"reviewer_error": self.errors[rows]}
        if self.kind == "human":
            given = {"human": self.human[rows]}
        weights = None if self.weights is None else self.weights[rows]
        scores = {name: part[rows] for name, part in self.scores.items()}
        return state.update(self.y[rows], scores, weights, **given)

    def merged(self, hold):
        parts = np.array_split(np.random.default_rng(self.n).permutation(self.n), 4)
        states = [self.state(rows, hold) for rows in parts]
        states[1] = ScoreState.from_bytes(states[1].to_bytes())
        whole = states[2].merge(states[1]).merge(states[3]).merge(states[0])
        return ScoreState.from_bytes(whole.to_bytes())

    def of_state(self, hold):
        return Report.from_state(self.merged(hold), self.costs, calibrate=False)


def flat(proba):
    powers = proba**0.5
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_every_path_gives_the_same_policies(seed, tmp_path):
    given = Paths(seed)
    report = given.report(np.arange(given.n))
    path = tmp_path / "cases.csv"
    given.write(path, np.random.default_rng(seed).permutation(given.n))
    others = {
        "shuffled": given.report(np.random.default_rng(1).permutation(given.n)),
        "file": given.file(path, inf),
        "merged": given.of_state(inf),
    }
    if given.c == 2:
        others["streamed"] = given.file(path, 0)
        others["bins"] = given.of_state(0)
    for name, other in others.items():
        assert other.reviewed == given.kind
        for one, two in zip(report.models, other.models, strict=True):
            first, second = (replaced(part.policy) for part in (one, two))
            same_policies(first, second)
        for one, two in zip(report.comparisons, other.comparisons, strict=name != "bins"):
            assert one.cost.test.difference == pytest.approx(two.cost.test.difference, abs=1e-11)
    own = report.models[0].policy
    if given.kind == "human":
        assert own.reviewers.policy.value == own.cost
    alone = given.scores["a"]
    arrays = {"reviewer_error": given.errors} if given.kind == "errors" else {"human": given.human}
    best = best_policy(given.y, alone, **given.costs, **arrays, sample_weight=given.weights)
    assert best.cost == pytest.approx(own.cost, rel=1e-9)
    assert best.cost_interval == pytest.approx(own.cost_interval, rel=1e-9)
    if given.kind == "human":
        assert best.reviewers.human.value == pytest.approx(own.reviewers.human.value, rel=1e-9)


def replaced(policy):
    """The same policy without what a file alone knows."""
    classes = [int(label) for label in policy.labels]
    positive = classes[policy.positive] if len(classes) == 2 else None
    own = {"columns": [], "classes": classes, "positive": positive}
    return Policy.from_dict(policy.to_dict() | own)


@pytest.mark.parametrize("seed", [1, 3])
def test_several_classes_beyond_what_is_held(seed, tmp_path, monkeypatch):
    """Sums in bins of the loss: the same from arrays, a file and single rows."""
    given = Paths(seed)
    assert given.c == 3
    monkeypatch.setattr(state_module, "HOLD", 300)
    monkeypatch.setattr(policy_search, "HOLD", 300)
    path = tmp_path / "cases.csv"
    given.write(path, np.random.default_rng(seed).permutation(given.n))
    streamed = given.file(path, 300)
    arrays = given.report(np.arange(given.n))
    for one, two in zip(arrays.models, streamed.models, strict=True):
        same_policies(replaced(one.policy), replaced(two.policy))
    policy = arrays.models[0].policy
    matrix = Costs(**given.costs).checked(3, None).matrix(3).tolist()
    price = given.costs["review_cost"]
    if given.kind == "human":
        own = zip(given.y, given.human, strict=True)
        reviewed = [reference.review_cost(t, matrix, price, human=h) for t, h in own]
    else:
        own = zip(given.y, given.errors, strict=True)
        reviewed = [reference.review_cost(t, matrix, price, rate) for t, rate in own]
    weights = np.ones(given.n) if given.weights is None else given.weights
    mean, error = reference.mean_and_error(reviewed, weights.tolist())
    assert policy.cost_review_all == pytest.approx(mean, rel=1e-9)
    if given.kind == "human":
        assert policy.reviewers.human.standard_error == pytest.approx(error, rel=1e-6)
        assert policy.reviewers.against_human.difference == pytest.approx(
            policy.cost - mean, abs=1e-9
        )
    merged = given.of_state(300)
    assert merged.models[0].policy is None
    assert any("no policies" in note for note in merged.notes)


def test_states_of_no_cases_merge_with_reviews():
    empty = ScoreState([0, 1], ["a"])
    full = ScoreState([0, 1], ["a"]).update(Y, P, human=Y)
    assert empty.merge(full).to_bytes() == full.to_bytes()
    plain = ScoreState([0, 1], ["a"]).update(Y, P)
    assert b"reviewed" not in plain.to_bytes()


@pytest.mark.parametrize("hold", [0, 100])
def test_damaged_reviews_are_refused(hold):
    state = ScoreState([0, 1], ["a"], hold=hold).update(Y, P, human=[0, 1, 1, 1, 0, 0])
    state.reviews.sums["errors"].add(np.array([0.0, 1.0, 0.0, 0.0]), 0)
    with pytest.raises(ValueError, match="reviews"):
        ScoreState.from_bytes(state_bytes.sealed(state))
    state = ScoreState([0, 1], ["a"], hold=hold).update(Y, P, human=Y)
    state.reviewed = "errors" if hold else "human"
    if hold:
        state.held[0] = state.held[0]._replace(human=None, reviewer_errors=np.full(6, 2.0))
        with pytest.raises(ValueError, match=r"reviews|probability"):
            ScoreState.from_bytes(state_bytes.sealed(state))
        return
    bins = state.sums().models["a"].bins
    bins.sums["review_slips"].add(np.ones(bins.sums["weight"].shape[1]), 0)
    with pytest.raises(ValueError, match="reviews in its bins"):
        ScoreState.from_bytes(state_bytes.sealed(state))
