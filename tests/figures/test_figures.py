"""Every figure against its definition, and its influences against perturbed masses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from fragility.cases.cases import Cases
from fragility.figures import probability, ranking
from fragility.figures.measuring import measure_models
from fragility.figures.registry import FIGURES
from fragility.figures.scored import Scored
from fragility.measured import CVAR_LEVEL

from ..reference import companions


def drawn(seed, n=40, n_classes=2, *, weighted=False, digits=None, answers=False):
    rng = np.random.default_rng([seed, n, n_classes])
    y = np.r_[np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)]
    logit = rng.standard_normal((n, n_classes)) + 1.2 * np.eye(n_classes)[y]
    p = np.exp(logit) / np.exp(logit).sum(axis=1, keepdims=True)
    if digits is not None:
        p = np.round(p, digits)
    weight = rng.uniform(0.5, 3.0, n) if weighted else None
    scores = {"a": p[:, 1] if n_classes == 2 else p}
    if answers:
        return Cases({"a": y == 1}, scores, ("wrong", "right"), weight=weight)
    return Cases(y, scores, tuple(range(n_classes)), weight=weight)


KINDS = [
    {"n_classes": 2},
    {"n_classes": 2, "weighted": True},
    {"n_classes": 2, "digits": 1},
    {"n_classes": 3, "weighted": True},
    {"n_classes": 2, "answers": True},
]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


@each_kind
@pytest.mark.parametrize("seed", range(3))
class TestValues:
    def test_tails_from_all_pairs_as_fractions(self, seed, kind):
        cases = drawn(seed, **kind)
        model = Scored(cases, "a")
        y, p = cases.truth("a"), cases.scores["a"]
        columns = np.stack([1 - p, p], axis=1) if p.ndim == 1 else p
        for figure, exact in (
            (ranking.buffered_auc, companions.exact_buffered_auc),
            (ranking.cvar, lambda pairs: companions.exact_cvar(pairs, CVAR_LEVEL)),
        ):
            if p.ndim == 1:
                negatives, positives = y == 0, y == 1
                w = cases.mass
                pairs = companions.exact_pairs(
                    p[negatives], p[positives], w[negatives], w[positives]
                )
                expected = exact(pairs)
            else:
                expected = companions.mean_over_pairs(exact, y, columns, cases.mass)
            assert figure(model).value == pytest.approx(expected, abs=1e-12)

    def test_proper_scores_and_auc_as_scikit_learn_has_them(self, seed, kind):
        cases = drawn(seed, **kind)
        model, y, p = Scored(cases, "a"), cases.truth("a"), cases.scores["a"]
        expected = log_loss(y, p, sample_weight=cases.mass)
        assert probability.log_loss(model).value == pytest.approx(expected, rel=1e-9)
        if p.ndim == 1:
            expected = roc_auc_score(y, p, sample_weight=cases.mass)
            assert ranking.auc(model).value == pytest.approx(expected, rel=1e-12)
            expected = brier_score_loss(y, p, sample_weight=cases.mass)
        else:
            expected = float(cases.mass @ ((p - np.eye(3)[y]) ** 2).sum(axis=1) / cases.mass.sum())
        assert probability.brier(model).value == pytest.approx(expected, rel=1e-12)

    def test_area_under_risk_coverage_by_its_definition(self, seed, kind):
        model = Scored(drawn(seed, **kind), "a")
        risks = [
            model.mass[model.confidence >= q]
            @ model.wrong[model.confidence >= q]
            / model.mass[model.confidence >= q].sum()
            for q in model.confidence
        ]
        expected = float(model.mass @ risks / model.total)
        assert probability.aurc(model).value == pytest.approx(expected, rel=1e-12)

    def test_shuffled_and_repeated_rows_give_the_same_figures(self, seed, kind):
        cases = drawn(seed, **kind)
        rng = np.random.default_rng(seed)
        count = rng.integers(1, 4, cases.n)
        repeated = cases.take(np.repeat(np.arange(cases.n), count))
        counted = replace(cases, count=count.astype(float))
        shuffled = repeated.take(rng.permutation(repeated.n))
        for table in (counted, shuffled):
            found, expected = (measure_models(t).figures["a"] for t in (table, repeated))
            for name, figure in expected.items():
                assert found[name].value == pytest.approx(figure.value, rel=1e-9), name
                if name != "cvar":  # which may be reached at any of several levels
                    error = figure.standard_error
                    assert found[name].standard_error == pytest.approx(error, rel=1e-6), name


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name, figure in FIGURES.items()
        for kind in KINDS
        if name != "calibration_error" and ("answers" in kind or not figure.answers_only)
    ],
    ids=str,
)
def test_influences_are_derivatives_by_the_mass_of_each_case(name, kind):
    """By central differences; masses that are not round keep off the kinks of bins and tails."""
    cases = drawn(7, **{**kind, "weighted": True})
    figure = FIGURES[name]
    model = Scored(cases, "a")
    estimate = figure.estimate(model)
    assert abs(model.mass @ estimate.influence) < 1e-9
    step = 1e-5
    for k in range(0, cases.n, 3):
        values = []
        for sign in (1.0, -1.0):
            weight = cases.weight.copy()
            weight[k] += sign * step
            values.append(figure.estimate(Scored(replace(cases, weight=weight), "a")).value)
        derivative = (values[0] - values[1]) / (2 * step)
        assert estimate.influence[k] == pytest.approx(derivative, abs=2e-6), k


@each_kind
def test_calibration_error_by_bins_of_equal_mass(kind):
    """Cases in order of probability, cut into small equal pieces that fill one bin each."""
    cases = drawn(11, 45, **{**kind, "weighted": False})
    model = Scored(cases, "a")
    probability_of, happened = model.forecast
    order = np.argsort(probability_of, kind="stable")
    groups = np.unique(probability_of[order], return_inverse=True)[1]
    residual = (happened - probability_of)[order]
    level = np.bincount(groups, residual) / np.bincount(groups)  # ties count alike
    expected = np.abs(level[groups].reshape(15, 3).sum(axis=1)).sum() / 45
    estimate = probability.calibration_error(model)
    assert estimate.value == pytest.approx(expected, rel=1e-12)
    signs = np.sign(level[groups].reshape(15, 3).sum(axis=1)).repeat(3)
    by_value = np.bincount(groups, signs) / np.bincount(groups)
    moves = np.empty(45)
    moves[order] = by_value[groups] * residual
    np.testing.assert_allclose(estimate.influence, (moves - moves.mean()) / 45, atol=1e-14)


def test_many_distinct_scores_are_searched_on_cells_first():
    """The level of the optimum is the same as from all errors, which few scores allow."""
    rng = np.random.default_rng(3)
    n = 30_000
    y = (rng.random(n) < 0.4).astype(int)
    p = 1 / (1 + np.exp(-(1.5 * y - 0.7 + rng.standard_normal(n))))
    model = Scored(Cases(y, {"a": p}), "a")
    (pair,) = model.pairs
    level = pair.scores.level_where(
        lambda scores, t: (1 - CVAR_LEVEL) - scores.share_above(t),
        pair.scores.smallest,
        pair.scores.largest,
    )
    one_pair = 1 / (np.count_nonzero(y) * np.count_nonzero(1 - y))
    assert pair.scores.share_above(level) == pytest.approx(1 - CVAR_LEVEL, abs=2 * one_pair)
    value = ranking.cvar(model).value
    below = level - 1e-4 + pair.scores.excess(level - 1e-4) / (1 - CVAR_LEVEL)
    above = level + 1e-4 + pair.scores.excess(level + 1e-4) / (1 - CVAR_LEVEL)
    assert value <= min(below, above)


def test_abstained_cases_are_in_no_figure():
    cases = drawn(5, 60, answers=True)
    p = cases.scores["a"].copy()
    p[::7] = np.nan
    partly = replace(cases, scores={"a": p})
    answered = cases.take(~np.isnan(p))
    for name, figure in measure_models(answered).figures["a"].items():
        found = measure_models(partly).figures["a"][name]
        assert found.value == figure.value
        assert found.standard_error == figure.standard_error
